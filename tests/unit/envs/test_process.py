"""A worker's process: how its end is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dreamgym.envs.process import EngineProcess


async def run_process(spec: str, *, kill: bool) -> tuple[list[Any], str]:
    messages: list[Any] = []
    lost = asyncio.Event()
    hello = asyncio.Event()

    def receive(message: Any) -> None:
        messages.append(message)
        hello.set()

    process = EngineProcess(spec, on_message=receive, on_lost=lost.set)
    await process.connect()
    await hello.wait()
    if kill:
        process.kill()
    await lost.wait()
    ending = await process.bury()
    assert process.is_over()
    return messages, ending


def test_an_engine_says_hello_and_its_end_is_told() -> None:
    messages, ending = asyncio.run(run_process("py/misbehaving:make_engine", kill=True))
    assert messages == [("ready", "ledger 1", "as-is")]
    assert ending == "killed by SIGKILL"


@pytest.mark.parametrize("start", ["wrong", "raise"])
def test_a_failed_start_is_told_with_its_traceback(start: str) -> None:
    spec = f"py/misbehaving:make_engine?start={start}"
    ((word, kind, _),), ending = asyncio.run(run_process(spec, kill=False))
    assert (word, kind) == ("failed", {"wrong": "ConfigError", "raise": "EnvError"}[start])
    assert ending.startswith("exit code 1; last words: ")
    assert len(ending) < 700
