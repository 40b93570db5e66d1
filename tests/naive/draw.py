"""Graphs to draw from, and what a draw must never be, in plain numpy."""

from __future__ import annotations

import itertools

import numpy as np


def ring(n: int, k: int) -> np.ndarray:
    """Row j matches j and the k - 1 that follow."""
    return ((np.arange(n)[:, None] + np.arange(k)) % n).astype(np.int32)


def shifts(n: int, k: int, seed: int) -> np.ndarray:
    """A ring of random steps under a random renumbering, with row j matching j first."""
    rng = np.random.default_rng(seed)
    steps = np.concatenate([[0], rng.choice(np.arange(1, n), k - 1, replace=False)])
    name = rng.permutation(n)
    place = np.argsort(name)
    return name[(place[:, None] + steps) % n].astype(np.int32)


def random_regular(n: int, k: int, seed: int) -> np.ndarray:
    """k random permutations, drawn again until no two of them meet; row j matches j first."""
    rng = np.random.default_rng(seed)
    rows = [np.arange(n)]
    while len(rows) < k:
        new = rng.permutation(n)
        for _ in range(10_000):  # swap clashes away
            clash = np.flatnonzero(np.any([new == old for old in rows], axis=0))
            if not len(clash):
                rows.append(new)
                break
            a, b = clash[0], rng.integers(n)
            new[[a, b]] = new[[b, a]]
    return np.stack(rows, axis=1).astype(np.int32)


def joined_k33() -> np.ndarray:
    """Two K33, each without an edge, joined by two edges: not every edge is like every other."""
    edges = [(j, i) for j in range(3) for i in range(3) if (j, i) != (0, 0)]
    edges += [(j + 3, i + 3) for j, i in edges] + [(0, 3), (3, 0)]
    rows = [[i for a, i in edges if a == j] for j in range(6)]
    return with_own_first(np.array(rows, np.int32))


def with_own_first(rows: np.ndarray) -> np.ndarray:
    """Renumber the originals so that row j matches j, and put it first (small graphs: by trying)."""
    n = len(rows)
    for choice in itertools.product(*rows.tolist()):
        if len(set(choice)) == n:
            rename = np.empty(n, np.int32)
            rename[list(choice)] = np.arange(n)
            renamed = rename[rows]
            own = renamed == np.arange(n)[:, None]
            return np.take_along_axis(renamed, np.argsort(~own, axis=1, kind="stable"), axis=1)
    raise ValueError("no perfect matching")


def beside(*graphs: np.ndarray) -> np.ndarray:
    """Graphs side by side, not connected; narrower ones padded with -1."""
    width = max(graph.shape[1] for graph in graphs)
    parts, first = [], 0
    for graph in graphs:
        part = np.full((len(graph), width), -1, np.int32)
        part[:, : graph.shape[1]] = graph + first
        parts.append(part)
        first += len(graph)
    return np.concatenate(parts)


def is_assignment(matches: np.ndarray, drawn: np.ndarray) -> bool:
    """Each row gets one of its matches, each original once."""
    allowed = (matches == np.asarray(drawn)[:, None]).any(axis=1).all()
    return bool(allowed and (np.sort(drawn) == np.arange(len(matches))).all())


def edge_counts(matches: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """How often each edge was drawn, shape of `matches`, from draws (t, n)."""
    return np.stack([(draws == matches[:, c]).sum(axis=0) for c in range(matches.shape[1])], axis=1)


def column_draw(matches: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What must never be done: one column of an iterative method's matches for the whole table."""
    return matches[:, rng.integers(matches.shape[1])]
