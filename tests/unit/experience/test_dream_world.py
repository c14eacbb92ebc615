"""Whole episodes in a dream: right steps, no luck, no invented reward."""

import asyncio
from dataclasses import replace

import pytest
from small_house import GOAL, OPENING, TASK, WAY, page, perfect, rules, transition

from dreamgym.errors import EnvError, LLMDown, LLMError
from dreamgym.experience.doubt import Pessimism
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.grounding import Grounding, KnownKinds
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import Style, Switches
from dreamgym.experience.world import DreamWorld
from dreamgym.llm import ChaosServer, Fault, HttpLLM, Limits, ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.replay.lookup import Hit
from dreamgym.rollout.episode import run_episode
from dreamgym.rollout.groups import ended_unknown
from dreamgym.types import Action, Observation, Opening, Provenance, Source, StopReason

BY = Provenance(Source.DREAM, "scripted")
WON = "\nRefused: False\nDone: True\nSuccess: True\nReward: 1"
STROLL = ("dance", "take coin", "take cup", "move west", "move east", "take cup", *WAY)


class Walker:
    """Does what it was told, in order."""

    def __init__(self, actions):
        self._actions = actions

    async def act(self, task, past, now):
        return Action(self._actions[len(past)])


class Shelf:
    """A memory that always finds the same steps."""

    def __init__(self, *hits):
        self.hits = hits
        self.asked = []

    def search(self, state, action, *, k, exclude_trajectory=None):
        self.asked.append((state, action))
        return self.hits[:k]


def playing(style=Style.FULL, answer=None):
    say = answer or perfect(style)
    return ScriptedLLM(lambda request: say(flat_prompt(request.prompt)))


def dream(llm, *, style=Style.FULL, **options):
    return DreamWorld(ExperienceModel(llm, style=style, retries=1), **options)


def play(world, actions=STROLL, *, task=TASK, memory=None):
    async def once():
        env = await world.open(task, memory)
        try:
            return await run_episode(
                env, Walker(actions), task=task, trajectory_id="t", provenance=BY,
                max_steps=len(actions),
            )  # fmt: skip
        finally:
            await env.close()

    return asyncio.run(once())


def check_against_rules(trajectory, *, opening=OPENING):
    state = opening
    for step in trajectory.steps:
        after, reward, done, success, refused = rules(state, step.action.text)
        result = step.result
        assert result.observation.text == after
        assert (result.reward, result.terminated, result.success, result.refused) == (
            reward, done, success, refused
        )  # fmt: skip
        state = after


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("ledger", [True, False])
def test_a_perfect_model_dreams_the_real_thing(style, ledger):
    trajectory = play(dream(playing(style), style=style, ledger=ledger))
    check_against_rules(trajectory)
    assert trajectory.success
    assert trajectory.stop is StopReason.TERMINATED
    assert [step.result.refused for step in trajectory.steps[:3]] == [True, True, False]


def test_records_say_what_lay_behind_a_step():
    hit = Hit(transition(OPENING, "take cup"), similarity=0.9, count=1)
    trajectory = play(
        dream(playing(), grounding=Grounding()), ("take moon", "take cup"), memory=Shelf(hit)
    )
    refused, taken = trajectory.steps
    assert refused.reasoning == "[grounding] nothing-known: nobody has heard of moon"
    assert refused.references == ()
    assert taken.reasoning == "by the rules"
    assert taken.references == (hit.transition.id,)
    assert taken.result.account is None


def test_identical_turns_get_the_identical_reply_from_one_call():
    """A lucky model that wins every second time cannot be lucky inside a group."""
    calls = []

    def lucky(prompt):
        calls.append(prompt)
        win = len(calls) % 2 == 0
        return (
            f"<think>x</think><edit></edit>\nRefused: False\nDone: {win}\nSuccess: {win}\n"
            f"Reward: {int(win)}"
        )

    async def group():
        world = dream(playing(answer=lucky))
        envs = [await world.open(TASK) for _ in range(8)]
        for env in envs:
            await env.reset(0)
        together = await asyncio.gather(*(env.step("take cup") for env in envs))
        later = await world.open(TASK)
        await later.reset(1)
        return [*together, await later.step("take cup")], world.metrics()

    results, metrics = asyncio.run(group())
    assert len(set(results)) == 1
    assert len(calls) == 1
    assert metrics["experience/shared_answers"] == 8


