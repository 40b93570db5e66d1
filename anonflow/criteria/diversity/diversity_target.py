"""What a diversity criterion wants of a group of sensitive values, and how far a group is from it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from anonflow.errors import InfeasibleError
from anonflow.hierarchy import Hierarchy

SLACK = 1e-12
"""Tolerance for rounding of entropies and distances."""

SHORT = 1e-9
"""The smallest gap."""


@dataclass(frozen=True, eq=False)
class Target(ABC):
    """A diversity criterion on one column. Each criterion has its own class; it must say `lacking` and `best`.

    Attributes
    ----------
    criterion : str
    parameters : dict
        What the criterion needs.
    overall : numpy.ndarray, shape (V,), float64
        Share of each value in the whole table.
    numeric : bool
        Whether values are numbers, in whose order distances are measured; `overall` is in that order.
    tree : tuple of Hierarchy and numpy.ndarray, or None
        The hierarchy that the schema has for the column, along which distances are measured, and the leaf of each value.
    """

    criterion: str
    parameters: Mapping[str, float]
    overall: np.ndarray
    numeric: bool = False
    tree: tuple[Hierarchy, np.ndarray] | None = None

    of_shares: ClassVar[bool] = False
    """Whether it compares a group with the shares of the whole table."""

    of_presence: ClassVar[bool] = False
    """Whether it asks only which values a group has, not how often."""

    @abstractmethod
    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how much diversity groups lack, in the parameter's unit, and which keep the criterion: shape (g,) each.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), float64
            How often each value occurs in each group.
        size : numpy.ndarray, shape (g,), float64
            Their records, above 0.
        """

    @abstractmethod
    def best(self, counts: np.ndarray) -> str:
        """Return the strictest parameter that values occurring so often allow, such as ``l is 1.5``.

        Parameters
        ----------
        counts : numpy.ndarray, shape (V,), float64
            Above 0.
        """

    @property
    def distinct(self) -> int:
        """How many different values a diverse group has at least."""
        return max(1, math.ceil(self.parameters.get("l", 1.0) - SLACK))

    def surplus(self, counts: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return a lower bound of the records that groups must lose before the remaining ones keep the criterion: shape (g,)."""
        return np.ones(len(counts), np.int64)

    def helpful(self, counts: np.ndarray) -> np.ndarray:
        """Return the values of which one more lowers the gap of a group: shape (V,), bool; none if there are too many to try."""
        if len(counts) > _MOST_TRIED:
            return np.zeros(len(counts), bool)
        return self.gaps(counts + np.eye(len(counts))) < self.gaps(counts[None, :])[0] - 1e-15

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        """Return :meth:`unsafe` where the shares of the whole table keep the criterion; infinite where no bound is known."""
        return math.inf

    @classmethod
    def check_k(cls, column: str, values: int, k: int) -> None:
        """Refuse a column of so many values where classes of k can never keep the criterion.

        Raises
        ------
        ParameterError
            With what to do; only criteria that want every value in every class raise it.
        """
        return

    def gaps(self, counts: np.ndarray) -> np.ndarray:
        """Return how much diversity groups of values lack.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), float64 or int64
            How often each value occurs in each group.

        Returns
        -------
        numpy.ndarray, shape (g,), float64
            0 exactly where the criterion holds, and for groups without values; else the parameter less the group's
            own diversity (t-closeness: the other way round), at least 1e-9. O(g V log V).
        """
        size = counts.sum(axis=1)
        # an empty group lacks nothing, and must not be divided by
        filled = np.maximum(size, 1e-300)
        lacking, good = self.lacking(np.asarray(counts, np.float64), filled)
        return np.where(good | (size <= 0), 0.0, np.maximum(lacking, SHORT))

    def least_removed(self, counts: np.ndarray) -> np.ndarray:
        """Return the least number of records that groups must lose before the remaining ones keep the criterion.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), int64
            Groups that lack it.

        Returns
        -------
        numpy.ndarray, shape (g,), int64
            A lower bound, at least 1, at most the group's records: exact for p-sensitivity, l-diversity by frequency and
            (alpha, k)-anonymity, of which the most frequent value goes. O(g V).
        """
        size = counts.sum(axis=1)
        return np.clip(self.surplus(counts, size), 1, size)

    def unsafe(self, rows: int, risk: float) -> float:
        """Return how far independent rows, each with a value drawn with the whole table's shares, are from keeping the criterion.

        Parameters
        ----------
        rows : int
        risk : float
            The chance of failing that is to be kept.

        Returns
        -------
        float
            0 if the criterion holds but for that chance, else a positive number. O(V log V), p-sensitivity
            O(V^(p - 1)) while that is small.

        Notes
        -----
        p-sensitivity: all rows have one of some p - 1 values, or one of the p most frequent values is absent, added up.
        l-diversity: binomial tails, over all values. Others: every share within epsilon of its expectation
        (Hoeffding 1963), then the worst that this allows (entropy: Audenaert's inequality).
        """
        short = float(self.gaps(self.overall[None, :])[0])
        return short if short > 0 else self.by_chance(self.overall[self.overall > 0], rows, risk)

    def wanted(self, counts: np.ndarray) -> np.ndarray:
        """Return which values bring a group nearer to the criterion: those of which one more lowers the gap.

        Where none does, the values that the group lacks most. O(V^2 log V), for many values O(V log V).
        """
        counts = np.asarray(counts, np.float64)
        in_table = self.overall > 0
        value_mask: np.ndarray = in_table & self.helpful(counts)
        if not value_mask.any():
            surplus = counts / max(counts.sum(), 1e-300) - self.overall if self.of_shares else counts
            lack = np.where(in_table, surplus, np.inf)
            value_mask = lack <= lack.min() + 1e-12
        return value_mask

    def refuse(self, counts: np.ndarray, column: str, spare: int = 0) -> None:
        """Refuse a diversity that not even all records together have, also without a few of them.

        Parameters
        ----------
        counts : numpy.ndarray, shape (V,), int64
            How often each value occurs in the whole table.
        column : str
        spare : int, optional
            Records that may be suppressed without a class of their own.

        Raises
        ------
        InfeasibleError
            With the largest value that all records together allow.
        """
        whole = np.asarray(counts)[None, :]
        if not self.gaps(whole)[0] > 0 or self.least_removed(whole)[0] <= spare:
            return
        parameters = ", ".join(f"{name} = {value:g}" for name, value in self.parameters.items())
        raise InfeasibleError(
            f"{self.criterion} with {parameters} is more than column {column!r} of the whole table has; "
            f"the largest feasible {self.largest(counts)}"
        )

    def largest(self, counts: np.ndarray) -> str:
        """Return the largest parameter that all records together allow, such as ``l is 1.5``.

        Parameters
        ----------
        counts : numpy.ndarray, shape (V,)
            How often each value occurs in the whole table.
        """
        present = np.asarray(counts, np.float64)
        present = present[present > 0]
        return self.best(present) if len(present) else "value is none: it has no values"


_MOST_TRIED = 200
"""Of more different values it is not tried which lower the gap."""


def log_excess(chance: float, risk: float) -> float:
    """Return the log of how many times a chance is the risk that is to be kept; 0 where it is no larger."""
    return max(0.0, math.log(chance / risk)) if chance > 0 else 0.0


def more_than(count: np.ndarray | float, rows: int, share: np.ndarray) -> np.ndarray:
    """Return the chance that a value has more than so many of some independent rows."""
    # not scipy.stats, which takes 0.4 s to import
    return np.asarray(scipy.special.bdtrc(np.minimum(count, rows), rows, share))


def too_frequent(share: np.ndarray, rows: int, most: np.ndarray | float) -> float:
    """Return a bound of the chance that some value is on more than `most` of independent rows."""
    return float(more_than(np.floor(most * (1 + SLACK)), rows, share).sum())


def deviation(share: np.ndarray, rows: int, risk: float) -> float:
    """Return how far, but for the risk, the shares of independent rows are from their expectations at most (Hoeffding 1963)."""
    return math.sqrt(math.log(2 * max(len(share), 2) / risk) / (2 * rows))
