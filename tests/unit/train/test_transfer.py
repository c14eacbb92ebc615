"""From a dream to reality: when it is time, at what ceiling, and back to the best policy."""

from dataclasses import replace

import pytest
import torch
from walkers import ANSWERER, Walker, corridor, corridor_tasks, run, small_plan

from dreamgym.errors import ConfigError, EnvError
from dreamgym.rollout.groups import GroupPlan
from dreamgym.testing import CorridorWorld
from dreamgym.train.algorithms import Grpo
from dreamgym.train.loop import Practice, Sight, UniformTasks, run_loop
from dreamgym.train.objectives import PolicyObjective
from dreamgym.train.transfer import DreamtStep, Reading, SwitchRule, WatchRule
from dreamgym.types import Source

DREAMT = type(ANSWERER)(Source.DREAM, "a dream", "m")
QUICK = GroupPlan(members=3, max_steps=4, concurrency=64, seed=5)
NEVER = SwitchRule(window=1000)


def steps(*success, unknown=0.0, alike=0.0):
    return [DreamtStep(one, unknown, alike) for one in success]


def looks(*success, every=2):
    return [
        {"step": float(every * place), "real/success": one} for place, one in enumerate(success)
    ]


def test_a_plateau_is_a_window_hardly_better_than_the_one_before():
    rule = SwitchRule(window=2, rise=0.1)
    assert rule.plateau(steps(0.1, 0.2, 0.3)) == ""  # too early to tell
    assert rule.plateau(steps(0.1, 0.2, 0.3, 0.4)) == ""
    assert "went from 0.350 to 0.400" in rule.plateau(steps(0.0, 0.1, 0.3, 0.4, 0.4, 0.4))
    assert rule.time_to_go(steps(*[0.5] * 4), []).startswith("plateau")


def test_exploitation_is_a_dream_that_rises_alone():
    rule = SwitchRule(window=2, rise=0.1, looks=2)
    rising = steps(0.2, 0.3, 0.5, 0.6, 0.8, 0.9)
    assert rule.exploited(rising, looks(0.3, 0.4, 0.5, 0.6)) == ""
    assert rule.exploited(rising, looks(0.3, 0.4, 0.3)) == ""  # one look is no proof
    why = rule.exploited(rising, looks(0.3, 0.4, 0.3, 0.4))
    assert "rose from 0.250 to 0.850 since step 2" in why
    assert "(0.400, then at most 0.400)" in why
    # The best look was before any step: the dream is taken as it was at first.
    assert "since step 0" in rule.exploited(rising, looks(0.5, 0.4, 0.3, 0.2))
    assert rule.exploited(steps(*[0.5] * 6), looks(0.5, 0.4, 0.3, 0.2)) == ""
    assert rule.exploited(rising, []) == ""


def test_a_dream_that_teaches_nothing_is_left():
    rule = SwitchRule(window=3, rise=-1.0)
    assert rule.starved(steps(0.1, 0.2, unknown=0.9)) == ""
    assert "gave up 60%" in rule.starved(steps(0.1, 0.2, 0.3, unknown=0.6))
    assert "97% of the last groups" in rule.starved(steps(0.9, 1.0, 1.0, alike=0.97))
    assert rule.time_to_go(steps(0.1, 0.2, 0.3), []) == ""


def test_a_set_step_overrules_the_signs():
    rule = SwitchRule(step=6, window=2)
    assert rule.time_to_go(steps(*[0.5] * 5), []) == ""
    assert rule.time_to_go(steps(*[0.5] * 6), []) == "step 6 was set for it"


def test_precision_counts_only_where_enough_was_won():
    rule = WatchRule("stop", min_precision=0.8, min_wins=5)
    assert rule.mistrust(Reading(None, 0, 9)) == ""
    assert rule.mistrust(Reading(0.1, 4, 9)) == ""
    assert rule.mistrust(Reading(0.8, 5, 9)) == ""
    assert rule.mistrust(Reading(0.75, 8, 9)).startswith("precision: 0.750 of 8 successes")
    with pytest.raises(ConfigError, match="cannot 'halt'"):
        WatchRule("halt")


def dreamt():
    return Practice(
        CorridorWorld(), DREAMT, UniformTasks(corridor_tasks(), seed=5), refused_offline=0.25
    )


def trained(count, *, walker=None, **more):
    walker, rows = walker or Walker(), []
    plan = small_plan(count, groups=2, play=QUICK, switch=NEVER)
    trainee = walker.trainee(Grpo(), PolicyObjective())
    progress = run(
        run_loop(
            trainee,
            more.pop("practice", None) or dreamt(),
            replace(plan, **more.pop("plan", {})),
            on_row=lambda progress, figures: rows.append((progress, figures)),
            **more,
        )
    )
    return progress, rows, trainee.learner.tensors()


