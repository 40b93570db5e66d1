"""Check that nodes are a tree, and bring them into preorder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonflow.errors import HierarchyError
from anonflow.hierarchy.sources import MAX_NODES, ROOT
from anonflow.hierarchy.wording import fail, plural


def preorder(labels: Sequence[Any], above: Sequence[int]) -> list[int]:
    """Return old positions in preorder, after checking that the nodes are a tree.

    Parameters
    ----------
    labels : sequence of str, length m
    above : sequence of int, length m
        For each node the position of its parent; -1 for the root.

    Raises
    ------
    HierarchyError
        If they are no tree, as :class:`anonflow.Hierarchy` needs it.
    """
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
    # no recursion: Python's ends at a thousand levels
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(children[node]))
    if roots and len(order) < m:
        problems.append(f"a cycle: {plural(m - len(order), 'node')} without a way to the root")
    fail("hierarchy", problems)
    return order
