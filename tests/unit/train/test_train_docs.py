"""The page about training: its code runs, and the tests that it names exist."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from made_episodes import made_group

from dreamgym.train import algorithms

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "training.md"


def test_the_code_on_the_page_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    advantages, updates = capsys.readouterr().out.splitlines()
    assert advantages.startswith("[1.15")
    assert updates == "2.0"


def test_the_tests_that_the_page_names_exist():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in here} == set()


def test_the_figures_that_the_page_explains_are_those_that_are_made():
    shown = set(re.findall(r"`((?:actor|critic|credit|sft|dpo)/[\w/]+)`", PAGE.read_text()))
    source = "".join(path.read_text() for path in (ROOT / "src/dreamgym/train").glob("*.py"))
    made = set(re.findall(r'"((?:actor|critic|credit|sft|dpo)/[\w/]+)"', source))
    norms = {"actor/grad_norm", "critic/grad_norm"}
    short = {"critic/advantages/max", "critic/advantages/min"}
    assert made - shown == short
    assert shown - made == norms


def test_the_algorithm_in_the_contributors_guide_is_one():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (code,) = [c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "Baseline" in c]
    names: dict = {"Sequence": Sequence, "dataclass": dataclass, "np": np}
    names |= vars(algorithms)
    exec(compile("from __future__ import annotations\n" + code, "CONTRIBUTING.md", "exec"), names)
    credit = names["MedianBaseline"]().credit([made_group([0, 1, 5]), made_group([2, 2, 2])])
    assert [one.advantages.tolist() for one in credit.episodes] == [[-1], [0], [4]]
    assert credit.metrics["credit/groups_without_variance"] == 1
