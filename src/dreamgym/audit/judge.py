"""A language model as the judge of dreamed steps: four criteria, 0 to 2, higher is better.

The paper's rubric (its appendix C.4): consistency, diversity, informativeness, and hallucination
(2 means none). The prompt and the parser of its answer stand here together. A verdict that cannot
be read is counted and left out; it is never a zero.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dreamgym.audit.interval import Figure, ratio
from dreamgym.errors import LLMBudget, LLMDown, LLMError
from dreamgym.in_order import in_order
from dreamgym.llm.reply import ask
from dreamgym.protocols import LLM
from dreamgym.types import Message, Request, digest

CRITERIA = ("causal_consistency", "diversity", "informativeness", "hallucination")

SYSTEM = """\
You judge a simulator of an environment that an agent acts in. You are shown the agent's task, the \
state before an action, the action, and the next state as the simulator predicts it. Score the \
predicted next state on four criteria, each 0, 1 or 2; higher is better on all four.

causal_consistency: do the changes follow from the action?
  2 all expected changes are there and are caused by the action
  1 small gaps or small unrelated changes
  0 the next state is not connected to the action
diversity: does the state change as it should?
  2 a real and coherent change, or rightly none
  1 a superficial change
  0 no change where one is due, or an incoherent jump
informativeness: is the next state of use to the agent?
  2 detailed, relevant and consistent with itself
  1 sparse
  0 useless
hallucination: are success and failure told truly?
  2 success, failure or an empty result is properly signalled
  1 it is ambiguous
  0 a success is made up, or a failure is ignored

Answer with JSON alone, in exactly this form:
{"rubric_scores": {"causal_consistency": 2, "diversity": 2, "informativeness": 2, \
"hallucination": 2}}"""

JUDGE_DIGEST = digest(SYSTEM)


@dataclass(frozen=True, slots=True)
class Case:
    """One dreamed step to be judged."""

    cluster: str
    """The trajectory that it belongs to."""
    goal: str
    state: str
    action: str
    predicted: str
    ending: str
    """How the simulator says that it ended, in words."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Four scores from 0 to 2."""

    causal_consistency: int
    diversity: int
    informativeness: int
    hallucination: int


def judge_prompt(case: Case) -> tuple[Message, ...]:
    """Return the prompt that asks for a verdict."""
    shown = (
        f"Task: {' '.join(case.goal.split())}\n\n"
        f"State before:\n{case.state}\n\n"
        f"Action: {' '.join(case.action.split())}\n\n"
        f"Predicted next state:\n{case.predicted}\n\n"
        f"The simulator says: {case.ending}"
    )
    return Message("system", SYSTEM), Message("user", shown)


def read_verdict(text: str) -> Verdict:
    """Read a verdict. Raises `ValueError` that tells the judge what is wrong with it."""
    scores = _scores(_only_json(text))
    missing = [name for name in CRITERIA if name not in scores]
    if missing:
        raise ValueError(f"the score of {', '.join(missing)} is missing")
    return Verdict(**{name: _score(name, scores[name]) for name in CRITERIA})


def _only_json(text: str) -> object:
    rest = re.sub(r"(?is)<think>.*?</think>", "", text)
    fenced = re.search(r"(?s)```(?:json)?\s*(.*?)```", rest)
    inner = fenced[1] if fenced else rest
    start, end = inner.find("{"), inner.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object in the answer")
    try:
        return json.loads(inner[start : end + 1], object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"the answer is not JSON: {error.msg} at {error.pos}") from error


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is given twice")
    return dict(pairs)


def _scores(plain: object) -> dict[str, object]:
    if isinstance(plain, dict) and isinstance(plain.get("rubric_scores"), dict):
        found: dict[str, object] = plain["rubric_scores"]
        return found
    raise ValueError('the answer has no object "rubric_scores"')


def _score(name: str, value: object) -> int:
    # True is an int to Python, but no score; 2.0 is one, 1.5 is not.
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1, 2):
        return int(value)
    raise ValueError(f"{name} is {value!r}; it must be 0, 1 or 2")


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judge said, criterion by criterion."""

    cases: int
    unread: int
    """Verdicts that could not be had or read; in no mean."""
    scores: tuple[tuple[str, Figure], ...]
    """The mean of each criterion, 0 to 2."""

    def plain(self) -> dict[str, object]:
        """Return the report for a JSON file."""
        means = {name: figure.plain() for name, figure in self.scores}
        return {"cases": self.cases, "unread": self.unread, "prompt": JUDGE_DIGEST, **means}


async def judge_steps(
    llm: LLM,
    cases: Sequence[Case],
    *,
    concurrency: int = 16,
    retries: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Judged:
    """Ask for a verdict on each case."""

    async def one(case: Case) -> tuple[Case, Verdict | None]:
        request = Request(judge_prompt(case), max_tokens=200)
        try:
            return case, (await ask(llm, request, read_verdict, retries=retries)).value
        except (LLMBudget, LLMDown):
            raise
        except LLMError:
            return case, None

    jobs = [partial(one, case) for case in cases]
    found: list[tuple[Case, Verdict | None]] = []
    async for verdict in in_order(jobs, concurrency=concurrency):
        found.append(verdict)
        on_progress(len(found))
    return sum_up_verdicts(found)


def sum_up_verdicts(found: Sequence[tuple[Case, Verdict | None]]) -> Judged:
    """Return the mean scores of the verdicts that could be read."""
    read = [(case.cluster, verdict) for case, verdict in found if verdict is not None]
    return Judged(
        cases=len(found),
        unread=len(found) - len(read),
        scores=tuple(
            (name, _mean([(who, getattr(v, name)) for who, v in read])) for name in CRITERIA
        ),
    )


def _mean(scores: Sequence[tuple[str, int]]) -> Figure:
    # Halved, so that the interval of a share applies, and doubled again.
    half = ratio((who, score / 2.0, 1) for who, score in scores)
    return Figure(half.mean * 2, half.low * 2, half.high * 2, half.count)
