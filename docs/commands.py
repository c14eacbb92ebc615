"""Write docs/commands.md: the help of every command, as the command line prints it."""

from pathlib import Path

from typer.testing import CliRunner

from dreamgym.cli.main import app

COMMANDS = [
    (), ("demo",), ("collect",), ("annotate",), ("fit",), ("play",), ("vary",), ("audit",),
    ("train",), ("eval",), ("report",), ("bench",),
    ("import",), ("export",),
    ("replay",), ("replay", "stats"), ("replay", "search"), ("replay", "reindex"),
    ("envs",), ("tasks",), ("check-env",), ("config",), ("doctor",),
]  # fmt: skip

HEAD = """# Commands

Written by `python docs/commands.py`; a test fails when it is out of date.
"""


def render() -> str:
    """Return the page."""
    # In this process: it takes a second, where starting the tool for each would take half a minute.
    tool = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb"})
    pages = [HEAD]
    for words in COMMANDS:
        # As wide as in a terminal of 80 columns or more.
        done = tool.invoke(
            app,
            [*words, "--help"],
            prog_name="dreamgym",
            terminal_width=78,
            catch_exceptions=False,
        )
        if done.exit_code:
            raise SystemExit(f"{' '.join(words)} --help: {done.output}")
        help_text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        title = " ".join(("dreamgym", *words))
        pages.append(f"## `{title}`\n\n```text\n{help_text}\n```\n")
    return "\n".join(pages)


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(render(), "utf-8")
