"""The loop: it learns, counts, looks at reality, and goes on after a crash as if nothing was."""

import json

import pytest
import torch
from walkers import ANSWERER, Walker, corridor, corridor_tasks, run, small_plan

from dreamgym.errors import ConfigError
from dreamgym.testing import CorridorWorld
from dreamgym.train.algorithms import Gigpo, Grpo, Ppo, Rloo
from dreamgym.train.loop import LoopPlan, Practice, Sight, UniformTasks, run_loop
from dreamgym.train.objectives import PolicyObjective
from dreamgym.types import Source, Split


def trained(walker, algorithm, steps, *, practice=None, objective=None, folder=None, **more):
    rows = []
    progress = run(
        run_loop(
            walker.trainee(algorithm, objective or PolicyObjective()),
            practice or corridor(),
            small_plan(steps, **more.pop("plan", {})),
            folder=folder,
            on_row=lambda progress, figures: rows.append((progress.step, figures)),
            **more,
        )
    )
    return progress, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm", [Grpo(), Rloo(), Gigpo(), Ppo()], ids=lambda a: type(a).__name__
)
def test_a_policy_learns_the_way(algorithm):
    progress, rows = trained(Walker(), algorithm, 14)
    success = [figures["reward/success"] for _, figures in rows]
    assert sum(success[:2]) / 2 < 0.75
    assert sum(success[-2:]) / 2 > 0.9
    assert progress.real_steps == rows[-1][1]["real/steps_online"] > 0
    assert progress.dream_steps == 0
    # Sampler and learner speak of the same weights, at every step.
    assert max(abs(figures.get("actor/mismatch_kl", 0.0)) for _, figures in rows) < 1e-5


def test_figures_have_the_names_that_people_look_for():
    objective = PolicyObjective(kl_coefficient=0.01)
    _, rows = trained(Walker(), Grpo(), 1, objective=objective)
    assert {
        "reward/mean", "reward/success", "groups/no_variance", "episodes/failed",
        "episodes/unknown", "episodes/refused", "actor/pg_loss", "actor/kl", "actor/lr",
        "actor/entropy", "real/steps_online", "tasks/pool", "time/rollout", "time/update",
    } <= rows[0][1].keys()  # fmt: skip
    assert rows[0][1]["actor/lr"] == pytest.approx(0.005)  # the first of two warm-up steps
    assert abs(rows[0][1]["actor/mismatch_kl"]) < 1e-4


def test_failed_episodes_stop_nothing():
    fallen = CorridorWorld(breaks=lambda task, step: task.key == "3" and step >= 0)
    _, rows = trained(Walker(), Grpo(), 8, practice=corridor(fallen))
    assert all(figures["episodes/failed"] == 12 for _, figures in rows)
    assert rows[-1][1]["reward/success"] > 0.9
    nothing = CorridorWorld(breaks=lambda task, step: True)
    progress, rows = trained(Walker(), Grpo(), 2, practice=corridor(nothing))
    assert progress.step == 2
    assert rows[0][1]["groups/no_variance"] == 1.0


def test_dreamt_steps_are_not_real_ones():
    dreamt = type(ANSWERER)(Source.DREAM, "a dream", "m")
    practice = Practice(CorridorWorld(), dreamt, UniformTasks(corridor_tasks()))
    progress, rows = trained(Walker(), Grpo(), 2, practice=practice)
    assert progress.real_steps == 0
    assert progress.dream_steps > 0
    assert rows[-1][1]["real/steps_online"] == 0
    assert rows[-1][1]["dream/model"] == 1.0


def test_the_best_of_all_looks_is_kept():
    seen, kept = iter([0.2, 0.6, 0.6, 0.4]), []
    walker = Walker()

    async def probe():
        return Sight(next(seen), 10, {"real/refused": 0.0})

    progress, rows = trained(
        walker, Grpo(), 5, probe=probe, keep_best=lambda: kept.append(len(kept))
    )
    assert [point["step"] for point in progress.probes] == [0, 2, 4, 5]
    assert (progress.best_step, progress.best_success, progress.probe_steps) == (2, 0.6, 40)
    assert len(kept) == 2
    assert [step for step, figures in rows if "real/success" in figures] == [0, 2, 4, 5]


class Killed(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "stop"), [(Grpo(), 1), (Grpo(), 3), (Ppo(), 4)])
def test_a_loop_that_was_killed_goes_on_as_if_nothing_had_been(tmp_path, algorithm, stop):
    async def probe():
        return Sight(0.5, 7)

    def loop(walker, folder, on_row=lambda progress, figures: None):
        objective = PolicyObjective(kl_coefficient=0.01)
        plan = small_plan(5, groups=4, checkpoint_every=2)
        trainee = walker.trainee(algorithm, objective)
        rest = {"probe": probe, "folder": tmp_path / folder, "on_row": on_row}
        return run(run_loop(trainee, corridor(), plan, **rest)), trainee.learner.tensors()

    def kill(progress, figures):
        if progress.step == stop:
            raise Killed

    whole, weights = loop(Walker(), "whole")
    with pytest.raises(Killed):
        loop(Walker(), "killed", kill)
    again, others = loop(Walker(), "killed")
    assert again == whole
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)


@pytest.mark.slow
def test_a_torn_checkpoint_is_passed_over(tmp_path, caplog):
    whole, _ = trained(Walker(), Grpo(), 4, folder=tmp_path / "whole")
    walker = Walker()
    trained(walker, Grpo(), 3, folder=tmp_path / "torn")
    newest = max((tmp_path / "torn").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-9])
    again, _ = trained(Walker(), Grpo(), 4, folder=tmp_path / "torn")
    assert again == whole
    assert "passed over" in caplog.text
    state = json.loads(max((tmp_path / "torn").glob("*.json")).read_text())["state"]
    assert state["progress"]["step"] == 4


def test_tasks_are_drawn_evenly_and_by_step():
    pool = CorridorWorld().tasks(Split.TRAIN, 5)
    tasks = UniformTasks(pool, seed=1)
    assert tasks.draw(3, 4) == UniformTasks(pool, seed=1).draw(3, 4)
    assert len(set(tasks.draw(0, 5))) == 5
    assert {tasks.draw(0, 12).count(one) for one in pool} == {2, 3}
    assert any(tasks.draw(step, 2) != tasks.draw(0, 2) for step in range(1, 4))


def test_wrong_plans_are_refused():
    with pytest.raises(ConfigError, match="pool is empty"):
        UniformTasks([])
    with pytest.raises(ConfigError, match="groups is 0"):
        LoopPlan(1, groups=0)


def test_the_rate_rises_stays_and_falls_by_hand():
    plan = LoopPlan(6, learning_rate=1.0, warmup_steps=2, cooldown_steps=3)
    assert [plan.rate(step) for step in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    turned = [plan.rate(step, turned=True) for step in (3, 5, 6)]
    assert turned == [1.0, 1.0, 1.0], "for real after the dream nothing is to fall, ever"
    assert LoopPlan(6, learning_rate=1.0, warmup_steps=2).rate(5) == 1.0
