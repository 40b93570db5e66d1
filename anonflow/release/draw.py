"""The draw: the original whose other columns each generalized record is published with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from anonflow.errors import ParameterError, VerificationError
from anonflow.hierarchy.wording import plural
from anonflow.kernels.draw import components_jit, draw_batch_jit, halve_jit, permute_batch_jit, walk_jit
from anonflow.release.randomness import RandomWords
from anonflow.table.records import matches_among, places_in
from anonflow.threads import in_threads

BUCKET = 1 << 17
"""Rows that lie in a bucket, on average at most; more rows than that are dealt to several buckets."""

_BATCH = 1 << 21  # lanes made at a time: 8 MiB
# Rows that are dealt at a time. Streams are named after these blocks: another number is another shuffle.
_DEALT = 1 << 20


def draw_assignment(
    matches: np.ndarray, words: RandomWords, positions: np.ndarray | None = None
) -> np.ndarray:
    """Draw a perfect matching that has every match with probability exactly 1/k.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer
        ``matches[j]`` lists the originals of generalized record j, padded with -1. Every connected component
        is regular: all its records, on both sides, have the same number of matches (k; one if suppressed).
    words : RandomWords
    positions : numpy.ndarray, shape (n,), integer, optional
        Table positions of the records, all different, where `matches` is about a part of a table; 0..n-1
        without it.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        ``assignment[j]`` is the original drawn for generalized record j; each original once.

    Raises
    ------
    VerificationError
        If the graph is not regular, or an edge stands twice (how many records).
    ParameterError
        If `matches` or `positions` has another shape, or positions repeat.

    Notes
    -----
    The even degrees are halved by Euler splits, the odd ones lose a random-walk matching (Goel, Kapralov,
    Khanna, SIAM J. Comput. 42, 2013) that is the answer with probability 1/d: O(nk + n log n) expected time,
    about 16 nk bytes for a graph of one component. Components are independent of each other: each has a
    stream of words of its own, keyed by the smallest table position in it, so the result does not depend on
    how a table was cut, as long as no component was.
    """
    graph = _int32_rows(matches)
    n = len(graph)
    if n == 0:
        return np.empty(0, np.int64)
    order = _order(positions, n)
    if order is not None:
        rank = places_in(order, n, np.int32)
        is_record = (graph >= 0) & (graph < n)
        graph = np.ascontiguousarray(np.where(is_record, rank[np.where(is_record, graph, 0)], graph)[order])
    faulty, offsets, rows, columns, degrees = components_jit(graph)
    if faulty.any():
        raise VerificationError(
            f"the matches of {plural(int(faulty.sum()), 'record')} are not regular; "
            "every record needs equally many matches on both sides to be drawn from"
        )
    # a stream is named after the component's smallest record: the draw of a component does not depend on the others
    smallest = columns[offsets[:-1]]
    if positions is not None:
        at = np.asarray(positions)
        smallest = (at if order is None else at[order])[smallest]
    sizes = np.diff(offsets)
    expected = _lanes_of_draw(sizes, degrees)
    assignment = np.empty(n, np.int64)

    def draw(batch: np.ndarray, lanes: np.ndarray, lane_offsets: np.ndarray) -> np.ndarray:
        return np.asarray(
            draw_batch_jit(graph, offsets, rows, columns, degrees, batch, lanes, lane_offsets, assignment)
        )

    _in_batches(draw, "assignment", smallest, expected, words)
    if order is None:
        return assignment
    drawn = np.empty(n, np.int64)
    drawn[order] = order[assignment]
    return drawn


def draw_by_parts(matches: np.ndarray, words: RandomWords, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Draw what :func:`draw_assignment` draws, for parts of a large table side by side, in threads.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer
    words : RandomWords
    parts : sequence of numpy.ndarray, integer
        Records, no one twice, whose matches are among them: partitions. Where that is not so, all records are drawn together.

    Returns
    -------
    numpy.ndarray, shape (n,), int64

    Raises
    ------
    VerificationError
        If the graph is not regular, or an edge stands twice (how many records).

    Notes
    -----
    A component's stream is named by its smallest position, so the parts do not matter for the result. Neighbours are drawn together, up to about
    ``BUCKET`` records: a core looks at their lists in its cache, where those of a whole table are read from all over the memory.
    """
    ends = np.cumsum([len(part) for part in parts])
    starts = np.flatnonzero(np.diff((ends - 1) // BUCKET, prepend=-1)).tolist()
    if len(starts) < 2:
        return draw_assignment(matches, words)
    groups = [np.sort(np.concatenate(parts[a:b])) for a, b in pairwise([*starts, len(parts)])]
    n, drawn = len(matches), np.empty(len(matches), np.int64)
    place = places_in(np.concatenate(groups), n + 1, np.int32)
    # records in no part, such as suppressed ones
    groups.append(np.flatnonzero(place[:n] < 0))
    place[groups[-1]] = np.arange(n - len(groups[-1]), n)
    place[n] = n  # of what is no record

    def draw(first: int, at: np.ndarray) -> bool:
        listed = matches[at]
        local = np.where(listed < 0, listed, place[np.minimum(listed, n)] - first)
        # matches leave the part: its components are not whole, and the table is drawn from at once
        if ((listed >= 0) & ((local < 0) | (local >= len(at)))).any():
            return False
        drawn[at] = at[draw_assignment(local, words, at)]
        return True

    firsts = np.cumsum([0, *map(len, groups)])[:-1].tolist()
    try:
        apart = in_threads(lambda group: draw(*group), zip(firsts, groups, strict=True))
    except VerificationError:  # says how many records of one part
        apart = [False]
    return drawn if all(apart) else draw_assignment(matches, words)


def draws_of_graph(matches: np.ndarray, draws: int, secret: bytes, block: int) -> Iterator[np.ndarray]:
    """Draw many times from one graph, independently, for tests that are never published.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer
        As :func:`draw_assignment` takes them.
    draws : int
    secret : bytes
        At least 16; of these draws alone, never of one that is published.
    block : int
        How many are drawn at a time, which the draws depend on.

    Yields
    ------
    numpy.ndarray, shape (some draws, n), int64
        Assignments.

    Notes
    -----
    Many copies of the graph are drawn from at once; they are components apart, so their draws are independent.
    """
    n, width = matches.shape
    for start in range(0, draws, block):
        copies = min(block, draws - start)
        # copies of the graph lie side by side and are components of one: one call draws many times
        shift = np.arange(copies)[:, None, None] * n
        stacked = np.where(matches >= 0, matches + shift, -1).reshape(copies * n, width)
        drawn = draw_assignment(stacked, RandomWords(secret, step=start))
        yield drawn.reshape(copies, n) - shift[:, :, 0]


def permute_classes(
    labels: np.ndarray, words: RandomWords, positions: np.ndarray | None = None
) -> np.ndarray:
    """Permute the members of every class uniformly among themselves.

    Parameters
    ----------
    labels : numpy.ndarray, shape (n,), integer
        Equal labels, one class.
    words : RandomWords
    positions : numpy.ndarray, shape (n,), integer, optional
        Table positions of the records, as in :func:`draw_assignment`.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        ``assignment[j]`` is the original drawn for generalized record j.

    Raises
    ------
    ParameterError
        If `positions` has another shape or repeats.

    Notes
    -----
    O(n log n). Classes are independent: each has a stream keyed by its smallest table position.
    """
    n = len(labels)
    if n == 0:
        return np.empty(0, np.int64)
    order = _order(positions, n)
    at = np.arange(n) if order is None else order
    _, member = np.unique(np.asarray(labels)[at], return_inverse=True)
    by_class = np.argsort(member, kind="stable")
    members = at[by_class].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(member))]).astype(np.int64)
    smallest = members[offsets[:-1]]
    return _permuted(
        offsets, members, smallest if positions is None else np.asarray(positions)[smallest], words
    )


