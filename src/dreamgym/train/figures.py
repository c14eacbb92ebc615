"""The figures of an update: losses per minibatch, means over all tokens or pairs, steps made."""

from __future__ import annotations

import math

from dreamgym.train.objectives import Loss


class UpdateFigures:
    """Adds up what passes report."""

    def __init__(self) -> None:
        self._losses: dict[str, float] = {}
        self._sums: dict[str, float] = {}
        self._items = 0
        self._minibatch: dict[str, float] = {}
        self._minibatch_items = 0
        self._minibatches = 0
        self._first: dict[str, float] = {}
        self._first_items = 0
        self._norms: list[dict[str, float]] = []

    def open(self) -> None:
        """Begin a minibatch."""
        self._minibatch, self._minibatch_items = {}, 0
        self._minibatches += 1

    def add(self, loss: Loss) -> None:
        """Count a pass."""
        for name, value in loss.losses.items():
            self._losses[name] = self._losses.get(name, 0.0) + float(value)
        for name, value in loss.counts.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value)
            self._minibatch[name] = self._minibatch.get(name, 0.0) + float(value)
        self._items += loss.items
        self._minibatch_items += loss.items
        if self._minibatches == 1:
            self._first = dict(self._minibatch)
            self._first_items = self._minibatch_items

    def latest(self, name: str) -> float:
        """Return a mean over the minibatch at hand; 0 where it is not measured."""
        return self._minibatch.get(name, 0.0) / max(1, self._minibatch_items)

    def note_step(self, norms: dict[str, float]) -> None:
        """Count a step of the optimiser, by its gradients' lengths; a broken one was not made."""
        self._norms.append(norms)

    def means(self) -> dict[str, float]:
        """Return losses per minibatch, means over everything, and counts."""
        made = [norms for norms in self._norms if all(map(math.isfinite, norms.values()))]
        found = {name: value / self._minibatches for name, value in self._losses.items()}
        found |= {name: value / max(1, self._items) for name, value in self._sums.items()}
        if "actor/ppo_kl" in self._first:
            # Before the first step the policy is the one that played: what is seen here is how
            # differently sampler and learner compute.
            found["actor/mismatch_kl"] = self._first["actor/ppo_kl"] / max(1, self._first_items)
        for who in made[0] if made else ():
            found[f"{who}/grad_norm"] = sum(norms[who] for norms in made) / len(made)
        found["actor/updates"] = float(len(made))
        found["actor/broken_gradients"] = float(len(self._norms) - len(made))
        return found