def test_episodes_that_share_no_answers_each_draw_their_own():
    """What the luck control keeps out: the same actions, other replies; by seed, so repeatable."""
    seeds = []

    def drawn(request):
        seeds.append(request.seed)
        win = request.seed % 2 == 0
        return (
            f"<think>x</think><edit></edit>\nRefused: False\nDone: {win}\nSuccess: {win}\n"
            f"Reward: {int(win)}"
        )

    async def group():
        model = ExperienceModel(ScriptedLLM(drawn), temperature=1.0, retries=1)
        world = DreamWorld(model, share_answers=False)
        results = []
        for seed in (*range(8), 3):
            env = await world.open(TASK)
            await env.reset(seed)
            results.append(await env.step("take cup"))
        return results, world.metrics()

    results, metrics = asyncio.run(group())
    assert len(set(seeds)) == len(seeds) == 8
    assert {result.success for result in results[:8]} == {True, False}
    assert results[8] == results[3]
    assert metrics["experience/shared_answers"] == 1


def test_other_histories_are_other_questions():
    llm = playing()
    world = dream(llm)
    play(world, ("move west", "move east", "take cup"))
    play(world, ("take cup",))
    assert len(llm.requests) == 4


@pytest.mark.parametrize(
    "reply",
    [
        LLMError("no answer"),
        "I think the agent wins!",
        "<think>x</think><edit></edit>\nRefused: False\nDone: False\nSuccess: True\nReward: 1",
        f"<think>x</think><edit>\n=99 coin\n</edit>{WON}",
    ],
)
def test_a_reply_that_cannot_be_had_or_read_breaks_the_episode_without_reward(reply):
    def answer(request):
        prompt = flat_prompt(request.prompt)
        return reply if "Action: take coin" in prompt else perfect(Style.FULL)(prompt)

    trajectory = play(dream(ScriptedLLM(answer)), WAY)
    assert trajectory.stop is StopReason.FAILED
    assert trajectory.error.where == "env.step"
    assert trajectory.total_reward == 0
    assert len(trajectory.steps) == 2
    check_against_rules(trajectory)


def test_rewards_on_the_way_may_be_left_out():
    flags = "\nRefused: False\nDone: False\nSuccess: False\nReward: 0.25"
    generous = f"<think>x</think><edit></edit>{flags}"
    told = play(dream(playing(answer=lambda prompt: generous)), ("take cup",))
    assert told.total_reward == 0.25
    silent = dream(playing(answer=lambda prompt: generous), outcome_only=True)
    assert play(silent, ("take cup",)).total_reward == 0
    assert play(dream(playing(), outcome_only=True), WAY).total_reward == 1


def test_one_cancelled_episode_takes_no_other_with_it_and_closing_stops_calls():
    class Slow:
        def __init__(self):
            self.calls = 0

        async def complete(self, request):
            self.calls += 1
            await asyncio.sleep(0.05 if self.calls == 1 else 60)
            return await playing().complete(request)

        async def close(self):
            pass

    async def run():
        llm = Slow()
        world = dream(llm)
        first, second = [await world.open(TASK) for _ in range(2)]
        await first.reset(0)
        await second.reset(0)
        one, two = (asyncio.create_task(env.step("take cup")) for env in (first, second))
        await asyncio.sleep(0.01)
        one.cancel()
        assert not (await two).refused
        late = asyncio.create_task(second.step("move west"))
        await asyncio.sleep(0.01)
        await world.close()
        with pytest.raises(asyncio.CancelledError):
            await late
        return llm.calls

    assert asyncio.run(run()) == 2


def test_a_failure_is_not_remembered():
    replies = iter([LLMError("down for a moment")])

    def answer(request):
        return next(replies, None) or perfect(Style.FULL)(flat_prompt(request.prompt))

    world = dream(ScriptedLLM(answer))
    assert play(world, WAY).error is not None
    assert play(world, WAY).success


def test_an_outage_stops_the_run():
    with pytest.raises(LLMDown):
        play(dream(ScriptedLLM(lambda request: LLMDown("gone for good"))), WAY)


def test_a_model_that_accepts_everything_is_held_by_the_rules():
    def kind(prompt):
        return (
            "<think>sure</think><edit></edit>\nRefused: False\nDone: True\nSuccess: True\nReward: 1"
        )

    known = KnownKinds.from_transitions(
        transition(state, action, number=number)
        for number, (state, action) in enumerate(
            [(OPENING, "take cup"), (OPENING, "move west"), (OPENING, "dance")]
        )
    )
    world = dream(playing(answer=kind), grounding=Grounding(known))
    actions = ("", "take\ncoin", "take <win>", "eat cup", "take unicorn", "take cup")
    trajectory = play(world, actions)
    *refused, taken = trajectory.steps
    assert [step.reasoning.split(":")[0] for step in refused] == [
        "[grounding] malformed", "[grounding] malformed", "[grounding] malformed",
        "[unseen-kind] unseen-kind", "[grounding] nothing-known",
    ]  # fmt: skip
    for step in refused:
        assert step.result.refused
        assert step.result.reward == 0
        assert step.result.observation.text == f"{OPENING}\n> no"
    assert taken.result.success
    assert world.metrics()["experience/origin_grounding"] == 4


