"""The report job: read run directories, write one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dreamgym import build
from dreamgym.config import ReplayConfig
from dreamgym.errors import ConfigError, DreamGymError
from dreamgym.experience.card import load_card
from dreamgym.files import write_atomically
from dreamgym.jobs.demo_result import demo_page, outcome_of
from dreamgym.report import RunRecord, read_run, report_page
from dreamgym.report.record import BY_TRIAL
from dreamgym.runs import MEMORY
from dreamgym.types import Transition

PAGE = "report.html"
"""The page to read; without another wish it lies in the first run's directory."""
WHOLES = ("demo", "bench")
"""Commands whose runs hold those of others, and a page that tells more than a report would."""


def run_report(paths: Sequence[Path], *, out: Path | None = None, title: str = "") -> Path:
    """Write the page about these runs, and return where it is."""
    if not paths:
        raise ConfigError("a report is about at least one run directory")
    runs = [read_run(path) for path in paths]
    place = out or paths[0] / PAGE
    place = place / PAGE if place.is_dir() else place
    if place.is_file() and place.suffix not in (".html", ".htm"):
        raise ConfigError(f"{place} is there and no page: choose another name with --out")
    if len(runs) == 1 and runs[0].kind == "demo" and runs[0].result is not None:
        if place.parent.resolve() != paths[0].resolve():
            _check_place(place)
        root = paths[0].absolute()  # as the demo itself writes it
        page = demo_page(outcome_of(runs[0]), root, title=title, look_up=find_references)
    else:
        _check_runs(runs)
        _check_place(place)
        page = report_page(runs, title=title, look_up=find_references)
    write_atomically(place, page)
    return place


def _check_runs(runs: Sequence[RunRecord]) -> None:
    """Refuse runs that a report has nothing to say about."""
    for run in runs:
        if run.kind in WHOLES:
            page = run.path / PAGE
            there = f"its page is {page}" if page.is_file() else "it is not finished"
            raise ConfigError(
                f"{run.path} is a run of `dreamgym {run.kind}`, and {there}. Report on the runs "
                f"inside: {', '.join(_inside(run)) or 'there are none yet'}"
            )


def _check_place(place: Path) -> None:
    """Refuse to write over a page that tells more."""
    home = place.parent
    if place.is_file() and (home / "run.json").is_file() and read_run(home).kind in WHOLES:
        raise ConfigError(
            f"{place} is the page of `dreamgym {read_run(home).kind}`, which tells more: choose "
            "another name with --out"
        )


def _inside(run: RunRecord, most: int = 4) -> list[str]:
    """Return some runs that others hold, trainings by trial before all else."""
    root = Path(str(run.settings.get("stages") or run.path))
    found = [path.parent for deep in ("*", "*/*") for path in sorted(root.glob(f"{deep}/run.json"))]
    found.sort(key=lambda path: read_run(path).kind != BY_TRIAL)
    return [*map(str, found[:most]), *(["..."] if len(found) > most else [])]


def find_references(run: RunRecord, wanted: Sequence[str]) -> Mapping[str, Transition]:
    """Find the transitions that a run's dream was shown; a store that is gone has none."""
    missing = set(wanted)
    episodes = {name.rpartition("#")[0] for name in wanted}
    found: dict[str, Transition] = {}
    try:
        card = load_card(Path(str(run.settings.get("rl.world", ""))))
        own = run.path / MEMORY  # holds the store, and what was dreamt since
        place = own if own.is_file() else Path(card.store)
        if not place.is_file():
            return {}
        with build.make_store(place, ReplayConfig(embedder=card.embedder)) as store:
            for one in store.trajectories(env=card.env):
                if one.id in episodes:
                    found |= {step.id: step for step in one.transitions() if step.id in missing}
    except (DreamGymError, OSError):
        return found
    return found
