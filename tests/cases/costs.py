"""Random coded tables for the cost kernels, each beside its plain description for the naive references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonflow.generalization import Generalization
from anonflow.hierarchy import Hierarchy
from anonflow.table.domain import Domain
from anonflow.table.records import Records
from tests.naive.loss import Attribute

KINDS = ("numeric", "missing", "coded", "categorical", "hierarchy", "suppression")


def random_tree(rng: np.random.Generator, leaves: int) -> Hierarchy:
    """An unbalanced tree over some leaves; it may have nodes with a single child."""
    labels, parents = ["*"], [-1]

    def grow(parent: int, size: int, depth: int) -> None:
        if size == 1 and rng.random() < 0.7:
            labels.append(f"v{len(labels)}")
            parents.append(parent)
            return
        node = parent
        if depth:
            labels.append(f"n{len(labels)}")
            parents.append(parent)
            node = len(labels) - 1
        if depth > 4 or size == 1:
            for _ in range(size):
                labels.append(f"v{len(labels)}")
                parents.append(node)
            return
        first = int(rng.integers(1, size)) if size > 1 else 1
        for part in (first, size - first):
            if part:
                grow(node, part, depth + 1)

    grow(0, leaves, 0)
    return Hierarchy(labels, parents)


def domain_of(
    column: str,
    kind: str,
    size: int,
    codes: np.ndarray,
    rng: np.random.Generator,
    weight: float = 1.0,
    points: np.ndarray | None = None,
) -> Domain:
    """A domain of some kind over ``range(size)`` with the occurrences of `codes`."""
    tree = None
    if kind == "hierarchy":
        tree = random_tree(rng, size)
    elif kind == "suppression":
        tree = Hierarchy.suppression([f"v{code}" for code in range(size)])
    if points is None:
        points = (
            np.sort(rng.choice(np.arange(-1000, 1000) / 8, size, replace=False))
            if size <= 2000
            else np.arange(size)
        )
    own = kind if kind in ("categorical", "hierarchy", "suppression") else "numeric"
    return Domain(
        column,
        own,
        tree.leaves if tree else tuple(map(str, range(size))),
        points.astype(np.float64) if own == "numeric" else np.arange(size, dtype=np.float64),
        np.bincount(codes[codes >= 0], minlength=size).astype(np.int64),
        weight=weight,
        hierarchy=tree,
        has_missing=kind == "missing",
        has_codes=kind == "coded",
    )


def table(rng: np.random.Generator, n: int, kinds: Sequence[str], sizes: Sequence[int]) -> Records:
    """n random records; weights are 1, 2 or 0.5."""
    domains, columns = [], []
    for a, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        codes = rng.integers(-1 if kind in ("missing", "coded") else 0, size, n)
        domains.append(domain_of(f"c{a}", kind, size, codes, rng, float(rng.choice([1.0, 2.0, 0.5]))))
        columns.append(codes)
    return Records(tuple(domains), np.ascontiguousarray(np.array(columns).T.astype(np.int32)))


def attributes(records: Records) -> list[Attribute]:
    """The same domains for the naive references."""
    out = []
    for domain in records.domains:
        tree = domain.hierarchy
        nodes = (
            []
            if tree is None
            else list(zip(*(x.tolist() for x in (tree.first, tree.last, tree.height)), strict=True))
        )
        shape = "set" if domain.kind == "categorical" else "tree" if tree else "numeric"
        out.append(
            Attribute(
                shape,
                domain.size,
                domain.points.tolist(),
                domain.counts.tolist(),
                domain.weight,
                nodes,
                domain.has_codes,
            )
        )
    return out


def random_joins(
    rng: np.random.Generator, records: Records, most: int = 4
) -> tuple[Generalization, np.ndarray]:
    """Generalized records, each of a few random originals, and which."""
    rows = rng.integers(0, records.n, (records.n, most))
    rows[rng.random(rows.shape) < 0.4] = -1
    rows[:, 0] = np.arange(records.n)
    return Generalization.join_of(records, rows), rows
