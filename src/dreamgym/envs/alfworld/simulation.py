"""One house in motion: upstream's state, grammar and search library, without upstream's waste.

TextWorld's `PddlEnv` grounds every problem four times and words every command anew at every step.
Here a problem is grounded once, a command is worded once, and a reset copies the facts of the
start. What is said, and which commands there are, is upstream's to the byte (tested).
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from typing import Any

from dreamgym.envs.alfworld.house import House, Move, grammar_context, ground_slots, word_operator
from dreamgym.envs.alfworld.mapper import Receptacle, View
from dreamgym.envs.alfworld.upstream import Upstream

NOTHING_HAPPENS = "Nothing happens."
"""ALFWorld's answer to whatever it does not know or does not allow."""

_TRAITS = {
    "ishot": "hot",
    "iscool": "cool",
    "isclean": "clean",
    "issliced": "sliced",
    "istoggled": "on",
}

Saved = tuple[int, Any, str, dict[str, Move]]
"""The library's number of a state, upstream's facts of it, the last words, the moves."""


class Simulation:
    """One episode in a house. Holds a search library for itself, since that keeps the state."""

    def __init__(self, upstream: Upstream, house: House, library: Any) -> None:
        self.house = house
        self.library = library
        self._upstream = upstream
        self.reset()

    @property
    def commands(self) -> list[str]:
        """What the engine accepts now, sorted."""
        return sorted(self._moves)

    @property
    def won(self) -> bool:
        """Whether the goal holds."""
        return bool(self.library.check_goal())

    def reset(self) -> None:
        """Go back to the start."""
        self._state = _copy_state(self.house.start, self.library)
        self.library.load_sas(self.house.sas)
        self.feedback = self.house.intro
        self._moves = self._find_moves()
        self._origin = self.save()

    def step(self, command: str) -> bool:
        """Carry out a command and return whether the engine did; its words are in `feedback`."""
        move = self._moves.get(command.strip())
        if move is None:
            self.feedback = NOTHING_HAPPENS
            return False
        house = self.house
        self._state._operators = {move.operator.id: move.operator}
        self._state.apply(move.operator)
        mapping = ground_slots(self._upstream, house, move.schema, move.arguments)
        rule = house.logic.actions[move.schema].feedback_rule
        context = grammar_context(self._state, house.infos, mapping)
        self.feedback = house.logic.grammar.derive(rule, context)
        self._moves = self._find_moves()
        return True

    def save(self) -> Saved:
        """Return the present, to come back to with `restore` in the same episode."""
        number = self.library.get_state_id()
        return number, _copy_state(self._state, self.library), self.feedback, self._moves

    def restore(self, saved: Saved) -> None:
        """Return to a saved present."""
        number, state, self.feedback, self._moves = saved
        self.library.set_state_id(number)
        self._state = _copy_state(state, self.library)

    def rewind(self) -> None:
        """Return to the start, keeping saved presents good, which `reset` does not."""
        self.restore(self._origin)

    def facts(self, predicate: str, *types: str) -> list[tuple[str, ...]]:
        """Return the arguments of all facts of a predicate, as ids, sorted."""
        found = self._state.facts_with_signature(self._upstream.signature(predicate, types))
        return sorted(tuple(variable.name for variable in fact.arguments) for fact in found)

    def all_facts(self) -> list[Any]:
        """Return every fact as upstream's own object, with ids."""
        return list(self._state.facts)

    def location(self) -> str:
        """Return the id of where the agent is."""
        ((_, place),) = self.facts("atlocation", "agent", "location")
        return place

    def held(self) -> list[str]:
        """Return the ids of what the agent carries."""
        return [thing for _, thing in self.facts("holds", "agent", "object")]

    def closed(self) -> set[str]:
        """Return the ids of receptacles whose door is shut."""
        return set(self.house.openable).difference(*self.facts("opened", "receptacle"))

    def view(self) -> View:
        """Return what can be perceived now."""
        house, held, closed = self.house, self.held(), self.closed()
        now, contents = self.location(), defaultdict(list)
        for thing, place in self.facts("inreceptacle", "object", "receptacle"):
            contents[place].append(thing)
        here, seen = [], set(held)
        for key in (key for key, location in house.stands.items() if location == now):
            visible = [] if key in closed else contents[key]
            seen.update(visible)
            door = key not in closed if key in house.openable else None
            here.append(Receptacle(house.name(key), door, tuple(map(house.name, visible))))
        return View(
            here=tuple(here),
            carried=tuple(map(house.name, held)),
            traits=self._traits(seen),
            places=tuple(map(house.name, house.stands)),
            feedback="" if self.feedback is house.intro else self.feedback,
        )

    def _traits(self, seen: set[str]) -> dict[str, tuple[str, ...]]:
        found = defaultdict(list)
        for predicate, word in _TRAITS.items():
            for (key,) in self.facts(predicate, "object"):
                if key in seen:
                    found[self.house.name(key)].append(word)
        return {name: tuple(words) for name, words in found.items()}

    def _find_moves(self) -> dict[str, Move]:
        """Return what can be done now by its command; of equal commands the first counts."""
        library, known = self.library, self.house.moves
        operators = (self._upstream.downward.Operator * library.get_applicable_operators_count())()
        library.get_applicable_operators(operators)
        if not self.house.steady:
            known.clear()
        moves: dict[str, Move] = {}
        for operator in operators:
            move = known.get(operator.id)
            if move is None:
                move = word_operator(self._upstream, self.house, self._state, operator)
                known[operator.id] = move
            moves.setdefault(move.command, move)
        return moves


def _copy_state(state: Any, library: Any) -> Any:
    """Copy the facts of a state and share all else; upstream's own copy loses the library."""
    twin = copy.copy(state)
    twin._facts = defaultdict(set, {key: set(facts) for key, facts in state._facts.items()})
    twin._vars_by_name = dict(state._vars_by_name)
    kinds = state._vars_by_type.items()
    twin._vars_by_type = defaultdict(set, {key: set(found) for key, found in kinds})
    twin._var_counts = Counter(state._var_counts)
    twin.downward_lib = library
    return twin
