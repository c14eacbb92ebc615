"""How text becomes pieces and pieces become text again, as rules that a tokenizer file can hold.

A word is one piece whatever stands before it: the space before a word is left out where a reader
expects one, and marked where not. So `coin` is the same piece at the start of a line, after a comma
and after a bracket, which is what lets a small model copy it. Three signs do the marking:

- `▁` opens every word, so that a word spelled letter by letter has a beginning;
- `␣` is a space that nobody would expect: a second one, one at the end, one before a sign;
- `⌢` says that no space comes before the next word, where one would be expected, as in `and/or`.

A space is expected before a word, unless the word opens the text or a line, or follows `(`, `[`,
`{` or one of the two signs. A sign of punctuation is one piece with the marks around it.

The round trip is exact, but for this: the three marks themselves are dropped from the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

WORD, SPACE, GLUE = "▁", "␣", "⌢"
MARKS = WORD + SPACE + GLUE

_INNER = r"[-'’]"  # noqa: RUF001 - the typographic apostrophe is meant
"""What may stand inside a word: T-shirt, don't."""
_OPENING = r"\n(\[{"
_WORD_START = rf"(?<!\w)(?<!\w{_INNER})(?=\w)"
_PIECES = rf"{WORD}\w+(?:{_INNER}\w+)*|{SPACE}?[^\w\s{MARKS}]{GLUE}?|\n|."


def make_normalizer() -> Any:
    """Return the rules that put the marks in and take expected spaces out."""
    from tokenizers import Regex, normalizers

    def rule(pattern: str, content: str) -> Any:
        return normalizers.Replace(Regex(pattern), content)

    return normalizers.Sequence(
        [
            rule(f"[{MARKS}]", ""),
            rule(rf" (?!\w)|(?<![^ {_OPENING}]) ", SPACE),
            rule(rf"(?<=[^\w {SPACE}{_OPENING}])(?<!\w{_INNER})(?=\w)", GLUE),
            rule(_WORD_START, WORD),
            rule(" ", ""),
        ]
    )


def make_splitter() -> Any:
    """Return the rule that cuts marked text into pieces."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")


def make_decoder(special: Sequence[str]) -> Any:
    """Return the rules that join pieces to text again. No space is expected after a special one."""
    from tokenizers import Regex, decoders

    def rule(pattern: str, content: str) -> Any:
        return decoders.Replace(Regex(pattern), content)

    rules = [rule(rf"(?<![^{SPACE}{GLUE}{_OPENING}]){WORD}", "")]
    if special:
        # Sorted, so that the same names give the same file.
        names = "|".join(re.escape(name) for name in sorted(special))
        rules.append(rule(rf"(?<={names}){WORD}", ""))
    marks = [rule(f"[{WORD}{SPACE}]", " "), rule(GLUE, "")]
    return decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), *rules, *marks])
