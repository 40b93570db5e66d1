"""Generalized records without one of their matches, packed so that each lies in one place of memory.

A search that exchanges matches often needs the cost of record j without its match in slot s, and with another original
instead. ``SlotRows`` store the first of these for every record and slot. They are a transposed
:class:`~anonflow.kernels.state.State`: all QIs of a row lie together, because rows are visited in random order. Prices
are those of the plan, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.prices import bit_cost, lowest
from anonflow.kernels.state import ENTROPY, LINEAR, NODES, OPTIONAL, SLOPE, STEP, WHOLE, Plan, State

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_LOW = np.int64(63)


class SlotRows(NamedTuple):
    """k rows for each of n generalized records, and the n originals, for one plan.

    Row ``j k`` is record j with all its matches, row ``j k + s`` record j without its match in slot s > 0. A row
    is `stride` numbers of 64 bits: of each range QI its ends (of a hierarchy the lowest node that covers them), the
    words of the SLOPE sets, whose bits stand one after the other, the words of each other set and what is summed
    up over its members. Only values that occur have a bit.

    An original is `own_stride` numbers: its ranges likewise, pairs of a place and a word of the SLOPE sets (words that
    are not 0), and the value in each other set.

    Attributes
    ----------
    form, table_at, unit, last : numpy.ndarray, shape (r,)
        The plan's, of each range QI.
    at : numpy.ndarray, shape (r + 1,), int64
        Its place in a row, and in an original; at the end where the words and the pairs begin.
    first_leaf, last_leaf, parent, node_cost, mass, mlog : numpy.ndarray
        The plan's.
    bit_unit : numpy.ndarray, float64
        What each member of a SLOPE set costs, as many as there are bits in their words.
    set_form, set_unit, set_least : numpy.ndarray, shape (s',)
        The plan's, of each other set.
    set_place : numpy.ndarray, shape (s' + 1,), int64
        Where its words begin in a row; its sums (STEP: members; ENTROPY: their ``mass, mlog``) follow them.
    set_words : numpy.ndarray, shape (s',), int64
    set_mass : numpy.ndarray, shape (s',), int64
        ENTROPY: where its values begin in ``own_mass, own_mlog``.
    own_mass, own_mlog : numpy.ndarray, float64
        Of each bit of each ENTROPY set.
    size : numpy.ndarray, shape (4,), int64
        k, `stride`, `own_stride`, pairs.
    base : numpy.ndarray, shape (1,), float64
        Difference between the sum of the bits' costs and the cost of the SLOPE sets: one member of each set is free.
    num, word : numpy.ndarray, shape (n k stride,), float64, uint64
        The rows, two views of one buffer.
    drop : numpy.ndarray, shape (n k,), float64
        At ``j k + s``: by how much the cost of record j falls without its match in slot s > 0; at ``j k``: its cost.
    own_num, own_word : numpy.ndarray, shape (n own_stride,), float64, uint64
        The originals, likewise.
    """

    form: np.ndarray
    table_at: np.ndarray
    unit: np.ndarray
    last: np.ndarray
    at: np.ndarray
    first_leaf: np.ndarray
    last_leaf: np.ndarray
    parent: np.ndarray
    node_cost: np.ndarray
    mass: np.ndarray
    mlog: np.ndarray
    bit_unit: np.ndarray
    set_form: np.ndarray
    set_unit: np.ndarray
    set_least: np.ndarray
    set_place: np.ndarray
    set_words: np.ndarray
    set_mass: np.ndarray
    own_mass: np.ndarray
    own_mlog: np.ndarray
    size: np.ndarray
    base: np.ndarray
    num: np.ndarray
    word: np.ndarray
    own_num: np.ndarray
    own_word: np.ndarray
    drop: np.ndarray


def empty_rows(plan: Plan, origin: State, k: int) -> SlotRows:
    """Return room for the rows of k-regular matches, and the originals in their places.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals, of one value in each set.
    k : int

    Returns
    -------
    SlotRows
        Rows are not set; :func:`renew_rows` does it. O(n k q) memory.
    """
    n = len(origin.cost)
    r = len(plan.range_form)
    at = np.concatenate([[0], np.cumsum(np.where(plan.range_form == NODES, 1, 2))]).astype(np.int64)
    slope = plan.set_form == SLOPE
    codes = {t: np.unique(origin.only[t], return_inverse=True) for t in range(len(slope))}

    units: list[np.ndarray] = []
    bits: list[np.ndarray] = []
    base = 0.0
    for t in np.flatnonzero(slope).tolist():
        used, code = codes[t]
        bits.append(code.reshape(-1) + sum(len(unit) for unit in units))
        units.append(np.full(len(used), plan.set_unit[t]))
        base += plan.set_unit[t]
    width = sum(len(unit) for unit in units)
    words = -(-width // 64)
    bit_unit = np.concatenate([*units, np.zeros(64 * words - width)])
    place, word = _pairs(np.array(bits, np.int64).reshape(len(bits), n))
    pairs = place.shape[1]

    others = np.flatnonzero(~slope).tolist()
    set_words = np.array([-(-len(codes[t][0]) // 64) for t in others], np.int64)
    sums = np.array([2 if plan.set_form[t] == ENTROPY else 1 for t in others], np.int64)
    set_place = int(at[r]) + words + np.concatenate([[0], np.cumsum(set_words + sums)])
    starts = np.concatenate([[0], np.cumsum(64 * set_words)])
    own_mass, own_mlog = np.zeros(int(starts[-1])), np.zeros(int(starts[-1]))
    for e, t in enumerate(others):
        if plan.set_form[t] == ENTROPY:
            used = codes[t][0]
            own_mass[starts[e] : starts[e] + len(used)] = plan.mass[plan.set_at[t] + used]
            own_mlog[starts[e] : starts[e] + len(used)] = plan.mlog[plan.set_at[t] + used]

    stride = int(set_place[-1])
    own_stride = int(at[r]) + 2 * pairs + len(others)
    rows = np.zeros(n * k * stride, np.uint64)
    originals = np.zeros((n, own_stride), np.uint64)
    for t in range(r):
        if plan.range_form[t] == NODES:
            originals[:, at[t]] = _nodes(plan, t, origin)
        else:
            originals[:, at[t]] = origin.lo[t].view(np.uint64)
            originals[:, at[t] + 1] = origin.hi[t].view(np.uint64)
    for e in range(pairs):
        originals[:, at[r] + 2 * e] = int(at[r]) + place[:, e]
        originals[:, at[r] + 2 * e + 1] = word[:, e]
    for e, t in enumerate(others):
        originals[:, at[r] + 2 * pairs + e] = codes[t][1].reshape(-1)
    return SlotRows(
        form=plan.range_form,
        table_at=plan.range_at,
        unit=plan.range_unit,
        last=plan.range_last,
        at=at,
        first_leaf=plan.first,
        last_leaf=plan.last,
        parent=plan.parent,
        node_cost=plan.node_cost,
        mass=plan.mass,
        mlog=plan.mlog,
        bit_unit=bit_unit,
        set_form=plan.set_form[others],
        set_unit=plan.set_unit[others],
        set_least=plan.set_least[others],
        set_place=set_place.astype(np.int64),
        set_words=set_words,
        set_mass=starts[:-1].astype(np.int64),
        own_mass=own_mass,
        own_mlog=own_mlog,
        size=np.array([k, stride, own_stride, pairs], np.int64),
        base=np.array([base]),
        num=rows.view(np.float64),
        word=rows,
        own_num=originals.reshape(-1).view(np.float64),
        own_word=originals.reshape(-1),
        drop=np.zeros(n * k),
    )


def _pairs(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places and words that are not 0, shape (n, pairs) each, of one bit in each of s sets, shape (s, n).

    Sets whose bits lie in one word for every original share a pair; a pair without a bit is a word of 0.
    """
    s, n = bits.shape
    place, word = bits >> 6, _ONE << (bits & 63).astype(np.uint64)
    places: list[np.ndarray] = []
    masks: list[np.ndarray] = []
    for t in range(s):
        for e in range(len(places)):
            if (places[e] == place[t]).all():
                masks[e] |= word[t]
                break
        else:
            places.append(place[t])
            masks.append(word[t].copy())
    shape = (len(places), n)
    return np.array(places, np.int64).reshape(shape).T, np.array(masks, np.uint64).reshape(shape).T


def _nodes(plan: Plan, t: int, origin: State) -> np.ndarray:
    """Return the lowest node of hierarchy QI t that covers each original, shape (n,), int64."""
    node = plan.leaf[plan.range_at[t] + origin.lo[t].astype(np.int64)]
    while (below := plan.last[node] < origin.hi[t]).any():
        node = np.where(below, plan.parent[node], node)
    return node


def run_price(rows: SlotRows, t: int, lo: float, hi: float) -> float:
    """Cost of a run on range QI t, of form WHOLE, ENTROPY or OPTIONAL; the empty run costs nothing."""
    if lo > hi:
        return 0.0
    if rows.form[t] == OPTIONAL:
        return hi - lo
    if rows.form[t] == WHOLE:
        return rows.unit[t] if lo <= 0.0 and hi >= rows.last[t] else 0.0
    start = rows.table_at[t] + np.int64(lo)
    stop = rows.table_at[t] + np.int64(hi) + 1
    return bit_cost(rows.unit[t], rows.mass[stop] - rows.mass[start], rows.mlog[stop] - rows.mlog[start])


run_price_jit = jit(run_price, borrows=True)


def rises(rows: SlotRows, y: int | np.int64, ids: np.ndarray, m: int, out: np.ndarray) -> None:
    """Write to ``out[c]`` by how much the cost of row y would rise if it covered original ``ids[c]`` as well, c < m."""
    own_stride = rows.size[2]
    Y = y * rows.size[1]
    r = len(rows.form)
    for c in range(m):
        out[c] = 0.0
    for t in range(r):
        form = rows.form[t]
        p = rows.at[t]
        if form == NODES:
            u = np.int64(rows.word[Y + p])
            first = rows.first_leaf[u]
            last = rows.last_leaf[u]
            cost = rows.node_cost[u]
            for c in range(m):
                v = np.int64(rows.own_word[ids[c] * own_stride + p])
                low = rows.first_leaf[v]
                high = rows.last_leaf[v]
                if low < first or high > last:
                    w = rows.parent[u]
                    while rows.first_leaf[w] > low or rows.last_leaf[w] < high:
                        w = rows.parent[w]
                    out[c] += rows.node_cost[w] - cost
        elif form == LINEAR:
            lo = rows.num[Y + p]
            hi = rows.num[Y + p + 1]
            for c in range(m):
                below = lo - rows.own_num[ids[c] * own_stride + p]
                above = rows.own_num[ids[c] * own_stride + p + 1] - hi
                out[c] += (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
        else:
            lo = rows.num[Y + p]
            hi = rows.num[Y + p + 1]
            cost = run_price(rows, t, lo, hi)
            for c in range(m):
                a = rows.own_num[ids[c] * own_stride + p]
                b = rows.own_num[ids[c] * own_stride + p + 1]
                if a < lo or b > hi:
                    out[c] += run_price(rows, t, min(a, lo), max(b, hi)) - cost
    begin = rows.at[r]
    for e in range(rows.size[3]):
        p = begin + 2 * e
        for c in range(m):
            place = np.int64(rows.own_word[ids[c] * own_stride + p])
            fresh = rows.own_word[ids[c] * own_stride + p + 1] & ~rows.word[Y + place]
            total = out[c]
            while fresh != _NONE:
                total += rows.bit_unit[64 * (place - begin) + lowest(fresh)]
                fresh = fresh & (fresh - _ONE)
            out[c] = total
    begin += 2 * rows.size[3]
    for e in range(len(rows.set_form)):
        q = Y + rows.set_place[e]
        sums = q + rows.set_words[e]
        mass = mlog = cost = 0.0
        if rows.set_form[e] == ENTROPY:
            mass = rows.num[sums]
            mlog = rows.num[sums + 1]
            cost = bit_cost(rows.set_unit[e], mass, mlog)
        for c in range(m):
            code = np.int64(rows.own_word[ids[c] * own_stride + begin + e])
            if (rows.word[q + (code >> 6)] >> np.uint64(code & _LOW)) & _ONE == _NONE:
                if rows.set_form[e] == STEP:
                    # paid by the value that reaches the step; below it nothing is, above it nothing is added
                    out[c] += rows.set_unit[e] if np.int64(rows.word[sums]) + 1 == rows.set_least[e] else 0.0
                else:
                    code += rows.set_mass[e]
                    out[c] += bit_cost(
                        rows.set_unit[e], mass + rows.own_mass[code], mlog + rows.own_mlog[code]
                    )
                    out[c] -= cost


rises_jit = jit(rises, borrows=True)


def rises_of(rows: SlotRows, x: int | np.int64, places: np.ndarray, m: int, out: np.ndarray) -> None:
    """Write to ``out[c]`` by how much the cost of row ``places[c]`` would rise if it covered original x as well, c < m."""
    stride = rows.size[1]
    X = x * rows.size[2]
    r = len(rows.form)
    for c in range(m):
        out[c] = 0.0
    for t in range(r):
        form = rows.form[t]
        p = rows.at[t]
        if form == NODES:
            v = np.int64(rows.own_word[X + p])
            low = rows.first_leaf[v]
            high = rows.last_leaf[v]
            for c in range(m):
                u = np.int64(rows.word[places[c] * stride + p])
                if rows.first_leaf[u] > low or rows.last_leaf[u] < high:
                    w = rows.parent[u]
                    while rows.first_leaf[w] > low or rows.last_leaf[w] < high:
                        w = rows.parent[w]
                    out[c] += rows.node_cost[w] - rows.node_cost[u]
        else:
            a = rows.own_num[X + p]
            b = rows.own_num[X + p + 1]
            for c in range(m):
                lo = rows.num[places[c] * stride + p]
                hi = rows.num[places[c] * stride + p + 1]
                if form == LINEAR:
                    out[c] += (lo - a if a < lo else 0.0) + (b - hi if b > hi else 0.0)
                elif a < lo or b > hi:
                    out[c] += run_price(rows, t, min(a, lo), max(b, hi)) - run_price(rows, t, lo, hi)
    begin = rows.at[r]
    for e in range(rows.size[3]):
        place = np.int64(rows.own_word[X + begin + 2 * e])
        word = rows.own_word[X + begin + 2 * e + 1]
        for c in range(m):
            fresh = word & ~rows.word[places[c] * stride + place]
            total = out[c]
            while fresh != _NONE:
                total += rows.bit_unit[64 * (place - begin) + lowest(fresh)]
                fresh = fresh & (fresh - _ONE)
            out[c] = total
    begin += 2 * rows.size[3]
    for e in range(len(rows.set_form)):
        code = np.int64(rows.own_word[X + begin + e])
        bit = _ONE << np.uint64(code & _LOW)
        for c in range(m):
            q = places[c] * stride + rows.set_place[e]
            if rows.word[q + (code >> 6)] & bit == _NONE:
                q += rows.set_words[e]
                if rows.set_form[e] == STEP:
                    out[c] += rows.set_unit[e] if np.int64(rows.word[q]) + 1 == rows.set_least[e] else 0.0
                else:
                    mass = rows.own_mass[rows.set_mass[e] + code]
                    mlog = rows.own_mlog[rows.set_mass[e] + code]
                    out[c] += bit_cost(rows.set_unit[e], rows.num[q] + mass, rows.num[q + 1] + mlog)
                    out[c] -= bit_cost(rows.set_unit[e], rows.num[q], rows.num[q + 1])


rises_of_jit = jit(rises_of, borrows=True)


def renew_rows(rows: SlotRows, matches: np.ndarray, j: int, room: np.ndarray) -> None:
    """Compute the k rows of record j from its matches: each joins the matches before a slot with those after it.

    Parameters
    ----------
    rows : SlotRows
    matches : numpy.ndarray, shape (n, k), int32
        ``matches[j, 0] == j``.
    j : int
    room : numpy.ndarray, shape (k,), uint64
        Working memory.

    Notes
    -----
    O(k q); O(k^2) for each set that is not SLOPE.
    """
    k = rows.size[0]
    stride = rows.size[1]
    own_stride = rows.size[2]
    r = len(rows.form)
    top = j * k * stride
    drop = rows.drop[j * k : j * k + k]
    for s in range(k):
        drop[s] = 0.0
    for t in range(r):
        p = rows.at[t]
        if rows.form[t] == NODES:
            # from the last match to the first each slot gets the join of the matches after it; the way back joins those before
            u = np.int64(rows.own_word[matches[j, k - 1] * own_stride + p])
            for s in range(k - 2, 0, -1):
                rows.word[top + s * stride + p] = np.uint64(u)
                v = np.int64(rows.own_word[matches[j, s] * own_stride + p])
                while rows.first_leaf[u] > rows.first_leaf[v] or rows.last_leaf[u] < rows.last_leaf[v]:
                    u = rows.parent[u]
            u = np.int64(rows.own_word[j * own_stride + p])
            for s in range(1, k):
                w = u
                if s < k - 1:
                    v = np.int64(rows.word[top + s * stride + p])
                    while rows.first_leaf[w] > rows.first_leaf[v] or rows.last_leaf[w] < rows.last_leaf[v]:
                        w = rows.parent[w]
                rows.word[top + s * stride + p] = np.uint64(w)
                drop[s] += rows.node_cost[w]
                v = np.int64(rows.own_word[matches[j, s] * own_stride + p])
                while rows.first_leaf[u] > rows.first_leaf[v] or rows.last_leaf[u] < rows.last_leaf[v]:
                    u = rows.parent[u]
            rows.word[top + p] = np.uint64(u)
            drop[0] += rows.node_cost[u]
            continue
        lo = np.inf
        hi = -np.inf
        for s in range(k - 1, 0, -1):
            rows.num[top + s * stride + p] = lo
            rows.num[top + s * stride + p + 1] = hi
            lo = min(lo, rows.own_num[matches[j, s] * own_stride + p])
            hi = max(hi, rows.own_num[matches[j, s] * own_stride + p + 1])
        lo = rows.own_num[j * own_stride + p]
        hi = rows.own_num[j * own_stride + p + 1]
        for s in range(1, k):
            low = min(lo, rows.num[top + s * stride + p])
            high = max(hi, rows.num[top + s * stride + p + 1])
            rows.num[top + s * stride + p] = low
            rows.num[top + s * stride + p + 1] = high
            drop[s] += high - low if rows.form[t] == LINEAR else run_price(rows, t, low, high)
            lo = min(lo, rows.own_num[matches[j, s] * own_stride + p])
            hi = max(hi, rows.own_num[matches[j, s] * own_stride + p + 1])
        rows.num[top + p] = lo
        rows.num[top + p + 1] = hi
        drop[0] += hi - lo if rows.form[t] == LINEAR else run_price(rows, t, lo, hi)
    begin = rows.at[r]
    for w in range(begin, rows.set_place[0]):  # type: ignore[assignment]
        for s in range(k):
            room[s] = _NONE
            X = matches[j, s] * own_stride + begin
            for e in range(rows.size[3]):
                if np.int64(rows.own_word[X + 2 * e]) == w:
                    room[s] |= rows.own_word[X + 2 * e + 1]
        word = _NONE
        for s in range(k - 1, 0, -1):
            rows.word[top + s * stride + w] = word
            word |= room[s]
        word = room[0]
        for s in range(1, k + 1):
            y = top + (s if s < k else 0) * stride + w
            left = word
            if s < k:
                left |= rows.word[y]
                word |= room[s]
            rows.word[y] = left
            total = 0.0
            while left != _NONE:
                total += rows.bit_unit[64 * (w - begin) + lowest(left)]
                left = left & (left - _ONE)
            drop[s if s < k else 0] += total
    # each set was priced with all its values, and one of them costs nothing
    if begin < rows.set_place[0]:
        for s in range(k):
            drop[s] -= rows.base[0]
    begin += 2 * rows.size[3]
    for e in range(len(rows.set_form)):
        for s in range(k):
            q = top + s * stride + rows.set_place[e]
            sums = q + rows.set_words[e]
            # with the sums, which stand behind the words
            for w in range(q, top + s * stride + rows.set_place[e + 1]):  # type: ignore[assignment]
                rows.word[w] = _NONE
            for d in range(k):
                code = np.int64(rows.own_word[matches[j, d] * own_stride + begin + e])
                bit = _ONE << np.uint64(code & _LOW)
                if (d == s and s > 0) or rows.word[q + (code >> 6)] & bit != _NONE:
                    continue
                rows.word[q + (code >> 6)] |= bit
                if rows.set_form[e] == STEP:
                    rows.word[sums] += _ONE
                else:
                    rows.num[sums] += rows.own_mass[rows.set_mass[e] + code]
                    rows.num[sums + 1] += rows.own_mlog[rows.set_mass[e] + code]
            if rows.set_form[e] == STEP:
                drop[s] += rows.set_unit[e] if np.int64(rows.word[sums]) >= rows.set_least[e] else 0.0
            else:
                drop[s] += bit_cost(rows.set_unit[e], rows.num[sums], rows.num[sums + 1])
    for s in range(1, k):
        # until here the cost of each row, from here on what the match in a slot costs its record
        drop[s] = drop[0] - drop[s]


renew_rows_jit = jit(renew_rows, borrows=True)


def renew_span(rows: SlotRows, matches: np.ndarray, start: int, stop: int) -> None:
    """Call :func:`renew_rows` for the records start to stop - 1."""
    room = np.empty(matches.shape[1], np.uint64)
    for j in range(start, stop):
        renew_rows(rows, matches, j, room)


renew_span_jit = jit(renew_span)
