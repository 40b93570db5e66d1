"""Boundaries by their definition (Miller 2008, section 3): a walk up a tree, and every division there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def parents(tree: Mapping[str, Any]) -> dict[str, str | None]:
    """Each node's parent, from a nested mapping of one root."""
    result: dict[str, str | None] = {}

    def walk(node: Any, above: str | None) -> None:
        children = node.items() if isinstance(node, Mapping) else [(leaf, None) for leaf in node or ()]
        for name, below in children:
            result[name] = above
            walk(below, name)

    walk(tree, None)
    return result


def up(value: str, parent: Mapping[str, str | None]) -> list[str]:
    """The value and its ancestors."""
    path = [value]
    while (above := parent[path[-1]]) is not None:
        path.append(above)
    return path


def magval(value: str, parent: Mapping[str, str | None], marked: set[str]) -> str:
    """The first marked node on the way up; the root without one (Definition 3)."""
    path = up(value, parent)
    return next((node for node in path if node in marked), path[-1])


def common(values: Sequence[str], parent: Mapping[str, str | None]) -> str:
    """The lowest common ancestor of some values (Definition 8)."""
    paths = [up(value, parent) for value in values]
    return next(node for node in paths[0] if all(node in path for path in paths))


def violations(values: Sequence[str], parent: Mapping[str, str | None], marked: set[str]) -> int:
    """Cells that go beyond their boundary when a cluster is generalized (Definition 5)."""
    node = common(values, parent)
    return sum(
        node not in up(v, parent)[: up(v, parent).index(magval(v, parent, marked)) + 1] for v in values
    )


def clusterings(items: Sequence[int], k: int) -> Iterator[list[list[int]]]:
    """Every division into clusters of at least k."""

    def all_of(rest: Sequence[int]) -> Iterator[list[list[int]]]:
        if not rest:
            yield []
            return
        for smaller in all_of(rest[1:]):
            yield [[rest[0]], *smaller]
            for at, cluster in enumerate(smaller):
                yield [*smaller[:at], [rest[0], *cluster], *smaller[at + 1 :]]

    for clusters in all_of(items):
        if all(len(cluster) >= k for cluster in clusters):
            yield clusters


def can_be_masked(
    rows: Sequence[int],
    values: Sequence[Sequence[str]],
    trees: Sequence[Any],
    marks: Sequence[set[str]],
    k: int,
) -> bool:
    """Whether some records have a constrained k-anonymous generalization (Definition 6), by trying them all."""
    return any(
        all(
            violations([column[i] for i in cluster], parent, marked) == 0
            for cluster in clusters
            for column, parent, marked in zip(values, trees, marks, strict=True)
        )
        for clusters in clusterings(rows, k)
    )
