"""The way in, for `dreamgym` and `python -m dreamgym`: what must be set before numpy is loaded."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line."""
    # The products of a search are small. Threads that numpy starts for them go on running while
    # they wait, and take a core from those who compute. Whoever sets a number gets it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from dreamgym.cli.main import main as run

        run()
    except KeyboardInterrupt:
        # Commands say themselves what is kept; this one had not begun.
        sys.exit(130)


if __name__ == "__main__":
    main()
