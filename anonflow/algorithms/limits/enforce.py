"""The limits of a generalized record, ``max-width`` and ``max-set``: run every method inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonflow.algorithms.assembly import gathered
from anonflow.algorithms.limits.edges import improve_within
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.criteria.guarantee import promises_classes, promises_matches
from anonflow.generalization import Generalization
from anonflow.loss import record_costs
from anonflow.partition import limited
from anonflow.table import Domain, Records

RESCUED = 2_000
"""The most records of a partition for which a place is searched one by one; more are suppressed without a search."""

NEAR = 1_000
"""Number of generalized records, those whose cost would rise least, among which a place in a k-regular graph is searched."""


def run_within_limits(method: Algorithm, part: Partition, k: int, options: Mapping[str, Any]) -> Outcome:
    """Run a method so that no generalized record is wider than ``max-width`` or larger than ``max-set``.

    Parameters
    ----------
    method : Algorithm
    part : Partition
        P records, with limits.
    k : int
    options : mapping
        The method's own.

    Returns
    -------
    Outcome
        Records that have no place within the limits are suppressed; the fact `beyond_limits` counts them.

    Raises
    ------
    ParameterError
        If an option has a value that the method refuses.
    InfeasibleError
        If the partition has no solution.

    Notes
    -----
    docs/reference/departures.md, Boundaries and limits: an edge that breaks a limit costs infinity, a record left without k matches is
    suppressed. The methods need not know the limits:

    1. The records are cut into blocks in which everything that can be generalized together keeps the limits
       (:func:`limit_blocks`), and the method runs in each of at least k; the others are cut again, among
       themselves.
    2. Each record left gets a place: in the class whose loss grows least, or on k - 1 edges of a k-regular graph, each
    of which it divides in two. 3. Blocks forbid more than the limits do. In k-regular graphs, edges across blocks are
    restored by exchanging matches between near records, an edge that breaks a limit at infinite cost
       (:func:`anonflow.algorithms.limits.edges.improve_within`); the loss never rises.

    Methods that keep or hide a value: there the patterns that hide a limited QI are left
    out, and this only suppresses the records whose value is missing.
    """
    records = part.records
    names = limited(records)
    index: list[np.ndarray] = []
    rest = np.flatnonzero(~_hidden(records, names))
    if method.keeps_limits:
        index = [rest] if len(rest) >= k else []
        rest = rest[:0] if index else rest
    while len(rest) >= k:
        labels = limit_blocks(records.take(rest), k)
        large = np.bincount(labels) >= k
        if part.sensitive is not None:  # a class has no value that its block lacks
            large &= ~part.sensitive.take(rest).lacking(labels, len(large))
        if not large.any():
            break
        index += [rest[labels == label] for label in np.flatnonzero(large)]
        rest = rest[~large[labels]]
    outcomes = [method.run(part.take(at), k, **options) for at in index]
    whole = gathered(records.domains, outcomes, index, part.n)
    promise = method.under(options).guarantee
    matches = whole.matches if index or promises_matches(promise) else None
    classes = whole.classes if index or promises_classes(promise) else None
    suppressed, facts = whole.suppressed, whole.facts
    if not method.keeps_limits:
        for name in ("lower_bound", "gap", "proven"):
            facts.pop(name, None)  # suppressed because of the blocks, which forbid more than the limits
    inside = np.ones(part.n, bool)
    for at in index:
        inside[at] = False
    if matches is not None and matches.shape[1] == k and not method.symmetric(options):
        matches, suppressed = _rescued_matches(part, matches, suppressed, k)
        matches = improve_within(part, matches, suppressed)
        generalization = Generalization.join_of(records, matches)
    elif classes is not None and not method.keeps_limits and part.sensitive is None:
        classes, suppressed = _rescued_classes(part, classes, suppressed)
        generalization = Generalization.join_by_class(records, classes)
    else:
        generalization = whole.generalization
    facts["beyond_limits"] = int(suppressed[inside].sum())
    method.check_complete(options, facts["beyond_limits"])
    return Outcome(
        generalization.with_suppressed(suppressed),
        matches=matches,
        classes=classes,
        suppressed=suppressed,
        facts=facts,
    )


def limit_blocks(records: Records, k: int) -> np.ndarray:
    """Return blocks in which every generalization keeps the limits, shape (n,), int64.

    Parameters
    ----------
    records : Records
        n records with a value on each limited QI.
    k : int

    Notes
    -----
    One limited QI after the other is cut, the one first that exceeds its limit most. Numbers: into runs no
    wider than the limit, with the fewest records in runs of fewer than k, then the fewest runs (exact, by
    dynamic programming over the values present). Categories: the fewest sets of values, about equally
    frequent. O(q D^2 + n q) time for D values.
    """
    names = limited(records)
    labels = np.zeros(records.n, np.int64)
    todo = [np.arange(records.n)]
    blocks = 0
    while todo:
        rows = todo.pop()
        excess = [_excess(records.domains[a], records.codes[rows, a]) for a in names]
        worst = int(np.argmax(excess))
        if excess[worst] <= 1:
            labels[rows] = blocks
            blocks += 1
            continue
        a = names[worst]
        present, at = np.unique(records.codes[rows, a], return_inverse=True)
        counts = np.bincount(at)
        domain = records.domains[a]
        limit = float(domain.limit or 0)
        if domain.shape == "set":
            piece = _value_sets(counts, int(limit))[at]
        else:
            piece = _runs(domain.exact_points[present], counts, limit, k)[at]
        todo += [rows[piece == number] for number in range(int(piece.max()) + 1)]
    return labels


def _hidden(records: Records, names: Sequence[int]) -> np.ndarray:
    """Return records without a value on a limited QI, which only the whole domain covers."""
    return np.asarray((records.codes[:, list(names)] < 0).any(axis=1))


def _excess(domain: Domain, codes: np.ndarray) -> float:
    """Return how many times its limit a QI takes to generalize some values together; at most 1 keeps it."""
    limit = float(domain.limit or 0)
    if domain.shape == "set":
        return len(np.unique(codes)) / max(1.0, np.floor(limit))
    width = domain.exact_points[codes.max()] - domain.exact_points[codes.min()]
    if width <= limit:
        return 1.0 if width else 0.0
    # wider than the limit, if only by less than a float can tell: never 1
    return max(float(width / limit), np.nextafter(1.0, 2.0)) if limit else np.inf


def _runs(points: np.ndarray, counts: np.ndarray, limit: float, k: int) -> np.ndarray:
    """Ascending values cut into runs no wider than a limit: fewest records in short runs, then fewest runs."""
    m = len(points)
    before = np.concatenate([[0], np.cumsum(counts)])
    best = np.zeros(m + 1, np.int64)
    start = np.zeros(m + 1, np.int64)
    first = 0
    for stop in range(1, m + 1):
        while points[stop - 1] - points[first] > limit:
            first += 1
        size = before[stop] - before[first:stop]
        # there are at most m runs: one more record in a short run counts more than all of them
        cost = best[first:stop] + np.where(size < k, size, 0) * (m + 1) + 1
        at = int(np.argmin(cost))
        best[stop], start[stop] = cost[at], first + at
    run = np.empty(m, np.int64)
    stop, number = m, 0
    while stop:
        run[start[stop] : stop] = number
        stop, number = int(start[stop]), number + 1
    return run


def _value_sets(counts: np.ndarray, most: int) -> np.ndarray:
    """Return values in the fewest sets of at most so many, about equally frequent: the next to the rarest set."""
    sets = -(-len(counts) // most)
    load = np.zeros(sets, np.int64)
    room = np.full(sets, most)
    chosen = np.empty(len(counts), np.int64)
    for value in np.argsort(-counts, kind="stable").tolist():
        at = int(np.argmin(np.where(room > 0, load, np.iinfo(np.int64).max)))
        chosen[value] = at
        load[at] += counts[value]
        room[at] -= 1
    return chosen


def _candidates(records: Records, suppressed: np.ndarray) -> list[int]:
    """Return suppressed records that could have a place."""
    lost = np.flatnonzero(suppressed & ~_hidden(records, limited(records)))
    return lost[:RESCUED].tolist()


@dataclass(eq=False)
class _Growing:
    """Generalized records to which originals are joined, with the costs."""

    records: Records
    loss: str
    generalized: Generalization

    def __post_init__(self) -> None:
        self.originals = Generalization.of(self.records)
        self.cost = record_costs(self.generalized, self.loss)
        self.names = limited(self.records)

    def joined(self, original: int) -> Generalization:
        """Return each of them joined with an original."""
        record = self.originals.take(np.full(self.generalized.n, original))
        return self.generalized.join(record)

    def growth(self, original: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the cost of each record joined with an original, and its increase; infinite beyond the limits."""
        joined = self.joined(original)
        cost = record_costs(joined, self.loss)
        return cost, np.where(_within(joined, self.names), cost - self.cost, np.inf)

    def replace(self, at: np.ndarray, new: Generalization) -> None:
        """Replace some of the generalized records."""
        generalization = self.generalized
        generalization.lo[:, at], generalization.hi[:, at], generalization.bits[:, at] = (
            new.lo,
            new.hi,
            new.bits,
        )
        self.cost[at] = record_costs(new, self.loss)


