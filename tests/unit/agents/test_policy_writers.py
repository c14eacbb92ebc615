"""Episodes as chats: a conversation that only grows, chats that ask anew, windows, parsing."""

import itertools

import pytest

from dreamgym.agents.policy_card import PolicyCard
from dreamgym.agents.policy_prompt import Format, chat_prompt, unreadable
from dreamgym.agents.policy_tokens import CompactWriter
from dreamgym.agents.policy_writers import ChatWriter, writer_for
from dreamgym.errors import AgentError, ConfigError
from dreamgym.models.tokenizer import train_word_tokenizer
from dreamgym.train.tokens import READ, Weaver
from dreamgym.types import Message, Observation, SampledTokens

PAGES = [Observation(f"room {n}", ("take coin", "move north")) for n in range(8)]
GOAL = "find the coin"


class ChatSpelling:
    """A vocabulary whose chats have a template: every message ends with the end token."""

    def __init__(self):
        texts = ["find the coin room 0 1 2 3 4 5 6 7 take coin move north"] * 2
        self.words = train_word_tokenizer(texts, special=("<turn>",), vocab_size=400, min_count=1)
        self.end_ids = self.words.end_ids
        self.encode, self.decode = self.words.encode, self.words.decode

    def prompt_ids(self, prompt):
        if isinstance(prompt, str):
            return self.encode(prompt)
        turns = "".join(f"<turn>{each.role}\n{each.content}<end>" for each in prompt)
        return self.encode(turns + "<turn>assistant\n")


@pytest.fixture(scope="module")
def spelling():
    return ChatSpelling()


def played(writer, turns, said):
    """Return what is read before each of so many turns that are all answered alike."""
    past = [(PAGES[n % 8], said) for n in range(turns)]
    return [writer.prompt(GOAL, past[:n], PAGES[n % 8]) for n in range(turns)]


def test_a_conversation_spells_what_the_template_would(spelling):
    writer = ChatWriter(spelling, 4096, 16)
    said = writer.answer("take coin")
    asked = played(writer, 3, said)
    opening = chat_prompt(GOAL, [], PAGES[0], list_actions=False, think=False)
    answer = Message("assistant", "<action>take coin</action>")
    states = [Message("user", f"Current state:\nroom {n}") for n in (1, 2)]
    assert list(asked[0]) == spelling.prompt_ids(opening)
    assert list(asked[2]) == spelling.prompt_ids((*opening, answer, states[0], answer, states[1]))


def test_a_conversation_is_one_sequence_whose_answers_alone_are_learnt(spelling):
    writer, weaver = ChatWriter(spelling, 4096, 16, list_actions=True, think=True), Weaver()
    whole = writer.answer("take coin")
    cut_off = tuple(spelling.encode("<think>room room"))
    past = []
    for number, said in enumerate((whole, cut_off, whole)):
        prompt = writer.prompt(GOAL, past, PAGES[number])
        weaver.add(prompt, SampledTokens(said, (-1.0,) * len(said)))
        past.append((PAGES[number], said))
    (sequence,) = weaver.sequences()
    learnt = [
        tuple(token for token, turn in zip(sequence.ids, sequence.turns, strict=True) if turn == n)
        for n in range(3)
    ]
    assert learnt == [whole, cut_off, whole]
    text = spelling.decode(sequence.ids)
    assert text.count("Possible actions: take coin; move north") == 3
    assert text.count("<think>your reasoning</think>") == 1
    # An answer that was cut off is ended for it; that end is read, not learnt.
    ends = [n for n, token in enumerate(sequence.ids) if token in spelling.end_ids]
    assert sequence.turns[ends[4]] == READ
    assert sequence.ids[ends[4] - len(cut_off) : ends[4]] == cut_off


def test_a_chat_asks_anew_and_tells_its_window(spelling):
    writer = ChatWriter(spelling, 4096, 16, window=1, growing=False)
    asked = played(writer, 4, writer.answer("take coin"))
    turns = [(PAGES[2], "take coin")]
    wanted = chat_prompt(GOAL, turns, PAGES[3], list_actions=False, think=False)
    assert list(asked[3]) == spelling.prompt_ids(wanted)


@pytest.mark.parametrize("growing", [True, False])
def test_what_outgrows_the_model_loses_its_oldest_turns(spelling, growing):
    head = len(ChatWriter(spelling, 4096, 16).prompt(GOAL, [], PAGES[0]))
    writer = ChatWriter(spelling, head + 416, 16, growing=growing)
    asked = played(writer, 30, writer.answer("take coin"))
    assert head + 300 < max(map(len, asked)) <= head + 400
    for number, prompt in enumerate(asked):
        text = spelling.decode(prompt)
        assert f"Task: {GOAL}" in text
        assert text.rstrip().endswith(f"room {number % 8}<end><turn>assistant")
    if growing:
        grows = sum(after[: len(one)] == one for one, after in itertools.pairwise(asked))
        assert grows > 20


def test_a_window_of_a_conversation_moves_in_jumps(spelling):
    writer = ChatWriter(spelling, 4096, 16, window=2)
    asked = played(writer, 12, writer.answer("take coin"))
    shown = [spelling.decode(prompt).count("<action>take coin</action>") for prompt in asked]
    assert all(min(2, turn) <= count < 4 for turn, count in enumerate(shown))


def test_a_state_that_leaves_no_room_is_told(spelling):
    with pytest.raises(AgentError, match="leave no room for an answer of 16"):
        ChatWriter(spelling, 64, 16).prompt(GOAL, [], PAGES[0])


def test_answers_are_read_with_their_thoughts_left_out(spelling):
    writer = ChatWriter(spelling, 4096, 16)
    assert writer.action(writer.answer("take coin")) == "take coin"
    words = "<think>take coin or move north</think><action>move north</action>"
    assert writer.action((*spelling.encode(words), min(spelling.end_ids))) == "move north"
    assert writer.action(tuple(spelling.encode(words))) == "move north"
    assert writer.action(tuple(spelling.encode("take coin"))) == unreadable("take coin")
    assert writer.action(()) == unreadable("")


def test_a_card_says_which_writer_is_meant(spelling):
    chat, conversation = (
        writer_for(PolicyCard("e", each, window=3, think=True), spelling, positions=100)
        for each in (Format.CHAT, Format.CONVERSATION)
    )
    shared = (spelling, 100, 24, 3, False)
    assert chat == ChatWriter(*shared, think=True, growing=False)
    assert conversation == ChatWriter(*shared, think=True, growing=True)
    assert writer_for(PolicyCard("e", window=3), spelling, positions=100) == CompactWriter(*shared)


def test_chats_that_do_not_grow_are_told(spelling):
    writer = ChatWriter(spelling.words, 4096, 16)  # its chats are plain text, without ends
    with pytest.raises(ConfigError, match="set policy.format=chat"):
        played(writer, 2, writer.answer("take coin"))
