"""The play job: a walk through a dream, alone or with the real engine doing the same beside it.

Everything about a walk but showing it: `cli/play.py` reads lines and prints what stands here.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from itertools import zip_longest

from dreamgym import build, dreams
from dreamgym.config import RunConfig
from dreamgym.envs.world import RealWorld
from dreamgym.errors import ConfigError, EnvError
from dreamgym.experience.world import DreamEnv, DreamWorld, told_by
from dreamgym.protocols import Env, Reference, World
from dreamgym.replay.lookup import Query
from dreamgym.states import items, page_name, split_said
from dreamgym.types import (
    Action,
    Opening,
    Origin,
    Split,
    Step,
    StepResult,
    Task,
    Transition,
)

NEAR = 24
"""Recorded steps that are looked through for actions one could take."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What an action led to, on each side; nothing where a side had ended or broke."""

    action: str
    dream: StepResult | None
    real: StepResult | None
    before: str
    """The dream's state until then."""
    real_before: str = ""
    """The real state until then, where reality took part."""
    origin: Origin = Origin.MODEL
    reasoning: str = ""
    references: tuple[Reference, ...] = ()
    """What the experience model was shown."""
    trouble: str = ""
    """What broke, in words."""


class Walk:
    """One episode that somebody walks through.

    Args:
        world: the dream.
        task: what to achieve.
        real: the real world, where every action is to be taken there as well.
    """

    def __init__(self, world: DreamWorld, task: Task, *, real: World | None = None) -> None:
        self.task = task
        self.turns: list[Turn] = []
        self.real_steps = 0
        """Steps that the real engine made, those of a re-walk too."""
        self._world = world
        self._real_world = real
        self._dream: DreamEnv | None = None
        self._real: Env | None = None
        self._opening: Opening | None = None
        self._listed: tuple[str, ...] | None = None

    async def begin(self) -> Opening:
        """Open the episode; where reality takes part, the dream opens as reality does."""
        self._dream = await self._world.open(self.task)
        if self._real_world is not None:
            self._real = await self._real_world.open(self.task)
            self._opening = await self._real.reset(0)
            self._listed = self._opening.observation.admissible
            self._dream.jump(self._opening)
        else:
            self._opening = await self._dream.reset(0)
        self.task = self._opening.task
        return self._opening

    @property
    def state(self) -> str:
        """The dream's state."""
        seen = [turn.dream for turn in self.turns if turn.dream is not None]
        return seen[-1].observation.text if seen else self._first

    @property
    def real_state(self) -> str:
        """The real state, where reality takes part."""
        seen = [turn.real for turn in self.turns if turn.real is not None]
        return seen[-1].observation.text if seen else self._first

    @property
    def dream_over(self) -> bool:
        """Whether the dream's episode has ended."""
        return any(_ended(turn.dream) for turn in self.turns)

    @property
    def real_over(self) -> bool:
        """Whether reality takes no part (any more)."""
        return self._real is None or any(_ended(turn.real) for turn in self.turns)

    @property
    def over(self) -> bool:
        """Whether no action is possible any more."""
        return self.dream_over and self.real_over

    async def act(self, action: str) -> Turn:
        """Take an action on every side that is still on. What breaks is told in the turn."""
        before, dreamed, trouble = self.state, None, ""
        if not self.dream_over:
            try:
                dreamed = await self._on_dream().step(action)
            except EnvError as error:
                # Nothing has moved, and reality must not go ahead alone.
                return Turn(
                    action, None, None, before, trouble=f"the dream gave no answer: {error}"
                )
        real, real_before = None, self.real_state
        if not self.real_over:
            real, trouble = await self._step_for_real(action)
        origin, told = told_by(dreamed.account if dreamed else None)
        turn = Turn(
            action, dreamed, real, before, real_before=real_before, origin=origin, reasoning=told,
            references=await self._shown(before, action, dreamed), trouble=trouble,
        )  # fmt: skip
        self.turns.append(turn)
        return turn

    async def undo(self) -> bool:
        """Take the last action back. Reality has no way back: it is walked anew, and counted."""
        if not self.turns:
            return False
        self.turns.pop()
        past = [Step(Action(t.action), t.dream) for t in self.turns if t.dream is not None]
        if self._opening is not None:
            self._on_dream().jump(self._opening, past)
        if self._real is not None:
            self._listed = (await self._real.reset(0)).observation.admissible
            for turn in [turn for turn in self.turns if turn.real is not None]:
                self._listed = (await self._real.step(turn.action)).observation.admissible
                self.real_steps += 1
        return True

    async def expert(self) -> tuple[str, ...]:
        """Return actions that win from here for real, where reality takes part and knows."""
        return () if self._real is None or self.real_over else await self._real.expert()

    def actions(self) -> tuple[str, ...]:
        """Return what can be done here: as reality lists it, else as records of such states say."""
        if self._listed is not None:
            return self._listed
        if self._world.memory is None:
            return ()
        found = self._world.memory.search(self.state, "", k=NEAR)
        worked = [one.transition.action for one in found if not one.transition.refused]
        return tuple(sorted(set(worked)))

    async def close(self) -> None:
        """End the episode on both sides."""
        for env in (self._dream, self._real):
            if env is not None:
                await env.close()

    @property
    def _first(self) -> str:
        return self._opening.observation.text if self._opening is not None else ""

    def _on_dream(self) -> DreamEnv:
        if self._dream is None:
            raise EnvError("the walk has not begun")
        return self._dream

    async def _step_for_real(self, action: str) -> tuple[StepResult | None, str]:
        if self._real is None:
            return None, ""
        try:
            result = await self._real.step(action)
        except EnvError as error:
            self._real, self._listed = None, None
            return None, f"the real engine broke, the dream goes on alone: {error}"
        self.real_steps += 1
        self._listed = result.observation.admissible
        return result, ""

    async def _shown(
        self, state: str, action: str, dreamed: StepResult | None
    ) -> tuple[Reference, ...]:
        memory = self._world.memory
        ids = dreamed.account.references if dreamed and dreamed.account else ()
        if memory is None or not ids:
            return ()
        record = self._world.records.of(memory, self.task.id, None)
        found = await self._world.look_ups.find(memory, record, Query(state, action))
        return tuple(one for one in found if one.transition.id in ids)


