"""Quasi-identifiers drawn from the published cells: figures that are counted on them tell nothing that no cell shows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymize import Anonymization
from anonflow.errors import ParameterError
from anonflow.table import Domain, Table
from anonflow.table.published.published_cells import quoted_value

BLOCK = 4096
"""Sets that are looked at together."""


def with_drawn_values(anonymization: Anonymization, rng: np.random.Generator) -> Anonymization:
    """Return an anonymization of people whose quasi-identifiers are drawn from their own published cells.

    Parameters
    ----------
    anonymization : Anonymization
        Of n people.
    rng : numpy.random.Generator

    Returns
    -------
    Anonymization
        Of a table of its own: a number is drawn evenly between the ends of its range, as finely as they are written; a
        category or a date among those that some cell shows; a leaf below its node. ``*`` stands for all of these. O(nq).

    Raises
    ------
    ParameterError
        If values that no cell shows decide about the cells of a column (:attr:`Domain.values_decide`).
    """
    table, generalization = anonymization.table, anonymization.generalization
    without = [domain.column for domain in table.domains if domain.values_decide]
    if without:
        raise ParameterError(
            f"values that no published cell shows decide about {', '.join(dict.fromkeys(without))}, so no people can be "
            "drawn from the cells; for a hierarchy, write its leaves into a file"
        )
    hidden = generalization.hidden() | anonymization.suppressed
    layout = generalization.layout
    columns: dict[str, list[Any]] = {}
    drawn: Any
    for a, domain in enumerate(table.domains):
        if domain.shape == "set":
            words = np.ascontiguousarray(generalization.bits[layout.words[a]].T)
            flags = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").T[: domain.size] > 0
            drawn = _labels(domain, _drawn_members(flags, hidden[a], rng))
        else:
            t = layout.row_of_range[a]
            lo, hi = generalization.lo[t], generalization.hi[t]
            ends = np.unique(np.concatenate([lo[~hidden[a]], hi[~hidden[a]]]))
            if domain.kind == "numeric" and domain.dates is None:
                drawn = _drawn_numbers(domain, lo, hi, hidden[a], ends, rng)
            else:
                if domain.kind == "hierarchy":  # all its leaves are public, but not whether a blank is there
                    leaves = np.flatnonzero(
                        domain.has_value & np.array([label != "" for label in domain.labels])
                    )
                    ends = np.union1d(ends[domain.has_value[ends]], leaves)
                drawn = _labels(domain, _drawn_codes(lo, hi, hidden[a], ends, rng))
        columns.setdefault(domain.column, []).append(drawn)
    cells = {
        name: parts[0] if len(parts) == 1 else _joined_positions(parts) for name, parts in columns.items()
    }
    frame = pd.concat([table.identifiers, table.frame.assign(**cells)], axis=1)
    return replace(anonymization, table=Table(frame, table.schema))


def _drawn_members(flags: np.ndarray, hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a member of each set, (D, n) flags, that is not hidden, and for the others one of any set; -1 without any."""
    codes = np.full(len(hidden), -1, np.int64)
    visible = np.asarray(flags[:, ~hidden].any(axis=1))
    for start in range(0, len(hidden), BLOCK):
        rows = slice(start, start + BLOCK)
        weights = np.where(hidden[rows], visible[:, None], flags[:, rows])
        place = (rng.random(weights.shape[1]) * weights.sum(axis=0)).astype(np.int64)
        code = (weights.cumsum(axis=0, dtype=np.int32) > place).argmax(axis=0)
        codes[rows] = np.where(weights.any(axis=0), code, -1)
    return codes


def _drawn_codes(
    lo: np.ndarray, hi: np.ndarray, hidden: np.ndarray, visible: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return one of the visible codes, ascending, in each run, and for hidden ones any of them; -1 without any."""
    start = np.where(hidden, 0, np.searchsorted(visible, lo))
    stop = np.where(hidden, len(visible), np.searchsorted(visible, hi, side="right"))
    place = start + (rng.random(len(lo)) * (stop - start)).astype(np.int64)
    return np.append(visible, -1)[np.where(stop > start, place, len(visible))]


def _labels(domain: Domain, codes: np.ndarray) -> list[str | None]:
    """Return the values of some codes; a character for one that no cell shows."""
    plain = [quoted_value(label) if label else None for label in domain.labels]
    if domain.kind == "positions":
        plain = list(domain.labels)
    return ["0" if code < 0 else plain[code] for code in codes.tolist()]


def _drawn_numbers(
    domain: Domain,
    lo: np.ndarray,
    hi: np.ndarray,
    hidden: np.ndarray,
    ends: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a number for each record between the ends of its cell, as finely as the published ends are written."""
    points = domain.points
    least, most = (points[ends[0]], points[ends[-1]]) if len(ends) else (0.0, 0.0)
    low, high = np.where(hidden, least, points[lo]), np.where(hidden, most, points[hi])
    written = [Decimal(domain.labels[end]).as_tuple().exponent for end in ends.tolist()]
    decimals = max(0, -min((int(exponent) for exponent in written), default=0))
    number = np.round(low + rng.random(len(lo)) * (high - low), min(decimals, 15))
    number = np.clip(number, low, high)
    whole = decimals == 0 and bool((np.abs(number) < 2.0**53).all())
    return number.astype(np.int64) if whole else number


def _joined_positions(parts: list[list[str | None]]) -> list[str]:
    return ["".join(map(str, characters)) for characters in zip(*parts, strict=True)]
