"""A dream behind Gymnasium, for any trainer that speaks its language: many episodes side by side.

`python 07_gymnasium.py runs/demo/dream` takes a dream of the coin game that is there; without a
folder a very small one is made first, which takes most of the time. Needs the extras `twx` and
`train`.
"""

import math
import random
import subprocess
import sys
from collections import Counter

import gymnasium

SPEC = "twx/coin?numLocations=4&includeDoors=0"
PLACES, STEPS, SEED = 8, 40, 0


def make_dream() -> str:
    """Record real episodes and fit a dream for 40 small updates: well-formed, not good."""
    for words in (
        f"collect --env {SPEC} --tasks 40 --episodes 160 --out recorded --set env.workers=1",
        "fit --store recorded --steps 40 --out dream --set fit.tokens_per_step=1024"
        " --set fit.threads=1",
    ):
        subprocess.run(
            [sys.executable, "-m", "dreamgym", *words.split()], check=True, stdout=subprocess.PIPE
        )
    return "dream"


def choose(state: str, rng: random.Random) -> str:
    """Take the coin where it is seen, else go anywhere. A trainer has its own policy here."""
    if "coin" in state.splitlines():
        return "take coin"
    ways = [way for way in ("north", "south", "east", "west") if f"{way}: " in state]
    return f"move {rng.choice(ways)}"


def ending(reward: float, origin: str | None) -> str:
    """Say how an episode ended: only what was won or cut off tells anything about the policy."""
    if math.isnan(reward):
        return "broken: no answer could be had"
    if origin == "unknown":
        return "given up: the dream does not know"
    return "won" if reward > 0 else "cut off"


def main() -> None:
    """Step a vector of episodes and count how they end."""
    envs = gymnasium.make_vec(
        "dreamgym.gym:dreamgym/Dream-v0",
        num_envs=PLACES,
        dream=sys.argv[1] if len(sys.argv) > 1 else make_dream(),
        max_episode_steps=10,
        on_failure="truncate",
    )
    ends, origins, nobody = Counter[str](), Counter[str](), (None,) * PLACES
    rng, shown = random.Random(0), True
    states, infos = envs.reset(seed=SEED)
    print(f"{infos['task_id'][0]}\nGoal: {infos['goal'][0]}\n\n{states[0]}")
    for _ in range(STEPS):
        actions = [choose(state, rng) for state in states]
        states, rewards, terminated, truncated, infos = envs.step(actions)
        # A place whose episode has ended begins anew with the next step: nobody decided that one.
        decided = infos.get("origin", nobody)
        origins.update(origin for origin in decided if origin)
        if shown:
            print(f"\n> {actions[0]}\n{states[0]}\n  why: {infos.get('reasoning', nobody)[0]}")
        for place in (terminated | truncated).nonzero()[0]:
            ends[ending(rewards[place], decided[place])] += 1
            shown = shown and place > 0
    envs.close()
    print(f"\n{PLACES} places, {STEPS} steps each; episodes ended:")
    for how, count in ends.most_common():
        print(f"  {count:3}  {how}")
    print(f"answers decided by: {', '.join(f'{who} {n}' for who, n in origins.most_common())}")


main()
