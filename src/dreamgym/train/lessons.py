"""From recorded trajectories to token sequences that an experience model learns from.

A lesson is a step as the dream will meet it: prompt with references of other trajectories, then the
right answer. The prompt is only read; reasoning, next state and flags are learnt, each under its
own label, so that their losses can be told apart.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from dreamgym.experience.annotate import annotate_by_rule, is_annotated
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.prompt import MARKS, Style, Switches, step_answer_text, step_prompt
from dreamgym.experience.recall import OWN_SLOTS, TaskRecord, joined
from dreamgym.experience.sample import Sample as Lesson
from dreamgym.experience.sample import samples
from dreamgym.models.samples import Sample
from dreamgym.models.tokenizer import Tokenizer
from dreamgym.protocols import Reference
from dreamgym.replay.lookup import Query
from dreamgym.train.task_lessons import TaskLesson, task_question
from dreamgym.types import Message, Trajectory, Transition, derive_seed

SPANS = {"reasoning": 1.0, "state": 1.0, "flags": 1.0}
"""What is learnt of steps, with the weights of the losses."""
TASK_SPANS = {**SPANS, "task": 0.5}
"""The same where tasks are learnt as well. Much of a task is free to be otherwise, so that its loss
stays high whatever is learnt; at full weight that noise is felt by the steps."""
_LABEL = {name: number for number, name in enumerate(TASK_SPANS, start=1)}
_QUERIES_AT_ONCE = 256
_WORD = re.compile(r"\w+")
_MEASURED = 256
"""Lessons that are made to see how long they are."""
_SEAM = re.compile("(" + "|".join(map(re.escape, MARKS)) + ")")
_FULL_SEAM = re.compile(r"(?is)(<think>.*?</think>|<(?:edit|next_state)>.*?</(?:edit|next_state)>)")


class Memory(Protocol):
    """Answers many look-ups at once, and knows what is on record about a task."""

    def search_batch(self, queries: Sequence[Query], *, k: int) -> Sequence[tuple[Reference, ...]]:
        """Return the k nearest steps for each query."""

    def recall(
        self, task_id: str, *, exclude_trajectory: str | None = None
    ) -> tuple[Transition, ...]:
        """Return all real steps of the task."""


_SPARE = 4
"""Times as many steps are looked up where some are to be forgotten."""


def make_lessons(
    trajectories: Iterable[Trajectory],
    *,
    memory: Memory | None,
    references: int,
    forget: float = 0.0,
    thin: float = 0.0,
    goals: GoalNeeds | None = None,
    only: Collection[str] | None = None,
) -> Iterator[Lesson]:
    """Yield every step of the trajectories with what memory says about steps like it.

    Steps without reasoning are explained by rule first.

    Args:
        trajectories: what is learnt from.
        memory: where references come from, never from the step's own trajectory.
        references: how many.
        forget: the share of steps that are asked without references of their own task. Where other
            episodes of a task have won, an answer can be copied; where none has, it must be
            inferred, and a model that always could copy never learns to.
        thin: the share of steps whose references of their own task come from a part of its
            episodes, drawn for each. The more episodes a task has, the surer the very same step is
            among them; of a task that is new, something merely similar is.
        goals: what goals need, where hints are to tell.
        only: the ids of the steps that are wanted; without it, all are.
    """
    for told in _explained(trajectories):
        if memory is None or not references:
            for trajectory in told:
                yield from samples(trajectory, goals=goals, only=only)
            continue
        steps = [
            one
            for trajectory in told
            for one in trajectory.transitions()
            if only is None or one.id in only
        ]
        queries = [Query(one.state, one.action, one.trajectory_id, env=one.env) for one in steps]
        # What is forgotten leaves its place to steps of other tasks, as it would in a new task.
        spare = _SPARE if forget or thin else 1
        found = memory.search_batch(queries, k=spare * references)
        others = {one.id: hits for one, hits in zip(steps, found, strict=True)}
        for trajectory in told:
            shown = memory.recall(trajectory.task.id, exclude_trajectory=trajectory.id)
            record = TaskRecord(shown)
            look_up = partial(_references, record, others, references, (forget, thin))
            yield from samples(trajectory, look_up=look_up, record=record, goals=goals, only=only)


def _references(
    record: TaskRecord,
    others: Mapping[str, tuple[Reference, ...]],
    k: int,
    shares: tuple[float, float],
    one: Transition,
) -> tuple[Reference, ...]:
    forget, thin = shares
    drawn = _draw("forget", one.id)
    if drawn >= forget + thin:
        own = record.similar(one.state, one.action, most=min(OWN_SLOTS, k))
        return joined(own, others[one.id][:k], k=k)
    share = 0.0 if drawn < forget else _draw("share", one.id)

    def kept(step: Transition) -> bool:
        return share > 0 and _draw("kept", one.id, step.trajectory_id) < share

    alike = [
        found
        for found in others[one.id]
        if found.transition.task_id != one.task_id or kept(found.transition)
    ]
    own = record.similar(one.state, one.action, most=min(OWN_SLOTS, k), only=kept)
    return joined(own, alike, k=k)


def _draw(*words: str) -> float:
    """Return a number from 0 to 1 that depends on the words alone."""
    return derive_seed(*words) % 10_000 / 10_000


def _explained(trajectories: Iterable[Trajectory]) -> Iterator[list[Trajectory]]:
    """Yield trajectories with reasoning, so many together that looking things up pays."""
    batch: list[Trajectory] = []
    for one in trajectories:
        batch.append(one if is_annotated(one) else annotate_by_rule(one))
        if sum(len(trajectory.steps) for trajectory in batch) >= _QUERIES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def is_hard(one: Transition) -> bool:
    """Say whether a step was refused or had no effect: what small dreams get wrong."""
    return one.refused or one.state == one.next_state


def with_hard_share(
    steps: Sequence[Transition], share: float, *, seed: int
) -> Sequence[Transition]:
    """Return steps of which that share is hard, by leaving out some of the other kind."""
    hard = [one for one in steps if is_hard(one)]
    easy = [one for one in steps if not is_hard(one)]
    if share <= 0 or not hard or not easy:
        return steps
    rng = random.Random(derive_seed(seed, "hard share"))
    if len(hard) / len(steps) > share:
        hard = rng.sample(hard, max(1, round(len(easy) * share / (1 - share))))
    else:
        easy = rng.sample(easy, max(1, round(len(hard) * (1 - share) / share)))
    kept = {one.id for one in (*hard, *easy)}
    return [one for one in steps if one.id in kept]


def with_ending_share(
    steps: Sequence[Transition], share: float, *, seed: int
) -> Sequence[Transition]:
    """Return steps of which at least that share ends an episode, by leaving out others."""
    others = [one for one in steps if not one.done]
    endings = len(steps) - len(others)
    wanted = round(endings * (1 - share) / share) if share > 0 else len(others)
    if not endings or wanted >= len(others):
        return steps
    rng = random.Random(derive_seed(seed, "ending share"))
    kept = {one.id for one in rng.sample(others, max(1, wanted))}
    return [one for one in steps if one.done or one.id in kept]


def as_many_as_used(
    steps: Sequence[Transition],
    make: Callable[[Sequence[Transition]], Iterable[Lesson]],
    *,
    tokens: int,
    switches: Switches,
    seed: int,
) -> Sequence[Transition]:
    """Return a draw of steps, as many as so many tokens of training get to see; at 0, all.

    A record may hold ten times that, and making a lesson of a step takes nearly as long as learning
    it. Some are made to see how long they are, in words; a word is one token or more.
    """
    if not tokens or len(steps) <= _MEASURED:
        return steps
    rng = random.Random(derive_seed(seed, "as many as used"))
    few = list(make(rng.sample(steps, _MEASURED)))
    texts = lesson_texts(few, style=Style.COMPACT, switches=switches)
    words = sum(len(_WORD.findall(text)) for text in texts) / len(few)
    if len(steps) <= (most := max(_MEASURED, math.ceil(tokens / words))):
        return steps
    kept = {one.id for one in rng.sample(steps, most)}
    return [one for one in steps if one.id in kept]


def lesson_texts(
    lessons: Iterable[Lesson | TaskLesson], *, style: Style, switches: Switches
) -> Iterator[str]:
    """Yield what a vocabulary has to spell."""
    for lesson in lessons:
        prompt, answer = _question(lesson, style=style, switches=switches)
        if isinstance(prompt, str):
            yield prompt
        yield answer


def _question(
    lesson: Lesson | TaskLesson, *, style: Style, switches: Switches
) -> tuple[str | tuple[Message, ...], str]:
    if isinstance(lesson, TaskLesson):
        return task_question(lesson, style=style)
    prompt = step_prompt(lesson.query, style=style, switches=switches)
    action = lesson.query.action
    return prompt, step_answer_text(lesson.answer, action=action, style=style, switches=switches)


def encode(
    lesson: Lesson | TaskLesson, tokenizer: Tokenizer, *, style: Style, switches: Switches
) -> Sample:
    """Return a lesson as tokens with labels."""
    prompt, answer = _question(lesson, style=style, switches=switches)
    ids = list(tokenizer.prompt_ids(prompt))
    labels = [0] * len(ids)
    if isinstance(lesson, TaskLesson):
        pieces, last = iter([(answer, "task")]), "task"
    else:
        pieces, last = _pieces(answer, style=style, reasoning=switches.reasoning), "flags"
    for text, name in pieces:
        tokens = tokenizer.encode(text)
        ids += tokens
        labels += [_LABEL[name]] * len(tokens)
    end = min(tokenizer.end_ids)
    if ids[-1] != end:
        ids.append(end)
        labels.append(_LABEL[last])
    return Sample(tuple(ids), tuple(labels))


def packed(samples: Sequence[Sample], *, length: int) -> list[Sample]:
    """Put short samples one after the other, up to a length.

    Lessons about tasks are shorter than those about steps. Sorted by length they would fill batches
    of their own, and a step would be unlearnt for a while; packed, every batch has some of them.
    """
    packs: list[Sample] = []
    for one in samples:
        if packs and len(packs[-1].ids) + len(one.ids) <= length:
            packs[-1] = Sample(packs[-1].ids + one.ids, packs[-1].spans + one.spans)
        else:
            packs.append(one)
    return packs


def _pieces(answer: str, *, style: Style, reasoning: bool) -> Iterator[tuple[str, str]]:
    """Cut an answer where its kinds of text meet; a cut never falls inside a token."""
    if style is Style.FULL:
        for piece in filter(None, _FULL_SEAM.split(answer)):
            told = piece.startswith("<think>")
            yield piece, "reasoning" if told else "state" if piece.startswith("<") else "flags"
        return
    name = "reasoning" if reasoning else "flags"
    for piece in filter(None, _SEAM.split(answer)):
        if piece in ("<ok>", "<refused>", "<win>", "<lose>", "<cont>", "<reward>"):
            yield piece, "flags"
            name = "flags" if piece == "<reward>" else "state"
        else:
            yield piece, name
