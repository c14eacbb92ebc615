"""Language models behind one interface: over HTTP, from a script, cached, guarded, paid for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dreamgym.llm.breaker import BreakerLLM
    from dreamgym.llm.cache import CachedLLM
    from dreamgym.llm.chaos import ChaosServer, Fault
    from dreamgym.llm.http import HttpLLM
    from dreamgym.llm.limits import Limits
    from dreamgym.llm.reply import Reply, ask
    from dreamgym.llm.scripted import ScriptedLLM
    from dreamgym.llm.spend import Price, Spend
    from dreamgym.llm.wire import Dialect

_HOMES = {
    "BreakerLLM": "breaker",
    "CachedLLM": "cache",
    "ChaosServer": "chaos",
    "Dialect": "wire",
    "Fault": "chaos",
    "HttpLLM": "http",
    "Limits": "limits",
    "Price": "spend",
    "Reply": "reply",
    "ScriptedLLM": "scripted",
    "Spend": "spend",
    "ask": "reply",
}
"""Names are imported when they are used, so that a command starts without them."""

__all__ = [
    "BreakerLLM",
    "CachedLLM",
    "ChaosServer",
    "Dialect",
    "Fault",
    "HttpLLM",
    "Limits",
    "Price",
    "Reply",
    "ScriptedLLM",
    "Spend",
    "ask",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
