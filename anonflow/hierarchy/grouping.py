"""A tree that the user builds: values and nodes are put under new nodes, or groups are dissolved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from anonflow.errors import HierarchyError
from anonflow.hierarchy import Hierarchy

CHOOSE_GROUP = "choose a group to dissolve"

ROOT = "*"

DEEPEST = 40
"""Levels of a tree made by hand: a flow file nests no deeper than 100."""


class Grouping:
    """A tree over values, as edits leave it: label -> labels right below it, in order; the root is the first key.

    Invariant: a tree whose inner nodes are the keys of `children`; every label once. An edit makes a new Grouping
    and leaves this one as it is, or raises and changes nothing.
    """

    def __init__(self, children: dict[str, list[str]]) -> None:
        self.children = children
        self.root = next(iter(children))

    @classmethod
    def flat(cls, values: Iterable[str]) -> Grouping:
        """Return all values right under the root."""
        return cls({ROOT: list(values)})

    @classmethod
    def of(cls, tree: Hierarchy) -> Grouping:
        """Return the nodes of a hierarchy."""
        children: dict[str, list[str]] = {}
        for node in range(tree.n_nodes):
            below = tree.children(node).tolist()
            if below:
                children[tree.labels[node]] = [tree.labels[child] for child in below]
        return cls(children)

    def parent(self, label: str) -> str | None:
        """Return the node above a label; None for the root and for what is no node."""
        return next((up for up, below in self.children.items() if label in below), None)

    def group(self, labels: Sequence[str], name: str) -> Grouping:
        """Put nodes that are side by side under a new node in their place.

        Raises
        ------
        HierarchyError
            If they are not side by side, the name is taken or none, or the tree would be too deep.
        """
        name = name.strip()
        if not name or name == ROOT:
            raise HierarchyError("a group needs a name of its own")
        if name in self.children or self.parent(name) is not None:
            raise HierarchyError("this name is taken by a value or a group: choose another")
        above = {self.parent(label) for label in labels}
        if not labels or None in above:
            raise HierarchyError("choose the values or groups to put together")
        if len(above) > 1:
            raise HierarchyError("what is put together must be below the same group; dissolve a group first")
        up = above.pop()
        assert up is not None
        chosen = set(labels)
        below = self.children[up]
        if len(chosen) == len(below):
            raise HierarchyError("this group would contain every value: leave some out")
        siblings = [label for label in below if label not in chosen]
        first = sum(label not in chosen for label in below[: min(below.index(member) for member in chosen)])
        children = {key: list(value) for key, value in self.children.items()}
        children[up] = [*siblings[:first], name, *siblings[first:]]
        children[name] = [label for label in below if label in chosen]
        grown = Grouping(children)
        if grown._depth() > DEEPEST:
            raise HierarchyError(f"a tree has at most {DEEPEST} levels")
        return grown

    def dissolve(self, name: str) -> Grouping:
        """Dissolve a group; its members take its place.

        Raises
        ------
        HierarchyError
            If it is no group, or the root.
        """
        up = self.parent(name)
        if name not in self.children or up is None:
            raise HierarchyError(CHOOSE_GROUP)
        children = {key: list(value) for key, value in self.children.items() if key != name}
        at = children[up].index(name)
        children[up][at : at + 1] = self.children[name]
        return Grouping(children)

    def rename(self, name: str, new: str) -> Grouping:
        """Rename a group.

        Raises
        ------
        HierarchyError
            If it is no group, or the new name is taken or none.
        """
        new = new.strip()
        up = self.parent(name)
        if name not in self.children or up is None:
            raise HierarchyError("choose a group to rename: a value keeps its name from the table")
        if not new or new == ROOT or new in self.children or self.parent(new) is not None:
            raise HierarchyError("give the group a name that no value and no other group has")
        children = {new if key == name else key: list(value) for key, value in self.children.items()}
        children[up][children[up].index(name)] = new
        return Grouping(children)

    def spec(self) -> dict[str, Any]:
        """Return the tree as a schema has it: ``{nested: {...}}``.

        Raises
        ------
        HierarchyError
            If it has too many levels for a flow file.
        """
        if self._depth() > DEEPEST:
            raise HierarchyError(
                f"the tree has more than {DEEPEST} levels: save it as a file, and name the file in the flow"
            )
        return {"nested": {self.root: self._nested(self.root)}}

    def _nested(self, label: str) -> list[Any]:
        return [
            {below: self._nested(below)} if below in self.children else below
            for below in self.children[label]
        ]

    def _depth(self) -> int:
        depth, level = 0, [self.root]
        while level:
            depth += 1
            level = [child for label in level for child in self.children.get(label, ())]
        return depth
