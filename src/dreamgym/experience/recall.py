"""What is on record about one task: its own steps come before those of any other task.

Places of one name look different in every task, so a step that is merely similar says little about
where a door leads. What other episodes of the *same* task have shown is a fact, and stays one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from dreamgym.errors import ReplayError
from dreamgym.experience.ledger import (
    Page,
    carried_things,
    heading_of,
    page_of,
    recalled_pages,
    without,
)
from dreamgym.experience.prompt import StepQuery
from dreamgym.protocols import Reference, Retriever, TaskMemory
from dreamgym.replay.lookup import Query
from dreamgym.states import body_of, page_name, place_name, split_said
from dreamgym.types import Origin, Prediction, Task, Transition

OWN_SLOTS = 2
"""References of the task itself that are shown, at most; the rest are from other tasks."""
_REMEMBERED = 20_000
"""Look-ups whose results are kept: the members of a group ask for the same."""
_WORDS_APART = 0.99
"""The most that a step in another state can count as alike."""


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A recorded step of the task at hand: satisfies `protocols.Reference`."""

    transition: Transition
    similarity: float


class TaskRecord:
    """The recorded steps of one task, ready to be asked."""

    def __init__(self, steps: Iterable[Transition]) -> None:
        self._steps = tuple(steps)
        self._by_action: dict[str, list[Transition]] = defaultdict(list)
        for one in self._steps:
            self._by_action[one.action].append(one)
        self._looks = _looks(self._steps)
        self._pages: dict[frozenset[str], dict[str, Page]] = {}
        self.told = _told_alike(self._steps)
        """What was said at length under a heading, where it was always the same."""

    def similar(
        self,
        state: str,
        action: str,
        *,
        most: int,
        only: Callable[[Transition], bool] = lambda step: True,
    ) -> tuple[OwnStep, ...]:
        """Return what became of the same action in the same or the most similar states."""
        here, found = body_of(state), {}
        for one in filter(only, self._by_action.get(action, ())):
            alike = _alike(here, body_of(one.state))
            content = (one.state, one.next_state)
            if alike > 0 and content not in found:
                found[content] = OwnStep(one, alike)
        return tuple(sorted(found.values(), key=lambda own: -own.similarity)[:most])

    def pages(
        self, state: str, references: Sequence[Reference], *, task_id: str
    ) -> dict[str, Page]:
        """Return every page that is on record, as one who carries what the state says finds it.

        Of several looks of a page, the one counts that an episode first came to: that is how a
        first visit finds it, whatever a similar step of another episode shows. So it is with the
        pages of a place that may be open or closed: under its own name it is as first come to.
        """
        return recalled_pages(references, task_id=task_id, state=state) | self._on_record(state)

    def shows(self, state: str) -> bool:
        """Say whether a state's page is on record just so, whatever is carried."""
        name, here = page_name(state), _lying(page_of(state))
        return any(_lying(page) == here for known, looks in self._looks if known == name
                   for page in looks)  # fmt: skip

    def lent_to(self, task: Task) -> TaskRecord:
        """Return these steps as the record of a made-up task in the same world.

        Where the goal is another one, how the old task ended says nothing and is left out.
        """
        return TaskRecord(
            replace(one, task_id=task.id)
            for one in self._steps
            if one.goal == task.goal or not one.done
        )

    def _on_record(self, state: str) -> dict[str, Page]:
        held = carried_things(state)
        if held not in self._pages:
            kept = {name: [without(page, held) for page in looks] for name, looks in self._looks}
            known = {
                name: next(page for page in looks if page is not None)
                for name, looks in kept.items()
                if any(looks)
            }
            first: dict[str, Page] = {}
            for name, page in known.items():
                first.setdefault(place_name(name), page)
            self._pages[held] = known | first
        return self._pages[held]


def _looks(steps: Iterable[Transition]) -> tuple[tuple[str, tuple[Page, ...]], ...]:
    """Return every page by name with its different looks, untouched ones first.

    How a page looked when an episode first came to it is how it is; later looks may show what the
    agent did there.
    """
    first: dict[str, dict[Page, None]] = defaultdict(dict)
    later: dict[str, dict[Page, None]] = defaultdict(dict)
    seen: set[tuple[str, str]] = set()
    for one in sorted(steps, key=lambda one: one.index):
        for text in (one.state, one.next_state):
            name = page_name(text)
            looks = later if (one.trajectory_id, name) in seen else first
            seen.add((one.trajectory_id, name))
            if name:
                looks[name][page_of(text)] = None
    return tuple((name, tuple(first[name] | later[name])) for name in first)


def _lying(page: Page) -> tuple[str, ...]:
    """Return the lines of a page but for where the carrying line goes."""
    return tuple(line for line in page.lines if line is not None)


def _told_alike(steps: Iterable[Transition]) -> dict[str, str]:
    told: dict[str, set[str]] = defaultdict(set)
    for one in steps:
        for words in split_said(one.next_state)[1]:
            told[heading_of(words)].add(words)
    return {heading: min(all_) for heading, all_ in told.items() if heading and len(all_) == 1}


