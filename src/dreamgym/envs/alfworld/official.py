"""The official games: a folder `json_2.1.1` with the splits of ALFWorld's own release.

    json_2.1.1/{train,valid_seen,valid_unseen}/<task>/<trial>/game.tw-pddl

Nothing else is read: what `traj_data.json` would say is in the game itself.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from dreamgym.envs.alfworld.game_text import GameText, make_game_text
from dreamgym.errors import ConfigError, EnvError
from dreamgym.types import Split, Task, digest

logger = logging.getLogger(__name__)

FOLDERS = {Split.TRAIN: "train", Split.DEV: "valid_seen", Split.TEST: "valid_unseen"}
LAYOUT = "json_2.1.1/{train,valid_seen,valid_unseen}/<task>/<trial>/game.tw-pddl"

_FILE = "game.tw-pddl"
_SOLVABLE = re.compile(rb'"solvable":\s*(true|false)')
_TAIL = 8192
"""`solvable` stands near the end; reading 330 MB to see it would take half a minute."""


class OfficialGames:
    """The games under one folder."""

    def __init__(self, env: str, folder: Path) -> None:
        self._env = env
        self._folder = folder
        self._listed: dict[Split, tuple[Task, ...]] = {}
        self.unsolvable: dict[Split, int] = {}
        """How many games of a split were left out since ALFWorld marks them as unsolvable."""
        if not any(next(self._files(split), None) for split in Split):
            found = "is not a folder" if not folder.is_dir() else "holds no games"
            raise ConfigError(
                f"alfworld/official: '{folder}' {found}. Expected {LAYOUT}: give the folder "
                "json_2.1.1 itself, as alfworld/official?path=/data/json_2.1.1, or set "
                "ALFWORLD_DATA to the folder that holds it."
            )

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """List the solvable games of a split, well mixed; none if the split is not there."""
        if split not in self._listed:
            self._listed[split] = self._list(split)
        return self._listed[split]

    def _list(self, split: Split) -> tuple[Task, ...]:
        files = list(self._files(split))
        solvable = [path for path in files if _is_solvable(path)]
        self.unsolvable[split] = len(files) - len(solvable)
        if self.unsolvable[split]:
            logger.info("%s: %d unsolvable games left out", split, self.unsolvable[split])
        keys = [path.parent.relative_to(self._folder).as_posix() for path in solvable]
        # By name, the first hundreds would all be of one task type.
        keys.sort(key=digest)
        return tuple(Task(f"alfworld/official#{key}", self._env, key, split) for key in keys)

    def read(self, task: Task) -> GameText:
        """Return the game of a task."""
        path = self._folder / task.key / _FILE
        try:
            game = json.loads(path.read_text(encoding="utf-8"))
            return make_game_text(
                game["pddl_domain"],
                game["grammar"],
                game["pddl_problem"],
                walkthrough=tuple(game.get("walkthrough") or ()),
            )
        except (OSError, ValueError, KeyError) as error:
            raise EnvError(f"{path} is not an ALFWorld game: {error!r}") from error

    def _files(self, split: Split) -> Iterator[Path]:
        return (self._folder / FOLDERS[split]).rglob(_FILE)


def find_folder(path: str) -> Path:
    """Return the folder of games: the one given or, without one, where ALFWorld keeps its own."""
    if path:
        return Path(path).expanduser()
    data = os.environ.get("ALFWORLD_DATA")
    if not data:
        raise ConfigError(
            "alfworld/official needs its games: alfworld/official?path=/data/json_2.1.1, or set "
            f"ALFWORLD_DATA to the folder that holds json_2.1.1. Expected {LAYOUT}. "
            "Without data, alfworld/generated makes problems by seed."
        )
    return Path(data).expanduser() / "json_2.1.1"


def _is_solvable(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        marks = _SOLVABLE.findall(file.read())
        if not marks:
            file.seek(0)
            marks = _SOLVABLE.findall(file.read())
    return bool(marks) and marks[-1] == b"true"
