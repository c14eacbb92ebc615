"""Many single questions to few full batches: the meeting point of asyncio and computing.

Questions that arrive while a batch is computed, or soon after each other, go together. Who was
answered usually asks again: once as many wait as did lately, nobody else is waited for. Until then
latecomers get a little time, measured by what a batch costs. The computing runs in a thread, so
that the event loop lives. Knows nothing of models.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

from dreamgym.errors import DreamGymError, LLMError

PATIENCE = 0.25
"""How long latecomers are waited for, as a share of what the last batch took. A batch costs little
more with another row, so a short wait saves a batch; a world that is slow is not waited for."""

Question = TypeVar("Question")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class _Asked(Generic[Question, Reply]):
    question: Question
    weight: int
    reply: asyncio.Future[Reply]


class MicroBatcher(Generic[Question, Reply]):
    """Gathers questions and has them answered in batches."""

    def __init__(
        self,
        compute: Callable[[Sequence[Question]], Sequence[Reply]],
        executor: Executor,
        *,
        max_size: int,
        max_weight: int,
        tick_seconds: float,
    ) -> None:
        """Set limits.

        Args:
            compute: answers a batch, in its order. Called in the executor's thread.
            executor: one thread, perhaps shared with other batchers.
            max_size: the most questions in a batch.
            max_weight: the most weight in a batch; one question alone may pass it.
            tick_seconds: a batch goes off when nothing new has come for so long, or for `PATIENCE`
                of the time that the last one took, whichever is longer.
        """
        self._compute = compute
        self._executor = executor
        self._max_size = max_size
        self._max_weight = max_weight
        self._tick = tick_seconds
        self._waiting: deque[_Asked[Question, Reply]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._expected = 0
        """How many asked lately: those answered last, and those who waited meanwhile; none while
        their number still changes."""
        self._lately = 0
        self._lasted = 0.0
        """Seconds that the last batch took."""
        self._enough = max_size
        self._latest = 0.0
        """When somebody asked last."""
        self._woken: asyncio.Future[None] | None = None
        """What a batch that still gathers waits for."""

    async def ask(self, question: Question, *, weight: int = 1) -> Reply:
        """Have one question answered."""
        if self._closed:
            raise LLMError("this model is closed")
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append(_Asked(question, weight, reply))
        self._latest = loop.time()
        woken = self._woken
        if woken and len(self._waiting) >= self._enough and woken.get_loop() is loop:
            _wake(woken)
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._work())
        return await reply

    async def close(self) -> None:
        """Refuse what waits and what comes; let a batch that is being computed end."""
        self._closed = True
        while self._waiting:
            _settle(self._waiting.popleft().reply, LLMError("this model was closed"))
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            await self._task

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._gather()
            batch = self._take()
            if not batch:
                continue
            questions = [asked.question for asked in batch]
            began = loop.time()
            try:
                replies = await loop.run_in_executor(self._executor, self._compute, questions)
            except DreamGymError as error:
                for asked in batch:
                    _settle(asked.reply, error)
            except Exception as error:  # noqa: BLE001 - whatever torch raises reaches the askers
                wrapped = LLMError(f"local model: {type(error).__name__}: {error}")
                wrapped.__cause__ = error
                for asked in batch:
                    _settle(asked.reply, wrapped)
            else:
                for asked, reply in zip(batch, replies, strict=True):
                    if not asked.reply.done():
                        asked.reply.set_result(reply)
            self._lasted = loop.time() - began
            asking = len(batch) + len(self._waiting)
            self._expected = asking if asking <= self._lately else 0
            self._lately = asking

    async def _gather(self) -> None:
        """Wait until all who asked lately are back, nothing new comes, or a batch is full."""
        await asyncio.sleep(0)  # whoever was just answered may ask again at once
        loop = asyncio.get_running_loop()
        patience = max(self._tick, PATIENCE * self._lasted)
        self._enough = min(self._max_size, self._expected or self._max_size)
        self._latest = loop.time()
        while len(self._waiting) < self._enough and loop.time() < self._latest + patience:
            self._woken = loop.create_future()
            timer = loop.call_at(self._latest + patience, _wake, self._woken)
            await self._woken
            timer.cancel()
        self._woken = None

    def _take(self) -> list[_Asked[Question, Reply]]:
        batch: list[_Asked[Question, Reply]] = []
        weight = 0
        while self._waiting and len(batch) < self._max_size:
            if batch and weight + self._waiting[0].weight > self._max_weight:
                break
            asked = self._waiting.popleft()
            if not asked.reply.done():  # someone gave up waiting
                batch.append(asked)
                weight += asked.weight
        return batch


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _settle(reply: asyncio.Future[Reply], error: Exception) -> None:
    if not reply.done():
        reply.set_exception(error)
