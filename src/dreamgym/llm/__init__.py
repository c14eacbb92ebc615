"""Language models behind one interface: over HTTP, from a script, cached, guarded, paid for."""

from dreamgym.llm.breaker import BreakerLLM
from dreamgym.llm.cache import CachedLLM
from dreamgym.llm.chaos import ChaosServer, Fault
from dreamgym.llm.http import HttpLLM
from dreamgym.llm.limits import Limits
from dreamgym.llm.reply import Reply, ask
from dreamgym.llm.scripted import ScriptedLLM
from dreamgym.llm.spend import Price, Spend
from dreamgym.llm.wire import Dialect

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
