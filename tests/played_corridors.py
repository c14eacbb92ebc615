"""Trajectories of the coin corridor, played in this process."""

from coin_corridor import Engine
from dreamgym.types import Action, Provenance, Source, Split, Step, StopReason, Trajectory

ENV = "py/coin_corridor:make_engine"
WAY = ("take moon", "move west", "move east", "move east", "take coin")
"""Two refused steps, then the straight way."""


def played(number, *, split=Split.TRAIN, name="", actions=WAY):
    """Play actions in the task of that number."""
    task = Engine(ENV).tasks(split)[number]
    game = Engine(ENV).open(task)
    opening = game.reset(0)
    steps = tuple(Step(Action(action), game.step(action)) for action in actions)
    return Trajectory(
        id=f"{name or 'played'}-{split}-{number}", task=opening.task, opening=opening.observation,
        steps=steps, stop=StopReason.TERMINATED,
        provenance=Provenance(Source.REAL, "script", engine="coin corridor 1", mapper="plain"),
    )  # fmt: skip
