"""The card beside a policy's weights."""

import json

import pytest

from dreamgym.agents.policy_card import (
    CARD,
    Choose,
    PolicyCard,
    load_policy_card,
    model_folder,
    read_changes,
)
from dreamgym.agents.policy_prompt import Format
from dreamgym.errors import ConfigError


def test_a_card_is_read_as_it_was_written(tmp_path):
    card = PolicyCard(
        "e",
        Format.CHAT,
        window=2,
        think=True,
        temperature=0.5,
        knows={"frames": [], "layout": [], "names": ["cup"]},
    )
    card.save(tmp_path)
    assert load_policy_card(tmp_path) == card


def test_a_folder_without_a_card_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"no policy\.json"):
        load_policy_card(tmp_path)


@pytest.mark.parametrize("change", [{"format": "verse"}, {"windows": 3}, {"format": None}])
def test_a_card_that_is_none_is_told(tmp_path, change):
    PolicyCard("e").save(tmp_path)
    plain = {**json.loads((tmp_path / CARD).read_text()), **change}
    (tmp_path / CARD).write_text(json.dumps(plain))
    with pytest.raises(ConfigError, match="not a policy's card"):
        load_policy_card(tmp_path)


def test_a_policy_that_learnt_other_prompts_is_refused(tmp_path):
    PolicyCard("e", prompts="old").save(tmp_path)
    with pytest.raises(ConfigError, match="train it again"):
        load_policy_card(tmp_path)


def test_a_name_may_say_what_differs_from_the_card():
    assert read_changes("temperature=0&choose=listed") == {
        "temperature": 0.0,
        "choose": Choose.LISTED,
    }
    assert read_changes("") == {}


@pytest.mark.parametrize("text", ["temperatur=0", "window=3", "temperature=cold", "choose=maybe"])
def test_other_differences_are_refused(text):
    with pytest.raises(ConfigError):
        read_changes(text)


@pytest.mark.parametrize("inner", ["", "policy", "model"])
def test_a_run_means_the_model_in_it(tmp_path, inner):
    assert model_folder(tmp_path) is None
    (tmp_path / inner).mkdir(exist_ok=True)
    (tmp_path / inner / "config.json").write_text("{}")
    assert model_folder(tmp_path) == tmp_path / inner
