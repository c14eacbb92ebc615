"""A game made ready to be played: everything that its episodes share, loaded and worded once.

Upstream's state, grammar and names, put together the way its `PddlEnv` and `AlfredDemangler` do.
What moves is in `simulation.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from dreamgym.envs.alfworld.game_text import GameText
from dreamgym.envs.alfworld.translate import Translation, already_translated
from dreamgym.envs.alfworld.upstream import Upstream

_CONDITIONS = re.compile(r"\|([^}]*)\}")
_PREDICATES = re.compile(r"(\w+)\(")
_SLOTS = re.compile(r"(\w+):")


@dataclass(frozen=True, slots=True)
class Move:
    """One grounded action, with the words for it."""

    command: str
    schema: str
    arguments: tuple[str, ...]
    operator: Any
    """Its number in the library, and how many effects it has."""


@dataclass(frozen=True, slots=True)
class House:
    """A game ready to be played."""

    text: GameText
    sas: bytes
    """The grounded problem, as the library loads it."""
    logic: Any
    """Upstream's parsed grammar."""
    start: Any
    """Upstream's state before the first action; never played, only copied."""
    infos: dict[str, Any]
    """Id -> upstream's record of the thing, with the name that the player sees."""
    intro: str
    stands: dict[str, str]
    """Receptacle -> location; what shares a location is reached together."""
    openable: frozenset[str]
    steady: bool
    """Whether a command's words depend on nothing that can change."""
    moves: dict[int, Move] = field(default_factory=dict)
    """Grounded actions met so far, by number."""
    wordings: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Action and those of its arguments that its command speaks of -> command."""
    plans: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Digest of a present problem -> the plan found for it."""

    def name(self, key: str) -> str:
        """Return the name by which the player knows a thing."""
        return str(self.infos[key].name).strip()

    def slots(self, schema: str) -> list[tuple[str, str]]:
        """Return the parameters of an action as (name, type); grounded ones may be fewer."""
        parameters = self.start._actions[schema].parameters
        return [(parameter.name.strip("?"), parameter.type_name) for parameter in parameters]


def build_house(
    upstream: Upstream, text: GameText, logic: Any, translation: Translation, library: Any
) -> House:
    """Make a game ready to be played; `library` is used, and free again afterwards."""
    with already_translated(upstream, translation):
        start = upstream.logic.PddlState(library, text.problem, logic)
    # Large, and not asked for again.
    start.task = start.sas = start.sas_replan = None
    infos = _entity_infos(upstream, start)
    facts = [(fact.name, *fact.names) for fact in start.facts]
    return House(
        text=text,
        sas=translation.sas.encode(),
        logic=logic,
        start=start,
        infos=infos,
        intro=text.with_goal(logic.grammar.derive("#intro#", grammar_context(start, infos, {}))),
        stands={fact[1]: fact[2] for fact in facts if fact[0] == "receptacleatlocation"},
        openable=frozenset(fact[1] for fact in facts if fact[0] == "openable"),
        steady=_is_steady(logic, translation.task),
    )


def word_operator(upstream: Upstream, house: House, state: Any, operator: Any) -> Move:
    """Find the words for a grounded action, as upstream does, unless they are known."""
    schema, *arguments = operator.name.split()
    # The array behind an operator is far larger than what is needed of it.
    own = upstream.downward.Operator(operator.id, b"", operator.nb_effect_atoms)
    template = house.logic.actions[schema].template
    spoken = set(re.findall(r"\w+", template))
    slots = house.slots(schema)
    key = (schema, *(a for (slot, _), a in zip(slots, arguments, strict=False) if slot in spoken))
    command = house.wordings.get(key) if house.steady else None
    if command is None:
        mapping = ground_slots(upstream, house, schema, arguments)
        words = house.logic.grammar.derive(template, grammar_context(state, house.infos, mapping))
        command = words.format(**{key: info.name for key, info in house.infos.items()})
        house.wordings[key] = command
    return Move(command, schema, tuple(arguments), own)


def ground_slots(upstream: Upstream, house: House, schema: str, arguments: Any) -> Any:
    """Return upstream's mapping from an action's parameters to things."""
    return {
        upstream.placeholder(slot, kind): upstream.variable(argument, kind)
        for (slot, kind), argument in zip(house.slots(schema), arguments, strict=False)
    }


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
    """Whether commands ask only for what never changes, and only about their own arguments."""
    changing = {effect.literal.predicate for action in task.actions for effect in action.effects}
    slots = {
        action.name: {parameter.name.strip("?") for parameter in action.parameters}
        for action in task.actions
    }
    for name, action in logic.actions.items():
        conditions = " ".join(_CONDITIONS.findall(action.template))
        asked, spoken = _PREDICATES.findall(conditions), _SLOTS.findall(conditions)
        if changing.intersection(asked) or set(spoken) - slots.get(name, set(spoken)):
            return False
        if "#" in action.template:
            return False
    return True
