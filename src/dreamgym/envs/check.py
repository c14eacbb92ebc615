"""Does an environment keep its promises? `check_env(spec)` is what `dreamgym check-env` prints.

It plays through the same workers as everything else, in two engines at once, and runs every check
of `contract.py`. What the splits share is not judged here but measured, in `overlap.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.envs.bench import Bench, sample_tasks
from dreamgym.envs.contract import CHECKS, Check
from dreamgym.envs.world import open_world
from dreamgym.errors import ConfigError, DreamGymError


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    name: str
    passed: bool | None
    """None where the check does not apply to this environment."""
    details: str = ""
    """What was seen; for a failure, also what to change."""


async def check_env(spec: str, *, tasks: int = 3, time_limit: float = 60.0) -> tuple[Finding, ...]:
    """Check an environment's promises on some of its tasks, taken from the splits in turn.

    Raises the engine's own `ConfigError` or `MissingDependency` when it cannot even start.
    """
    if tasks < 1:
        raise ConfigError(f"{tasks} tasks to check; at least one is needed")
    world = open_world(spec, workers=1, time_limit=time_limit)
    other = open_world(spec, workers=1, time_limit=time_limit)
    try:
        chosen = await sample_tasks(world, tasks)
        if not chosen:
            return (Finding("tasks are listed", passed=False, details="every split is empty"),)
        bench = Bench(world, other=other, tasks=chosen, time_limit=time_limit)
        return tuple([await _find(name, check, bench=bench) for name, check in CHECKS.items()])
    finally:
        await world.close()
        await other.close()


async def _find(name: str, check: Check, *, bench: Bench) -> Finding:
    try:
        return Finding(name, *await check(bench))
    except DreamGymError as error:
        return Finding(name, passed=False, details=str(error))
