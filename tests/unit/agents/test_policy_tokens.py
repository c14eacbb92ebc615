"""Compact episodes as tokens: one sequence that grows, windows that jump, room that ends."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.agents.policy_prompt import MARKS, goal_text, state_text
from dreamgym.agents.policy_tokens import ALL, CompactWriter, first_shown
from dreamgym.errors import AgentError
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.types import Observation

PAGES = [Observation(f"room {n}\ncoin; cup\nnorth: room {n + 1}") for n in range(8)]
ACTIONS = ["move north", "take cup", "take coin"]
TEXTS = [page.text for page in PAGES] + [f"{action} 9" for action in ACTIONS] + ["find the coin"]


@pytest.fixture(scope="module")
def words():
    return train_word_tokenizer(TEXTS, special=MARKS[:-1], vocab_size=400, min_count=1)


def prompts(writer, turns):
    """Return what is read before each action of an episode, and the actions."""
    said = [writer.answer(ACTIONS[n % 3]) for n in range(turns)]
    past = [(PAGES[n % 8], said[n]) for n in range(turns)]
    return [writer.prompt("find the coin", past[:n], PAGES[n % 8]) for n in range(turns)], said


def test_pieces_spell_the_same_as_the_whole_text(words):
    writer = CompactWriter(words, 512, 8)
    prompt = writer.prompt("find the coin", [(PAGES[0], writer.answer("take cup"))], PAGES[1])
    whole = goal_text("find the coin")
    whole += state_text(PAGES[0]) + "<act>take cup<end>" + state_text(PAGES[1]) + "<act>"
    assert list(prompt) == words.encode(whole)
    assert words.decode(prompt) == whole


def test_each_turn_begins_with_all_that_was_read_and_said_before(words):
    asked, said = prompts(CompactWriter(words, 2048, 8), 6)
    for before, action, after in zip(asked, said, asked[1:], strict=False):
        assert after[: len(before) + len(action)] == before + action


def test_earlier_actions_stay_as_they_were_sampled(words):
    writer = CompactWriter(words, 512, 8)
    spelled = (*words.encode("t"), *words.encode("k"))  # no tokenizer would write it so
    prompt = writer.prompt("g", [(PAGES[0], spelled)], PAGES[1])
    assert any(prompt[n : n + len(spelled)] == spelled for n in range(len(prompt)))


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_shows_so_many_turns_and_fewer_than_twice_as_many(words, window):
    asked, _ = prompts(CompactWriter(words, 2048, 8, window), 12)
    act = words.special_id("<act>")
    shown = [prompt.count(act) - 1 for prompt in asked]
    assert all(min(window, turn) <= count < 2 * window for turn, count in enumerate(shown))
    grows = sum(after[: len(one)] == one for one, after in itertools.pairwise(asked))
    assert grows >= len(asked) - 1 - len(asked) // window


def test_a_window_of_none_shows_the_state_alone(words):
    asked, _ = prompts(CompactWriter(words, 2048, 8, 0), 5)
    assert [prompt.count(words.special_id("<act>")) for prompt in asked] == [1] * 5


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
    st.integers(30, 120),
    st.sampled_from([ALL, 0, 1, 2, 5]),
)
def test_what_is_shown_fits_and_ends_with_the_current_turn(sizes, room, window):
    first = first_shown(sizes, room=room, window=window)
    assert 0 <= first < len(sizes)
    assert sum(sizes[first:]) <= room


def test_an_episode_that_outgrows_the_model_loses_its_oldest_turns(words):
    writer = CompactWriter(words, 90, 8)
    asked, _ = prompts(writer, 20)
    assert all(len(prompt) <= 82 for prompt in asked)
    jumps = sum(b[: len(a)] != a for a, b in itertools.pairwise(asked))
    assert 0 < jumps < 12  # in jumps, not at every turn
    goal = tuple(words.encode(goal_text("find the coin")))
    assert all(prompt[: len(goal)] == goal for prompt in asked)


def test_a_state_that_is_too_long_loses_its_end(words):
    writer = CompactWriter(words, 40, 8)
    prompt = writer.prompt("find the coin", [], Observation("coin; cup; " * 40))
    assert len(prompt) == 32
    assert prompt[-1] == words.special_id("<act>")


def test_a_goal_that_leaves_no_room_is_told(words):
    with pytest.raises(AgentError, match="nothing is left for a state"):
        CompactWriter(words, 20, 8).prompt("find the coin " * 9, [], PAGES[0])


def test_an_answer_ends_and_is_read_back(words):
    writer = CompactWriter(words, 64, 8)
    assert writer.read(writer.answer("take cup")) == ("take cup", True)
    assert writer.read(writer.answer("take cup")[:-1]) == ("take cup", False)
    assert writer.read(()) == ("", False)


def test_a_state_is_spelled_once_however_often_it_is_shown(words):
    class Counting:
        """Spells like another, and counts the texts."""

        end_ids = words.end_ids
        prompt_ids = staticmethod(words.prompt_ids)
        decode = staticmethod(words.decode)

        def __init__(self):
            self.texts = []

        def encode(self, text):
            self.texts.append(text)
            return words.encode(text)

    spelling = Counting()
    asked, said = prompts(CompactWriter(spelling, 2048, 8), 6)
    states = [text for text in spelling.texts if text.startswith("<state>")]
    assert states == [state_text(page) for page in PAGES[:6]]
    assert (asked, said) == prompts(CompactWriter(words, 2048, 8), 6)
