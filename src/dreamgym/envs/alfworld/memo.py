"""A memo for TextWorld's grammar: the same text, without parsing the same strings at every step.

TextWorld parses each piece of grammar and each query again whenever it is used, and copies whole
contexts where a new dictionary would do. With the memo a string is parsed once; symbols that come
out of it are handed on as shallow copies, since deriving text sets nothing on them but `context`.
It changes a third-party module, so it is applied by a living engine only, and taken back after it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from dreamgym.envs.alfworld.upstream import Upstream

_MARK = "_dreamgym_memo"
"""Where the patched module keeps its patch, so that engines of one process share it."""

_REMEMBERED = 4096
"""Strings kept: the grammar has some hundred, and every game adds the sentence of its goal."""


class _Patch:
    """The functions put in the place of TextWorld's, and the way back."""

    def __init__(self, upstream: Upstream) -> None:
        self.users = 0
        self._upstream = upstream
        textgen, rule = upstream.textgen, upstream.rule
        self._parse = textgen._parse_and_convert
        self._deepcopy = textgen.deepcopy
        self._query = rule.__dict__["parse_conjunctive_query"]

    def apply(self) -> None:
        parse = self._parse

        @lru_cache(maxsize=_REMEMBERED)
        def parsed(text: str, rule_name: str) -> Any:
            return parse(text, rule_name=rule_name)

        def parse_once(text: str, rule_name: str, trace: bool = False) -> Any:
            if trace:
                return parse(text, rule_name=rule_name, trace=trace)
            return [copy.copy(symbol) for symbol in parsed(text, rule_name)]

        textgen = self._upstream.textgen
        textgen._parse_and_convert = parse_once
        textgen.deepcopy = _copy_one_level
        query = lru_cache(maxsize=_REMEMBERED)(self._upstream.rule.parse_conjunctive_query)
        self._upstream.rule.parse_conjunctive_query = staticmethod(query)

    def undo(self) -> None:
        self._upstream.textgen._parse_and_convert = self._parse
        self._upstream.textgen.deepcopy = self._deepcopy
        self._upstream.rule.parse_conjunctive_query = self._query


def _copy_one_level(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return [copy.copy(item) for item in value]
    return copy.copy(value)


def install_memo(upstream: Upstream) -> Callable[[], None]:
    """Apply the memo to this process and return the function that takes it back.

    Several engines may each install it; it goes when the last of them has let go.
    """
    patch: _Patch | None = getattr(upstream.textgen, _MARK, None)
    if patch is None:
        patch = _Patch(upstream)
        patch.apply()
        setattr(upstream.textgen, _MARK, patch)
    patch.users += 1
    return lambda: _release(upstream)


def _release(upstream: Upstream) -> None:
    patch: _Patch | None = getattr(upstream.textgen, _MARK, None)
    if patch is None:
        return
    patch.users -= 1
    if patch.users == 0:
        patch.undo()
        delattr(upstream.textgen, _MARK)
