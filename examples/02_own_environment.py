"""Your own environment: a filing cabinet. Find the drawer a letter belongs in and file it there."""

import random
from dataclasses import replace

from dreamgym.envs.seeded import SeededEngine
from dreamgym.envs.spec import EnvSpec
from dreamgym.types import Observation, Opening, StepResult, Task

NAMES = ("Ada", "Blaise", "Carl", "Dorothy", "Emmy", "Grace", "Hypatia", "Sofia")
DRAWERS = ("bottom drawer", "middle drawer", "top drawer")


class Cabinet:
    """One letter and three drawers; whose drawer it is shows only when it is open."""

    def __init__(self, task: Task, seed: int) -> None:
        self._owner = dict(zip(DRAWERS, random.Random(seed).sample(NAMES, 3), strict=True))
        self._right = DRAWERS[seed % 3]
        self._task = replace(task, goal=f"File the letter to {self._owner[self._right]}.")

    def reset(self, seed: int) -> Opening:
        """Shut everything."""
        self._open = ""
        return Opening(self._task, self._look())

    def _look(self, *said: str) -> Observation:
        now = [d + (f" open ({self._owner[d]})" if d == self._open else " closed") for d in DRAWERS]
        listed = sorted(f"file letter in {d}" if d == self._open else f"open {d}" for d in DRAWERS)
        return Observation("\n".join(("cabinet", "letter", "; ".join(now), *said)), tuple(listed))

    def step(self, action: str) -> StepResult:
        """Do it, or refuse it."""
        if action not in (self._look().admissible or ()):
            return StepResult(self._look("> That cannot be done."), refused=True)
        if action.startswith("file"):
            won = self._open == self._right
            return StepResult(self._look("> Filed."), float(won), terminated=True, success=won)
        self._open = action.removeprefix("open ")
        return StepResult(self._look("> Done."))

    def expert(self) -> tuple[str, ...]:
        """Say how to win from here: look into one drawer after the other, as an agent must."""
        ahead = DRAWERS[: DRAWERS.index(self._right) + 1] * (self._open != self._right)
        return (*(f"open {d}" for d in ahead if d != self._open), f"file letter in {self._right}")

    def close(self) -> None:
        """Hold nothing, let go of nothing."""


def make_engine(spec: EnvSpec) -> SeededEngine:
    """Make an engine whose tasks are seeds."""
    return SeededEngine(spec, Cabinet, version="cabinet 1")


async def _demonstrate() -> None:
    """Check the environment, then let its expert file one letter."""
    from dreamgym.envs.check import check_env
    from dreamgym.envs.world import open_world
    from dreamgym.types import Split

    spec = "py/02_own_environment:make_engine"
    for finding in await check_env(spec):
        verdict = {True: "ok", False: "FAILED", None: "does not apply"}[finding.passed]
        print(f"{finding.name}: {verdict} {finding.details}")
    async with open_world(spec) as world:
        env = await world.open((await world.tasks(Split.TEST))[0])
        opening = await env.reset(seed=0)
        print(f"\n{opening.task.goal}\n{opening.observation.text}")
        for action in await env.expert():
            result = await env.step(action)
            print(f"> {action}\n{result.observation.text}")
        print("won" if result.success else "lost")


if __name__ == "__main__":
    import asyncio

    asyncio.run(_demonstrate())
