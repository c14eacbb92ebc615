"""Policies that are models: what they say, what they choose, and what they keep of it."""

import asyncio
import math
from dataclasses import replace

import pytest

from dreamgym.agents.marks import Marks
from dreamgym.agents.policy import (
    ChatAgent,
    Manner,
    PolicyAgent,
    listed_actions,
    log_share,
    not_in_vain,
    pick_one,
)
from dreamgym.agents.policy_prompt import MARKS, UNREADABLE
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.llm import ScriptedLLM
from dreamgym.models.as_llm import LocalLLM
from dreamgym.models.decode import Decoder
from dreamgym.models.tiny import make_tiny
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.types import Action, Observation, SampledTokens, Split, Step, StepResult, Task

TASK = Task(id="t", env="e", key="1", split=Split.TRAIN, goal="find the coin")
ROOM = "kitchen\ncounter: cup, knife; fridge: closed\nnorth: pantry; east: backyard"
NOW = Observation(ROOM, ("move east", "move north", "take cup", "take knife"))


@pytest.fixture(scope="module")
def local():
    texts = [ROOM, TASK.goal, *NOW.admissible, "room 0 1 2 3 4 5 6 7 8 9 ~"]
    words = train_word_tokenizer(texts, special=MARKS[:-1], vocab_size=400, min_count=1)
    model = make_tiny("1m", words.vocab_size, seed=3)
    decoder = Decoder(model)
    return LocalLLM(model, words, decoder=decoder), words, decoder


def agent(local, seed=0, **manner):
    llm, words, _ = local
    return PolicyAgent(llm, CompactWriter(words, 2048, 6), seed, manner=Manner(**manner))


def play(one, turns, now=NOW):
    """Return the actions of an episode in which nothing ever changes."""

    async def run():
        past = []
        for _ in range(turns):
            past.append(Step(await one.act(TASK, past, now), StepResult(now)))
        return [step.action for step in past]

    return asyncio.run(run())


def test_what_is_said_goes_with_the_tokens_it_was_sampled_as(local):
    words = local[1]
    for action in play(agent(local, temperature=1.0), 4):
        assert len(action.tokens.ids) == len(action.tokens.logprobs) <= 6
        said = words.decode(action.tokens.ids).replace("<end>", "")
        assert action.text == said or action.text.startswith(UNREADABLE)


def test_the_same_seed_does_the_same_and_another_one_does_not(local):
    first, again = play(agent(local, 1), 5), play(agent(local, 1), 5)
    # What was read before is remembered, and sums of another order differ in their last digits.
    assert [(one.text, one.tokens.ids) for one in first] == [
        (one.text, one.tokens.ids) for one in again
    ]
    for one, other in zip(first, again, strict=True):
        assert one.tokens.logprobs == pytest.approx(other.tokens.logprobs, abs=1e-4)
    assert [one.text for one in first] != [one.text for one in play(agent(local, 2), 5)]


def test_a_chooser_takes_what_is_listed_with_the_models_own_probabilities(local):
    llm, words, _ = local
    (action,) = play(agent(local, options=listed_actions, temperature=0.0), 1)
    assert action.text in NOW.admissible
    assert action.tokens.ids == (*words.encode(action.text), words.end_id)
    prompt = CompactWriter(words, 2048, 6).prompt(TASK.goal, [], NOW)
    answers = [(*words.encode(each), words.end_id) for each in NOW.admissible]
    scores = asyncio.run(llm.weigh(prompt, answers))
    best = max(range(4), key=lambda n: sum(scores[n]))
    assert action.text == NOW.admissible[best]
    assert action.tokens.logprobs == scores[best]
    assert action.tokens.choice.candidates == tuple(answers)
    assert action.tokens.choice.chosen == best


def test_a_drawn_choice_keeps_its_share_among_the_candidates(local):
    (action,) = play(agent(local, options=listed_actions, temperature=0.5), 1)
    choice = action.tokens.choice
    assert choice.candidates[choice.chosen] == action.tokens.ids
    scores = [math.log(share) for share in (0.02, 0.05, 0.01, 0.12)]
    assert math.exp(log_share(scores, 3, 1.0)) == pytest.approx(0.6)
    squares = [share**2 for share in (0.02, 0.05, 0.01, 0.12)]
    assert math.exp(log_share(scores, 1, 0.5)) == pytest.approx(squares[1] / sum(squares))


