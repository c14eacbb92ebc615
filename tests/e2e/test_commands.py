"""The other commands from the shell: what they print, and what they say to wrong input."""

import json
import os
import signal

import pytest

from dreamgym.cli import environments
from dreamgym.envs.catalogue import Listed

BRACKETS = {
    "messages": [
        {"role": "user", "content": "page [bold] one [/x]"},
        {"role": "assistant", "content": "click[buy now]"},
        {"role": "user", "content": "page [red]two[/]"},
    ],
    "success": True,
}


@pytest.fixture
def recorded(shell, staircase):
    shell("collect", "--env", staircase, "--episodes", "14", "--out", "run")
    return "run"


def test_eval_plays_each_task_once_and_says_what_is_shared(shell, staircase):
    done = shell("eval", "--env", staircase, "--episodes", "100", "--out", "e")
    result = json.loads((shell.folder / "e/result.json").read_text())
    assert result["success"] == {"mean": 1.0, "low": pytest.approx(0.912, abs=1e-3), "high": 1.0,
                                 "episodes": 40}  # fmt: skip
    assert "The split has 40 tasks, 100 were asked for" in done.stdout
    assert "held out" in done.stdout
    assert result["overlap"]["shared_first_states"] == 0


AGENTS = """
class Breaks:
    def __init__(self, env, seed): pass
    async def act(self, task, past, now): raise KeyError("lost")

class CannotBeMade:
    async def act(self, task, past, now): raise KeyError("lost")
"""


@pytest.mark.parametrize(("name", "words"), [("Breaks", "lost"), ("CannotBeMade", "arguments")])
@pytest.mark.parametrize("command", ["eval", "collect"])
def test_an_agent_that_breaks_is_named_and_the_command_fails(
    shell, staircase, command, name, words
):
    (shell.folder / "my_agents.py").write_text(AGENTS)
    done = shell(
        command, "--env", staircase, "--episodes", "5", "--policy", f"my_agents:{name}",
        "--out", "x", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert words in done.stdout
    assert "Traceback" not in done.stderr
    result = json.loads((shell.folder / "x/result.json").read_text(), parse_constant=pytest.fail)
    assert "AgentError" in json.dumps(result["failed" if command == "collect" else "failures"])


def test_records_of_others_come_in_and_go_out(shell, inside, recorded):
    for form in ("native", "messages", "sharegpt", "atif"):
        run = shell if form == "native" else inside
        run("export", f"{form}.jsonl", "--store", recorded, "--format", form)
        run("import", f"{form}.jsonl", "--store", f"{form}.sqlite")
        stats = run("replay", "stats", "--store", f"{form}.sqlite").stdout
        assert "staircase" in stats and "14" in stats
    assert inside("export", "trl.jsonl", "--store", recorded, "--format", "trl").stdout
    again = inside("export", "trl.jsonl", "--store", recorded, "--format", "trl", check=False)
    assert again.returncode == 1


def test_a_bad_import_is_told_by_line_and_leaves_no_store(inside):
    lines = [json.dumps(BRACKETS), "{broken", json.dumps(BRACKETS)]
    (inside.folder / "bad.jsonl").write_text("\n".join(lines))
    done = inside("import", "bad.jsonl", "--store", "new.sqlite", check=False)
    assert done.returncode == 1
    assert "1 of 3 records are bad" in done.stderr
    assert "bad.jsonl" in done.stderr and "2" in done.stderr
    assert not (inside.folder / "new.sqlite").exists()
    inside("import", "bad.jsonl", "--store", "new.sqlite", "--max-bad-share", "0.5")
    assert (inside.folder / "new.sqlite").exists()


def test_brackets_in_texts_are_printed_as_they_are(inside):
    (inside.folder / "web.jsonl").write_text(json.dumps(BRACKETS))
    inside("import", "web.jsonl", "--store", "web.sqlite", "--env", "[e]v")
    found = inside("replay", "search", "--store", "web.sqlite", "--action", "click[buy now]").stdout
    assert "click[buy now]" in found and "[bold] one [/x]" in found
    assert "[e]v" in inside("replay", "stats", "--store", "web.sqlite").stdout


def test_a_store_gets_other_vectors_on_request(shell, recorded):
    done = shell("replay", "reindex", "--store", recorded)
    assert "transitions indexed with hashing" in done.stdout


def test_what_there_is_and_what_is_missing(shell, inside):
    assert "twx/cookingworld" in inside("envs").stdout
    assert "python" in shell("doctor").stdout
    assert "collect.episodes" in inside("config").stdout
    assert shell("--version").stdout.startswith("dreamgym 0.")


@pytest.mark.parametrize("columns", ["40", "80", "98", "99", "120"])
def test_what_stands_in_the_list_of_environments_can_be_copied(monkeypatch, capsys, columns):
    install = "pip install 'dreamgym[treasures]'"
    listed = [Listed("islands/treasure_hunter", "dig " + "and dig again " * 9, install)]
    monkeypatch.setattr(environments, "catalogue", lambda: listed)
    monkeypatch.setenv("COLUMNS", columns)
    environments.envs()
    printed = capsys.readouterr().out
    assert "islands/treasure_hunter" in printed
    assert install in printed
    assert max(map(len, printed.splitlines())) <= int(columns)


def test_the_contract_of_an_engine_of_ones_own(shell, staircase):
    assert "FAILED" not in shell("check-env", staircase).stdout
    broken = (shell.folder / "staircase.py").read_text().replace("float(top)", "0.5 * hash(action)")
    (shell.folder / "broken.py").write_text(
        broken.replace('return ("up",) * (HEIGHT - self.at)', 'return ("down",)')
    )
    done = shell("check-env", "py/broken:make_engine", check=False)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("collect", "--env", "twx/coim"), "Did you mean 'coin'"),
        (("collect", "--env", "twz/coin"), "unknown environment family 'twz'. Did you mean 'twx'"),
        (("collect", "--env", "twx/coin?rooms=3"), "unknown parameter 'rooms'"),
        (("collect", "--policy", "expret"), "Did you mean 'expert'"),
        (("collect", "--set", "collect.epsiodes=3"), "Did you mean 'episodes'"),
        (("collect", "--preset", "tinny"), "Did you mean 'tiny'"),
        (("collect", "--episodes", "0"), "must be at least 1"),
        (("collect", "--split", "test"), "test tasks are held out"),
        (("collect", "--config", "."), "cannot be read"),
        (("collect", "--out", "/proc/nowhere", "--preset", "tiny"), "/proc/nowhere"),
        (("eval", "--split", "tset"), "Did you mean 'test'"),
        (("replay", "stats", "--store", "none.sqlite"), "no experience store at none.sqlite"),
        (("import", "none.jsonl", "--store", "s.sqlite"), "none.jsonl"),
        (("export", "x", "--store", "none.sqlite"), "no experience store"),
        (("check-env", "py/no_such_module:make"), "no_such_module"),
    ],
)
def test_wrong_input_says_what_to_do_and_leaves_nothing(inside, words, message):
    before = set(os.listdir(inside.folder))
    done = inside(*words, check=False)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    left = set(os.listdir(inside.folder)) - before - {"runs"}
    assert not left
    assert not (inside.folder / "runs").exists() or not os.listdir(inside.folder / "runs")


