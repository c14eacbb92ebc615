"""A few disagreements for people to read: the worst sort first, and no sort without a voice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dreamgym.audit.drift import first_difference
from dreamgym.audit.one_step import StepCheck
from dreamgym.audit.report import Disagreement
from dreamgym.audit.retell import Pair


def choose_examples(
    checks: Sequence[StepCheck], retold: Sequence[Pair], played: Sequence[Pair], *, most: int
) -> tuple[Disagreement, ...]:
    """Return up to `most` steps at which dream and reality part, taking turns between the sorts."""
    answered = [check for check in checks if check.answer is not None]
    sorts = [
        _partings(played, "on-policy", false_wins=True),
        _from_steps(one for one in answered if one.told and one.told.success > one.real.success),
        _from_steps(one for one in answered if one.told and one.told.refused < one.real.refused),
        _partings(retold, "closed loop", false_wins=False),
        _from_steps(one for one in answered if one.told and one.told.refused > one.real.refused),
        _from_steps(one for one in answered if not one.same_state),
    ]
    chosen: dict[tuple[str, str], Disagreement] = {}
    for turn in range(most):
        for sort in sorts:
            one = next(islice(sort, 1), None)
            if one is not None and len(chosen) < most:
                chosen.setdefault((one.state, one.action), one)
        if turn and len(chosen) >= most:
            break
    return tuple(chosen.values())


def _from_steps(checks: Iterable[StepCheck]) -> Iterator[Disagreement]:
    for check in checks:
        told, real = check.told, check.real
        if told is not None:
            yield Disagreement(
                where="one-step",
                task=real.task_id,
                step=real.index + 1,
                goal=real.goal,
                state=real.state,
                action=real.action,
                told=told.next_state,
                told_flags=_flags(told.refused, told.done, told.success),
                true=real.next_state,
                true_flags=_flags(real.refused, real.done, real.success),
                reasoning=f"[{told.origin}] {told.reasoning}",
            )


def _partings(pairs: Iterable[Pair], where: str, *, false_wins: bool) -> Iterator[Disagreement]:
    for pair in pairs:
        first = None if pair.failed else first_difference(pair)[0]
        wanted = pair.dream.success > pair.real.success or not false_wins
        if first is None or not wanted:
            continue
        told, true = pair.dream.steps[first], pair.real.steps[first]
        before = pair.real.steps[first - 1].result.observation if first else pair.real.opening
        ends = f"in the end the dream says {_end(pair.dream.success)}, reality "
        yield Disagreement(
            where=f"{where}: {ends}{_end(pair.real.success)}",
            task=pair.real.task.id,
            step=first + 1,
            goal=pair.real.task.goal,
            state=before.text,
            action=true.action.text,
            told=told.result.observation.text,
            told_flags=_flags(told.result.refused, told.result.terminated, told.result.success),
            true=true.result.observation.text,
            true_flags=_flags(true.result.refused, true.result.terminated, true.result.success),
            reasoning=told.reasoning or "",
        )


def _end(success: bool) -> str:
    return "achieved" if success else "not achieved"


def _flags(refused: bool, done: bool, success: bool) -> str:
    names = {"refused": refused, "done": done, "success": success}
    return ", ".join(name for name, on in names.items() if on) or "carried out, goes on"
