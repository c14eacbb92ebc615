"""Write docs/commands.md: the help of every command, as the installed command line prints it."""

import os
import subprocess
import sys
from pathlib import Path

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
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    tool = Path(sys.executable).with_name("dreamgym")
    pages = [HEAD]
    for words in COMMANDS:
        done = subprocess.run(
            [str(tool), *words, "--help"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        help_text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        title = " ".join(("dreamgym", *words))
        pages.append(f"## `{title}`\n\n```text\n{help_text}\n```\n")
    return "\n".join(pages)


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(render(), "utf-8")
