"""Record a few real episodes, then find the steps most like one of them. Needs the extra `twx`."""

import asyncio
from pathlib import Path

from dreamgym import Split, build, collect, make_behaviour, open_store, open_world

SPEC = "twx/coin?numLocations=4&includeDoors=0"


async def main() -> None:
    """Play 20 episodes with the mixed policy and look one step up."""
    with open_store(Path("experience.sqlite")) as store:
        async with open_world(SPEC, workers=1) as world:
            slots = await build.make_slots(
                world,
                split=Split.TRAIN,
                episodes=20,
                policy=make_behaviour("mixed"),
                max_steps=20,
                seed=0,
            )
            played = [t async for t in collect(slots, world, concurrency=16)]
        report = store.add(played)
        print(f"{report.trajectories} episodes, {report.transitions} distinct steps")
        asked = next(played[0].transitions())
        print(f"\nasked: {asked.state!r} > {asked.action}")
        for hit in store.search(asked.state, asked.action, k=3, exclude_trajectory=played[0].id):
            print(f"{hit.similarity:.2f}  {hit.transition.state!r} > {hit.transition.action}")


asyncio.run(main())
