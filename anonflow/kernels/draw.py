"""Draw one assignment from regular graphs so that every edge has the same probability.

A graph of m generalized records ("rows") and m originals ("columns"), every one of degree d, is a flat array
``graph (m * d,) int32``: row j has the edges ``graph[j * d : (j + 1) * d]``, each the number of its column.

Random numbers come as 32-bit lanes that the caller has drawn from a cryptographic source: no kernel draws random numbers of its
own. A kernel that has too few lanes reports it, and the caller calls it again with *more of the same stream*: new lanes instead
would favour the results that need few. ``cursor[0]`` counts the lanes used.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.classes.forest import root_of
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Index

_LANE = 1 << 32
_GROUP = 1 << 31  # a lane times the product of a group's bounds stays within int64


def below(bound: int, lanes: np.ndarray, cursor: np.ndarray) -> np.int64:
    """Return a uniform integer in [0, bound), by multiplication and rejection (Lemire, TOMACS 29, 2019).

    Parameters
    ----------
    bound : int
        1 to 2**31.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64

    Returns
    -------
    numpy.int64
        -1 if the lanes did not suffice.
    """
    while cursor[0] < len(lanes):
        product = np.int64(lanes[cursor[0]]) * bound
        cursor[0] += 1
        low = product & (_LANE - 1)
        # the first comparison decides nearly always; the second one divides, and its right side is less than the bound
        if low >= bound or low >= (_LANE - bound) % bound:
            return product >> 32
    return np.int64(-1)


below_jit = jit(below, borrows=True)


def pair_up(items: np.ndarray, start: int, d: int, lanes: np.ndarray, cursor: np.ndarray) -> bool:
    """Permute ``items[start : start + d]`` so that the neighbours 2t, 2t + 1 are a uniform pairing.

    One lane serves as many choices as the product of their bounds allows.

    Parameters
    ----------
    items : numpy.ndarray, int32
    start, d : int
        d is even.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64

    Returns
    -------
    bool
        False if the lanes did not suffice.
    """
    size = d
    while size > 2:
        # a pairing of d items is a choice of d - 1 partners, then of d - 3, and so on: their product is drawn as one number
        product = np.int64(1)
        rest = size
        while rest > 2 and product * (rest - 1) <= _GROUP:
            product *= rest - 1
            rest -= 2
        while True:
            if cursor[0] >= len(lanes):
                return False
            lane = np.int64(lanes[cursor[0]])
            cursor[0] += 1
            low = (lane * product) & (_LANE - 1)
            if low >= product or low >= (_LANE - product) % product:
                break
        while size > rest:
            # the upper half is the choice, the lower half the fraction from which the next choice is made
            lane *= size - 1
            at = start + (lane >> 32)
            lane &= _LANE - 1
            # the partner of the last item moves next to it, and the two are done
            swapped = items[at]
            items[at] = items[start + size - 2]
            items[start + size - 2] = swapped
            size -= 2
    return True


pair_up_jit = jit(pair_up, borrows=True)


def permute_batch(
    offsets: np.ndarray,
    members: np.ndarray,
    batch: np.ndarray,
    lanes: np.ndarray,
    lane_offsets: np.ndarray,
    assignment: np.ndarray,
) -> np.ndarray:
    """Permute the members of some classes uniformly (Fisher and Yates), independently in each class.

    Parameters
    ----------
    offsets : numpy.ndarray, shape (c + 1,), int64
    members : numpy.ndarray, shape (m,), int64
        Class t has ``members[offsets[t] : offsets[t + 1]]``.
    batch : numpy.ndarray, shape (b,), int64
        Which classes.
    lanes : numpy.ndarray, shape (l,), uint32
    lane_offsets : numpy.ndarray, shape (b + 1,), int64
        Class ``batch[t]`` takes ``lanes[lane_offsets[t] : lane_offsets[t + 1]]``.
    assignment : numpy.ndarray, shape (n,), int64
        ``assignment[i]`` becomes a member of i's class, all different.

    Returns
    -------
    numpy.ndarray, shape (b,), bool
        Where the lanes did not suffice; these are as before.

    Notes
    -----
    O(m) time.
    """
    short = np.zeros(len(batch), np.bool_)
    cursor = np.zeros(1, np.int64)
    for t in range(len(batch)):
        start = offsets[batch[t]]
        size = offsets[batch[t] + 1] - start
        # a copy: a class whose lanes do not suffice stays as it was
        order = members[start : start + size].copy()
        # every class has a stream of its own: its result does not depend on the classes that share its batch
        stream = lanes[lane_offsets[t] : lane_offsets[t + 1]]
        cursor[0] = 0
        for s in range(size - 1, 0, -1):
            r = below(s + 1, stream, cursor)
            if r < 0:
                short[t] = True
                break
            swapped = order[r]
            order[r] = order[s]
            order[s] = swapped
        if not short[t]:
            for s in range(size):
                assignment[members[start + s]] = order[s]
    return short


permute_batch_jit = jit(permute_batch)


def _join(parent: np.ndarray, a: Index, b: Index) -> bool:
    """Join two trees under the smaller root; return whether they were different trees."""
    a = root_of(parent, a)
    b = root_of(parent, b)
    if a == b:
        return False
    # the smaller root wins: a component's root is its smallest original, in whatever order its edges are read
    if a < b:
        parent[b] = a
    else:
        parent[a] = b
    return True


_join_jit = jit(_join, borrows=True)


def components(matches: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return connected components of a generalization graph, in the order of their smallest originals.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), int32, C-contiguous
        Row j lists the originals it matches, padded with -1.

    Returns
    -------
    faulty : numpy.ndarray, shape (n,), bool
        Rows with no match, with a match that does not exist or occurs twice, or with another degree than their
        component; originals in more or fewer rows than the degree. If there are any, the other results are undefined.
    offsets : numpy.ndarray, shape (c + 1,), int64
        Component t has the places ``offsets[t] : offsets[t + 1]`` of `rows` and of `columns`.
    rows, columns : numpy.ndarray, shape (n,), int32
        Members of the components, ascending within each.
    degrees : numpy.ndarray, shape (c,), int32

    Notes
    -----
    O(n w) time, times the inverse Ackermann factor of joining trees; O(n) memory.
    """
    n, width = matches.shape
    faulty = np.zeros(n, np.bool_)
    parent = np.arange(n).astype(np.int32)
    seen = np.full(n, -1, np.int32)
    degree = np.zeros(n, np.int32)
    entries = np.zeros(n, np.int32)
    for j in range(n):
        for c in range(width):
            i = matches[j, c]
            if i == -1:
                break
            # `seen` has the last row with this match, so it need not be cleared for each row
            if i < -1 or i >= n or seen[i] == j:
                faulty[j] = True
                break
            seen[i] = j
            degree[j] += 1
            entries[i] += 1
        for c in range(degree[j], width):
            if matches[j, c] != -1:
                faulty[j] = True
        if degree[j] == 0:
            faulty[j] = True
    label = np.full(n, -1, np.int32)
    count = 0
    if not faulty.any():
        for j in range(n):
            # the originals of one row are connected: rows need no vertices of their own
            for c in range(1, degree[j]):
                _join(parent, matches[j, 0], matches[j, c])
        for i in range(n):
            root = root_of(parent, i)
            if root == i:
                label[i] = count
                count += 1
            else:
                label[i] = label[root]
    offsets = np.zeros(count + 1, np.int64)
    rows = np.zeros(n, np.int32)
    columns = np.zeros(n, np.int32)
    degrees = np.zeros(count, np.int32)
    if count == 0:
        return faulty, offsets, rows, columns, degrees
    for i in range(n):
        offsets[label[i] + 1] += 1
    for t in range(count):
        offsets[t + 1] += offsets[t]
    next_row = offsets[:-1].copy()
    next_column = offsets[:-1].copy()
    for i in range(n):
        t = label[i]
        columns[next_column[t]] = i
        next_column[t] += 1
    for j in range(n):
        # all matches of a row are in one component: the first one tells which
        t = label[matches[j, 0]]
        if next_row[t] == offsets[t + 1]:
            faulty[j] = True  # more rows than originals
            continue
        if next_row[t] == offsets[t]:
            degrees[t] = degree[j]
        rows[next_row[t]] = j
        next_row[t] += 1
        if degree[j] != degrees[t]:
            faulty[j] = True
    for i in range(n):
        if entries[i] != degrees[label[i]]:
            faulty[i] = True
    return faulty, offsets, rows, columns, degrees


