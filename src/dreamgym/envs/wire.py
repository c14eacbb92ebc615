"""What travels between the system and a worker process: frames, requests, replies, errors.

Both ends are the same DreamGym on the same machine, so a frame is a pickle behind its length. Steps
travel as plain tuples, a third of the price of dataclasses; packing them is also where an engine's
answers are checked and brought to plain types. Nothing here knows how either end works.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from dreamgym import errors
from dreamgym.errors import DreamGymError, EnvError
from dreamgym.types import Observation, Opening, StepResult, Task

Request = tuple[str, int, Any]
"""Operation, session (0 for none), payload."""
Reply = tuple[float, str, Any]
"""Seconds inside the engine, the error's class name or nothing, the answer or the message."""

_LENGTH = struct.Struct("!I")


def pack(message: object) -> bytes:
    """Return a message as one frame."""
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield every message that is complete now."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield pickle.loads(body)


def pack_observation(observation: object) -> tuple[str, tuple[str, ...] | None]:
    """Check an engine's observation and return it as plain values."""
    if not isinstance(observation, Observation):
        raise EnvError(f"an Observation was due, the engine gave {_kind(observation)}")
    text, admissible = observation.text, observation.admissible
    if not isinstance(text, str):
        raise EnvError(f"an observation's text is a str, the engine gave {_kind(text)}")
    if admissible is None:
        return str(text), None
    return str(text), check_texts(admissible)


def pack_step(result: object) -> tuple[Any, ...]:
    """Check an engine's answer to an action and return it as plain values."""
    if not isinstance(result, StepResult):
        raise EnvError(f"a step gives a StepResult, the engine gave {_kind(result)}")
    return (
        *pack_observation(result.observation),
        float(result.reward),
        bool(result.terminated),
        bool(result.truncated),
        bool(result.success),
        bool(result.refused),
    )


def unpack_step(values: tuple[Any, ...]) -> StepResult:
    """Return the step that `pack_step` took apart."""
    return StepResult(Observation(values[0], values[1]), *values[2:])


def check_opening(opening: object) -> Opening:
    """Check an engine's answer to a reset."""
    if not isinstance(opening, Opening):
        raise EnvError(f"a reset gives an Opening, the engine gave {_kind(opening)}")
    return Opening(check_task(opening.task), Observation(*pack_observation(opening.observation)))


def check_task(task: object) -> Task:
    """Check a task of an engine; a class of the engine's own would not be known elsewhere."""
    if type(task) is not Task:
        raise EnvError(f"a Task was due, the engine gave {_kind(task)}")
    return task


def check_texts(values: Iterable[object]) -> tuple[str, ...]:
    """Check a list of actions or names that an engine gave."""
    texts = tuple(values)
    if not all(isinstance(text, str) for text in texts):
        raise EnvError(f"texts were due, the engine gave {texts!r:.80}")
    return tuple(map(str, texts))


def _kind(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"


def pack_error(error: DreamGymError) -> tuple[str, str]:
    """Return the nearest class of our own tree and the message: all that the other end knows."""
    for kind in type(error).__mro__:
        if kind.__module__ == errors.__name__:
            return kind.__name__, str(error)
    return DreamGymError.__name__, str(error)


def unpack_error(name: str, message: str) -> DreamGymError:
    """Return the error that `pack_error` took apart."""
    kind: type[DreamGymError] = getattr(errors, name)
    return kind(message)
