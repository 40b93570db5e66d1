"""A tree over the values: nodes in preorder, leaves in depth-first order, every node a run of leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anonflow.errors import HierarchyError, ParameterError
from anonflow.hierarchy.sources import MAX_NODES, ROOT
from anonflow.hierarchy.wording import fail, plural

__all__ = ["Ints", "Tree"]

Ints = npt.NDArray[np.int32]

MAX_CELLS = 200_000_000


class Tree:
    """A value generalization hierarchy: a tree whose leaves are the values of a quasi-identifier.

    Parameters
    ----------
    labels : sequence of str, length m
        One label a node, in any order; children keep the order in which they are given.
    parents : sequence of int, length m
        For each node the position of its parent in `labels`; -1 for the root.

    Attributes
    ----------
    labels : tuple of str, length m
        Labels of the nodes in preorder; node 0 is the root.
    parent : ndarray of int32, shape (m,)
        Node id of the parent, -1 for the root.
    first, last : ndarray of int32, shape (m,)
        The run of leaves below a node, both ends included.
    height : ndarray of int32, shape (m,)
        Edges on the longest path down to a leaf; 0 for a leaf.
    depth : ndarray of int32, shape (m,)
        Edges up to the root.
    leaf_node : ndarray of int32, shape (n_leaves,)
        Node id of each leaf.
    leaves : tuple of str, length n_leaves
        Labels of the leaves in depth-first order.
    n_leaves : int
        Number of leaves.

    Raises
    ------
    HierarchyError
        If the nodes are no tree: none, labels that are no text or not unique, no root or two, a parent
        that does not exist, a cycle, a root without children, `*` for a node that is not the root.

    Notes
    -----
    Invariants: ``parent[v] < v`` for every node but the root; the leaves below a node are the run
    ``first[v] .. last[v]``; labels are unique, so that a published label names one node. A label for
    a leaf and an inner node is therefore refused, but for one repeated in neighbouring columns of a
    CSV row, which is one node.

    A node with a single child has the run of its child. Both stay, so that either can be named (in a
    boundary, in a release that is read back), but `lca`, `closure` and with them labels and costs use
    the lowest node of a run.

    Arrays are read-only. Building takes O(m) time and memory; the table behind `lca`, made at its first
    use, O(n log n), which is 7 MB for 100,000 leaves.
    """

    labels: tuple[str, ...]
    leaves: tuple[str, ...]
    n_leaves: int
    parent: Ints
    first: Ints
    last: Ints
    height: Ints
    depth: Ints
    leaf_node: Ints

    def __init__(self, labels: Sequence[str], parents: Sequence[int]) -> None:
        labels, above = list(labels), [int(p) for p in parents]
        order = _preorder(labels, above)
        m = len(order)
        rank = [0] * m
        for new, old in enumerate(order):
            rank[old] = new
        parent = [-1] + [rank[above[old]] for old in order[1:]]
        depth = [0] * m
        has_child = bytearray(m)
        for node in range(1, m):
            depth[node] = depth[parent[node]] + 1
            has_child[parent[node]] = 1
        leaf_node = [node for node in range(m) if not has_child[node]]
        first, last, height = [m] * m, [-1] * m, [0] * m
        for leaf, node in enumerate(leaf_node):
            first[node] = last[node] = leaf
        for node in range(m - 1, 0, -1):
            up = parent[node]
            first[up] = min(first[up], first[node])
            last[up] = max(last[up], last[node])
            height[up] = max(height[up], height[node] + 1)
        self.labels = tuple(labels[old] for old in order)
        self.leaves = tuple(self.labels[node] for node in leaf_node)
        self.n_leaves = len(leaf_node)
        self.parent, self.first, self.last = _fixed(parent), _fixed(first), _fixed(last)
        self.height, self.depth, self.leaf_node = _fixed(height), _fixed(depth), _fixed(leaf_node)
        self._nodes: dict[str, int] = {label: node for node, label in enumerate(self.labels)}
        self._leaf: dict[str, int] | None = None
        self._minima: list[Ints] | None = None
        self._children: tuple[Ints, Ints] | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes, m."""
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self.labels == other.labels and bool(np.array_equal(self.parent, other.parent))

    def __hash__(self) -> int:
        return hash(self.labels)

    def node(self, label: str) -> int:
        """Return node id of `label`, in O(1).

        Raises
        ------
        HierarchyError
            If no node has this label.
        """
        node = self._nodes.get(label)
        if node is None:
            raise HierarchyError("a label is no node of the hierarchy; use one of its labels")
        return node

    def leaf_index(self, label: str) -> int:
        """Position of the leaf `label` in depth-first order, in O(1).

        Raises
        ------
        HierarchyError
            If no leaf has this label.
        """
        index = self._leaf_indexes().get(label)
        if index is None:
            raise HierarchyError("a value is no leaf of the hierarchy; add it, or correct the value")
        return index

    def leaf_indexes(self, values: Iterable[Any]) -> Ints:
        """Position of the leaf of each value; -1 for a value that is no leaf.

        Parameters
        ----------
        values : iterable of str, length n

        Returns
        -------
        ndarray of int32, shape (n,)
        """
        known = self._leaf_indexes()
        return np.fromiter(
            (known.get(value, -1) if isinstance(value, str) else -1 for value in values), dtype=np.int32
        )

    def children(self, node: int) -> Ints:
        """Return node ids of the children of `node`, in order; empty for a leaf."""
        if self._children is None:
            start = np.zeros(self.n_nodes + 1, dtype=np.int64)
            np.cumsum(np.bincount(self.parent[1:], minlength=self.n_nodes), out=start[1:])
            ids = (np.argsort(self.parent[1:], kind="stable") + 1).astype(np.int32)
            ids.setflags(write=False)
            self._children = ids, start.astype(np.int32)
        ids, offsets = self._children
        return ids[offsets[node] : offsets[node + 1]]

    def ancestors(self, leaf: int) -> Ints:
        """Return node ids on the path from leaf number `leaf` to the root, both included."""
        path = []
        node = int(self.leaf_node[leaf])
        while node >= 0:
            path.append(node)
            node = int(self.parent[node])
        return np.array(path, dtype=np.int32)

    def paths(self) -> Ints:
        """Return ancestors of all leaves, level by level.

        Returns
        -------
        ndarray of int32, shape (H + 1, n_leaves), H = greatest depth of a leaf
            Row 0 holds the leaves' node ids, each further row the parents of the row before it; the
            root repeats where a leaf is less deep.

        Raises
        ------
        HierarchyError
            If the tree is so deep that the result would have more than 200 million cells.
        """
        levels = int(self.height[0]) + 1
        self._check_cells(levels)
        rows = np.empty((levels, self.n_leaves), dtype=np.int32)
        rows[0] = self.leaf_node
        for level in range(1, levels):
            rows[level] = np.maximum(self.parent[rows[level - 1]], 0)
        return rows

    def at_level(self, level: int) -> Ints:
        """Return the highest node of at most a height above each leaf, the leaf itself at level 0.

        Parameters
        ----------
        level : int
            A branch that is shorter than the others stays at its values for longer.

        Returns
        -------
        ndarray of int32, shape (n_leaves,)
            Node ids, in O(level n_leaves).
        """
        node = self.leaf_node
        for height in range(1, level + 1):
            above = self.parent[node]
            # the heights along a path grow, so at most one ancestor is added
            node = np.where((above >= 0) & (self.height[above] <= height), above, node)
        return node

    def lca(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> Ints:
        """Return lowest node that covers each run of leaves, in O(1) a run.

        Parameters
        ----------
        lo, hi : array of int, any equal shapes
            Ends of the runs, both included, ``0 <= lo <= hi < n_leaves``.

        Returns
        -------
        ndarray of int32, the shape of `lo` and `hi`
            Node ids.

        Raises
        ------
        ParameterError
            If a run is empty or reaches beyond the leaves.

        Notes
        -----
        In preorder an ancestor comes before its descendants. So the lowest node of a run is the smallest
        id among the lowest nodes of its neighbouring pairs of leaves: a range minimum, which two
        overlapping blocks of a sparse table answer (Bender and Farach-Colton, 2000).
        """
        lo, hi = np.broadcast_arrays(np.asarray(lo), np.asarray(hi))
        if lo.size and (lo.min() < 0 or hi.max() >= self.n_leaves or bool(np.any(lo > hi))):
            raise ParameterError("a run of leaves is empty or reaches beyond the hierarchy")
        table = self._range_minima()
        node = self.leaf_node[lo]
        wide = lo < hi
        if not wide.any():
            return node
        start, stop = lo[wide].astype(np.int64), hi[wide].astype(np.int64)
        # The exponent of a double is the exact floor of log2 for every integer below 2**53.
        level = np.frexp((stop - start).astype(np.float64))[1] - 1
        answer = np.empty(start.size, dtype=np.int32)
        for step in np.unique(level):
            at_step = level == step
            row = table[step]
            answer[at_step] = np.minimum(row[start[at_step]], row[stop[at_step] - (1 << int(step))])
        if node.ndim == 0:
            return answer.reshape(())
        node[wide] = answer
        return node

    def closure(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> tuple[Ints, Ints]:
        """Widen each run of leaves to the run of the lowest node that covers it, in O(1) a run.

        Parameters
        ----------
        lo, hi : array of int, any equal shapes
            Ends of the runs, both included.

        Returns
        -------
        (ndarray of int32, ndarray of int32)
            Ends of the widened runs.

        Raises
        ------
        ParameterError
            If a run is empty or reaches beyond the leaves.
        """
        node = self.lca(lo, hi)
        return self.first[node], self.last[node]

    def _check_cells(self, levels: int) -> None:
        if levels * self.n_leaves > MAX_CELLS:
            raise HierarchyError(
                f"hierarchy: {self.n_leaves:,} leaves with {levels:,} levels are too much to write out; "
                "make the tree less deep"
            )

    def _leaf_indexes(self) -> dict[str, int]:
        if self._leaf is None:
            self._leaf = {label: leaf for leaf, label in enumerate(self.leaves)}
        return self._leaf

    def _range_minima(self) -> list[Ints]:
        """Return a sparse table: row s holds the smallest lowest node of the pairs (j, j + 1) for j in [i, i + 2**s)."""
        if self._minima is None:
            # The lowest node of leaves i and i + 1 is the parent of the child that begins at i + 1 and
            # does not reach back to i: the highest node whose run starts there.
            pairs = np.zeros(self.n_leaves, dtype=np.int32)
            pairs[self.first[:0:-1]] = self.parent[:0:-1]
            rows = [pairs[1:].copy()]
            step = 1
            while 2 * step <= self.n_leaves - 1:
                rows.append(np.minimum(rows[-1][:-step], rows[-1][step:]))
                step *= 2
            self._minima = rows
        return self._minima


def _fixed(numbers: Sequence[int]) -> Ints:
    array = np.array(numbers, dtype=np.int32)
    array.setflags(write=False)
    return array


def _preorder(labels: Sequence[Any], above: Sequence[int]) -> list[int]:
    """Return old positions in preorder, after checking that the nodes are a tree."""
    m = len(labels)
    if m != len(above):
        raise HierarchyError("hierarchy: as many parents as labels are needed")
    if m > MAX_NODES:
        raise HierarchyError(f"hierarchy: more than {MAX_NODES:,} nodes; use a smaller one")
    roots = [node for node, up in enumerate(above) if up == -1]
    problems = []
    if m < 2:
        problems.append("no values below the root; name at least one")
    wrong = sum(not isinstance(label, str) for label in labels)
    if wrong:
        problems.append(f"{plural(wrong, 'label')} not text; write numbers and dates as text")
    texts = [label for label in labels if isinstance(label, str)]
    twice = len(texts) - len(set(texts))
    if twice:
        problems.append(f"{plural(twice, 'label')} more than once; every node needs a label of its own")
    if m and not roots:
        problems.append("a cycle: no node without a parent")
    if len(roots) > 1:
        problems.append(f"{len(roots):,} roots; put them under one")
    if any(up < -1 or up >= m for up in above):
        problems.append("a parent that does not exist")
        fail("hierarchy", problems)
    if any(label == ROOT and up != -1 for label, up in zip(labels, above, strict=True)):
        problems.append("`*` below the root, where only the whole domain may be called so")
    children: list[list[int]] = [[] for _ in range(m)]
    for node, up in enumerate(above):
        if up >= 0:
            children[up].append(node)
    order: list[int] = []
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(children[node]))
    if roots and len(order) < m:
        problems.append(f"a cycle: {plural(m - len(order), 'node')} without a way to the root")
    fail("hierarchy", problems)
    return order
