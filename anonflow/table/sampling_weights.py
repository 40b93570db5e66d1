"""Sampling weights: how many people of the population each record stands for (the role ``weight``)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy.wording import plural
from anonflow.table.forms.text_forms import other_form, texts_of
from anonflow.table.schema import Schema

_WRONG = (
    "missing or no number",
    "zero or negative",
    "below 1",
)
"""The problems of weights."""


@dataclass(frozen=True)
class WeightSummary:
    """A summary of the weights of some rows; summaries of a table's pieces can be added.

    Attributes
    ----------
    wrong : tuple of int
        How many weights are missing or no number, zero or negative, below 1.
    least, most : float
        Of those that are numbers; inf and -inf of none.
    """

    wrong: tuple[int, int, int] = (0, 0, 0)
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of(cls, weights: np.ndarray) -> WeightSummary:
        """Return that of some weights, shape (n,), float64, nan of what is no number. O(n)."""
        number = np.isfinite(weights)
        wrong = (~number, number & (weights <= 0), number & (weights > 0) & (weights < 1))
        counts = tuple(int(mask.sum()) for mask in wrong)
        return cls(
            (counts[0], counts[1], counts[2]),
            float(weights.min(initial=math.inf, where=number)),
            float(weights.max(initial=-math.inf, where=number)),
        )

    def then(self, other: WeightSummary) -> WeightSummary:
        """Return that of these rows and those that follow."""
        wrong = tuple(count + other_count for count, other_count in zip(self.wrong, other.wrong, strict=True))
        return WeightSummary(
            (wrong[0], wrong[1], wrong[2]), min(self.least, other.least), max(self.most, other.most)
        )

    @property
    def equal(self) -> bool:
        """Whether all are equal, as models of simple random samples need."""
        # weights that were computed, such as 10 / 3, differ in their last digits
        return self.most - self.least <= 1e-9 * abs(self.most)

    def check(self, name: str | None, cells: pd.Series | None = None) -> None:
        """Refuse weights of a column that cannot be used.

        Parameters
        ----------
        name : str or None
        cells : pandas.Series, optional
            The column, for the form of its numbers in the message.

        Raises
        ------
        DataError
            If one is no number, missing, zero, negative, or below 1.
        """
        for count, problem in zip(self.wrong, _WRONG, strict=True):
            if count:
                weights = plural(count, "weight", "are")
                distinct = None if cells is None or problem != _WRONG[0] else texts_of(cells)
                form = None if distinct is None else other_form(*distinct)
                advice = form or "a weight is the number of people that the record stands for: correct it"
                if problem == _WRONG[-1]:
                    advice += ", or of weights that were scaled choose the role insensitive"
                raise DataError(f"column {name!r}: {weights} {problem}; " + advice)


def weights_of(cells: pd.Series) -> np.ndarray:
    """Return cells as weights, shape (n,), float64: nan of what is no number."""
    return pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)


def checked_weights(schema: Schema, frame: pd.DataFrame) -> np.ndarray | None:
    """Return the weights of a frame's rows, shape (n,), float64; None where the schema has no column of that role, or it is absent.

    Raises
    ------
    DataError
        If a weight is not a number, missing, zero, negative, or below 1: a record stands at least for itself.
    """
    name = schema.weight_column
    if name is None or name not in frame.columns:
        return None
    weights = weights_of(frame[name])
    WeightSummary.of(weights).check(name, frame[name])
    return weights


def weights_of_owners(name: str | None, weights: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the weight of each person with several rows, shape (owners,), float64.

    Parameters
    ----------
    name : str
        The column.
    weights : numpy.ndarray, shape (n,), float64
    owner : numpy.ndarray, shape (n,), int64
        Whose each row is, 0.. without gaps.

    Raises
    ------
    DataError
        If rows of the same person have different weights.
    """
    unit_weights = np.zeros(int(owner.max(initial=-1)) + 1)
    unit_weights[owner] = weights
    torn = len(np.unique(owner[unit_weights[owner] != weights]))
    if torn:
        raise DataError(
            f"column {name!r}: {plural(torn, 'unit', 'have')} rows of different weights; give all rows of a unit the same weight"
        )
    return unit_weights


def sampling_fraction(weights: np.ndarray) -> float | None:
    """Return the fraction that equal weights say; None where weights are unequal.

    Parameters
    ----------
    weights : numpy.ndarray, shape (n,), float64
        How many people each record stands for, all positive.
    """
    return 1.0 / float(weights.mean()) if WeightSummary.of(weights).equal else None
