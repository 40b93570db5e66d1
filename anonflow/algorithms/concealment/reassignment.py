"""Exchange generalized records between originals at random, so that a row's position no longer reveals its original."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.concealment.covered import Covered
from anonflow.algorithms.concealment.expansion import DistinctRecords
from anonflow.generalization import Generalization
from anonflow.kernels.state import State

ROUNDS = 100
"""After 50 to 200 rounds the rate of the attacker who simulates seeds was the same."""


def exchanged(
    merged: DistinctRecords, boxes: State, generalization: Generalization, rng: np.random.Generator
) -> Generalization:
    """Return the same generalized records, assigned again at random to originals that they cover.

    Parameters
    ----------
    merged : DistinctRecords
        P originals.
    boxes : State
        Their P generalized records.
    generalization : Generalization
        The same; record i covers original i.
    rng : numpy.random.Generator

    Returns
    -------
    Generalization
        Record i covers original i. Losses, covers and matches do not change, because the rows do not.

    Notes
    -----
    A record that is generalized with its neighbours lies in the middle of them, and another original would rarely have
    got this row: an attacker who runs the method with other seeds sees which original usually has it. Here two
    originals may exchange their rows if each row covers both. Pairs are proposed independently of the present
    assignment, and each possible exchange is done with probability 1/2: a symmetric chain on perfect matchings, whose
    limit is uniform over those that it reaches. The exchange does not make all matches equally likely: it depends on
    how often an edge lies on perfect matchings. O(P (u + rounds) q + E) time.
    """
    n = merged.part.n
    lists = Covered.of(merged, boxes)

    def picked() -> np.ndarray:
        """Return one of the originals that each row covers, copies apart, (P,)."""
        at = lists.start + (rng.random(n) * (lists.stop - lists.start)).astype(np.int64)
        place = np.searchsorted(lists.ends, at, side="right")
        kind = lists.originals[place]
        return lists.members[lists.begin[kind] + at - lists.ends[place] + merged.count[kind]]

    originals = Generalization.of(merged.part.records)
    row_of = np.arange(n)
    for _ in range(ROUNDS):
        left, right, rank = picked(), picked(), rng.permutation(n)
        first = np.full(n, n)
        # an original is in one exchange of a round at most: in that of the lowest rank
        np.minimum.at(first, left, rank)
        np.minimum.at(first, right, rank)
        pairs = np.flatnonzero((first[left] == rank) & (first[right] == rank) & (left != right))
        pairs = pairs[rng.random(len(pairs)) < 0.5]
        left, right = left[pairs], right[pairs]
        fits = generalization.take(row_of[left]).covers(originals.take(right)) & generalization.take(
            row_of[right]
        ).covers(originals.take(left))
        left, right = left[fits], right[fits]
        row_of[left], row_of[right] = row_of[right], row_of[left]
    return generalization.take(row_of)
