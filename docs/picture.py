"""Turn what a command prints into a picture: `python docs/picture.py OUT TITLE FROM TO COMMAND...`.

The pictures in README and docs are made with this from real output; none is drawn by hand.
"""

import os
import subprocess
import sys
from io import StringIO
from itertools import pairwise
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

WIDTH = 100


def _redrawn(line: Text, after: Text) -> bool:
    """A progress bar is printed again and again in one place: only its last state counts."""
    return bool(line.plain) and "/" in line.plain and line.plain[:10] == after.plain[:10]


def main() -> None:
    """Run the command in colour and write its last lines as a picture."""
    out, title, first, last, *command = sys.argv[1:]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = [line for line, after in pairwise([*AnsiDecoder().decode(done.stdout), Text()])
             if not _redrawn(line, after)][int(first) : int(last) or None]  # fmt: skip
    console = Console(record=True, width=WIDTH, file=StringIO())
    for line in lines:
        console.print(line)
    Path(out).write_text(console.export_svg(title=title), "utf-8")


if __name__ == "__main__":
    main()
