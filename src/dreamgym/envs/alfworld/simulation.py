"""One house in motion: upstream's state, grammar and search library, without upstream's waste.

TextWorld's `PddlEnv` grounds every problem four times and words every command anew at every step.
Here a problem is grounded once, a command is worded once, and a reset copies the facts of the
start. What is said, and which commands there are, is upstream's to the byte (tested).
"""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dreamgym.envs.alfworld.game_text import GameText
from dreamgym.envs.alfworld.mapper import Receptacle, View
from dreamgym.envs.alfworld.translate import Translation, already_translated
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
Saved = tuple[int, Any, str, "dict[str, Move]"]
"""The library's number of a state, upstream's facts of it, the last words, the moves."""

_CONDITIONS = re.compile(r"\|([^}]*)\}")
_PREDICATES = re.compile(r"(\w+)\(")


@dataclass(frozen=True, slots=True)
class Move:
    """One grounded action, with the words for it."""

    command: str
    action: Any
    operator: Any


@dataclass(frozen=True, slots=True)
class House:
    """A game ready to be played: everything that its episodes share."""

    text: GameText
    translation: Translation
    logic: Any
    start: Any
    """The `PddlState` before the first action; never played, only copied."""
    infos: dict[str, Any]
    """Object id -> upstream's record of it, with the name that the player sees."""
    intro: str
    steady: bool
    """Whether no command's wording depends on what can change, so that it is worded once."""
    moves: dict[int, Move] = field(default_factory=dict)
    """Grounded actions met so far, by number."""


class Simulation:
    """One episode in a house. Holds a search library for itself, since that keeps the state."""

    def __init__(self, upstream: Upstream, house: House, library: Any) -> None:
        self.house = house
        self._upstream = upstream
        self.library = library
        self._names = {key: info.name for key, info in house.infos.items()}
        self._moves: dict[str, Move] = {}
        self.feedback = ""
        self.reset()

    @property
    def commands(self) -> list[str]:
        """What the engine accepts now, sorted."""
        return sorted(self._moves)

    @property
    def won(self) -> bool:
        """Whether the goal holds."""
        return bool(self._state.check_goal())

    def reset(self) -> str:
        """Go back to the start and return the first text."""
        self._state = _copy_state(self.house.start)
        self._state.downward_lib = self.library
        self.library.load_sas(self.house.translation.sas.encode())
        self.feedback = self.house.intro
        self._find_moves()
        self._origin = self.save()
        return self.feedback

    def step(self, command: str) -> bool:
        """Carry out a command and return whether the engine did; its words are in `feedback`."""
        move = self._moves.get(command.strip())
        if move is None:
            self.feedback = NOTHING_HAPPENS
            return False
        self._state._operators = {move.operator.id: move.operator}
        self._state.apply(move.action)
        rule = move.action.feedback_rule
        context = grammar_context(self._state, self.house.infos, move.action.mapping)
        self.feedback = self.house.logic.grammar.derive(rule, context)
        self._find_moves()
        return True

    def save(self) -> Saved:
        """Return the present, to come back to with `restore` in the same episode."""
        present = self.library.get_state_id()
        return present, _copy_state(self._state), self.feedback, self._moves

    def rewind(self) -> None:
        """Return to the start without ending the episode, as `reset` would."""
        self.restore(self._origin)

    def restore(self, saved: Saved) -> None:
        """Return to a saved present."""
        number, state, self.feedback, self._moves = saved
        self.library.set_state_id(number)
        self._state = _copy_state(state)
        self._state.downward_lib = self.library

    def facts(self, predicate: str, *types: str) -> list[tuple[str, ...]]:
        """Return the arguments of all facts of a predicate, as ids, sorted."""
        signature = self._upstream.signature(predicate, types)
        found = self._state.facts_with_signature(signature)
        return sorted(tuple(variable.name for variable in fact.arguments) for fact in found)

    def pairs(self, predicate: str, first: str, second: str) -> dict[str, str]:
        """Return the facts of a predicate that relates each thing to one other."""
        return {fact[0]: fact[1] for fact in self.facts(predicate, first, second)}

    def all_facts(self) -> list[Any]:
        """Return every fact as upstream's own object, with ids."""
        return list(self._state.facts)

    def name(self, key: str) -> str:
        """Return the name by which the player knows an object id."""
        return str(self._names[key]).strip()

    def view(self) -> View:
        """Return what can be perceived now."""
        locations = {place for _, place in self.facts("atlocation", "agent", "location")}
        stands = self.facts("receptacleatlocation", "receptacle", "location")
        opened = {key for (key,) in self.facts("opened", "receptacle")}
        openable = {key for (key,) in self.facts("openable", "receptacle")}
        contents = defaultdict(list)
        for thing, place in self.facts("inreceptacle", "object", "receptacle"):
            contents[place].append(thing)
        held = [thing for _, thing in self.facts("holds", "agent", "object")]
        here, seen = [], set(held)
        for key in (key for key, location in stands if location in locations):
            door = key in opened if key in openable else None
            visible = [] if door is False else contents[key]
            seen.update(visible)
            here.append(Receptacle(self.name(key), door, tuple(map(self.name, visible))))
        return View(
            here=tuple(here),
            carried=tuple(map(self.name, held)),
            traits=self._traits(seen),
            places=tuple(self.name(key) for key, _ in stands),
            feedback="" if self.feedback is self.house.intro else self.feedback,
        )

    def _traits(self, seen: set[str]) -> dict[str, tuple[str, ...]]:
        found = defaultdict(list)
        for predicate, word in _TRAITS.items():
            for (key,) in self.facts(predicate, "object"):
                if key in seen:
                    found[self.name(key)].append(word)
        return {name: tuple(words) for name, words in found.items()}

    def _find_moves(self) -> None:
        library, known = self.library, self.house.moves
        operators = (self._upstream.downward.Operator * library.get_applicable_operators_count())()
        library.get_applicable_operators(operators)
        if not self.house.steady:
            known.clear()
        if any(operator.id not in known for operator in operators):
            known.update(self._word(operators, known))
        self._moves = {}
        for operator in operators:
            move = known[operator.id]
            self._moves.setdefault(move.command, move)

    def _word(self, operators: Any, known: dict[int, Move]) -> Iterator[tuple[int, Move]]:
        """Find the words for grounded actions not met before, the way upstream does."""
        actions = {
            " ".join(
                (action.name, *(variable.name for variable in action.mapping.values()))
            ): action
            for action in self._state.all_applicable_actions()
        }
        for operator in operators:
            if operator.id in known:
                continue
            action = copy.copy(actions[operator.name])
            action.id = operator.id
            context = grammar_context(self._state, self.house.infos, action.mapping)
            template = self.house.logic.grammar.derive(action.command_template, context)
            action.command_template = template
            # The array behind an operator is far larger than the operator.
            own = self._upstream.downward.Operator(
                operator.id, operator._name, operator.nb_effect_atoms
            )
            yield operator.id, Move(action.format_command(self._names), action, own)


