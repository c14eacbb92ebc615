"""What a folder of an experiment suite was made with; not a section of a run's config."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """The choice that a suite's folder belongs to."""

    suite: str
    scale: str
    envs: str
    """With commas between, as are the arms and the seeds."""
    arms: str
    seeds: str
    models: str = "1m"
    """Sizes of the policy, with commas between."""
    gate: bool = True
    stages: str = ""
    """Where the run directories of stages lie, if elsewhere."""
