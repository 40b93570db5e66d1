"""The results of a flow or a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymize import Anonymization
from anonflow.criteria.guarantee import promises_one_in_k
from anonflow.criteria.verification import Finding
from anonflow.drawing import facts, grid, heading, note, or_dash, plots, view
from anonflow.engine.report.card import ReleaseCard
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.release import Release
from anonflow.risk import Answer

COLUMNS = ("algorithm", "k", "records", "gcp", "usefulness", "suppressed", "seconds", "checks")

BETTER = {"suppressed": "lower", "seconds": "lower"}
"""For columns that are not measures: which of two numbers is better."""


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of a column's cells: shares of all records.

    Attributes
    ----------
    column : str
    loss : float
        Mean NCP; NaN where it is not published.
    exact, whole : float
        Share of cells published as a single value, and of those published as ``*``.
    weight : float
        Of the column in every information loss.
    """

    column: str
    loss: float
    exact: float
    whole: float
    weight: float = 1.0

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of cells published as they were, generalized, and hidden."""
        return self.exact, max(0.0, 1.0 - self.exact - self.whole), self.whole


@dataclass(frozen=True, eq=False)
class RunResult:
    """One run of a flow.

    Attributes
    ----------
    number : int
    name : str
    algorithm : str
    guarantee : str
    k : int
    records : int
    measures : dict
        By name; `gcp` is always there.
    suppressed : int
    seconds : float
        Elapsed time of the method on each partition, added up: with several workers, more than the run takes.
    findings : tuple of Finding
        What was verified.
    columns : tuple of ColumnLoss
    published : tuple of ColumnLoss
        The same as figures that may be published: counted on the values that the published cells show. They tell nothing
        about a value that no cell shows, as figures on the domain of the originals do.
    sizes : tuple of (int, int)
        How many generalized records (second) cover, or share a class with, how many originals (first).
    spread : tuple of (int, int)
        How many generalized records (second) lose how many percent (first, rounded down).
    values : dict
        What the matrix set.
    problem : str or None
        Why there is no result.
    said : tuple of str
        Cost and promise of the step diversify, in this order.
    kind : {"matches", "classes", "none"}
        By what the method lists originals for its rows: which of them `sizes` counts.
    anonymization : Anonymization or None
        The owner's.
    without_pattern : int
        How many records are suppressed and follow no pattern.
    undrawn : tuple of str
        Criteria that were not checked: they need drawn rows, and this run is not drawn.
    over_budget : str
        That no method keeps its budget of seconds, and what was taken; empty where one is expected to, or there is no budget.
    """

    number: int
    name: str
    algorithm: str
    guarantee: str
    k: int
    records: int
    measures: dict[str, Any] = field(default_factory=dict)
    suppressed: int = 0
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    columns: tuple[ColumnLoss, ...] = ()
    published: tuple[ColumnLoss, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    spread: tuple[tuple[int, int], ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    said: tuple[str, ...] = ()
    kind: str = "none"
    anonymization: Anonymization | None = field(default=None, repr=False)
    without_pattern: int = 0
    undrawn: tuple[str, ...] = ()
    over_budget: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a result and every check passed."""
        return self.problem is None and all(finding.holds for finding in self.findings)

    @property
    def failing(self) -> int:
        """How many checks do not hold, or could not be made."""
        return sum(not finding.holds for finding in self.findings)

    def at_risk(self, before: int) -> int:
        """Return how many of the people at risk before are so after the run: nobody if its checks hold and it promises one in k."""
        return 0 if self.ok and promises_one_in_k(self.guarantee) else before

    @property
    def listed(self) -> bool:
        """Whether the method lists originals for its rows, as matches or classes."""
        return self.kind != "none"

    @property
    def promises(self) -> tuple[str, ...]:
        """The promise of the step diversify; its cost is on the domain of the originals, and is the owner's."""
        return self.said[-1:]

    @property
    def published_gcp(self) -> float | None:
        """The GCP that may be published: the mean over the columns whose loss may be published; None without any."""
        columns = [column for column in self.published if not np.isnan(column.loss)]
        weight = sum(column.weight for column in columns)
        return sum(column.weight * column.loss for column in columns) / weight if weight else None

    @property
    def checks(self) -> str:
        """Checks passed, of all: ``2/2``; or ``infeasible``."""
        if self.problem is not None:
            return "infeasible"
        return f"{sum(bool(finding.holds) for finding in self.findings)}/{len(self.findings)}"

    def row(self) -> dict[str, Any]:
        """Return the run as a row of the table of runs."""
        row = {
            "algorithm": self.algorithm,
            "k": self.k,
            "records": self.records,
            "gcp": self.measures.get("gcp", np.nan),
            "usefulness": self.measures.get("usefulness", np.nan),
            "suppressed": self.suppressed,
            "seconds": round(self.seconds, 6),
            "checks": self.checks,
        }
        measures = {key: value for key, value in self.measures.items() if key not in row}
        swept = {
            key.partition(".")[2]: value
            for key, value in self.values.items()
            if key not in ("anonymize.algorithm", "anonymize.k")
        }
        for key, value in (swept | measures).items():
            if isinstance(value, dict):
                row.update({f"{key}-{name}": number for name, number in value.items()})
            else:
                row[key] = value
        return row