def build_house(
    upstream: Upstream, text: GameText, logic: Any, translation: Translation, library: Any
) -> House:
    """Make a game ready to be played; `library` is used, and free again afterwards."""
    with already_translated(upstream, translation):
        start = upstream.logic.PddlState(library, text.problem, logic)
    infos = _entity_infos(upstream, start)
    context = grammar_context(start, infos, {})
    intro = logic.grammar.derive("#intro#", context)
    return House(
        text=text,
        translation=translation,
        logic=logic,
        start=start,
        infos=infos,
        intro=text.with_goal(intro),
        steady=_is_steady(logic, translation.task),
    )


def grammar_context(state: Any, infos: dict[str, Any], mapping: Any) -> dict[str, Any]:
    """Return what upstream's grammar wants to know. No rule reads `facts` itself."""
    return {
        "state": state,
        "facts": (),
        "variables": {slot.name: infos[variable.name] for slot, variable in mapping.items()},
        "mapping": mapping,
        "entity_infos": infos,
    }


def _entity_infos(upstream: Upstream, state: Any) -> dict[str, Any]:
    """Name the things of a house as `PddlEnv.load` and `AlfredDemangler.load` do."""
    infos = {
        variable.name: upstream.entity_info(variable.name, variable.type)
        for fact in state.facts
        for variable in fact.arguments
    }
    demangler = upstream.demangler(game_infos=infos, shuffle=False)
    for info in infos.values():
        info.name = demangler.demangle_alfred_name(info.id)
        info.definite, info.indefinite = "the", "a"
    return infos


def _is_steady(logic: Any, task: Any) -> bool:
    changing = {effect.literal.predicate for action in task.actions for effect in action.effects}
    templates = [action.template for action in logic.actions.values()]
    asked = {
        predicate
        for template in templates
        for condition in _CONDITIONS.findall(template)
        for predicate in _PREDICATES.findall(condition)
    }
    return not asked & changing and not any("#" in template for template in templates)


def _copy_state(state: Any) -> Any:
    """Copy the facts of a state and share all else; upstream's own copy loses the library."""
    twin = copy.copy(state)
    twin._facts = defaultdict(set, {key: set(facts) for key, facts in state._facts.items()})
    twin._vars_by_name = dict(state._vars_by_name)
    kinds = state._vars_by_type.items()
    twin._vars_by_type = defaultdict(set, {key: set(found) for key, found in kinds})
    twin._var_counts = Counter(state._var_counts)
    return twin
