"""An on-disk cache of answers: a run that was made once repeats offline, bit for bit.

One SQLite file, safe for several processes. An answer is stored under a digest of the request and
of who answers it; the first one stored is the one that everybody gets. Failures are never stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dreamgym.codec import decode, encode
from dreamgym.errors import LLMRefused, RecordError
from dreamgym.files import enter_wal
from dreamgym.llm.prompt import flat_prompt
from dreamgym.protocols import LLM
from dreamgym.types import Completion, Request

_FORMAT = 1
_PATIENCE = 60.0
"""Seconds that a writer waits for another process."""


class CachedLLM:
    """A back end that remembers the answers of another one.

    The key is made of `identity` and of everything in the request, its seed included. Requests
    with the same key are made once, also when they are under way at the same time.

    Sampled requests without a seed are meant to differ, so they are *numbered*: the second
    identical one is another entry than the first, and a repeated run gets the same answers in the
    same order. Give requests a seed where the order of identical ones may change between runs, or
    set `share_samples` to give all of them the same answer.

    Args:
        inner: who answers what is not in the cache.
        path: the file; made if it is not there.
        identity: names whatever the answers depend on besides the request; `HttpLLM.identity`,
            or a name of your own that you change when the model changes.
        offline: never ask `inner`; a request that is not in the cache is an error.
        share_samples: do not number sampled requests without a seed.
    """

    def __init__(
        self,
        inner: LLM,
        path: Path,
        *,
        identity: str,
        offline: bool = False,
        share_samples: bool = False,
    ) -> None:
        self._inner = inner
        self._path = path
        self._identity = identity
        self._offline = offline
        self._share_samples = share_samples
        self._numbers: dict[str, _Numbers] = {}
        self._flights: dict[str, _Flight] = {}
        self._tasks: set[asyncio.Task[Completion]] = set()
        self._file = _CacheFile(path)
        # One thread owns the connection, and the event loop never waits for a disk or a lock.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm-cache")
        self._counts: Counter[str] = Counter()
        self._closed = False

    async def complete(self, request: Request) -> Completion:
        """Answer from the cache, or ask and remember."""
        key = request_key(request, identity=self._identity)
        if self._share_samples or request.temperature == 0 or request.seed is not None:
            return await self._once(key, request)
        numbers = self._numbers.setdefault(key, _Numbers())
        number = numbers.take()
        try:
            return await self._once(f"{key}#{number}", request)
        except BaseException:
            # Nothing was stored under this number: whoever tries next gets it, as a run without
            # the failure would have it.
            numbers.give_back(number)
            raise

    async def _once(self, key: str, request: Request) -> Completion:
        """Join the call for this key that is under way, or start it."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._start(key, request)
        else:
            self._counts["joined"] += 1
        flight.waiting += 1
        try:
            # One caller that is cancelled must not take the others with it.
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._flights.pop(key, None)
                flight.task.cancel()

    def _start(self, key: str, request: Request) -> _Flight:
        task = asyncio.create_task(self._find_or_ask(key, request))
        flight = self._flights[key] = _Flight(task)
        self._tasks.add(task)

        def forget(_: asyncio.Task[Completion]) -> None:
            self._tasks.discard(task)
            # A cancelled call may have been followed by a new one under the same key.
            if self._flights.get(key) is flight:
                del self._flights[key]

        task.add_done_callback(forget)
        return flight

    async def _find_or_ask(self, key: str, request: Request) -> Completion:
        stored = await self._in_thread(self._file.get, key)
        if stored is not None:
            self._counts["hits"] += 1
            return decode(stored, Completion)
        if self._offline:
            raise LLMRefused(
                f"offline, and {self._path} has no answer to the prompt that ends in "
                f"{flat_prompt(request.prompt)[-120:]!r}. Run once with the server, or check that "
                "model, settings and seed are those of the run to repeat"
            )
        self._counts["misses"] += 1
        completion = await self._inner.complete(request)
        # Another process may have been faster; then its answer is the one that counts.
        return decode(await self._in_thread(self._file.put, key, encode(completion)), Completion)

    async def _in_thread(self, function: Any, *arguments: str) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def state_dict(self) -> dict[str, Any]:
        """Return how often each unseeded sampled request was made, for an exact resume."""
        return {"numbers": {key: numbers.state() for key, numbers in self._numbers.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue numbering where the stored state was."""
        self._numbers = {key: _Numbers(*stored) for key, stored in state["numbers"].items()}

    def metrics(self) -> dict[str, float]:
        """Return how often the cache helped."""
        return {f"llm/cache_{name}": float(self._counts[name]) for name in _COUNTS}

    async def close(self) -> None:
        """Stop what is under way, close the file and the back end."""
        if self._closed:
            return
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._in_thread(self._file.close)
        self._thread.shutdown()
        await self._inner.close()


_COUNTS = ("hits", "misses", "joined")


def request_key(request: Request, *, identity: str) -> str:
    """Return the name of an answer: a digest of who is asked and of everything that is asked."""
    asked = asdict(request)
    if request.grammar is None:
        del asked["grammar"]  # as it was before there were any: old caches stay good
    parts = {"format": _FORMAT, "identity": identity, "request": asked}
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=32).hexdigest()


@dataclass(slots=True)
class _Flight:
    """A call under way, and how many wait for it."""

    task: asyncio.Task[Completion]
    waiting: int = 0


class _Numbers:
    """Numbers for identical requests: the smallest that is not taken."""

    def __init__(self, fresh: int = 0, *given_back: int) -> None:
        self._fresh = fresh
        self._given_back = sorted(given_back)

    def state(self) -> list[int]:
        return [self._fresh, *sorted(self._given_back)]

    def take(self) -> int:
        if self._given_back:
            return heapq.heappop(self._given_back)
        self._fresh += 1
        return self._fresh - 1

    def give_back(self, number: int) -> None:
        heapq.heappush(self._given_back, number)


class _CacheFile:
    """The SQLite file. Plain calls, all from one thread; opened at the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        row = self._connection().execute(_SELECT, (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> str:
        connection = self._connection()
        connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, value))
        return str(connection.execute(_SELECT, (key,)).fetchone()[0])

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Autocommit: each answer is its own transaction.
        connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        try:
            enter_wal(connection, patience=_PATIENCE)
            connection.execute("PRAGMA synchronous=NORMAL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _FORMAT):
                raise RecordError(f"{self._path} has format {version}, this DreamGym: {_FORMAT}")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS answers "
                "(key TEXT PRIMARY KEY, completion TEXT NOT NULL)"
            )
            connection.execute(f"PRAGMA user_version={_FORMAT}")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise RecordError(f"{self._path} is not a cache of answers: {error}") from error
        except BaseException:
            connection.close()
            raise
        return connection


_SELECT = "SELECT completion FROM answers WHERE key = ?"
