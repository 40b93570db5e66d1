"""Risk before anonymization: unique records in the originals, and the columns that make them unique, as a reviewer asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anonflow.risk.attacker import THRESHOLD
from anonflow.risk.attackers.population import PopulationRisk, population_risk
from anonflow.table import Table
from anonflow.table.identification.key_sets import KeySets, key_sets
from anonflow.table.identification.uniqueness import at_least_one, class_labels


@dataclass(frozen=True)
class Owners:
    """The owners of rows: people with several rows each, or households.

    Attributes
    ----------
    number : int
    most_rows : int
        Of the one with most.
    alone : int
        How many have a row that no other row equals.
    average, highest : float
        The probability that an attacker who knows all of an owner's rows names one of them correctly.
    """

    number: int
    most_rows: int
    alone: int
    average: float
    highest: float

    @classmethod
    def of(cls, labels: np.ndarray, owner: np.ndarray) -> Owners:
        """Compute the figures from the class of each row and the labels 0.. of the rows' owners."""
        sizes = np.bincount(labels, minlength=1)[labels]
        chance = at_least_one(1.0 / sizes, owner, group=labels)
        alone = int((np.bincount(owner, sizes == 1) > 0).sum())
        return cls(
            len(chance), int(np.bincount(owner).max()), alone, float(chance.mean()), float(chance.max())
        )


@dataclass(frozen=True, eq=False, repr=False)
class RiskBefore:
    """The risk of a table before anonymization; see :func:`risk_before`.

    Attributes
    ----------
    columns : tuple of str
        The quasi-identifiers.
    sizes : numpy.ndarray, shape (n,), int64
        How many records equal each record on all of them, itself included.
    sets : KeySets
        Every set of up to m of them.
    people, households : Owners or None
        Where the schema has units and households.
    population : PopulationRisk or None
        Where a sampling fraction or a weight is there.
    """

    columns: tuple[str, ...]
    sizes: np.ndarray
    sets: KeySets
    people: Owners | None
    households: Owners | None
    population: PopulationRisk | None

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.sizes)

    @property
    def unique(self) -> int:
        """Records that no other equals on all quasi-identifiers."""
        return int((self.sizes == 1).sum())

    @property
    def special(self) -> int:
        """Special uniques: records that are unique on a set of at most m columns already."""
        return int((self.sets.counts > 0).sum())

    @property
    def average(self) -> float:
        """The mean of 1 / class size: the marketer's risk."""
        return float((1.0 / self.sizes).mean()) if self.records else 0.0

    def above(self, threshold: float = THRESHOLD) -> int:
        """Return records whose 1 / class size is greater than a threshold."""
        # equal to the threshold, but for rounding, is not above it
        return int((1.0 / self.sizes > threshold + 1e-12).sum())

    def unique_by_size(self) -> list[tuple[int, int]]:
        """Return for s = 1 ... m the records that are unique on some set of at most s columns."""
        least = self.sets.least
        return [(s, int(((least > 0) & (least <= s)).sum())) for s in range(1, self.sets.most + 1)]


def risk_before(table: Table, most: int = 3, fraction: float | None = None) -> RiskBefore:
    """Return sample uniques, special uniques, people, households and population uniques of a table before anonymization.

    Parameters
    ----------
    table : Table
        n records.
    most : int
        m, at least 1: the largest sets of columns.
    fraction : float, optional
        n / N of a simple random sample, above 0 and at most 1; without it the column of the role ``weight``, if there is one.

    Returns
    -------
    RiskBefore

    Raises
    ------
    ParameterError
        As :func:`anonflow.table.identification.key_sets.key_sets` and :func:`anonflow.risk.attackers.population.population_risk`.
    DataError
        If a weight cannot be one.

    Notes
    -----
    O(sets n), and the fits of the population's models.
    """
    columns = table.qi_columns
    labels = class_labels(table.frame, columns)
    sizes: np.ndarray = np.bincount(labels, minlength=1)[labels]
    sampled = fraction is not None or table.schema.weight_column is not None
    people, households = (
        None if owner is None else Owners.of(labels, owner) for owner in (table.unit, table.household)
    )
    return RiskBefore(
        columns,
        sizes,
        key_sets(table.frame, columns, most),
        people,
        households,
        population_risk(table, fraction=fraction) if sampled else None,
    )


def smallest_sets(table: Table, sets: KeySets, positions: Sequence[int]) -> list[list[tuple[str, ...]]]:
    """Return the smallest sets of columns on which records are unique, all of each record's least size.

    Parameters
    ----------
    table : Table
    sets : KeySets
        Of this table.
    positions : sequence of int
        Few records: each takes O(n q), and O(sets) on the records that are nearly equal.
    """
    codes = np.stack([pd.factorize(table.frame[name], use_na_sentinel=False)[0] for name in sets.columns])
    smallest = []
    for position in positions:
        size = int(sets.least[position])
        equal = codes == codes[:, position, None]
        near = equal[:, equal.sum(axis=0) >= size]  # the others differ on every set of this size
        alone = [
            subset
            for subset in sets.sets
            if len(subset) == size and near[list(subset)].all(axis=0).sum() == 1
        ]
        smallest.append([tuple(sets.columns[a] for a in subset) for subset in alone] if size else [])
    return smallest
