"""The units of the rows of a table in pieces, and layers with at most one row of each unit: 8 bytes a row, held by the client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonflow.engine.storage.external_sort import POSITION, Ordered
from anonflow.engine.storage.spill import as_numpy, read_batch
from anonflow.errors import DataError
from anonflow.partition import unit_layers
from anonflow.system import open_descriptor
from anonflow.table import Schema
from anonflow.table.frame import check_units
from anonflow.table.records import equal_columns

__all__ = ["MOST_ROWS", "Units", "put", "refuse_many_rows"]

MOST_ROWS = 50_000_000
"""The most rows of people with several rows: their assignment to layers takes about 100 bytes for each row for a while."""


@dataclass(frozen=True, eq=False)
class Units:
    """The unit of each row.

    Attributes
    ----------
    unit : numpy.ndarray, shape (n,), int64
        Labels 0.. .
    household : numpy.ndarray, shape (n,), int64, or None
    """

    unit: np.ndarray
    household: np.ndarray | None

    @classmethod
    def of_hashes(
        cls, schema: Schema, names: Sequence[str], parts: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> Units:
        """Combine the hashes of the pieces, in their order (:func:`anonflow.engine.storage.scan.units_of`).

        `names` are the columns of units and, if the schema has them, of households.

        Raises
        ------
        DataError
            If there are too many rows, a row has no unit or household, or a unit has several households.
        """
        refuse_many_rows(names[0], sum(hashes.shape[1] for hashes, _ in parts))
        labels = []
        for t in range(len(parts[0][0])):
            hashes = np.concatenate([part[0][t] for part in parts])
            blank = np.concatenate([part[1][t] for part in parts])
            labels.append(np.where(blank, -1, np.unique(hashes, return_inverse=True)[1]))
        return cls.checked(schema, labels[0], labels[1] if len(labels) > 1 else None)

    @classmethod
    def checked(cls, schema: Schema, unit: np.ndarray, household: np.ndarray | None) -> Units:
        """Return the same of labels, -1 for a blank.

        Raises
        ------
        DataError
            If a row has no unit or household, or a unit has several households.
        """
        check_units(schema, unit, household)
        return cls(unit.astype(np.int64), household)

    @cached_property
    def most(self) -> int:
        """Rows of the unit that has most of them."""
        return int(np.bincount(self.unit).max())

    def write(self, path: str) -> str:
        """Write the label of each position, and below it the household's, for tasks that look at some of them.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        sides = [self.unit] if self.household is None else [self.unit, self.household]
        return put(np.stack(sides), path)

    def layers(self, order: Ordered, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the layer of each position, and how many rows each class's layers have, class after class.

        Parameters
        ----------
        order : Ordered
            Lexicographic, boundary classes one after the other.
        sizes : numpy.ndarray, shape (c,), int64
            Of these classes.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        position = np.concatenate([as_numpy(read_batch(file).column(POSITION)) for file in order.files])
        place, within = np.empty_like(position), np.empty_like(position)
        place[position] = np.arange(len(position))
        within[position] = np.repeat(np.arange(len(sizes)), sizes)
        layers = unit_layers(place, self.unit, within)
        return layers, np.bincount(equal_columns([within, layers], len(layers)))


def refuse_many_rows(unit: str, rows: int) -> None:
    """Refuse more rows with units than the client can hold.

    Raises
    ------
    DataError
        If they are too many.
    """
    if rows > MOST_ROWS:
        raise DataError(
            f"column {unit!r}: the table has {rows:,} rows, and anonflow keeps the units of {MOST_ROWS:,} at most; "
            "make one row of each unit first, and leave out the role"
        )


def put(labels: np.ndarray, path: str) -> str:
    """Write an array over all positions, readable by the owner only, for tasks that read a part of it.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with os.fdopen(open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        np.save(stream, labels)
    return path
