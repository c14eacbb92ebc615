"""The experience replay buffer: stored transitions, their vectors, and the search over them."""

from dreamgym.replay.buffer import ExperienceStore, GroupStats, open_store, read_stats
from dreamgym.replay.duplicate import copy_store
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.replay.intake import AddReport, Capacity
from dreamgym.replay.lookup import Hit, Query
from dreamgym.replay.snapshot import Snapshot

__all__ = [
    "AddReport",
    "Capacity",
    "ExperienceStore",
    "GroupStats",
    "HashingEmbedder",
    "Hit",
    "Query",
    "Snapshot",
    "copy_store",
    "open_store",
    "read_stats",
]
