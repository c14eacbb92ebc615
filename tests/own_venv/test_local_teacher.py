"""A real, very small model as teacher and as experience model, behind the whole stack.

SmolLM2-135M knows nothing of the house that it is asked about, and nothing is asserted about what
it says: only that an answer is whole and for the right steps, or is a failure of a known kind.
"""

import asyncio
import json

import pytest

from dreamgym.build import make_llm
from dreamgym.config import AnnotateConfig, LlmConfig, ReplayConfig, RunConfig
from dreamgym.experience import DreamWorld, ExperienceModel
from dreamgym.experience.annotate import is_annotated
from dreamgym.jobs.annotate import run_annotate
from dreamgym.replay import open_store
from dreamgym.rollout.episode import run_episode
from dreamgym.runs import open_run
from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

pytestmark = [pytest.mark.slow, pytest.mark.own_venv]

OPENING = "kitchen\ncup; spoon\nwest: hall"
KINDS = {"ReplyFormatError", "LLMTimeout", "LLMError", "LLMRefused"}


def settings(base_url):
    # While the model loads the server says 503, so there are many retries.
    return LlmConfig(url=base_url, model="smollm2", dialect="llamacpp", concurrency=2, retries=40)


def task(number):
    return Task(
        f"house#{number}", "house", str(number), Split.TRAIN, goal="take the cup",
        first_state=OPENING,
    )  # fmt: skip


def record(number):
    states = [OPENING, "kitchen\nspoon\nwest: hall\ncarrying: cup"]
    steps = (
        Step(Action("take moon"), StepResult(Observation(states[0]), refused=True)),
        Step(Action("take cup"), StepResult(Observation(states[1]), 1.0, True, success=True)),
    )
    return Trajectory(
        id=f"walk-{number}", task=task(number), opening=Observation(OPENING), steps=steps[number:],
        stop=StopReason.TERMINATED, provenance=Provenance(Source.REAL, "walker"),
    )  # fmt: skip


def test_as_a_teacher_it_explains_every_step_or_fails_by_name(base_url, tmp_path):
    path = tmp_path / "experience.sqlite"
    with open_store(path) as store:
        store.add([record(number) for number in range(2)])
    config = RunConfig(
        llm=settings(base_url),
        replay=ReplayConfig(store=str(path)),
        annotate=AnnotateConfig(by="teacher", max_tokens=250, retries=1),
    )
    run = open_run(tmp_path / "run", config="", about={}, resume=False)
    annotated = asyncio.run(run_annotate(config, run))
    run.close()
    with open_store(path) as store:
        after = list(store.trajectories())
    explained = {one.id for one in after if is_annotated(one)}
    failed = {one.id for one in annotated.failures}
    assert explained | failed == {one.id for one in after}
    assert not explained & failed
    assert annotated.trajectories == len(explained)
    assert {one.kind for one in annotated.failures} <= KINDS
    for one in after:
        assert one.id in explained or not any(step.reasoning for step in one.steps)
    told = json.loads((tmp_path / "run/result.json").read_text())
    assert sum(told["failed"].values()) == len(failed)
    assert told["llm"]["llm/completion_tokens"] > 0
    assert told["annotator"].startswith("smollm2 ")
    print(f"explained {len(explained)} of 2; failed: {told['failures']}")


class Walker:
    async def act(self, task, past, now):
        return Action("take cup")


def test_as_an_experience_model_it_answers_or_breaks_the_episode(base_url, tmp_path):
    async def play():
        llm = make_llm(settings(base_url), folder=tmp_path)
        world = DreamWorld(ExperienceModel(llm, max_tokens=350, retries=1))

        async def episode(number):
            env = await world.open(task(number))
            return await run_episode(
                env, Walker(), task=task(number), trajectory_id=str(number),
                provenance=Provenance(Source.DREAM, "walker"), max_steps=1,
            )  # fmt: skip

        try:
            return await asyncio.gather(*map(episode, range(2))), llm.metrics()
        finally:
            await world.close()

    # A server that has gone makes a run pause until it is back: here that would be for ever.
    episodes, figures = asyncio.run(asyncio.wait_for(play(), 600))
    assert figures["llm/billed_calls"] >= 1
    for episode in episodes:
        if episode.error is None:
            assert episode.steps
        else:
            assert episode.stop is StopReason.FAILED
            assert episode.error.kind == "EnvError"
            assert any(kind in episode.error.message for kind in KINDS)
        for step in episode.steps:
            assert step.result.observation.text.strip()
            assert step.reasoning
            assert not (step.result.refused and step.result.reward > 0)
    broken = [episode.error.message for episode in episodes if episode.error]
    print(f"{len(broken)} of {len(episodes)} episodes broke: {broken}")
