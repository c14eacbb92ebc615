"""What every environment promises, one function per promise.

Each takes a `Bench` and returns whether the promise holds (None where it does not apply) and what
was seen. They know no engine: they list tasks, play, and compare. `check.py` runs them all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic_core import PydanticSerializationError

from dreamgym import codec
from dreamgym.envs.bench import OTHER_SEED, SEED, Bench, Played, difference, follow, repeat
from dreamgym.envs.spec import parse_spec
from dreamgym.envs.world import open_world
from dreamgym.errors import ConfigError, DreamGymError, EnvError, RecordError
from dreamgym.types import (
    Action,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)

Verdict = tuple[bool | None, str]
Check = Callable[[Bench], Awaitable[Verdict]]

NONSENSE = ("frobnicate the xyzzy", "", "open\nthe \u201cdoor\u201d " + "very " * 200)
"""What no environment understands, as a language model may well write it."""
NO_PARAMETER = "no-such-parameter"
"""What no environment has."""
TRIED = 6
"""How many of an opening's admissible actions are tried."""
REFUSED_SHARE = 0.75
"""Engines may list an action and then refuse it (to close a closed door), but not as a rule."""


async def lists_tasks_alike(bench: Bench) -> Verdict:
    """Every listing gives the same tasks in the same order, in every process."""
    for split in Split:
        first = await bench.world.tasks(split)
        for again in (await bench.world.tasks(split), await bench.other.tasks(split)):
            if again != first:
                one, two = next(
                    (pair for pair in zip(first, again, strict=False) if pair[0] != pair[1]),
                    (f"{len(first)} tasks", f"{len(again)} tasks"),
                )
                return False, f"{split} was listed with {one}, then with {two}"
    if not await bench.world.tasks(Split.TRAIN):
        return False, "the train split is empty; tasks(Split.TRAIN) must list some"
    return True, ""


async def ids_are_unique(bench: Bench) -> Verdict:
    """An id names one task in all splits together."""
    ids = Counter([task.id for split in Split for task in await bench.world.tasks(split)])
    twice = [name for name, times in ids.items() if times > 1]
    if twice:
        return False, f"{len(twice)} ids name several tasks, such as '{twice[0]}'"
    return True, f"{len(ids)} tasks"


async def tasks_belong_here(bench: Bench) -> Verdict:
    """A task carries the canonical spec of its world and the split that it was listed under."""
    for split in Split:
        for task in await bench.world.tasks(split):
            if task.env != bench.world.spec or task.split is not split:
                wanted = f"env='{bench.world.spec}' (str(spec)) and split={split}"
                return False, f"{task} was listed under {split}; it needs {wanted}"
    return True, ""


async def splits_are_apart(bench: Bench) -> Verdict:
    """No split holds a task of another."""
    owner: dict[str, Task] = {}
    for split in Split:
        for task in await bench.world.tasks(split):
            known = owner.setdefault(task.key, task)
            if known.split is not split:
                return False, f"'{task.key}' is a task of {known.split} and of {split}"
    return True, ""


async def unknown_tasks_are_refused(bench: Bench) -> Verdict:
    """A task that is not in the list cannot be played."""
    task = replace(bench.tasks[0], id="no-such-task", key="no such key")
    try:
        env = await bench.world.open(task)
        await env.reset(SEED)
    except DreamGymError:
        return True, ""
    return False, f"open() took the key '{task.key}'; raise an error that says what keys look like"


async def unknown_parameters_are_refused(bench: Bench) -> Verdict:
    """A mistyped parameter is an error, not another environment under the same rules."""
    spec = parse_spec(bench.world.spec)
    mistyped = str(replace(spec, params=(*spec.params, (NO_PARAMETER, "1"))))
    async with open_world(mistyped, workers=1, time_limit=bench.time_limit) as world:
        try:
            await world.tasks(Split.TRAIN)
        except ConfigError:
            return True, ""
        except EnvError as error:
            if NO_PARAMETER in str(error):
                return True, ""
            raise
    remedy = "read parameters with dreamgym.envs.spec.read_params(spec, defaults), also if none"
    return False, f"?{NO_PARAMETER}=1 was ignored; {remedy}"


