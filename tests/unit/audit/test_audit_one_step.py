"""One-step figures worked out by hand, and what they leave out."""

import asyncio

import pytest
from dreamed_corridor import dream, recorded, truth
from made_pairs import check

from dreamgym.audit.one_step import ask_steps, step_figures, sum_up_steps
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.types import Origin

MADE = [
    check(real="s", told="s", episode="a"),
    check(real="s", told="", episode="a", same=False),
    check(real="", told="s", episode="b", same=False),
    check(real="r", told="s", episode="b", same=False),
    check(real="r", told="r", episode="c"),
    check(real="r", told="", episode="c", same=False),
    check(real="r", told="r", episode="d"),
    check(real="", told="", episode="d"),
    check(real="", told="r", episode="d"),
    check(real="d", told="d", episode="e"),
]


def test_every_figure_by_hand():
    found = step_figures(MADE)
    means = {name: getattr(found, name).mean for name in found.__dataclass_fields__}
    assert means == pytest.approx(
        {
            "precision": 1 / 3,
            "recall": 1 / 2,
            "false_success": 2 / 8,
            "false_success_invalid": 1 / 4,
            "done_f1": 2 * 2 / (3 + 4),
            "invalid_refused": 2 / 4,
            "valid_refused": 1 / 6,
            "exact": 6 / 10,
            "same_state": 6 / 10,
            "token_f1": 6 / 10,
            "similarity": (6 + 4 * 0.5) / 10,
            "reward_error": 3 / 10,
        }
    )
    assert found.precision.count == 3
    assert found.invalid_refused.count == 4


def test_the_confusion_by_hand():
    found = sum_up_steps(MADE, {}).confusion
    assert (found.both, found.only_told, found.only_real, found.neither) == (1, 2, 1, 6)


def test_unknown_and_lost_steps_are_counted_and_nothing_else():
    extra = [check(real="s", told="", origin=Origin.UNKNOWN), check(real="s", lost=True)]
    found = sum_up_steps([*MADE, *extra], {})
    assert (found.steps, found.unknown, found.failed) == (12, 1, 1)
    assert found.failures == (("LLMTimeout", 1),)
    assert found.figures == step_figures(MADE)


def test_kinds_and_origins_have_figures_of_their_own():
    checks = [
        check(episode="a", origin=Origin.LEDGER),
        check(episode="b", same=False),
        check(episode="c"),
    ]
    found = sum_up_steps(checks, {"task-a": "easy", "task-b": "hard", "task-c": "hard"})
    kinds = {kind: figures.exact.mean for kind, figures in found.by_kind}
    assert kinds == {"easy": 1.0, "hard": 0.5}
    assert {(name, count, right.mean) for name, count, right in found.by_origin} == {
        ("ledger", 1, 1.0),
        ("model", 2, 0.5),
    }


def test_right_means_state_and_flags():
    assert check().right
    assert not check(same=False).right
    assert not check(told="r").right
    assert not check(lost=True).right


def test_every_recorded_step_is_asked_once_after_its_real_past():
    asked = []

    def spying(state, action):
        asked.append((state, action))
        return truth(state, action)

    async def once():
        told = await recorded(episodes=6)
        checks = await ask_steps(
            dream(spying), told, memory=None, embedder=HashingEmbedder(), concurrency=4
        )
        return told, checks

    told, checks = asyncio.run(once())
    steps = [one for trajectory in told for one in trajectory.transitions()]
    assert [check.real for check in checks] == steps
    assert sorted(asked) == sorted((one.state, one.action) for one in steps)
    assert all(check.right for check in checks)
