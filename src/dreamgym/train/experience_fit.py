"""Fit an experience model: lessons in, a folder with weights and vocabulary out (paper, Eq. 5).

Only real steps of the training split are learnt. Other splits may lie in the same memory and be
retrieved, as a dream will retrieve them; their answers never reach a weight.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dreamgym.errors import ConfigError
from dreamgym.experience.placeholders import PLACEHOLDERS
from dreamgym.experience.prompt import MARKS, Style, Switches
from dreamgym.experience.sample import Sample as Lesson
from dreamgym.models.causal import CausalLM
from dreamgym.models.load import load_model, load_tokenizer
from dreamgym.models.requirement import torch
from dreamgym.models.samples import Sample
from dreamgym.models.sft import fit
from dreamgym.models.sft_plan import SftPlan, SftProgress, SftResult
from dreamgym.models.tiny import PRESETS, make_tiny
from dreamgym.models.tokenizer import END, Tokenizer, train_word_tokenizer
from dreamgym.train.lessons import encode, lesson_texts, packed
from dreamgym.train.task_lessons import TaskLesson
from dreamgym.types import Trajectory, derive_seed

T = TypeVar("T")
MOST_HELD_OUT = 600
"""Steps on the held-out curve: enough to see a difference of a few per cent, and quick."""


@dataclass(frozen=True, slots=True)
class Pupil:
    """What learns, before it has learnt."""

    model: CausalLM
    tokenizer: Tokenizer
    style: Style


def split_off(
    trajectories: Iterable[Trajectory], *, share: float, seed: int, most: int = 0
) -> tuple[list[Trajectory], list[Trajectory]]:
    """Return what to learn from and what to hold out, by task; `most` caps the learnt steps."""
    learnt: list[Trajectory] = []
    held: list[Trajectory] = []
    steps = 0
    for one in trajectories:
        if derive_seed(seed, "held out", one.task.id) % 10_000 < share * 10_000:
            held.append(one)
        elif not most or steps + len(one.steps) <= most:
            learnt.append(one)
            steps += len(one.steps)
    return learnt, held


def make_pupil(
    name: str,
    lessons: Sequence[Lesson | TaskLesson],
    *,
    switches: Switches,
    vocabulary: int,
    seed: int,
    also: Iterable[str] = (),
) -> Pupil:
    """Make a small model with a vocabulary of these lessons, or load a model folder.

    `also` are texts that the model will meet though no lesson has them.
    """
    if name in PRESETS:
        texts = lesson_texts(lessons, style=Style.COMPACT, switches=switches)
        tokenizer = train_word_tokenizer(
            [*texts, *also],
            special=[mark for mark in (*MARKS, *PLACEHOLDERS) if mark != END],
            vocab_size=vocabulary,
        )
        return Pupil(make_tiny(name, tokenizer.vocab_size, seed=seed), tokenizer, Style.COMPACT)
    folder = Path(name)
    if not (folder / "config.json").is_file():
        known = ", ".join(PRESETS)
        raise ConfigError(f"fit.model '{name}' is neither one of {known} nor a model folder")
    own = load_tokenizer(folder)
    ours = len(own.encode(MARKS[0])) == 1
    return Pupil(load_model(folder), own, Style.COMPACT if ours else Style.FULL)


def learn(
    pupil: Pupil,
    lessons: Sequence[Lesson | TaskLesson],
    *,
    held_out: Sequence[Lesson | TaskLesson],
    switches: Switches,
    plan: SftPlan,
    folder: Path | None = None,
    threads: int = 1,
    on_progress: Callable[[SftProgress], None] | None = None,
) -> SftResult:
    """Train the pupil in place; checkpoints go to `folder`, and training goes on from there."""
    torch.set_num_threads(threads)

    def tokens(part: Sequence[Lesson | TaskLesson]) -> list[Sample]:
        style = pupil.style
        return [encode(one, pupil.tokenizer, style=style, switches=switches) for one in part]

    steps, tasks = _by_kind(lessons)
    learnt = tokens(steps)
    usual = statistics.median_low(len(one.ids) for one in learnt)
    return fit(
        pupil.model,
        [*learnt, *packed(tokens(tasks), length=usual)],
        plan=plan,
        held_out=tokens(held_out),
        folder=folder,
        on_progress=on_progress,
    )


def _by_kind(lessons: Sequence[Lesson | TaskLesson]) -> tuple[list[Lesson], list[TaskLesson]]:
    steps = [one for one in lessons if isinstance(one, Lesson)]
    return steps, [one for one in lessons if isinstance(one, TaskLesson)]


def spread(found: Sequence[T], most: int) -> list[T]:
    """Return at most so many, evenly taken."""
    if len(found) <= most:
        return list(found)
    return [found[number * len(found) // most] for number in range(most)]
