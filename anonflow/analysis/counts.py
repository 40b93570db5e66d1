"""How many rows of a release meet a condition: certainly, possibly, and in expectation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.analysis.candidates import CandidateColumn, CandidateTable
from anonflow.analysis.certain import rows_meeting, values_meeting
from anonflow.analysis.conditions import ColumnCondition, conditions
from anonflow.analysis.mixture import Model
from anonflow.analysis.plausible_tables import default_classes
from anonflow.errors import AnonflowWarning
from anonflow.table import Schema


@dataclass(frozen=True)
class Count:
    """How many originals meet a condition.

    Attributes
    ----------
    rows : int
        Rows of the release.
    certain, possible : int
        Rows that certainly meet it, and rows that may meet it: the truth is between the two.
    uniform : float
        The expected number if every value that a cell covers is equally likely.
    fitted : float
        The expected number under the model that is fitted to the release by EM (:func:`anonflow.plausible`).
        Both are NaN if a column is hidden throughout.
    """

    rows: int
    certain: int
    possible: int
    uniform: float
    fitted: float

    def frame(self) -> pd.DataFrame:
        """Return counts and shares, a row for each of certain, possible, uniform and fitted."""
        names = ["certain", "possible", "uniform", "fitted"]
        counts = np.array([getattr(self, name) for name in names], np.float64)
        return pd.DataFrame({"count": counts, "share": counts / self.rows}, index=names)


def count(
    release: Any,
    where: Mapping[str, Any],
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    k: int | None = None,
    classes: int | None = None,
    seed: int = 0,
) -> Count:
    """Return how many originals meet a condition, with bounds.

    Parameters
    ----------
    release : Release or pandas.DataFrame
        n published rows.
    where : mapping
        Column -> a value, a list of values, or a range of numbers: ``{"from": 30, "to": 39}`` or a pair ``(30, 39)``,
        both ends included. All must hold.
    schema, k, classes
        As :func:`anonflow.plausible` takes them.
    seed : int
        Seed for the start of the EM algorithm.

    Returns
    -------
    Count
        With a warning that names the column, if no cell names a value that meets a condition: it may be written in another way.

    Raises
    ------
    ParameterError
        If a column is not there, or a condition cannot be read.
    DataError
        If a column of the release cannot be read.

    Notes
    -----
    The bounds hold for every release whose rows cover their originals: ``*`` may be any value, also one that no cell
    names, unless the release or the schema says which values there are; a hidden position may be any character. A label of a
    hierarchy that is not public may be any value; give the schema with the hierarchy. The expected numbers count such labels
    as they are. For them a range of whole numbers is spread evenly over the whole numbers in it, any other over its width,
    and ``*`` over what the other cells name; of a column
    that is ``*`` throughout they are NaN. O(60 n c H) for c columns and H latent classes.

    Examples
    --------
    >>> import pandas as pd
    >>> twenties = count(pd.DataFrame({"age": ["20-29", "25", "30-39", "20-39"]}), {"age": (20, 29)})
    >>> twenties.certain, twenties.possible, twenties.uniform
    (2, 3, 2.5)
    """
    candidates = CandidateTable.of(release, schema, k)
    required = conditions(where, candidates.names)
    n = candidates.n
    certain, possible, uniform = np.ones(n, bool), np.ones(n, bool), np.ones(n)
    likely = np.ones(n, bool)  # rows that count in expectation: a label is only itself
    for condition in required:
        column = candidates[condition.column]
        all_of, some_of, share = rows_meeting(column, condition)
        if not share.any():  # a hidden cell may be any value, also one that is misspelt
            warnings.warn(
                f"condition on {condition.column!r}: no cell of the release names such a value; look how they are written",
                AnonflowWarning,
                stacklevel=2,
            )
        certain &= all_of
        possible &= some_of
        uniform *= share
        likely &= all_of if column.exact else some_of
    fitted = _fitted(candidates, required, likely, classes, seed)
    return Count(n, int(certain.sum()), int(possible.sum()), float(uniform.sum()), fitted)


def _share_of_candidates(column: CandidateColumn, condition: ColumnCondition) -> np.ndarray:
    """Return the share of each candidate value that meets the condition, shape (D,): 0 or 1 unless it is an interval."""
    if not column.numeric:
        return values_meeting(column, condition).astype(np.float64)
    codes = np.array([code in (condition.values or ()) for code in column.codes], np.float64)
    points, edges = np.asarray(column.points), np.asarray(column.edges)
    met = np.concatenate([[0], np.cumsum(condition.inside(points, column.dates))])
    at = np.searchsorted(points, edges, side="left")
    points_of_candidate = np.diff(at)
    return np.concatenate(
        [
            np.divide(
                np.diff(met[at]),
                points_of_candidate,
                out=np.zeros(len(points_of_candidate)),
                where=points_of_candidate > 0,
            ),
            codes,
        ]
    )


def _fitted(
    candidates: CandidateTable,
    query: tuple[ColumnCondition, ...],
    likely_rows: np.ndarray,
    classes: int | None,
    seed: int,
) -> float:
    if any(candidates[condition.column].whole.all() for condition in query):
        return float("nan")
    general = [condition for condition in query if not candidates[condition.column].exact]
    rows = np.flatnonzero(likely_rows)
    if not general or not len(rows):
        return float(len(rows))
    model = Model(candidates, default_classes(candidates.n) if classes is None else classes)
    mixture = model.fit(np.random.default_rng(seed))
    likely = model.classes_of(mixture)[rows]
    for condition in general:
        place = candidates.names.index(condition.column)
        column = candidates.columns[place]
        share = model.expected(mixture, place, _share_of_candidates(column, condition))
        certain, touches, _ = rows_meeting(column, condition)
        chance = share[column.at[rows]]
        chance[certain[rows]] = 1.0  # where intervals of numbers are coarser than the condition
        chance[~touches[rows]] = 0.0
        likely = likely * chance
    return float(likely.sum())
