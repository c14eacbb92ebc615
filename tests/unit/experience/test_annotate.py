"""Annotators: by rule, and by a teacher that may be slow, sloppy or away."""

import asyncio
import json

import pytest
from recorded_states import STEPS
from small_house import OPENING, TASK, WAY, rules, transition
from test_experience_prompt import check_golden, recorded

from dreamgym.errors import LLMDown, LLMError
from dreamgym.experience.annotate import (
    annotate_by_rule,
    explain,
    is_annotated,
    read_lesson,
    teach,
    teacher_prompt,
)
from dreamgym.llm import ChaosServer, Fault, HttpLLM, Limits, ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.types import (
    Action,
    Completion,
    Observation,
    Provenance,
    Source,
    Step,
    StepResult,
    StopReason,
    Trajectory,
)


def walk(name="t0", actions=("take moon", "take cup", *WAY)):
    state, steps = OPENING, []
    for action in actions:
        state, reward, done, success, refused = rules(state, action)
        result = StepResult(Observation(state), reward, done, False, success, refused)
        steps.append(Step(Action(action), result))
    return Trajectory(
        id=name, task=TASK, opening=Observation(OPENING), steps=tuple(steps),
        stop=StopReason.TERMINATED, provenance=Provenance(Source.REAL, "walker"),
    )  # fmt: skip


def lesson(count, **changes):
    value = {
        "task_tutorial": {"Overall Plan": "p", "Success Mode": "s", "Failure Mode": "f"},
        "state_transitions": [
            {"step_id": number, "transition_plan": f"plan  {number}"}
            for number in range(1, count + 1)
        ],
    }
    return json.dumps(value | changes)


def taught(llm, trajectories, **options):
    async def collect():
        return [one async for one in teach(llm, trajectories, **options)]

    return asyncio.run(collect())


def test_golden_explanations():
    """Read this file to see what the rule-based annotator says, family by family."""
    lines = []
    for number, step in enumerate(STEPS):
        one = recorded(number, step)
        if number % 5 == 0:
            lines.append(f"{step[0].parent.name}/{step[0].stem} $ {one.action}: {explain(one)}")
    check_golden("explanations", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("take cup", "carried out: #1 goes, carrying appears"),
        ("take coin", "coin is not in sight; refused: nothing changes"),
        ("move west", "carried out: on to hall"),
        ("dance", "refused: nothing changes"),
    ],
)
def test_rules_explain_steps(action, why):
    assert explain(transition(OPENING, action)) == why


def test_the_last_step_says_how_it_ended():
    annotated = annotate_by_rule(walk())
    assert is_annotated(annotated)
    assert annotated.steps[-1].reasoning.endswith("; the task is achieved")


def test_golden_teacher_prompt():
    check_golden("teacher", flat_prompt(teacher_prompt(walk())) + "\n")


def test_a_teacher_annotates_whole_trajectories_and_finished_ones_are_skipped():
    llm = ScriptedLLM([f"```json\n{lesson(5)}\n```", lesson(2)])
    done = annotate_by_rule(walk("done"))
    first, second = taught(llm, [walk("a"), done, walk("b", ("dance", "take cup"))])
    assert [step.reasoning for step in first.trajectory.steps] == [f"plan {n}" for n in range(1, 6)]
    assert first.lesson.plan == "p"
    assert second.trajectory.id == "b"
    assert len(llm.requests) == 2
    assert llm.requests[0].json_schema


def test_a_teacher_is_shown_its_mistake_and_then_given_up():
    llm = ScriptedLLM([lesson(4), lesson(5), "no", "no", LLMError("away"), lesson(5)])
    fixed, hopeless, failed, fine = taught(
        llm, [walk("a"), walk("b"), walk("c"), walk("d")], retries=1
    )
    assert "4 entries, there are 5 steps" in flat_prompt(llm.requests[1].prompt)
    assert fixed.lesson is not None
    assert hopeless.lesson is None
    assert not is_annotated(hopeless.trajectory)
    assert hopeless.problem.startswith("ReplyFormatError")
    assert failed.problem == "LLMError: away"
    assert fine.lesson is not None


