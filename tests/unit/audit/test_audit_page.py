"""The page: whole, self-contained, safe against what states may hold."""

import asyncio
import json
import re
from html.parser import HTMLParser

import pytest
from dreamed_corridor import Hasty, dream, flattery, recorded, slots_of

from dreamgym.agents.behaviour import Behaviour
from dreamgym.audit import AuditPlan, Player, Subject, audit
from dreamgym.audit.judge import CRITERIA
from dreamgym.audit.page import audit_page
from dreamgym.llm import ScriptedLLM
from dreamgym.replay.embed import HashingEmbedder
from dreamgym.testing import CorridorWorld

FAIR = json.dumps({"rubric_scores": dict.fromkeys(CRITERIA, 1)})


@pytest.fixture(scope="module")
def report():
    async def once():
        slots = slots_of(lambda slot: Behaviour("<b>policy</b>", Hasty), episodes=12)
        return await audit(
            Subject(
                dream(flattery), HashingEmbedder(), real=CorridorWorld(),
                judge=ScriptedLLM(lambda request: FAIR),
            ),
            await recorded(episodes=12),
            players=[Player("<b>policy</b>", slots, in_dream=True)],
            plan=AuditPlan(judge_cases=5),
        )  # fmt: skip

    return asyncio.run(once())


class Balance(HTMLParser):
    """Counts tags that are opened and not closed."""

    empty = frozenset({"meta", "line", "circle", "path"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.empty:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.empty:
            assert self.open.pop() == tag


def test_every_tag_is_closed_and_nothing_is_fetched(report):
    page = audit_page(report, title="Audit of <x>", about='a & b "c"')
    reader = Balance()
    reader.feed(page)
    assert reader.open == []
    assert not re.search(r"(?i)(src|href)=|url\(|@import|<script", page)


def test_names_cannot_write_the_page(report):
    page = audit_page(report, title="Audit of <x>", about="a & b")
    assert "<b>policy</b>" not in page
    assert "&lt;b&gt;policy&lt;/b&gt;" in page
    assert "Audit of &lt;x&gt;" in page


def test_it_says_why_the_gate_is_shut_and_shows_where(report):
    page = audit_page(report, title="t", about="a")
    assert "The gate is <b>shut</b>" in page
    assert all(reason in page for reason in report.reasons)
    for title in ("On-policy", "Closed loop", "One step", "Luck", "bounds", "disagree", "judge"):
        assert title in page
    assert page.count("<article>") == len(report.disagreements) > 2
    assert "so it goes" in page


def test_no_number_is_missing(report):
    page = audit_page(report, title="t", about="a")
    assert not re.search(r"\bnan\b|\bNone\b", page)


def test_the_result_is_plain_json(report):
    text = json.dumps(report.plain(), allow_nan=False)
    assert json.loads(text)["judge"]["diversity"]["mean"] == 1.0


def test_examples_are_of_several_sorts(report):
    assert len({one.where.partition(":")[0] for one in report.disagreements}) >= 2
    assert len({(one.state, one.action) for one in report.disagreements}) == len(
        report.disagreements
    )
