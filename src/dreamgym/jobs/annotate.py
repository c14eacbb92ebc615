"""The annotate job: reasoning for recorded trajectories, by rule or by a teacher.

Each trajectory is stored as soon as its explanations are there, so whatever ends the job early, the
next call goes on with what is missing. One that the teacher cannot explain stays as it is, counted
and listed with the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dreamgym import __version__, build
from dreamgym.config import AnnotateConfig, RunConfig
from dreamgym.errors import ConfigError, LLMBudget, LLMDown, LLMRefused, did_you_mean
from dreamgym.experience.annotate import (
    RULE_DIGEST,
    TEACHER_DIGEST,
    Lesson,
    Taught,
    annotate_by_rule,
    is_annotated,
    teach,
)
from dreamgym.llm.breaker import EventSink
from dreamgym.llm.stack import StackedLLM
from dreamgym.replay import ExperienceStore
from dreamgym.runs import LineWriter, RunDir, read_json_lines
from dreamgym.types import Source, Split, Trajectory

DIARY = "annotated.jsonl"
"""In the run directory: which trajectory was annotated by whom, and a teacher's words on it."""
REFUSED_IN_A_ROW = 5
"""A teacher that refuses so many and has explained none is not what the settings mean."""
_WORDS_KEPT = 500


@dataclass(frozen=True, slots=True)
class Failed:
    """A trajectory that stays without explanations, and why."""

    id: str
    kind: str
    """The error's class name, such as `ReplyFormatError`."""
    message: str


@dataclass(frozen=True, slots=True)
class Annotating:
    """How far the job has come."""

    done: int
    total: int
    failed: int
    spent: Mapping[str, float]
    """The figures of the language model; empty where none is asked."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """What the job left behind."""

    store: Path
    annotator: str
    """Who explained: `rule`, or the model's name, with the digest of the rule or the prompt."""
    trajectories: int
    """Annotated in this run, before it was resumed too."""
    steps: int
    before: int
    """Had their explanations already."""
    failures: tuple[Failed, ...]
    spent: Mapping[str, float]
    seconds: float

    @property
    def failed_by_kind(self) -> dict[str, int]:
        """How many trajectories failed of what."""
        return dict(Counter(one.kind for one in self.failures).most_common())


async def run_annotate(
    config: RunConfig,
    run: RunDir,
    *,
    on_progress: Callable[[Annotating], None] = lambda state: None,
    on_llm: EventSink = lambda name, **details: None,
) -> Annotated:
    """Annotate what the settings ask for and is not annotated yet."""
    wanted, path = config.annotate, Path(config.replay.store)
    if not path.is_file():
        raise ConfigError(f"no experience store at {path}; make one with `dreamgym collect`")
    started = time.monotonic()
    llm = None
    if wanted.by == "teacher":
        llm = build.make_llm(config.llm, folder=run.path, listeners=(run.event, on_llm))
    try:
        with build.make_store(path, config.replay) as store:
            work = _Work(store, wanted, run, annotator=_annotator(llm))
            with work.diary:
                await _annotate(work, config, llm, on_progress)
                annotated = work.summary(path, llm, seconds=time.monotonic() - started)
    except (LLMDown, LLMBudget) as error:
        run.event("stopped", kind=type(error).__name__, message=str(error), **_figures(llm))
        raise
    finally:
        if llm is not None:
            await llm.close()
    run.result(result_of(config, annotated))
    run.event("finished", trajectories=annotated.trajectories, failed=len(annotated.failures))
    return annotated


def result_of(config: RunConfig, annotated: Annotated) -> dict[str, Any]:
    """Return what goes into `result.json`."""
    return {
        "command": "annotate",
        "by": config.annotate.by,
        "annotator": annotated.annotator,
        "env": config.annotate.env or None,
        "split": config.annotate.split or None,
        "version": __version__,
        "store": str(annotated.store),
        "trajectories": annotated.trajectories,
        "steps": annotated.steps,
        "had_reasoning": annotated.before,
        "failed": annotated.failed_by_kind,
        "failures": [
            {"id": one.id, "kind": one.kind, "message": one.message} for one in annotated.failures
        ],
        "llm": dict(annotated.spent),
        "seconds": round(annotated.seconds, 2),
    }


async def _annotate(
    work: _Work,
    config: RunConfig,
    llm: StackedLLM | None,
    on_progress: Callable[[Annotating], None],
) -> None:
    total = work.count()
    work.run.begin()
    on_progress(Annotating(0, total, 0, {}))
    if llm is None:
        stream = _by_rule(work.todo())
    else:
        stream = teach(
            llm,
            work.todo(),
            retries=config.annotate.retries,
            max_tokens=config.annotate.max_tokens,
            concurrency=config.llm.concurrency,
            skip=lambda trajectory: False,
            seed=work.seed,
            on_leftover=work.keep,
        )
    done = 0
    # Closed here and now: what is finished must be stored before the store is closed.
    async with aclosing(stream):
        async for taught in stream:
            work.take(taught)
            done += 1
            on_progress(Annotating(done, total, len(work.failures), _figures(llm)))


async def _by_rule(trajectories: Iterable[Trajectory]) -> AsyncGenerator[Taught, None]:
    for trajectory in trajectories:
        explained = annotate_by_rule(trajectory)
        yield Taught(explained, Lesson("", "", "", ()))
        await asyncio.sleep(0)  # Where an interrupt comes in.