def test_an_import_that_is_interrupted_says_how_to_go_on(shell):
    slow = shell.folder / "slow.jsonl"
    os.mkfifo(slow)
    process = shell("import", "slow.jsonl", "--store", "s.sqlite", start=True)
    with slow.open("wb"):  # waits until it is being read, and then never says a word
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Interrupted." in errors and "The same command goes on" in errors
    assert "Traceback" not in errors
    slow.unlink()


def test_an_empty_file_is_no_store_and_stays_empty(inside):
    empty = inside.folder / "empty.sqlite"
    empty.touch()
    done = inside("replay", "stats", "--store", "empty.sqlite", check=False)
    assert done.returncode in (1, 2) and "no experience store at empty.sqlite" in done.stderr
    assert not empty.stat().st_size
    empty.unlink()


def test_an_error_ends_the_installed_command_with_a_line_and_a_status(shell):
    done = shell("collect", "--env", "twx/coim", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and "Did you mean 'coin'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_folder_is_a_policy(shell, staircase):
    """An untrained model says anything; what it says is judged, recorded and repeatable."""
    pytest.importorskip("torch", reason="local models need the extra `train`")
    from dreamgym.models.tiny import make_tiny
    from dreamgym.models.tokenizer import train_word_tokenizer

    words = ["Task: climb to the top\nstaircase 1, stair 0 of 5\n> up\n> down\n"] * 3
    tokenizer = train_word_tokenizer(words)
    folder = shell.folder / "policy"
    folder.mkdir()
    tokenizer.save(folder)
    make_tiny("1m", tokenizer.vocab_size, seed=0).save(folder)
    for out in ("a", "b"):
        shell(
            "collect", "--env", staircase, "--episodes", "6", "--policy", "policy", "--out", out,
            "--set", "collect.max_steps=4",
        )  # fmt: skip
        shell("export", f"{out}.jsonl", "--store", out)
    assert (shell.folder / "a.jsonl").read_bytes() == (shell.folder / "b.jsonl").read_bytes()
    result = json.loads((shell.folder / "a/result.json").read_text())
    assert list(result["success"]) == ["model:policy"]
    assert result["refused_share"] > 0.5
    assert result["failed"] == {}
