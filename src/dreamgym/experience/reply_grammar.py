"""What a reply of the full style may be, as a grammar, for servers that can enforce one.

A model that cannot stray from the form cannot fail by it: the flags never contradict each other
and an edit names only items that are there. It says nothing about what is true. The parser in
`prompt.py` stays the judge, and reads every reply as if no grammar had been sent.
"""

from __future__ import annotations

from dreamgym.experience.contents import things_of
from dreamgym.experience.prompt import Switches
from dreamgym.states import items

_LONGEST_THOUGHT = 600
"""In characters; without a bound a small model would think until it is cut off."""
_LONGEST_LINE = 300
_MOST_CHANGES = 16
_MOST_LINES = 40

_RULES = r"""
change ::= edit | page
edit ::= "<edit>\n" (op{0,MOST_CHANGES} said{0,4} | "\n") "</edit>\n"
said ::= "> " line
page ::= "<next_state>\n" plain{1,MOST_LINES} said{0,4} "</next_state>\n"
line ::= [^< \t\n] [^<\n]{0,LONGEST_LINE} "\n"
plain ::= [^<>#` \t\n] [^<\n]{0,LONGEST_LINE} "\n"
flags ::= refused | goes-on | lost | won
refused ::= "Refused: True\nDone: False\nSuccess: False\nReward: 0" ".0"?
goes-on ::= "Refused: False\nDone: False\nSuccess: False\nReward: " number
lost ::= "Refused: False\nDone: True\nSuccess: False\nReward: " number
won ::= "Refused: False\nDone: True\nSuccess: True\nReward: " number
number ::= "-"? [0-9]{1,4} ("." [0-9]{1,4})?
"""
_BOUNDS = {
    "MOST_CHANGES": _MOST_CHANGES,
    "MOST_LINES": _MOST_LINES,
    "LONGEST_LINE": _LONGEST_LINE,
}


def reply_grammar(state: str, *, switches: Switches) -> str:
    """Return the grammar of replies to a step from this state, in llama.cpp's notation (GBNF)."""
    rules = _RULES
    for name, bound in _BOUNDS.items():
        rules = rules.replace(name, str(bound))
    count = len(items(state))
    thought = (
        f'"<think>" [^< \\t\\n] [^<]{{0,{_LONGEST_THOUGHT}}} "</think>\\n" '
        if switches.reasoning
        else ""
    )
    # A new line may stand one past the last item, all else must name an item that is there.
    ops = [f'"|" ({_any_of(count + 1)}) " " line']
    listing = [(number, item) for number, item in enumerate(items(state)) if ": " in item]
    for number, item in listing:
        # Anything may come to a list, but only what is there can go.
        ops.append(f'"*{number} " line')
        ops += [f'"/{number} " {_literal(thing)} "\\n"' for thing in things_of(item)]
    if count:
        ops = [f'[=+&] ({_any_of(count)}) " " line', f'"-" ({_any_of(count)}) "\\n"', *ops]
    return f"root ::= {thought}change flags\nop ::= {' | '.join(ops)}{rules}"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _any_of(count: int) -> str:
    return " | ".join(f'"{number}"' for number in range(count))
