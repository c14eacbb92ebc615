"""The way in, for `dreamgym` and `python -m dreamgym`: what must be set before numpy is loaded."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line."""
    # The products of a search are small. Threads that numpy starts for them go on running while
    # they wait, and take a core from those who compute. Whoever sets a number gets it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dreamgym.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
