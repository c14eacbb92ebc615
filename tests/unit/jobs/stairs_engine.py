"""A staircase as an engine of one's own, and its rules as a language model that dreams it."""

import re
from dataclasses import replace

from dreamgym.experience.edit import diff
from dreamgym.experience.prompt import StepAnswer, Style, step_answer_text
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.types import Action, Observation, Opening, Split, StepResult, Task

HEIGHT = 3


def climb(at, action):
    """Return where an action leads, or None where it is refused."""
    after = at + {"up": 1, "down": -1}.get(action, 0)
    return after if action in ("up", "down") and after >= 0 else None


def look(at):
    return f"stair {at}; top at {HEIGHT}"


class Engine:
    version = "stairs 1"
    mapper = "plain"

    def __init__(self, spec):
        self.env = str(spec)

    def tasks(self, split):
        first = {Split.TRAIN: 0, Split.DEV: 1000, Split.TEST: 2000}[split]
        return [Task(f"{self.env}#{n}", self.env, str(n), split) for n in range(first, first + 6)]

    def open(self, task):
        return Game(task)

    def entities(self, opening):
        return frozenset({"stair"})

    def close(self):
        pass


class Game:
    def __init__(self, task):
        self.task, self.at = task, 0

    def observe(self):
        return Observation(look(self.at), ("down", "up") if self.at else ("up",))

    def reset(self, seed):
        self.at = 0
        return Opening(replace(self.task, goal="climb to the top"), self.observe())

    def step(self, action):
        after = climb(self.at, action)
        if after is None:
            return StepResult(self.observe(), refused=True)
        self.at = after
        top = after == HEIGHT
        return StepResult(self.observe(), reward=float(top), terminated=top, success=top)

    def expert(self):
        return ("up",) * (HEIGHT - self.at)

    def close(self):
        pass


def make_engine(spec):
    return Engine(spec)


def told(prompt):
    """Answer the prompt of a step as the staircase does."""
    state, action = re.search(
        r"Current state:\n(.*?)\n\nAction: ([^\n]*)", prompt, re.DOTALL
    ).groups()
    state = re.sub(r"#\d+ ", "", state)
    after = climb(int(re.search(r"stair (\d+)", state)[1]), action)
    top = after == HEIGHT
    say = StepAnswer(
        diff(state, state if after is None else look(after)), "by the rules",
        refused=after is None, done=top, success=top, reward=float(top),
    )  # fmt: skip
    return step_answer_text(say, style=Style.FULL)


def dreaming():
    """A language model that answers every step as the staircase does."""
    return ScriptedLLM(lambda request: told(flat_prompt(request.prompt)))


class Climber:
    """Climbs, dancing at every second stair."""

    async def act(self, task, past, now):
        return Action("dance" if len(past) % 2 else "up")


def climber(env, seed):
    return Climber()
