"""Committed tables of suites are what `dreamgym bench` makes of cells on record, to the letter."""

import re
import runpy
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


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
def test_a_table_is_made_of_the_cells_on_record(page, tmp_path, monkeypatch):
    command = re.search(r"^`dreamgym (bench .*)`$", page.read_text(), re.MULTILINE)[1]
    assert "--cells benchmarks/results/cells.jsonl" in command
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("dreamgym.bench.run.run_stage", refuse)
    monkeypatch.setattr("sys.argv", ["dreamgym", *shlex.split(command)])
    done = CliRunner().invoke(app, [*shlex.split(command), "--out", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "again/table.md").read_text() == page.read_text()


SHOWN = {
    "acting at random": "random",
    "start: a weak clone": "start",
    "the same demonstrations, copied for longer": "sft",
    "40 demonstrations": "sft-more",
    "DPO on the record": "dpo",
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
COLUMNS = (
    (RESULTS / "table1-marks.md", "coin8-marks"),
    (RESULTS / "table1-map.md", "map-marks"),
    (RESULTS / "table1-twc.md", "twc"),
    (RESULTS / "table1-alfworld.md", "alfworld"),
)
"""Where the columns of the README's table come from."""
CHART = ROOT / "docs/images/table1.svg"


def rows_of(page):
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {line[0].strip(): [cell.strip() for cell in line] for line in reversed(lines)}


def test_the_readme_shows_what_the_tables_hold():
    shown = rows_of((ROOT / "README.md").read_text())
    for number, (page, env) in enumerate(COLUMNS, start=1):
        held = rows_of(page.read_text())
        column = held["arm"].index(env)
        for name, arm in SHOWN.items():
            exact = re.findall(NUMBER, held[arm][column]) if arm in held else []
            short = [f"{float(value):.2f}".removeprefix("0") for value in exact]
            assert re.findall(NUMBER, shown[name][number]) == short, name


@pytest.mark.parametrize("algo", ["grpo", "ppo"])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("dream", "dream minus real practice, -.05 or more"),
        ("s2r", "sim-to-real minus real practice, above 0"),
    ],
)
def test_the_goals_in_the_readme_are_differences_of_the_tables(algo, how, words):
    shown = rows_of((ROOT / "README.md").read_text())[f"{algo.upper()}: {words}"]
    for (page, env), cell in zip(COLUMNS, shown[1:], strict=True):
        start = f"| {algo}-{how} | {algo}-real | {env} | "
        held = [line for line in page.read_text().splitlines() if line.startswith(start)]
        difference = held[0].removeprefix(start).partition(" | ")[0] if held else "\u2013"
        assert cell == re.sub(r"\b0\.", ".", difference)


def test_the_chart_is_drawn_of_the_tables():
    tool = runpy.run_path(str(ROOT / "docs/chart.py"))
    assert CHART.read_text() == tool["chart"](*COLUMNS)


async def refuse(stage, root, **more):
    return f"{stage.name} is not on record"
