"""Judge an agent of your own in the real environment, with an interval.

The same class works from the command line: `dreamgym eval --policy my_agents:Greedy`.
Needs the extra `twx`.
"""

import asyncio
from collections.abc import Sequence

from dreamgym import Action, Env, Observation, Split, Step, Task, build, open_world
from dreamgym.agents import Behaviour
from dreamgym.eval import evaluate


class Greedy:
    """Takes what it sees, otherwise walks on to where it has been least."""

    def __init__(self, env: Env, seed: int) -> None:
        self.visits: dict[str, int] = {}

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Choose among the admissible actions."""
        ways = [action for action in now.admissible or () if action.startswith(("move", "take"))]
        room = now.text.splitlines()[0]

        def tried(action: str) -> int:
            return -1 if action.startswith("take") else self.visits.get(f"{room}/{action}", 0)

        best = min(ways, key=tried)
        self.visits[f"{room}/{best}"] = self.visits.get(f"{room}/{best}", 0) + 1
        return Action(best)


async def main() -> None:
    """Play 50 held-out tasks."""
    mine = Behaviour("greedy", Greedy)
    async with open_world("twx/coin?numLocations=5&includeDoors=0", workers=2) as world:
        slots = await build.make_slots(
            world, split=Split.TEST, episodes=50, policy=lambda slot: mine, max_steps=30, seed=0
        )
        report = await evaluate(slots, world, concurrency=16)
    print(f"success {report.success} episodes, {report.transitions} real steps")


asyncio.run(main())
