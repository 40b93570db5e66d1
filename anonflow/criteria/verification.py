"""The result of a verification: which criteria hold, how many records fail, and where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from anonflow.drawing import grid, view
from anonflow.errors import ParameterError, VerificationError
from anonflow.hierarchy.wording import plural
from anonflow.table.forms.text_columns import text_array

POSITIONS = 20
"""At most this many positions of failing records are named."""


@dataclass(frozen=True)
class Finding:
    """The result for one criterion.

    Attributes
    ----------
    criterion : str
    holds : bool or None
        None if the check was not possible: neither held nor failed.
    failed : int
        Number of records that fail; 0 where the criterion holds.
    side : {"published", "original", ""}
        What the failing records are: rows of the release, or records of the table. "" if none fail.
    positions : tuple of int
        The first ``POSITIONS`` of them, counted from 0, ascending.
    detail : str
        How the criterion was checked, and the result: counts and column names, never a value.
    parameters : mapping
        The parameters of the criterion (k, l, t, column, ...).
    """

    criterion: str
    holds: bool | None
    failed: int = 0
    side: str = ""
    positions: tuple[int, ...] = ()
    detail: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        criterion: str,
        failing: np.ndarray,
        side: str,
        detail: str,
        parameters: Mapping[str, Any] | None = None,
        holds: bool | None = None,
    ) -> Finding:
        """Return the finding for a criterion; the records at the positions `failing` break it.

        Parameters
        ----------
        criterion : str
        failing : numpy.ndarray, integer, or bool of shape (n,)
            Positions, or a mask of them.
        side : {"published", "original"}
        detail : str
        parameters : mapping, optional
        holds : bool, optional
            By default whether no record fails.
        """
        places = np.flatnonzero(failing) if failing.dtype == bool else np.sort(failing)
        good = not len(places) if holds is None else holds
        return cls(
            criterion,
            good,
            0 if good else len(places),
            "" if good or not len(places) else side,
            () if good else tuple(places[:POSITIONS].tolist()),
            detail,
            dict(parameters or {}),
        )

    @property
    def verdict(self) -> str:
        """``holds``, ``FAILS`` or ``not checked``."""
        return "not checked" if self.holds is None else "holds" if self.holds else "FAILS"

    def sentence(self) -> str:
        """Return the answer in one line."""
        if self.holds is None:
            return f"{self.criterion}: not checked ({self.detail})"
        if self.holds:
            return f"{self.criterion}: holds" + (f" ({self.detail})" if self.detail else "")
        where = f"; {self.side} records at {_where(self)}" if self.positions else ""
        extent = f" for {plural(self.failed, 'record')}{where}" if self.failed else ""
        return f"{self.criterion}: fails{extent}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, repr=False)
class Verification:
    """The findings of :func:`anonflow.criteria.verify`; true only if every criterion holds.

    Attributes
    ----------
    findings : tuple of Finding
        One for each criterion, in the order of the request.
    records : int
        Number of originals.
    k : int or None
    remarks : tuple of str
        Remarks: what the data cannot show, and signs that a step was left out. They are not findings.
    """

    findings: tuple[Finding, ...]
    records: int
    k: int | None = None
    remarks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.findings) and all(finding.holds for finding in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, criterion: str) -> Finding:
        for finding in self.findings:
            if finding.criterion == criterion:
                return finding
        names = ", ".join(finding.criterion for finding in self.findings)
        raise ParameterError(f"criterion {criterion!r} was not checked; checked: {names}")

    def frame(self) -> pd.DataFrame:
        """Return the answers as a table.

        Returns
        -------
        pandas.DataFrame
            Columns criterion, holds (missing where it could not be checked), failed, side, positions (text, capped),
            detail; one row for each criterion.
        """
        holds: Any = [finding.holds for finding in self]

        return pd.DataFrame(
            {
                "criterion": text_array(finding.criterion for finding in self),
                "holds": pd.array(holds, dtype="boolean") if None in holds else np.array(holds, bool),
                "failed": np.array([finding.failed for finding in self], np.int64),
                "side": text_array(finding.side for finding in self),
                "positions": text_array(" ".join(map(str, f.positions)) for f in self),
                "detail": text_array(finding.detail for finding in self),
            }
        )

    def raise_if_failed(self) -> Verification:
        """Return this object if every criterion holds.

        Raises
        ------
        VerificationError
            If a criterion does not hold; the error has a line for each of these.
        """
        failed = [finding.sentence() for finding in self if not finding.holds]
        if failed:
            raise VerificationError.collected("the release does not keep what it promises", failed)
        return self

    def to_mapping(self) -> dict[str, Any]:
        """Return the answers as plain values."""
        checks = [
            {
                "criterion": finding.criterion,
                "parameters": {name: _json_parameter(value) for name, value in finding.parameters.items()},
                "holds": finding.holds,
                "failed": finding.failed,
                "side": finding.side,
                "positions": list(finding.positions),
                "detail": finding.detail,
            }
            for finding in self
        ]
        return {
            "holds": bool(self),
            "records": self.records,
            "k": self.k,
            "checks": checks,
            "remarks": list(self.remarks),
        }

    def to_json(self) -> str:
        """Return the answers as a JSON text."""
        return json.dumps(self.to_mapping(), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        verdict = "all hold" if self else "NOT all hold"
        lines = [f"  {finding.sentence()}" for finding in self]
        return "\n".join([f"{self._head()}: {verdict}", *lines, *(f"  {remark}" for remark in self.remarks)])

    def _head(self) -> str:
        return f"Verification of {plural(self.records, 'record')}" + (f", k = {self.k}" if self.k else "")

    def _repr_html_(self) -> str:
        head = self._head()
        if self:
            good = [(finding.criterion, "✓ holds", finding.detail) for finding in self]
            return view(f"{head}: all hold", grid(["criterion", "verdict", "how"], good))
        rows = [
            (
                finding.criterion,
                "✓ holds" if finding.holds else "not checked" if finding.holds is None else "✗ fails",
                str(finding.failed or ""),
                f"{finding.side}: {_where(finding)}" if finding.positions else "",
                finding.detail,
            )
            for finding in self
        ]
        header = ["criterion", "verdict", "records that fail", "where", "how"]
        return view(f"{head}: NOT all hold", grid(header, rows, numbers=[2]))


def _json_parameter(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else type(value).__name__


def _where(finding: Finding) -> str:
    """Return the positions of failing records as far as they are listed, such as ``3, 4, ...``."""
    ellipsis = ", ..." if finding.failed > len(finding.positions) else ""
    return f"{', '.join(map(str, finding.positions))}{ellipsis}"
