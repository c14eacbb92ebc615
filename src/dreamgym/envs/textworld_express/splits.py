"""Which seeds make up train, dev and test, so that held out means held out.

The engine's own folds are not enough. Coin, MapReader and the kitchens of CookingWorld are the same
in all three, starts repeat within a fold, and TWC's folds share starts that show no object. So:

- Splits use seeds of their own: train from 0, dev from 10000, test from 20000, as the engine does.
- Every first state (goal and mapped text) belongs to one split, drawn by its hash: three fifths to
  train, one fifth each to dev and test. A seed whose first state belongs elsewhere is passed over.
  Not so where the engine's folds have objects of their own and the first state shows one: no other
  split can have it. Where it always does (all but Coin, MapReader, CookingWorld and TWC), listing
  train costs nothing.
- Dev and test hold no task twice. Two seeds are the same task if the whole walk of the expert is
  the same: in Coin or SimonSays most of a task is hidden behind an equal first state.
- A split is never padded: when the seeds run out, it is smaller than asked for.

Why draw by hash, and not keep the test seeds whose first state training did not show? Because what
training did not show is rare, and the rare is not like the rest: in Coin with six rooms 93 % of the
starts unseen among 1000 have the coin in the first room, against 17 % of all. By the draw it is
10 %, since such tasks are short and often the same; and test stays what it is when train grows.

Spec parameters: `train`, `dev`, `test` (how many tasks at most), `holdout=seed` (seeds only, first
states may be shared), `fold=train` (all splits from one engine fold: other starts, same words; TWC
has no object in two folds).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dreamgym.envs.textworld_express.games import GameSettings
from dreamgym.envs.textworld_express.mapper import MAPPER
from dreamgym.errors import ConfigError, EnvCrash, EnvError
from dreamgym.files import cache_dir, write_atomically
from dreamgym.types import Split, digest

logger = logging.getLogger(__name__)

SCHEME = "1"
"""Raise it whenever the same settings may give other tasks."""

FIRST_SEED = {Split.TRAIN: 0, Split.DEV: 10_000, Split.TEST: 20_000}
SEEDS = 10_000
"""How many seeds a split has."""
PATIENCE = 300
"""After how many seeds in a row without a new task a split is taken to be exhausted."""

_DRAW = (Split.TRAIN, Split.TRAIN, Split.TRAIN, Split.DEV, Split.TEST)


@dataclass(frozen=True, slots=True)
class Start:
    """How a task begins."""

    state: str
    """Goal and first state."""
    own: bool
    """It shows an object that no other split can have."""


Walk = Callable[[str, int], str]
"""Given a fold and a seed: a digest of all that the expert sees on its way."""


def fold_of(settings: GameSettings, split: Split) -> str:
    """Name the engine's fold that a split is made from."""
    return split.value if settings.fold == "own" else settings.fold


def owner(first_state: str) -> Split:
    """Return the split that a first state belongs to."""
    return _DRAW[int(digest(first_state), 16) % len(_DRAW)]


def seeds_of(
    settings: GameSettings,
    split: Split,
    *,
    version: str,
    start: Callable[[str, int], Start],
    walk: Walk,
) -> tuple[int, ...]:
    """List the seeds of a split, from the cache if they were ever listed before."""
    count, first = settings.counts[split], FIRST_SEED[split]
    plain = settings.holdout == "seed" or (split is Split.TRAIN and settings.folds_apart)
    if plain and settings.game != "mapreader":
        return tuple(range(first, first + count))
    fold = fold_of(settings, split)
    what = (settings.game, settings.engine_params, settings.fold, split.value, count)
    key = " ".join(map(str, (SCHEME, version, MAPPER, settings.holdout, *what)))
    found = _cached(key)
    if found is None:
        found = tuple(islice(_scan(split, fold, start=start, walk=walk, plain=plain), count))
        _remember(key, found)
    return found


def _scan(
    split: Split, fold: str, *, start: Callable[[str, int], Start], walk: Walk, plain: bool
) -> Iterator[int]:
    """Yield the seeds of a split one by one, until they seem to be exhausted."""
    repeats = _Repeats(fold, walk)
    last = FIRST_SEED[split]
    problem: EnvError | None = None
    for seed in range(last, last + SEEDS):
        if seed - last > PATIENCE:
            break
        try:
            begin = start(fold, seed)
        except EnvCrash:
            raise
        except EnvError as error:  # MapReader finds no two rooms far enough apart in some maps.
            problem = error
            continue
        if not (plain or begin.own) and owner(begin.state) is not split:
            continue
        if plain or split is Split.TRAIN or repeats.is_new(begin.state, seed):
            last = seed
            yield seed
    if last == FIRST_SEED[split] and problem is not None:
        raise ConfigError(f"no game can be made with these parameters: {problem}") from problem


class _Repeats:
    """Tells the tasks of a split apart; asks for walks only where first states are equal."""

    def __init__(self, fold: str, walk: Walk) -> None:
        self._fold = fold
        self._walk = walk
        self._first: dict[str, int] = {}
        self._walks: dict[str, set[str]] = {}

    def is_new(self, state: str, seed: int) -> bool:
        """Whether no earlier task is the same as this one."""
        if state not in self._first:
            self._first[state] = seed
            return True
        earlier = self._walks.setdefault(state, {self._walk(self._fold, self._first[state])})
        count = len(earlier)
        earlier.add(self._walk(self._fold, seed))
        return len(earlier) > count


def _file(key: str) -> Path:
    return cache_dir("textworld_express") / f"{digest(key)}.json"


def _cached(key: str) -> tuple[int, ...] | None:
    try:
        stored = json.loads(_file(key).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(stored, dict) or stored.get("key") != key:
        return None
    return tuple(stored["seeds"])


def _remember(key: str, seeds: tuple[int, ...]) -> None:
    try:
        write_atomically(_file(key), json.dumps({"key": key, "seeds": seeds}))
    except OSError as error:
        logger.warning("the list of tasks is not cached: %s", error)
