"""The card of a dream: what it is, and when it is refused."""

import json
from dataclasses import replace

import pytest

from dreamgym.errors import ConfigError
from dreamgym.experience.card import CARD, DreamCard, load_card
from dreamgym.experience.goals import GoalNeeds
from dreamgym.experience.grounding import KnownKinds
from dreamgym.experience.prompt import PROMPT_DIGEST, Style, Switches
from dreamgym.experience.task_prompt import Job


def a_card():
    known = KnownKinds(
        kinds=frozenset({"take _", "look"}),
        free=frozenset({"around"}),
        on_sight=frozenset({"take _"}),
        refusal=("you can't", "really"),
        in_full=frozenset({"take _"}),
        beside=frozenset({"open"}),
        layout=frozenset({"places"}),
        out_of_place=frozenset({"open _; _ open:; free"}),
        never_together=frozenset({"put _ in _; pillow; sink"}),
        goals=GoalNeeds(
            frozenset({"heat hot"}), frozenset({"two"}), in_the_end=frozenset({"lamp on"})
        ),
    )
    switches = Switches(history=False, window=3)
    return DreamCard("twx/coin", "/some/store", "hashing", Style.COMPACT, switches, 2, known)


def test_a_card_is_read_as_it_was_written(tmp_path):
    a_card().save(tmp_path)
    assert load_card(tmp_path) == a_card()


def test_a_card_says_which_jobs_were_taught(tmp_path):
    taught = replace(a_card(), jobs=tuple(Job), vary_goals=True)
    taught.save(tmp_path)
    assert load_card(tmp_path) == taught
    assert a_card().jobs == (Job.STEP,)


@pytest.mark.parametrize(("style", "jobs"), [("compact", (Job.STEP,)), ("full", tuple(Job))])
def test_a_card_from_before_there_were_other_jobs_still_opens(tmp_path, style, jobs):
    a_card().save(tmp_path)
    plain = json.loads((tmp_path / CARD).read_text())
    for name in ("jobs", "vary_goals", "task_prompts"):
        del plain[name]
    (tmp_path / CARD).write_text(json.dumps(plain | {"style": style}))
    assert load_card(tmp_path).jobs == jobs


def test_jobs_taught_with_other_prompts_are_off_and_the_step_is_not(tmp_path):
    replace(a_card(), jobs=tuple(Job), task_prompts="0123").save(tmp_path)
    assert load_card(tmp_path).jobs == (Job.STEP,)


def test_a_folder_without_a_card_is_no_dream(tmp_path):
    with pytest.raises(ConfigError, match="holds no dream.*dreamgym fit"):
        load_card(tmp_path)


def test_other_prompts_are_refused_whatever_else_differs(tmp_path):
    a_card().save(tmp_path)
    plain = json.loads((tmp_path / CARD).read_text())
    plain["prompts"] = "0123"
    plain["switches"]["of_another_version"] = 1
    (tmp_path / CARD).write_text(json.dumps(plain))
    with pytest.raises(ConfigError, match=f"other prompts.*0123.*{PROMPT_DIGEST}") as refused:
        load_card(tmp_path)
    assert "is not a dream's card" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "lacks 'prompts'"),
        ("not json", "Expecting value"),
        ("[]", "list indices"),
        (json.dumps({"prompts": PROMPT_DIGEST}), "lacks 'known'"),
    ],
)
def test_a_damaged_card_says_so(tmp_path, text, why):
    (tmp_path / CARD).write_text(text)
    with pytest.raises(ConfigError, match="is not a dream's card") as refused:
        load_card(tmp_path)
    assert why in str(refused.value)
