"""The loop with a curriculum: made-up tasks are practised, and a killed run loses nothing."""

import json
from dataclasses import replace

import pytest
import torch
from walkers import ANSWERER, Walker, corridor_tasks, run, small_plan

from dreamgym.experience.task_prompt import Variation
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.tasks.clusters import TaskClusters
from dreamgym.tasks.curriculum import Curriculum, Mix
from dreamgym.tasks.customs import learn_customs
from dreamgym.tasks.gate import TaskGate
from dreamgym.tasks.pool import Rules, TaskPool
from dreamgym.tasks.refill import Refill, RefillPlan
from dreamgym.testing import CorridorWorld
from dreamgym.train.algorithms import Grpo, Ppo
from dreamgym.train.loop import Practice, run_loop
from dreamgym.train.objectives import PolicyObjective
from dreamgym.types import Observation, Opening, Source


class DreamtCorridors:
    """Corridors, also those that were made up: as long as their first state says."""

    spec, source = "corridor", Source.DREAM

    async def open(self, task, memory=None):
        if task.source is Source.DREAM:
            task = replace(task, key=task.first_state.split()[-1].rstrip("."))
        return await CorridorWorld().open(task)

    async def close(self):
        pass


class Longer:
    """Makes corridors of other lengths, by seed."""

    async def vary(self, source, examples, *, count, seed):
        length = seed % 40
        return (Variation(f"Take the coin in room {length}.", f"Room 0 of {length}."),)

    async def open_anew(self, variation, examples, *, seed):
        return None


def course(clustered, events):
    tasks = corridor_tasks()
    known = {
        task.id: Opening(
            replace(task, goal=f"Take the coin in room {task.key}."),
            Observation(f"Room 0 of {task.key}."),
        )
        for task in tasks
    }
    embedder = HashingEmbedder()
    gate = TaskGate(learn_customs(list(known.values())), embedder, alike=1.0)

    def note(name, **details):
        events.append((name, details))

    return Curriculum(
        TaskPool(tasks, known),
        rules=Rules(mastery_visits=1, rest=1, feasible_visits=1),
        mix=Mix(0.5),
        clusters=TaskClusters(embedder, count=2) if clustered else None,
        refill=Refill(Longer(), gate, RefillPlan(every=1, sources=2), seed=5, on_event=note),
        seed=5,
        on_event=note,
    )


class Killed(Exception):
    pass


def trained(folder, algorithm, on_row=lambda progress, figures: None):
    events = []
    tasks = course(isinstance(algorithm, Ppo), events)
    trainee = Walker().trainee(algorithm, PolicyObjective())
    practice = Practice(DreamtCorridors(), replace(ANSWERER, source=Source.DREAM), tasks)
    plan = small_plan(6, checkpoint_every=2)
    progress = run(run_loop(trainee, practice, plan, folder=folder, on_row=on_row))
    return progress, trainee.learner.tensors(), tasks, events


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "stop"), [(Grpo(), 3), (Ppo(), 5)])
def test_a_killed_run_goes_on_with_the_same_tasks_and_weights(tmp_path, algorithm, stop):
    rows = []
    progress, weights, tasks, events = trained(
        tmp_path / "whole", algorithm, lambda progress, figures: rows.append(figures)
    )
    made = [row for row in tasks.rows() if row["source"] == "dream"]
    assert any(row["visits"] for row in made)
    assert any(name == "task_retired" for name, _ in events)  # a corridor nobody comes through
    assert rows[-1]["tasks/added"] == len(made)
    assert all(row["tasks/synthetic_share"] <= 0.5 for row in rows)
    assert rows[-1]["tasks/rejected_duplicate"] == sum(
        details.get("reason") == "duplicate" for _, details in events
    )

    def kill(progress, figures):
        if progress.step == stop:
            raise Killed

    with pytest.raises(Killed):
        trained(tmp_path / "killed", algorithm, kill)
    again, others, resumed, _ = trained(tmp_path / "killed", algorithm)
    assert again == progress
    assert resumed.rows() == tasks.rows()
    assert json.dumps(resumed.state()) == json.dumps(tasks.state())
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
