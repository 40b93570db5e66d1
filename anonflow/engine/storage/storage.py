"""What a run needs of the place where its table lies; memory and disk are two answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from anonflow.criteria.verification import Finding
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Place, Shared
from anonflow.engine.execution.plan import BoundaryClasses, FlowPlan, Order, RunPlan
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.totals import Totals
from anonflow.engine.report.report import Described
from anonflow.table import Records
from anonflow.utility.measures import MeasureRequest

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.release import Release
    from anonflow.table.metadata import ReleaseMetadata

__all__ = ["DrawnRelease", "Storage"]


class DrawnRelease(Protocol):
    """A release that was drawn and verified, and is not yet written."""

    @property
    def release(self) -> Release | None:
        """The release, where it is in memory."""

    def attack(self) -> pd.DataFrame | None:
        """Return how often attackers win against it; None where nobody was asked to attack."""

    def remember(self) -> None:
        """Keep in the owner's folder whom the release is about.

        Raises
        ------
        DataError, AnonflowError
            If the folder cannot be read or written to.
        """

    def write_release(self, path: Path) -> ReleaseMetadata | None:
        """Write the published table, and say what its cells mean.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """

    def write_certificate(self, path: Path) -> None:
        """Write the owner's proof.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """


class Storage(Protocol):
    """Where the table of a flow lies while it is run, and where is put what is made of it.

    The runner asks it for rows, in an order, and gives it results; it alone knows where they lie.
    """

    def __enter__(self) -> Storage:
        """Make room for what is put here."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was put here for the run alone."""

    def load(self, executor: Executor) -> Described:
        """Look at the source: its records, domains and columns.

        Raises
        ------
        DataError, SchemaError, HierarchyError
            If it cannot be read, or does not go with its columns.
        """

    def sample(self) -> Records:
        """Return records with every value of the table: what measures and budgets look at beforehand."""

    def take(self, positions: np.ndarray) -> Records:
        """Return the records at some positions of the table, as many as fit in memory.

        Raises
        ------
        DataError
            If the source cannot be read, or has changed.
        """

    def refuse_early(self) -> None:
        """Refuse what not even the whole table has.

        Raises
        ------
        InfeasibleError, ParameterError
            If the flow asks for such a thing.
        """

    def boundary_classes(self) -> BoundaryClasses:
        """Return who may be generalized together."""

    def order(self, name: str, bounded: bool) -> Order:
        """Return the table in an order, boundary classes one after the other if so wanted."""

    def begin(self, plan: FlowPlan) -> None:
        """Find what an earlier run left: the work begins.

        Raises
        ------
        AnonflowError
            If it cannot be written down that it begins.
        """

    def place(self, run_plan: RunPlan, batch: Batch) -> Place:
        """Return where a task puts the results of a batch."""

    def arrived(self, run_plan: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Take the results that a task put there."""

    def needs_workers(self, run_plan: RunPlan) -> bool:
        """Return whether putting a run together takes tasks, and so waits until the workers have no other ones."""

    def diversified(self, executor: Executor, run_plan: RunPlan, totals: Totals, shared: Shared) -> Totals:
        """Return what a run adds up to once its results are diverse, where that takes tasks.

        Raises
        ------
        InfeasibleError
            If they cannot be.
        AnonflowError
            If results are gone, or cannot be put aside.
        """

    def class_calls(self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """Return calls that each give what some classes add to measures, as :func:`anonflow.utility.class_sums` does."""

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return a run's result with what is to be had only where all rows are at hand."""

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
