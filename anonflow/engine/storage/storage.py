"""The interface of a table's storage during a run; memory and disk implement it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from anonflow.algorithms.diversity.target import Targets
from anonflow.criteria.verification import Finding
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Place
from anonflow.engine.execution.plan import FlowPlan, Order, RunPlan
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.totals import Totals
from anonflow.table import Table
from anonflow.utility.measures import MeasureRequest

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.release import Release
    from anonflow.table.metadata import ReleaseMetadata

__all__ = ["DrawnRelease", "Storage"]


class DrawnRelease(Protocol):
    """A drawn and verified release that is not yet written."""

    @property
    def release(self) -> Release | None:
        """The release, where it is in memory."""

    def attack(self) -> pd.DataFrame | None:
        """Return how often attackers win against it; None if no attacker was requested."""

    def remember(self) -> Path | None:
        """Store marks of the released people in the owner's folder.

        Returns
        -------
        pathlib.Path or None
            The new file, to be deleted if the release is not published after all.

        Raises
        ------
        DataError, AnonflowError
            If the folder cannot be read or written to.
        """

    def write_release(self, path: Path) -> ReleaseMetadata | None:
        """Write the published table and its description.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """

    def write_certificate(self, path: Path) -> None:
        """Write the owner's certificate.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """


class Storage(Protocol):
    """The storage of a flow's table and results during a run.

    The runner reads rows from it in an order and gives it results; only the storage knows their place.
    """

    def __enter__(self) -> Storage:
        """Create the temporary folder."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the temporary files of the run."""

    def load(self, executor: Executor) -> Table:
        """Read the source: its records, domains and columns.

        Raises
        ------
        DataError, SchemaError, HierarchyError
            If it cannot be read, or does not go with its columns.
        """

    def refuse_early(self) -> Targets | None:
        """Refuse requirements that not even the whole table meets; return what its diversity must be, if one is asked for.

        Raises
        ------
        InfeasibleError, ParameterError
            If the flow has such a requirement.
        """

    def order(self, name: str, bounded: bool) -> Order:
        """Return the table in an order; if requested, boundary classes follow one another."""

    def begin(self, plan: FlowPlan) -> None:
        """Read the results of an earlier run and note that the run begins.

        Raises
        ------
        AnonflowError
            If the note cannot be written.
        """

    def place(self, run_plan: RunPlan, batch: Batch) -> Place:
        """Return the store of a batch's results for a task."""

    def arrived(self, run_plan: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Register the results that a task has stored."""

    def needs_workers(self, run_plan: RunPlan) -> bool:
        """Return whether completing a run needs tasks, and so waits until the workers have no other tasks."""

    def class_calls(self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """Return calls that each compute the part of some classes in measures, as :func:`anonflow.utility.class_sums` does."""

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return a run's result with the figures that need all rows in memory."""

    def draw(
        self, executor: Executor, plan: FlowPlan, totals: Totals, result: RunResult
    ) -> tuple[tuple[Finding, ...], DrawnRelease]:
        """Draw the release of a run, and verify it.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        VerificationError
            If the matches are not regular.
        AnonflowError
            If something cannot be drawn, or put aside.
        """
