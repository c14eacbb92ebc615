"""The dream as a world: episodes that an experience model plays, checked by rules and memory.

Nothing here invents a reward. What the rules refuse earns nothing, what nobody can tell ends the
episode as unknown, and a reply that cannot be had breaks the episode with an `EnvError`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from dreamgym.errors import EnvError, LLMBudget, LLMDown, LLMError, ReplyFormatError
from dreamgym.experience.doubt import Pessimism, ask_both, unknown
from dreamgym.experience.grounding import Grounding, KnownKinds, Refusal
from dreamgym.experience.history import Turn
from dreamgym.experience.ledger import REST, Ledger, Pages
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import StepQuery
from dreamgym.experience.recall import LookUps, Records, TaskRecord, as_recorded
from dreamgym.protocols import Reference, Retriever
from dreamgym.replay.lookup import Query
from dreamgym.states import body_of, page_name, split_said, with_said
from dreamgym.types import (
    Account,
    Observation,
    Opening,
    Origin,
    Prediction,
    Source,
    Step,
    StepResult,
    Task,
    derive_seed,
    digest,
)

Openings = Callable[[Task], Awaitable[Opening]]
"""Gives the real opening of a task, such as from recorded trajectories or from the engine."""
REMEMBERED = 100_000
"""The most transitions that the shared cache of a dream holds."""
_BY_RULE = (Origin.GROUNDING, Origin.UNSEEN_KIND)


class DreamWorld:
    """Opens episodes in a dream.

    Identical (task, history, state, action) get the identical reply, from the shared transition
    cache, whatever the temperature: a group's rewards then differ by what the agents did, not by
    luck (unless `share_answers` is off). Failures are not remembered.

    Args:
        model: who answers.
        spec: the name of the dreamed world.
        openings: gives real first states; without it `Task.first_state` or the model does.
        memory: where similar steps are looked up, unless an episode brings a memory of its own.
        references: how many of them.
        grounding: rules that refuse; None leaves everything to the model.
        ledger: whether named pages come from memory.
        pessimism: when to say unknown.
        outcome_only: give 1 for success and 0 for everything else, as the paper does, whatever
            reward the model says.
        share_answers: whether episodes share replies; off, each has its own, drawn by its seed.
    """

    source = Source.DREAM

    def __init__(  # noqa: PLR0913 - what a dream is made of, each part and check by itself
        self,
        model: ExperienceModel,
        *,
        spec: str = "dream",
        openings: Openings | None = None,
        memory: Retriever | None = None,
        references: int = 4,
        grounding: Grounding | None = None,
        ledger: bool = True,
        pessimism: Pessimism | None = None,
        outcome_only: bool = False,
        share_answers: bool = True,
    ) -> None:
        self.model = model
        self.spec = spec
        self.openings = openings
        self.memory = memory
        self.references = references if model.wants_references else 0
        self.grounding = grounding
        self.ledger = ledger
        self.pessimism = pessimism or Pessimism()
        self.outcome_only = outcome_only
        self.share_answers = share_answers
        self.answers = TransitionCache(REMEMBERED)
        self.records = Records()
        self.look_ups = LookUps(self.references)
        self.counts: Counter[str] = Counter()

    async def open(
        self, task: Task, memory: Retriever | None = None, *, without: str | None = None
    ) -> DreamEnv:
        """Open an episode of the task; similar steps are looked up in `memory`.

        `without` names a recorded trajectory that is never looked up: the one that the dream is
        to be compared with.
        """
        return DreamEnv(task, self, memory or self.memory, without=without)

    async def ask(self, query: StepQuery, *, pages: Pages | None, seed: int) -> Prediction:
        """Ask the model, and the second one where there is one."""
        second = self.pessimism.second
        if second is None:
            return await self.model.predict(query, pages=pages, seed=seed)
        return await ask_both(self.model, second, query, pages=pages, seed=seed)

    def forget(self) -> None:
        """Empty the caches, as when memory or model have changed."""
        self.answers.clear()
        self.records.clear()
        self.look_ups.clear()

    def metrics(self) -> dict[str, float]:
        """Return who decided how many steps, why others are unknown, what the cache answered."""
        return {f"experience/{name}": float(count) for name, count in sorted(self.counts.items())}

    async def close(self) -> None:
        """Stop what is under way and close the model."""
        await self.answers.close()
        await self.model.close()
        if self.pessimism.second is not None:
            await self.pessimism.second.model.close()


class TransitionCache:
    """Predictions by what they depend on, each asked for once also when asked at the same time."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tasks: OrderedDict[str, asyncio.Task[Prediction]] = OrderedDict()

    async def get(
        self, key: str, ask: Callable[[], Awaitable[Prediction]]
    ) -> tuple[Prediction, bool]:
        """Return the prediction under a key and whether it was there already."""
        task = self._tasks.get(key)
        if task is not None and task.cancelled():
            task = None
        known = task is not None
        if task is None:
            task = asyncio.ensure_future(_await(ask))
            task.add_done_callback(_taken_note_of)
            self._tasks[key] = task
            while len(self._tasks) > self._capacity:
                self._tasks.popitem(last=False)
        try:
            # One episode that is cancelled must not take the others with it.
            return await asyncio.shield(task), known
        except LLMError:
            # A failure is not an answer: whoever asks later asks anew.
            if self._tasks.get(key) is task:
                del self._tasks[key]
            raise

    def clear(self) -> None:
        """Forget all answers."""
        self._tasks.clear()

    async def close(self) -> None:
        """Stop what is under way, and forget all answers."""
        waiting = [task for task in self._tasks.values() if not task.done()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self.clear()


def _taken_note_of(task: asyncio.Task[Prediction]) -> None:
    """Look at a failure that nobody waits for any more, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()


async def _await(ask: Callable[[], Awaitable[Prediction]]) -> Prediction:
    return await ask()


class DreamEnv:
    """One episode in a dream: satisfies `protocols.Env`."""

    def __init__(
        self,
        task: Task,
        world: DreamWorld,
        memory: Retriever | None,
        *,
        without: str | None = None,
    ) -> None:
        self._task = task
        self._world = world
        self._memory = memory
        self._without = without
        self._state = ""
        self._history: list[Turn] = []
        self._seen: list[str] = []
        self._trail: list[str] = []
        self._ledger = Ledger()
        self._record = TaskRecord(())
        self._over = True

    async def reset(self, seed: int) -> Opening:
        """Start the episode. The seed changes nothing where episodes share their answers."""
        self.jump(await self._opening())
        if not self._world.share_answers:
            self._trail.append(f"episode {seed}")
        return Opening(self._task, Observation(self._state))

    def jump(self, opening: Opening, past: Sequence[Step] = ()) -> None:
        """Stand where an episode with this opening and these steps stood, such as a real one."""
        self._task, self._state = opening.task, opening.observation.text
        if not self._state.strip():
            raise EnvError(f"the first state of {self._task.id} is empty")
        self._history, self._ledger, self._over = [], Ledger(), False
        if self._world.references:
            self._record = self._world.records.of_task(self._memory, self._task, self._without)
        self._seen = [self._task.goal, self._state]
        self._trail = [self._task.id, self._task.goal, self._state]
        if self._without is not None:
            # Other references may give other answers, so these are remembered apart.
            self._trail.append(f"without {self._without}")
        self._ledger.show(self._state)
        for step in past:
            self._move(step.action.text, step.result.observation.text, step.result.refused)
            self._over = step.result.terminated or step.result.truncated

    async def _opening(self) -> Opening:
        task, world = self._task, self._world
        if task.first_state is not None:
            return Opening(task, Observation(task.first_state))
        if world.openings is not None:
            return await world.openings(task)
        if not task.goal:
            raise EnvError(f"{task.id} has neither goal nor first state, so it cannot be dreamed")
        try:
            return Opening(task, Observation(await world.model.first_state(task)))
        except LLMError as error:
            raise _as_failure(error, "first state") from error

    async def step(self, action: str) -> StepResult:
        """Answer one action. Raises `EnvError` where no answer can be had."""
        prediction, references = await self._answer(action)
        return self._advance(action, prediction, references)

    async def predict(self, action: str) -> Prediction:
        """Say what `step` would answer, and stay."""
        return (await self._answer(action))[0]

    async def _answer(self, action: str) -> tuple[Prediction, tuple[Reference, ...]]:
        if self._over:
            raise EnvError("env.step: the episode is over, or was never reset")
        references = await self.look_up(action)
        prediction = self._refused_by_rule(action, references)
        if prediction is None:
            prediction = await self._predicted(action, references)
        self._world.counts[f"origin_{prediction.origin}"] += 1
        if prediction.origin is Origin.UNKNOWN:
            self._world.counts[f"unknown_{prediction.reasoning.partition(':')[0]}"] += 1
        return prediction, references

    async def look_up(self, action: str) -> tuple[Reference, ...]:
        """Return the recorded steps that the model would be shown for an action."""
        if self._memory is None or self._world.references < 1 or not action.strip():
            return ()
        query = Query(self._state, action, self._without)
        return await self._world.look_ups.find(self._memory, self._record, query)

    def _refused_by_rule(self, action: str, references: tuple[Reference, ...]) -> Prediction | None:
        grounding = self._world.grounding
        if grounding is None:
            return None
        refusal = grounding.refusal(action, seen=self._seen, references=references)
        return None if refusal is None else _refusal(refusal, self._state, grounding.words())

    async def _predicted(self, action: str, references: tuple[Reference, ...]) -> Prediction:
        world = self._world
        query = StepQuery(
            self._task.goal,
            self._state,
            action,
            tuple(self._history),
            references=references,
            task_id=self._task.id,
        )
        doubt = world.pessimism.before(query)
        if doubt:
            return unknown(query, doubt)
        recalled = self._record.pages(self._state, references, task_id=self._task.id)
        pages = Pages(self._ledger, recalled, self._record.told) if world.ledger else None
        key = digest("\x1f".join([*self._trail, action]), size=16)
        # Sampled replies get their seed from what they answer: a repeated run repeats them.
        seed = derive_seed("dream", key)
        try:
            prediction, shared = await world.answers.get(
                key, lambda: world.ask(query, pages=pages, seed=seed)
            )
        except LLMError as error:
            world.counts["failed_replies"] += 1
            instead = self._without_words(query, error)
            if instead is None:
                raise _as_failure(error, "step") from error
            return instead
        world.counts["shared_answers"] += shared
        if prediction.origin is Origin.UNKNOWN:
            return prediction
        prediction = self._achieved(action, prediction)
        known = self._known()
        might = (
            world.pessimism.known_losses
            and known is not None
            and known.goals.might_achieve(self._task.goal, self._state, action)
        )
        doubt = self._contradiction(action, prediction) or world.pessimism.after(
            query, prediction, might_achieve=might
        )
        return unknown(query, doubt) if doubt else prediction

    def _without_words(self, query: StepQuery, error: LLMError) -> Prediction | None:
        """Return what stands in for an answer that cannot be read, or None where nothing may."""
        if not isinstance(error, ReplyFormatError):
            return None
        recorded = as_recorded(query)
        if recorded is None and self._world.pessimism.known_words:
            return unknown(query, f"no-words: {error}")
        return recorded

    def _known(self) -> KnownKinds | None:
        """Return what records say about actions, where rules may use it."""
        grounding = self._world.grounding
        return grounding.known if grounding is not None else None

    def _achieved(self, action: str, prediction: Prediction) -> Prediction:
        """Return a prediction without a success that lacks what no recorded success lacked."""
        known = self._known()
        if known is None or not prediction.success:
            return prediction
        lacking = (
            *known.goals.lacking(self._task.goal, self._state, action),
            *known.goals.unmet(self._task.goal, prediction.next_state),
        )
        if not lacking:
            return prediction
        why = f"{prediction.reasoning}; goal-unmet: not achieved, the goal lacks {lacking[0]}"
        return replace(prediction, reasoning=why, done=False, success=False, reward=0.0)

    def _contradiction(self, action: str, prediction: Prediction) -> str:
        """Return what the model says and the records rule out, or nothing."""
        if any(words.endswith(REST) for words in split_said(prediction.next_state)[1]):
            return "untold: no memory holds what would be said"
        known = self._known()
        if known is None:
            return ""
        name = page_name(prediction.next_state)
        if known.misleads(self._state, action, prediction.next_state):
            return f"astray: '{action}' says nothing of '{name}', where it would lead"
        if prediction.origin is not Origin.MODEL:
            return ""
        bare = known.must_be_on_record(self._state, prediction.next_state)
        return f"bare-page: no memory holds the page '{bare}'" if bare else ""

    def _advance(
        self, action: str, prediction: Prediction, references: tuple[Reference, ...]
    ) -> StepResult:
        """Make the prediction the state of affairs."""
        unknown = prediction.origin is Origin.UNKNOWN
        self._move(action, prediction.next_state, prediction.refused)
        self._over = prediction.done or unknown
        # Where a rule refused, the model was not asked.
        shown = () if prediction.origin in _BY_RULE else references
        told = prediction.reasoning
        if prediction.origin is not Origin.MODEL:
            told = f"[{prediction.origin}] {told}".rstrip()
        return StepResult(
            Observation(self._state),
            reward=float(prediction.success) if self._world.outcome_only else prediction.reward,
            terminated=prediction.done,
            truncated=unknown,
            success=prediction.success,
            refused=prediction.refused,
            account=Account(told, tuple(one.transition.id for one in shown)),
        )

    def _move(self, action: str, state: str, refused: bool) -> None:
        self._state = state
        self._history.append(Turn(action, split_said(state)[1], refused))
        self._seen.append(state)
        self._trail += [action, state]
        self._ledger.show(state)

    async def expert(self) -> tuple[str, ...]:
        """Return nothing: nobody knows the way in a dream."""
        return ()

    async def close(self) -> None:
        """End the episode."""
        self._over = True


def told_by(account: Account | None) -> tuple[Origin, str]:
    """Return who decided a dream's answer, and the reasoning without that mark."""
    told = account.reasoning if account is not None else ""
    for origin in Origin:
        mark = f"[{origin}]"
        if told.startswith(mark):
            return origin, told.removeprefix(mark).lstrip()
    return Origin.MODEL, told


def _refusal(refusal: Refusal, state: str, words: tuple[str, ...]) -> Prediction:
    return Prediction(
        reasoning=f"{refusal.rule}: {refusal.why}",
        next_state=with_said(body_of(state), words),
        refused=True,
        origin=refusal.origin,
    )


def _as_failure(error: LLMError, what: str) -> LLMError | EnvError:
    """Return the error of one episode, or the error itself where no later call will fare better."""
    if isinstance(error, LLMDown | LLMBudget):
        return error
    return EnvError(f"no {what} could be had: {type(error).__name__}: {error}")
