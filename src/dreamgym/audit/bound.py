"""The paper's Lemma 1 and Theorem 1 with measured error terms, and what these are.

The theory wants the worst case over all states and actions; nobody can measure that. What is
measured here are averages over the states that were visited. The reward is the outcome: 1 for
success, else 0. The distance of two next-state distributions is at most the chance that the two
next states differ, so the share of differing next states stands above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dreamgym.audit.interval import Figure


@dataclass(frozen=True, slots=True)
class Bound:
    """Ingredients and value of the two bounds, for one set of visited states."""

    visited: str
    """Whose states the error terms are averages over."""
    gamma: float
    delta: float
    """The trust region of one update: the largest KL divergence of the new policy."""
    epsilon_r: Figure
    """Mean distance of dreamed and real reward (the paper takes the supremum)."""
    epsilon_p: Figure
    """Share of next states that differ (the paper takes the supremum of a total variation)."""

    @property
    def largest_value(self) -> float:
        """The largest possible value, with rewards up to 1."""
        return 1.0 / (1.0 - self.gamma)

    @property
    def model_error(self) -> float:
        """Lemma 1: how far values in dream and reality may lie apart (DreamGym Eq. 26)."""
        rest = 1.0 - self.gamma
        return self.epsilon_r.mean / rest + 2 * self.gamma / rest**2 * self.epsilon_p.mean

    @property
    def trust_region(self) -> float:
        """Theorem 1: what the step of an update may cost (DreamGym Eq. 9)."""
        return 4 * self.gamma / (1.0 - self.gamma) ** 2 * self.largest_value * self.delta

    @property
    def needed_gain(self) -> float:
        """Theorem 1: the gain in the dream from which on a real gain is certain."""
        return self.trust_region + 2 * self.model_error

    @property
    def says_nothing(self) -> bool:
        """Whether the bound allows any difference at all, so that it rules nothing out."""
        return self.model_error >= self.largest_value

    def plain(self) -> dict[str, object]:
        """Return the bound for a JSON file."""
        known = self.epsilon_r.known and self.epsilon_p.known
        return {
            "visited": self.visited,
            "terms_are": "averages over visited states, not the suprema of the theory",
            "gamma": self.gamma,
            "largest_reward": 1.0,
            "largest_value": round(self.largest_value, 6),
            "delta": self.delta,
            "epsilon_reward": self.epsilon_r.plain(),
            "epsilon_transition": self.epsilon_p.plain(),
            "lemma_1_model_error": round(self.model_error, 6) if known else None,
            "theorem_1_trust_region": round(self.trust_region, 6),
            "theorem_1_needed_gain": round(self.needed_gain, 6) if known else None,
            "rules_nothing_out": self.says_nothing if known else None,
        }
