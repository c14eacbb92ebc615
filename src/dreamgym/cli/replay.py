"""`dreamgym replay`: look into an experience store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from dreamgym import build
from dreamgym.cli import options
from dreamgym.cli.display import table
from dreamgym.config import ReplayConfig
from dreamgym.errors import ReplayError
from dreamgym.replay import ExperienceStore, Hit
from dreamgym.replay.reindex import reindex as rebuild

app = typer.Typer(help="Look into an experience store.", no_args_is_help=True)

Embedder = Annotated[
    str, typer.Option("--embedder", help="hashing, static, minilm or the URL of an endpoint.")
]


def open_existing(path: options.Store, embedder: str) -> ExperienceStore:
    """Open a store that must be there already."""
    file = options.store_at(path)
    if not file.exists() or not file.stat().st_size:
        raise ReplayError(f"no experience store at {file}; make one with `dreamgym collect`")
    return build.make_store(file, ReplayConfig(embedder=embedder))


@app.command()
def stats(store: options.Store, embedder: Embedder = "hashing") -> None:
    """Say how much a store holds."""
    with open_existing(store, embedder) as opened:
        rows = [
            (group.env, group.source, group.split, group.trajectories, group.transitions)
            for group in opened.stats()
        ]
    columns = ("environment", "source", "split", "trajectories", "transitions")
    table(Console(), str(options.store_at(store)), columns, rows)


@app.command()
def search(
    store: options.Store,
    action: Annotated[str, typer.Option("--action", help="What the agent does.")],
    state: Annotated[str, typer.Option("--state", help="Where it does it.")] = "",
    k: Annotated[int, typer.Option("-k", min=1, help="How many steps to find.")] = 5,
    embedder: Embedder = "hashing",
) -> None:
    """Find the recorded steps most like a state and an action."""
    with open_existing(store, embedder) as opened:
        show_hits(Console(), opened.search(state, action, k=k))


@app.command()
def reindex(store: options.Store, embedder: Embedder = "hashing") -> None:
    """Make all vectors anew, with the given embedder."""
    count = rebuild(options.store_at(store), embedder=build.make_embedder(embedder))
    Console().print(f"{count} transitions indexed with {embedder}")


def show_hits(console: Console, hits: tuple[Hit, ...]) -> None:
    """Print retrieved steps with their similarity."""
    rows = [
        (
            hit.transition.state,
            hit.transition.action,
            hit.transition.next_state,
            "refused" if hit.transition.refused else f"{hit.transition.reward:g}",
            f"{hit.similarity:.2f}",
        )
        for hit in hits
    ]
    table(console, "Most alike", ("state", "action", "next state", "reward", "similar"), rows)
