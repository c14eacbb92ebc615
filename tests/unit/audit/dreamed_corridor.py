"""Dreams of the corridor world: one that is always right, one that believes everything, others."""

import re

from dreamgym.agents.behaviour import Behaviour
from dreamgym.experience.edit import diff
from dreamgym.experience.model import ExperienceModel
from dreamgym.experience.prompt import StepAnswer, Style, step_answer_text
from dreamgym.experience.world import DreamWorld
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt
from dreamgym.rollout.collect import Answerer, collect, plan_slots
from dreamgym.testing import CorridorWorld
from dreamgym.types import Action, Source, Split

HELD = "You hold the coin."


def question(prompt):
    found = re.search(r"Current state:\n(.*?)\n\nAction: ([^\n]*)", prompt, re.DOTALL)
    return re.sub(r"#\d+ ", "", found[1]), found[2]


def told(state, after, **flags):
    answer = StepAnswer(diff(state, after), "so it goes", **flags)
    return step_answer_text(answer, style=Style.FULL)


def truth(state, action):
    """Answer as the corridor does."""
    place, length = map(int, re.findall(r"\d+", state))
    if action == "take coin" and place == length:
        return told(state, HELD, done=True, success=True, reward=1.0)
    if action == "east" and place < length:
        return told(state, f"Room {place + 1} of {length}.")
    if action == "west" and place > 0:
        return told(state, f"Room {place - 1} of {length}.")
    return told(state, state, refused=True)


def flattery(state, action):
    """Believe everything: every take succeeds, every walk leads somewhere."""
    place, length = map(int, re.findall(r"\d+", state))
    if action.startswith("take"):
        return told(state, HELD, done=True, success=True, reward=1.0)
    return told(state, f"Room {place + (-1 if action == 'west' else 1)} of {length}.")


def dream(answer, **options):
    llm = ScriptedLLM(lambda request: answer(*question(flat_prompt(request.prompt))))
    return DreamWorld(ExperienceModel(llm, retries=0), **options)


class Script:
    """Acts by a fixed list, and then takes the coin."""

    def __init__(self, *actions):
        self.actions = actions

    async def act(self, task, past, now):
        left = self.actions[len(past) :]
        return Action(left[0] if left else "take coin")


class Hasty:
    """Takes before it has walked far enough: wins only in short corridors."""

    def __init__(self, env, seed):
        self.patience = seed % 4

    async def act(self, task, past, now):
        return Action("take coin" if len(past) >= self.patience else "east")


WANDERING = ("east", "dance", "west", "take coin", "east", "east")


def behaviours(slot):
    names = {
        "walker": lambda env, seed: Walker(),
        "hasty": Hasty,
        "stroller": lambda env, seed: Script(*WANDERING),
    }
    name = list(names)[slot % 3]
    return Behaviour(name, names[name])


class Walker:
    """Walks to the end, probing on the way, and takes the coin."""

    async def act(self, task, past, now):
        place, length = map(int, re.findall(r"\d+", now.text))
        if len(past) % 3 == 2:
            return Action("dance")
        return Action("east" if place < length else "take coin")


def slots_of(behaviour, *, episodes=30, tasks=10, split=Split.DEV):
    return plan_slots(
        CorridorWorld().tasks(split, tasks),
        episodes=episodes,
        behaviour=behaviour,
        answerer=Answerer(Source.REAL, "corridor 1", "plain"),
        max_steps=14,
        seed=3,
    )


async def recorded(behaviour=behaviours, **options):
    return [one async for one in collect(slots_of(behaviour, **options), CorridorWorld(),
                                         concurrency=8)]  # fmt: skip
