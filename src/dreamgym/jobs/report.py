"""The report job: read run directories, write one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dreamgym import build
from dreamgym.config import ReplayConfig
from dreamgym.errors import ConfigError, DreamGymError
from dreamgym.experience.card import load_card
from dreamgym.files import write_atomically
from dreamgym.report import RunRecord, read_run, report_page
from dreamgym.runs import MEMORY
from dreamgym.types import Transition

PAGE = "report.html"
"""The page to read; without another wish it lies in the first run's directory."""


def run_report(paths: Sequence[Path], *, out: Path | None = None, title: str = "") -> Path:
    """Write the page about these runs, and return where it is."""
    if not paths:
        raise ConfigError("a report is about at least one run directory")
    runs = [read_run(path) for path in paths]
    page = report_page(runs, title=title, look_up=find_references)
    place = out or paths[0] / PAGE
    place = place / PAGE if place.is_dir() else place
    if place.is_file() and place.suffix not in (".html", ".htm"):
        raise ConfigError(f"{place} is there and no page: choose another name with --out")
    write_atomically(place, page)
    return place


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