def _alike(here: str, there: str) -> float:
    """Say how alike two states are: 1 the same, 0 not even the same page."""
    if here == there:
        return 1.0
    if page_name(here) != page_name(there):
        return 0.0
    ours, theirs = set(here.split()), set(there.split())
    return _WORDS_APART * len(ours & theirs) / len(ours | theirs)


def as_recorded(query: StepQuery) -> Prediction | None:
    """Return what the very same action led to in the very same state of the same task.

    None where no reference tells. It stands in for a model that finds no words, and for no other.
    """
    here = body_of(query.state)
    for one in (reference.transition for reference in query.references):
        same = (one.task_id, one.action) == (query.task_id, query.action)
        if same and body_of(one.state) == here:
            return Prediction(
                "the same step is on record", one.next_state, reward=one.reward, done=one.done,
                success=one.success, refused=one.refused, origin=Origin.REFERENCE,
            )  # fmt: skip
    return None


@runtime_checkable
class ManyAtOnce(Protocol):
    """A memory that answers many look-ups together, which is cheaper than one by one."""

    def search_batch(self, queries: Sequence[Query], *, k: int) -> Sequence[tuple[Reference, ...]]:
        """Return the k nearest steps for each query."""


class LookUps:
    """Looks similar steps up: episodes that ask at the same moment are answered together."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._waiting: dict[int, list[tuple[Query, asyncio.Future[tuple[Reference, ...]]]]] = {}
        self._known: OrderedDict[tuple[int, Query], tuple[Reference, ...]] = OrderedDict()

    async def find(
        self, memory: Retriever, record: TaskRecord, query: Query
    ) -> tuple[Reference, ...]:
        """Return references, the task's own first, then the most similar of others."""
        own = record.similar(query.state, query.action, most=min(OWN_SLOTS, self._k))
        return joined(own, await self._others(memory, query), k=self._k)

    async def _others(self, memory: Retriever, query: Query) -> tuple[Reference, ...]:
        if not isinstance(memory, ManyAtOnce):
            return memory.search(
                query.state, query.action, k=self._k, exclude_trajectory=query.exclude_trajectory
            )
        key = (id(memory), query)
        if key in self._known:
            return self._known[key]
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[tuple[Reference, ...]] = loop.create_future()
        waiting = self._waiting.setdefault(id(memory), [])
        waiting.append((query, asked))
        if len(waiting) == 1:
            # All episodes that were woken together get to ask before this is called.
            loop.call_soon(self._answer, memory)
        return await asked

    def _answer(self, memory: ManyAtOnce) -> None:
        waiting = self._waiting.pop(id(memory))
        queries = list(dict.fromkeys(query for query, _ in waiting))
        try:
            found = dict(zip(queries, memory.search_batch(queries, k=self._k), strict=True))
        except ReplayError as error:
            for _, asked in waiting:
                if not asked.done():
                    asked.set_exception(error)
            return
        self._known |= {(id(memory), query): hits for query, hits in found.items()}
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        for query, asked in waiting:
            if not asked.done():  # an episode may have been cancelled meanwhile
                asked.set_result(found[query])

    def clear(self) -> None:
        """Forget what was found."""
        self._known.clear()


def joined(
    own: Sequence[Reference], others: Sequence[Reference], *, k: int
) -> tuple[Reference, ...]:
    """Put references together, none of them twice."""
    known = {_content(one) for one in own}
    fresh = [one for one in others if _content(one) not in known]
    return (*own, *fresh)[:k]


def _content(reference: Reference) -> tuple[str, str, str]:
    one = reference.transition
    return one.state, one.action, one.next_state


class Records:
    """What memories know of tasks, each read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, str | None], TaskRecord] = {}

    def of(self, memory: Retriever | None, task_id: str, without: str | None) -> TaskRecord:
        """Return what a memory knows of a task; nothing where it keeps no such record."""
        if not isinstance(memory, TaskMemory):
            return TaskRecord(())
        key = (id(memory), task_id, without)
        if key not in self._known:
            self._known[key] = TaskRecord(memory.recall(task_id, exclude_trajectory=without))
        return self._known[key]

    def of_task(self, memory: Retriever | None, task: Task, without: str | None) -> TaskRecord:
        """Return what a memory knows of a task, or of the world that a made-up task is in.

        A made-up task that begins on a page on record of a task that it was made from, is in that
        task's world, and what is on record of it holds. Any other has a world of its own, which
        nobody has seen.
        """
        parents = task.parents if task.first_state is not None else ()
        key = (id(memory), task.id, without)
        if parents and key not in self._known:
            kin = (self.of(memory, parent, without) for parent in parents)
            at_home = (record for record in kin if record.shows(task.first_state or ""))
            self._known[key] = next(at_home, TaskRecord(())).lent_to(task)
        return self.of(memory, task.id, without)

    def at_home(self, memory: Retriever | None, task: Task) -> bool:
        """Say whether a made-up task begins on a page on record of a task it was made from."""
        first = task.first_state or ""
        return any(self.of(memory, parent, None).shows(first) for parent in task.parents)

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
