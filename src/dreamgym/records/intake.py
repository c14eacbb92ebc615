"""Imports: every record is read and judged before the first one is handed over."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from dreamgym.codec import decode, encode
from dreamgym.errors import ConfigError, RecordError
from dreamgym.records.read import BadRecord, read_records
from dreamgym.types import Split, Trajectory

_SHOWN = 5
"""Bad records that an error message lists; a report keeps `_KEPT`."""
_KEPT = 100


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import found."""

    records: int
    good: int
    bad: int
    steps: int
    successes: int
    """Trajectories whose source says that the task was achieved."""
    rewarded: int
    """Trajectories with a reward other than nothing."""
    first_bad: tuple[BadRecord, ...]
    """The first hundred of the bad ones."""


class Imported:
    """The good records of an import, waiting in a temporary file. Close it, or use `with`."""

    def __init__(self, report: ImportReport, spool: IO[bytes]) -> None:
        self.report = report
        self._spool = spool

    def __iter__(self) -> Iterator[Trajectory]:
        """Yield the trajectories in the order of their files; again from the start each time."""
        at = 0
        for _ in range(self.report.good):
            self._spool.seek(at)
            line = self._spool.readline()
            at = self._spool.tell()
            yield decode(line, Trajectory)

    def close(self) -> None:
        """Remove the temporary file."""
        self._spool.close()

    def __enter__(self) -> Imported:
        """Return the import itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


def import_records(
    paths: Iterable[Path],
    *,
    format: str | None = None,
    env: str | None = None,
    split: Split = Split.TRAIN,
    max_bad_share: float = 0.0,
) -> Imported:
    """Read files of any readable format; return their trajectories once all were found good enough.

    Nothing is handed over before the last record was read, so a store that is filled from the
    result stays untouched by an import that fails. Memory does not grow with the files.

    Args:
        paths: Files and folders.
        format: One of the readable `FORMATS`; without it every record is recognised by itself.
        env: The environment to file records of other tools under.
        split: The split to file them under.
        max_bad_share: The share of bad records, 0 to 1, up to which they are merely left out.

    Raises:
        RecordError: Too many records are bad, or there are none at all; with counts and reasons.
    """
    if not 0 <= max_bad_share <= 1:
        raise ConfigError(f"max_bad_share is {max_bad_share}; a share is between 0 and 1")
    named = list(paths)
    # The spool lives as long as the result, which closes it.
    spool = tempfile.TemporaryFile(prefix="dreamgym-import-")  # noqa: SIM115
    try:
        report = _fill(spool, named, format=format, env=env, split=split)
        _judge(report, named, max_bad_share)
    except BaseException:
        spool.close()
        raise
    return Imported(report, spool)


def _fill(
    spool: IO[bytes], paths: list[Path], *, format: str | None, env: str | None, split: Split
) -> ImportReport:
    good = bad = steps = successes = rewarded = 0
    first_bad: list[BadRecord] = []
    for path in paths:
        for record in read_records(path, format=format, env=env, split=split):
            if isinstance(record, BadRecord):
                bad += 1
                first_bad += [record] if bad <= _KEPT else []
                continue
            spool.write(encode(record).encode() + b"\n")
            good += 1
            steps += len(record.steps)
            successes += record.success
            rewarded += any(step.result.reward for step in record.steps)
    return ImportReport(good + bad, good, bad, steps, successes, rewarded, tuple(first_bad))


def _judge(report: ImportReport, paths: list[Path], max_bad_share: float) -> None:
    if report.records == 0:
        raise RecordError(f"no records in {', '.join(map(str, paths)) or 'nothing'}")
    if report.bad > max_bad_share * report.records:
        shown = "".join(f"\n  {bad}" for bad in report.first_bad[:_SHOWN])
        more = f"\n  ... and {report.bad - _SHOWN:,} more" if report.bad > _SHOWN else ""
        raise RecordError(
            f"{report.bad:,} of {report.records:,} records are bad, "
            f"{max_bad_share:.1%} may be; nothing was imported:{shown}{more}"
        )
