"""verl's parquet of prompts, one row per task. Export only; needs the extra `parquet`.

verl trains on prompts: the agent loop that `agent_name` names opens the task anew, so actions and
outcomes of the recorded episodes stay behind. `reward_model.ground_truth` is the task's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from dreamgym.errors import MissingDependency
from dreamgym.extras import install_command
from dreamgym.records.kept import first_message
from dreamgym.types import Trajectory

AGENT_NAME = "dreamgym"
ROWS_AT_ONCE = 1000


def write_parquet(trajectories: Iterable[Trajectory], path: Path) -> int:
    """Write the distinct tasks of some trajectories and return how many there were."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency(
            f"verl's parquet needs pyarrow: {install_command('parquet')}"
        ) from error
    text = arrow.string()
    schema = arrow.schema(
        {
            "data_source": text,
            "agent_name": text,
            "prompt": arrow.list_(arrow.struct({"role": text, "content": text})),
            "ability": text,
            "reward_model": arrow.struct({"style": text, "ground_truth": text}),
            "extra_info": arrow.struct(
                {"index": arrow.int64(), "split": text, "task_id": text, "key": text, "goal": text}
            ),
        }
    )
    rows, count = _rows(trajectories), 0
    with parquet.ParquetWriter(path, schema) as writer:
        while some := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(some, schema=schema))
            count += len(some)
    return count


def _rows(trajectories: Iterable[Trajectory]) -> Iterator[dict[str, Any]]:
    written: set[str] = set()
    for trajectory in trajectories:
        task = trajectory.task
        if task.id in written:
            continue
        yield {
            "data_source": task.env,
            "agent_name": AGENT_NAME,
            "prompt": [{"role": "user", "content": first_message(trajectory)}],
            "ability": "agent",
            "reward_model": {"style": "rule", "ground_truth": task.id},
            "extra_info": {
                "index": len(written),
                "split": str(task.split),
                "task_id": task.id,
                "key": task.key,
                "goal": task.goal,
            },
        }
        written.add(task.id)
