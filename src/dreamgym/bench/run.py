"""Runs the stages of a suite, some side by side, each in a process of its own with one thread.

What is finished is not repeated; what was killed goes on, or begins again where its command cannot.
A stage that fails takes with it what needs it, and nothing else.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dreamgym.bench.suite import RESUMABLE, Stage, Suite
from dreamgym.errors import RunDirError
from dreamgym.report.record import read_run
from dreamgym.runs import LineWriter, read_json_lines

TIMES = "stages.jsonl"
"""How long each attempt at a stage took, in the folder of the suite."""
LOGS = "logs"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NO_COLOR"), "1"
)
PATIENCE = 0.5
"""Seconds between looks at a stage that another process has in hand."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a suite is."""

    done: int
    total: int
    running: tuple[str, ...]
    failed: tuple[str, ...]
    seconds_left: float | None = None
    """By what stages of the same kind took here; None while nothing is known."""


OnChange = Callable[[Standing], None]
Call = Callable[[list[str], Path], Awaitable[int]]
"""Runs the words of a command, what it says going to a file, and returns its exit status."""


async def call_dreamgym(words: list[str], log: Path) -> int:
    """Run `dreamgym` in a process of its own."""
    tool = Path(sys.executable).with_name("dreamgym")
    if not tool.is_file():
        raise RunDirError(f"the dreamgym command is not beside {sys.executable}: install it there")
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            str(tool), *words, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file,
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        try:
            return await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise


async def run_suite(
    suite: Suite,
    root: Path,
    *,
    jobs: int = 1,
    on_change: OnChange = lambda standing: None,
    call: Call = call_dreamgym,
) -> dict[str, str]:
    """Run what is missing. Returns why stages failed, by their folders' names."""
    stages = suite.stages
    done = {stage.key for stage in stages if stage.finished(root)}
    waiting = [stage for stage in stages if stage.key not in done]
    running: dict[asyncio.Task[str], Stage] = {}
    failures: dict[str, str] = {}
    lost: set[str] = set()
    with LineWriter(root / TIMES) as times:
        try:
            while waiting or running:
                for stage in [one for one in waiting if any(n.key in lost for n in one.needs)]:
                    waiting.remove(stage)
                    lost.add(stage.key)
                ready = [one for one in waiting if all(need.key in done for need in one.needs)]
                for stage in ready[: max(0, jobs - len(running))]:
                    waiting.remove(stage)
                    running[asyncio.create_task(run_stage(stage, root, times=times, call=call))] = (
                        stage
                    )
                left = seconds_left(root / TIMES, [*waiting, *running.values()], jobs=jobs)
                on_change(_standing(done, stages, running, failures, left))
                if not running:
                    continue
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    stage, why = running.pop(task), task.result()
                    if why:
                        failures[_name(stage)] = why
                        lost.add(stage.key)
                    else:
                        done.add(stage.key)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    on_change(_standing(done, stages, running, failures, 0.0))
    return failures


def _standing(
    done: set[str],
    stages: tuple[Stage, ...],
    running: dict[asyncio.Task[str], Stage],
    failures: dict[str, str],
    left: float | None,
) -> Standing:
    names = tuple(stage.name for stage in running.values())
    return Standing(len(done), len(stages), names, tuple(failures), left)


def seconds_left(times: Path, stages: Sequence[Stage], *, jobs: int) -> float | None:
    """Return about how long stages will take, by what finished ones of their kind took."""
    taken: dict[str, list[float]] = {}
    for row in read_json_lines(times):
        if row["code"] == 0:
            kind = _kind(row["stage"].removesuffix(f"-{row['key']}"))
            taken.setdefault(kind, []).append(row["seconds"])
    if not taken:
        return None
    means = {kind: sum(found) / len(found) for kind, found in taken.items()}
    usual = sum(means.values()) / len(means)
    return sum(means.get(_kind(stage.name), usual) for stage in stages) / jobs


def _kind(name: str) -> str:
    """Return what a stage is, wherever and under whichever seed: `map-0/clone` is a `clone`."""
    return name.rpartition("/")[2]


def _name(stage: Stage) -> str:
    return f"{stage.name}-{stage.key}"


async def run_stage(stage: Stage, root: Path, *, times: LineWriter, call: Call) -> str:
    """Run one stage to its end. Returns why it failed, or nothing."""
    folder, log = stage.folder(root), root / LOGS / f"{_name(stage).replace('/', '_')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    while True:
        await _until_free(folder)
        if stage.finished(root):
            return ""  # Somebody else's process brought it to an end meanwhile.
        if folder.exists() and stage.words[0] not in RESUMABLE:
            shutil.rmtree(folder)
        words = stage.command(root, resume=folder.exists())
        began, said_before = time.monotonic(), log.stat().st_size if log.exists() else 0
        code: int | None = None
        try:
            code = await call(words, log)
        finally:  # An attempt that was cut off took its time, too.
            seconds = round(time.monotonic() - began, 2)
            row = {"stage": _name(stage), "key": stage.key, "seconds": seconds, "code": code}
            times.write(row)
        if stage.finished(root):
            return _emptiness(stage, root)
        if not _in_hand(folder):
            break  # Else another suite began it in the same moment: wait for that one.
    text = log.read_bytes()[said_before:].decode("utf-8", "replace")
    said = [line for line in text.splitlines() if line.strip()]
    return f"exit {code}: {' '.join(said[-3:])[-600:]} (see {log})"


def _emptiness(stage: Stage, root: Path) -> str:
    """Say why an evaluation judged nobody, and let it be run again; nothing where it did."""
    run = read_run(stage.folder(root))
    if run.kind != "eval" or run.of("success", "episodes") != 0:
        return ""
    (stage.folder(root) / "result.json").unlink()
    return f"every episode failed, the first with: {run.of('first_failure')}"


async def _until_free(folder: Path) -> None:
    """Wait until no other process works in the folder: a killed suite may leave some behind."""
    while _in_hand(folder):
        await asyncio.sleep(PATIENCE)


def _in_hand(folder: Path) -> bool:
    """Say whether a process works in the folder."""
    path = folder / ".lock"
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
