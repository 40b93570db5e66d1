"""The units of the rows of a table in pieces: 8 bytes a row, held by the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonflow.engine.storage.arrays import write_array
from anonflow.errors import DataError
from anonflow.table import Schema
from anonflow.table.frame import check_units

__all__ = ["MOST_ROWS", "Units", "refuse_many_rows"]

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

    def write(self, path: str) -> str:
        """Write the label of each position, and below it the household's, for tasks that look at some of them.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        sides = [self.unit] if self.household is None else [self.unit, self.household]
        write_array(path, np.stack(sides))
        return path


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
