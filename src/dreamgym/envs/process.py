"""A worker's operating system process: how it is started, talked to, killed and buried.

It knows nothing of engines or episodes: bytes in, messages out, and one call when it is gone. The
process leads a group of its own, so a Ctrl-C in the terminal does not reach it and whatever its
engine started (a JVM, a planner) ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from dreamgym.envs import wire

LOG_BYTES = 1 << 20
"""What a process prints is kept up to this size; its end helps to explain a crash."""
TAIL_BYTES = 600
"""How much of it goes into an error message."""

_BOOT = """\
import json, sys
path, descriptor, spec = sys.argv[1:]
sys.path[:], sys.argv[1:] = json.loads(path), []
from dreamgym.envs.engine_process import main
main(int(descriptor), spec)
"""


class EngineProcess(asyncio.Protocol):
    """One process that runs `engine_process.main`, at the other end of a socket."""

    def __init__(
        self, spec: str, *, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> None:
        self.ready = False
        """Set by the owner once the engine said hello."""
        self.timed_out = False
        """Set by the owner before it kills for lateness."""
        self._on_message = on_message
        self._on_lost = on_lost
        self._reader = wire.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `bury`
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = self._launch(spec, theirs.fileno())
        except OSError:
            self._socket.close()
            self._log.close()
            raise

    def _launch(self, spec: str, descriptor: int) -> subprocess.Popen[bytes]:
        # With O_APPEND the log can be cut at any time and the next line starts at its new end.
        flags = fcntl.fcntl(self._log, fcntl.F_GETFL)
        fcntl.fcntl(self._log, fcntl.F_SETFL, flags | os.O_APPEND)
        arguments = [json.dumps(sys.path), str(descriptor), spec]
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, *arguments],
            stdin=subprocess.PIPE,  # never written to: its end is the end of this process
            stdout=self._log,
            stderr=self._log,
            pass_fds=(descriptor,),
            start_new_session=True,
            # Engines walk over sets: one hash seed, so that an episode replays in any process.
            env={"PYTHONHASHSEED": "0"} | os.environ,
        )

    async def connect(self) -> None:
        """Begin to listen."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=self._socket)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to write (called by asyncio)."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand every complete message on (called by asyncio)."""
        for message in self._reader.feed(data):
            self._on_message(message)

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell that the process is gone (called by asyncio)."""
        self._on_lost()

    def write(self, data: bytes) -> None:
        """Send bytes; never blocks."""
        assert self._transport is not None
        self._transport.write(data)

    def is_over(self) -> bool:
        """Tell whether the process itself has ended, even if something keeps its socket open."""
        return self._process.poll() is not None

    def trim_log(self) -> None:
        """Forget what was printed when it has become too much."""
        if os.fstat(self._log.fileno()).st_size > LOG_BYTES:
            os.ftruncate(self._log.fileno(), 0)

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # none left, or only zombies
            os.killpg(self._process.pid, signal.SIGKILL)

    async def bury(self) -> str:
        """Wait for the end of a process that is ending, clean up, and say how it ended."""
        # The socket closes a moment before the process is over: give it time to end by itself.
        for _ in range(100):
            if self._process.poll() is not None:
                break
            await asyncio.sleep(0.005)
        self.kill()
        while self._process.poll() is None:
            await asyncio.sleep(0.005)
        if self._transport is not None:
            self._transport.close()
        self._socket.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        ending = _describe(self._process.returncode) + self._tail()
        self._log.close()
        return ending

    def _tail(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        printed = os.pread(self._log.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES))
        text = printed.decode(errors="replace").strip()
        return f"; last words: {text}" if text else ""


def _describe(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
