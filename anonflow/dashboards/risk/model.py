"""The model of the screen Risk: the owner's view of a table before anonymization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
import param

from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.workspace import Workspace
from anonflow.risk.before import RiskBefore, risk_before, smallest_sets
from anonflow.table import Table
from anonflow.table.identification.key_sets import MOST_SETS

RISKIEST = 20
"""Records that are listed."""

MOST_CELLS = 100_000_000
"""Records times sets of columns, at most: more would take tens of seconds on this screen."""


@dataclass(frozen=True, eq=False)
class PictureOfRisk:
    """The computed risk of a table."""

    risk: RiskBefore
    riskiest: pd.DataFrame
    """As :meth:`anonflow.table.identification.key_sets.KeySets.riskiest`."""
    smallest: list[list[tuple[str, ...]]]
    """Of the same records, the smallest sets of columns on which each is unique."""
    values: pd.DataFrame
    """Of the same records, their quasi-identifiers: the owner's."""


def set_sizes(columns: int, records: int) -> dict[int, int]:
    """For each m that this screen offers, how many sets of up to m columns there are."""
    offered: dict[int, int] = {}
    number = 0
    for m in range(1, columns + 1):
        number += math.comb(columns, m)
        if m > 1 and (number > MOST_SETS or number * records > MOST_CELLS):
            break
        offered[m] = number
    return offered


class RiskModel(ScreenModel):
    """The table of a workspace, as a reviewer looks at it.

    ``picture`` is of the table and the settings that it was computed for, until the next is there; ``stale`` says that it
    is of others.
    """

    most = param.Integer(default=3, bounds=(1, None), doc="m: the largest sets of columns.")
    fraction = param.Number(
        default=None,
        allow_None=True,
        doc="Sampling fraction n / N; None where it is not known, or weights say it.",
    )
    picture = param.Parameter(None, doc="PictureOfRisk, or None.")
    stale = param.Boolean(default=False)
    stopped = param.Boolean(default=False, doc="Whether the last picture was cancelled.")

    AT_ONCE = True

    def __init__(self, workspace: Workspace, **settings: Any) -> None:
        super().__init__(workspace, **settings)
        self._computed: tuple[Any, ...] | None = None
        self._changed()

    @property
    def table(self) -> Table | None:
        """The open table under the draft's columns; None if no table is open, or the columns cannot be used."""
        return self.workspace.data.table

    @property
    def weighted(self) -> bool:
        """Whether a column says for how many people of the population each record stands."""
        return self.table is not None and self.table.schema.weight_column is not None

    def sizes(self) -> dict[int, int]:
        """Return the m that are offered for this table: :func:`set_sizes`."""
        return {} if self.table is None else set_sizes(len(self.table.qi_columns), self.table.n)

    def draw(self) -> None:
        """Compute the picture aside, if that of the table and the settings is not there."""
        table, settings = self.table, self._settings()
        if table is None or settings == self._computed:
            return
        self._computed = settings
        most, fraction = settings[1], settings[2]

        def work() -> PictureOfRisk:
            risk = risk_before(table, most, fraction)
            riskiest = risk.sets.riskiest(RISKIEST)
            positions = riskiest["position"].tolist()
            values = table.frame[list(risk.columns)].iloc[positions].astype(object)
            return PictureOfRisk(
                risk,
                riskiest,
                smallest_sets(table, risk.sets, positions),
                values.where(values.notna(), ""),
            )

        self.compute(
            work,
            lambda picture: {"picture": picture, "stale": False},
            "counting the records that are unique on every combination of columns",
            stale=self.picture is not None,
            stopped=False,
        )

    def stop(self) -> None:
        """Cancel the picture that is being computed; the next call of :meth:`draw` begins anew."""
        self.background.cancel()
        self._computed = None
        self.stopped = True

    @property
    def is_current(self) -> bool:
        """Whether the picture is, or is becoming, that of the table and the settings."""
        return self.table is None or self._settings() == self._computed

    def _settings(self) -> tuple[Any, int, float | None]:
        most = min(self.most, max(self.sizes(), default=1))
        return self.table, most, None if self.weighted else self.fraction

    @param.depends("workspace.data.table", "most", "fraction", watch=True)
    def _changed(self) -> None:
        if self.table is None:
            self.background.forget()
            self._computed = None
            self.param.update(picture=None, busy=False, stale=False, problem="")
        else:
            self.stale = self.picture is not None and not self.is_current