@dataclass(slots=True)
class _Work:
    """What is to be annotated, and what was."""

    store: ExperienceStore
    wanted: AnnotateConfig
    run: RunDir
    annotator: str
    before: int = 0
    steps: int = 0
    ids: set[str] = field(default_factory=set)
    failures: list[Failed] = field(default_factory=list)
    diary: LineWriter = field(init=False)
    _earlier: frozenset[str] = frozenset()
    _tried: Counter[str] = field(default_factory=Counter)
    """How often each trajectory failed before the run was resumed."""
    _half: dict[str, Trajectory] = field(default_factory=dict)
    """Trajectories under way of which some steps have an explanation that must stay."""

    def __post_init__(self) -> None:
        """Read what the run did before it was resumed."""
        _check_env(self.store, self.wanted.env)
        for entry in read_json_lines(self.run.path / DIARY):
            self.steps += 0 if entry["id"] in self.ids else entry["steps"]
            self.ids.add(entry["id"])
        self._earlier = frozenset(self.ids)
        events = read_json_lines(self.run.path / "events.jsonl")
        self._tried.update(one["id"] for one in events if one["event"] == "annotation_failed")
        self.diary = LineWriter(self.run.path / DIARY)

    def count(self) -> int:
        """Return how many trajectories are to be annotated, and count those that need nothing."""
        self.before = sum(
            is_annotated(one) and one.id not in self._earlier for one in self._chosen()
        )
        if self.wanted.again:
            self.before = 0
        return sum(1 for _ in self.todo())

    def todo(self) -> Iterator[Trajectory]:
        """Yield what is to be annotated, in order of arrival."""
        if not self.wanted.limit:
            return self._missing()
        return islice(self._missing(), max(0, self.wanted.limit - len(self._earlier)))

    def _missing(self) -> Iterator[Trajectory]:
        for trajectory in self._chosen():
            if self.wanted.again:
                if trajectory.id not in self._earlier:
                    yield trajectory
            elif not is_annotated(trajectory):
                if any(step.reasoning for step in trajectory.steps):
                    self._half[trajectory.id] = trajectory
                yield trajectory

    def _chosen(self) -> Iterator[Trajectory]:
        found = self.store.trajectories(
            # A dream's own steps come with the reasoning that made them.
            source=Source.REAL,
            split=Split(self.wanted.split) if self.wanted.split else None,
            env=self.wanted.env or None,
        )
        return (trajectory for trajectory in found if trajectory.steps)

    def seed(self, trajectory: Trajectory) -> int | None:
        """Return what makes a second try another question, or the cache would repeat the first."""
        return self._tried[trajectory.id] or None

    def take(self, taught: Taught) -> None:
        """Store an explained trajectory, or take note of why it is not."""
        if taught.lesson is None:
            self._fail(taught.trajectory, taught.problem)
        else:
            self.keep(taught)

    def keep(self, taught: Taught) -> None:
        """Store a trajectory if it was explained."""
        trajectory, lesson = taught.trajectory, taught.lesson
        if lesson is None:
            return
        half = self._half.pop(trajectory.id, None)
        if half is not None:
            pairs = zip(half.steps, trajectory.steps, strict=True)
            trajectory = half.with_reasoning(tuple(a.reasoning or b.reasoning for a, b in pairs))
        self.store.update(trajectory)
        words = {
            "plan": lesson.plan,
            "success_mode": lesson.success_mode,
            "failure_mode": lesson.failure_mode,
        }
        told = {name: text for name, text in words.items() if text}
        entry = {"id": trajectory.id, "steps": len(trajectory.steps), "by": self.annotator}
        self.diary.write({**entry, **told})
        self.ids.add(trajectory.id)
        self.steps += len(trajectory.steps)

    def _fail(self, trajectory: Trajectory, problem: str) -> None:
        kind, _, message = problem.partition(": ")
        self.failures.append(Failed(trajectory.id, kind, message[:_WORDS_KEPT]))
        self.run.event("annotation_failed", id=trajectory.id, kind=kind, message=message)
        refused = all(one.kind == LLMRefused.__name__ for one in self.failures)
        if refused and len(self.failures) == REFUSED_IN_A_ROW and not self.ids:
            raise LLMRefused(f"the server refused every request so far: {message}")

    def summary(self, path: Path, llm: StackedLLM | None, *, seconds: float) -> Annotated:
        """Return what the job left behind."""
        return Annotated(
            store=path,
            annotator=self.annotator,
            trajectories=len(self.ids),
            steps=self.steps,
            before=self.before,
            failures=tuple(self.failures),
            spent=_figures(llm),
            seconds=seconds,
        )


def _check_env(store: ExperienceStore, env: str) -> None:
    known = {group.env for group in store.stats()}
    if env and env not in known:
        raise ConfigError(f"{store.path} holds nothing of '{env}'.{did_you_mean(env, known)}")


def _annotator(llm: StackedLLM | None) -> str:
    return f"rule {RULE_DIGEST}" if llm is None else f"{llm.model} {TEACHER_DIGEST}"


def _figures(llm: StackedLLM | None) -> dict[str, float]:
    return llm.metrics() if llm is not None else {}
