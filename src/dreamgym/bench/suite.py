"""What a suite is: cells of stages. A stage is one command with a run directory of its own.

Plain values: nothing is run here. A stage is named after all that it is made from, so two arms that
need the same stage have the same one, and it is run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dreamgym.types import digest

RESUMABLE = frozenset({"collect", "fit", "train"})
"""Commands that go on where they were killed; others begin again."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A file in the run directory of a stage."""

    stage: Stage
    name: str = ""

    def at(self, root: Path) -> Path:
        """Return where it lies."""
        return self.stage.folder(root) / self.name if self.name else self.stage.folder(root)


Word = str | Inside


@dataclass(frozen=True, slots=True)
class Stage:
    """One command."""

    name: str
    words: tuple[Word, ...]
    """Of the command line, without `--out`; what other stages made stands as `Inside`."""
    after: tuple[Stage, ...] = ()
    """Stages to wait for besides those that stand among the words."""
    key: str = field(init=False, compare=False)
    """Changes with its name, with the command and with everything that it is made from."""

    def __post_init__(self) -> None:
        """Work the key out, once: those of what it is made from are known by now."""
        plain = [
            f"{word.stage.key}/{word.name}" if isinstance(word, Inside) else word
            for word in self.words
        ]
        parts = [self.name, *plain, *(stage.key for stage in self.after)]
        object.__setattr__(self, "key", digest("\n".join(parts), size=4))

    @property
    def needs(self) -> tuple[Stage, ...]:
        """The stages that have to be finished first."""
        named = [word.stage for word in self.words if isinstance(word, Inside)]
        return tuple({stage.key: stage for stage in [*named, *self.after]}.values())

    def folder(self, root: Path) -> Path:
        """Return its run directory."""
        return root / f"{self.name}-{self.key}"

    def command(self, root: Path, *, resume: bool = False) -> list[str]:
        """Return the words of the command line."""
        words = [str(word.at(root)) if isinstance(word, Inside) else word for word in self.words]
        more = ["--resume"] if resume and self.words[0] in RESUMABLE else []
        return [*words, "--out", str(self.folder(root)), *more]

    def finished(self, root: Path) -> bool:
        """Say whether its result is there."""
        return (self.folder(root) / "result.json").is_file()

    def chain(self) -> Iterator[Stage]:
        """Yield all stages that it rests on, each once, and itself last."""
        seen: dict[str, Stage] = {}

        def visit(stage: Stage) -> None:
            if stage.key not in seen:
                for earlier in stage.needs:
                    visit(earlier)
                seen[stage.key] = stage

        visit(self)
        yield from seen.values()


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm in one environment under one seed."""

    env: str
    arm: str
    seed: int
    last: Stage
    """Its evaluation; all else follows from it."""
    start: Stage | None = None
    """The evaluation of what it began from, where the table tells of the rise."""
    audit: Stage | None = None
    """The audit of its dream, where the table tells of it."""
    gated: bool = False
    """Whether the start counts where that audit shuts the gate: nobody would have trained."""

    @property
    def key(self) -> str:
        """Changes with every stage behind it, and with how it counts; not with its name."""
        ends = [end.key if end is not None else "" for end in (self.last, self.start, self.audit)]
        return digest("\n".join([*ends, str(self.gated)]), size=6)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All that it needs, each once, none before what it needs itself."""
        found: dict[str, Stage] = {}
        for end in (self.last, self.start, self.audit):
            for stage in end.chain() if end is not None else ():
                found.setdefault(stage.key, stage)
        return tuple(found.values())

    def finished(self, root: Path) -> bool:
        """Say whether all of them are done."""
        return all(stage.finished(root) for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Suite:
    """An experiment."""

    name: str
    about: str
    cells: tuple[Cell, ...]
    compare: tuple[tuple[str, str], ...] = ()
    """Pairs of arms: the first minus the second."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, each once, none before what it needs."""
        found: dict[str, Stage] = {}
        for cell in self.cells:
            for stage in cell.stages:
                found.setdefault(stage.key, stage)
        return tuple(found.values())

    @property
    def separate(self) -> bool:
        """Whether columns have no stage in common: then all may be pooled as observations.

        One policy that is judged twice is no two observations, nor are two sizes of a policy that
        learnt from the same record.
        """
        column: dict[str, str] = {}
        return all(
            column.setdefault(stage.key, cell.env) == cell.env
            for cell in self.cells
            for stage in cell.stages
        )

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms in their order."""
        return tuple(dict.fromkeys(cell.arm for cell in self.cells))

    @property
    def envs(self) -> tuple[str, ...]:
        """The environments in their order."""
        return tuple(dict.fromkeys(cell.env for cell in self.cells))