def test_what_was_shown_stays_true():
    """The model invents a second spoon in the kitchen; the ledger knows better."""

    def forgetful(prompt):
        reply = perfect(Style.FULL)(prompt)
        return reply.replace("cup; spoon", "cup; spoon; spoon")

    world = dream(playing(answer=forgetful))
    trajectory = play(world, ("take cup", "move west", "move east"))
    check_against_rules(trajectory)
    assert trajectory.steps[-1].reasoning.startswith("[ledger]")
    assert "kitchen\nspoon\n" in trajectory.steps[-1].result.observation.text


def test_a_named_page_comes_from_a_reference_of_the_same_task_only():
    def naming(prompt):
        flags = "Refused: False\nDone: False\nSuccess: False\nReward: 0"
        return f"<think>x</think><next_state>\nhall\n</next_state>\n{flags}"

    mine = Hit(transition(OPENING, "move west"), 0.9, 1)
    other = Hit(transition(OPENING, "move west", task_id="house#1"), 0.9, 1)
    known = play(dream(playing(answer=naming)), ("move west",), memory=Shelf(other, mine))
    assert known.steps[0].result.observation.text == page("hall")
    assert known.steps[0].reasoning.startswith("[reference]")
    unknown = play(dream(playing(answer=naming)), ("move west",), memory=Shelf(other))
    assert unknown.steps[0].result.observation.text == "hall"
    strict = dream(playing(answer=naming), grounding=Grounding(KnownKinds(
        frozenset({"move _"}), bare=frozenset()
    )))  # fmt: skip
    nowhere = play(strict, ("move west",), memory=Shelf(other))
    assert nowhere.stop is StopReason.TRUNCATED
    assert "no memory holds the page 'hall'" in nowhere.steps[0].reasoning


@pytest.mark.parametrize(
    ("pessimism", "why"),
    [
        (Pessimism(min_similarity=0.95), "nearest reference is 0.90"),
        (Pessimism(known_pages=True), "nobody has seen the page 'hall'"),
        (Pessimism(doubt=lambda query, prediction: "two heads differ"), "two heads differ"),
    ],
)
def test_where_nobody_knows_the_episode_ends_as_unknown(pessimism, why):
    shelf = Shelf(Hit(transition(OPENING, "take cup"), 0.9, 1))
    trajectory = play(dream(playing(), pessimism=pessimism), ("move west",), memory=shelf)
    (step,) = trajectory.steps
    assert trajectory.stop is StopReason.TRUNCATED
    assert (step.result.reward, step.result.success) == (0, False)
    assert step.reasoning.startswith("[unknown]")
    assert why in step.reasoning


def test_a_success_without_what_the_goal_names_is_none_and_the_episode_goes_on():
    def generous(prompt):
        return ("<think>got it</think>\n<edit>\n-1\n|4 carrying: cup\n</edit>"
                "\nRefused: False\nDone: True\nSuccess: True\nReward: 1")  # fmt: skip

    def told(*words, in_the_end=()):
        needs = GoalNeeds(frozenset(words), in_the_end=frozenset(in_the_end))
        known = KnownKinds(frozenset({"take _"}), goals=needs)
        world = dream(playing(answer=generous), grounding=Grounding(known))
        return play(world, ("take cup",)).steps[0]

    believed, denied = told("coin cup"), told("coin coin")
    assert believed.result.success
    assert (denied.result.success, denied.result.terminated, denied.result.reward) == (0, 0, 0)
    assert denied.result.observation == believed.result.observation
    assert denied.reasoning.endswith("goal-unmet: not achieved, the goal lacks coin")
    dull = told(in_the_end=["coin shiny"])
    assert dull.reasoning.endswith("goal-unmet: not achieved, the goal lacks shiny")


def test_a_dream_that_never_saw_what_might_achieve_the_task_says_so():
    def idle(prompt):
        return ("<think>got it</think>\n<edit>\n-1\n|4 carrying: cup\n</edit>"
                "\nRefused: False\nDone: False\nSuccess: False\nReward: 0")  # fmt: skip

    def told(acts, *memory):
        known = KnownKinds(frozenset({"take _"}), goals=GoalNeeds(acts=frozenset(acts)))
        world = dream(
            playing(answer=idle),
            grounding=Grounding(known),
            pessimism=Pessimism(known_losses=True),
        )
        return play(world, ("take cup",), memory=Shelf(*memory)).steps[0].reasoning

    assert told(["find take _"]).startswith("[unknown] new-loss")
    assert not told(["find look"]).startswith("[unknown]"), "taking never achieved anything"
    seen = Hit(transition(OPENING, "take cup"), 0.9, 1)
    assert not told(["find take _"], seen).startswith("[unknown]")


