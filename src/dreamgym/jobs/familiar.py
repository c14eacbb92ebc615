"""Figures under the names that people of other trainers look for, beside our own."""

from __future__ import annotations

from collections.abc import Mapping

NAMES = {
    "real/success": "val/success_rate",
    "episodes/length": "episode/length",
    "episodes/failed": "errored_rollouts",
    "groups/no_variance": "zero_advantage_frac",
    "actor/clip_frac": "clip_ratio",
    "actor/grad_norm": "grad_norm",
    "actor/mismatch_kl": "mismatch_kl",
    "gap/dream_minus_real": "gap/reward_bias",
    "time/rollout": "timing/rollout",
    "time/update": "timing/update",
    "time/probe": "timing/eval",
}
"""Our name, and theirs. Names that both use, as `actor/kl`, are not listed."""


def familiar(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures with their other names added."""
    known = {theirs: figures[ours] for ours, theirs in NAMES.items() if ours in figures}
    return {**figures, **known}
