"""Words as tokens: a tokenizer trained on the project's own texts, and any Hugging Face one.

`train_word_tokenizer` makes a vocabulary of whole words, numbers and punctuation (see
`spelling.py`). What is not in it is spelled by characters, and characters never seen by bytes, so
nothing is ever unknown. It is saved as `tokenizer.json`, which `transformers.AutoTokenizer` loads
and encodes with identically.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from dreamgym.errors import ConfigError
from dreamgym.files import write_atomically
from dreamgym.models.spelling import MARKS, make_decoder, make_normalizer, make_splitter
from dreamgym.types import Message, digest

PAD, END = "<pad>", "<end>"
"""The two tokens that every vocabulary of ours begins with: filler, and the end of an answer."""

_ASCII = [chr(code) for code in range(0x20, 0x7F)]
_BYTES = [f"<0x{code:02X}>" for code in (*range(0x20), *range(0x7F, 0xF5))]
"""Every byte that a character outside printable ASCII may need."""


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""

    @property
    def pad_id(self) -> int:
        """The filler; never part of a text."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, and nothing added to it."""

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of ids."""

    def prompt_ids(self, prompt: str | Sequence[Message]) -> list[int]:
        """Return the ids of a whole prompt: a text, or a chat up to where the answer begins.

        With what the model wants at the beginning of a text, where it wants anything.
        """

    def save(self, folder: Path) -> None:
        """Write it in Hugging Face format."""


def plain_chat(messages: Sequence[Message]) -> str:
    """Return a chat as one text, for models that know no chat template."""
    turns = [f"{message.role}: {message.content}" for message in messages]
    return "\n\n".join([*turns, "assistant:"])


class WordTokenizer:
    """A trained vocabulary. Encoding and decoding are exact inverses: see `spelling.py`."""

    def __init__(self, definition: str) -> None:
        """Take the content of a `tokenizer.json` that `train_word_tokenizer` made."""
        from tokenizers import Tokenizer as Fast

        self._definition = definition
        try:
            self._fast: Any = Fast.from_str(definition)
            added = json.loads(definition)["added_tokens"]
        except Exception as error:  # The library raises nothing more special.
            raise ConfigError(f"a tokenizer.json is damaged: {error}") from error
        special = {token["content"]: token["id"] for token in added}
        if PAD not in special or END not in special:
            raise ConfigError(f"not a tokenizer of ours: it has no {PAD} or no {END}")
        self._special: dict[str, int] = special

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""
        return int(self._fast.get_vocab_size())

    @property
    def pad_id(self) -> int:
        """The filler; never part of a text."""
        return self._special[PAD]

    @property
    def end_id(self) -> int:
        """The token that ends an answer."""
        return self._special[END]

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        return frozenset({self.end_id})

    @property
    def special(self) -> dict[str, int]:
        """Every special token with its id."""
        return dict(self._special)

    @property
    def digest(self) -> str:
        """Changes whenever some text may get other ids."""
        return digest(self._definition)

    def special_id(self, name: str) -> int:
        """Return the id of a special token."""
        if name not in self._special:
            raise ConfigError(f"'{name}' is not one of the special tokens {sorted(self._special)}")
        return self._special[name]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. Names of special tokens in it become those tokens."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts at once."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        found = self._fast.encode_batch_fast(clean, add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of ids. Special tokens appear by name unless they are skipped."""
        return str(self._fast.decode(list(ids), skip_special_tokens=skip_special))

    def piece(self, token: int) -> str:
        """Return one token as it stands in the vocabulary, marks included."""
        return str(self._fast.id_to_token(token))

    def prompt_ids(self, prompt: str | Sequence[Message]) -> list[int]:
        """Return the ids of a prompt. A chat is plainly written: there is no template."""
        return self.encode(prompt if isinstance(prompt, str) else plain_chat(prompt))

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`."""
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "pad_token": PAD,
            "eos_token": END,
            "dreamgym": "words",
        }
        write_atomically(folder / "tokenizer.json", self._definition)
        write_atomically(folder / "tokenizer_config.json", json.dumps(settings, indent=2))


def train_word_tokenizer(
    texts: Iterable[str],
    *,
    special: Sequence[str] = (),
    always: Iterable[str] = (),
    vocab_size: int = 2048,
    min_count: int = 2,
) -> WordTokenizer:
    """Make a vocabulary of the most frequent pieces of these texts.

    Args:
        texts: what the model will read and write.
        special: names that become one token each wherever they occur, such as `<act>`; the two of
            every vocabulary, `<pad>` and `<end>`, come first by themselves.
        always: words that get a token however rare they are.
        vocab_size: the most entries; about 250 of them are single characters and bytes.
        min_count: rarer words are spelled, which also shows the model how spelled words look.
    """
    from tokenizers import AddedToken, models
    from tokenizers import Tokenizer as Fast

    names = list(dict.fromkeys([PAD, END, *special]))
    _check_special(names)
    fast = Fast(models.BPE(vocab={}, merges=[], ignore_merges=True, byte_fallback=True))
    fast.normalizer = make_normalizer()
    fast.pre_tokenizer = make_splitter()
    fast.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    pieces, characters = _count(fast, texts, names)
    base = dict.fromkeys([*names, *MARKS, "\n", *_ASCII, *_BYTES, *characters])
    wanted = [piece for text in always for piece, _ in _split(fast, text)]
    room = vocab_size - len(base.keys() | set(wanted))
    if room < 0:
        least = vocab_size - room
        raise ConfigError(f"vocab_size {vocab_size} is too small: set it to {least} or more")
    frequent = [piece for piece, count in pieces if count >= min_count and piece not in base]
    chosen = dict.fromkeys([*base, *wanted])
    chosen.update(dict.fromkeys([piece for piece in frequent if piece not in chosen][:room]))
    vocabulary = {piece: number for number, piece in enumerate(chosen)}
    fast.model = models.BPE(vocab=vocabulary, merges=[], ignore_merges=True, byte_fallback=True)
    fast.decoder = make_decoder(names)
    return WordTokenizer(_with_special_ids(fast.to_str(), vocabulary, names))


def load_word_tokenizer(folder: Path) -> WordTokenizer:
    """Read a tokenizer that `WordTokenizer.save` wrote."""
    return WordTokenizer((folder / "tokenizer.json").read_text(encoding="utf-8"))


def _check_special(names: Sequence[str]) -> None:
    for name in names:
        if not name.strip() or set(name) & set(MARKS) or name != name.strip():
            raise ConfigError(
                f"{name!r} cannot be a special token: no blanks at its ends or {MARKS}"
            )


def _split(fast: Any, text: str) -> list[tuple[str, Any]]:
    pieces: list[tuple[str, Any]] = fast.pre_tokenizer.pre_tokenize_str(
        fast.normalizer.normalize_str(text)
    )
    return pieces


def _count(
    fast: Any, texts: Iterable[str], names: Sequence[str]
) -> tuple[list[tuple[str, int]], list[str]]:
    """Return pieces by falling frequency, and the characters worth a token of their own."""
    import re

    seams = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    counts: Counter[str] = Counter()
    for text in texts:
        for segment in seams.split(text):
            counts.update(piece for piece, _ in _split(fast, segment))
    letters: Counter[str] = Counter()
    for piece, count in counts.items():
        for letter in set(piece) - set(MARKS):
            letters[letter] += count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ranked, sorted(letter for letter, count in letters.items() if count >= 2)[:512]


def _with_special_ids(definition: str, vocabulary: dict[str, int], names: Sequence[str]) -> str:
    """Point the special tokens at their entries of the vocabulary."""
    content = json.loads(definition)
    for token in content["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    content["added_tokens"].sort(key=lambda token: token["id"])
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
