"""Greedy (Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 5): k assignments, each chosen greedily."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from anonflow.algorithms.freeform.reciprocal import Reciprocal, reciprocal_outcome
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.generalization import Generalization
from anonflow.kernels.greedy import greedy_parts_jit
from anonflow.option import Option
from anonflow.partition import lexicographic_order

Visit = Annotated[Literal["spread", "lexicographic", "input"], Option("Who chooses first")]


def greedy(part: Partition, k: int, *, reciprocal: Reciprocal = False, visit: Visit = "spread") -> Outcome:
    """Return a k-regular generalization graph out of k assignments, each chosen greedily.

    The first assignment is the identity. In each of the k - 1 others the originals one after the other take the
    generalized record that is still available and whose information loss grows least by covering them too;
    costs are renewed after each assignment. No edge is used twice.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
        At least 1.
    reciprocal : bool, optional
        If row A could be person B's, row B could be person A's: safer against those who know some true matches.

        Record j covers original i wherever record i covers original j (Doka 2015, section 2.2), for more
        loss: 2.5 to 12% as measured. See :func:`anonflow.algorithms.freeform.reciprocal.reciprocal_matches`; one partition of an odd size
        may use k + 1.
    visit : {"spread", "lexicographic", "input"}, optional
        Spread: records far apart take turns, and least is lost as a rule. Lexicographic: neighbours follow each other. Input: as records come in their partition.

        With the partition order ``input`` or ``random``, records come in the table's order or in a random one; with the
        order ``lexicographic``, input is the same as lexicographic. Reciprocal graphs are chosen in lexicographic order.

    Returns
    -------
    Outcome
        With matches. Facts: how many dead ends were resolved by backtracking (`backtracked`), and by an
        augmenting path (`augmented`).

    Notes
    -----
    Doka 2015, Algorithm 1, but for the order in which originals choose. In lexicographic order a record's
    neighbours choose right before it, so near records are already taken, and the last originals take the records left
    at the other end. Visited with halves, quarters, eighths, ... of the order between them (:func:`spread`) records
    lose 8 to 11% less on Adult and census-like tables (k = 5 and 10, partitions of 250), for the same time. On a whole table
    of four and more columns ``input`` with the partition order ``input`` is as good, with two either may lose more
    (docs/reference/departures.md, Greedy).

    O(k P^2 q) time, O(P (q + k)) memory: costs are computed, never kept.

    An original may find every available record among those that cover it already: a dead end. Then it takes the record
    of the nearest predecessor that can find another one for itself. Such a predecessor is among the last 2l + i - n - 3
    when the i-th original is stuck in assignment l (Lemma 5.1), so it exists for k < (n + 3) / 2 (Theorem 5.2). Small
    partitions are beyond that bound: if there is no such predecessor, an augmenting path over unused edges completes
    the assignment, up to k = n.

    Ties: the generalized record of lowest position. But for ``input``, the order of visiting is a lexicographic one also inside
    partitions cut along another order.
    """
    if reciprocal:
        return reciprocal_outcome(part, k, "greedy")
    matches, facts = greedy_matches(part, k, visit=visit)
    return Outcome.of_matches(part.records, matches, backtracked=int(facts[0]), augmented=int(facts[1]))


def greedy_together(
    part: Partition, starts: np.ndarray, k: int, *, reciprocal: bool = False, visit: Visit = "spread"
) -> list[Outcome] | None:
    """Return the outcomes of :func:`greedy` for partitions that lie one after the other; None for reciprocal ones.

    Parameters
    ----------
    part : Partition
        The records of all of them, each of at least k.
    starts : numpy.ndarray, shape (p + 1,), int64
        Where each begins; the last one is the number of records.
    k, reciprocal, visit
        As there.
    """
    if reciprocal:
        return None
    matches, facts = matches_of_parts(part, starts, k, visit)
    whole = Generalization.join_of(part.records, matches + np.repeat(starts[:-1], np.diff(starts))[:, None])
    outcomes = []
    for start, stop, (backtracked, augmented) in zip(starts, starts[1:], facts.tolist(), strict=False):
        cells = whole.take(np.arange(start, stop))
        facts_of_part = {"backtracked": backtracked, "augmented": augmented}
        outcomes.append(Outcome(cells, matches[start:stop], facts=facts_of_part))
    return outcomes


def spread(n: int) -> np.ndarray:
    """Return positions 0 to n - 1 such that those that come soon after each other are far apart.

    Parameters
    ----------
    n : int

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        A permutation: the numbers below a power of two with their bits reversed (van der Corput's sequence),
        those of n and more left out.

    Examples
    --------
    >>> spread(6).tolist()
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(n - 1, 0).bit_length()
    ahead = np.arange(1 << bits, dtype=np.int64)
    behind = np.zeros_like(ahead)
    for _ in range(bits):
        behind = behind << 1 | ahead & 1
        ahead >>= 1
    return behind[behind < n]


def greedy_matches(part: Partition, k: int, visit: str = "spread") -> tuple[np.ndarray, np.ndarray]:
    """Return the matches of :func:`greedy`, and its dead ends.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    visit : str, optional

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    facts : numpy.ndarray, shape (2,), int64
        Dead ends resolved by backtracking, and by an augmenting path.
    """
    matches, facts = matches_of_parts(part, np.array([0, part.n]), k, visit)
    return matches, facts[0]


def matches_of_parts(
    part: Partition, starts: np.ndarray, k: int, visit: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the matches of :func:`greedy_together`, positions in each partition, and the dead ends of each, shape (p, 2)."""
    matches, assigned = np.empty((2, part.n, k), np.int32)
    facts = np.zeros((len(starts) - 1, 2), np.int64)
    sizes = np.diff(starts)
    label = np.repeat(np.arange(len(sizes)), sizes)
    order = np.arange(part.n)
    if visit != "input":
        order = lexicographic_order(part.records)
        order = order[np.argsort(label[order], kind="stable")]
    order -= starts[label]
    if visit == "spread":
        turns = {size: spread(size) for size in set(sizes.tolist())}
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=False):
            order[start : start + size] = order[start : start + size][turns[size]]
    greedy_parts_jit(part.plan, part.originals(), starts, order, matches, assigned, facts)
    return matches, facts


GREEDY = Algorithm(
    name="greedy",
    run=greedy,
    together=greedy_together,
    family="freeform",
    paper="Doka, Xue, Tsoumakos, Karras: k-anonymization by freeform generalization. ASIACCS 2015, section 5",
    guarantee="k-regular",
    complexity="O(k n P q) in partitions of P",
    summary="quick: as a rule less loss than cuts and nh, about as much as k-member",
    colour="#2a7fb8",
    shape="circle",
)
