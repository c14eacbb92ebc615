"""Pessimism: what two models must agree on, and what it costs to be unsure."""

import asyncio
from dataclasses import replace

import pytest
from small_house import OPENING, TASK, WAY, page, perfect, transition

from dreamgym.errors import EnvError, LLMTimeout
from dreamgym.experience import DreamWorld, ExperienceModel, Pessimism, SecondOpinion, Style
from dreamgym.experience.doubt import FlagsOnly, disagreement
from dreamgym.experience.prompt import StepQuery
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.replay.lookup import Hit
from dreamgym.types import Completion, Origin, Prediction, Request, SampledTokens

FLAGS = "\nRefused: False\nDone: False\nSuccess: False\nReward: 0"
RIGHT = perfect(Style.FULL)


def model(answer, *, retries=0):
    return ExperienceModel(
        ScriptedLLM(lambda request: answer(flat_prompt(request.prompt))), retries=retries
    )


def dreamed(second, actions, *, states=True):
    """Return the results of the actions, and the world's counts."""

    async def play():
        opinion = SecondOpinion(model(second), states=states)
        world = DreamWorld(model(RIGHT), pessimism=Pessimism(second=opinion))
        env = await world.open(TASK)
        await env.reset(0)
        try:
            return [await env.step(action) for action in actions], world.counts
        finally:
            await world.close()

    return asyncio.run(play())


def elsewhere(prompt):
    """Always the same room, whatever one does."""
    return "<think>on</think>\n<edit>\n=0 attic\n</edit>" + FLAGS


def mute(prompt):
    return "I would rather not say."


def test_where_two_models_agree_the_dream_goes_on_and_may_be_won():
    results, counts = dreamed(RIGHT, WAY)
    assert results[-1].success
    assert results[0].observation.text == page("hall")
    assert not any(name.startswith("unknown") for name in counts)


@pytest.mark.parametrize(
    ("second", "why"),
    [(elsewhere, "different states"), (mute, "cannot be read"),
     (lambda prompt: RIGHT(prompt).replace("Refused: False", "Refused: True"), "refused is False")],
)  # fmt: skip
def test_where_they_disagree_nobody_knows_and_nothing_is_earned(second, why):
    (result,), counts = dreamed(second, WAY[:1])
    assert result.truncated and not result.terminated
    assert (result.reward, result.success) == (0, False)
    assert result.account.reasoning.startswith("[unknown] disagreement: ")
    assert why in result.account.reasoning
    assert result.observation.text == OPENING
    assert counts["unknown_disagreement"] == 1


def test_agreement_on_flags_alone_is_a_weaker_wish():
    (result,), counts = dreamed(elsewhere, WAY[:1], states=False)
    assert result.observation.text == page("hall"), "the first model's answer counts"
    assert counts["origin_model"] == 1


def test_a_second_reply_that_does_not_come_breaks_the_episode():
    def gone(prompt):
        raise LLMTimeout("no answer")

    with pytest.raises(EnvError, match="no answer"):
        dreamed(gone, WAY[:1])


def test_what_was_said_is_no_disagreement():
    one, other = Prediction("", "hall\n> you walk"), Prediction("", "hall\n> so you go")
    assert disagreement(one, other) == ""
    assert "done is False" in disagreement(one, Prediction("", "hall", done=True))


def test_an_unlike_memory_and_an_unsure_reply_are_told_apart():
    def why(pessimism, confidence):
        from dreamgym.experience.prompt import StepQuery

        query = StepQuery("goal", OPENING, "take cup")
        told = Prediction("", OPENING, confidence=confidence, origin=Origin.MODEL)
        return pessimism.before(query) or pessimism.after(query, told)

    assert why(Pessimism(min_similarity=0.5), 1.0).startswith("unlike: ")
    assert why(Pessimism(min_confidence=0.5), 0.4).startswith("unsure: ")
    assert why(Pessimism(min_confidence=0.5), 0.6) == ""
    assert why(Pessimism(min_confidence=0.5), None) == "", "who says nothing is not unsure"


def test_only_flags_may_say_how_sure_a_reply_is():
    tokens = SampledTokens((7, 3, 7, 4), (-0.1, -9.0, -0.2, -5.0))
    said = [Completion("a", "m", tokens=tokens), Completion("b", "m")]
    llm = FlagsOnly(ScriptedLLM(said), frozenset({7}))

    async def ask():
        return [await llm.complete(Request("?")) for _ in range(2)]

    first, second = asyncio.run(ask())
    assert first.tokens == SampledTokens((7, 7), (-0.1, -0.2))
    assert second.tokens is None


def test_a_success_must_have_been_seen_where_that_is_asked_for():
    def told(*references, action="put hat in box", success=True):
        query = StepQuery("g", "hall\nbox: empty", action, references=references)
        answer = Prediction("", "hall\nbox: hat", done=success, success=success)
        return Pessimism(known_wins=True).after(query, answer)

    step = replace(transition(OPENING, "take cup"), action="put hat in box")
    won, tried = (Hit(replace(step, done=won, success=won), 0.9, 1) for won in (True, False))
    assert told().startswith("new-win")
    assert told(tried).startswith("new-win"), "it was tried and did not achieve the task"
    assert told(won, action="put cup in box").startswith("new-win"), "another action"
    assert told(tried, won) == ""
    assert told(success=False) == ""


def test_that_nothing_is_achieved_must_have_been_seen_where_that_is_asked_for():
    def told(*references, might_achieve=True, **flags):
        query = StepQuery("g", "hall\nbox: empty", "put hat in box", references=references)
        answer = Prediction("", "hall\nbox: hat", **flags)
        return Pessimism(known_losses=True).after(query, answer, might_achieve=might_achieve)

    step = replace(transition(OPENING, "take cup"), action="put hat in box")
    won = Hit(replace(step, done=True, success=True), 0.9, 1)
    lost, refused = Hit(step, 0.9, 1), Hit(replace(step, refused=True), 0.9, 1)
    assert told().startswith("new-loss: no reference shows that 'put hat in box' achieves nothing")
    assert told(won).startswith("new-loss"), "it has only been seen to achieve the task"
    assert told(refused).startswith("new-loss"), "it was not carried out there"
    assert told(won, lost) == ""
    assert told(might_achieve=False) == "", "such actions never achieve anything"
    assert told(refused=True) == ""
    assert told(done=True, success=True) == ""
