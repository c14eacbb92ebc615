"""TRL's prompt and completion, one row per step: what an agent saw, and what it did. Export only.

Rows are conversational: the prompt is the whole history up to the step, ending with the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dreamgym.records.kept import first_message
from dreamgym.types import Trajectory


def write(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield a row per step."""
    history = [{"role": "user", "content": first_message(trajectory)}]
    for step in trajectory.steps:
        said = {"role": "assistant", "content": step.action.text}
        yield {"prompt": list(history), "completion": [said]}
        history += [said, {"role": "user", "content": step.result.observation.text}]
