"""Experiment suites: named, resumable, cells of `dreamgym` commands, tables over seeds."""

from dreamgym.bench.run import run_suite
from dreamgym.bench.suite import Cell, Stage, Suite
from dreamgym.bench.suites import SUITES, make_suite
from dreamgym.bench.table import BenchTable, make_table

__all__ = [
    "SUITES",
    "BenchTable",
    "Cell",
    "Stage",
    "Suite",
    "make_suite",
    "make_table",
    "run_suite",
]
