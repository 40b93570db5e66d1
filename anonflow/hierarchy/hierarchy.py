"""Hierarchies: built from files, nested dicts, intervals and codes; bounded, changed, written."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anonflow.errors import AnonflowError, HierarchyError
from anonflow.hierarchy import sources
from anonflow.hierarchy.sources import ROOT
from anonflow.hierarchy.tree import Ints, Tree
from anonflow.hierarchy.wording import fail, plural, shorten
from anonflow.whole_file import write_whole

__all__ = ["Hierarchy"]


class Hierarchy(Tree):
    """A value generalization hierarchy: a tree whose leaves are the values of a quasi-identifier.

    :class:`Tree` has its nodes and runs; this class builds, bounds and writes hierarchies.

    Raises
    ------
    HierarchyError
        If the nodes are not a tree.
    """

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
            (or ``positions: right``).
        folder : str or Path, optional
            The folder of relative paths.
        values : iterable, optional
            Values of the column, needed for intervals and positions.

        Raises
        ------
        HierarchyError
            If the specification has another form or unknown keys, or does not name a hierarchy.
        """
        if isinstance(spec, Hierarchy):
            return spec
        if isinstance(spec, (str, Path)):
            spec = {"csv": spec}
        options = _options(spec)
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
        return cls.from_positions(values, **content)

    def __repr__(self) -> str:
        return f"<Hierarchy: {plural(self.n_leaves, 'leaf').replace('leafs', 'leaves')}, height {self.height[0]}>"

    def _repr_html_(self) -> str:
        from anonflow.drawing import facts, tree, view

        numbers = [
            ("leaves", f"{self.n_leaves:,}"),
            ("nodes", f"{self.n_nodes:,}"),
            ("height", int(self.height[0])),
        ]
        return view("Hierarchy", facts(numbers), tree(self))

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
            If one of the values is no leaf.
        """
        indexes = self.leaf_indexes(values)
        missing = np.flatnonzero(indexes < 0).tolist()
        if not missing:
            return
        cells = len(missing) if counts is None else int(np.asarray(counts)[missing].sum())
        distinct = {values[i] if isinstance(values[i], str) else repr(values[i]) for i in missing}
        known = self._leaf_indexes()
        hint = "add them to the hierarchy or correct the column"
        if sum(value.strip() in known for value in distinct):
            hint = "some only have spaces around a label of it: strip them"
        elif all(value in self._nodes for value in distinct):
            hint = "they are its inner nodes; is the column generalized already?"
        raise HierarchyError(
            f"column {column!r}: {plural(cells, 'cell')} ({plural(len(distinct), 'distinct value')}) "
            f"with no leaf in its hierarchy; {hint}"
        )

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
        wanted = list(labels)
        problems: list[str] = []
        # Only inner nodes are suggested: a leaf is a value of the table.
        inner = [label for label, h in zip(self.labels, self.height.tolist(), strict=True) if h > 0][:1000]
        for label in wanted:
            if not isinstance(label, str) or label not in self._nodes:
                # Comparing is slow: a hostile list of wrong labels gets only as many hints as the message shows.
                few = isinstance(label, str) and len(problems) < 20
                near = difflib.get_close_matches(label[:100], inner, 1) if few else []
                hint = f"; did you mean {shorten(near[0])}?" if near else "; use labels of its nodes"
                problems.append(f"{shorten(str(label))} is no node of the hierarchy{hint}")
        fail("boundary", problems)
        limit = np.zeros(self.n_nodes, dtype=np.int32)
        chosen = {self._nodes[label] for label in wanted}
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
        new = [name for name in names if not isinstance(name, str) or name not in self._leaf_indexes()]
        if not new:
            return self
        return Hierarchy([*self.labels, *new], [*self.parent.tolist(), *[0] * len(new)])

    def restricted(self, labels: Iterable[str]) -> Hierarchy:
        """Return this hierarchy with only the given leaves, in its own order, and the nodes above them.

        Raises
        ------
        HierarchyError
            If there are no labels, or a label is not a leaf.
        """
        keep = np.zeros(self.n_nodes, dtype=bool)
        keep[self.leaf_node[[self.leaf_index(label) for label in labels]]] = True
        for node in range(self.n_nodes - 1, 0, -1):
            keep[self.parent[node]] |= keep[node]
        rank = np.cumsum(keep) - 1
        kept = np.flatnonzero(keep)
        parents = [-1, *rank[self.parent[kept[1:]]].tolist()]
        return Hierarchy([self.labels[node] for node in kept], parents)

    def to_csv(self, path: str | Path, delimiter: str = ";") -> None:
        """Write the ARX layout that `from_csv` reads back: UTF-8, a row for each leaf, leaf to root.

        Less deep leaves repeat their own label. The file appears whole, by rename.

        Raises
        ------
        HierarchyError
            If the file cannot be written, labels hold what a text file cannot, the delimiter is not one character,
            or the tree is so deep that the file had more than 200 million cells.
        """
        path = Path(path)
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


def _options(spec: Any) -> dict[str, Any]:
    """Return the specification checked: its kind first, then its options."""
    kinds = {
        "csv": ("delimiter", "encoding"),
        "nested": ("root",),
        "intervals": ("step", "levels", "fanout", "origin", "root"),
        "positions": ("hide", "mask", "root"),
    }
    if not isinstance(spec, Mapping) or not spec:
        raise HierarchyError(
            "hierarchy: write the path of a CSV file, or csv, nested, intervals or positions"
        )
    named = [kind for kind in kinds if kind in spec]
    outer = kinds[named[0]] if named and named[0] in ("csv", "nested") else ()
    problems = [_unknown(key, [*kinds, *outer]) for key in spec if key not in kinds and key not in outer]
    if len(named) != 1 and not problems:
        problems.append("name one of csv, nested, intervals, positions")
    options: dict[str, Any] = {}
    if named:
        kind = named[0]
        options = {kind: spec[kind], **{key: spec[key] for key in spec if key != kind}}
        inner = spec[kind]
        if kind == "positions" and isinstance(inner, str):
            inner = {"hide": inner}
        if kind == "positions" and inner is None:
            inner = {}
        if kind in ("intervals", "positions"):
            if not isinstance(inner, Mapping):
                problems.append(f"{kind} must be a mapping, such as {{step: 10, levels: 3}}")
            else:
                problems += [_unknown(key, kinds[kind]) for key in inner if key not in kinds[kind]]
                if kind == "intervals" and "step" not in inner:
                    problems.append("intervals need a step")
                options[kind] = dict(inner)
        for key in ("delimiter", "encoding", "root"):
            if key in options and not isinstance(options[key], str):
                problems.append(f"{key} must be text")
    fail("hierarchy", problems)
    return options


def _unknown(key: Any, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(key)[:100], list(known), 1)
    return f"unknown key {shorten(str(key))}" + (f"; did you mean {near[0]!r}?" if near else "")