def test_a_choice_is_drawn_as_often_as_the_model_would_say_it():
    scores = [math.log(share) for share in (0.02, 0.05, 0.01, 0.12)]
    drawn = [pick_one(scores, 1.0, seed=n) for n in range(2000)]
    shares = [drawn.count(place) / 2000 for place in range(4)]
    assert shares == pytest.approx([0.1, 0.25, 0.05, 0.6], abs=0.04)


def test_a_chooser_sees_what_it_tried_here_before(local):
    llm, words, _ = local
    writer = CompactWriter(words, 2048, 6, marks=Marks(tried=True))
    one = PolicyAgent(llm, writer, 0, manner=Manner(options=listed_actions))
    away = Observation("pantry", ("move south",))

    async def run():
        past = [
            Step(Action("move north"), StepResult(away)),
            Step(Action("move south"), StepResult(NOW)),
        ]
        await one.act(TASK, [], NOW)
        return await one.act(TASK, past, NOW)

    offered = [writer.read(ids)[0] for ids in asyncio.run(run()).tokens.choice.candidates]
    assert offered == ["move east", "move north ~", "take cup", "take knife"]


def test_a_chooser_speaks_freely_where_nothing_is_listed(local):
    (action,) = play(agent(local, options=listed_actions), 1, Observation(ROOM))
    assert action.tokens is not None


def test_an_answer_without_an_end_is_an_invalid_action(local):
    llm, words, _ = local
    short = PolicyAgent(llm, CompactWriter(words, 2048, 1), 0)
    (action,) = play(short, 1)
    assert action.text.startswith(UNREADABLE)
    assert len(action.tokens.ids) == 1


def test_the_context_of_earlier_turns_is_not_read_again(local):
    _llm, words, decoder = local
    decoder.forget()
    before = decoder.read_tokens
    actions = play(agent(local, 9, options=listed_actions), 12)
    past = [(NOW, action.tokens.ids) for action in actions[:-1]]
    total = len(CompactWriter(words, 2048, 6).prompt(TASK.goal, past, NOW))
    # Memory is kept in blocks of 16: at most one is begun anew per turn.
    assert decoder.read_tokens - before <= total + 12 * 16


@pytest.mark.parametrize(("scores", "best"), [([0.0], 0), ([-3.0, -1.0, -2.0], 1)])
def test_at_temperature_zero_the_highest_score_is_picked(scores, best):
    assert pick_one(scores, 0.0, seed=1) == best


def test_higher_temperatures_are_freer():
    def share(temperature):
        return sum(pick_one([0.0, -2.0], temperature, seed=n) for n in range(400)) / 400

    assert share(0.5) < share(1.0) < share(4.0) < 0.5


def test_a_chat_agent_reads_the_action_and_keeps_the_tokens():
    llm = ScriptedLLM(["<think>east</think><action>move east</action>", "I would go east"])
    chat = ChatAgent(llm, 5, window=1)
    first, second = play(chat, 2)
    assert first == Action("move east")
    assert second.text == f"{UNREADABLE} I would go east"
    assert "move north; take cup" in llm.requests[0].prompt[1].content
    assert "Action: move east" in llm.requests[1].prompt[1].content
    assert llm.requests[0].seed != llm.requests[1].seed


def test_an_agent_that_comes_late_does_without_the_opening(local):
    one = agent(local)
    tokens = SampledTokens((5,), (0.0,))
    past = [Step(Action("x", tokens), StepResult(NOW))]
    assert asyncio.run(one.act(TASK, past, NOW)).tokens is not None


def test_what_changed_nothing_here_is_not_offered_again():
    def turn(before, action, after):
        return Observation(before), Step(Action(action), StepResult(Observation(after)))

    before, right = turn("hall\ncup", "sing", "hall\ncup\n> correct")
    past = [
        (before, replace(right, result=replace(right.result, reward=0.5))),
        turn("hall\ncup", "eat cup", "hall\ncup\n> no"),
        turn("hall\ncup", "take cup", "hall\ncarrying: cup"),
        turn("yard", "wait", "yard"),
    ]
    offered = ("eat cup", "sing", "take cup", "wait")
    assert not_in_vain(offered, past, Observation("hall\ncup")) == ["sing", "take cup", "wait"]
    assert not_in_vain(offered, past, Observation("attic")) == list(offered)
    assert not_in_vain(("wait",), past, Observation("yard")) == ("wait",), "something must be done"
