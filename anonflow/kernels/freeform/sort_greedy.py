"""One assignment from the sorted list of all edges (Doka 2015, section 6, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.greedy import augment
from anonflow.kernels.jit import jit


def sorted_assignment(
    costs: np.ndarray,
    edges: np.ndarray,
    order: np.ndarray,
    assigned: np.ndarray,
    level: int,
    chosen: np.ndarray,
    holder: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Take every edge whose ends are both free, then match the originals that are left over.

    Parameters
    ----------
    costs : numpy.ndarray, shape (n, n), float64
        ``costs[i, j]``: infinite for edges used before.
    edges : numpy.ndarray, shape (n * n,), int64
        ``i * n + j`` by ascending cost.
    order : numpy.ndarray, shape (n,), int64
        The originals in lexicographic order.
    assigned : numpy.ndarray, shape (n, k), int32
        ``assigned[i, :level]`` are the records that original i was assigned before.
    level : int
    chosen, holder : numpy.ndarray, shape (n,), int64
        Written: the record of each original, the original of each record.
    facts : numpy.ndarray, shape (2,), int64
        Added to: dead ends resolved by substitution, and by an augmenting path.

    Notes
    -----
    O(n^2), and O(n^2) more for each dead end.
    """
    n = len(order)
    chosen[:] = -1
    holder[:] = -1
    for e in range(len(edges)):
        i = edges[e] // n
        j = edges[e] % n
        if chosen[i] < 0 and holder[j] < 0 and costs[i, j] < np.inf:
            chosen[i] = j
            holder[j] = i
    reached = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    for v in range(n):
        i = order[v]
        if chosen[i] >= 0:
            continue
        # The nearest neighbour in the order, predecessors first, whose record i may take and that finds
        # another one for itself.
        for step in range(2, 2 * n):
            u = v - step // 2 if step % 2 == 0 else v + step // 2
            if u < 0 or u >= n:
                continue
            y = order[u]
            if chosen[y] < 0 or costs[i, chosen[y]] == np.inf:
                continue
            at = -1
            least = np.inf
            for m in range(n):
                if holder[m] < 0 and costs[y, m] < least:
                    least = costs[y, m]
                    at = m
            if at >= 0:
                facts[0] += 1
                chosen[i] = chosen[y]
                holder[chosen[i]] = i
                chosen[y] = at
                holder[at] = y
                break
        if chosen[i] < 0:
            facts[1] += 1
            augment(assigned, level, i, chosen, holder, reached, queue)


sorted_assignment_jit = jit(sorted_assignment)
