"""One episode of one compiled game: commands in, abstract states out.

TextWorld follows the interpreter's world by the events that it prints, and loses it when a command
does what it did not foresee. So commands that it lists go through; others are tried, and taken back
if they did more than one thing that was understood. Commands to the interpreter itself (save,
quit, restart, debugging) are refused here, in its own words.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from dreamgym.envs.textworld.expert import Expert
from dreamgym.envs.textworld.mapper import (
    DIRECTIONS,
    READABLE,
    Fact,
    clean_feedback,
    read_note,
    read_scene,
    render_state,
)
from dreamgym.envs.textworld.settings import GAME_FILE, WALKTHROUGH_FILE
from dreamgym.errors import EnvError
from dreamgym.types import Observation, Opening, StepResult, Task

NO_GOAL = "Find out what is to be done here, and do it."
NO_VERB = "That's not a verb I recognise."
TOO_MUCH = "You have to be more specific!"
LONGEST = 100
"""Characters of a command; the interpreter cuts at 198."""

_SHORT_VERBS = frozenset(["get", "x", "l", "i", "n", "e", "s", "w", *DIRECTIONS])
_SEVERAL = frozenset(["all", "and", "everything", "then", "again"])
_PLAIN = re.compile(r"[\w' -]+")
_EVENT = re.compile(r"\[[^\]()]+ - succeeded\]")


class TextWorldGame:
    """A game between opening and closing."""

    def __init__(self, task: Task, folder: Path, *, max_steps: int) -> None:
        self._task = task
        self._max_steps = max_steps
        self._walkthrough: list[str] = json.loads((folder / WALKTHROUGH_FILE).read_text())
        self._env = _start(folder / GAME_FILE)
        self._over = True
        self._steps = 0
        self._notes: tuple[str, ...] = ()
        self._done: list[str] = []
        """Commands carried out so far, to come back to where one was."""
        self._state: Any = None
        self._expert: Expert | None = None

    def reset(self, seed: int) -> Opening:
        """Start again. The games know no chance: every seed gives the same episode."""
        self._state = self._env.reset()
        self._over, self._steps, self._notes = False, 0, ()
        self._done.clear()
        facts = _facts(self._state)
        self._expert = Expert(self._state["game"], self._walkthrough, facts)
        goal = " ".join(self._state["objective"].split()) or NO_GOAL
        first = Observation(
            render_state(read_scene(facts, _names(self._state))),
            tuple(self._state["admissible_commands"]),
        )
        return Opening(replace(self._task, goal=goal), first)

    def step(self, action: str) -> StepResult:
        """Carry out a command, or answer as the interpreter does."""
        if self._over:
            raise EnvError(f"task {self._task.id}: the game is over or was not begun; reset it")
        before = self._state
        command = " ".join(action.split())
        listed = {known.lower(): known for known in before["admissible_commands"]}
        known = listed.get(command.lower())
        feedback = self._send(known) if known else self._attempt(command, before["verbs"])
        after, facts = self._state, _facts(self._state)
        carried_out = after is not before and after["moves"] > before["moves"]
        if carried_out:
            feedback = self._remember(facts, feedback)
        self._steps += 1
        self._over = after["won"] or after["lost"]
        ending = "You won." if after["won"] else "You lost." if after["lost"] else ""
        text = render_state(
            read_scene(facts, _names(after)), feedback=feedback, notes=self._notes, ending=ending
        )
        return StepResult(
            Observation(text, () if self._over else tuple(after["admissible_commands"])),
            reward=float(after["score"] - before["score"]),
            terminated=self._over,
            truncated=not self._over and self._steps >= self._max_steps,
            success=after["won"],
            refused=not carried_out,
        )

    def expert(self) -> tuple[str, ...]:
        """Return commands that win from here, as far as the game or the planner knows them."""
        if self._over or self._expert is None:
            return ()
        return self._expert.plan(self._state["admissible_commands"])

    def close(self) -> None:
        """Stop the interpreter."""
        self._over = True
        self._env.close()

    def _send(self, command: str) -> str:
        self._state, _, _ = self._env.step(command)
        return clean_feedback(self._state["feedback"])

    def _attempt(self, command: str, verbs: Collection[str]) -> str:
        """Try a command that is not listed: a short form, a slip, nonsense."""
        words = command.lower().split()
        if not words or words[0] not in _SHORT_VERBS.union(verbs) or len(command) > LONGEST:
            return NO_VERB
        if not _PLAIN.fullmatch(command) or not _SEVERAL.isdisjoint(words):
            return TOO_MUCH
        before = self._state
        feedback = self._send(command)
        events = len(_EVENT.findall(self._state["raw"]))
        if events == self._state["moves"] - before["moves"] <= 1:
            return feedback
        # Something was done that TextWorld could not follow: its facts would be wrong from here on.
        self._env.reset()
        for done in self._done:
            self._env.step(done)
        self._state = before
        return TOO_MUCH

    def _remember(self, facts: list[Fact], feedback: str) -> str:
        """Keep what later moments need of a command that was carried out; return what to say."""
        action = self._state["_last_action"]
        # However it was put, `x cookbook` say: this is how TextWorld lists it.
        command = action.format_command(_names(self._state))
        self._done.append(command)
        if self._expert is not None:
            self._expert.follow(command, action, facts)
        verb, _, thing = command.partition(" ")
        if verb != "examine" or thing not in READABLE:
            return feedback
        note = read_note(self._state["feedback"])
        self._notes = (*self._notes, note) if note not in self._notes else self._notes
        return ""


def _start(path: Path) -> Any:
    import textworld

    asked = textworld.EnvInfos(
        admissible_commands=True, won=True, lost=True, score=True, moves=True, verbs=True
    )
    with warnings.catch_warnings():
        # The interpreter warns that it has no notes on any game that TextWorld made.
        warnings.simplefilter("ignore")
        return textworld.start(str(path), asked)


def _facts(state: Any) -> list[Fact]:
    return [(one.name, tuple(thing.name for thing in one.arguments)) for one in state["_facts"]]


def _names(state: Any) -> dict[str, str]:
    return {key: info.name for key, info in state["game"].infos.items()}
