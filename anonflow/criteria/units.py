"""Units: whether the possible rows of a person belong to k people, where people have several rows."""

from __future__ import annotations

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.matching.concealment import match_edges
from anonflow.criteria.matching.graph import PEOPLE
from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural


def units(evidence: Evidence) -> Finding:
    """Return whether every row has k possible units, each with a probability of at most 1/k: "k units per row".

    Raises
    ------
    ParameterError
        If k is not known.
    DataError
        If the consistency graph is too large.

    Notes
    -----
    Where it is known which originals a row lists (the owner's certificate, classes, an anonymization), the share of the
    largest unit among them is at most 1/k; else k units are counted among the originals that it matches. It is a promise
    about rows, never k-anonymity of people: some row of a unit with m rows may be named with probability min(1, m/k).
    O(pairs of a row and an original).
    """
    k = evidence.need_k("units")
    unit = evidence.table.unit
    if unit is None:
        return Finding("units", None, detail="needs a column with the role unit", parameters={"k": k})
    row_mask = ~evidence.exempt
    shares = largest_shares(evidence, unit)
    if shares is None:
        units_of_row = _matching_units(evidence, unit)
        fewest = plural(int(units_of_row[row_mask].min(initial=evidence.n)), "unit")
        detail = f"each row may be the row of at least {fewest}, as far as the rows tell"
        return Finding.of("units", (units_of_row < k) & row_mask, "published", detail, {"k": k})
    most = float(shares[row_mask].max(initial=0.0))
    rows = int(np.bincount(unit).max())
    detail = (
        f"the largest unit has {most:.4g} of the originals that a row lists; a person with {plural(rows, 'row')} is named for some row with "
        f"probability {min(1.0, rows * most):.4g} at most"
    )
    return Finding.of("units", (shares > 1 / k + 1e-9) & row_mask, "published", detail, {"k": k})


def largest_shares(evidence: Evidence, unit: np.ndarray) -> np.ndarray | None:
    """Return the share of the largest unit among the originals that each row lists, shape (rows,); None without lists.

    Parameters
    ----------
    evidence : Evidence
    unit : numpy.ndarray, shape (n,), int64
    """
    listed = evidence.listing if evidence.lists is None else evidence.lists
    if listed is not None:
        sizes = np.diff(listed.offsets)  # rows of a class share one list: it is not written out for each
        lists = np.repeat(np.arange(len(sizes)), sizes)
        return _largest_unit_shares(lists, unit[listed.originals], len(sizes), sizes)[listed.row_list]
    if not evidence.own or not promises_classes(evidence.guarantee):
        return None
    labels = np.unique(evidence.classes, return_inverse=True)[1]
    sizes = np.bincount(labels)
    return _largest_unit_shares(labels, unit, len(sizes), sizes)[labels]


def _largest_unit_shares(row: np.ndarray, unit: np.ndarray, rows: int, sizes: np.ndarray) -> np.ndarray:
    units = int(unit.max(initial=0)) + 1
    pairs, times = np.unique(row.astype(np.int64) * units + unit, return_counts=True)
    most = np.zeros(rows)
    np.maximum.at(most, pairs // units, times)
    return most / np.maximum(sizes, 1)


def _matching_units(evidence: Evidence, unit: np.ndarray) -> np.ndarray:
    """Return the number of units among the originals on a perfect matching with each row, shape (rows,), int64."""
    matches = match_edges(evidence)
    graph = evidence.graph
    if matches is None:
        return np.zeros(evidence.published.n, np.int64)
    too_many = f"more than {PEOPLE:,} pairs of a row and a unit; verify a part of the table"
    return graph.only(matches).people(unit, too_many)[graph.published.label]


UNITS = Criterion(
    name="units",
    check=units,
    sentence="Every row may be the row of k units, none of them more probably than 1/k, where a unit has several rows.",
    adds_up=False,
    needs="everybody",
)
