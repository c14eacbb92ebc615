"""What runs inside a worker process: one engine, many games, one request after the other.

The parent (`worker.py`) starts it, sends batches of requests over a socket and reads one reply for
each, in order. A reply is written before the next request is begun: if the process then hangs or
dies, the first request without a reply is the one to blame. Standard output belongs to the engine.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from dreamgym.envs import wire
from dreamgym.envs.registry import make_engine
from dreamgym.errors import DreamGymError, EnvCrash, EnvError, boundary
from dreamgym.protocols import Engine, Game
from dreamgym.types import Observation, Opening, Split, Task


def main(descriptor: int, spec: str) -> None:
    """Make the engine, say hello, and answer requests until told to stop. Never returns."""
    status = 1
    try:
        channel = socket.socket(fileno=descriptor)
        channel.set_inheritable(False)
        faulthandler.enable()
        guard = _die_with_parent()
        status = _serve(channel, spec)
        guard.kill()
        guard.wait()
    except BaseException:  # noqa: BLE001 - the process ends right here; the log keeps the reason
        sys.excepthook(*sys.exc_info())
    finally:
        # An engine's leftover threads or exit hooks must not keep a finished worker alive.
        sys.stderr.flush()
        os._exit(status)


def _die_with_parent() -> subprocess.Popen[bytes]:
    """See to it that neither this process nor anything it starts outlives the parent.

    Standard input is a pipe that only the parent holds open and nobody writes to. A shell waits for
    its end and then kills this whole group: a thread could not while an engine keeps the
    interpreter lock, and a death signal of the system would spare the children.
    """
    guard = subprocess.Popen(["/bin/sh", "-c", "read nothing; kill -9 0"])
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    return guard


def _serve(channel: socket.socket, spec: str) -> int:
    try:
        with boundary(EnvError, "env.start"):
            engine = make_engine(spec)
            hello = (engine.version, engine.mapper)
    except DreamGymError as error:
        sys.excepthook(*sys.exc_info())
        channel.sendall(wire.pack(("failed", *wire.pack_error(error))))
        return 1
    channel.sendall(wire.pack(("ready", *hello)))
    games = _Games(engine)
    for operation, session, payload in _requests(channel):
        if operation == "stop":
            with contextlib.suppress(Exception):
                engine.close()
            return 0
        channel.sendall(wire.pack(games.answer(operation, session, payload)))
    # The channel ended without a word: the parent is gone, and what the engine started must go too.
    # Ending alone would dismiss the guard before it has done that.
    os.killpg(0, signal.SIGKILL)
    return 1


def _requests(channel: socket.socket) -> Iterator[wire.Request]:
    reader = wire.FrameReader()
    while data := channel.recv(1 << 18):
        for batch in reader.feed(data):
            yield from batch


class _Games:
    """The open games of one engine, by session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._games: dict[int, Game] = {}
        self._seconds = 0.0

    def answer(self, operation: str, session: int, payload: Any) -> wire.Reply:
        """Carry out one request; what the engine raises becomes an error reply."""
        self._seconds = 0.0
        carry_out: Callable[[int, Any], Any] = getattr(self, f"_{operation}")
        try:
            with boundary(EnvError, f"env.{operation}"):
                result = carry_out(session, payload)
        except EnvCrash as error:
            # The engine behind us is gone and can serve no other game either. Dying here makes the
            # pool blame this one request, replace us and replay everybody else.
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
            os._exit(1)
        except DreamGymError as error:
            return (self._seconds, *wire.pack_error(error))
        return (self._seconds, "", result)

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        started = perf_counter()
        try:
            return call(*arguments)
        finally:
            self._seconds += perf_counter() - started

    def _hello(self, _session: int, _payload: None) -> None:
        """Answer, which is all that is asked."""

    def _tasks(self, _session: int, split: Split) -> tuple[Task, ...]:
        return tuple(map(wire.check_task, self._timed(self._engine.tasks, split)))

    def _entities(self, _session: int, opening: Opening) -> frozenset[str]:
        return frozenset(wire.check_texts(self._timed(self._engine.entities, opening)))

    def _open(self, session: int, task: Task) -> None:
        self._games[session] = self._timed(self._engine.open, task)

    def _reset(self, session: int, seed: int) -> Opening:
        return wire.check_opening(self._timed(self._games[session].reset, seed))

    def _step(self, session: int, action: str) -> tuple[Any, ...]:
        return wire.pack_step(self._timed(self._games[session].step, action))

    def _expert(self, session: int, _payload: None) -> tuple[str, ...]:
        return wire.check_texts(self._timed(self._games[session].expert))

    def _close(self, session: int, _payload: None) -> None:
        game = self._games.pop(session, None)
        if game is not None:
            self._timed(game.close)

    def _restore(
        self, session: int, journal: tuple[Task, int | None, tuple[str, ...]]
    ) -> Observation | None:
        """Play a game again up to where a lost worker left it, and return what it shows."""
        task, seed, actions = journal
        self._open(session, task)
        if seed is None:
            return None
        seen = self._reset(session, seed).observation
        for action in actions:
            seen = wire.unpack_step(self._step(session, action)).observation
        return seen
