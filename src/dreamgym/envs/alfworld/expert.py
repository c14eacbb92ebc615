"""ALFWorld's handcoded expert: it searches the room as a person would, and does not always win.

Upstream's expert reacts to one observation after the other. Here it is played ahead from the start
through what was done so far, and on, in the same simulation, which is put back afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dreamgym.envs.alfworld.game_text import Aim
from dreamgym.envs.alfworld.simulation import Simulation

_FACTS = (
    ("holds", "agent", "object"),
    ("inreceptacle", "object", "receptacle"),
    ("ishot", "object"),
    ("iscool", "object"),
    ("isclean", "object"),
)
"""What the expert asks the state for."""


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    names: tuple[str, ...]


def handcoded_plan(
    simulation: Simulation, aim: Aim, done: Sequence[str], *, limit: int, seed: int
) -> tuple[str, ...]:
    """Return the commands by which the handcoded expert wins from here, or nothing if it does not.

    Args:
        simulation: The game; it is left as it was.
        aim: What the game is about.
        done: What has been carried out so far.
        limit: How many more commands there may be.
        seed: The expert guesses at times; the same seed makes it guess the same.
    """
    present = simulation.save()
    simulation.rewind()
    try:
        with _seeded(seed):
            return _play(simulation, aim, done, limit=limit)
    finally:
        simulation.restore(present)


def _play(simulation: Simulation, aim: Aim, done: Sequence[str], *, limit: int) -> tuple[str, ...]:
    agent = _make_agent(aim, len(done) + limit + 1)
    agent.observe(simulation.feedback)
    command, plan = "", list[str]()
    try:
        for turn in range(len(done) + limit):
            advice = _advise(agent, simulation, command)
            command = done[turn] if turn < len(done) else advice
            simulation.step(command)
            if turn >= len(done):
                plan.append(command)
            if simulation.won:
                return tuple(plan)
    except (NameError, LookupError):
        # Upstream says that it gives up with a NameError, and where it knows no place left to look
        # it takes from an empty list.
        return ()
    return ()


def _advise(agent: Any, simulation: Simulation, last: str) -> str:
    """Return what upstream's own wrapper would take as the expert's next command."""
    if not last:
        return "look"
    # The expert still speaks the older grammar, in which one puts: told that it moved something, it
    # never learns that its hands are free, and no second object is ever found.
    heard = last.replace("move ", "put ", 1) if last.startswith("move ") else last
    advice = str(agent.act(_game_state(simulation), 0, False, heard))
    return advice if advice in simulation.commands else "look"


def _make_agent(aim: Aim, max_steps: int) -> Any:
    from alfworld.agents.expert import HandCodedTWAgent

    parameters = {
        "task_type": aim.task_type,
        "object_target": aim.thing,
        "parent_target": aim.place,
        "toggle_target": aim.lamp,
        "mrecep_target": "",
        "object_sliced": False,
    }
    agent = HandCodedTWAgent(max_steps=max_steps)
    # Its own reset would read the same from a file that generated games do not have.
    agent.task_params = parameters
    agent.policy = agent.get_task_policy(parameters)(parameters, max_steps=max_steps)
    return agent


def _game_state(simulation: Simulation) -> dict[str, Any]:
    facts = [
        _Fact(predicate, tuple(map(simulation.house.name, arguments)))
        for predicate, *types in _FACTS
        for arguments in simulation.facts(predicate, *types)
    ]
    return {
        "feedback": simulation.feedback,
        "facts": facts,
        "admissible_commands": simulation.commands,
    }


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Upstream's expert guesses with the global generator: lend it one, then put it back."""
    saved = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(saved)
