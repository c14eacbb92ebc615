"""The gate before a training: has an audit found this very dream fit to be trained in?

What an audit measures and where its thresholds lie is in `audit/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from dreamgym import dreams
from dreamgym.audit import check_gate, read_audited
from dreamgym.config import RunConfig
from dreamgym.errors import ConfigError
from dreamgym.jobs.audit import thresholds_of
from dreamgym.replay import read_stats

LEARNT = ("history", "reasoning", "references", "window", "placeholders", "hints")
"""Settings of a dream that a fitted model keeps as it learnt them, whatever a command says."""
ONLY_IN_PRACTICE = ("known_words",)
"""Settings that practice has its own rule for."""


def check_world_gate(config: RunConfig, *, begun: bool = False) -> None:
    """Refuse to train in a dream that no audit has found fit for it, unless told to.

    Args:
        config: the settings.
        begun: whether the training was let in before and goes on. What it has made for real
            meanwhile may be in the store that the dream remembers with.
    """
    wanted = config.rl
    if wanted.world == "real" or wanted.gate == "off":
        return
    if not wanted.gate:
        raise ConfigError(
            f"may one train in {wanted.world}? `dreamgym audit --world {wanted.world} --data ...` "
            "tells: name its run with --gate, or train regardless with --gate off"
        )
    figures, result = read_audited(Path(wanted.gate))
    pairs = chain(_compared(config, result), _made_of(config, result, grown=begun))
    for audited, trained_in in pairs:
        if audited != trained_in:
            raise ConfigError(
                f"{wanted.gate} is an audit of {audited}, not of {trained_in}: audit what is to be "
                "trained in, or train regardless with --gate off"
            )
    reasons = check_gate(figures, thresholds_of(config.audit))
    if reasons:
        raise ConfigError(
            f"the gate of {wanted.world} is shut: {'; '.join(reasons)}. Improve the dream, or "
            "train regardless with --gate off"
        )


def _compared(config: RunConfig, result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was audited beside what is to be trained in: they must be the same."""
    world = config.rl.world
    if Path(result["world"]).resolve() != Path(world).resolve():
        yield result["world"], world
    if world == dreams.SERVER:
        yield result.get("served", ""), config.llm.model
    # Audits of earlier versions do not say how the dream was played.
    played = result.get("dream", {})
    unchecked = ONLY_IN_PRACTICE if world == dreams.SERVER else (*ONLY_IN_PRACTICE, *LEARNT)
    for name, value in asdict(config.dream).items():
        if name in played and name not in unchecked:
            yield f"a dream with {name}={played[name]}", f"a dream with {name}={value}"


def _made_of(
    config: RunConfig, result: Mapping[str, Any], *, grown: bool
) -> Iterator[tuple[str, str]]:
    """Yield weights and memory of what was audited beside those of what is to be trained in.

    Audits of earlier versions do not tell them. What is gone is told by whoever opens the dream.
    """
    world = config.rl.world
    second = config.dream.second
    for model, key, whose in (
        (world, "weights", "the weights"),
        (second, "second_weights", "the second opinion's weights"),
    ):
        audited = result.get(key)
        if model and audited and (now := dreams.weights_of(model)):
            yield f"a dream with {whose} {audited}", f"a dream with {whose} {now}"
    before = result.get("remembered")
    if not before or grown:
        return
    store = dreams.memory_of(world, config)
    if store.is_file():
        count = dreams.count_remembered(read_stats(store), before["env"])
        yield (
            f"a dream that remembers {before['transitions']} transitions",
            f"a dream that remembers {count} transitions",
        )
