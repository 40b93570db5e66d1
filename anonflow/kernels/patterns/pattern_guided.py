"""Pattern-guided greedy: row types that agree on what a pattern keeps, pattern after pattern."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit

_ONE = np.uint64(1)
# 2^64 over the golden ratio, for multiplicative hashing (Knuth)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def same_kept(codes: np.ndarray, t: int, u: int, qis: np.ndarray, width: int) -> bool:
    """Return whether types t and u agree on the first `width` QIs listed in `qis`."""
    same = True
    for b in range(width):
        same &= codes[qis[b], t] == codes[qis[b], u]
    return same


same_kept_jit = jit(same_kept, borrows=True)


def place_rows(
    codes: np.ndarray,
    weight: np.ndarray,
    words: np.ndarray,
    word_at: np.ndarray,
    patterns: np.ndarray,
    k: int,
    labels: np.ndarray,
    used: np.ndarray,
) -> int:
    """Give each row type to the first pattern under which its class has at least k rows.

    Parameters
    ----------
    codes : numpy.ndarray, shape (q, t), int32, C-contiguous
        The distinct rows (row types), a row per QI. -1 is a missing number.
    weight : numpy.ndarray, shape (t,), int64
        How many rows are of each type.
    words : numpy.ndarray, uint64
        A random odd word for each value of each QI, missing first.
    word_at : numpy.ndarray, shape (q,), int64
        Where the QI begins in `words`; the missing value's word is the first one.
    patterns : numpy.ndarray, shape (p,), uint64
        In order of preference; bit a is set where QI a is suppressed.
    k : int
    labels : numpy.ndarray, shape (t,), int64
        Written: the class of each type; -1 for types that no pattern could take.
    used : numpy.ndarray, shape (t,), int64
        Written: the pattern of each type, an index; -1 likewise.

    Returns
    -------
    int
        Number of classes.

    Notes
    -----
    The hash of a type under a pattern is the sum of the words of its kept values; from one pattern to the
    next only the QIs that differ are added or taken away. Types of equal hash are compared value by value before they
    become a class, so a collision costs time but changes no result. O(p t q) time at worst, O(t q) memory. Stops when
    fewer than k rows are left.
    """
    q, t = codes.shape
    active = np.arange(t)
    hashes = np.zeros(t, np.uint64)
    for a in range(q):
        for u in range(t):
            hashes[u] += words[word_at[a] + codes[a, u] + 1]
    # a hash table of twice as many places, so that a type finds a free one, or its own, after a few steps
    room = np.int64(4)
    shift = np.uint64(62)
    while room < 2 * t:
        room *= 2
        shift -= _ONE
    key = np.empty(room, np.uint64)
    first = np.empty(room, np.int64)
    rows = np.empty(room, np.int64)
    stamp = np.full(room, -1, np.int64)
    name = np.empty(room, np.int64)
    slot = np.empty(t, np.int64)
    qis = np.empty(q, np.int64)
    left = np.int64(0)
    for u in range(t):
        labels[u] = -1
        used[u] = -1
        left += weight[u]
    m = t
    classes = 0
    before = np.uint64(0)
    for p in range(len(patterns)):
        if left < k:
            break
        pattern = patterns[p]
        width = 0
        for a in range(q):
            bit = _ONE << np.uint64(a)
            if pattern & bit == np.uint64(0):
                qis[width] = a
                width += 1
            if (pattern ^ before) & bit == np.uint64(0):
                continue
            at = word_at[a] + 1
            if pattern & bit != np.uint64(0):
                for v in range(m):
                    # modulo 2^64, so that what was added is taken away exactly
                    hashes[v] -= words[at + codes[a, active[v]]]
            else:
                for v in range(m):
                    hashes[v] += words[at + codes[a, active[v]]]
        before = pattern
        most = np.int64(0)
        for v in range(m):
            u = active[v]
            at = np.int64((hashes[v] * _MIX) >> shift)
            while True:
                # what an earlier pattern left there is free: emptying the table for each pattern would take longer
                if stamp[at] != p:
                    stamp[at] = p
                    key[at] = hashes[v]
                    first[at] = u
                    rows[at] = np.int64(0)
                    name[at] = -1
                    break
                if key[at] == hashes[v] and same_kept(codes, first[at], u, qis, width):
                    break
                at = (at + 1) & (room - 1)
            rows[at] += weight[u]
            most = max(most, rows[at])
            slot[v] = at
        if most < k:
            continue
        still = 0
        for v in range(m):
            u = active[v]
            at = slot[v]
            if rows[at] >= k:
                if name[at] < 0:
                    name[at] = classes
                    classes += 1
                labels[u] = name[at]
                used[u] = p
                left -= weight[u]
            else:
                active[still] = u
                hashes[still] = hashes[v]
                still += 1
        m = still
    return classes


place_rows_jit = jit(place_rows)
