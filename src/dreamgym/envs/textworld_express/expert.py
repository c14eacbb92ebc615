"""Winning continuations: play a game's rule on from where an episode stands, and keep what wins.

The engine cannot copy a game, so the episode is played again at a place of its own, up to now, and
then on by the rule. What is handed out has therefore won, not just looked good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dreamgym.envs.textworld_express.experts import HINTED, RULES
from dreamgym.envs.textworld_express.java import Answer, Server
from dreamgym.envs.textworld_express.mapper import map_goal, map_state

Generate = Callable[[bool], Answer]
"""Makes the episode's game anew, with or without the engine's own winning path."""


@dataclass(frozen=True, slots=True)
class Playout:
    """Actions that win, and the states they lead through; both empty if no way is known."""

    actions: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def play_on(
    game: str, server: Server, generate: Generate, *, past: Sequence[str], budget: int
) -> Playout:
    """Win after `past` within `budget` steps, by the game's rule or, at the start, the engine's."""
    gold: tuple[str, ...] = ()
    if game in HINTED:
        generate(True)
        gold = server.gold()
    answer = generate(False)
    rule = RULES[game](map_goal(server.task_description()), gold)
    rule.see(answer)
    for action in past:
        answer = server.step(action)
        rule.see(answer)
    actions: list[str] = []
    states = [_state(game, answer)]
    while len(actions) < budget and not answer.failure:
        proposal = rule.propose(answer)
        if proposal is None or proposal not in answer.valid:
            break
        answer = server.step(proposal)
        rule.see(answer)
        actions.append(proposal)
        states.append(_state(game, answer))
        if answer.success:
            return Playout(tuple(actions), tuple(states))
    return Playout() if past else _engine_path(game, server, generate, budget=budget)


def _engine_path(game: str, server: Server, generate: Generate, *, budget: int) -> Playout:
    """Return the engine's own winning path from the start, if it wins in time."""
    answer = generate(True)
    actions = server.gold()[:budget]
    states = [_state(game, answer)]
    for action in actions:
        answer = server.step(action)
        states.append(_state(game, answer))
    return Playout(actions, tuple(states)) if answer.success else Playout()


def _state(game: str, answer: Answer) -> str:
    return map_state(game, answer.observation, answer.look, answer.inventory)
