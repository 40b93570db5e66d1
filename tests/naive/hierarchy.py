"""Trees by their definition: parents by label, ancestors by walking up."""

from __future__ import annotations


def ancestors(parent: dict[str, str | None], label: str) -> list[str]:
    """The label, and everything above it."""
    path = [label]
    while (up := parent[path[-1]]) is not None:
        path.append(up)
    return path


def leaves(parent: dict[str, str | None]) -> list[str]:
    inner = set(parent.values())
    return [label for label in parent if label not in inner]


def below(parent: dict[str, str | None], node: str) -> set[str]:
    return {leaf for leaf in leaves(parent) if node in ancestors(parent, leaf)}


def lowest(parent: dict[str, str | None], some: list[str]) -> str:
    """The lowest node above (or at) all of some leaves."""
    common = set(ancestors(parent, some[0])).intersection(*(ancestors(parent, leaf) for leaf in some))
    return next(label for label in ancestors(parent, some[0]) if label in common)


def height(parent: dict[str, str | None], node: str) -> int:
    """Longest path down to a leaf."""
    return max(ancestors(parent, leaf).index(node) for leaf in below(parent, node))
