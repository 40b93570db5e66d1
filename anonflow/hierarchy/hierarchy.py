"""Hierarchies: built from files, nested dicts, intervals and codes; bounded, changed, written."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anonflow.drawing import facts, tree, view
from anonflow.errors import AnonflowError, HierarchyError, ParameterError
from anonflow.hierarchy import prefixes, sources
from anonflow.hierarchy.calendar import from_calendar
from anonflow.hierarchy.sources import ROOT
from anonflow.hierarchy.tree import preorder
from anonflow.hierarchy.wording import fail, plural
from anonflow.strict_yaml import shorten, suggest
from anonflow.whole_file import as_path, write_whole

EMPTY = "\0"
"""How the label of a leaf begins that no value has."""

Ints = npt.NDArray[np.int32]

MAX_CELLS = 200_000_000


class Hierarchy:
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

    A node with a single child has the run of its child, and `lca` and `closure` use the lowest node of a run. The
    hierarchy of a coded column is :meth:`spread`: there every node has a run of its own.

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
        order = preorder(labels, above)
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
        # in preorder a node comes before those below it: backwards, each is complete before it counts for its parent
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

    @classmethod
    def from_csv(cls, path: str | Path, delimiter: str = ";", encoding: str = "utf-8") -> Hierarchy:
        """Read a hierarchy in the ARX layout: no header, a row for each leaf, from the leaf to the root.

        Parameters
        ----------
        path : str or Path
            The file. The same label in neighbouring columns is one node, so unbalanced trees can be
            written; every row has the same number of columns.
        delimiter : str
            One character between columns.
        encoding : str
            Encoding of the file; a byte order mark is skipped in UTF-8.

        Raises
        ------
        HierarchyError
            If the file cannot be read, is larger than 256 MiB, is not in `encoding`, or is no tree:
            rows of different lengths, two roots, a value twice or under two parents, a cycle, a label
            for a leaf and an inner node. All bad lines are named at once.
        """
        return cls(*sources.read_csv(path, delimiter, encoding))

    @classmethod
    def from_nested(cls, tree: Any, root: str | None = None) -> Hierarchy:
        """Build a hierarchy from nested mappings and lists; paths may have different lengths.

        Parameters
        ----------
        tree : mapping, list or str
            A mapping of labels to the content below them: a mapping, a list of labels and mappings, a single label, or
            nothing (None or empty), so that the label is a leaf.
        root : str, optional
            Label of a root above all of `tree`; without it `tree` has one key, the root.

        Raises
        ------
        HierarchyError
            If there are several roots, a label twice or under two parents, a cycle (a mapping inside
            itself), a label that is no text. Whole numbers count as their digits.

        Examples
        --------
        >>> Hierarchy.from_nested({"*": {"Europe": ["France", "Spain"], "unknown": None}}).leaves
        ('France', 'Spain', 'unknown')
        """
        return cls(*sources.from_nested(tree, root))

    @classmethod
    def from_intervals(
        cls,
        values: Iterable[Any],
        step: float,
        levels: int = 1,
        *,
        fanout: int = 2,
        origin: float = 0,
        root: str = ROOT,
    ) -> Hierarchy:
        """Build a hierarchy of intervals over numbers, `levels` of them below the root.

        Parameters
        ----------
        values : iterable of numbers, or of texts that are numbers
            The leaves, in any order, repeated or not; a blank text is a leaf right under the root.
        step : float
            Width of the narrowest intervals.
        levels : int
            Number of levels of intervals, 1 to 64.
        fanout : int
            How many intervals of a level are in one of the next; 2 doubles the width.
        origin : float
            Where one interval of every level begins.
        root : str
            Label of the root.

        Returns
        -------
        Hierarchy
            Leaves in increasing order. Intervals are labelled `20-29` where all values, `step` and
            `origin` are whole, else `[1.5, 2)`: with 1.5, without 2.

        Raises
        ------
        HierarchyError
            If there are no values, a value is not a finite number, or a parameter is outside its domain.

        Notes
        -----
        Decimal, not binary, fractions decide where a value lies: 0.3 in steps of 0.1 opens `[0.3, 0.4)`.
        """
        return cls(*sources.from_intervals(values, step, levels, fanout, origin, root))

    @classmethod
    def from_positions(
        cls, codes: Iterable[str], *, hide: str = "right", mask: str = "*", root: str = ROOT
    ) -> Hierarchy:
        """Build a hierarchy of codes of equal length whose positions are hidden one after the other.

        Parameters
        ----------
        codes : iterable of str
            The leaves, in any order, repeated or not, such as zip codes; a blank one is a leaf right
            under the root.
        hide : {"right", "left"}
            The end from which positions are hidden: `9412*`, `941**`, or `*4120`, `**120`.
        mask : str
            The character in place of a hidden position.
        root : str
            Label of the root, where all positions are hidden.

        Raises
        ------
        HierarchyError
            If there are no codes, their lengths differ, one is no text or contains the mask.
        """
        return cls(*sources.from_positions(codes, hide, mask, root))

    @classmethod
    def from_prefixes(
        cls, codes: Iterable[str], lengths: Sequence[int] | str, *, root: str = ROOT
    ) -> Hierarchy:
        """Build a hierarchy of codes, of any length, below their prefixes: ``62.01`` below ``62.0*`` and ``62*``.

        Parameters
        ----------
        codes : iterable of str
            The leaves, in any order, repeated or not; a blank one is a leaf right under the root.
        lengths : sequence of int, or str
            How many letters and digits the prefixes have, ascending; points, hyphens and blanks do not count. Or a classification that
            the codes belong to: ``icd-10``, ``nace``, ``naics``, ``isco``, ``zip`` or ``nuts``. A code that is shorter than a prefix
            is below its longest one.
        root : str
            Label of the root.

        Raises
        ------
        HierarchyError
            If there are no codes, one is no text or contains ``*``, one is no code of the classification, lengths do not ascend, or
            every code is shorter than each of them.

        Examples
        --------
        >>> Hierarchy.from_prefixes(["62.01", "62.02", "01.1"], "nace").labels
        ('*', '01*', '01.1*', '01.1', '62*', '62.0*', '62.01', '62.02')
        """
        return cls(*prefixes.from_prefixes(codes, lengths, root))

    @classmethod
    def from_calendar(cls, values: Iterable[str], levels: Sequence[str], *, root: str = ROOT) -> Hierarchy:
        """Build a hierarchy of dates under periods of the calendar.

        Parameters
        ----------
        values : iterable of str
            The leaves, ISO dates or times in any order; a blank one is a leaf right under the root. Of a year or a year and
            a month, such as ``1984-07``, the leaf is ``1984-07-??``: right under the lowest period that holds all of it.
        levels : sequence of str
            From the lowest: some of day, month, quarter, half, year, 5-years, 10-years in this order; or week (of ISO 8601), or
            weekday.
        root : str
            Label of the root.

        Returns
        -------
        Hierarchy
            Periods are labelled `2021-02`, `2021-Q1`, `2021-H1`, `2021`, `2020-2024`, `2021-W07`; Monday is `1`.

        Raises
        ------
        HierarchyError
            If there are no values, a value is no date, or the levels do not lie in each other.
        """
        return cls(*from_calendar(values, levels, root))

    @classmethod
    def suppression(cls, labels: Iterable[str]) -> Hierarchy:
        """Build the hierarchy of height 1: `labels`, in their order, right under the root `*`.

        Raises
        ------
        HierarchyError
            If there are no labels, one is no text, one is `*`, or one is there twice.
        """
        names = list(labels)
        return cls([ROOT, *names], [-1] + [0] * len(names))

    @classmethod
    def from_mapping(
        cls, spec: Any, folder: str | Path | None = None, values: Iterable[Any] | None = None
    ) -> Hierarchy:
        """Build the hierarchy that a schema specifies.

        Parameters
        ----------
        spec : str, Path, mapping or Hierarchy
            A path of a CSV file, or one of ``{csv: path, delimiter, encoding}``, ``{nested: tree,
            root}``, ``{intervals: {step, levels, fanout, origin}}``, ``{positions: {hide, mask}}``
            (or ``positions: right``), ``{prefixes: {lengths}}`` (or ``prefixes: [1, 3]``, ``prefixes: nace``), ``{calendar: [month, quarter, year]}``.
        folder : str or Path, optional
            The folder of relative paths.
        values : iterable, optional
            Values of the column, needed for intervals, positions, prefixes and calendar.

        Raises
        ------
        HierarchyError
            If the specification has another form or unknown keys, or does not name a hierarchy.
        """
        if isinstance(spec, Hierarchy):
            return spec
        if isinstance(spec, (str, Path)):
            spec = {"csv": spec}
        options = _checked_options(spec)
        kind, content = next(iter(options.items()))
        if kind == "csv":
            if not isinstance(content, (str, Path)) or not str(content):
                raise HierarchyError("hierarchy: csv must be the path of a file")
            path = Path(content) if folder is None else Path(folder) / content
            return cls.from_csv(path, options.get("delimiter", ";"), options.get("encoding", "utf-8"))
        if kind == "nested":
            return cls.from_nested(content, options.get("root"))
        if values is None:
            raise HierarchyError(f"hierarchy: {kind} need the values of the column")
        if kind == "intervals":
            return cls.from_intervals(values, **content)
        if kind == "prefixes":
            return cls.from_prefixes(values, **content)
        if kind == "calendar":
            return cls.from_calendar(values, **content)
        return cls.from_positions(values, **content)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, m."""
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
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

    def leaves_below(self, label: str) -> tuple[str, ...]:
        """Return the leaves below the node `label`, or the leaf itself, in depth-first order.

        Raises
        ------
        HierarchyError
            If no node has this label.
        """
        node = self.node(label)
        return self.leaves[int(self.first[node]) : int(self.last[node]) + 1]

    def leaf_index(self, label: str) -> int:
        """Position of the leaf `label` in depth-first order, in O(1).

        Raises
        ------
        HierarchyError
            If no leaf has this label.
        """
        index = self._leaf_indexes.get(label)
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
        indexes = self._leaf_indexes
        return np.fromiter(
            (indexes.get(value, -1) if isinstance(value, str) else -1 for value in values), dtype=np.int32
        )

    def children(self, node: int) -> Ints:
        """Return node ids of the children of `node`, in order; empty for a leaf."""
        ids, offsets = self._children
        return ids[offsets[node] : offsets[node + 1]]

    @cached_property
    def _children(self) -> tuple[Ints, Ints]:
        """The children of one node after the other, and where those of each node begin."""
        offsets = np.cumsum([0, *np.bincount(self.parent[1:], minlength=self.n_nodes)])
        # the root, which comes first, is nobody's child
        ids = (np.argsort(self.parent[1:], kind="stable") + 1).astype(np.int32)
        ids.setflags(write=False)
        return ids, offsets.astype(np.int32)

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
        table = self._range_minima
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

    def __repr__(self) -> str:
        leaves = plural(int(self.has_value.sum()), "leaf").replace("leafs", "leaves")
        return f"<Hierarchy: {leaves}, height {self.height[0]}>"

    def _repr_html_(self) -> str:
        of_values = self.gathered()
        numbers = [
            ("leaves", f"{of_values.n_leaves:,}"),
            ("nodes", f"{of_values.n_nodes:,}"),
            ("height", int(of_values.height[0])),
        ]
        return view("Hierarchy", facts(numbers), tree(of_values))

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy, (self.labels, self.parent.tolist())

    def check_values(
        self, values: Sequence[Any] | npt.NDArray[Any], column: str, counts: Sequence[int] | None = None
    ) -> None:
        """Refuse values that are no leaf, naming the column and how many there are, never the values.

        Parameters
        ----------
        values : sequence of str, length n
            Cells of the column, or its distinct values.
        column : str
            Name of the column, for the message.
        counts : sequence of int, length n, optional
            How many cells have each value; without it one each.

        Raises
        ------
        HierarchyError
            If one of the values is no leaf. Its ``labels`` has them, for the owner alone.
        """
        indexes = self.leaf_indexes(values)
        missing = np.flatnonzero(indexes < 0).tolist()
        if not missing:
            return
        often: Counter[str] = Counter()
        for i in missing:
            label = values[i] if isinstance(values[i], str) else repr(values[i])
            often[label] += 1 if counts is None else int(counts[i])
        cells, leaf_indexes = often.total(), self._leaf_indexes
        hint = "add them to the hierarchy or correct the column"
        if sum(value.strip() in leaf_indexes for value in often):
            hint = "some only have spaces around a label of it: strip them"
        elif all(value in self._nodes for value in often):
            hint = "they are its inner nodes; is the column generalized already?"
        error = HierarchyError(
            f"column {column!r}: {plural(cells, 'cell')} ({plural(len(often), 'distinct value')}) "
            f"with no leaf in its hierarchy; {hint}"
        )
        error.labels = {column: dict(often.most_common())}
        raise error

    def bounds(self, labels: Iterable[str]) -> Ints:
        """Return the largest allowed run of each leaf, given the nodes up to which values may be generalized.

        Parameters
        ----------
        labels : iterable of str
            Labels of the boundary nodes, inner nodes or leaves.

        Returns
        -------
        ndarray of int32, shape (n_leaves, 2)
            First and last leaf of the first boundary node on the way up from each leaf (itself
            included); the whole domain where there is none.

        Raises
        ------
        HierarchyError
            If a label is no node; the error names all such labels, because they come from the schema and are not cells.

        Notes
        -----
        MAGVal of Miller 2008, Definition 3.
        """
        if isinstance(labels, (str, Mapping)):
            raise HierarchyError("boundary: write a list of node labels")
        node_labels = list(labels)
        problems: list[str] = []
        # Only inner nodes are suggested: a leaf is a value of the table.
        inner = [label for label, h in zip(self.labels, self.height.tolist(), strict=True) if h > 0][:1000]
        for label in node_labels:
            if not isinstance(label, str) or label not in self._nodes:
                # Comparing is slow: a hostile list of wrong labels gets only as many hints as the message shows.
                few = isinstance(label, str) and len(problems) < 20
                near = suggest(label, inner) if few else None
                hint = f"; did you mean {shorten(near)}?" if near else "; use labels of its nodes"
                problems.append(f"{shorten(str(label))} is no node of the hierarchy{hint}")
        fail("boundary", problems)
        limit = np.zeros(self.n_nodes, dtype=np.int32)
        chosen = {self._nodes[label] for label in node_labels}
        if chosen:
            reach = [0] * self.n_nodes
            for node, up in enumerate(self.parent.tolist()):
                reach[node] = node if node in chosen else (reach[up] if up >= 0 else 0)
            limit = np.array(reach, dtype=np.int32)
        limit = limit[self.leaf_node]
        return np.stack([self.first[limit], self.last[limit]], axis=1)

    def extended(self, labels: str | Iterable[str]) -> Hierarchy:
        """Return this hierarchy with further leaves right under its root, after the leaves it has.

        Parameters
        ----------
        labels : str or iterable of str
            Labels to add, such as the blank one; those that are leaves already are skipped.

        Raises
        ------
        HierarchyError
            If a label is an inner node, or no text.
        """
        names = [labels] if isinstance(labels, str) else list(labels)
        new = [name for name in names if not isinstance(name, str) or name not in self._leaf_indexes]
        if not new:
            return self
        return Hierarchy([*self.labels, *new], [*self.parent.tolist(), *[0] * len(new)])

    def spread(self) -> Hierarchy:
        """Return this hierarchy with one more leaf, which no value has, below every node with a single child.

        Then every node has a run of its own: a run says at which level it is, not only which values are below it. The leaf
        stands after those of the child, and begins with :data:`EMPTY`. Without such nodes it is the same hierarchy.
        """
        only = np.flatnonzero(np.bincount(self.parent[1:], minlength=self.n_nodes) == 1).tolist()
        if not only:
            return self
        labels = [*self.labels, *(EMPTY + self.labels[node] for node in only)]
        return Hierarchy(labels, [*self.parent.tolist(), *only])

    @property
    def has_value(self) -> npt.NDArray[np.bool_]:
        """Which leaves a value can have, shape (n_leaves,): not those that :meth:`spread` adds."""
        return np.array([not label.startswith(EMPTY) for label in self.leaves], dtype=bool)

    def gathered(self) -> Hierarchy:
        """Return this hierarchy without the leaves that :meth:`spread` adds. Without such leaves it is the same hierarchy."""
        has_value = self.has_value
        return self if has_value.all() else self.restricted(compress(self.leaves, has_value))

    def restricted(self, labels: Iterable[str]) -> Hierarchy:
        """Return this hierarchy with only the given leaves, in its own order, and the nodes above them.

        Raises
        ------
        HierarchyError
            If there are no labels, or a label is not a leaf.
        """
        keep = np.zeros(self.n_nodes, dtype=bool)
        keep[self.leaf_node[[self.leaf_index(label) for label in labels]]] = True
        # backwards: in preorder a node comes before those below it
        for node in range(self.n_nodes - 1, 0, -1):
            keep[self.parent[node]] |= keep[node]
        rank = np.cumsum(keep) - 1
        nodes = np.flatnonzero(keep)
        parents = [-1, *rank[self.parent[nodes[1:]]].tolist()]
        return Hierarchy([self.labels[node] for node in nodes], parents)

    def to_csv(self, path: str | Path, delimiter: str = ";") -> None:
        """Write the ARX layout that `from_csv` reads back: UTF-8, a row for each leaf, leaf to root.

        Less deep leaves repeat their own label. The file appears whole, by rename.

        Raises
        ------
        HierarchyError
            If the file cannot be written, labels hold what a text file cannot, the delimiter is not one character,
            or the tree is so deep that the file had more than 200 million cells.
        """
        path = as_path(path)
        sources.check_delimiter(delimiter, path.name)
        levels = int(self.height[0]) + 1
        self._check_cells(levels)
        wrong = sum("\0" in label or any("\ud800" <= c <= "\udfff" for c in label) for label in self.labels)
        if wrong:
            raise HierarchyError(
                f"{path.name}: cannot be written: {plural(wrong, 'label')} that no text file holds"
            )
        # The csv writer does not quote these two, and a reader drops them: a line end and a byte order mark.
        quoted = any("\r" in label or label.startswith("\ufeff") for label in self.labels)

        def rows(part: Path) -> None:
            with part.open("w", encoding="utf-8", newline="") as file:
                quoting: Any = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
                writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting)
                for leaf in range(self.n_leaves):
                    row = [self.labels[node] for node in self.ancestors(leaf)]
                    writer.writerow([row[0]] * (levels - len(row)) + row)

        try:
            write_whole(path, rows)
        except AnonflowError as error:
            raise HierarchyError(error.message) from None

    def _check_cells(self, levels: int) -> None:
        if levels * self.n_leaves > MAX_CELLS:
            raise HierarchyError(
                f"hierarchy: {self.n_leaves:,} leaves with {levels:,} levels are too much to write out; "
                "make the tree less deep"
            )

    @cached_property
    def _leaf_indexes(self) -> dict[str, int]:
        return {label: leaf for leaf, label in enumerate(self.leaves)}

    @cached_property
    def _range_minima(self) -> list[Ints]:
        """A sparse table: row s holds the smallest lowest node of the pairs (j, j + 1) for j in [i, i + 2**s)."""
        # The lowest node of leaves i and i + 1 is the parent of the child that begins at i + 1 and
        # does not reach back to i: the highest node whose run starts there.
        pairs = np.zeros(self.n_leaves, dtype=np.int32)
        pairs[self.first[:0:-1]] = self.parent[:0:-1]
        rows = [pairs[1:].copy()]
        step = 1
        while 2 * step <= self.n_leaves - 1:
            rows.append(np.minimum(rows[-1][:-step], rows[-1][step:]))
            step *= 2
        return rows


