"""`dreamgym play`: walk through a dream."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.errors import EnvError, did_you_mean
from dreamgym.loop_thread import LoopThread
from dreamgym.types import Split as TaskSplit

if TYPE_CHECKING:
    from dreamgym.jobs.play import Walk

World = Annotated[
    str,
    typer.Option(
        "--world", help="The run of a fit; or llm (the model of [llm]), smollm2, a model folder."
    ),
]
Store = Annotated[
    Path | None, typer.Option("--store", help="Remember with this store or run directory.")
]
OneTask = Annotated[str | None, typer.Option("--task", help="The id of the task.")]
Split = Annotated[TaskSplit, typer.Option("--split", help="Where the task is counted.")]
Number = Annotated[int, typer.Option("--number", help="Its number in the split, from 0.")]
Real = Annotated[bool, typer.Option("--real", help="Take every action for real as well.")]

COMMANDS = {
    ":undo": "take the last action back; reality is walked anew",
    ":refs": "the references of the last answer, in full",
    ":actions": "what can be done here, as far as is known",
    ":expert": "what wins from here for real (with --real)",
    ":help": "these commands",
    ":quit": "leave",
}


def play(
    world: World,
    task: OneTask = None,
    split: Split = TaskSplit.TRAIN,
    number: Number = 0,
    real: Real = False,
    store: Store = None,
    env: options.Env = None,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
) -> None:
    """Walk through a dream, alone or with reality beside it."""
    flags = {
        "env.spec": env,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
    }
    resolved = options.resolve_config(preset, config, settings, flags)
    from dreamgym.jobs import play as job  # torch: only when there is something to play

    with LoopThread() as loop:
        dream = job.open_played(world, resolved)
        beside = job.open_beside(dream, resolved) if real else None
        try:
            found = loop.run(job.find_task(dream, beside, wanted=task, split=split, number=number))
            _Table(Console(highlight=False), job.Walk(dream.world, found, real=beside), loop).sit()
        finally:
            loop.run(dream.close())
            if beside is not None:
                loop.run(beside.close())


class _Table:
    """Where somebody sits and plays: lines in, texts out."""

    def __init__(self, console: Console, walk: Walk, loop: LoopThread) -> None:
        from dreamgym.cli import play_view

        self._console, self._walk, self._loop, self._view = console, walk, loop, play_view

    def sit(self) -> None:
        """Play until the player leaves."""
        try:
            opening = self._loop.run(self._walk.begin())
            self._say(f"Task {opening.task.id}\nGoal: {opening.task.goal}", style="bold")
            self._say("`:help` lists what else can be typed, `:quit` leaves.\n")
            self._say(f"{opening.observation.text}\n")
            while (line := self._read()) not in (None, ":quit"):
                if line:
                    self._answer(line)
        except KeyboardInterrupt:
            self._say("")
        finally:
            self._loop.run(self._walk.close())
        real = f", {self._walk.real_steps} real steps" if self._walk.real_steps else ""
        self._say(f"Left after {len(self._walk.turns)} actions{real}.", style="dim")

    def _read(self) -> str | None:
        """Return the next line, or None at the end; what comes from a pipe is shown."""
        self._console.print("> ", end="", style="bold", markup=False)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line or not sys.stdin.isatty():
            self._say(line.strip(), style="bold")
        return line.strip() if line else None

    def _say(self, text: str, *, style: str = "") -> None:
        self._view.say(self._console, text, style=style)

    def _answer(self, line: str) -> None:
        try:
            if line.startswith(":"):
                self._command(line)
            elif self._walk.over:
                self._say("The episode is over: `:undo` goes back, `:quit` leaves.")
            else:
                self._view.turn(self._console, self._loop.run(self._walk.act(line)))
        except EnvError as error:
            self._say(f"{error}", style="red")

    def _command(self, line: str) -> None:
        walk = self._walk
        if line == ":undo":
            undone = self._loop.run(walk.undo())
            self._say(f"{walk.state}\n" if undone else "Nothing to take back.")
        elif line == ":refs":
            self._view.references_in_full(self._console, walk.turns[-1] if walk.turns else None)
        elif line == ":actions":
            self._say("\n".join(walk.actions()) or "Nobody has a list.")
        elif line == ":expert":
            self._say("\n".join(self._loop.run(walk.expert())) or "Nobody knows (try --real).")
        elif line == ":help":
            self._say("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()))
        else:
            self._say(f"There is no {line}.{did_you_mean(line, COMMANDS)}", style="red")
