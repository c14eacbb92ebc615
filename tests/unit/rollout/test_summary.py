import math

import pytest

from dreamgym.rollout.summary import summarise, wilson
from dreamgym.types import (
    Action,
    EpisodeFailure,
    Observation,
    Provenance,
    Source,
    Split,
    Step,
    StepResult,
    StopReason,
    Task,
    Trajectory,
)


def episode(name: str, *, won: bool, policy: str = "noisy", error: bool = False) -> Trajectory:
    steps = (
        Step(Action("take coin"), StepResult(Observation("s0"), refused=True)),
        Step(Action("move north"), StepResult(Observation("s1"))),
        Step(Action("move north"), StepResult(Observation("s1"), terminated=won, success=won)),
    )
    return Trajectory(
        id=name,
        task=Task(id=f"task-{name}", env="e", key="1", split=Split.TRAIN),
        opening=Observation("s0"),
        steps=steps,
        stop=StopReason.FAILED if error else StopReason.TERMINATED,
        provenance=Provenance(Source.REAL, policy),
        error=EpisodeFailure("EnvCrash", "env.step", "gone") if error else None,
    )


def test_wilson_matches_the_textbook():
    # Newcombe (1998), table I: 81 of 263 gives 0.2553 to 0.3662 by the score method.
    rate = wilson(81, 263)
    assert rate.mean == pytest.approx(0.308, abs=1e-3)
    assert (rate.low, rate.high) == (
        pytest.approx(0.2553, abs=1e-4),
        pytest.approx(0.3662, abs=1e-4),
    )
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == pytest.approx(1.0)
    assert math.isnan(wilson(0, 0).mean)


def test_a_record_in_figures():
    summary = summarise([episode("a", won=True), episode("b", won=False, policy="random")])
    assert (summary.episodes, summary.tasks, summary.transitions) == (2, 2, 6)
    assert [(name, rate.mean) for name, rate in summary.success] == [
        ("noisy", 1.0),
        ("random", 0.0),
    ]
    assert summary.refused == 2
    assert summary.refused_share == pytest.approx(1 / 3)
    assert summary.enough_refusals
    assert summary.no_effect == 2
    assert summary.distinct_states == 2
    assert summary.distinct_pairs == 3
    assert summary.verbs == (("move", 4), ("take", 2))
    assert (summary.shortest, summary.median_length, summary.longest) == (3, 3.0, 3)


def test_failed_episodes_change_no_figure_but_their_own():
    without = summarise([episode("a", won=True)])
    with_failure = summarise([episode("a", won=True), episode("b", won=False, error=True)])
    assert with_failure.failed == 1
    assert with_failure.failures == (("EnvCrash", 1),)
    assert with_failure.success == without.success
    assert with_failure.transitions == without.transitions


def test_nothing_is_summarised_without_crashing():
    assert summarise([]).episodes == 0