def open_played(world: str, config: RunConfig) -> dreams.Dream:
    """Open the dream that is played in; see `dreams.open_named`."""
    return dreams.open_named(world, config)


def open_beside(dream: dreams.Dream, config: RunConfig) -> RealWorld:
    """Open the real world that a dream is about."""
    return build.make_world(replace(config.env, spec=dream.card.env, workers=1))


async def find_task(
    dream: dreams.Dream, real: RealWorld | None, *, wanted: str | None, split: Split, number: int
) -> Task:
    """Return the wanted task, or the one of that number in a split; numbers start at 0."""
    splits = (split,) if wanted is None else tuple(Split)
    tasks: list[Task] = []
    for one in splits:
        tasks += await real.tasks(one) if real is not None else dream.tasks(one)
    where = dream.card.env if real is not None else dream.card.store
    if wanted is not None:
        return dreams.named_task(tasks, wanted, where=where)
    if not tasks:
        hint = "" if real is not None else "; --real takes tasks from the engine"
        raise ConfigError(f"{where} has no task of the {split} split{hint}")
    if not 0 <= number < len(tasks):
        last = len(tasks) - 1
        raise ConfigError(f"there is no task {number}: {where} has 0 to {last} of {split}")
    return tasks[number]


def _ended(result: StepResult | None) -> bool:
    return result is not None and (result.terminated or result.truncated)


def changed_lines(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Return the lines of the later state under a mark: space as before, + new, - gone."""
    old, new = before.split("\n"), after.split("\n")
    lines: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [(" ", line) for line in old[a:b]]
        else:
            lines += [("-", line) for line in old[a:b]] + [("+", line) for line in new[c:d]]
    return tuple(lines)


def lines_beside(dreamed: str, real: str) -> tuple[tuple[bool, str, str], ...]:
    """Return two states line by line, each pair with whether it is the same."""
    left, right = dreamed.split("\n"), real.split("\n")
    pairs: list[tuple[bool, str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(
        None, left, right, autojunk=False
    ).get_opcodes():
        same = kind == "equal"
        rows = zip_longest(left[a:b], right[c:d], fillvalue="")
        pairs += [(same, one, other) for one, other in rows]
    return tuple(pairs)


def verdict(result: StepResult) -> str:
    """Say in words how an answer ends."""
    words = ["refused"] if result.refused else []
    if result.success:
        words.append("achieved")
    elif result.terminated:
        words.append("ended without success")
    elif result.truncated:
        words.append("ended: nobody knows" if result.account else "cut off")
    return ", ".join([f"reward {result.reward:g}", *words])


def happened(one: Transition) -> str:
    """Say in one line what a recorded action led to."""
    if one.refused:
        words = "refused"
    elif page_name(one.next_state) != page_name(one.state):
        words = f"to {page_name(one.next_state)}"
    else:
        before, after = items(one.state), items(one.next_state)
        gone = [f"- {item}" for item in before if item not in after]
        new = [f"+ {item}" for item in after if item not in before]
        words = ", ".join([*gone, *new]) or "nothing changed"
    said = split_said(one.next_state)[1]
    ending = ", achieved" if one.success else ", ended" if one.done else ""
    return words + ending + (f", > {said[0]}" if said else "")


__all__ = [
    "Turn", "Walk", "changed_lines", "find_task", "happened",
    "lines_beside", "open_beside", "open_played", "verdict",
]  # fmt: skip
