"""Cells on record: a file of what finished cells came to, which travels from machine to machine.

A cell is known by the keys of its stages, that is by every command behind it. Which versions ran
them is not part of that; they stand in each cell, for people, and so do notes that were added.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from dreamgym import __version__
from dreamgym.bench.suite import Suite
from dreamgym.bench.table import CellResult, read_cell, seconds_spent
from dreamgym.errors import RecordError
from dreamgym.runs import LineWriter, read_json_lines

_RESULT = TypeAdapter(CellResult)


class KnownCells:
    """What cells came to, by their keys. Without a path nothing is known, and nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file; one that is not there yet has no cells."""
        self.path = path
        self.found: dict[str, CellResult] = {}
        try:
            for row in read_json_lines(path) if path else ():
                cell = row["cell"] | ({"note": row["note"]} if "note" in row else {})
                self.found[row["key"]] = _RESULT.validate_python(cell)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(
                f"{path} has a line, the first after {len(self.found)} cells, that is not a cell "
                f"of a suite ({error}). Take it out, and the cell is run again"
            ) from error

    def missing(self, suite: Suite) -> Suite:
        """Return the part of a suite that is not on record."""
        return replace(
            suite, cells=tuple(cell for cell in suite.cells if cell.key not in self.found)
        )

    def keep(self, suite: Suite, root: Path) -> None:
        """Put what has been finished meanwhile on record."""
        done = {
            cell.key: cell for cell in self.missing(suite).cells
            if cell.finished(root)
        }  # fmt: skip
        if self.path is None or not done:
            return
        spent = seconds_spent(root)
        with LineWriter(self.path) as lines:
            for cell in done.values():
                found = read_cell(cell, root, spent)
                if found.success is None:
                    continue  # judged by nothing: to be run again
                self.found[cell.key] = found
                lines.write({"key": cell.key, "version": __version__, "cell": asdict(found)})
