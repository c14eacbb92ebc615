"""Winning continuations: play a game's rule on from where an episode stands, and keep what wins.

The engine cannot copy a game, so the episode is played again at a place of its own, up to now, and
then on by the rule. What is handed out has therefore won, not just looked good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dreamgym.envs.textworld_express.java import Answer, Server
from dreamgym.envs.textworld_express.mapper import map_goal, map_state
from dreamgym.envs.textworld_express.rules import HINTED, RULES


@dataclass(frozen=True, slots=True)
class Playout:
    """Actions that win, and the states they lead through; both empty if no way is known."""

    actions: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def play_on(
    game: str,
    server: Server,
    *,
    begin: Callable[[], Answer],
    gold: Callable[[], tuple[str, ...]],
    past: Sequence[str],
    budget: int,
) -> Playout:
    """Win after `past` within `budget` steps, if there is a known way.

    Args:
        game: The name of the game.
        server: The place to play at.
        begin: Starts the episode there.
        gold: Returns the engine's own winning path from the start.
        past: What has been done in the episode.
        budget: How many steps are left.
    """
    hint = gold() if game in HINTED else ()
    answer = begin()
    rule = RULES[game](map_goal(server.task_description()), hint)
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
    return Playout() if past else _play_path(game, server, begin=begin, path=gold()[:budget])


def _play_path(
    game: str, server: Server, *, begin: Callable[[], Answer], path: tuple[str, ...]
) -> Playout:
    """Play the engine's own path, in case it wins where the rule does not."""
    answers = [begin(), *map(server.step, path)]
    if not answers[-1].success:
        return Playout()
    return Playout(path, tuple(_state(game, answer) for answer in answers))


def _state(game: str, answer: Answer) -> str:
    return map_state(game, answer.observation, answer.look, answer.inventory)
