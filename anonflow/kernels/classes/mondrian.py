"""Mondrian's cuts: segments of records, cut in place until no cut is allowable."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import sort
from anonflow.kernels.state import Index

NUMERIC = 0
HIERARCHY = 1
SET = 2
CODED = 3  # a numeric QI in which some records have a code instead of a number: these records may go to either part


class CutRules(NamedTuple):
    """How each of q quasi-identifiers (QIs) may be cut.

    Attributes
    ----------
    form : numpy.ndarray, shape (q,), int64
        NUMERIC, HIERARCHY, SET or CODED.
    size : numpy.ndarray, shape (q,), int64
        Number of codes, D.
    weight : numpy.ndarray, shape (q,), float64
    points : numpy.ndarray, shape (sum of D,), float64
        NUMERIC: the value of each code.
    point_at : numpy.ndarray, shape (q,), int64
        Where the QI begins in `points`.
    leaf : numpy.ndarray, int64
        HIERARCHY: node of each leaf, the trees one after the other.
    leaf_at : numpy.ndarray, shape (q,), int64
        Where the QI begins in `leaf`.
    first : numpy.ndarray, int64
        The first leaf below each node.
    last : numpy.ndarray, int64
        The last one.
    parent : numpy.ndarray, int64
        The node above it; -1 above a root.
    """

    form: np.ndarray
    size: np.ndarray
    weight: np.ndarray
    points: np.ndarray
    point_at: np.ndarray
    leaf: np.ndarray
    leaf_at: np.ndarray
    first: np.ndarray
    last: np.ndarray
    parent: np.ndarray


def common_node(cuts: CutRules, a: int, lo: Index, hi: Index) -> int:
    """Return the lowest node of hierarchy QI `a` that covers leaves lo..hi; O(height)."""
    node = cuts.leaf[cuts.leaf_at[a] + lo]
    while cuts.last[node] < hi:
        node = cuts.parent[node]
    return node


common_node_jit = jit(common_node, borrows=True)


def spread(
    cuts: CutRules,
    a: int,
    codes: np.ndarray,
    start: int,
    stop: int,
    seen: np.ndarray,
    stamp: int,
    ends: np.ndarray,
) -> float:
    """Return the normalized range of a segment on QI `a` as NCP has it, times its weight; 0 where it cannot be cut.

    Parameters
    ----------
    cuts : CutRules
    a : int
    codes : numpy.ndarray, shape (n, q), int32
    start, stop : int
        The segment.
    seen : numpy.ndarray, shape (at least D,), int64
        Stamps; entries other than `stamp` do not count.
    stamp : int
        Greater than any before.
    ends : numpy.ndarray, shape (q, 3), int64
        Written: least and greatest code (missing values apart), and the number of missing values.
    """
    lo = cuts.size[a]
    hi = np.int64(-1)
    missing = np.int64(0)
    distinct = 0
    for i in range(start, stop):
        code = np.int64(codes[i, a])
        if code < 0:
            missing += 1
            continue
        lo = min(lo, code)
        hi = max(hi, code)
    ends[a, 0] = lo
    ends[a, 1] = hi
    ends[a, 2] = missing
    if cuts.size[a] <= 1 or missing == stop - start:
        return 0.0
    # only the whole domain covers a missing number: its range is 1
    if missing > 0 and cuts.form[a] != CODED:
        return cuts.weight[a]
    if lo == hi:
        return 0.0
    if cuts.form[a] == NUMERIC or cuts.form[a] == CODED:
        at = cuts.point_at[a]
        width = cuts.points[at + cuts.size[a] - 1] - cuts.points[at]
        return cuts.weight[a] * (cuts.points[at + hi] - cuts.points[at + lo]) / width
    if cuts.form[a] == HIERARCHY:
        node = common_node(cuts, a, lo, hi)
        return cuts.weight[a] * (cuts.last[node] - cuts.first[node]) / (cuts.size[a] - 1)
    for i in range(start, stop):
        code = np.int64(codes[i, a])
        if seen[code] != stamp:
            seen[code] = stamp
            distinct += 1
    return cuts.weight[a] * (distinct - 1) / (cuts.size[a] - 1)


spread_jit = jit(spread, borrows=True)


def tally(
    codes: np.ndarray, a: int, start: int, stop: int, count: np.ndarray, values: np.ndarray, lo: int, hi: int
) -> int:
    """Return the distinct codes of a segment on QI `a`, ascending, and how often each occurs.

    Parameters
    ----------
    count : numpy.ndarray, shape (at least D,), int64
        Zeros; on return ``count[value]`` for each value, which the caller clears.
    values : numpy.ndarray, shape (at least min(D, n),), int64
        Written.
    lo, hi : int
        Least and greatest code of the segment.

    Returns
    -------
    int
        How many values. O(m + min(hi - lo, m log m)) for m records.
    """
    different = 0
    for i in range(start, stop):
        code = np.int64(codes[i, a])
        if code >= 0:
            if count[code] == 0:
                values[different] = code
                different += 1
            count[code] += 1
    # where codes are dense, looking at each of them costs less than sorting those that occur
    if hi - lo < 8 * different:
        different = 0
        for value in range(lo, hi + 1):
            if count[value] > 0:
                values[different] = value
                different += 1
    else:
        sort(values[:different])
    return different


tally_jit = jit(tally)


def cut_numeric(
    count: np.ndarray,
    values: np.ndarray,
    different: int,
    m: int,
    k: int,
    relaxed: bool,
    side: np.ndarray,
    part: np.ndarray,
    coded: int = 0,
) -> int:
    """Cut at the median: values up to it go to the left; if relaxed, the records of the median fill both sides to halves.

    Parameters
    ----------
    count, values, different
        As :func:`tally` gives them; `m` records in all that have a number.
    coded : int
        Records that have a code instead; they go to the left.
    side : numpy.ndarray, shape (at least D,), int64
        Written for each value: its part.
    part : numpy.ndarray, shape (2,), int64
        Written: the value whose records are in both parts (-1 for none), and how many are in the left one.

    Returns
    -------
    int
        Number of parts; 0 if the cut is not allowable.
    """
    left = np.int64(0)
    at = 0
    half = (m + 1) // 2
    while left + count[values[at]] < half:
        left += count[values[at]]
        at += 1
    median = values[at]
    part[0] = -1
    if relaxed:
        if half + coded < k or m - half < k:
            return 0
        part[0] = median
        part[1] = half - left
    else:
        left += count[median]
        if left + coded < k or m - left < k:
            return 0
    for u in range(different):
        side[values[u]] = 0 if values[u] <= median else 1
    return 2


cut_numeric_jit = jit(cut_numeric, borrows=True)


def cut_set(
    count: np.ndarray,
    values: np.ndarray,
    different: int,
    m: int,
    k: int,
    relaxed: bool,
    side: np.ndarray,
    part: np.ndarray,
) -> int:
    """Cut a set: values go by descending count to the smaller side; if relaxed, the records of the middle value go to both.

    Parameters and result as :func:`cut_numeric`. O(different^2) time for the few values of a set.
    """
    # by descending count, ties by code: insertion keeps the order of ties
    for u in range(1, different):
        value = values[u]
        v = u
        while v > 0 and count[values[v - 1]] < count[value]:
            values[v] = values[v - 1]
            v -= 1
        values[v] = value
    part[0] = -1
    left = np.int64(0)
    right = np.int64(0)
    if relaxed:
        if m < 2 * k:
            return 0
        half = (m + 1) // 2
        for u in range(different):
            value = values[u]
            if left < half and left + count[value] > half:
                part[0] = value
                part[1] = half - left
            side[value] = 0 if left < half else 1
            left += count[value]
        return 2
    for u in range(different):
        value = values[u]
        if left <= right:
            side[value] = 0
            left += count[value]
        else:
            side[value] = 1
            right += count[value]
    return 2 if left >= k and right >= k else 0


cut_set_jit = jit(cut_set, borrows=True)


def cut_hierarchy(
    cuts: CutRules,
    a: int,
    count: np.ndarray,
    values: np.ndarray,
    different: int,
    k: int,
    relaxed: bool,
    side: np.ndarray,
) -> int:
    """Cut the lowest common node into its children; if relaxed, small neighbours are merged.

    Parameters and result as :func:`cut_numeric`.
    """
    node = common_node(cuts, a, values[0], values[different - 1])
    parts = 0
    held = np.int64(0)
    child = np.int64(-1)
    for u in range(different):
        value = values[u]
        if child < 0 or cuts.last[child] < value:
            # the next child that has records
            if child >= 0 and held < k and not relaxed:
                return 0
            if child < 0 or held >= k:
                parts += 1
                held = np.int64(0)
            child = cuts.leaf[cuts.leaf_at[a] + value]
            while cuts.parent[child] != node:
                child = cuts.parent[child]
        side[value] = parts - 1
        held += count[value]
    if held < k:
        if not relaxed or parts == 1:
            return 0
        parts -= 1
        for u in range(different):
            side[values[u]] = min(side[values[u]], parts - 1)
    return parts if parts > 1 else 0


cut_hierarchy_jit = jit(cut_hierarchy, borrows=True)


def mondrian_classes(cuts: CutRules, codes: np.ndarray, k: int, relaxed: bool, labels: np.ndarray) -> int:
    """Cut the records into classes of at least k; O(n q) a level of cuts, no recursion.

    Parameters
    ----------
    cuts : CutRules
    codes : numpy.ndarray, shape (n, q), int32
        The records; reordered, each with its class's neighbours. -1 is a missing number.
    k : int
    relaxed : bool
    labels : numpy.ndarray, shape (n,), int64
        Written: the class of each record, in the order in which `codes` was given.

    Returns
    -------
    int
        Number of classes.
    """
    n, q = codes.shape
    most = np.int64(1)
    for a in range(q):
        most = max(most, cuts.size[a])
    place = np.arange(n)
    moved = np.empty((n, q), np.int32)
    moved_place = np.empty(n, np.int64)
    count = np.zeros(most, np.int64)
    seen = np.zeros(most, np.int64)
    side = np.zeros(most, np.int64)
    values = np.empty(most, np.int64)
    wide = np.empty(q)
    ends = np.empty((q, 3), np.int64)
    part = np.empty(2, np.int64)
    group = np.empty(n, np.int64)
    begin = np.empty(n + 1, np.int64)
    stack = np.empty((n + 1, 2), np.int64)
    stack[0, 0] = 0
    stack[0, 1] = n
    depth = 1
    stamp = 0
    classes = 0
    while depth > 0:
        depth -= 1
        start = stack[depth, 0]
        stop = stack[depth, 1]
        m = stop - start
        parts = 0
        if m >= 2 * k:
            for a in range(q):
                stamp += 1
                wide[a] = spread(cuts, a, codes, start, stop, seen, stamp, ends)
        while m >= 2 * k and parts == 0:
            a = 0
            for b in range(1, q):
                if wide[b] > wide[a]:
                    a = b
            if wide[a] <= 0:
                break
            # whether it can be cut or not, it is not tried again on this segment
            wide[a] = 0.0
            part[0] = -1
            missing = ends[a, 2]
            if missing > 0 and cuts.form[a] != CODED:
                # only the whole domain covers a missing number: cut these records off, or do not cut
                if missing >= k and m - missing >= k:
                    parts = 2
                    for i in range(start, stop):
                        group[i] = 0 if codes[i, a] < 0 else 1
                continue
            different = tally(codes, a, start, stop, count, values, ends[a, 0], ends[a, 1])
            if cuts.form[a] == NUMERIC or cuts.form[a] == CODED:
                parts = cut_numeric(count, values, different, m - missing, k, relaxed, side, part, missing)
            elif cuts.form[a] == SET:
                parts = cut_set(count, values, different, m, k, relaxed, side, part)
            else:
                parts = cut_hierarchy(cuts, a, count, values, different, k, relaxed, side)
            # only what was counted: clearing every code would take the domain's size for each segment
            for u in range(different):
                count[values[u]] = 0
            if parts > 0:
                left = part[1]
                for i in range(start, stop):
                    code = codes[i, a]
                    group[i] = side[code] if code >= 0 else 0
                    if code >= 0 and code == part[0]:
                        group[i] = 0 if left > 0 else 1
                        left -= 1
        if parts == 0:
            for i in range(start, stop):
                labels[place[i]] = classes
            classes += 1
            continue
        for g in range(parts + 1):
            begin[g] = 0
        for i in range(start, stop):
            begin[group[i] + 1] += 1
        begin[0] = start
        for g in range(parts):
            begin[g + 1] += begin[g]
        # pushed before `begin` moves on with the records below
        for g in range(parts - 1, -1, -1):
            # the first part is cut next
            stack[depth, 0] = begin[g]
            stack[depth, 1] = begin[g + 1]
            depth += 1
        for i in range(start, stop):
            # a stable counting sort: records of a part stay in their order
            to = begin[group[i]]
            begin[group[i]] += 1
            moved_place[to] = place[i]
            for b in range(q):
                moved[to, b] = codes[i, b]
        for i in range(start, stop):
            place[i] = moved_place[i]
            for b in range(q):
                codes[i, b] = moved[i, b]
    return classes


mondrian_classes_jit = jit(mondrian_classes)
