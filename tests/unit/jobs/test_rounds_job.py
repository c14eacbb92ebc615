"""A training in rounds whose stages are all there: what is left of them in one place."""

import json
import shutil
from io import StringIO

import pytest
import typer
from left_rounds import ALARM, leave_dream, leave_round, plan
from rich.console import Console

from dreamgym.cli.train_rounds import show_rounds
from dreamgym.config import RunConfig, dump_toml
from dreamgym.jobs.rounds import run_rounds
from dreamgym.jobs.stages import Stage, Tick, finish_stage
from dreamgym.runs import open_run, read_json_lines


@pytest.fixture
def shut(small_dream, tmp_path):
    """A training whose second dream did not pass: its settings, and its run directory."""
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit/config.toml").write_text(f'[audit]\ndata = "{small_dream / "data"}"\n')
    config = plan(f"rl.world='{small_dream / 'dream'}'", f"rl.gate='{tmp_path / 'audit'}'").config
    root = tmp_path / "run"
    run = open_run(root, config=dump_toml(config), about={"command": "test"}, resume=False)
    leave_round(root, 1, steps=12, why=ALARM)
    rows = [{"step": 0, "real/success": 0.1}, {"step": 1, "real/steps_watch": 90.0}]
    (root / "round-1/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "round-1/policy").mkdir()
    (root / "round-1/policy/config.json").write_text("{}")
    yield config, run
    run.close()


def test_where_the_gate_is_shut_the_last_policy_and_the_reasons_are_left(shut):
    config, run = shut
    leave_dream(run.path, 2, precision=0.4)
    done = run_rounds(config, run)
    found = json.loads(run.result_path.read_text())
    assert done.folder == run.path / "policy"
    assert (done.folder / "config.json").is_file()
    (only,) = found["rounds"]
    assert only["then"]["what"] == "repair"
    assert only["then"]["shut"] == list(done.reasons)
    assert (only["why"], found["steps"], found["seconds"]) == (ALARM, 12, 0.0)
    assert found["real_transitions"] == {
        "offline": 500, "online": 0, "evaluation": 160, "evaluation_watch": 90,
        "evaluation_audit": 40, "learnt_watch": 90, "online_ceiling": None,
    }  # fmt: skip
    shown = Console(file=StringIO(), width=200)
    with pytest.raises(typer.Exit) as ended:
        show_rounds(shown, done)
    assert ended.value.exit_code == 3
    assert "- on-policy precision is 0.400" in shown.file.getvalue()


def test_figures_go_on_from_round_to_round(shut):
    config, run = shut
    leave_dream(run.path, 2, precision=1.0)
    leave_round(run.path, 2, steps=18)
    shutil.copytree(run.path / "round-1/policy", run.path / "round-2/policy")
    shutil.copy(run.path / "round-1/metrics.jsonl", run.path / "round-2")
    done = run_rounds(config, run)
    assert done.reasons == ()
    rows = list(read_json_lines(run.path / "metrics.jsonl"))
    # The look before the second round is at the policy that the first one left.
    assert [row["step"] for row in rows] == [0, 1, 13]
    assert [row.get("real/steps_watch") for row in rows] == [None, 90.0, 180.0]
    assert [one["round"] for one in done.result["rounds"]] == [1, 2]
    assert done.result["rounds"][1]["why"] == "all 18 steps in the dream are made"
    assert done.result["dream_transitions"] == 2000
    shown = Console(file=StringIO(), width=200)
    show_rounds(shown, done)
    assert "Then repair, on 590 recorded transitions in all" in shown.file.getvalue()


def test_a_stage_that_has_its_result_is_not_repeated(shut):
    _, run = shut
    stage = Stage("round-1", "learn", "rl", RunConfig())
    told = []
    before = (run.path / "round-1/result.json").stat().st_mtime_ns
    finish_stage(stage, run.path / "round-1", run, on_tick=told.append)
    assert told == [Tick(stage, 1.0, reused=True)]
    assert (run.path / "round-1/result.json").stat().st_mtime_ns == before