async def starts_alike(bench: Bench) -> Verdict:
    """A task has one first state, whatever the process and the seed of the episode."""
    for task in bench.tasks:
        expected = (await bench.played(task)).opening
        env = await bench.world.open(task)
        for seed in (SEED, SEED, OTHER_SEED):
            found = await env.reset(seed)
            if found != expected:
                parted = difference(Played(expected, (), ()), Played(found, (), ()))
                return False, f"{task.id} {parted}; the first state belongs to the task"
        await env.close()
    return True, ""


async def replays_alike(bench: Bench) -> Verdict:
    """The same actions lead to the same answers, in another process and after a reset."""
    for task in bench.tasks:
        played = await bench.played(task)
        env = await bench.world.open(task)
        for _ in range(2):
            parted = difference(played, await repeat(env, played))
            if parted:
                return False, f"{task.id} {parted}; draw chance from the seed of the reset only"
        await env.close()
    return True, ""


async def games_share_nothing(bench: Bench) -> Verdict:
    """Games of one task in one engine, played in lockstep, do not disturb each other."""
    for task in bench.tasks:
        played = await bench.played(task)
        envs = [await bench.world.open(task) for _ in range(2)]
        openings = [await env.reset(SEED) for env in envs]
        turns = [[await env.step(action) for env in envs] for action in played.actions]
        for env, opening, results in zip(envs, openings, zip(*turns, strict=True), strict=True):
            parted = difference(played, Played(opening, played.actions, results))
            if parted:
                return False, f"two games of {task.id} side by side: one {parted}"
            await env.close()
    return True, ""


async def admissible_actions_are_accepted(bench: Bench) -> Verdict:
    """What is listed as admissible is carried out; the list is sorted, each action once."""
    tried = await _try_first_actions(bench)
    for task in bench.tasks:
        played = await bench.played(task)
        seen = [played.opening.observation, *(result.observation for result in played.results)]
        for observation, action, result in zip(seen, played.actions, played.results, strict=False):
            listed = observation.admissible
            if listed is None:
                return None, "the environment does not list admissible actions"
            if list(listed) != sorted(set(listed)):
                return False, f"{task.id} lists {listed}; sort it, and list each action once"
            tried.append((action, result.refused))
    refused = [action for action, was_refused in tried if was_refused]
    share = f"refused {len(refused)} of {len(tried)} actions that it had listed"
    if len(refused) > REFUSED_SHARE * len(tried):
        return False, f"{share}, such as '{refused[0]}'; list only what would be done"
    return True, f"{share}, such as '{refused[0]}'" if refused else ""


