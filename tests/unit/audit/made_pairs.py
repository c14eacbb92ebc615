"""Checks and pairs made by hand, so that every figure can be worked out on paper."""

from dreamgym.audit.one_step import StepCheck
from dreamgym.audit.retell import Pair
from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Origin,
    Prediction,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
    Transition,
)


def check(
    *, real="", told="", episode="t0", same=True, confidence=None, origin=Origin.MODEL, lost=False
):
    """One step: flags as letters, `s` success (with done), `d` done, `r` refused."""
    transition = Transition(
        id=f"{episode}#0", trajectory_id=episode, index=0, env="made", task_id=f"task-{episode}",
        goal="win", split=Split.DEV, source=Source.REAL, state="here", action="go",
        next_state="there", reward=float("s" in real), done="s" in real or "d" in real,
        success="s" in real, refused="r" in real,
    )  # fmt: skip
    if lost:
        return StepCheck(transition, None, failure="no step could be had: LLMTimeout: late")
    prediction = Prediction(
        reasoning="because", next_state="there" if same else "elsewhere",
        reward=float("s" in told), done="s" in told or "d" in told, success="s" in told,
        refused="r" in told, origin=origin, confidence=confidence,
    )  # fmt: skip
    return StepCheck(transition, prediction, similarity=1.0 if same else 0.5)


def told_as(states, *, won=False, unknown=False, broken=False, source=Source.REAL, task="task-0",
            behaviour="made", rewards=None):  # fmt: skip
    """An episode with these states after its steps; `!` before a state means refused."""
    steps = []
    for number, state in enumerate(states):
        last = number == len(states) - 1
        win = won and last
        reward = rewards[number] if rewards else float(win)
        steps.append(Step(Action(f"go {number}"), StepResult(
            Observation(state.lstrip("!")), reward=reward, terminated=win, success=win,
            truncated=unknown and last, refused=state.startswith("!"),
        ), reasoning="[unknown] nobody knows" if unknown and last else None))  # fmt: skip
    stop = StopReason.TERMINATED if won else StopReason.STEP_LIMIT
    stop = StopReason.TRUNCATED if unknown else stop
    return Trajectory(
        id=f"t-{task}", task=Task(task, "made", "0", Split.DEV, goal="win"),
        opening=Observation("start"), steps=tuple(steps),
        stop=StopReason.FAILED if broken else stop,
        provenance=Provenance(source, behaviour),
        error=EpisodeFailure("EnvError", "env.step", "it broke") if broken else None,
    )  # fmt: skip


def pair(dream, real, *, task="task-0", behaviour="made"):
    """Outcomes as letters: `w` won, `l` lost, `u` unknown, `f` failed."""
    sides = [
        told_as(["a"], won=one == "w", unknown=one == "u", broken=one == "f", task=task,
                behaviour=behaviour, source=source)
        for one, source in ((dream, Source.DREAM), (real, Source.REAL))
    ]  # fmt: skip
    return Pair(*sides)
