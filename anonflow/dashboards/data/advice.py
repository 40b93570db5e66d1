"""What the screen Data finds out when it is asked, or aside: the price of each way with blanks, and columns that lead to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import param

from anonflow.algorithms.anonymize import anonymize
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.draft import FIRST_METHOD, PARTITION
from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec
from anonflow.dashboards.session.screen_words import OPEN_FIRST
from anonflow.dashboards.session.validation import code
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.screen_work import Background
from anonflow.errors import AnonflowError
from anonflow.release.columns import told_by_dependence, told_by_values
from anonflow.table.domain import missing_cells
from anonflow.table.schema import MISSING_RULES

QUICK = 1_000
"""Records of the quick runs that price the ways with blanks."""


@dataclass(frozen=True)
class BlankPrices:
    """The ways with the blanks of a column, priced by quick runs on some of the records."""

    column: str
    blanks: int
    """Of the whole table."""
    losses: Mapping[str, float | None]
    """Way -> loss (GCP) of the quick run; None where it is impossible."""


class DataAdvice(ScreenModel):
    """Advice about the columns of a workspace's table that takes its time."""

    prices = param.Parameter(
        (), doc="BlankPrices of each quasi-identifier with blanks, once they were computed."
    )
    warnings = param.Parameter(
        (), doc="Sentences about columns that are published beside the quasi-identifiers."
    )

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self.reading = Background(workspace.turns, at_once=True)
        self._priced: Any = None
        self._table_changed()

    def price(self) -> None:
        """Price each way with the blanks of each quasi-identifier by quick runs, aside."""
        workspace = self.workspace
        frame, spec, source = workspace.data.frame, workspace.draft.spec, workspace.data.source
        if self.busy:
            return
        if frame is None:
            self.problem = OPEN_FIRST
            return
        self._priced = self._priced_of()
        folder = workspace.draft.folder

        def work() -> tuple[BlankPrices, ...]:
            sample = frame
            if len(frame) > QUICK:
                rows = np.random.default_rng(0).choice(len(frame), QUICK, replace=False)
                sample = frame.iloc[np.sort(rows)].reset_index(drop=True)
            blanks = {
                name: int(missing_cells(frame[name]).sum())
                for name, column in spec.columns.items()
                if column.role == "quasi-identifier" and column.kind in MISSING_RULES and name in frame
            }
            trials = [
                (name, way)
                for name, count in blanks.items()
                if count
                for way in ("value", "suppress", "drop")
                if way in MISSING_RULES[str(spec.columns[name].kind)]
            ]
            losses: dict[str, dict[str, float | None]] = {}
            for at, (name, way) in enumerate(trials):
                self.background.tell(f"{name}: {way}, run {at + 1} of {len(trials)}", at, len(trials))
                ways = {other: _way(spec.columns[other]) for other, count in blanks.items() if count} | {
                    name: way
                }
                loss = _quick_loss(sample, with_ways(spec, ways), partial(code, folder=folder, source=source))
                losses.setdefault(name, {})[way] = loss
            return tuple(BlankPrices(name, blanks[name], of_ways) for name, of_ways in losses.items())

        self.compute(work, lambda prices: {"prices": prices}, "trying the ways", prices=())

    def _priced_of(self) -> Any:
        """Return what prices belong to: the table, and the columns without what they do with blanks."""
        columns = self.workspace.draft.spec.columns
        return self.workspace.data.frame, {
            name: column.model_copy(update={"missing": None}) for name, column in columns.items()
        }

    @param.depends("workspace.data.frame", "workspace.draft.spec", watch=True)
    def _columns_changed(self) -> None:
        now = self._priced_of()
        if self._priced is not None and (now[0] is not self._priced[0] or now[1] != self._priced[1]):
            self.background.forget()
            self._priced = None
            self.param.update(prices=(), busy=False, problem="")

    @param.depends("workspace.data.table", watch=True)
    def _table_changed(self) -> None:
        """Look, aside, for columns beside the quasi-identifiers that lead to them."""
        table = self.workspace.data.table
        self.reading.forget()
        self.warnings = ()
        if table is not None:
            self.reading.of_records(
                len(table.frame) * max(1, len(table.other_columns)),
                lambda: (*told_by_dependence(table), *told_by_values(table)),
                lambda warnings: self.param.update(warnings=warnings),
                lambda problem: None,
            )


def with_ways(spec: DraftSpec, ways: Mapping[str, str]) -> DraftSpec:
    """Return a flow with other ways with the blanks of some columns."""
    return spec.with_columns(
        {name: spec.columns[name].model_copy(update={"missing": way}) for name, way in ways.items()}
    )


def _way(column: ColumnSpec) -> str:
    """Return what a column does with blanks; where they are refused, what most kinds can do."""
    rules = MISSING_RULES[str(column.kind)]
    rule = column.missing or rules[0]
    return rule if rule != "refuse" else "value" if "value" in rules else "drop"


def _quick_loss(sample: Any, spec: DraftSpec, coded: Any) -> float | None:
    table, _ = coded(sample, spec)
    if table is None:
        return None
    try:
        k = max(2, min(spec.ks[0], table.n // 3))
        return anonymize(table, FIRST_METHOD, k=k, partition_size=max(PARTITION, k), seed=0).loss("gcp")
    except AnonflowError:
        return None