def _within(generalization: Generalization, names: Sequence[int]) -> np.ndarray:
    """Return whether generalized records keep the limits of some QIs, shape (n,), bool."""
    good = np.ones(generalization.n, bool)
    layout = generalization.layout
    for t, a in enumerate(layout.ranges.tolist()):
        if a in names:
            points, limit = generalization.domains[a].exact_points, generalization.domains[a].limit
            good &= (points[generalization.hi[t]] - points[generalization.lo[t]] <= limit).astype(bool)
    if any(a in names for a in layout.sets.tolist()):
        counts = generalization.counts()
        for t, a in enumerate(layout.sets.tolist()):
            if a in names:
                good &= counts[t] <= generalization.domains[a].limit
    return good


def _rescued_classes(
    part: Partition, classes: np.ndarray, suppressed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Let suppressed records join the class whose loss grows least, where a class keeps the limits."""
    lost = _candidates(part.records, suppressed)
    positions = np.flatnonzero(~suppressed)
    if not lost or not len(positions):
        return classes, suppressed
    names, first, sizes = np.unique(classes[positions], return_index=True, return_counts=True)
    generalization = Generalization.join_by_class(part.records.take(positions), classes[positions]).take(
        first
    )
    growing = _Growing(part.records, part.loss, generalization)
    classes, suppressed = classes.copy(), suppressed.copy()
    for original in lost:
        cost, rises = growing.growth(original)
        growth = sizes * rises + cost
        at = int(np.argmin(growth))
        if np.isfinite(growth[at]):
            growing.replace(np.array([at]), growing.joined(original).take(np.array([at])))
            sizes[at] += 1
            classes[original] = names[at]
            suppressed[original] = False
    return classes, suppressed


def _rescued_matches(
    part: Partition, matches: np.ndarray, suppressed: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Let suppressed records divide k - 1 edges of the graph, j -> i into j -> them -> i, where limits allow it."""
    lost = _candidates(part.records, suppressed)
    if not lost or suppressed.all():
        return matches, suppressed
    matches, suppressed = matches.copy(), suppressed.copy()
    full = np.where(matches < 0, np.arange(part.n, dtype=np.int32)[:, None], matches)
    growing = _Growing(part.records, part.loss, Generalization.join_of(part.records, full))
    originals = growing.originals
    for original in lost:
        rises = growing.growth(original)[1]
        rises[suppressed] = np.inf
        near = np.argsort(rises, kind="stable")[:NEAR]
        near = near[np.isfinite(rises[near])]
        row = originals.take(np.array([original]))
        free = np.ones(len(near), bool)
        in_use = np.zeros(part.n, bool)
        edges: list[tuple[int, int]] = []
        for slot in range(1, k):
            ends = matches[near, slot]
            # the cost of this record's own row, joined with the end of each edge
            wide = originals.take(ends).join(row.take(np.zeros(len(near), np.int64)))
            good = free & ~in_use[ends] & _within(wide, growing.names)
            if not good.any():
                break
            at = int(np.argmin(np.where(good, rises[near] + record_costs(wide, part.loss), np.inf)))
            edges.append((int(near[at]), int(ends[at])))
            free[at] = False
            in_use[ends[at]] = True
            row = row.join(originals.take(ends[at : at + 1]))
        if len(edges) < k - 1:
            continue
        rows = np.array([j for j, _ in edges] + [original])
        for slot, (j, i) in enumerate(edges, start=1):
            matches[j, slot] = original
            matches[original, slot] = i
        suppressed[original] = False
        growing.replace(rows, Generalization.join_of(part.records, matches[rows]))
    return matches, suppressed
