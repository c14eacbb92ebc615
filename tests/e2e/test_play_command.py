"""`dreamgym play` from the shell, with the lines of a player in a pipe."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

DREAMGYM = Path(sys.executable).with_name("dreamgym")
ENVIRONMENT = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}


def play(folder, *words, lines=()):
    return subprocess.run(
        [str(DREAMGYM), "play", "--world", "dream", *words], cwd=folder, env=ENVIRONMENT,
        input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_walk_in_a_dream(small_dream):
    lines = [":undo", "take moon", "move east", ":refs", ":undo", ":actions", ":unod", ":help", "x"]
    done = play(small_dream, lines=lines)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "Goal: take the coin" in said
    assert "Nothing to take back." in said
    assert "+ > you cannot do that" in said
    assert "reward 0, refused; decided by: grounding" in said
    assert "why: nothing-known: nobody has heard of moon" in said
    assert "[1] 1.000 alike" in said, "the recorded step itself is the nearest reference"
    assert "There is no :unod. Did you mean ':undo'?" in said
    assert "take the last action back" in said
    assert said.endswith("Left after 2 actions.\n"), "the end of the input is a polite end"


def test_reality_beside_the_dream(small_dream):
    lines = ["take moon", ":expert", "move east", ":undo", ":quit", "never read"]
    done = play(small_dream, "--real", "--split", "dev", "--number", "3", lines=lines)
    assert done.returncode == 0, done.stderr
    assert "py/coin_corridor:make_engine#1003" in done.stdout
    assert "decided by: grounding" in done.stdout
    assert "move east\nmove east\ntake coin" in done.stdout
    assert "Left after 1 actions, 3 real steps." in done.stdout
    assert "never read" not in done.stdout


def test_what_cannot_be_played_says_why(small_dream, inside):
    def refused(*words):
        return inside("play", "--world", "dream", *words, check=False, folder=small_dream)

    unknown = refused("--task", "py/coin_corridor:make_engine#7000")
    assert unknown.returncode == 2
    assert "Did you mean 'py/coin_corridor:make_engine#7" in unknown.stderr
    none = refused("--split", "dev")
    assert "--real takes tasks from the engine" in none.stderr
    assert "holds no dream" in refused("--world", "data").stderr
    nobody = refused("--world", "llm", "--store", "data")
    assert "llm.url is not set" in nobody.stderr
    for done in (unknown, none, nobody):
        assert "Traceback" not in done.stderr


def test_an_interrupt_ends_politely(small_dream):
    process = subprocess.Popen(
        [str(DREAMGYM), "play", "--world", "dream"], cwd=small_dream, env=ENVIRONMENT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for line in iter(process.stdout.readline, ""):
        if line.startswith("Goal:"):
            break
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Left after 0 actions." in said
    assert "Traceback" not in errors


def test_the_script_of_the_tour_shows_what_the_model_reads(small_dream, tmp_path):
    tour = Path(__file__).parents[2] / "docs/tour.md"
    (script,) = re.findall(r"```python\n(.*?)```", tour.read_text(), re.DOTALL)
    (tmp_path / "overhear.py").write_text(script)
    words = ("dream", "py/coin_corridor:make_engine#7", "take moon", "move east")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "overhear.py"), *words], cwd=small_dream, env=ENVIRONMENT,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    refused, _, carried_out = done.stdout.partition("=== move east\n")
    assert refused == "=== take moon\n", "what a rule refuses is not asked"
    assert carried_out.startswith("<goal>take the coin\n<past>take moon<refused>")
    assert "<act>move east<at>east at #" in carried_out
    assert re.search(r"(?m)^<why>\n-> .*<then><(ok|refused)>", carried_out)
