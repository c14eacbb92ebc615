import math
import subprocess
import sys

import pytest

from dreamgym.types import (
    Action,
    Observation,
    Provenance,
    SampledTokens,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
    derive_seed,
    digest,
)

TASK = Task(id="t", env="py/x:y", key="1", split=Split.TRAIN, goal="win")


def trajectory(*results: StepResult) -> Trajectory:
    steps = tuple(Step(Action(f"a{i}"), result) for i, result in enumerate(results))
    about = Provenance(Source.REAL, "expert")
    return Trajectory("e", TASK, Observation("s0"), steps, StopReason.TERMINATED, about)


def test_transitions_chain_states():
    won = trajectory(
        StepResult(Observation("s1"), reward=0.5, refused=True),
        StepResult(Observation("s2"), reward=0.5, terminated=True, success=True),
    )
    first, last = won.transitions()
    assert (first.state, first.action, first.next_state) == ("s0", "a0", "s1")
    assert (last.state, last.action, last.next_state) == ("s1", "a1", "s2")
    assert (first.id, last.id) == ("e#0", "e#1")
    assert first.refused and not first.done
    assert last.done and last.success
    assert won.success
    assert won.total_reward == 1.0


def test_a_trajectory_without_steps_is_no_success():
    assert not trajectory().success


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_is_finite(reward):
    with pytest.raises(ValueError, match="finite"):
        StepResult(Observation("s"), reward=reward)


def test_success_comes_only_with_the_end():
    with pytest.raises(ValueError, match="success without termination"):
        StepResult(Observation("s"), success=True)


def test_tokens_come_with_their_logprobs():
    with pytest.raises(ValueError, match="2 token ids but 1"):
        SampledTokens((1, 2), (-0.1,))
    with pytest.raises(ValueError, match="finite"):
        SampledTokens((1,), (-math.inf,))


def test_reasoning_is_one_per_step():
    one = trajectory(StepResult(Observation("s1")))
    assert one.with_reasoning(("because",)).steps[0].reasoning == "because"
    with pytest.raises(ValueError, match="2 explanations for 1 steps"):
        one.with_reasoning(("a", "b"))


def test_seeds_depend_on_every_part_and_not_on_the_process():
    assert derive_seed(1, 23) != derive_seed(12, 3)
    assert 0 <= derive_seed("x") < 2**63
    code = "from dreamgym.types import derive_seed, digest; print(derive_seed(1, 'a'), digest('é'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert runs == {f"{derive_seed(1, 'a')} {digest('é')}\n"}
