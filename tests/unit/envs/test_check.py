"""Every check passes on a sound environment and fails on one that is broken in just that way."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest

from dreamgym.envs.check import Finding, check_env
from dreamgym.envs.contract import CHECKS
from dreamgym.errors import ConfigError

FAULTS = {
    "process ids": ("tasks are listed alike every time", "was listed with Task"),
    "changing ids": ("tasks are listed alike every time", "was listed with Task"),
    "no training": ("tasks are listed alike every time", "the train split is empty"),
    "same ids": ("task ids are unique", "4 ids name several tasks, such as '#0'"),
    "wrong world": ("tasks belong to their world", "it needs env='py/broken_engines"),
    "wrong split": ("tasks belong to their world", "was listed under train"),
    "shared keys": ("splits have no task in common", "'0' is a task of train and of dev"),
    "any key": ("unknown tasks are refused", "open() took the key 'no such key'"),
    "any parameter": ("unknown parameters are refused", "read parameters with dreamgym.envs.spec"),
    "seeded start": ("first states repeat", "the first state belongs to the task"),
    "random start": ("first states repeat", "the first state belongs to the task"),
    "dice": ("episodes replay", "draw chance from the seed"),
    "shared state": ("games share no state", "side by side: one answered"),
    "unsorted": ("listed actions are not refused as a rule", "sort it, and list each action once"),
    "wrong list": ("listed actions are not refused as a rule", "list only what would be done"),
    "never refuses": ("nonsense is refused", "set refused=True"),
    "nonsense raises": ("nonsense is refused", "must be answered, not raise: env.step: KeyError"),
    "nonsense pays": ("nonsense is refused", "gave reward 0.1"),
    "empty text": ("texts are not empty", "with an empty text"),
    "early success": ("rewards are finite, success ends", "success without termination"),
    "no number": ("rewards are finite, success ends", "reward nan is not a finite number"),
    "reset forgets": ("an ended episode is over", "reset after its end, began once with"),
    "lost expert": ("the expert wins", "did not win"),
    "forgetful expert": ("the expert wins", "after ['climb', 'climb'] the expert's"),
    "half a character": ("records survive storage", "cannot be stored"),
}
UNTOLD = {
    "no list": "listed actions are not refused as a rule",
    "no expert": "the expert wins",
    "goal": "goals are told",
    "endless": "an ended episode is over",
}


@cache
def findings(fault: str) -> dict[str, Finding]:
    spec = f"py/broken_engines:make_engine?fault={fault}"
    return {finding.name: finding for finding in asyncio.run(check_env(spec, tasks=2))}


def test_a_sound_environment_passes_every_check() -> None:
    found = findings("")
    assert list(found) == list(CHECKS)
    assert {name: finding for name, finding in found.items() if not finding.passed} == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_promise_is_found(fault: str) -> None:
    name, details = FAULTS[fault]
    finding = findings(fault)[name]
    assert finding.passed is False
    assert details in finding.details


@pytest.mark.parametrize("fault", UNTOLD)
def test_what_an_environment_does_not_have_is_not_held_against_it(fault: str) -> None:
    found = findings(fault)
    assert found[UNTOLD[fault]].passed is None
    assert found[UNTOLD[fault]].details
    assert not any(finding.passed is False for finding in found.values())


def test_every_check_is_seen_to_fail() -> None:
    never_fails = {"goals are told"}
    assert {name for name, _ in FAULTS.values()} == CHECKS.keys() - never_fails


def test_an_engine_that_hangs_has_refused_nothing() -> None:
    spec = "py/broken_engines:make_engine?fault=stuck"
    found = {one.name: one for one in asyncio.run(check_env(spec, tasks=1, time_limit=1.0))}
    refused = found.pop("unknown parameters are refused")
    assert refused.passed is False
    assert "ignored" not in refused.details, "nobody knows"
    assert not any(finding.passed is False for finding in found.values())


def test_nothing_to_check_is_a_failure() -> None:
    (finding,) = findings("nothing").values()
    assert (finding.passed, finding.details) == (False, "every split is empty")


def test_an_engine_that_cannot_start_says_so_itself() -> None:
    with pytest.raises(ConfigError, match="unknown parameter 'fautl'"):
        asyncio.run(check_env("py/broken_engines:make_engine?fautl=1"))
    with pytest.raises(ConfigError, match="at least one is needed"):
        asyncio.run(check_env("py/broken_engines:make_engine", tasks=0))
