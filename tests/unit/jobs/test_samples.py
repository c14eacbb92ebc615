"""Episodes of practice that are kept to be read."""

from dataclasses import replace

from test_practice_job import TASKS, episode

from dreamgym import codec
from dreamgym.jobs.samples import choose, with_samples
from dreamgym.rollout.collect import Answerer
from dreamgym.rollout.groups import Group
from dreamgym.train.loop import Practice, UniformTasks
from dreamgym.types import EpisodeFailure, Source, StopReason, Trajectory

LOST = episode("lost")
LAST = LOST.steps[-1]
UNKNOWN = replace(LOST, id="unknown", steps=(replace(LAST, reasoning="[unknown] who knows"),))
WON = replace(
    LOST,
    id="won",
    steps=(replace(LAST, result=replace(LAST.result, terminated=True, success=True)),),
    stop=StopReason.TERMINATED,
)
BROKEN = replace(LOST, id="broken", error=EpisodeFailure("EnvError", "env.step", "it broke"))
EMPTY = replace(LOST, id="empty", steps=())


def test_one_of_each_outcome_is_kept_of_the_first_step_and_every_so_many(tmp_path):
    remembered = []
    practice = Practice(
        world=None,
        answerer=Answerer(Source.DREAM, "dream", ""),
        tasks=UniformTasks(TASKS),
        remember=lambda step, groups: remembered.append(step),
    )
    watched = with_samples(practice, tmp_path / "episodes", every=2)
    groups = [Group(TASKS[0], (BROKEN, EMPTY, LOST)), Group(TASKS[0], (LOST, UNKNOWN, WON))]
    for step in (0, 1, 2, 3, 3):
        watched.remember(step, groups)
    assert remembered == [0, 1, 2, 3, 3], "whoever remembered before still does"
    files = sorted((tmp_path / "episodes").iterdir())
    assert [one.name for one in files] == [f"step-0000{n}.jsonl" for n in (1, 2, 4)]
    for file in files:
        kept = list(codec.read_lines(file, Trajectory))
        assert [one.id for one in kept] == ["lost", "unknown", "won"]
        assert kept[1] == UNKNOWN


def test_where_nothing_was_played_nothing_is_chosen():
    assert choose([Group(TASKS[0], (BROKEN, EMPTY))]) == []
