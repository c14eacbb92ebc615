"""The run directory: the only channel between a run, the tools that watch it, and people."""

from dreamgym.runs.directory import MEMORY, RunDir, open_run, remove_run
from dreamgym.runs.lines import LineWriter, read_json_lines

__all__ = ["MEMORY", "LineWriter", "RunDir", "open_run", "read_json_lines", "remove_run"]