components_jit = jit(components)


def halve(graph: np.ndarray, m: int, d: int, lanes: np.ndarray, cursor: np.ndarray, half: np.ndarray) -> bool:
    """Split a regular graph of even degree and keep one half: every edge with probability 1/2.

    The edges of every vertex are paired at random; following the pairs, the graph falls into closed walks of
    even length. A random bit decides which of its two alternating halves each walk keeps.

    Parameters
    ----------
    graph : numpy.ndarray, shape (m * d,), int32
        The edges of each row are reordered.
    m, d : int
        Rows and even degree.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64
    half : numpy.ndarray, shape (m * d // 2,), int32
        Receives the graph of degree d / 2; its edge p is edge 2p or 2p + 1 of the reordered `graph`.

    Returns
    -------
    bool
        False if the lanes did not suffice.

    Notes
    -----
    O(m d) time and memory.
    """
    edges = m * d
    for j in range(m):
        if not pair_up(graph, j * d, d, lanes, cursor):
            return False
    of_column = np.empty(edges, np.int32)
    filled = np.zeros(m, np.int32)
    for e in range(edges):
        i = graph[e]
        of_column[i * d + filled[i]] = e
        filled[i] += 1
    mate = np.empty(edges, np.int32)
    for i in range(m):
        if not pair_up(of_column, i * d, d, lanes, cursor):
            return False
        for t in range(i * d, (i + 1) * d, 2):
            mate[of_column[t]] = of_column[t + 1]
            mate[of_column[t + 1]] = of_column[t]
    for p in range(edges // 2):
        half[p] = -1
    # edges 2p and 2p + 1 are a pair of their row: every walk has an edge of even number to begin with
    for start in range(0, edges, 2):
        if half[start >> 1] >= 0:
            continue
        if cursor[0] >= len(lanes):
            return False
        coin = lanes[cursor[0]] & 1
        cursor[0] += 1
        e = start
        while True:
            f = mate[e]  # the other edge at e's column
            if coin:
                half[e >> 1] = graph[e]
            else:
                half[f >> 1] = graph[f]
            e = f ^ 1  # the other edge at f's row
            if e == start:
                break
    return True


halve_jit = jit(halve)


def walk(
    graph: np.ndarray, m: int, d: int, lanes: np.ndarray, cursor: np.ndarray, matching: np.ndarray
) -> bool:
    """Return a perfect matching of a regular graph by random walks (Goel, Kapralov and Khanna, SIAM J. Comput. 42, 2013).

    From each free row, walk along random edges that are not matched, and back along matched ones, until a
    free column is reached; flip the walk without its loops. Not uniform over matchings, nor over edges.

    Parameters
    ----------
    graph : numpy.ndarray, shape (m * d,), int32
    m, d : int
        Rows and degree, at least 2.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64
    matching : numpy.ndarray, shape (m,), int32
        Receives, for each row, which of its d edges is in the matching.

    Returns
    -------
    bool
        False if the lanes did not suffice.

    Notes
    -----
    O(m log m) expected time, O(m) memory.
    """
    owner = np.full(m, -1, np.int32)
    step = np.empty(m, np.int32)
    for j in range(m):
        matching[j] = -1
    for start in range(m):
        u = start
        while True:
            if matching[u] < 0:
                t = below(d, lanes, cursor)
                if t < 0:
                    return False
            else:
                # one of the edges that are not matched: numbers from the matched one on are shifted by one
                t = below(d - 1, lanes, cursor)
                if t < 0:
                    return False
                if t >= matching[u]:
                    t += 1
            step[u] = t
            u = owner[graph[u * d + t]]
            if u < 0:
                break
        # the last step out of every row leads from start to the free column without loops
        u = start
        while u >= 0:
            i = graph[u * d + step[u]]
            previous = owner[i]
            owner[i] = u
            matching[u] = step[u]
            u = previous
    return True


walk_jit = jit(walk)


def _draw_one(
    graph: np.ndarray, m: int, d: int, lanes: np.ndarray, cursor: np.ndarray, drawn: np.ndarray
) -> bool:
    """Draw an assignment of one regular graph: row j gets column drawn[j]; False without lanes."""
    size = m
    row = np.arange(m).astype(np.int32)
    column = np.arange(m).astype(np.int32)
    matching = np.empty(m, np.int32)
    while d > 1:
        if d % 2 == 0:
            half = np.empty(size * (d // 2), np.int32)
            if not halve(graph, size, d, lanes, cursor, half):
                return False
            graph = half
            d //= 2
            continue
        if not walk(graph, size, d, lanes, cursor, matching):
            return False
        # halving may have disconnected the graph: each component is decided independently
        parent = np.arange(size).astype(np.int32)
        trees = size
        for j in range(size):
            if trees == 1:
                break
            for e in range(j * d + 1, (j + 1) * d):
                if _join(parent, graph[j * d], graph[e]):
                    trees -= 1
        # new[i]: -1 where the component of column i is decided, else its number in the graph that is left
        new = np.empty(size, np.int32)
        left = 0
        for i in range(size):
            root = root_of(parent, i)
            if root == i:
                # 0 with probability 1/d: then the matching is this component's answer
                coin = below(d, lanes, cursor)
                if coin < 0:
                    return False
                new[i] = 0 if coin else -1
            else:
                new[i] = -1 if new[root] < 0 else 0
            if new[i] >= 0:
                new[i] = left
                left += 1
        rest = np.empty(left * (d - 1), np.int32)
        rows_left = 0
        for j in range(size):
            if new[graph[j * d]] < 0:
                drawn[row[j]] = column[graph[j * d + matching[j]]]
                continue
            at = rows_left * (d - 1)
            for t in range(d):
                if t != matching[j]:
                    rest[at] = new[graph[j * d + t]]
                    at += 1
            row[rows_left] = row[j]
            rows_left += 1
        for i in range(size):
            if new[i] >= 0:
                column[new[i]] = column[i]
        graph = rest
        size = left
        d -= 1
        if size == 0:
            return True
    for j in range(size):
        drawn[row[j]] = column[graph[j]]
    return True


_draw_one_jit = jit(_draw_one)


def draw_batch(
    matches: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    degrees: np.ndarray,
    batch: np.ndarray,
    lanes: np.ndarray,
    lane_offsets: np.ndarray,
    assignment: np.ndarray,
) -> np.ndarray:
    """Draw the assignments of some components; every edge has probability 1 / its component's degree.

    While the degree is even, keep a random half (:func:`halve`); while it is odd, the matching of
    :func:`walk` is the answer with probability 1/d, decided independently for each connected component, and is removed
    otherwise. By induction every edge has probability 1/d: for odd d, with p the probability that the matching has it,
    p / d + (1 - p) (1 - 1/d) / (d - 1) = 1 / d.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), int32, C-contiguous
    offsets, rows, columns, degrees
        Of :func:`components`.
    batch : numpy.ndarray, shape (b,), int64
        Which components.
    lanes : numpy.ndarray, shape (l,), uint32
    lane_offsets : numpy.ndarray, shape (b + 1,), int64
        Component ``batch[t]`` takes ``lanes[lane_offsets[t] : lane_offsets[t + 1]]``.
    assignment : numpy.ndarray, shape (n,), int64
        Receives the original of each row of the components.

    Returns
    -------
    numpy.ndarray, shape (b,), bool
        Where the lanes did not suffice; these rows are as before.

    Notes
    -----
    O(m d + m log m) expected time for m records, 16 bytes of memory for each edge of the largest component.
    The result depends on the graph, the order of the records and the lanes, not on the order within a row.
    """
    short = np.zeros(len(batch), np.bool_)
    local = np.zeros(len(rows), np.int32)
    cursor = np.zeros(1, np.int64)
    for t in range(len(batch)):
        start = offsets[batch[t]]
        stop = offsets[batch[t] + 1]
        m = stop - start
        d = np.int64(degrees[batch[t]])
        # records that match themselves alone, as suppressed ones do, need no lanes
        if d == 1:
            for j in range(start, stop):
                assignment[rows[j]] = matches[rows[j], 0]
            continue
        for i in range(start, stop):
            local[columns[i]] = i - start
        graph = np.empty(m * d, np.int32)
        for j in range(m):
            at = j * d
            for c in range(d):
                i = local[matches[rows[start + j], c]]
                e = at + c
                # ascending, so that the draw does not depend on the order in which a row lists its matches
                while e > at and graph[e - 1] > i:
                    graph[e] = graph[e - 1]
                    e -= 1
                graph[e] = i
        drawn = np.empty(m, np.int32)
        cursor[0] = 0
        if _draw_one(graph, m, int(d), lanes[lane_offsets[t] : lane_offsets[t + 1]], cursor, drawn):
            for j in range(m):
                assignment[rows[start + j]] = columns[start + drawn[j]]
        else:
            short[t] = True
    return short


draw_batch_jit = jit(draw_batch)
