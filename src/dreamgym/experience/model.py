"""The experience model (the paper's Eq. 4): values in, a prediction out. It keeps no state.

Memory, ledger and references are the world's affair and come in as arguments. A reply that cannot
be had, or not be read after its retries, raises; nothing is ever made up in its place.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from dreamgym.errors import JobNotTaught, ReplyFormatError
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.ledger import Pages, resolve
from dreamgym.experience.prompt import (
    END,
    PROMPT_DIGEST,
    StepQuery,
    Style,
    Switches,
    read_step_answer,
    step_prompt,
)
from dreamgym.experience.reply_grammar import reply_grammar
from dreamgym.experience.task_prompt import (
    Example,
    Job,
    Variation,
    first_state_prompt,
    one_variation_prompt,
    read_first_state,
    read_one_variation,
    read_variations,
    variation_prompt,
)
from dreamgym.llm.reply import Amend, ask
from dreamgym.protocols import LLM
from dreamgym.types import Completion, Prediction, Request, Task, derive_seed, digest


class ExperienceModel:
    """Three jobs by prompt, over any language model.

    Args:
        llm: who answers.
        style: how it is spoken to.
        switches: what it gets to see; see `Switches`.
        retries: how many unreadable replies are forgiven.
        max_tokens: the longest reply.
        temperature: 0 gives identical replies to identical questions.
        jobs: what it was taught or can be prompted to do; the others raise `JobNotTaught`.
        goals: what goals need, for the hints of a model that gets them.
        vary_goals: whether a small model may give a known world another goal, or only another
            beginning; a chat model always may.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        style: Style = Style.FULL,
        switches: Switches | None = None,
        retries: int = 2,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        jobs: Collection[Job] = tuple(Job),
        goals: GoalNeeds | None = None,
        vary_goals: bool = False,
    ) -> None:
        self._llm = llm
        self._style = style
        self._switches = switches or Switches()
        self._retries = retries
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._jobs = frozenset(jobs)
        self._goals = goals
        self._vary_goals = vary_goals

    @property
    def prompt_digest(self) -> str:
        """Name prompt, style and switches in a record."""
        return digest(f"{PROMPT_DIGEST} {self._style} {self._switches}")

    @property
    def wants_references(self) -> bool:
        """Whether looking for references is any use."""
        return self._switches.references

    async def predict(
        self, query: StepQuery, *, pages: Pages | None = None, seed: int | None = None
    ) -> Prediction:
        """Say what an action leads to (DreamGym Eq. 4)."""

        def read(text: str) -> Prediction:
            answer = read_step_answer(
                text, action=query.action, style=self._style, switches=self._switches
            )
            # Also an edit that does not fit the state is a reply that cannot be read.
            next_state, origin = resolve(answer.edit, query.state, pages=pages)
            return Prediction(
                reasoning=answer.reasoning,
                next_state=next_state,
                reward=answer.reward,
                done=answer.done,
                success=answer.success,
                refused=answer.refused,
                origin=origin,
            )

        if self._goals is not None and self._switches.hints:
            lacking = self._goals.lacking(query.goal, query.state, query.action)
            query = replace(query, lacking=lacking)
        request = Request(
            prompt=step_prompt(query, style=self._style, switches=self._switches),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            stop=self._stop(),
            seed=seed if self._temperature > 0 else None,
            grammar=self._grammar(query.state),
        )
        reply = await ask(self._llm, request, read, retries=self._retries, amend=self._amend())
        return _with_confidence(reply.value, reply.completions[-1])

    def _grammar(self, state: str) -> str | None:
        """Return the form of a reply; a model that was trained on its form needs none."""
        return reply_grammar(state, switches=self._switches) if self._style is Style.FULL else None

    def _amend(self) -> Amend | None:
        """Return how a retry is asked: a small model reads no complaints, it samples anew."""
        return _ask_again if self._style is Style.COMPACT else None

    async def first_state(
        self,
        task: Task,
        examples: Sequence[Example] = (),
        *,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> str:
        """Imagine how a task opens; warmer than the model's own temperature, it opens otherwise."""
        self._check_taught(Job.FIRST_STATE)

        def read(text: str) -> str:
            return read_first_state(text, style=self._style)

        request = Request(
            prompt=first_state_prompt(task, examples, style=self._style),
            max_tokens=self._max_tokens,
            temperature=self._temperature if temperature is None else temperature,
            stop=self._stop(),
            seed=seed,
        )
        reply = await ask(self._llm, request, read, retries=self._retries, amend=self._amend())
        return reply.value

    async def vary(
        self,
        tasks: Sequence[Example],
        *,
        count: int,
        examples: Sequence[Example] = (),
        temperature: float = 1.0,
        seed: int | None = None,
    ) -> tuple[Variation, ...]:
        """Make new tasks of known ones.

        A chat model answers with exactly `count`. A small model is asked for one variation of one
        task at a time, in turn, all at once; what cannot be read, equals its source or was drawn
        before is drawn again a few times, so that there may be fewer in the end. Give it tasks with
        their `places`: it then stays in their worlds, which memory knows.

        Raises `ReplyFormatError` where no answer at all could be read.
        """
        self._check_taught(Job.VARIATION)
        if self._style is Style.COMPACT:
            return await self._vary_one_by_one(tasks, examples, count, temperature, seed)

        def read(text: str) -> tuple[Variation, ...]:
            return read_variations(text, count=count)

        request = Request(
            prompt=variation_prompt(tasks, examples, count=count),
            max_tokens=self._max_tokens * 2,
            temperature=temperature,
            seed=seed,
        )
        return (await ask(self._llm, request, read, retries=self._retries)).value

    async def _vary_one_by_one(
        self,
        tasks: Sequence[Example],
        examples: Sequence[Example],
        count: int,
        temperature: float,
        seed: int | None,
    ) -> tuple[Variation, ...]:
        known = {(task.goal, task.first_state) for task in tasks}
        found: list[Variation] = []
        unreadable: list[ReplyFormatError] = []
        drawn = 0
        for _ in range(self._retries + 1):
            wanted = range(drawn, drawn + count - len(found)) if tasks else range(0)
            drawn += len(wanted)
            draws = (self._draw(tasks, examples, one, temperature, seed) for one in wanted)
            for made in await asyncio.gather(*draws):
                if isinstance(made, ReplyFormatError):
                    unreadable.append(made)
                elif (made.goal, made.first_state) not in known:
                    known.add((made.goal, made.first_state))
                    found.append(made)
        if unreadable and len(unreadable) == drawn:
            raise unreadable[-1]
        return tuple(found)

    async def _draw(
        self,
        tasks: Sequence[Example],
        examples: Sequence[Example],
        number: int,
        temperature: float,
        seed: int | None,
    ) -> Variation | ReplyFormatError:
        """Ask for one variation; what cannot be read is returned, for others may be."""
        turn = number % len(tasks)
        own = derive_seed("vary", 0 if seed is None else seed, number)
        # As in training: the order of the places says nothing.
        places = random.Random(own).sample(tasks[turn].places, len(tasks[turn].places))
        source = replace(tasks[turn], places=tuple(places))
        keep_goal = not self._vary_goals and bool(places)

        def read(text: str) -> Variation:
            return replace(read_one_variation(text, source, keep_goal=keep_goal), source=turn)

        request = Request(
            prompt=one_variation_prompt(source, examples, keep_goal=keep_goal),
            max_tokens=self._max_tokens,
            temperature=temperature,
            stop=self._stop(),
            seed=own,
        )
        try:
            return (await ask(self._llm, request, read, retries=0)).value
        except ReplyFormatError as error:
            return error

    def _stop(self) -> tuple[str, ...]:
        return (END,) if self._style is Style.COMPACT else ()

    def _check_taught(self, job: Job) -> None:
        if job not in self._jobs:
            raise JobNotTaught(
                f"this dream was not taught the job '{job}', only {', '.join(sorted(self._jobs))}: "
                "fit it again with fit.task_share above 0"
            )

    async def close(self) -> None:
        """Close the back end."""
        await self._llm.close()


def _ask_again(request: Request, completion: Completion, wrong: str) -> Request:
    return replace(request, temperature=max(request.temperature, 0.7), seed=_next(request.seed))


def _next(seed: int | None) -> int:
    return 1 if seed is None else seed + 1


def _with_confidence(prediction: Prediction, completion: Completion) -> Prediction:
    if completion.tokens is None or not completion.tokens.logprobs:
        return prediction
    return replace(prediction, confidence=math.exp(min(completion.tokens.logprobs)))