def draw_permutation(n: int, words: RandomWords) -> np.ndarray:
    """Return a uniform permutation of n rows for the shuffle, shape (n,), int64.

    Notes
    -----
    Rows are dealt to buckets, each row to each of them with the same probability, and every bucket is permuted
    on its own (Rao, Sankhya A 23, 1961; Sandelius, J. Royal Stat. Soc. B 24, 1962): every permutation of all
    rows has the same probability, and no more than a bucket has to be at hand. Up to ``BUCKET`` rows are one bucket.
    """
    buckets = bucket_count(n)
    if buckets == 1:
        members = np.arange(n, dtype=np.int64)
        return permute_buckets(members, np.array([0, n], np.int64), np.zeros(1, np.int64), words)
    # dealt to buckets at random and then permuted within: uniform, and no bucket needs the others in memory
    dealt = np.concatenate(list(deal(n, words)))
    members = np.argsort(dealt, kind="stable").astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(dealt, minlength=buckets))]).astype(np.int64)
    return permute_buckets(members, offsets, np.arange(buckets, dtype=np.int64), words)


def bucket_count(n: int) -> int:
    """Return the number of buckets that n rows are dealt to: a power of two."""
    return 1 << max(0, -(-n // BUCKET) - 1).bit_length()


def deal(n: int, words: RandomWords) -> Iterator[np.ndarray]:
    """Yield the bucket of every row, in blocks of rows.

    Yields
    ------
    numpy.ndarray, uint16
        Independent and uniform over :func:`bucket_count` buckets; together n.
    """
    # the upper bits of a lane are the bucket: of a power of two, each is equally probable
    shift = 33 - bucket_count(n).bit_length()
    for number, start in enumerate(range(0, n, _DEALT)):
        count = min(_DEALT, n - start)
        lanes = words.lanes("deal", number, count)[:count].astype(np.uint64)
        # rows are counted in int32, so there are at most 2^14 buckets
        yield (lanes >> np.uint64(shift)).astype(np.uint16)


def permute_buckets(
    members: np.ndarray, offsets: np.ndarray, buckets: np.ndarray, words: RandomWords
) -> np.ndarray:
    """Permute the rows of buckets, each on its own.

    Parameters
    ----------
    members : numpy.ndarray, shape (m,), int64
        The rows of one bucket after the other, ascending in each.
    offsets : numpy.ndarray, shape (s + 1,), int64
    buckets : numpy.ndarray, shape (s,), int64
        Their numbers.
    words : RandomWords

    Returns
    -------
    numpy.ndarray, shape (m,), int64
        The same rows, permuted within buckets. At each place of a bucket is one of its rows.
    """
    at = _permuted(offsets, np.arange(len(members), dtype=np.int64), buckets, words, "shuffle")
    return np.asarray(members[at], np.int64)


def _permuted(
    offsets: np.ndarray, members: np.ndarray, keys: np.ndarray, words: RandomWords, purpose: str = "class"
) -> np.ndarray:
    assignment = np.empty(len(members), np.int64)
    sizes = np.diff(offsets)
    # a lane a choice; rejections are rare, and more are there for large classes
    expected = np.where(sizes > 1, sizes + 8 * (sizes >> 10), 0)

    def permute(batch: np.ndarray, lanes: np.ndarray, lane_offsets: np.ndarray) -> np.ndarray:
        return np.asarray(permute_batch_jit(offsets, members, batch, lanes, lane_offsets, assignment))

    _in_batches(permute, purpose, keys, expected, words)
    return assignment


def _in_batches(
    run: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    purpose: str,
    keys: np.ndarray,
    expected: np.ndarray,
    words: RandomWords,
) -> None:
    """Run all items, each with lanes of its own stream; items with too few lanes run again with more.

    The longer stream starts with the same lanes, so a draw depends on the endless stream alone, not on the number of
    lanes at first. Threads run batches, each on items of its own.
    """
    expected = expected + expected % 2  # whole words
    ends = np.cumsum(expected)
    todo = np.split(
        np.arange(len(keys)), np.unique(np.searchsorted(ends, np.arange(_BATCH, ends[-1], _BATCH)) + 1)
    )
    names = keys.tolist()
    counts = expected.tolist()
    begun: dict[int, np.ndarray] = {}

    def run_batch(batch: np.ndarray) -> np.ndarray:
        items = batch.tolist()
        lane_offsets = np.concatenate([[0], np.cumsum([counts[t] for t in items])]).astype(np.int64)
        lanes = np.empty(int(lane_offsets[-1]), np.uint32)
        streams = [lanes[start:stop] for start, stop in pairwise(lane_offsets.tolist())]
        for t, stream in zip(items, streams, strict=True):
            if counts[t]:
                stream[:] = words.lanes(purpose, names[t], counts[t], begun.pop(t, None))
        short = run(batch, lanes, lane_offsets)
        for u in np.flatnonzero(short).tolist():
            # the stream goes on where it ended: fresh lanes would favour results that need few
            begun[items[u]] = streams[u].copy()
            # doubled, so that an unlucky item runs a few times at most
            counts[items[u]] = 2 * counts[items[u]] + 64
        return batch[short]

    while todo:
        todo = [batch for batch in in_threads(run_batch, todo) if len(batch)]


def _lanes_of_draw(sizes: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Return about how many 32-bit lanes a draw takes for components of some sizes and degrees, with a margin."""
    lanes = np.zeros(len(sizes))
    degree = degrees.astype(np.int64)
    while (degree > 1).any():
        even = (degree % 2 == 0) & (degree > 1)
        odd = (degree % 2 == 1) & (degree > 1)
        # pairings on both sides and a coin for each closed walk; the steps of random walks: too few only cost time
        choices = np.array([_pairing_lanes(d) for d in range(int(degree.max()) + 1)])[degree]
        lanes += np.where(even, (2 * choices + 0.2) * sizes + 8, 0)
        lanes += np.where(odd, (np.log(np.maximum(sizes, 1)) + 5) * sizes + 16, 0)
        degree = np.where(even, degree // 2, np.where(odd, degree - 1, 1))
    return lanes.astype(np.int64)


def _pairing_lanes(d: int) -> int:
    """Return lanes that the pairing of d edges takes."""
    lanes, size = 0, d
    while size > 2:
        product = 1
        while size > 2 and product * (size - 1) <= 1 << 31:
            product *= size - 1
            size -= 2
        lanes += 1
    return lanes


def _regular(matches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matches as rows of int32, and the degree of each component; a VerificationError if one has none."""
    graph = _int32_rows(matches)
    faulty, _, _, _, degrees = components_jit(graph)
    if faulty.any():
        raise VerificationError(f"the matches of {plural(int(faulty.sum()), 'record')} are not regular")
    return graph, degrees


def _int32_rows(matches: np.ndarray) -> np.ndarray:
    if matches.ndim != 2 or not np.issubdtype(matches.dtype, np.integer):
        raise ParameterError("matches must be a matrix of whole numbers, one row for each generalized record")
    return np.ascontiguousarray(matches, dtype=np.int32)


def _order(positions: np.ndarray | None, n: int) -> np.ndarray | None:
    """Return the records in the table's order, or None where they are."""
    if positions is None:
        return None
    at = np.asarray(positions)
    if at.shape != (n,) or not np.issubdtype(at.dtype, np.integer) or (n and at.min() < 0):
        raise ParameterError(f"positions must be {n} whole numbers of at least 0, one for each record")
    order = np.argsort(at, kind="stable")
    step = np.diff(at[order])
    if (step == 0).any():
        raise ParameterError("positions must all be different")
    return None if (np.diff(at) > 0).all() else order


def decompose(matches: np.ndarray) -> np.ndarray:
    """Decompose a k-regular graph into k disjoint assignments: every edge is in exactly one of them.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer
        As in :func:`draw_assignment`; all components but those of suppressed records have degree k.

    Returns
    -------
    numpy.ndarray, shape (k, n), int32
        ``result[s, j]`` is the original of generalized record j in assignment s. A suppressed record is its
        own in each.

    Raises
    ------
    VerificationError
        If the graph is not regular.
    ParameterError
        If components have different degrees: no number of assignments has every edge once.

    Notes
    -----
    The same graph gives the same assignments. They prove k-regularity and are not a draw: the published assignment must
    be drawn independently for every component (:func:`draw_assignment`), since one true match of a complete assignment
    would reveal all of it. O(nk log k + n log n) expected time.
    """
    graph, degrees = _regular(matches)
    kinds = np.unique(degrees[degrees > 1])
    if len(kinds) > 1:
        raise ParameterError(
            f"components have {len(kinds)} different numbers of matches; take each on its own"
        )
    k = int(kinds[0]) if len(kinds) else 1
    result = np.repeat(graph[:, :1].T, k, axis=0)
    drawn = np.flatnonzero(graph[:, 1] >= 0) if k > 1 else np.empty(0, np.intp)
    if not len(drawn):
        return result
    originals = np.unique(graph[drawn, :k])
    place = places_in(originals, len(graph), np.int32)
    flat = np.sort(place[graph[drawn, :k]], axis=1).ravel()
    parts = _assignments(flat, len(drawn), k, RandomWords(0, step=0), [0])
    result[:, drawn] = originals[np.array(parts)].astype(np.int32)
    return result


def assignments(matches: np.ndarray) -> np.ndarray:
    """Decompose matches into disjoint assignments, where some components have more matches than others.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer
        As in :func:`draw_assignment`; ``matches[j, 0] == j``.

    Returns
    -------
    numpy.ndarray, shape (d, n), int32
        ``result[s, j]`` is the original of generalized record j in assignment s; every match is in exactly one.
        d is the largest number of matches, k as a rule. In components that have fewer (all but one partition of
        an odd size of a reciprocal graph) the last ones are -1. A suppressed record is its own in each.

    Raises
    ------
    VerificationError
        If the graph is not regular.

    Notes
    -----
    As :func:`decompose`, for each degree on its own.
    """
    graph, degrees = _regular(matches)
    kinds = [int(degree) for degree in np.unique(degrees) if degree > 1]
    if len(kinds) < 2:
        return decompose(graph)
    degree_of = (graph >= 0).sum(axis=1)
    apart = np.full((max(kinds), len(graph)), -1, np.int32)
    apart[:, degree_of == 1] = np.flatnonzero(degree_of == 1)
    for degree in kinds:
        at = np.flatnonzero(degree_of == degree)
        apart[:degree, at] = at[decompose(matches_among(graph[:, :degree], at))]
    return apart


def _assignments(
    graph: np.ndarray, m: int, d: int, words: RandomWords, serial: list[int]
) -> list[np.ndarray]:
    """Return the d assignments of a flat d-regular graph; `words` only break symmetries; they are not secret."""
    if d == 1:
        return [graph]
    serial[0] += 1
    key = serial[0]
    if d % 2 == 0:
        half = np.empty(m * (d // 2), np.int32)

        def split(lanes: np.ndarray) -> bool:
            return bool(halve_jit(graph, m, d, lanes, np.zeros(1, np.int64), half))

        _until_enough(split, words, key, (2 * _pairing_lanes(d) + 1) * m)
        # `halve` reorders the graph: edge p of the half is one of its edges 2p and 2p + 1
        pairs = graph.reshape(-1, 2)
        rest = np.where(pairs[:, 0] == half, pairs[:, 1], pairs[:, 0])
        return _assignments(half, m, d // 2, words, serial) + _assignments(rest, m, d // 2, words, serial)
    matching = np.empty(m, np.int32)

    def match(lanes: np.ndarray) -> bool:
        return bool(walk_jit(graph, m, d, lanes, np.zeros(1, np.int64), matching))

    _until_enough(match, words, key, math.ceil((math.log(m) + 5) * m) + 16)
    edges = graph.reshape(m, d)
    in_matching = np.arange(d) == matching[:, None]
    return [edges[in_matching], *_assignments(edges[~in_matching], m, d - 1, words, serial)]


def _until_enough(run: Callable[[np.ndarray], bool], words: RandomWords, key: int, count: int) -> None:
    while not run(words.lanes("decomposition", key, count)):
        count *= 2
