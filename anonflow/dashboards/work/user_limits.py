"""The caps of a user: those of a shared server, and those of what a page can show."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anonflow import strict_yaml
from anonflow.engine.storage.storage import text_in_memory
from anonflow.errors import DataError

MEGABYTE = 1_000_000

FLOW_BYTES = 128 << 10
"""Bytes of a flow that a shared server reads: a second or two, at worst five."""

MOST_ROWS = 2_000_000
"""Records of a table on a local server: for larger tables, screens would take too long."""


@dataclass(frozen=True)
class Limits:
    """Caps; None is no cap."""

    upload_bytes: int | None = None
    """Of one uploaded file, packed or unpacked."""
    rows: int | None = None
    """Records of a table."""
    seconds: float | None = None
    """Of the clock, for one run, from its start to its end; waiting in the queue does not count."""
    sessions: int | None = None
    """Users at the same time."""
    running: int | None = None
    """Runs at the same time, of all users together."""
    columns: int | None = 1000
    """Of a table; a page draws a row for each."""
    runs: int | None = 200
    """Runs of one user that are kept; the oldest go first."""
    statistics: bool = False
    """Whether files of SPSS, Stata and SAS are read: a damaged one may end the process that reads it, with the sessions of all users."""
    elsewhere: str = "run anonflow on your own machine"
    """What else can be done with a table that is too large."""

    @property
    def flow_bytes(self) -> int:
        """The most bytes of a flow that is opened."""
        return strict_yaml.MAX_BYTES if self.upload_bytes is None else FLOW_BYTES

    def check_flow(self, text: str) -> None:
        """Refuse a flow that takes long to read."""
        _check_cap(
            len(text),
            self.flow_bytes,
            f"the flow is larger than {self.flow_bytes >> 10:,} KiB, the largest that is opened here; keep large hierarchies in CSV files, or {self.elsewhere}",
        )

    def check_rows(self, rows: int) -> None:
        """Refuse a table with too many records."""
        _check_cap(
            rows,
            self.rows,
            f"the table has {{:,}} records, and this server takes at most {{:,}}; take a sample, or {self.elsewhere}",
        )

    def check_columns(self, columns: int) -> None:
        """Refuse a table with too many columns."""
        _check_cap(
            columns,
            self.columns,
            "the table has {:,} columns, and at most {:,} are taken here; leave out those that are not to be published",
        )

    def check_upload(self, size: int) -> None:
        """Refuse a file that is too large."""
        _check_cap(
            size / MEGABYTE,
            None if self.upload_bytes is None else self.upload_bytes / MEGABYTE,
            "the file has {:,.1f} MB, and this server takes at most {:,.1f} MB; upload fewer columns or records, "
            f"or {self.elsewhere}",
        )


def _check_cap(number: float, most: float | None, sentence: str) -> None:
    """Refuse what is more than a cap, by a sentence with both numbers."""
    if most is not None and number > most:
        raise DataError(sentence.format(number, most))


HOSTED = Limits(upload_bytes=50 * MEGABYTE, rows=200_000, seconds=300.0, sessions=60, running=None, runs=60)
"""Caps of a hosted server where its owner names no others."""


def local_limits() -> Limits:
    """Caps of one's own server: a table that is worked on in memory, and that a page can show."""
    return replace(
        Limits(),
        upload_bytes=text_in_memory(),
        rows=MOST_ROWS,
        statistics=True,
        elsewhere="run it as a flow: anonflow run, which works in pieces where memory is short",
    )
