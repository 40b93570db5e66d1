"""The people of a release as the owner's folder keeps them: their marks, and whose each one's row may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from anonflow.candidate_lists import Candidates

_TRACKS = {"row_list": np.int32, "offsets": np.int64, "originals": np.int32}
_VALUES = "values-"


@dataclass(frozen=True, eq=False)
class ReleasedPeople:
    """The people of a release, and whose each one's row may be.

    Attributes
    ----------
    marks : numpy.ndarray, shape (n,), uint64
        Keyed marks of the people, ascending (:func:`anonflow.table.row_marks.unit_marks`).
    seal : str
        A keyed hash of the release's cells.
    when : str
        The time of the release, in ISO 8601.
    written : numpy.ndarray, shape (n,), uint8, or None
        How the numbers that identify people are written (:func:`anonflow.table.row_marks.unit_spellings`). None where it is not known, as an
        older version kept it.
    by : str
        The columns that identify people.
    k : int
    criterion : str
        The guarantee of its method.
    tracks : Candidates or None
        Row a of it is the published row with the other columns of person a; its candidates are positions in `marks`. Rows whose
        other columns are hidden have none. None where it is not known whose columns a row has, or marks repeat.
    values : mapping of str to numpy.ndarray, shape (n,), uint64
        Sensitive column -> keyed marks of the people's values.
    columns : mapping of str to bool
        Published column -> whether it is a quasi-identifier.
    after : tuple of str
        Seals of the releases that it goes on from.
    """

    marks: np.ndarray
    seal: str
    when: str = ""
    written: np.ndarray | None = None
    by: str = ""
    k: int = 0
    criterion: str = ""
    tracks: Candidates | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    columns: Mapping[str, bool] = field(default_factory=dict)
    after: tuple[str, ...] = ()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What its file holds: with its description, which is JSON, in `about`."""
        description: dict[str, Any] = {"version": 1, "when": self.when, "seal": self.seal}
        arrays = {"units": self.marks}
        if self.written is not None:
            arrays["written"] = self.written
        if self.tracks is not None:
            description |= {
                "by": self.by,
                "k": self.k,
                "criterion": self.criterion,
                "sensitive": [*self.values],
                "columns": dict(self.columns),
                "after": self.after,
            }
            arrays |= {name: getattr(self.tracks, name) for name in _TRACKS}
            arrays |= {f"{_VALUES}{number}": marks for number, marks in enumerate(self.values.values())}
        return {**arrays, "about": np.array(json.dumps(description))}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ReleasedPeople:
        """Return the people of a file.

        Raises
        ------
        ValueError, KeyError, TypeError
            If the file does not have what it should.
        """
        marks, description = arrays["units"], json.loads(str(arrays["about"]))
        if marks.dtype != np.uint64 or marks.ndim != 1 or not isinstance(description, dict):
            raise ValueError
        when = str(description.get("when", ""))
        if when:
            datetime.fromisoformat(when)
        written = arrays.get("written")
        if written is not None and (written.dtype != np.uint8 or written.shape != marks.shape):
            raise ValueError
        people = cls(marks, str(description["seal"]), when, written)
        if "criterion" not in description:
            return people
        parts = {name: arrays[name] for name in _TRACKS}  # once: each look into a file reads it
        tracks = Candidates(**parts)
        n = len(marks)
        if (
            any(parts[name].dtype != np.dtype(kind) for name, kind in _TRACKS.items())
            or not tracks.is_sound
            or tracks.rows != n
            or tracks.strangers(n).any()
            or (marks[1:] <= marks[:-1]).any()
            or not _lists_everybody(tracks)
        ):
            raise ValueError
        values = {
            str(name): arrays[f"{_VALUES}{number}"] for number, name in enumerate(description["sensitive"])
        }
        if any(
            column_marks.shape != (n,) or column_marks.dtype != np.uint64 for column_marks in values.values()
        ):
            raise ValueError
        return replace(
            people,
            by=str(description["by"]),
            k=int(description["k"]),
            criterion=str(description["criterion"]),
            tracks=tracks,
            values=values,
            columns={
                str(name): bool(generalized)
                for name, generalized in dict(description.get("columns", {})).items()
            },
            after=tuple(map(str, description.get("after", ()))),
        )


def _lists_everybody(tracks: Candidates) -> bool:
    """Return whether each row's list has the row's person, but for empty lists."""
    n, sizes = tracks.rows, np.diff(tracks.offsets)
    codes = np.repeat(np.arange(len(sizes)), sizes) * n + tracks.originals
    rows = np.flatnonzero(tracks.sizes > 0)
    diagonal = tracks.row_list[rows].astype(np.int64) * n + rows
    return bool(np.isin(diagonal, codes, assume_unique=True).all())
