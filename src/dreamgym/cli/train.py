"""`dreamgym train`: teach a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dreamgym.cli import options
from dreamgym.cli.train_dpo import prefer_with_bar, show_preferred
from dreamgym.cli.train_rl import reinforce_with_bar, show_reinforced
from dreamgym.cli.train_rounds import show_rounds, train_in_rounds
from dreamgym.cli.train_sft import clone_with_bars, show_cloned
from dreamgym.config import dump_toml
from dreamgym.dreams import SERVER, SMOLLM2

Algo = Annotated[
    str | None,
    typer.Option(
        "--algo", help="sft: cloning; dpo: won against lost; grpo, ppo, rloo, gigpo: trial."
    ),
]
Store = Annotated[
    Path | None, typer.Option("--store", help="The experience store, or a run directory.")
]
Demos = Annotated[
    int | None, typer.Option("--demos", help="Exactly so many successful real episodes.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="1m, 3m or 10m from scratch, or a model folder.")
]
From = Annotated[
    Path | None,
    typer.Option("--from", help="Start from the weights of a fitted dream or a trained policy."),
]
Steps = Annotated[
    int | None, typer.Option("--steps", help="Updates; by trial, rounds of playing and learning.")
]
World = Annotated[
    str | None,
    typer.Option("--world", help="Where to practise: real, the run of a fit, llm or smollm2."),
]
Gate = Annotated[
    str | None, typer.Option("--gate", help="The audit that vouches for the dream, or off.")
]


ThenReal = Annotated[
    int | None,
    typer.Option("--then-real", help="After the dream, at most so many real transitions."),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", help="Rounds at most; the dream is fitted again between them."),
]
ByCurriculum = Annotated[
    bool, typer.Option("--curriculum", help="Practise what is neither too easy nor too hard.")
]


def train(
    algo: Algo = None,
    store: Store = None,
    demos: Demos = None,
    env: options.Env = None,
    model: Model = None,
    start: From = None,
    steps: Steps = None,
    world: World = None,
    gate: Gate = None,
    then_real: ThenReal = None,
    rounds: Rounds = None,
    curriculum: ByCurriculum = False,
    seed: options.Seed = None,
    out: options.Out = None,
    resume: options.Resume = False,
    preset: options.Preset = None,
    config: options.Files = None,
    settings: options.Settings = None,
    dry_run: options.DryRun = False,
) -> None:
    """Teach a policy, by demonstrations or by trial: the result is a folder that `eval` takes."""
    if model is not None and start is not None:
        raise typer.BadParameter("--model and --from both say what to start from: give one")
    flags = {
        "train.algo": algo,
        "train.demos": demos,
        "rl.world": _absolute(world, "real", SERVER, SMOLLM2),
        "rl.gate": _absolute(gate, "off"),
        "rl.then_real": then_real,
        "rl.rounds": rounds,
        "curriculum.on": curriculum or None,
        "env.spec": env,
        "policy.model": _absolute(str(start), SMOLLM2) if start else model,
        "seed": seed,
        "replay.store": str(options.store_at(store).absolute()) if store else None,
    }
    # Whose steps they are is not known yet, but settings of [rl] are checked against them.
    guess = {**flags, "rl.steps": steps and max(1, steps)}
    resolved = options.resolve_config(preset, config, settings, guess)
    section = {"sft": "train", "dpo": "dpo"}.get(resolved.train.algo, "rl")
    flags[f"{section}.steps"] = steps
    resolved = options.resolve_config(preset, config, settings, flags)
    console = Console()
    if dry_run:
        console.print(dump_toml(resolved), markup=False, highlight=False)
        return
    run = options.open_run_for("train", resolved, out=out, resume=resume)
    with options.running(run, resumable=True):
        if section == "rl" and resolved.rl.rounds > 1:
            show_rounds(console, train_in_rounds(resolved, run, console))
        elif section == "rl":
            show_reinforced(console, reinforce_with_bar(resolved, run, console), resolved)
        elif section == "dpo":
            show_preferred(console, prefer_with_bar(resolved, run, console), resolved)
        else:
            show_cloned(console, clone_with_bars(resolved, run, console), resolved)


def _absolute(path: str | None, *words: str) -> str | None:
    """Return a path that means the same wherever the run is resumed; given words stay."""
    return path if path is None or path in words else str(Path(path).absolute())
