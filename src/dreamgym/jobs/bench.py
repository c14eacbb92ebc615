"""The bench job: run a suite in its folder, as far as it is not done, and write its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dreamgym import __version__
from dreamgym.bench import BenchTable, Suite, make_table, run_suite
from dreamgym.bench.known import KnownCells
from dreamgym.bench.markdown import made_with, write_markdown
from dreamgym.bench.page import suite_page
from dreamgym.bench.run import Standing
from dreamgym.files import write_atomically
from dreamgym.jobs.report import find_references
from dreamgym.runs import RunDir
from dreamgym.runs.versions import installed_versions

TABLE, PAGE = "table.md", "report.html"


@dataclass(frozen=True, slots=True)
class Benched:
    """What a suite came to."""

    table: BenchTable
    markdown: str
    failures: Mapping[str, str]


async def run_bench(
    suite: Suite,
    run: RunDir,
    *,
    scale: str,
    command: str,
    stages: Path | None = None,
    known: KnownCells | None = None,
    jobs: int = 1,
    on_change: Callable[[Standing], None] = lambda standing: None,
) -> Benched:
    """Run what is missing, and leave `table.md`, `report.html` and `result.json`.

    Args:
        suite: the experiment.
        run: its folder.
        scale: its size, by name.
        command: how it was called.
        stages: where the stages' run directories lie, so that suites share them; else in `run`.
        known: cells on record: those are not run, and what is finished joins them.
        jobs: how many stages run side by side.
        on_change: is told how far it is.
    """
    root = (stages or run.path).absolute()
    root.mkdir(parents=True, exist_ok=True)
    run.begin()
    known = known or KnownCells()
    shown: set[str] = set()

    def changed(standing: Standing) -> None:
        known.keep(suite, root)
        done = {cell.key for cell in suite.cells if cell.key in known.found or cell.finished(root)}
        if not done <= shown:  # A suite takes hours: what is known so far is there to be read.
            shown.update(done)
            _write_table(run, make_table(suite, root, known.found), command, {})
        on_change(standing)

    failures = await run_suite(known.missing(suite), root, jobs=jobs, on_change=changed)
    table, versions = make_table(suite, root, known.found), installed_versions()
    markdown = _write_table(run, table, command, failures)
    made = (command, *made_with(table))
    write_atomically(run.path / PAGE, suite_page(table, root, made=made, look_up=find_references))
    run.result(
        {
            "command": "bench",
            "suite": suite.name,
            "scale": scale,
            "version": __version__,
            "versions": versions,
            "command_line": command,
            **table.plain(),
            "failures": dict(failures),
        }
    )
    run.event("finished", failures=len(failures))
    return Benched(table, markdown, failures)


def _write_table(run: RunDir, table: BenchTable, command: str, failures: Mapping[str, str]) -> str:
    markdown = write_markdown(table, command=command, failures=failures)
    write_atomically(run.path / TABLE, markdown)
    return markdown
