"""Some of what was practised, kept for people to read: reports show it turn by turn.

Nothing learns from these files, and no figure is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dreamgym import codec
from dreamgym.files import write_atomically
from dreamgym.rollout.groups import Group, ended_unknown
from dreamgym.train.loop import Practice
from dreamgym.types import Trajectory

EPISODES = "episodes"
"""The folder, inside the run, with a file for each step of which something was kept."""


def with_samples(practice: Practice, folder: Path, *, every: int) -> Practice:
    """Return the practice that also keeps episodes of its first step and of each `every`-th.

    So the last steps before looks at reality are among them. A step that comes twice, after a
    crash, replaces its file.
    """

    def remember(step: int, groups: Sequence[Group]) -> None:
        practice.remember(step, groups)
        if step == 0 or (step + 1) % every == 0:
            folder.mkdir(parents=True, exist_ok=True)
            lines = "".join(codec.encode(one) + "\n" for one in choose(groups))
            write_atomically(folder / f"step-{step + 1:05}.jsonl", lines)

    return replace(practice, remember=remember)


def choose(groups: Sequence[Group]) -> list[Trajectory]:
    """Return an episode that was won, one that was not, and one that the dream gave up."""
    found: dict[tuple[bool, bool], Trajectory] = {}
    for group in groups:
        for one in group.episodes:
            if one.error is None and one.steps:
                found.setdefault((one.success, ended_unknown(one)), one)
    return list(found.values())
