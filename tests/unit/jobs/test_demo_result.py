import json
from pathlib import Path

import pytest

from dreamgym import codec
from dreamgym.config import load_config
from dreamgym.errors import ConfigError
from dreamgym.jobs.demo_plan import plan_demo
from dreamgym.jobs.demo_result import (
    count_transitions,
    find_example,
    read_curve,
    short_script,
)
from dreamgym.jobs.stages import COMMANDS
from dreamgym.report import RunRecord
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


def record(*, metrics=(), result=None):
    return RunRecord(Path("run"), "trial", {}, {}, tuple(metrics), result)


def episode(key, actions, *, won):
    task = Task(f"env#{key}", "env", key, Split.DEV, goal="find it")
    steps = tuple(
        Step(
            Action(text),
            StepResult(
                Observation(f"room {number}\nnorth: hall"), 0.0, terminated=last and won,
                success=last and won, refused=text == "fly",
            ),
        )
        for number, text in enumerate(actions)
        for last in (number == len(actions) - 1,)
    )  # fmt: skip
    return Trajectory(
        f"t-{key}", task, Observation("start\nsouth: room"), steps,
        StopReason.TERMINATED if won else StopReason.TRUNCATED,
        Provenance(Source.REAL, "policy", 0, "engine", "mapper"),
    )  # fmt: skip


@pytest.fixture
def evaluations(tmp_path):
    def write(name, episodes):
        path = tmp_path / name
        path.write_text("".join(codec.encode(one) + "\n" for one in episodes))
        return path

    return write


def test_two_trainings_are_one_curve():
    dreamt = record(
        metrics=(
            {"step": 0, "real/success": 0.3},
            {"step": 1, "reward/success": 0.4, "real/steps_online": 0.0},
            {"step": 2, "reward/success": 0.5, "real/steps_online": 0.0, "real/success": 0.6},
        )
    )
    real = record(
        metrics=(
            {"step": 0, "real/success": 0.6},
            {"step": 1, "reward/success": 0.5, "real/steps_online": 0.0},
            {"step": 2, "reward/success": 0.7, "real/steps_online": 90.0, "real/success": 0.8},
        )
    )
    curve = read_curve([dreamt, real])
    assert [one.step for one in curve] == [0, 1, 2, 3, 4]
    assert [one.real for one in curve] == [0.3, None, 0.6, None, 0.8]
    assert [one.practised for one in curve] == [None, 0.4, 0.5, 0.5, 0.7]
    assert [one.for_real for one in curve] == [False, False, False, False, True]
    assert read_curve([]) == ()


def test_real_transitions_are_counted_once_each():
    def recorded(count):
        return record(result={"real_transitions": {"offline": count, "online": 0}})

    runs = {
        "recorded": recorded(1000), "walks": recorded(200), "own": recorded(30),
        "held": recorded(7), "audit": record(result={"cost": {"real_steps": 5}}),
        # What the clone learnt from is part of what was recorded.
        "start": recorded(77), "dream": recorded(1030),
        "dreamt": record(
            result={"real_transitions": {"offline": 1230, "online": 0, "evaluation": 11}}
        ),
        "start-judged": record(result={"transitions": 100}),
    }  # fmt: skip
    assert count_transitions(runs) == {
        "offline": 1230, "online_dream": 0, "online_sim_to_real": 0, "audit": 12, "evaluation": 111,
    }  # fmt: skip


def test_the_example_is_a_task_that_was_learnt(evaluations):
    before = evaluations(
        "before", [episode("a", ["go"] * 3, won=True), episode("b", ["go"] * 3, won=False)]
    )
    after = evaluations(
        "after", [episode("a", ["go"] * 9, won=True), episode("b", ["go"] * 2, won=True)]
    )
    found = find_example(before, after)
    assert found.after.task.key == found.before.task.key == "b"
    assert not found.before.success and found.after.success
    # Where nothing was learnt, there is an example all the same.
    assert find_example(before, before).after.task.key == "a"
    assert find_example(before, evaluations("none", [])) is None


def test_a_script_has_one_line_per_page():
    assert short_script(episode("a", ["go", "fly"], won=False)) == [
        ("", "start | south: room"),
        ("go", "room 0 | north: hall"),
        ("fly (refused)", "room 1 | north: hall"),
    ]


@pytest.mark.parametrize("preset", ["demo", "demo-alfworld"])
def test_stages_build_on_one_another_and_only_the_judge_sees_the_test_split(preset, tmp_path):
    stages = plan_demo(load_config(preset=preset), tmp_path)
    assert {stage.job for stage in stages} == set(COMMANDS)
    for place, stage in enumerate(stages):
        known = {one.name for one in stages[:place]}
        for named in (
            stage.config.collect.policy, stage.config.eval.policy, stage.config.policy.model,
            stage.config.audit.world, stage.config.audit.policies, stage.config.rl.gate,
        ):  # fmt: skip
            path = Path(named)
            assert not path.is_absolute() or path.name in known, (stage.name, named)
        assert "test" not in {stage.config.collect.split, stage.config.audit.split}
        assert stage.job != "eval" or stage.config.eval.split == "test"
    by_name = {stage.name: stage.config for stage in stages}
    assert by_name["dreamt"].rl.then_real == 0 < by_name["real"].rl.then_real
    assert by_name["dreamt"].rl.gate == by_name["real"].rl.gate == str(tmp_path / "audit")
    # What the audit looks at is in no store that the dream remembers with.
    assert by_name["held"].replay.store != by_name["dream"].replay.store
    assert by_name["own"].replay.store == by_name["recorded"].replay.store
    assert json.dumps([stage.about for stage in stages])


@pytest.mark.parametrize(
    ("setting", "advice"),
    [("train.algo=dpo", "set grpo"), ("rl.then_real=0", "give it some"),
     ("rl.rounds=2", "leave it at 1"), ("rl.switch_step=3", "all of rl.steps"),
     ("rl.gate=off", r"in \[audit\]"), ("rl.group_size=1", "at least 2 are needed")],
)  # fmt: skip
def test_what_the_demo_cannot_follow_is_refused_before_it_begins(setting, advice, tmp_path):
    config = load_config(preset="demo", settings=[setting])
    with pytest.raises(ConfigError, match=advice):
        plan_demo(config, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_algorithm_by_trial_is_followed(tmp_path):
    stages = plan_demo(load_config(preset="demo", settings=["train.algo=ppo"]), tmp_path)
    algos = {stage.name: stage.config.train.algo for stage in stages}
    assert (algos["start"], algos["dreamt"], algos["real"]) == ("sft", "ppo", "ppo")