def test_reality_takes_the_dreams_place_within_its_ceiling():
    kept = []
    real = replace(corridor(), remember=lambda step, groups: kept.append((step, groups)))
    progress, rows, _ = trained(2, then=real, plan={"real_transitions": 50})
    turn = progress.turns[0]
    assert (turn.step, turn.to, turn.why) == (2, "real", "all 2 steps in the dream are made")
    assert progress.dream_steps > 0
    # A group may cost 12: it ends when the next could go over the ceiling.
    assert 50 - 12 < progress.real_steps <= 50
    assert len(progress.dreamt) == 2
    taken = [sum(len(one.steps) for group in groups for one in group.episodes)
             for _, groups in kept]  # fmt: skip
    assert sum(taken) == progress.real_steps
    assert [step for step, _ in kept] == list(range(2, progress.step))
    every = [one for _, groups in kept for group in groups for one in group.episodes]
    assert {one.provenance.source for one in every} == {Source.REAL}
    assert [figures["real/steps_online"] for _, figures in rows][:2] == [0.0, 0.0]
    assert "transfer/turn" in rows[1][1]
    assert "gap/refused_offline" in rows[0][1]
    assert "gap/refused_offline" not in rows[-1][1]


def test_steps_for_real_can_be_fewer_than_could_be_paid():
    more = {"real_transitions": 500, "real_steps": 1, "switch": SwitchRule(step=1)}
    progress, _, _ = trained(5, then=corridor(), plan=more)
    assert (progress.step, progress.turns[0].why) == (2, "step 1 was set for it")


def test_a_world_that_only_fails_stops_the_run_instead_of_going_on_for_ever():
    broken = corridor(CorridorWorld(breaks=lambda task, step: True))
    with pytest.raises(EnvError, match="every episode of step 2 failed"):
        trained(1, then=broken, plan={"real_transitions": 50})


def readings(*found):
    left = iter(found)

    async def watch(step):
        return Reading(next(left), 9, 5, {"gap/refused": 0.1})

    return watch


def seen(*found):
    left = iter(found)

    async def probe():
        return Sight(next(left), 3)

    return probe


def test_a_fall_of_precision_is_noted_and_stops_where_it_should():
    noted, rows, _ = trained(3, watch=readings(0.9, 0.2, 0.9), plan={"watch": WatchRule(every=1)})
    assert (noted.step, noted.turns, noted.watch_steps) == (3, (), 15)
    assert [figures["gap/alarm"] for _, figures in rows] == [0.0, 1.0, 0.0]
    assert rows[1][1]["gap/precision"] == 0.2
    rule = WatchRule("stop", every=1)
    stopped, _, _ = trained(3, watch=readings(0.9, 0.2), plan={"watch": rule})
    assert (stopped.step, stopped.stopped) == (2, True)
    assert stopped.turns[0].why.startswith("precision: 0.200 of 9")
    assert stopped.real_steps == 0
    gone, _, _ = trained(
        3, watch=readings(0.2), then=corridor(), plan={"watch": rule, "real_transitions": 30}
    )
    assert (gone.turns[0].step, gone.turns[0].to) == (1, "real")
    assert gone.real_steps > 0


def test_a_policy_goes_back_to_its_best_look_with_all_that_belongs_to_it(tmp_path):
    plan = {"watch": WatchRule("return", every=3), "probe_every": 1}
    short = {"probe_every": 1}
    _, _, best = trained(1, probe=seen(0.1, 0.6), plan=short)
    more = {"watch": readings(0.1), "probe": seen(0.1, 0.6, 0.3, 0.2), "plan": plan}
    progress, rows, weights = trained(9, folder=tmp_path / "back", **more)
    turn = progress.turns[0]
    assert (turn.step, turn.weights, turn.to) == (3, 1, "end")
    assert rows[-1][1]["transfer/weights"] == 1.0
    assert weights.keys() == best.keys()
    assert all(torch.equal(weights[name], best[name]) for name in best)
    # One that was best before its first step has no moments to go back to.
    more = {"watch": readings(0.1), "probe": seen(0.9, 0.6, 0.3, 0.2), "plan": plan}
    _, _, first = trained(9, folder=tmp_path / "first", **more)
    assert not [name for name in first if name.startswith("adam/")]
    with pytest.raises(ConfigError, match="a folder for checkpoints is needed"):
        trained(9, watch=readings(0.1), plan=plan)


class Killed(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_loop_killed_around_the_switch_goes_on_as_if_nothing_had_been(tmp_path, stop):
    def loop(folder, kill=-1):
        rows = {}

        def row(progress, figures):
            if progress.step == kill:
                raise Killed
            rows[progress.step] = {k: v for k, v in figures.items() if not k.startswith("time/")}

        walker = Walker()
        trainee = walker.trainee(Grpo(), PolicyObjective())
        plan = small_plan(
            2, groups=2, play=QUICK, switch=NEVER, real_transitions=60, checkpoint_every=2,
            watch=WatchRule(every=1),
        )  # fmt: skip
        progress = run(
            run_loop(
                trainee, dreamt(), plan, then=corridor(), probe=steady, watch=sure,
                folder=tmp_path / folder, on_row=row,
            )
        )  # fmt: skip
        return progress, rows, trainee.learner.tensors()

    async def steady():
        return Sight(0.5, 7)

    async def sure(step):
        return Reading(1.0, 9, 5)

    whole, rows, weights = loop("whole")
    assert whole.step > stop
    with pytest.raises(Killed):
        loop("killed", stop)
    again, others, same = loop("killed")
    assert again == whole
    assert others.items() <= rows.items()
    assert weights.keys() == same.keys()
    assert all(torch.equal(weights[name], same[name]) for name in weights)
