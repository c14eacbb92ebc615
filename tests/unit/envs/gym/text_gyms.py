"""Small Gymnasium environments, good and unsuitable ones. Importing this registers them."""

from __future__ import annotations

import string
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete, Space, Text

CHARACTERS = string.printable


class Counter(gymnasium.Env[str, str]):
    """Count up to a secret number that the goal tells; every other word is refused."""

    def __init__(self, *, size: int = 3, bare: bool = False) -> None:
        self.observation_space = Text(1000, charset=CHARACTERS)
        self.action_space = Text(100, charset=CHARACTERS)
        self._size = size
        self._bare = bare
        """Tells nothing in `info`."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._target = int(self.np_random.integers(2, 2 + self._size))
        self._count = 0
        return self._text(), self._info(success=False, refused=False)

    def _text(self) -> str:
        return f"The counter shows {self._count} of {self._target}."

    def _info(self, **told: bool) -> dict[str, Any]:
        if self._bare:
            return {}
        listed = ["stop", "count"] if self._count else ["count"]
        return {"admissible_actions": listed, "goal": f"Count to {self._target}.", **told}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        refused = action != "count" and not (action == "stop" and self._count)
        if action == "count":
            self._count += 1
        done = action == "stop" and self._count > 0
        success = done and self._count == self._target
        info = self._info(success=success, refused=refused)
        return self._text(), float(success), done, False, info

    def expert(self) -> list[str]:
        return ["count"] * (self._target - self._count) + ["stop"]

    def entities(self, text: str) -> list[str]:
        return [word for word in text.rstrip(".").split() if word.isdigit()]


class Words(Space[str]):
    """A space of texts that is not Gymnasium's own."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "count"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class OwnSpace(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = self.action_space = Words()  # type: ignore[assignment]


class NumberActions(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = Discrete(3)  # type: ignore[assignment]


gymnasium.register("dreamgym-test/Counter-v0", Counter, max_episode_steps=20)
gymnasium.register("dreamgym-test/OwnSpace-v0", OwnSpace)
gymnasium.register("dreamgym-test/NumberActions-v0", NumberActions)
