"""The attacker without limits of computation: counts all perfect matchings of a tiny table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk

MOST = 18
"""The most records: 2^n subsets are counted."""


def match_probabilities(covers: np.ndarray) -> np.ndarray:
    """Return the share of all perfect matchings that each edge lies on.

    Parameters
    ----------
    covers : numpy.ndarray, shape (n, n), bool
        ``covers[j, i]``: generalized record j covers original i.

    Returns
    -------
    numpy.ndarray, shape (n, n), float64
        ``[j, i]``; every row and every column adds up to 1. All 0 where there is no perfect matching.

    Raises
    ------
    ParameterError
        If the matrix is not square, or n is greater than 18.

    Notes
    -----
    An edge's share is a quotient of permanents (Ryser's problem, for which no polynomial algorithm is known: what
    k-concealment relies on). It is computed by dynamic programming over subsets of originals, exactly in 64-bit integers:
    O(2^n n) time and memory. Doka 2015's Figure 3 is a graph whose edges have 3/4 and 1/4.
    """
    covers = np.asarray(covers, bool)
    n = len(covers)
    if covers.shape != (n, n):
        raise ParameterError("the matrix of covers must be square")
    if n > MOST:
        raise ParameterError(
            f"all matchings of {n} records are too many to count; attack a table of at most {MOST} records"
        )
    subsets = np.arange(1 << n, dtype=np.int64)
    size = np.zeros(1 << n, np.int8)
    for i in range(n):
        size += ((subsets >> i) & 1).astype(np.int8)
    # ahead[S]: ways to match the first |S| rows to exactly S; behind[S]: ways to match the others to the rest
    ahead, behind = np.zeros(1 << n, np.int64), np.zeros(1 << n, np.int64)
    ahead[0] = behind[-1] = 1
    layers = [np.flatnonzero(size == s) for s in range(n + 1)]
    for j in range(n):
        for i in np.flatnonzero(covers[j]).tolist():
            before = layers[j][(layers[j] >> i) & 1 == 0]
            np.add.at(ahead, before | (1 << i), ahead[before])
    for j in range(n - 1, -1, -1):
        for i in np.flatnonzero(covers[j]).tolist():
            before = layers[j][(layers[j] >> i) & 1 == 0]
            behind[before] += behind[before | (1 << i)]
    shares = np.zeros((n, n))
    if not ahead[-1]:
        return shares
    for j in range(n):
        for i in np.flatnonzero(covers[j]).tolist():
            before = layers[j][(layers[j] >> i) & 1 == 0]
            # there are at most 18! matchings, and an int64 counts them exactly
            shares[j, i] = float((ahead[before] * behind[before | (1 << i)]).sum()) / float(ahead[-1])
    return shares


@dataclass(frozen=True)
class Counter(
    AttackerKind,
    name="counting",
    usual_where=lambda context: context.reads_ranges and context.n <= MOST,
    does="counts all matchings",
    points_at_row=True,
    needs_originals=True,
    knows="everybody's quasi-identifiers, and counts without limit",
):
    """Knows everybody's quasi-identifiers, counts all perfect matchings, and picks the likeliest row.

    It assumes that every matching is equally likely, as it is for an attacker who does not know the method.
    k-concealment does not protect against it: 2-concealment that is not 2-anonymous is Doka 2015's Figure 3.
    """

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(2^n n).

        Raises
        ------
        ParameterError
            If the table has more than 18 records.
        DataError
            If the release does not cover the table.
        """
        originals = Generalization.of(context.table.records)
        rows = context.evidence.published
        covers = np.empty((context.n, context.n), bool)
        for i in range(context.n):
            covers[:, i] = rows.covers(originals.take(np.full(context.n, i)))
        context.matches  # noqa: B018  (refuses what does not cover the table)
        highest = match_probabilities(covers).max(axis=0)
        risk = PeopleAtRisk.of(context.table, highest, candidates=context.row_candidates)
        return risk.success(
            1 / context.k,
            f"An attacker who counts every complete matching finds {plural(risk.above(1 / context.k), 'person')} with more than one chance in {context.k}, "
            f"one of them with probability {percent(risk.worst)}.",
        )  # fmt: skip
