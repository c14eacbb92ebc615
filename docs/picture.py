"""Turn what a command prints into a picture: `python docs/picture.py OUT TITLE FROM TO COMMAND...`.

The pictures in README and docs are made with this from real output; none is drawn by hand.
"""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console

WIDTH = 100


def main() -> None:
    """Run the command in colour and write its last lines as a picture."""
    out, title, first, last, *command = sys.argv[1:]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = list(AnsiDecoder().decode(done.stdout))[int(first) : int(last) or None]
    console = Console(record=True, width=WIDTH, file=StringIO())
    for line in lines:
        console.print(line)
    Path(out).write_text(console.export_svg(title=title), "utf-8")


if __name__ == "__main__":
    main()
