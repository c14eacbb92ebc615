"""Committed tables of suites are what `dreamgym bench` makes of cells on record, to the letter."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dreamgym.bench import SUITES
from dreamgym.cli.main import app

ROOT = Path(__file__).parents[1]
NUMBER = r"\d*\.\d+"
RESULTS = ROOT / "benchmarks/results"
TABLES = [
    page for page in sorted(RESULTS.glob("*.md"))
    if page.read_text().splitlines()[0].removeprefix("# ") in SUITES
]  # fmt: skip


def without_versions(text: str) -> str:
    return re.sub(r"^python \d.*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
def test_a_table_is_made_of_the_cells_on_record(page, tmp_path, monkeypatch):
    command = re.search(r"^`dreamgym (bench .*)`$", page.read_text(), re.MULTILINE)[1]
    assert "--cells benchmarks/results/cells.jsonl" in command
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("dreamgym.bench.run.run_stage", refuse)
    monkeypatch.setattr("sys.argv", ["dreamgym", *shlex.split(command)])
    done = CliRunner().invoke(app, [*shlex.split(command), "--out", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    made = (tmp_path / "again/table.md").read_text()
    assert without_versions(made) == without_versions(page.read_text())


SHOWN = {
    "start: 3 demonstrations, few updates": "start",
    "the same demonstrations, copied for longer": "sft",
    "40 demonstrations": "sft-more",
    **{
        f"{algo.upper()} {words}": f"{algo}-{how}"
        for algo in ("grpo", "ppo")
        for words, how in (
            ("in the dream", "dream"),
            ("in the dream, then for real", "s2r"),
            ("for real", "real"),
        )
    },
}
"""Rows of the README's table, and what they are called in that of the suite."""


def test_the_readme_shows_what_the_table_holds():
    def rows(page, count):
        found = re.findall(r"^\| ([^|]+)" + r"\| ([^|]+) " * count + r"\|", page, re.MULTILINE)
        return {name.strip(): values for name, *values in reversed(found)}

    shown = rows((ROOT / "README.md").read_text(), 3)
    held = rows((RESULTS / "table1.md").read_text(), 6)
    for name, arm in SHOWN.items():
        for told, exact in zip(shown[name][:2], held[arm][:2], strict=True):
            short = [f"{float(value):.2f}".removeprefix("0") for value in re.findall(NUMBER, exact)]
            assert re.findall(NUMBER, told) == short, name


async def refuse(stage, root, **more):
    return f"{stage.name} is not on record"
