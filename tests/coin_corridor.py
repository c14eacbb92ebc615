"""A corridor with a coin at its far end, as an engine of one's own: small enough to be dreamed.

`conftest.py` copies this file to where the small dream is made, so it imports nothing of the tests.
"""

import random
from dataclasses import replace

from dreamgym.types import Observation, Opening, Split, StepResult, Task

ROOMS = ("attic", "cellar", "garden", "hall", "kitchen", "pantry", "study")
THINGS = ("cup", "lamp", "rake", "rug", "spoon", "vase")
FIRST = {Split.TRAIN: 0, Split.DEV: 1000, Split.TEST: 2000}


class Engine:
    version = "coin corridor 1"
    mapper = "plain"

    def __init__(self, spec):
        self.env = str(spec)

    def tasks(self, split):
        numbers = range(FIRST[split], FIRST[split] + 60)
        return [Task(f"{self.env}#{n}", self.env, str(n), split) for n in numbers]

    def open(self, task):
        return Game(task)

    def entities(self, opening):
        return frozenset(THINGS)

    def close(self):
        pass


class Game:
    def __init__(self, task):
        rng = random.Random(int(task.key))
        self.task = task
        self.rooms = rng.sample(ROOMS, 3)
        self.things = rng.sample(THINGS, 3)
        self.reset(0)

    def look(self, *said):
        here = [self.things[self.at]] if self.things[self.at] not in self.held else []
        here += ["coin"] if self.at == 2 else []
        ways = [("west", self.at - 1), ("east", self.at + 1)]
        open_ways = [(way, self.rooms[to]) for way, to in ways if 0 <= to < 3]
        lines = [self.rooms[self.at], *(["; ".join(here)] if here else [])]
        lines.append("; ".join(f"{way}: {room}" for way, room in open_ways))
        lines += [f"carrying: {', '.join(self.held)}"] if self.held else []
        actions = [f"move {way}" for way, _ in open_ways] + [f"take {thing}" for thing in here]
        text = "\n".join([*lines, *(f"> {words}" for words in said)])
        return Observation(text, tuple(sorted(actions)))

    def reset(self, seed):
        self.at, self.held = 0, []
        return Opening(replace(self.task, goal="take the coin"), self.look())

    def step(self, action):
        if action not in self.look().admissible:
            return StepResult(self.look("you cannot do that"), refused=True)
        verb, _, what = action.partition(" ")
        if verb == "move":
            self.at += 1 if what == "east" else -1
            return StepResult(self.look())
        won = what == "coin"
        self.held += [] if won else [what]
        seen = self.look(f"you take the {what}")
        return StepResult(seen, reward=float(won), terminated=won, success=won)

    def expert(self):
        return ("move east",) * (2 - self.at) + ("take coin",)

    def close(self):
        pass


def make_engine(spec):
    return Engine(spec)
