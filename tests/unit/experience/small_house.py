"""A house with a coin: its rules as a pure function, and a language model that plays it perfectly.

The model is a function from prompt to reply: it reads the prompt of either style as any model
would have to, and answers by the rules. So whole episodes can be checked step by step.
"""

import re

from dreamgym.experience.edit import diff
from dreamgym.experience.prompt import StepAnswer, Switches, step_answer_text
from dreamgym.states import body_of, with_said
from dreamgym.types import Split, Task, Transition

GOAL = "take the coin"
ROOMS = {
    "kitchen": ("cup; spoon", {"west": "hall"}),
    "hall": ("coat", {"east": "kitchen", "north": "garden"}),
    "garden": ("coin; rake", {"south": "hall"}),
}
OPENING = "kitchen\ncup; spoon\nwest: hall"
TASK = Task(id="house#0", env="house", key="0", split=Split.TRAIN, goal=GOAL, first_state=OPENING)
WAY = ("move west", "move north", "take coin")


def page(room, carrying=()):
    things, ways = ROOMS[room]
    left = [thing for thing in things.split("; ") if thing not in carrying]
    lines = [room, *(["; ".join(left)] if left else [])]
    lines.append("; ".join(f"{way}: {there}" for way, there in ways.items()))
    return "\n".join([*lines, *([f"carrying: {', '.join(carrying)}"] if carrying else [])])


def rules(state, action):
    """Return (next state, reward, done, success, refused)."""
    lines = body_of(state).split("\n")
    room = lines[0]
    held = lines[-1].removeprefix("carrying: ").split(", ") if "carrying" in lines[-1] else []
    verb, _, thing = action.partition(" ")
    things, ways = ROOMS[room]
    if verb == "move" and thing in ways:
        return page(ways[thing], held), 0.0, False, False, False
    if verb == "take" and thing in things.split("; ") and thing not in held:
        won = thing == "coin"
        after = with_said(page(room, sorted([*held, thing])), [f"you take the {thing}"])
        return after, float(won), won, won, False
    return with_said(body_of(state), ["no"]), 0.0, False, False, True


def transition(state, action, *, task_id="house#0", number=0):
    after, reward, done, success, refused = rules(state, action)
    return Transition(
        id=f"{task_id}/{number}", trajectory_id=f"t-{task_id}", index=number, env="house",
        task_id=task_id, goal=GOAL, split=TASK.split, source=TASK.source, state=state,
        action=action, next_state=after, reward=reward, done=done, success=success,
        refused=refused,
    )  # fmt: skip


def question(prompt):
    """Return (state, action) as a prompt of either style shows them."""
    full = re.search(r"Current state:\n(.*?)\n\nAction: ([^\n]*)", prompt, re.DOTALL)
    found = full or re.search(r".*<state>(.*?)<act>(.*?)<at>", prompt, re.DOTALL)
    return re.sub(r"#\d+ ", "", found[1]), found[2]


def perfect(style):
    """Return a function that answers every prompt of a style as the house would."""

    def answer(prompt):
        state, action = question(prompt)
        after, reward, done, success, refused = rules(state, action)
        say = StepAnswer(diff(state, after), "by the rules", refused, done, success, reward)
        switches = Switches(reasoning="<think>" in prompt or prompt.endswith("<why>"))
        return step_answer_text(say, style=style, switches=switches)

    return answer
