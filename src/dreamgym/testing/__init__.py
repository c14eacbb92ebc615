"""Small worlds and agents for tests: ours and those of users. Not environments to train in."""

from dreamgym.testing.corridor import CorridorEnv, CorridorWorld

__all__ = ["CorridorEnv", "CorridorWorld"]
