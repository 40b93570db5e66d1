"""The part of a lattice that a picture shows: a run's node, the optimum, and the nodes beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from anonflow.algorithms.diversity.target import sensitive_values
from anonflow.algorithms.method import Algorithm, Partition
from anonflow.algorithms.recoding.full_domain import most_suppressed, search
from anonflow.algorithms.recoding.lattice import Lattice, column_levels
from anonflow.errors import InfeasibleError
from anonflow.partition import unbounded
from anonflow.table import Table

MOST_WHOLE = 60
"""The most nodes of a lattice that is shown completely; of a larger one, the nodes beside the optimum and the run's are shown."""

MOST_SECONDS = 10.0
"""Seconds for the search of the optimum if the levels of a run were fixed."""


class WithLevels(Protocol):
    """The part of a run that the picture needs; an :class:`anonflow.Anonymization` has it."""

    table: Table
    algorithm: Algorithm
    k: int
    facts: dict[str, Any]
    parameters: dict[str, Any]
    partitions: tuple[np.ndarray, ...] | None


@dataclass(frozen=True)
class LatticeNode:
    """A node of the lattice.

    Attributes
    ----------
    levels : tuple of int
        Of each column, from 0.
    loss : float
        Mean loss of a record there, suppressed ones with all they lose.
    suppressed : int
        Records that it suppresses.
    anonymous : bool
        Whether these are within the limit, and all classes keep what is asked for.
    """

    levels: tuple[int, ...]
    loss: float
    suppressed: int
    anonymous: bool


@dataclass(frozen=True)
class LatticePart:
    """A part of a lattice.

    Attributes
    ----------
    columns : tuple of str
    labels : tuple of tuple of str
        What the levels of each column are.
    nodes : tuple of LatticeNode
    best, of_run : int or None
        Which of them is the optimum, and which the run's.
    of : int
        Nodes of the whole lattice.
    limit : float
        Share of the records that may be suppressed.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    nodes: tuple[LatticeNode, ...]
    best: int | None
    of_run: int | None
    of: int
    limit: float

    def named(self, node: LatticeNode) -> dict[str, str]:
        """Return a node's levels by column."""
        named = zip(self.columns, self.labels, node.levels, strict=True)
        return {column: labels[level] for column, labels, level in named}

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of nodes, the lower one first, that differ by one level of one column."""
        place = {node.levels: at for at, node in enumerate(self.nodes)}
        pairs = []
        for at, node in enumerate(self.nodes):
            for c, level in enumerate(node.levels):
                above = place.get((*node.levels[:c], level + 1, *node.levels[c + 1 :]))
                if above is not None:
                    pairs.append((at, above))
        return pairs


def lattice_part(anon: WithLevels) -> LatticePart | None:
    """Return the part of its lattice that a picture of a run shows.

    Parameters
    ----------
    anon : Anonymization

    Returns
    -------
    LatticePart or None
        The whole lattice, where it has at most `MOST_WHOLE` nodes; else the optimum, the run's node, and all that
        differ from one of them by one level of one column. None for methods without levels, and where boundaries make several tables
        of one. Of local recoding, its first round.

    Notes
    -----
    O(t q) time for each node and t distinct records. Where `levels` were fixed, the optimum is searched without them.
    """
    if (
        not anon.algorithm.is_diverse(anon.parameters)
        or "levels" not in anon.facts
        or anon.partitions is None
    ):
        return None
    if len(anon.partitions) != 1 or len(anon.partitions[0]) != anon.table.n:
        return None
    parameters = anon.parameters
    whole = anon.table.records
    records = (whole if parameters.get("boundaries", True) else unbounded(whole)).at_floor()
    widths, measure = parameters.get("widths"), str(parameters.get("loss", "ncp"))
    limit = (
        float(parameters.get("limit", anon.algorithm.options["limit"].default))
        if "limit" in anon.algorithm.options
        else 1.0
    )
    sensitive = sensitive_values(anon.table, parameters.get("diversified", ()), anon.k - 1)
    lattice = Lattice(records, column_levels(records, widths), measure, sensitive)
    of_run = _node_index(lattice, anon.facts["levels"])
    best: tuple[int, ...] | None = of_run
    if parameters.get("levels") is not None or not anon.facts.get("optimal", True):
        part = Partition(records, measure, np.random.default_rng(0), sensitive)
        try:
            optimum = search(part, anon.k, limit, widths, MOST_SECONDS)
            best = tuple(optimum.best.node.tolist())
        except InfeasibleError:
            best = None
    pool = "limit" in anon.algorithm.options
    chosen = _shown(lattice.shape, [node for node in (best, of_run) if node is not None])
    nodes = []
    for levels in chosen:
        groups = lattice.diverse(lattice.groups(np.array(levels), anon.k), anon.k, pool)
        within_limit = groups.suppressed <= most_suppressed(records, limit)
        nodes.append(
            LatticeNode(levels, groups.loss / records.n, groups.suppressed, within_limit and groups.good)
        )
    return LatticePart(
        tuple(levels.column for levels in lattice.columns),
        tuple(levels.labels for levels in lattice.columns),
        tuple(nodes),
        None if best is None else chosen.index(best),
        None if of_run is None else chosen.index(of_run),
        math.prod(lattice.shape),
        limit,
    )


def _node_index(lattice: Lattice, named: Mapping[str, str]) -> tuple[int, ...] | None:
    try:
        return tuple(levels.labels.index(named[levels.column]) for levels in lattice.columns)
    except (KeyError, ValueError):
        return None


def _shown(shape: tuple[int, ...], centres: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if math.prod(shape) <= MOST_WHOLE:
        return list(np.ndindex(shape))
    nodes = set(centres)
    for centre in centres:
        for c, level in enumerate(centre):
            for other in (level - 1, level + 1):
                if 0 <= other < shape[c]:
                    nodes.add((*centre[:c], other, *centre[c + 1 :]))
    return sorted(nodes)