async def _try_first_actions(bench: Bench) -> list[tuple[str, bool]]:
    """Try admissible actions of an opening; return each and whether it was refused."""
    env = await bench.world.open(bench.tasks[0])
    listed = (await env.reset(SEED)).observation.admissible or ()
    tried: list[tuple[str, bool]] = []
    for action in listed[:: max(1, len(listed) // TRIED)][:TRIED]:
        await env.reset(SEED)
        tried.append((action, (await env.step(action)).refused))
    await env.close()
    return tried


async def nonsense_is_refused(bench: Bench) -> Verdict:
    """An action that means nothing is answered: refused, without reward or success."""
    env = await bench.world.open(bench.tasks[0])
    for action in NONSENSE:
        await env.reset(SEED)
        try:
            result = await env.step(action)
        except EnvError as error:
            return False, f"{action!r:.40} must be answered, not raise: {error}"
        if not result.refused:
            return False, f"{action!r:.40} was not refused; set refused=True for what is not done"
        if result.reward > 0 or result.success:
            return False, f"{action!r:.40} gave reward {result.reward}, success {result.success}"
    await env.close()
    return True, ""


async def texts_say_something(bench: Bench) -> Verdict:
    """No state is an empty text."""
    for task in bench.tasks:
        played = await bench.played(task)
        if not played.opening.observation.text.strip():
            return False, f"{task.id} begins with an empty text"
        for action, result in zip(played.actions, played.results, strict=True):
            if not result.observation.text.strip():
                return False, f"{task.id} answered '{action}' with an empty text"
    return True, ""


async def goals_are_told(bench: Bench) -> Verdict:
    """A reset fills the task's goal in."""
    for task in bench.tasks:
        if not (await bench.played(task)).opening.task.goal.strip():
            return None, "no goal is told; the states must say what to do"
    return True, ""


async def answers_hold_together(bench: Bench) -> Verdict:
    """Rewards are finite and success comes with the end."""
    for task in bench.tasks:
        played = await bench.played(task)
        for result in played.results:
            if not math.isfinite(result.reward) or (result.success and not result.terminated):
                return False, f"{task.id} answered {result}"
    return True, ""


async def ended_is_ended(bench: Bench) -> Verdict:
    """No step is taken after the end, and a reset begins the task anew."""
    for task in bench.tasks:
        played = await bench.played(task)
        env = await bench.world.open(task)
        opening = await env.reset(SEED)
        actions = played.actions if played.ended else await env.expert()
        results = await follow(env, actions)
        if not Played(opening, actions, results).ended:
            continue
        try:
            await env.step(actions[-1])
        except EnvError:
            again = await env.reset(SEED)
            parted = difference(Played(opening, (), ()), Played(again, (), ()))
            await env.close()
            return (False, f"{task.id}, reset after its end, {parted}") if parted else (True, "")
        return False, f"{task.id} took a step after its end"
    return None, "none of the episodes came to an end"


async def expert_wins(bench: Bench) -> Verdict:
    """What the expert advises wins, from the start and from half-way."""
    won = 0
    for task in bench.tasks:
        env = await bench.world.open(task)
        await env.reset(SEED)
        plan = await env.expert()
        if not plan:
            continue
        if not _wins(await follow(env, plan)):
            return False, f"{task.id}: the expert's {list(plan)} did not win"
        await env.reset(SEED)
        done = plan[: len(plan) // 2]
        await follow(env, done)
        rest = await env.expert()
        if rest and not _wins(await follow(env, rest)):
            return False, f"{task.id}: after {list(done)} the expert's {list(rest)} did not win"
        await env.close()
        won += 1
    if not won:
        return None, "the environment has no expert"
    return True, f"it knew and won {won} of {len(bench.tasks)} tasks"


def _wins(results: tuple[StepResult, ...]) -> bool:
    return bool(results) and results[-1].success


async def records_survive(bench: Bench) -> Verdict:
    """A recorded episode can be stored and read back, equal to the last sign."""
    for task in bench.tasks:
        trajectory = _record(await bench.played(task))
        try:
            again = codec.decode(codec.encode(trajectory), Trajectory)
        except (PydanticSerializationError, RecordError) as error:
            return False, f"an episode of {task.id} cannot be stored: {error}"
        if again != trajectory:
            return False, f"an episode of {task.id} was stored and came back different"
    return True, ""


def _record(played: Played) -> Trajectory:
    pairs = zip(played.actions, played.results, strict=True)
    return Trajectory(
        id="checked",
        task=played.opening.task,
        opening=played.opening.observation,
        steps=tuple(Step(Action(action), result) for action, result in pairs),
        stop=StopReason.TERMINATED if played.ended else StopReason.STEP_LIMIT,
        provenance=Provenance(Source.REAL, "walk"),
    )


CHECKS: dict[str, Check] = {
    "tasks are listed alike every time": lists_tasks_alike,
    "task ids are unique": ids_are_unique,
    "tasks belong to their world": tasks_belong_here,
    "splits have no task in common": splits_are_apart,
    "unknown tasks are refused": unknown_tasks_are_refused,
    "unknown parameters are refused": unknown_parameters_are_refused,
    "first states repeat": starts_alike,
    "episodes replay": replays_alike,
    "games share no state": games_share_nothing,
    "listed actions are not refused as a rule": admissible_actions_are_accepted,
    "nonsense is refused": nonsense_is_refused,
    "texts are not empty": texts_say_something,
    "goals are told": goals_are_told,
    "rewards are finite, success ends": answers_hold_together,
    "an ended episode is over": ended_is_ended,
    "the expert wins": expert_wins,
    "records survive storage": records_survive,
}
"""Every promise under the name that `check-env` prints."""