def _fixed(numbers: Sequence[int]) -> Ints:
    array = np.array(numbers, dtype=np.int32)
    array.setflags(write=False)
    return array


def _checked_options(spec: Any) -> dict[str, Any]:
    """Return the specification checked: its kind first, then its options."""
    kinds = {
        "csv": ("delimiter", "encoding"),
        "nested": ("root",),
        "intervals": ("step", "levels", "fanout", "origin", "root"),
        "positions": ("hide", "mask", "root"),
        "prefixes": ("lengths", "root"),
        "calendar": ("levels", "root"),
    }
    if not isinstance(spec, Mapping) or not spec:
        raise HierarchyError(
            "hierarchy: write the path of a CSV file, or csv, nested, intervals, positions, prefixes or calendar"
        )
    named = [kind for kind in kinds if kind in spec]
    outer = kinds[named[0]] if named and named[0] in ("csv", "nested") else ()
    problems = [_unknown(key, [*kinds, *outer]) for key in spec if key not in kinds and key not in outer]
    if len(named) != 1 and not problems:
        problems.append("name one of csv, nested, intervals, positions, prefixes, calendar")
    options: dict[str, Any] = {}
    if named:
        kind = named[0]
        options = {kind: spec[kind], **{key: spec[key] for key in spec if key != kind}}
        inner = spec[kind]
        if kind == "positions" and isinstance(inner, str):
            inner = {"hide": inner}
        if kind == "positions" and inner is None:
            inner = {}
        if kind == "prefixes" and isinstance(inner, (str, list, tuple)):
            inner = {"lengths": inner}
        if kind == "calendar" and isinstance(inner, (list, tuple)):
            inner = {"levels": list(inner)}
        if kind == "calendar" and isinstance(inner, Mapping) and "levels" not in inner:
            problems.append("calendar needs levels, such as [month, quarter, year]")
        elif kind == "calendar" and not isinstance(inner, Mapping):
            problems.append("calendar must be a list of levels, such as [month, quarter, year]")
        elif kind in ("intervals", "positions", "prefixes", "calendar"):
            if not isinstance(inner, Mapping):
                example = "lengths: [1, 3]" if kind == "prefixes" else "step: 10, levels: 3"
                problems.append(f"{kind} must be a mapping, such as {{{example}}}")
            else:
                problems += [_unknown(key, kinds[kind]) for key in inner if key not in kinds[kind]]
                if kind == "intervals" and "step" not in inner:
                    problems.append("intervals need a step")
                if kind == "prefixes" and "lengths" not in inner:
                    problems.append("prefixes need lengths, such as [1, 3] or nace")
                options[kind] = dict(inner)
        for key in ("delimiter", "encoding", "root"):
            if key in options and not isinstance(options[key], str):
                problems.append(f"{key} must be text")
    fail("hierarchy", problems)
    return options


def _unknown(key: Any, keys: Iterable[str]) -> str:
    near = suggest(str(key), keys)
    return f"unknown key {shorten(str(key))}" + (f"; did you mean {near!r}?" if near else "")