def test_what_the_model_has_no_words_for_breaks_an_episode_or_is_not_known():
    mumbling = ["hm"] * 2
    broken = play(dream(ScriptedLLM(mumbling)), ("take cup",))
    assert (broken.error.where, broken.steps) == ("env.step", ())
    assert "could not be read" in broken.error.message
    admitted = play(
        dream(ScriptedLLM(mumbling), pessimism=Pessimism(known_words=True)), ("take cup",)
    )
    assert admitted.error is None
    assert ended_unknown(admitted)
    assert admitted.steps[0].reasoning.startswith("[unknown] no-words: 2 answers")
    assert (admitted.success, admitted.total_reward) == (False, 0.0)


def test_what_the_model_has_no_words_for_may_be_on_record():
    here = replace(transition(OPENING, "take cup"), task_id=TASK.id)
    elsewhere = replace(here, task_id="another")
    other = replace(here, state="garden\nrake\nsouth: hall")

    def told(*found):
        shelf = Shelf(*(Hit(one, 0.9, 1) for one in found))
        return play(dream(ScriptedLLM(["hm"] * 2)), ("take cup",), memory=shelf)

    assert told(elsewhere, other).error is not None
    remembered = told(elsewhere, other, here)
    assert remembered.error is None
    (step,) = remembered.steps
    assert step.result.observation.text == here.next_state
    assert step.reasoning == "[reference] the same step is on record"


def test_openings_come_from_task_callable_or_model():
    bare = replace(TASK, first_state=None)

    async def real(task):
        return Opening(task, Observation("garden\nrake\nsouth: hall"))

    told = play(dream(playing(), openings=real), ("dance",), task=bare)
    assert told.opening.text.startswith("garden")
    imagined = ScriptedLLM(["<state>\nkitchen\ncup; spoon\nwest: hall\n</state>"])
    dreamed = play(dream(imagined, grounding=Grounding()), ("",), task=bare)
    assert dreamed.opening.text == OPENING
    broken = play(dream(ScriptedLLM(["no"] * 2)), ("look",), task=bare)
    assert broken.error.where == "env.reset"
    nameless = play(dream(playing()), ("look",), task=replace(bare, goal=""))
    assert "neither goal nor first state" in nameless.error.message


def test_a_step_after_the_end_is_an_error():
    async def late():
        env = await dream(playing()).open(TASK)
        with pytest.raises(EnvError, match="never reset"):
            await env.step("look")
        await env.reset(0)
        assert await env.expert() == ()
        await env.close()
        with pytest.raises(EnvError, match="over"):
            await env.step("look")

    asyncio.run(late())


def test_ablations_change_what_is_shown():
    hit = Hit(transition(OPENING, "take spoon"), 0.9, 1)
    prompts = {}
    for name in ("none", "history", "references", "reasoning"):
        switches = Switches() if name == "none" else Switches(**{name: False})
        llm = playing(Style.COMPACT)
        model = ExperienceModel(llm, style=Style.COMPACT, switches=switches)
        trajectory = play(DreamWorld(model), ("move west", "move east"), memory=Shelf(hit))
        check_against_rules(trajectory)
        prompts[name] = llm.requests[-1].prompt
    assert "<past>move west" in prompts["none"]
    assert "<same>" in prompts["none"]
    assert "<past>" not in prompts["history"]
    assert "<same>" not in prompts["references"]
    assert prompts["none"].endswith("<why>")
    assert prompts["reasoning"].endswith("<then>")


SPOILT = (Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.NONSENSE, Fault.EMPTY_TEXT, Fault.HANG_UP)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_chaos_spoils_episodes_but_never_a_step(rate):
    """Whatever fails: every delivered step is right, and a broken episode has no reward."""
    episodes = 12

    async def run():
        with ChaosServer(perfect(Style.FULL), rate=rate, kinds=SPOILT, seed=3) as server:
            limits = Limits(retries=1, backoff_seconds=0.001, backoff_cap=0.002)
            llm = HttpLLM(server.base_url, "chaos", limits=limits)
            world = DreamWorld(ExperienceModel(llm, retries=1))
            trajectories = []
            for number in range(episodes):
                task = replace(TASK, id=f"house#{number}", goal=f"{GOAL} ({number})")
                env = await world.open(task)
                trajectories.append(
                    await run_episode(
                        env,
                        Walker(STROLL),
                        task=task,
                        trajectory_id=str(number),
                        provenance=BY,
                        max_steps=len(STROLL),
                    )
                )
            await world.close()
            return trajectories, server.counts

    trajectories, counts = asyncio.run(run())
    for trajectory in trajectories:
        check_against_rules(trajectory)
        if trajectory.error is not None:
            assert trajectory.total_reward == 0
        else:
            assert trajectory.success
    broken = sum(trajectory.error is not None for trajectory in trajectories)
    assert broken < episodes if rate < 0.5 else broken > 0
    assert counts["requests"] > counts["right"] or rate < 0.1
