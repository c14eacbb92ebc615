"""Transitions and trajectories as compressed bytes, and the key that finds equal transitions.

What a trajectory says once (ids, environment, split) is stored once, beside its transitions; the
packed body of a transition holds only what is its own. Two transitions with equal bodies, apart
from the explanation, are duplicates.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass

from dreamgym import codec
from dreamgym.types import Source, Split, Trajectory, Transition

_LEVEL = 1
"""Fast compression: states of one step resemble each other, so even the lightest finds most."""


@dataclass(frozen=True, slots=True)
class Group:
    """The part of the store a transition lies in; searches choose among groups."""

    env: str
    source: Source
    split: Split


@dataclass(frozen=True, slots=True)
class Packed:
    """A transition ready to be stored."""

    key: bytes
    """Equal for duplicates: same group, goal, states, action, reward and flags."""
    body: bytes


def pack(transition: Transition) -> Packed:
    """Return a transition's key and compressed body."""
    content = json.dumps(
        [
            transition.goal,
            transition.state,
            transition.action,
            transition.next_state,
            float(transition.reward),
            transition.done,
            transition.success,
            transition.refused,
        ],
        ensure_ascii=False,
    ).encode()
    place = json.dumps([transition.env, transition.source, transition.split]).encode()
    key = hashlib.blake2b(place + b"\n" + content, digest_size=16).digest()
    # JSON escapes line breaks, so the first one ends the content.
    why = b"" if transition.reasoning is None else b"\n" + transition.reasoning.encode()
    return Packed(key, zlib.compress(content + why, _LEVEL))


def unpack(
    body: bytes, *, trajectory_id: str, index: int, task_id: str, group: Group
) -> Transition:
    """Rebuild a transition from its body and what its trajectory knows."""
    content, marker, why = zlib.decompress(body).partition(b"\n")
    goal, state, action, next_state, reward, done, success, refused = json.loads(content)
    return Transition(
        id=f"{trajectory_id}#{index}",
        trajectory_id=trajectory_id,
        index=index,
        env=group.env,
        task_id=task_id,
        goal=goal,
        split=group.split,
        source=group.source,
        state=state,
        action=action,
        next_state=next_state,
        reward=reward,
        done=done,
        success=success,
        refused=refused,
        reasoning=why.decode() if marker else None,
    )


def unpack_texts(body: bytes) -> tuple[str, str]:
    """Return the state and the action of a packed transition."""
    content, _, _ = zlib.decompress(body).partition(b"\n")
    fields = json.loads(content)
    return fields[1], fields[2]


def pack_trajectory(trajectory: Trajectory) -> bytes:
    """Return the whole trajectory as one compressed record."""
    return zlib.compress(codec.encode(trajectory).encode(), _LEVEL)


def unpack_trajectory(body: bytes) -> Trajectory:
    """Read a trajectory back."""
    return codec.decode(zlib.decompress(body), Trajectory)
