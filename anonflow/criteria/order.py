"""Remarks about a file's order: a file does not show whether it was drawn, but it shows some steps that were left out."""

from __future__ import annotations

import math

import numpy as np

from anonflow.criteria.evidence import Evidence
from anonflow.errors import DataError

DRAWS = 999  # with the order that is judged they are 1,000
SUSPICIOUS = 1e-6
"""A chance below this causes a remark."""

_ROWS = 500
"""Number of rows that are examined, evenly over the file."""

_UNREADABLE = (
    "whether the rows were drawn and shuffled cannot be read off a file: a table that shows everybody's own values may "
    "pass every criterion"
)


def order_remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return remarks about the order of a release's rows, compared with random orders and draws.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    tuple of str
        Empty for an anonymization, whose rows are in the table's order, and without other published columns.

    Notes
    -----
    Counts, each against 999 random ones, p = (1 + #{T_r >= T}) / 1000:

    - rows that cover the original at their own position, or at that position from the end, against rows in random
      order. Where none of 999 reaches T, the chance is said by Chernoff's bound (:func:`chance`).
    - where the order is kept: rows that show that original's own other values, against draws of one covered original
      for each row. Rows are drawn independently here, not along one assignment. For rows in another order, only an
      attacker who runs the method again knows the record behind each (:func:`anonflow.risk.own_rows_test`).

    A remark, never a reason to draw again: that would bias the draw. O(999 r q) time for r of at most 500 rows.
    """
    if evidence.frame is None or evidence.own:
        return ()
    remarks = [_UNREADABLE]
    # the same draws each time: a file that is verified again gets the same remarks
    rng = np.random.default_rng(evidence.n)
    rows = np.unique(np.linspace(0, evidence.n - 1, min(evidence.n, _ROWS)).astype(np.int64))
    exempt = evidence.blank if evidence.k is None else evidence.exempt  # without k, every blank row may be
    rows = rows[~exempt[rows]]
    if not len(rows):
        return tuple(remarks)
    others = rng.integers(evidence.n, size=DRAWS * len(rows))
    covers = evidence.published.covers_records
    drawn = covers(np.tile(rows, DRAWS), evidence.records.take(others)).reshape(DRAWS, len(rows)).sum(axis=1)
    looks = [
        # doubled: the smaller of two chances is taken (Bonferroni)
        (2 * chance(int(covers(rows, evidence.records.take(records)).sum()), drawn.tolist()), how, records)
        for records, how in ((rows, "in"), (evidence.n - 1 - rows, "against"))
    ]
    p, how, records = min(looks, key=lambda look: look[0])
    if p >= SUSPICIOUS:
        return tuple(remarks)
    remarks.append(
        f"the rows stand {how} the original table's order (by chance: p = {p:.1g}); shuffle them, because the "
        "place of a row identifies its person"
    )
    try:
        p_of_values = _own_values(evidence, rows, records, rng)
    except DataError as error:  # too many pairs of a row and a person
        remarks.append(f"whether rows show their own records' values was not tested: {error.message}")
        return tuple(remarks)
    if p_of_values is not None and p_of_values < SUSPICIOUS:
        remarks.append(
            f"rows show their own records' values more often than a draw would (p = {p_of_values:.1g}); release() draws them"
        )
    return tuple(remarks)


def chance(count: int, drawn: list[int]) -> float:
    """Return the chance of a count as high as this one, from counts of random ones.

    Notes
    -----
    ``(1 + #{drawn >= count}) / (1 + draws)``; below the least that this can be, Chernoff's bound
    ``exp((T - m - T log(T / m)) / d)`` for a sum of independent events with mean m, here that of the random ones. Along an
    assignment events come together: d is how many times their variance exceeds that of independent ones, at least 1.
    """
    p = (1 + sum(statistic >= count for statistic in drawn)) / (1 + len(drawn))
    # none in all draws only says that fewer than one is expected in them
    mean = max(float(np.mean(drawn)), 1 / len(drawn))
    if p > 1 / (1 + len(drawn)) or count <= mean:
        return p
    together = max(1.0, float(np.var(drawn)) / mean)
    return min(p, math.exp((count - mean - count * math.log(count / mean)) / together))


def _own_values(
    evidence: Evidence, rows: np.ndarray, records: np.ndarray, rng: np.random.Generator
) -> float | None:
    """Return the chance that so many rows show the values of these records; None where no other column is published.

    Raises
    ------
    DataError
        If the consistency graph is too large.
    """
    rest = evidence.rest
    if rest is None:
        return None
    graph = evidence.graph
    original, published = rest
    boxes, people = graph.published, graph.originals
    mass = np.bincount(people.label, minlength=people.size).astype(float)
    hits = original[records] == published[rows]
    share = np.empty(len(rows))
    by_person = np.argsort(people.label, kind="stable")
    first = np.concatenate([[0], np.cumsum(people.count)])
    for at, (row, record) in enumerate(zip(rows.tolist(), records.tolist(), strict=True)):
        box = int(boxes.label[row])
        ends = graph.end[graph.start[box] : graph.start[box + 1]]
        members = np.concatenate(
            [by_person[first[u] : first[u + 1]] for u in ends.tolist()] or [np.empty(0, int)]
        )
        share[at] = (original[members] == original[record]).sum() / max(mass[ends].sum(), 1.0)
    draws = (rng.random((DRAWS, len(rows))) < share).sum(axis=1)
    return chance(int(hits.sum()), draws.tolist())
