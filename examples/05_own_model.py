"""Your own model: a server that speaks the OpenAI API dreams the coin game.

Here a stand-in on loopback answers, from a script. Of your own server only address and name differ,
as in `HttpLLM("http://127.0.0.1:8000/v1", "my-model")`: what it is asked, how its words are read,
what rules refuse, and what becomes of a reply that cannot be read is the same for every model.
From the shell: `dreamgym play --world llm --store STORE --set llm.url=... --set llm.model=...`.
Needs the extra `twx`.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from dreamgym import (
    Action,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    Task,
    Trajectory,
    build,
    collect,
    dreams,
    make_behaviour,
    open_store,
    open_world,
    run_episode,
)
from dreamgym.config import DreamConfig
from dreamgym.dreams import Dream
from dreamgym.llm import ChaosServer, HttpLLM

SPEC, STORE = "twx/coin?numLocations=4&includeDoors=0", Path("experience.sqlite")
FLAGS = "Refused: False\nDone: {done}\nSuccess: {done}\nReward: 0"
SCRIPT = {
    "move north": f"""<think>north leads to the pantry, which was not seen yet</think>
<next_state>
pantry
coin
south: kitchen
</next_state>
{FLAGS.format(done=False)}""",
    "take coin": f"""<think>the coin is item #1: taking it is the task</think>
<edit>
-1
|3 carrying 1/2: coin
</edit>
{FLAGS.format(done=True)}""",
}


def stand_in(prompt: str) -> str:
    """Answer as a language model might; to what is not in the script, with idle words."""
    action = prompt.rpartition("Action: ")[2].splitlines()[0]
    return SCRIPT.get(action, "Interesting! Let me first think about rooms in general.")


class Told:
    """An agent that does what it was told beforehand."""

    def __init__(self, *actions: str) -> None:
        self.actions = actions

    async def act(self, task: Task, past: Sequence[Step], now: Observation) -> Action:
        """Do the next thing."""
        return Action(self.actions[len(past)])


async def record() -> None:
    """Play for real a little: similar steps are looked up there."""
    async with open_world(SPEC, workers=1) as world:
        mixed = make_behaviour("mixed")
        slots = await build.make_slots(
            world, split=Split.TRAIN, episodes=20, policy=mixed, max_steps=20, seed=0
        )
        with open_store(STORE) as store:
            store.add([one async for one in collect(slots, world, concurrency=16)])


async def play(dream: Dream, *actions: str) -> Trajectory:
    """Let the agent act in the dream."""
    task = Task(
        id="mine#1", env=dream.card.env, key="1", split=Split.TRAIN,
        goal="find the coin and take it", first_state="kitchen\nnorth: pantry; south: backyard",
    )  # fmt: skip
    return await run_episode(
        await dream.world.open(task), Told(*actions), task=task, trajectory_id=actions[-1],
        provenance=Provenance(Source.DREAM, "told", engine="stand-in"), max_steps=len(actions),
    )  # fmt: skip


def show(episode: Trajectory) -> None:
    """Print an episode with what lay behind each answer."""
    print(f"Goal: {episode.task.goal}\n\n{episode.opening.text}")
    for step in episode.steps:
        result = step.result
        flags = [name for name in ("refused", "terminated", "success") if getattr(result, name)]
        print(f"\n> {step.action.text}\n{result.observation.text}")
        print(f"  reward {result.reward:g}; flags: {', '.join(flags) or 'none'}")
        print(f"  why: {step.reasoning}\n  references: {', '.join(step.references) or 'none'}")
    print(f"\nStop: {episode.stop}")


async def main() -> None:
    """Dream an episode that is won, and one whose model talks about something else."""
    await record()
    config = DreamConfig(references=2)
    with ChaosServer(stand_in) as server, open_store(STORE) as store:
        llm = HttpLLM(server.base_url, "stand-in")
        dream = dreams.dream_over(llm, dreams.card_for(STORE, SPEC, config), config=config)
        won = await play(dream, "move north", "take moon", "take coin")
        print("--- what the model is asked first, beside the rules of its answers\n")
        print(server.payloads[0]["messages"][1]["content"])
        print("\n--- an episode; `take moon` is refused by rule, before the model is asked\n")
        show(won)
        asked = len(server.payloads)
        broken = await play(dream, "move south")
        print("\n--- an episode whose model talks idly: the simulator has failed, not the agent\n")
        show(broken)
        error = broken.error.message if broken.error else "nothing"
        print(f"The model was asked {len(server.payloads) - asked} times, then: {error}")
        print(f"The store does not take it: {store.add([broken]).refused[0].reason}.")
        await dream.close()


asyncio.run(main())
