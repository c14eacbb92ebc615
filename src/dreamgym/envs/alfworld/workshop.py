"""What the games of one engine share: loaded houses, parsed grammar, search libraries, planner.

Houses are kept, the least recently used leaving first, so that resets and groups of episodes of one
task pay for loading once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from dreamgym.envs.alfworld.game_text import GameText
from dreamgym.envs.alfworld.house import House, build_house
from dreamgym.envs.alfworld.libraries import borrow_library, return_library
from dreamgym.envs.alfworld.planner import Planner
from dreamgym.envs.alfworld.simulation import Simulation
from dreamgym.envs.alfworld.translate import Translator
from dreamgym.envs.alfworld.upstream import Upstream
from dreamgym.types import digest

_HOUSES_KEPT = 24
"""At 3 to 6 MB each."""
_FACTS_INTERNED = 50_000
"""A large house makes some 3000 facts, and TextWorld would keep those of all houses for ever."""


class Workshop:
    """Makes simulations and takes them back."""

    def __init__(self, upstream: Upstream) -> None:
        self.planner = Planner(upstream)
        self._upstream = upstream
        self._translator = Translator(upstream)
        self._houses: OrderedDict[str, House] = OrderedDict()
        self._logics: dict[str, Any] = {}

    def simulate(self, key: str, read: Callable[[], GameText]) -> Simulation:
        """Return the game of a key at its start; `read` brings its text if it is not loaded."""
        library = borrow_library(self._upstream)
        try:
            house = self._houses.pop(key, None) or self._build(read(), library)
            simulation = Simulation(self._upstream, house, library)
        except BaseException:
            return_library(self._upstream, library)
            raise
        self._houses[key] = house
        if len(self._houses) > _HOUSES_KEPT:
            self._houses.popitem(last=False)
        return simulation

    def take_back(self, simulation: Simulation) -> None:
        """Free the library of a simulation that is no longer played."""
        return_library(self._upstream, simulation.library)

    def close(self) -> None:
        """Let go of everything that is not lent."""
        self.planner.close()
        self._houses.clear()

    def _build(self, text: GameText, library: Any) -> House:
        if len(self._upstream.interned) > _FACTS_INTERNED:
            # Facts are compared by value, so those in use do not miss their place in the table.
            self._upstream.interned.clear()
        translation = self._translator.translate(text.domain, text.problem)
        return build_house(self._upstream, text, self._logic(text), translation, library)

    def _logic(self, text: GameText) -> Any:
        """Return the parsed grammar; games whose goal was taken out of it share one."""
        key = digest(f"{text.domain}\x1f{text.grammar}", size=16)
        if key in self._logics:
            return self._logics[key]
        logic = self._upstream.logic.GameLogic(domain=text.domain, grammar=text.grammar)
        if text.goal:
            self._logics[key] = logic
        return logic