def test_an_outage_stops_and_what_was_stored_is_not_asked_again():
    stored = {}

    async def run(llm):
        todo = [stored.get(name, walk(name)) for name in ("a", "b", "c")]
        async for one in teach(llm, todo):
            stored[one.trajectory.id] = one.trajectory

    with pytest.raises(LLMDown):
        asyncio.run(run(ScriptedLLM([lesson(5), LLMDown("gone")])))
    assert list(stored) == ["a"]
    again = ScriptedLLM([lesson(5), lesson(5)])
    asyncio.run(run(again))
    assert list(stored) == ["a", "b", "c"]
    assert len(again.requests) == 2


class SlowTeacher:
    """Answers the later the earlier it is asked; gives up at a trajectory of one step."""

    def __init__(self):
        self.now = self.most = 0

    async def complete(self, request):
        self.now += 1
        self.most = max(self.most, self.now)
        count = int(flat_prompt(request.prompt).split("There are ")[1].split()[0])
        await asyncio.sleep(0.002 * count)
        self.now -= 1
        if count == 1:
            raise LLMDown("gone")
        return Completion(lesson(count), model="slow")


def test_many_are_taught_at_once_and_come_in_order():
    walks = [walk(f"w{n}", ("dance",) * (9 - n)) for n in range(8)]
    llm = SlowTeacher()
    assert [one.trajectory.id for one in taught(llm, walks, concurrency=3)] == [
        one.id for one in walks
    ]
    assert llm.most == 3


class PatientTeacher(SlowTeacher):
    """Answers a long trajectory well after all others have been answered."""

    async def complete(self, request):
        answer = await super().complete(request)
        while self.now or self.most < 3:
            await asyncio.sleep(0.01)
        if "There are 8 " in flat_prompt(request.prompt):
            await asyncio.sleep(0.3)
        return answer


def test_what_is_explained_when_the_teacher_goes_is_handed_over():
    walks = [walk("slow", ("dance",) * 8), walk("gone", ("dance",)), walk("left", ("dance",) * 2)]
    left, came = [], []

    async def run():
        async for one in teach(PatientTeacher(), walks, concurrency=3, on_leftover=left.append):
            came.append(one.trajectory.id)

    with pytest.raises(LLMDown):
        asyncio.run(run())
    assert came == ["slow"]
    assert [one.trajectory.id for one in left] == ["left"]


def test_a_seed_makes_a_second_try_another_question():
    llm = ScriptedLLM([lesson(5), lesson(5)])
    taught(llm, [walk("a")])
    taught(llm, [walk("a")], seed=lambda trajectory: 3)
    assert [request.seed for request in llm.requests] == [None, 3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "no JSON object"),
        ("{nope}", "not JSON"),
        (lesson(2, task_tutorial=None), "task_tutorial is missing"),
        (lesson(2, task_tutorial={"Overall Plan": "p"}), "no text 'Success Mode'"),
        (lesson(2, state_transitions={}), "not a list"),
        (lesson(3), "3 entries, there are 2 steps"),
        (lesson(2, state_transitions=[1, 2]), "not an object"),
        (lesson(2, state_transitions=[{"step_id": 2}, {"step_id": 1}]), "step_id 2, not 1"),
        (lesson(2, state_transitions=[{"step_id": 1}, {}]), "no transition_plan"),
    ],
)
def test_lessons_are_strict(text, why):
    with pytest.raises(ValueError, match=why):
        read_lesson(text, steps=2)


def test_a_teacher_behind_a_failing_server_never_mixes_up_steps():
    def answer(prompt):
        count = int(prompt.split("There are ")[1].split()[0])
        return lesson(count)

    kinds = (Fault.SERVER_ERROR, Fault.CUT_JSON, Fault.NONSENSE, Fault.EMPTY_TEXT)
    walks = [walk(f"w{n}", ("dance",) * (n % 4 + 1)) for n in range(20)]
    with ChaosServer(answer, rate=0.3, kinds=kinds, seed=1) as server:
        limits = Limits(retries=1, backoff_seconds=0.001, backoff_cap=0.002)

        async def run():
            llm = HttpLLM(server.base_url, "teacher", limits=limits)
            try:
                return [one async for one in teach(llm, walks, retries=1)]
            finally:
                await llm.close()

        results = asyncio.run(run())
    assert len(results) == 20
    assert any(one.lesson for one in results)
    for one in results:
        assert is_annotated(one.trajectory) == (one.lesson is not None)
        assert bool(one.problem) == (one.lesson is None)
