"""The grammar of replies: what it allows can be read, and what must be sayable it allows."""

import contextlib
import random
import re

import pytest
from recorded_states import STEPS
from small_house import OPENING, perfect
from test_experience_prompt import recorded

from dreamgym.experience.edit import apply
from dreamgym.experience.prompt import (
    StepQuery,
    Style,
    Switches,
    answer_of,
    read_step_answer,
    step_answer_text,
    step_prompt,
)
from dreamgym.experience.reply_grammar import reply_grammar
from dreamgym.llm.prompt import flat_prompt

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{\d+,\d*\}|[a-z-]+|[()|?*+]')


def rules_of(grammar):
    return dict(rule.split(" ::= ", 1) for rule in grammar.strip().split("\n"))


def as_regex(grammar):
    """Turn a grammar without recursion to a regular expression, which is easily tried out."""
    rules = rules_of(grammar)

    def expand(name):
        parts = []
        for token in TOKEN.findall(rules[name]):
            if token.startswith('"'):
                parts.append("(?:" + re.escape(token[1:-1].replace("\\n", "\n")) + ")")
            elif token[0].isalpha():
                parts.append(expand(token))
            elif token == "(":
                parts.append("(?:")
            else:
                parts.append(token)
        return f"(?:{''.join(parts)})"

    return re.compile(expand("root"))


def sample(grammar, rng, *, name="root", rules=None):
    """Draw a text that the grammar allows; repetitions are kept short."""
    rules = rules or rules_of(grammar)
    tokens = TOKEN.findall(rules[name])
    place = 0

    def choice():
        nonlocal place
        branches = [sequence()]
        while place < len(tokens) and tokens[place] == "|":
            place += 1
            branches.append(sequence())
        return rng.choice(branches)()

    def sequence():
        nonlocal place
        parts = []
        while place < len(tokens) and tokens[place] not in "|)":
            parts.append(atom())
        return lambda: "".join(part() for part in parts)

    def atom():
        nonlocal place
        token = tokens[place]
        place += 1
        if token == "(":
            inner = group()
            place += 1
        elif token.startswith('"'):
            text = token[1:-1].replace("\\n", "\n")
            inner = lambda: text  # noqa: E731
        elif token.startswith("["):
            allowed = [c for c in "ab 3.,;:|=x" if re.fullmatch(token, c)] or [*token[1:-1]]
            inner = lambda: rng.choice(allowed)  # noqa: E731
        else:
            inner = lambda: sample(grammar, rng, name=token, rules=rules)  # noqa: E731
        low, high = 1, 1
        if place < len(tokens) and (tokens[place] in "?*+" or tokens[place].startswith("{")):
            mark = tokens[place]
            place += 1
            bounds = {"?": (0, 1)}.get(mark) or tuple(map(int, mark[1:-1].split(",")))
            low, high = bounds[0], min(bounds[1], bounds[0] + 3)
        return lambda: "".join(inner() for _ in range(rng.randint(low, high)))

    def group():
        branches = [sequence()]
        nonlocal place
        while tokens[place] == "|":
            place += 1
            branches.append(sequence())
        return lambda: rng.choice(branches)()

    return choice()


@pytest.mark.parametrize("reasoning", [True, False])
def test_whatever_it_allows_can_be_read_and_most_can_be_applied(reasoning):
    switches, rng = Switches(reasoning=reasoning), random.Random(0)
    grammar = reply_grammar(OPENING, switches=switches)
    pattern = as_regex(grammar)
    applied = 0
    for _ in range(300):
        text = sample(grammar, rng)
        assert pattern.fullmatch(text)
        answer = read_step_answer(text, style=Style.FULL, switches=switches)
        # No grammar sees that one change of an item spoils the next.
        with contextlib.suppress(ValueError):
            apply(OPENING, answer.edit)
            applied += 1
    assert applied > 200


def test_it_allows_the_answers_of_recorded_steps():
    checked = 0
    for number, step in enumerate(STEPS):
        one = recorded(number, step)
        text = step_answer_text(answer_of(one, reasoning="why"), style=Style.FULL)
        grammar = reply_grammar(one.state, switches=Switches())
        assert as_regex(grammar).fullmatch(text), (number, text)
        checked += 1
    assert checked > 20


def test_it_keeps_to_items_that_are_there():
    query = StepQuery("take the coin", OPENING, "take cup")
    reply = perfect(Style.FULL)(flat_prompt(step_prompt(query, style=Style.FULL)))
    pattern = as_regex(reply_grammar(OPENING, switches=Switches()))
    assert pattern.fullmatch(reply)
    assert not pattern.fullmatch(reply.replace("-1", "-9"))
    assert not pattern.fullmatch(reply.replace("Done: False", "Done: False\nSuccess: True"))
    assert as_regex(reply_grammar("", switches=Switches())).fullmatch(
        "<think>x</think>\n<edit>\n|0 hall\n</edit>\nRefused: False\nDone: False\n"
        "Success: False\nReward: 0"
    )
