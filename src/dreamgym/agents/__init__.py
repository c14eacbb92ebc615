"""Agents: who acts in an episode. Here the behaviour policies that experience is recorded with."""

from dreamgym.agents.behaviour import BEHAVIOURS, Behaviour, make_behaviour

__all__ = ["BEHAVIOURS", "Behaviour", "make_behaviour"]
