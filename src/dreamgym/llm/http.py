"""A language model behind any OpenAI-compatible HTTP server: vLLM, SGLang, llama.cpp, hosted ones.

This module owns the way there and back: limits, retries, time, money, the key. Whether an answer
makes sense is not judged here; `reply.ask` does that, with a budget of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import random
import ssl
from collections import Counter

import httpx

from dreamgym.errors import ConfigError, LLMError, LLMRateLimit, LLMRefused, LLMTimeout
from dreamgym.llm.clock import Clock, SystemClock
from dreamgym.llm.limits import Limits, Slot, Throttle
from dreamgym.llm.prompt import prompt_token_bound, prompt_token_guess
from dreamgym.llm.retry import Failure, FailureKind, asked_wait, backoff, is_transient
from dreamgym.llm.spend import Price, Reservation, Spend
from dreamgym.llm.wire import Dialect, UnusableReply, decode_reply, encode_request, server_words
from dreamgym.types import Completion, Request, Usage

logger = logging.getLogger(__name__)

_SHORTEST_KEY = 4
"""Whatever is shorter is no secret, and cutting it out would make a server's words unreadable."""
_SECRET_LENGTH = 12
"""Shorter keys (`EMPTY`, `none`) are placeholders, and words that an answer may well contain."""
_SPENT_CODES = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of a 429 that no waiting cures."""
_ERRORS: dict[FailureKind, type[LLMError]] = {
    FailureKind.TIMEOUT: LLMTimeout,
    FailureKind.RATE: LLMRateLimit,
    FailureKind.REFUSED: LLMRefused,
}


class HttpLLM:
    """Sends requests to one model on one server.

    Args:
        base_url: where the API starts, such as `http://127.0.0.1:8000/v1`.
        model: the name that the server knows the model by.
        key_env: the NAME of the environment variable that holds the key; empty means no key.
        limits: how much and how long; see `Limits`.
        dialect: what the server understands beyond the common ground; see `Dialect`.
        spend: where tokens and cost are counted; may be shared between back ends.
        price: what this model costs.
        seed: of the jitter in waiting times; answers do not depend on it.
        clock: for tests.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        key_env: str = "",
        limits: Limits | None = None,
        dialect: Dialect | None = None,
        spend: Spend | None = None,
        price: Price | None = None,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self.model = model
        self._key_env = key_env
        self._limits = limits or Limits()
        self._dialect = dialect or Dialect()
        self.spend = spend or Spend()
        self._price = price or Price()
        self._rng = random.Random(seed)
        self._clock: Clock = clock or SystemClock()
        self._throttle = Throttle(self._limits, clock=self._clock)
        self._clients: set[httpx.AsyncClient] = set()
        self._idle: list[httpx.AsyncClient] = []
        self._certificates: ssl.SSLContext | None = None
        self._counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"HttpLLM({self.base_url!r}, {self.model!r})"

    @property
    def identity(self) -> str:
        """Everything here that an answer depends on, as a text: what a cache needs to know."""
        dialect = self._dialect
        asked = {"schema": dialect.schema, "logprobs": dialect.logprobs, **dialect.extra}
        asked |= {} if dialect.chat else {"chat": False}
        parts = {"server": self.base_url, "model": self.model, "dialect": asked}
        return json.dumps(parts, sort_keys=True)

    async def complete(self, request: Request) -> Completion:
        """Answer one request, trying again while the transport fails and the limits allow it."""
        path, body = encode_request(request, model=self.model, dialect=self._dialect)
        self._counts["calls"] += 1
        elapsed, tries = 0.0, 0
        while True:
            tries += 1
            outcome, took = await self._attempt(request, path, body, left=self._left(elapsed))
            elapsed += took
            if isinstance(outcome, Completion):
                return outcome
            self._counts[outcome.kind] += 1
            wait = self._wait_before_retry(outcome, tries, elapsed)
            if wait is None:
                break
            logger.debug("%s: %s; next attempt in %.2f s", self.model, outcome.words, wait)
            self._counts["retries"] += 1
            await self._clock.sleep(wait)
            elapsed += wait
        # Raised outside every `except`, because httpx errors hold the request and so the key.
        raise self._error(outcome, tries, elapsed)

    def _left(self, elapsed: float) -> float:
        return min(self._limits.attempt_seconds, self._limits.total_seconds - elapsed)

    def _wait_before_retry(self, failure: Failure, tries: int, elapsed: float) -> float | None:
        """Return the wait before the next attempt, or None if there is none."""
        if failure.kind is FailureKind.REFUSED or tries > self._limits.retries:
            return None
        wait = max(backoff(tries - 1, self._limits, self._rng), failure.wait or 0.0)
        return wait if elapsed + wait < self._limits.total_seconds else None

    async def _attempt(
        self, request: Request, path: str, body: bytes, *, left: float
    ) -> tuple[Completion | Failure, float]:
        """Send the request once, under all limits. Returns how it ended and the seconds it took."""
        headers = self._headers()
        most = Usage(prompt_token_bound(request), request.max_tokens)
        guess = prompt_token_guess(request) + request.max_tokens
        async with self._throttle.slot(guess) as slot:
            with await self.spend.reserve(most, price=self._price) as reservation:
                start = self._clock.now()
                outcome = await self._send(path, body, headers=headers, seconds=left)
                took = self._clock.now() - start
                self._account(outcome, slot, reservation)
        if isinstance(outcome, Failure) and 0 < (outcome.wait or 0) < self._limits.total_seconds:
            # What the server told one caller holds for all. A longer wait than any call has fails
            # them one by one instead of stopping everything in silence.
            self._throttle.hold(outcome.wait or 0)
        return outcome, took

    def _account(self, outcome: Completion | Failure, slot: Slot, held: Reservation) -> None:
        usage = outcome.usage
        if usage is not None and usage != Usage():
            slot.used(usage.prompt_tokens + usage.completion_tokens)
            held.settle(usage)
        elif isinstance(outcome, Failure) and not outcome.billed:
            slot.used(0)
            held.release()
        # Otherwise nobody knows the bill, and the reservation is booked in full when it closes.

    async def _send(
        self, path: str, body: bytes, *, headers: dict[str, str], seconds: float
    ) -> Completion | Failure:
        self._counts["attempts"] += 1
        try:
            async with asyncio.timeout(seconds):
                status, said, raw = await self._post(path, body, headers)
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout):
            return Failure(FailureKind.TIMEOUT, f"no answer within {seconds:.3g} s", billed=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Failure(FailureKind.NETWORK, f"cannot connect: {self._clean(str(error))}")
        except (httpx.HTTPError, httpx.StreamError) as error:
            words = f"{type(error).__name__}: {self._clean(str(error))}"
            return Failure(FailureKind.NETWORK, words, billed=True)
        return self._read(status, said, raw)

    async def _post(
        self, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, httpx.Headers, bytes]:
        raw = bytearray()
        url = f"{self.base_url}/{path}"
        client = self._idle.pop() if self._idle else self._open_client()
        whole = False
        try:
            async with client.stream("POST", url, content=body, headers=headers) as response:
                async for chunk in response.aiter_bytes():
                    raw += chunk
                    if len(raw) > self._limits.reply_bytes:
                        most = self._limits.reply_bytes
                        raise httpx.StreamError(f"the reply passes {most} bytes")
            whole = True
        finally:
            if whole:
                self._idle.append(client)
            else:
                # A client whose request was cut short may hold a connection that is never free
                # again (httpcore loses track of it), and would hang with its next request.
                self._clients.discard(client)
                await client.aclose()
        return response.status_code, response.headers, bytes(raw)

    def _open_client(self) -> httpx.AsyncClient:
        """Make a client with one connection; there are as many as there are requests at once.

        One client with many connections looks at each of them for each request, which at 32
        already takes longer than everything else together.
        """
        client = httpx.AsyncClient(
            # Attempts are timed as a whole; a limit per read would let a slow drip go on for ever.
            timeout=httpx.Timeout(None),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            # A proxy from the environment cannot reach this machine's own servers.
            trust_env=not _is_loopback(self.base_url),
            verify=self._tls(),
        )
        self._clients.add(client)
        return client

    def _tls(self) -> ssl.SSLContext | bool:
        """Return what to verify servers with; read once, because loading certificates is slow."""
        if not self.base_url.startswith("https:"):
            return False
        if self._certificates is None:
            self._certificates = httpx.create_ssl_context()
        return self._certificates

    def _read(self, status: int, headers: httpx.Headers, raw: bytes) -> Completion | Failure:
        if 200 <= status < 300:
            try:
                return decode_reply(self._without_key(raw), model=self.model)
            except UnusableReply as error:
                return Failure(
                    FailureKind.REPLY, self._clean(str(error)), billed=True, usage=error.usage
                )
            except LLMRefused as error:
                return Failure(FailureKind.REFUSED, str(error), billed=True)
        said, code = server_words(raw)
        words = f"status {status}: {self._clean(said) or 'no further words'}"
        if 300 <= status < 400:
            words += f" (redirected to {self._clean(headers.get('location', '?'))}: fix base_url)"
        if not is_transient(status) or code in _SPENT_CODES:
            return Failure(FailureKind.REFUSED, words)
        kind = FailureKind.RATE if status == 429 else FailureKind.SERVER
        return Failure(kind, words, wait=asked_wait(headers))

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key_env:
            headers["authorization"] = f"Bearer {self._key()}"
        return headers

    def _key(self) -> str:
        """Read the key; it is never kept, so nothing that shows this object can show it."""
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise ConfigError(
                f"the environment variable {self._key_env} is empty; put the key for "
                f"{self.base_url} there, or set key_env to the variable that holds it"
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"the environment variable {self._key_env} does not hold a key")
        return key

    def _clean(self, words: str) -> str:
        """Take the key out of what a server or a library said."""
        key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        return words.replace(key, "[key]") if len(key) >= _SHORTEST_KEY else words

    def _without_key(self, raw: bytes) -> bytes:
        """Take the key out of an answer, since answers go to caches and run directories."""
        key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        return raw.replace(key.encode(), b"[key]") if len(key) >= _SECRET_LENGTH else raw

    def _error(self, failure: Failure, tries: int, elapsed: float) -> LLMError:
        self._counts["failed_calls"] += 1
        effort = f"{tries} attempt{'s' if tries > 1 else ''} in {elapsed:.1f} s"
        asked = f"; it asks to wait {failure.wait:.0f} s" if failure.wait else ""
        kind = _ERRORS.get(failure.kind, LLMError)
        return kind(f"{self.model} at {self.base_url}: {failure.words}{asked} ({effort})")

    def metrics(self) -> dict[str, float]:
        """Return what happened so far; money is in `spend.metrics()`."""
        names = ("calls", "attempts", "retries", "failed_calls", *FailureKind)
        counts = {f"llm/{name}": float(self._counts[name]) for name in names}
        return {**counts, "llm/rate_wait_seconds": self._throttle.waited}

    async def close(self) -> None:
        """Close the connections."""
        clients, self._clients, self._idle = self._clients, set(), []
        for client in clients:
            await client.aclose()


def _checked_url(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"base_url '{base_url}' is not a URL: {error}") from error
    if url.userinfo or url.query or url.fragment:
        # Not shown: this is where people put keys.
        raise ConfigError("base_url may not hold a user, password or query; name a key by key_env")
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"base_url '{base_url}' is not like http://127.0.0.1:8000/v1")
    return str(url).rstrip("/")


def _is_loopback(base_url: str) -> bool:
    host = httpx.URL(base_url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
