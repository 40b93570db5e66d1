"""The forest algorithm: trees of near records, cut into parts of at least k (Aggarwal et al., 2005)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.state import Index


def root_of(above: np.ndarray, i: Index) -> Index:
    """Return the representative of a component, with its path halved."""
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


root_of_jit = jit(root_of, borrows=True)


def grow(near: np.ndarray, k: int, to: np.ndarray) -> None:
    """Join records into trees of at least k, each by an edge to its nearest neighbour outside its tree.

    Parameters
    ----------
    near : numpy.ndarray, shape (n, m), int32
        The nearest records of each, itself first; m is at least k, or n.
    k : int
        At most n.
    to : numpy.ndarray, shape (n,), int64
        Written: where each record's edge leads, -1 for the one record of each tree that has none. O(n k).
    """
    n = len(to)
    above = np.arange(n)
    head = np.arange(n)  # for each component, its record without an edge
    size = np.ones(n, np.int64)
    for i in range(n):
        to[i] = -1
    for i in range(n):
        root = root_of(above, i)
        while size[root] < k:
            u = head[root]
            # fewer than k records are in the tree, so one of the k nearest lies outside
            for s in range(near.shape[1]):
                v = near[u, s]
                other_root = root_of(above, v)
                if other_root != root:
                    to[u] = v
                    # the smaller tree under the larger one: paths to the roots stay short
                    if size[root] > size[other_root]:
                        head[root] = head[other_root]
                        size[root] += size[other_root]
                        above[other_root] = root
                    else:
                        size[other_root] += size[root]
                        above[root] = other_root
                    break
            root = root_of(above, i)


grow_jit = jit(grow)


def link(first: np.ndarray, after: np.ndarray, ends: np.ndarray, edge: int, u: int, v: int) -> None:
    """Add the edge `edge` between u and v: its halves are 2 edge and 2 edge + 1."""
    ends[2 * edge] = v
    after[2 * edge] = first[u]
    first[u] = 2 * edge
    ends[2 * edge + 1] = u
    after[2 * edge + 1] = first[v]
    first[v] = 2 * edge + 1


link_jit = jit(link, borrows=True)


def unlink(first: np.ndarray, after: np.ndarray, ends: np.ndarray, u: int, v: int) -> None:
    """Remove v from the list of u."""
    half = first[u]
    before = -1
    while ends[half] != v:
        before = half
        half = after[half]
    if before < 0:
        first[u] = after[half]
    else:
        after[before] = after[half]


unlink_jit = jit(unlink, borrows=True)


def rehang(first: np.ndarray, after: np.ndarray, ends: np.ndarray, u: int, copy: int, v: int) -> None:
    """Replace u by `copy` in the edge between u and v."""
    half = first[u]
    while ends[half] != v:
        half = after[half]
    unlink(first, after, ends, u, v)
    after[half] = first[copy]
    first[copy] = half
    half = first[v]
    while ends[half] != u:
        half = after[half]
    ends[half] = copy


rehang_jit = jit(rehang, borrows=True)


def largest(first: np.ndarray, after: np.ndarray, ends: np.ndarray, size: np.ndarray, u: int) -> int:
    """Return the vertex in the list of u with the largest subtree, of equal ones the first; -1 if the list is empty."""
    child = -1
    half = first[u]
    while half >= 0:
        v = ends[half]
        if child < 0 or size[v] > size[child] or (size[v] == size[child] and v < child):
            child = v
        half = after[half]
    return child


largest_jit = jit(largest, borrows=True)


def split(to: np.ndarray, k: int, labels: np.ndarray) -> int:
    """Cut trees into parts of at least k and about max(2k - 1, 3k - 5) records; return the number of parts.

    Parameters
    ----------
    to : numpy.ndarray, shape (n,), int64
        Edges as :func:`grow` makes them.
    k : int
    labels : numpy.ndarray, shape (n,), int64
        Written.

    Returns
    -------
    int
        O(s) time for each cut of a tree of s records: O(s^2 / k) for the tree.

    Notes
    -----
    A Steiner copy is a vertex without a record; it connects subtrees whose root goes to another part. A part under such
    a vertex may have up to 3k - 3 records: its subtrees, all smaller than k, cannot always be distributed (three of two
    records for k = 3). All other parts have at most max(2k - 1, 3k - 5).
    """
    n = len(to)
    most = max(2 * k - 1, 3 * k - 5)
    room = 2 * n + 2
    first = np.full(room, -1, np.int64)
    after = np.full(2 * n, -1, np.int64)
    ends = np.full(2 * n, -1, np.int64)
    record = np.full(room, -1, np.int64)  # -1: a Steiner copy
    parent = np.empty(room, np.int64)
    size = np.empty(room, np.int64)
    queue = np.empty(room, np.int64)
    todo = np.empty(room, np.int64)
    vertices = n
    edges = 0
    waiting = 0
    for i in range(n):
        record[i] = i
        if to[i] >= 0:
            link(first, after, ends, edges, i, to[i])
            edges += 1
        else:
            todo[waiting] = i
            waiting += 1
    parts = 0
    while waiting > 0:
        waiting -= 1
        root = todo[waiting]
        # breadth first: parents, then sizes from the leaves
        queue[0] = root
        parent[root] = -1
        end = 1
        at = 0
        while at < end:
            u = queue[at]
            at += 1
            half = first[u]
            while half >= 0:
                v = ends[half]
                if v != parent[u]:
                    parent[v] = u
                    queue[end] = v
                    end += 1
                half = after[half]
        for s in range(end):
            size[queue[s]] = 1 if record[queue[s]] >= 0 else 0
        for s in range(end - 1, 0, -1):
            size[parent[queue[s]]] += size[queue[s]]
        total = size[root]
        if total <= most:
            for s in range(end):
                if record[queue[s]] >= 0:
                    labels[record[queue[s]]] = parts
            parts += 1
            continue
        while True:
            child = largest(first, after, ends, size, root)
            most_below = size[child]
            if total - most_below >= k - 1:
                break
            size[root] = total - most_below
            size[child] = total
            root = child
        if most_below >= k and total - most_below >= k:
            unlink(first, after, ends, root, child)
            unlink(first, after, ends, child, root)
            todo[waiting] = root
            todo[waiting + 1] = child
            waiting += 2
            continue
        copy = vertices
        vertices += 1
        record[copy] = -1
        if most_below >= k:
            # the rest lacks one record: the child goes there, and a copy keeps the subtrees below it
            half = first[child]
            while half >= 0:
                v = ends[half]
                half = after[half]
                if v != root:
                    rehang(first, after, ends, child, copy, v)
            todo[waiting] = root
            todo[waiting + 1] = copy
            waiting += 2
            continue
        # the largest subtrees are collected until they have k - 1 records, or k where the root has none itself
        enough = k - 1 if record[root] >= 0 else k
        copy_size = 0
        while copy_size < enough:
            child = largest(first, after, ends, size, root)
            copy_size += size[child]
            rehang(first, after, ends, root, copy, child)
        if total - copy_size < k:
            # under a vertex without a record this can fail: the part is not cut and has at most 3k - 3 records
            for s in range(end):
                if record[queue[s]] >= 0:
                    labels[record[queue[s]]] = parts
            parts += 1
            continue
        if copy_size == k - 1:
            # the root's record goes with them: the remaining subtrees stay under a vertex without a record
            record[copy] = record[root]
            record[root] = -1
        todo[waiting] = root
        todo[waiting + 1] = copy
        waiting += 2
    return parts


split_jit = jit(split)
