"""The judge: golden prompt, nasty verdicts, and means that no unread verdict touches."""

import asyncio
import os
from pathlib import Path

import pytest

from dreamgym.audit.judge import (
    CRITERIA,
    Case,
    Verdict,
    judge_prompt,
    judge_steps,
    read_verdict,
    sum_up_verdicts,
)
from dreamgym.errors import LLMBudget, LLMError
from dreamgym.llm import ScriptedLLM
from dreamgym.llm.prompt import flat_prompt

GOLDEN = Path(__file__).parents[2] / "golden" / "audit" / "judge.txt"
NASTY = sorted((Path(__file__).parents[2] / "data" / "nasty_verdicts").iterdir())
CASE = Case(
    cluster="t0",
    goal="take the\ncoin",
    state="kitchen\ncup; spoon",
    action="take  cup",
    predicted="kitchen\nspoon\ncarrying: cup\n> you take the cup",
    ending="the action is carried out",
)


def scores(*values):
    named = ", ".join(f'"{name}": {value}' for name, value in zip(CRITERIA, values, strict=True))
    return f'{{"rubric_scores": {{{named}}}}}'


def test_golden_prompt():
    text = flat_prompt(judge_prompt(CASE)) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "the prompt changed: UPDATE_GOLDEN=1, and look at it"


@pytest.mark.parametrize("path", NASTY, ids=lambda path: path.stem)
def test_nasty_verdicts_are_not_read(path):
    with pytest.raises(ValueError, match=r"\w"):
        read_verdict(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        scores(2, 1, 0, 2),
        f"```json\n{scores(2, 1, 0, 2)}\n```",
        f"<think>hm {{}}</think>\nHere it is:\n{scores(2, 1, 0, 2)}\n",
        scores(2.0, 1, 0, 2),
        '{"why": "well", "rubric_scores": {"hallucination": 2, "diversity": 1, '
        '"causal_consistency": 2, "informativeness": 0}}',
    ],
)
def test_readable_verdicts(text):
    assert read_verdict(text) == Verdict(2, 1, 0, 2)


def test_means_by_hand():
    found = [
        (CASE, Verdict(2, 1, 0, 2)),
        (CASE, Verdict(1, 1, 0, 2)),
        (CASE, None),
    ]
    judged = sum_up_verdicts(found)
    assert (judged.cases, judged.unread) == (3, 1)
    assert [figure.mean for _, figure in judged.scores] == [1.5, 1.0, 0.0, 2.0]
    assert all(figure.count == 2 for _, figure in judged.scores)


def test_unread_verdicts_are_never_zeros():
    lines = iter([scores(2, 2, 2, 2), "what?", "what?", LLMError("gone"), scores(2, 2, 2, 2)])
    llm = ScriptedLLM(lambda request: next(lines))
    judged = asyncio.run(judge_steps(llm, [CASE] * 4, concurrency=1))
    assert (judged.cases, judged.unread) == (4, 2)
    assert all(figure.mean == 2.0 for _, figure in judged.scores)


def test_nothing_read_is_nothing_measured():
    judged = asyncio.run(judge_steps(ScriptedLLM(lambda request: "no"), [CASE]))
    assert judged.unread == 1
    assert not any(figure.known for _, figure in judged.scores)
    assert judged.plain()["diversity"]["mean"] is None


def test_a_spent_budget_stops_the_audit():
    with pytest.raises(LLMBudget):
        asyncio.run(judge_steps(ScriptedLLM([LLMBudget("spent")]), [CASE]))
