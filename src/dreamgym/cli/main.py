"""The `dreamgym` command: its subcommands, and how errors are told to people."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from dreamgym import __version__
from dreamgym.cli import (
    annotate,
    audit,
    bench,
    collect,
    demo,
    doctor,
    environments,
    evaluate,
    fit,
    play,
    records,
    replay,
    report,
    settings,
    train,
    vary,
)
from dreamgym.errors import ConfigError, DreamGymError

app = typer.Typer(
    name="dreamgym",
    help="Train language-model agents inside synthesised environments.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("collect")(collect.collect)
app.command("annotate")(annotate.annotate)
app.command("fit")(fit.fit)
app.command("play")(play.play)
app.command("vary")(vary.vary)
app.command("audit")(audit.audit)
app.command("train")(train.train)
app.command("eval")(evaluate.evaluate)
app.command("report")(report.report)
app.command("bench")(bench.bench)
app.command("import")(records.import_)
app.command("export")(records.export)
app.add_typer(replay.app, name="replay")
app.command("envs")(environments.envs)
app.command("tasks")(environments.tasks)
app.command("check-env")(environments.check_env)
app.command("config")(settings.config)
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Train language-model agents inside synthesised environments."""
    if show:
        typer.echo(f"dreamgym {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors of ours are one clear message, never a traceback."""
    # Plugins and agents given as module:function may lie in the folder the user is in.
    sys.path.insert(0, "")
    errors = Console(stderr=True)
    try:
        app()
    except (DreamGymError, OSError) as error:
        # A full disk, a folder that may not be written: the system's words name the file.
        message = f"error: {error}"
        errors.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
