"""Words as tokens: exact round trips, nothing unknown, the same in transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.errors import ConfigError
from dreamgym.models.spelling import MARKS
from dreamgym.models.tokenizer import (
    END,
    PAD,
    WordTokenizer,
    load_word_tokenizer,
    plain_chat,
    train_word_tokenizer,
)
from dreamgym.types import Message

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
"""Any characters but halves of surrogate pairs, which are not text."""
WORDS = ["coin", "T-shirt", "the", "zyzzyva", "12", "<act>", "<obs>", "don't", "é", "_", "a"]
SIGNS = [" ", "  ", "\n", "\t", "\r", ",", ".", "(", ")", "[", "{", "}", "/", '"', "<", "-", "'"]
PROSE = st.lists(st.sampled_from([*WORDS, *SIGNS, " ", " "]), max_size=40).map("".join)


def without_marks(text: str) -> str:
    return "".join(letter for letter in text if letter not in MARKS)


def pieces(tokenizer: WordTokenizer, text: str) -> list[str]:
    return [tokenizer.piece(token) for token in tokenizer.encode(text)]


@given(text=ANY_TEXT | PROSE)
def test_texts_come_back_as_they_were(words: WordTokenizer, text: str) -> None:
    assert words.decode(words.encode(text)) == without_marks(text)


@given(texts=st.lists(PROSE, max_size=4))
def test_many_texts_are_encoded_like_one(words: WordTokenizer, texts: list[str]) -> None:
    assert words.encode_all(texts) == [words.encode(text) for text in texts]


@given(before=PROSE, after=PROSE)
def test_a_special_token_parts_texts(words: WordTokenizer, before: str, after: str) -> None:
    """What stands after a special token is encoded as if nothing stood before it."""
    whole = words.encode(before + "<obs>" + after)
    assert whole == [*words.encode(before), words.special_id("<obs>"), *words.encode(after)]


def test_a_word_is_the_same_token_wherever_it_stands(words: WordTokenizer) -> None:
    (coin,) = words.encode("coin")
    for text in ("the coin", "(coin)", "box, coin", "the\ncoin", "<act>coin", "/coin", "  coin"):
        assert words.encode(text).count(coin) == 1, text


def test_pieces_of_a_sentence(words: WordTokenizer) -> None:
    text = "<act>take the coin from the T-shirt (red), then go north.\n"
    expected = "<act> ▁take ▁the ▁coin ▁from ▁the ▁T-shirt ␣( ▁red ) , ▁then ▁go ▁north . \n"
    assert pieces(words, text) == expected.split(" ")


def test_unseen_words_are_spelled_and_unseen_characters_are_bytes(words: WordTokenizer) -> None:
    assert pieces(words, "the zoo") == ["▁the", "▁", "z", "o", "o"]
    assert pieces(words, "é") == ["▁", "<0xC3>", "<0xA9>"]


def test_halves_of_characters_are_replaced(words: WordTokenizer) -> None:
    assert words.decode(words.encode("a\ud800b")) == "a?b"


def test_broken_bytes_decode_to_something(words: WordTokenizer) -> None:
    lonely = words.encode("é")[1:2]
    assert "\ufffd" in words.decode(lonely)


def test_special_tokens_may_be_skipped(words: WordTokenizer) -> None:
    ids = [*words.encode("<act>take"), words.end_id]
    assert words.decode(ids) == "<act>take<end>"
    assert words.decode(ids, skip_special=True) == "take"
    assert words.end_ids == {words.end_id} == {words.special_id(END)}
    assert words.pad_id == words.special_id(PAD) == 0


def test_an_unknown_special_token_is_named(words: WordTokenizer) -> None:
    with pytest.raises(ConfigError, match="'<think>' is not one of the special tokens"):
        words.special_id("<think>")


def test_frequent_words_come_first_and_rare_ones_are_spelled() -> None:
    texts = ["coin coin coin box box shelf"]
    tokenizer = train_word_tokenizer(texts, always=("key",))
    assert len(tokenizer.encode("coin box key")) == 3
    assert len(tokenizer.encode("shelf")) == 6
    small = train_word_tokenizer(texts, vocab_size=tokenizer.vocab_size - 2)
    assert len(small.encode("coin")) == 1
    assert len(small.encode("box")) == 4


def test_a_vocabulary_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match="vocab_size 100 is too small: set it to 2.. or more"):
        train_word_tokenizer(["coin"], vocab_size=100)


@pytest.mark.parametrize("name", ["", " <act>", "a▁b"])
def test_impossible_special_tokens_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a special token"):
        train_word_tokenizer(["coin"], special=(name,))


def test_the_same_texts_give_the_same_tokenizer() -> None:
    texts = ["one two two", "two three"]
    first, second = (train_word_tokenizer(texts, special=("<act>",)) for _ in range(2))
    assert first.digest == second.digest
    assert first.digest != train_word_tokenizer(texts).digest


def test_a_special_token_that_opens_another_is_found(tmp_path: Path) -> None:
    tokenizer = train_word_tokenizer(["x"], special=("<a>", "<a>>"))
    assert tokenizer.decode(tokenizer.encode("<a>x<a>>y")) == "<a>x<a>>y"


def test_a_chat_is_written_plainly(words: WordTokenizer) -> None:
    chat = (Message("system", "Play."), Message("user", "Go?"))
    assert plain_chat(chat) == "system: Play.\n\nuser: Go?\n\nassistant:"
    assert words.decode(words.prompt_ids(chat)) == plain_chat(chat)
    assert words.prompt_ids("take the coin") == words.encode("take the coin")


def test_a_file_of_others_is_refused() -> None:
    from tokenizers import Tokenizer, models

    with pytest.raises(ConfigError, match="not a tokenizer of ours"):
        WordTokenizer(Tokenizer(models.BPE()).to_str())


def test_saved_and_loaded(words: WordTokenizer, tmp_path: Path) -> None:
    words.save(tmp_path)
    again = load_word_tokenizer(tmp_path)
    assert again.digest == words.digest
    assert again.special == words.special


def test_transformers_encodes_and_decodes_identically(words: WordTokenizer, tmp_path: Path) -> None:
    words.save(tmp_path)
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(tmp_path))
    assert (theirs.pad_token_id, theirs.eos_token_id) == (words.pad_id, words.end_id)

    @given(text=ANY_TEXT | PROSE)
    def same(text: str) -> None:
        ids = words.encode(text)
        assert theirs.encode(text) == ids
        assert theirs.decode(ids) == words.decode(ids)

    same()
