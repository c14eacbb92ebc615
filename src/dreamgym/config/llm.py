"""The section on a language model over HTTP, and the one on annotating with it.

A key is never a setting: `llm.key_env` names the environment variable that holds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from dreamgym.errors import ConfigError, did_you_mean
from dreamgym.types import Split

_APIS = ("chat", "completions")
_DIALECTS = ("plain", "openai", "llamacpp", "vllm")
_ANNOTATORS = ("rule", "teacher")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """A language model behind any OpenAI-compatible server."""

    url: str = ""
    """Where the API starts, such as `http://127.0.0.1:8000/v1`."""
    model: str = ""
    """The name that the server knows the model by."""
    key_env: str = ""
    """The NAME of the environment variable that holds the key; empty means that none is sent."""
    api: str = "chat"
    """How a chat is sent: chat, or completions, as one text, for servers without chats."""
    dialect: str = "plain"
    """What the server offers beyond the common ground, JSON schemas too: see docs/llm.md."""
    concurrency: int = 16
    """Requests on their way at the same time."""
    requests_per_minute: float = 0.0
    """Evenly spaced; 0 means no limit."""
    tokens_per_minute: float = 0.0
    """Prompts and answers together; 0 means no limit."""
    attempt_seconds: float = 120.0
    """How long one attempt may take."""
    total_seconds: float = 600.0
    """How long a call may take, with its retries and the waits between them."""
    retries: int = 5
    """Attempts after the first when no answer comes. Unreadable answers have their own budget."""
    failures: int = 5
    """Calls that must fail one after another until the server counts as down and the run pauses."""
    patience: float = 1800.0
    """Seconds that a run waits for a server that is down; then it ends and can be resumed."""
    longest_wait: float = 60.0
    """The most seconds between two looks whether it is back."""
    prompt_price: float = 0.0
    """What a million tokens of prompts cost, in any currency."""
    completion_price: float = 0.0
    """What a million tokens of answers cost."""
    cost_ceiling: float = 0.0
    """A call that might take the run's cost beyond this is not made; 0 means no ceiling."""
    token_ceiling: int = 0
    """The same in tokens; 0 means no ceiling."""
    cache: str = ""
    """Folder where answers are kept; empty means the run directory, `off` means nowhere."""
    offline: bool = False
    """Answer from the cache alone: a run repeats bit for bit, or says what is missing."""

    def __post_init__(self) -> None:
        """Check what can be checked without the server."""
        _check_url(self.url)
        if self.key_env and not _VARIABLE.fullmatch(self.key_env):
            # Not shown: this is where people put the key itself.
            raise ConfigError(
                "llm.key_env is not the name of an environment variable (capital letters, digits, "
                "_): put the key into a variable and its name here"
            )
        _one_of("llm.api", self.api, _APIS)
        _one_of("llm.dialect", self.dialect, _DIALECTS)
        for name in ("concurrency", "failures"):
            _check(f"llm.{name}", getattr(self, name), at_least=1)
        for name in ("attempt_seconds", "total_seconds", "longest_wait"):
            _check(f"llm.{name}", getattr(self, name), above=0)
        for name in _NOT_NEGATIVE:
            _check(f"llm.{name}", getattr(self, name), at_least=0)


_NOT_NEGATIVE = (
    "requests_per_minute", "tokens_per_minute", "retries", "patience", "prompt_price",
    "completion_price", "cost_ceiling", "token_ceiling",
)  # fmt: skip

MAY_CHANGE = frozenset(
    f"llm.{name}"
    for name in (
        "url", "key_env", "concurrency", "attempt_seconds", "total_seconds", "failures",
        "longest_wait", "cache", "offline", *_NOT_NEGATIVE,
    )
)  # fmt: skip
"""Settings about the way to the model, not about what it answers: a resumed run may have others,
such as a server that moved or a ceiling that was raised."""


@dataclass(frozen=True, slots=True)
class AnnotateConfig:
    """How recorded steps get their reasoning."""

    by: str = "rule"
    """Who explains: rule (fixed words, needs nothing) or teacher (the model of `llm`)."""
    env: str = ""
    """Only trajectories of this environment; empty means all."""
    split: str = ""
    """Only trajectories of this split; empty means all."""
    again: bool = False
    """Replace explanations that are there. Off, steps that have one keep it."""
    limit: int = 0
    """Annotate at most so many trajectories; 0 means all that need it."""
    retries: int = 2
    """Answers of a teacher that may be unreadable before its trajectory counts as failed."""
    max_tokens: int = 4096
    """The longest answer of a teacher, for a whole trajectory."""

    def __post_init__(self) -> None:
        """Check the names and ranges."""
        _one_of("annotate.by", self.by, _ANNOTATORS)
        if self.split:
            _one_of("annotate.split", self.split, tuple(Split))
        for name, least in (("limit", 0), ("retries", 0), ("max_tokens", 1)):
            _check(f"annotate.{name}", getattr(self, name), at_least=least)


def _check_url(url: str) -> None:
    if not url:
        return
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = None
    if parts is not None and ("@" in parts.netloc or parts.query or parts.fragment):
        # Not shown: this is where people put keys.
        raise ConfigError("llm.url may not hold a user, password or query; see llm.key_env")
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"llm.url '{url}' is not like http://127.0.0.1:8000/v1")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} '{value}'.{did_you_mean(value, known)}")


def _check(
    name: str, value: float, *, at_least: float | None = None, above: float | None = None
) -> None:
    if at_least is not None and not value >= at_least:
        raise ConfigError(f"{name} is {value}; it must be at least {at_least}")
    if above is not None and not value > above:
        raise ConfigError(f"{name} is {value}; it must be above {above}")
