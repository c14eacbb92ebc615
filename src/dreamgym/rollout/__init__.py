"""Rollouts: one episode loop, and many episodes side by side."""

from dreamgym.rollout.collect import Slot, collect, plan_slots
from dreamgym.rollout.episode import run_episode
from dreamgym.rollout.summary import Summary, summarise

__all__ = ["Slot", "Summary", "collect", "plan_slots", "run_episode", "summarise"]