@dataclass(frozen=True, eq=False)
class RunReport:
    """The result of :func:`anonflow.run`.

    Attributes
    ----------
    flow : str
        The flow's name.
    results : tuple of RunResult
        One for each run.
    release : Release or None
        The release of the run that the flow picks; None if there is none, or a check failed.
    published : tuple of pathlib.Path, or str where it is an address
        The files that were written to be published.
    owner : pathlib.Path or None
        The owner's folder.
    seconds : float
        Elapsed seconds of the whole run.
    warnings : tuple of str
        Warnings and remarks for the owner.
    attacks : pandas.DataFrame or None
        How often attackers win against the release, as :func:`anonflow.attack` says it; the owner's.
    card : ReleaseCard or None
        Promise, measured risk and the price of remedies, where a report is asked for.
    answers : tuple of Answer
        Answers to the three questions, with controls held out, if the report is for a reviewer.
    unanswered : str
        Why there are no answers.
    unchanged : str
        If the flow was released before and nothing has changed: when, a sentence. Then nothing was computed, `results` is empty,
        and `release` is None; the published files are those of the release.
    recorded : tuple of mapping
        Then the rows of the runs, as they were recorded.
    """

    flow: str
    results: tuple[RunResult, ...]
    release: Release | None = None
    published: tuple[Path | str, ...] = ()
    owner: Path | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    attacks: pd.DataFrame | None = field(default=None, repr=False)
    card: ReleaseCard | None = field(default=None, repr=False)
    answers: tuple[Answer, ...] = field(default=(), repr=False)
    unanswered: str = field(default="", repr=False)
    unchanged: str = ""
    recorded: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether every run has a result and every check passed."""
        return all(result.ok for result in self.results)

    def without_rows(self) -> RunReport:
        """Return the report of a run whose arrays are in files that are gone with it."""
        results = tuple(replace(result, anonymization=None) for result in self.results)
        return replace(self, results=results, release=None)

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each run: algorithm, k, records, gcp, usefulness, suppressed, seconds, checks, and more."""
        frame = pd.DataFrame(
            [dict(row) for row in self.recorded] or [result.row() for result in self.results]
        )
        first = [name for name in COLUMNS if name in frame.columns]
        return frame[[*first, *(name for name in frame.columns if name not in first)]]

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, a line each; never a cell's value."""
        lines = []
        for result in self.results:
            if result.problem is not None:
                lines.append(f"{result.name}: {result.problem}")
            lines += [
                f"{result.name}: {finding.sentence()}" for finding in result.findings if not finding.holds
            ]
        return tuple(lines)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the runs' numbers must be read with, a line each.

        Rows that follow no pattern, the loss and promise of diversity, and criteria that a run without a draw leaves open.
        """
        patterns = (
            f"{result.name}: {plural(result.without_pattern, 'row')} "
            + (
                "follows no pattern and is suppressed"
                if result.without_pattern == 1
                else "follow no pattern and are suppressed"
            )
            for result in self.results
            if result.without_pattern
        )
        return (
            *patterns,
            *(f"{result.name}: {'. '.join(result.said)}" for result in self.results if result.said),
            *(
                f"{result.name}: not drawn, so not checked for {', '.join(result.undrawn)}"
                for result in self.results
                if result.undrawn
            ),
        )

    def _verdict(self) -> str:
        """Return the verifier's result, always together with the attackers' results."""
        if self.unchanged:
            return self.unchanged
        verdict = "all checks passed" if self.ok else "NOT all checks passed"
        if self.card is None or self.card.ok:
            return verdict
        failing = len(self.card.failing)
        return f"{verdict}, but {plural(failing, 'line')} of the release card {verb_of(failing, 'fail')}"

    def __repr__(self) -> str:
        verdict = self._verdict()
        lines = [
            f"RunReport of {self.flow}: {plural(len(self.results), 'run')}, {verdict}, {self.seconds:.1f} s"
        ]
        lines.append(self.runs.to_string(index=False))
        lines += [f"  {line}" for line in (*self.problems, *self.remarks)]
        lines += [
            f"  {card_line.sentence()}" for card_line in (self.card.failing if self.card is not None else ())
        ]
        lines += [f"  published {path}" for path in self.published]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        runs = self.runs
        rows = [[_cell(value) for value in row] for row in runs.itertuples(index=False, name=None)]
        numbers = [at for at, name in enumerate(runs.columns) if name not in ("algorithm", "checks")]
        parts = [
            facts([("runs", len(self.results)), ("seconds", f"{self.seconds:.1f}")]),
            grid(list(runs.columns), rows, numbers),
        ]
        successes = [result for result in self.results if result.problem is None]
        if len(successes) == 1 and successes[0].columns:
            columns = successes[0].columns
            bars = plots.bars(
                [column.column for column in columns], [column.loss for column in columns], "Information loss"
            )
            parts += [heading("Information loss by column"), bars]
        elif len(successes) > 1:
            points = [
                (result.name, float(result.k), float(result.measures.get("gcp", np.nan)))
                for result in successes
            ]
            parts.append(plots.scatter(points, "Information loss against k", "k", "GCP"))
        parts += [note(line) for line in (*self.problems, *self.remarks)]
        parts += [
            note(f"Published: {path if isinstance(path, str) else path.name}") for path in self.published
        ]
        if self.card is not None:
            parts += [note(card_line.sentence()) for card_line in self.card.failing]
        verdict = self._verdict()
        return view(f"{self.flow}: {verdict}", *parts)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, float):
        return or_dash(value, ".4g")
    return f"{value:,}" if isinstance(value, int) else str(value)
