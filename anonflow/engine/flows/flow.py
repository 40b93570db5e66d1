"""A flow that has passed every check that needs no data, and its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.engine.flows.spec import AnonymizeSpec, FlowSpec, PartitionSpec
from anonflow.table.schema import Schema

if TYPE_CHECKING:
    from anonflow.table import Table

__all__ = ["OWNER", "Flow", "Run"]

OWNER = "owner"
"""The folder beside a flow file that holds the owner's folders."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a flow: what the matrix left of it.

    Attributes
    ----------
    number : int
    name : str
        Such as ``greedy k=10``.
    anonymize : AnonymizeSpec
    partition : PartitionSpec
    values : dict
        What the matrix set, by its keys.
    """

    number: int
    name: str
    anonymize: AnonymizeSpec
    partition: PartitionSpec
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Flow:
    """A flow that has passed every check that needs no data.

    Attributes
    ----------
    name : str
    folder : pathlib.Path
        What paths in the flow are relative to.
    path : pathlib.Path or None
        The file, if it came from one.
    spec : FlowSpec
    schema : Schema
    runs : tuple of Run
        One, or one for each combination of the matrix.
    published : Run or None
        The run whose release is published or handed back; None if none is.
    table : Table or None
        The table, where somebody has it in memory: the source is not read then. It must be the source's.
    digest : bytes or None
        The SHA-256 hash of the file as it was read, if it came from one.
    """

    name: str
    folder: Path
    path: Path | None
    spec: FlowSpec
    schema: Schema
    runs: tuple[Run, ...]
    published: Run | None
    table: Table | None = None
    digest: bytes | None = field(default=None, repr=False)

    @property
    def owner_folder(self) -> Path:
        """Where the owner's things are kept."""
        return self.folder / OWNER / self.name

    @property
    def table_path(self) -> Path | None:
        """Where the release is published."""
        given = self.spec.publish.table
        return None if given is None else self.folder / given

    @property
    def report_path(self) -> Path | None:
        """Where the report is published."""
        given = self.spec.publish.report
        return None if given is None else self.folder / given

    @property
    def source_path(self) -> Path | None:
        """The file that the table is read from, None for a data set."""
        source = self.spec.table.source
        given = source.csv if source.csv is not None else source.parquet
        return None if given is None else self.folder / given

    @property
    def criteria(self) -> tuple[Any, ...]:
        """What is verified; nothing is published unverified, so never empty."""
        asked: tuple[Any, ...] = self.spec.steps.verify or ("covers", "guarantee")
        more = self.spec.steps.diversify
        return asked if more is None else (*asked, more.asked)

    def draws(self, run: Run) -> bool:
        """Whether an assignment is drawn for a run: only for the one that is published or handed back."""
        wanted = self.spec.steps.draw is not None or self.spec.publish.table is not None
        return wanted and run is self.published
