"""THE episode loop. Collection, evaluation and training all run this one.

It is also the one place where a failure of an environment or an agent becomes data: the trajectory
then carries an error, counts in no statistic, and was never given a reward.
"""

from __future__ import annotations

from dataclasses import replace

from dreamgym.errors import (
    AgentError,
    DreamGymError,
    EnvError,
    LLMBudget,
    LLMDown,
    LLMError,
    boundary,
)
from dreamgym.protocols import Agent, Env
from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Provenance,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)


async def run_episode(
    env: Env,
    agent: Agent,
    *,
    task: Task,
    trajectory_id: str,
    provenance: Provenance,
    max_steps: int,
) -> Trajectory:
    """Play one episode to its end and return it, whatever happens."""
    opening = Observation("")
    steps: list[Step] = []
    error: EpisodeFailure | None = None
    where = "env.reset"
    try:
        with boundary(EnvError, where):
            start = await env.reset(provenance.seed)
            _check_text(start.observation.text)
        task, opening = start.task, start.observation
        now, ended = opening, False
        while not ended and len(steps) < max_steps:
            where = "agent.act"
            with boundary(AgentError, where):
                action = await agent.act(task, steps, now)
                _check_text(action.text)
            where = "env.step"
            with boundary(EnvError, where):
                result = await env.step(action.text)
                _check_text(result.observation.text)
            steps.append(_recorded(action, result))
            now, ended = result.observation, result.terminated or result.truncated
    except (LLMBudget, LLMDown):
        raise  # no episode's fault: the run stops, or waits, as a whole
    except (EnvError, AgentError, LLMError) as failure:
        error = _describe(failure, where)
    return Trajectory(
        id=trajectory_id,
        task=task,
        opening=opening,
        steps=tuple(steps),
        stop=_stop_reason(steps[-1].result if steps else None, error),
        provenance=provenance,
        error=error,
    )


def _recorded(action: Action, result: StepResult) -> Step:
    """Return the step as it is kept: what lay behind the answer becomes the step's own."""
    account = result.account
    if account is None:
        return Step(action, result)
    bare = replace(result, account=None)
    return Step(action, bare, reasoning=account.reasoning, references=account.references)


def failed_episode(
    failure: DreamGymError,
    where: str,
    *,
    task: Task,
    trajectory_id: str,
    provenance: Provenance,
) -> Trajectory:
    """Return the trajectory of an episode that could not even be opened."""
    return Trajectory(
        id=trajectory_id,
        task=task,
        opening=Observation(""),
        steps=(),
        stop=StopReason.FAILED,
        provenance=provenance,
        error=_describe(failure, where),
    )


def _check_text(text: str) -> None:
    """Refuse half a character (a lone surrogate), which no file and no model can take."""
    if not text.isascii():
        text.encode()


def _describe(failure: DreamGymError, where: str) -> EpisodeFailure:
    return EpisodeFailure(kind=type(failure).__name__, where=where, message=str(failure))


def _stop_reason(last: StepResult | None, error: EpisodeFailure | None) -> StopReason:
    if error is not None:
        return StopReason.FAILED
    if last is not None and last.terminated:
        return StopReason.TERMINATED
    if last is not None and last.truncated:
        return StopReason.TRUNCATED
    return StopReason.STEP_LIMIT
