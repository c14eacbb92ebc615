"""A run belongs to the command that made it: nobody else continues or removes it."""

import pytest

from dreamgym.errors import RunDirError
from dreamgym.runs import open_run, remove_run

ABOUT = {"command": "dreamgym eval --policy mixed"}


@pytest.fixture
def evaluated(tmp_path):
    run = open_run(tmp_path / "run", config="seed = 0\n", about=ABOUT, resume=False)
    run.result({"command": "eval"})
    run.close()
    return run.path


def test_a_run_of_another_command_is_not_continued(evaluated):
    with pytest.raises(RunDirError, match=r"a run of `dreamgym eval`, not of `dreamgym collect`"):
        open_run(evaluated, config="seed = 0\n", about={"command": "dreamgym collect"}, resume=True)
    assert "eval" in (evaluated / "result.json").read_text()


def test_nobody_is_told_to_continue_what_cannot_be(evaluated):
    for resumable, hint in ((True, "add --resume to continue it, or choose"), (False, "choose")):
        with pytest.raises(RunDirError, match=f"holds a run: {hint} another"):
            open_run(evaluated, config="", about=ABOUT, resume=False, resumable=resumable)


def test_a_run_is_removed_by_its_own_command_alone(evaluated):
    with pytest.raises(RunDirError, match="a run of `dreamgym eval`"):
        remove_run(evaluated, command="demo")
    assert evaluated.is_dir()
    remove_run(evaluated, command="eval")
    assert not evaluated.exists()
    remove_run(evaluated, command="eval")


def test_a_run_in_use_is_not_removed(evaluated):
    run = open_run(evaluated, config="seed = 0\n", about=ABOUT, resume=True)
    with pytest.raises(RunDirError, match="in use"):
        remove_run(evaluated, command="eval")
    run.close()


@pytest.mark.parametrize("name", ["run.json", "config.toml"])
def test_a_damaged_record_is_named(evaluated, name):
    (evaluated / name).write_bytes(b"\xff{")
    with pytest.raises(RunDirError, match=f"{name} is damaged"):
        open_run(evaluated, config="seed = 0\n", about=ABOUT, resume=True)
