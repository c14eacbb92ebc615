"""Winning continuations: play a game's rule on from where an episode stands, and keep what wins.

The engine cannot copy a game, so the episode is played again at a place of its own, up to now, and
then on by the rule. What is handed out has therefore won, not just looked good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dreamgym.envs.textworld_express.experts import HINTED, RULES
from dreamgym.envs.textworld_express.java import Answer, Server
from dreamgym.envs.textworld_express.mapper import map_goal

Generate = Callable[[bool], Answer]
"""Makes the episode's game anew, with or without the engine's own winning path."""


def winning_actions(
    game: str, server: Server, generate: Generate, *, past: Sequence[str], budget: int
) -> tuple[str, ...]:
    """Return actions that win after `past` within `budget` steps, or nothing if no way is known."""
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
    while len(actions) < budget and not answer.failure:
        proposal = rule.propose(answer)
        if proposal is None or proposal not in answer.valid:
            break
        answer = server.step(proposal)
        rule.see(answer)
        actions.append(proposal)
        if answer.success:
            return tuple(actions)
    return () if past else _engine_path(server, generate, budget=budget)


def _engine_path(server: Server, generate: Generate, *, budget: int) -> tuple[str, ...]:
    """Return the engine's own winning path from the start, if it wins in time."""
    answer = generate(True)
    actions = server.gold()[:budget]
    for action in actions:
        answer = server.step(action)
    return actions if answer.success else ()
