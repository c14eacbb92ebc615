"""When a dream says that it does not know: pessimism by likeness, by confidence, by disagreement.

Not knowing ends an episode without reward, so each rule trades steps for trust; the audit counts
what each of them took. A rule's name stands first in its words, as in `unsure: the reply is ...`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from dreamgym.errors import ReplyFormatError
from dreamgym.experience.ledger import Pages
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import StepQuery
from dreamgym.protocols import LLM
from dreamgym.states import body_of, page_name
from dreamgym.types import Completion, Origin, Prediction, Request, SampledTokens

FLAGS = ("<ok>", "<refused>", "<win>", "<lose>", "<cont>")
"""The marks of the compact style that say what an action comes to."""

Doubt = Callable[[StepQuery, Prediction], str]
"""Returns why a prediction is not to be trusted, or nothing."""


class FlagsOnly:
    """A language model of which only certain tokens say how sure it is.

    A reply is as sure as its least sure token. Of a long description that token is often a matter
    of taste; whether an action is refused or a task achieved is not.
    """

    def __init__(self, llm: LLM, ids: frozenset[int]) -> None:
        self._llm = llm
        self._ids = ids

    async def complete(self, request: Request) -> Completion:
        """Answer one request; of its tokens the others are left out."""
        completion = await self._llm.complete(request)
        if completion.tokens is None:
            return completion
        pairs = zip(completion.tokens.ids, completion.tokens.logprobs, strict=True)
        kept = [(number, logprob) for number, logprob in pairs if number in self._ids]
        ids, logprobs = tuple(one for one, _ in kept), tuple(one for _, one in kept)
        return replace(completion, tokens=SampledTokens(ids, logprobs))

    async def close(self) -> None:
        """Close the model."""
        await self._llm.close()


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """Another model, such as one fitted with another seed, that must say the same."""

    model: ExperienceModel
    states: bool = True
    """Whether the next states must agree as well, apart from what was said; else the flags only."""


@dataclass(frozen=True, slots=True)
class Pessimism:
    """When the dream says that it does not know. All off by default."""

    min_similarity: float = 0.0
    """The nearest reference must be at least this similar; without references, no answer counts."""
    min_confidence: float = 0.0
    """The reply's least sure token must be at least this probable, where the back end says."""
    known_pages: bool = False
    """A new page must come from the ledger or from a reference of the same task."""
    known_wins: bool = False
    """A success must be shown by a reference in which the very same action achieved its task."""
    known_losses: bool = False
    """An action that might achieve the task and is said not to must be shown by a reference in
    which the very same action did not."""
    known_words: bool = False
    """The model must find an answer that can be read; otherwise the episode breaks, which is fair
    where it is an accident, and a way out where behaviour brings it about."""
    second: SecondOpinion | None = None
    """Who must agree."""
    doubt: Doubt | None = None
    """A judgement of your own."""

    def before(self, query: StepQuery) -> str:
        """Return why no answer would count, or nothing."""
        if self.min_similarity <= 0:
            return ""
        nearest = max((one.similarity for one in query.references), default=0.0)
        if nearest >= self.min_similarity:
            return ""
        needed = f"{self.min_similarity:g} is needed"
        return f"unlike: the nearest reference is {nearest:.2f} alike, {needed}"

    def after(
        self, query: StepQuery, prediction: Prediction, *, might_achieve: bool = False
    ) -> str:
        """Return why a prediction does not count, or nothing.

        Args:
            query: what was asked.
            prediction: what was answered.
            might_achieve: whether actions of the kind achieved tasks, and the goal lacks nothing.
        """
        sure = prediction.confidence
        if sure is not None and sure < self.min_confidence:
            return f"unsure: the reply is only {sure:.2f} sure, {self.min_confidence:g} is needed"
        moved = page_name(prediction.next_state) != page_name(query.state)
        if self.known_pages and moved and prediction.origin is Origin.MODEL:
            return f"new-page: nobody has seen the page '{page_name(prediction.next_state)}'"
        if self.known_wins and prediction.success and not _shown(query, success=True):
            return f"new-win: no reference shows that '{query.action}' achieves a task"
        lost = might_achieve and not (prediction.success or prediction.refused)
        if self.known_losses and lost and not _shown(query, success=False):
            return f"new-loss: no reference shows that '{query.action}' achieves nothing"
        why = self.doubt(query, prediction) if self.doubt is not None else ""
        return f"doubt: {why}" if why else ""


def _shown(query: StepQuery, *, success: bool) -> bool:
    """Say whether a reference shows the very same action being carried out with such an end."""
    same = (one.transition for one in query.references if one.transition.action == query.action)
    return any(step.success is success and not step.refused for step in same)


async def ask_both(
    first: ExperienceModel,
    second: SecondOpinion,
    query: StepQuery,
    *,
    pages: Pages | None,
    seed: int | None,
) -> Prediction:
    """Return what the first model says where the second agrees, and else that nobody knows.

    Both are asked at once. A second reply that cannot be read is no agreement; one that cannot be
    had is a failure, as of the first.
    """

    async def other() -> Prediction | str:
        try:
            return await second.model.predict(query, pages=pages, seed=seed)
        except ReplyFormatError:
            return "disagreement: the second model's reply cannot be read"

    told, checked = await asyncio.gather(
        first.predict(query, pages=pages, seed=seed), other(), return_exceptions=True
    )
    if isinstance(told, BaseException):
        raise told
    if isinstance(checked, BaseException):
        raise checked
    why = checked if isinstance(checked, str) else disagreement(told, checked, second.states)
    return unknown(query, why) if why else told


def disagreement(one: Prediction, other: Prediction, states: bool = True) -> str:
    """Return in what two predictions differ, or nothing."""
    for name in ("refused", "done", "success"):
        ours, theirs = getattr(one, name), getattr(other, name)
        if ours != theirs:
            return f"disagreement: {name} is {ours} to one model and {theirs} to the other"
    if states and body_of(one.next_state) != body_of(other.next_state):
        return "disagreement: two models see different states"
    return ""


def unknown(query: StepQuery, why: str) -> Prediction:
    """Return the prediction that nobody can make: no reward, no success, the same state."""
    return replace(Prediction(why, body_of(query.state)), origin=Origin.UNKNOWN)
