"""Mondrian (LeFevre, DeWitt and Ramakrishnan, ICDE 2006): multidimensional cuts, the classical baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from anonflow.algorithms.classes.class_chains import (
    IMPROVED,
    KICKS,
    ROUNDS,
    Improve,
    Kicks,
    Rounds,
    Threads,
    effort_of,
    outcome_of,
)
from anonflow.algorithms.lowering import for_sets
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.set_options import Importance, Of, Sets, sets_problems, weighted
from anonflow.kernels.classes.mondrian import (
    CODED,
    HIERARCHY,
    NUMERIC,
    SET,
    CutRules,
    mondrian_classes_jit,
)
from anonflow.option import Option
from anonflow.partition import too_few
from anonflow.table.domain import Domain

NAME = "mondrian"

Mode = Annotated[Literal["strict", "relaxed"], Option("Cuts")]


def mondrian(
    part: Partition,
    k: int,
    *,
    mode: Mode = "strict",
    improve: Improve = "none",
    rounds: Rounds = ROUNDS,
    kicks: Kicks = KICKS,
    threads: Threads = None,
    sets: Sets = None,
    of: Of = None,
    importance: Importance = None,
) -> Outcome:
    """Return equivalence classes of at least k records by cutting the table repeatedly.

    The quasi-identifier (QI) of the widest normalized range whose cut is allowable is cut: a numeric one at
    the median, a hierarchy at its lowest common node into the children, a set into two sets of values of
    nearest size. Each class publishes its tight ranges, nodes and sets.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    mode : {"strict", "relaxed"}
        Strict: equal values stay together. Relaxed: they may fill both halves.

        Relaxed, those are the records of the median (numeric) or middle (set) value, and small neighbouring
        children of a node are merged.
    improve, rounds, kicks, threads : optional
        As :mod:`anonflow.algorithms.classes.class_chains` declares them: classes are improved by chains, or not.
    sets : list of lists of str, optional
        Columns that others may know, each set by itself: cells are lowered as far as each set allows.

        See :func:`anonflow.algorithms.lowering.for_sets`.
    of : int, optional
        Instead of sets: all sets of so many columns.
    importance : mapping, optional
        Of sets: column -> number, 0 where none is given. Classes differ least in the columns with the greatest number, whose
        cells are lowered first.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`; of an improvement `chains`, `kicks` and `gained`.

    Raises
    ------
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    LeFevre et al., ICDE 2006, sections 3 and 4, and TODS 33, 2008, for nominal attributes. O(P q log P) time
    for cuts near the middle, O(P q) memory. QIs of equal range: the first in schema order. The range of a QI
    counts with its weight. Records without a number are cut from the others, or the QI is not cut; the cited
    papers have no missing values. The choice of cuts does not look at the information loss asked for.
    """
    if part.n < k:
        raise too_few(part.n, k)
    effort = effort_of(improve, rounds, kicks, threads)
    heavy = weighted(part, sets, of, importance, NAME)
    labels, classes = mondrian_labels(heavy, k, relaxed=mode == "relaxed")
    return for_sets(part, k, outcome_of(heavy, labels, classes, k, effort), sets, of, importance, NAME)


def mondrian_labels(part: Partition, k: int, relaxed: bool = False) -> tuple[np.ndarray, int]:
    """Return the class of each record, shape (P,), int64, and the number of classes.

    Parameters
    ----------
    part : Partition
    k : int
    relaxed : bool, optional
    """
    labels = np.empty(part.n, np.int64)
    classes = mondrian_classes_jit(_cuts(part.records.domains), part.records.codes.copy(), k, relaxed, labels)
    return labels, int(classes)


def _cuts(domains: Sequence[Domain]) -> CutRules:
    forms = [
        SET
        if domain.shape == "set"
        else HIERARCHY
        if domain.hierarchy is not None
        else CODED
        if domain.has_codes
        else NUMERIC
        for domain in domains
    ]
    trees = [domain.hierarchy for domain in domains]
    nodes = np.cumsum([0, *(0 if tree is None else len(tree.parent) for tree in trees)])
    leaves = np.cumsum([0, *(0 if tree is None else tree.n_leaves for tree in trees)])
    sizes = np.array([domain.size for domain in domains], np.int64)

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)

    with_trees = [(tree, at) for tree, at in zip(trees, nodes, strict=False) if tree is not None]
    return CutRules(
        form=np.array(forms, np.int64),
        size=sizes,
        weight=np.array([domain.weight for domain in domains], np.float64),
        points=np.concatenate([np.empty(0), *(domain.points for domain in domains)]),
        point_at=np.cumsum(np.concatenate([[0], sizes[:-1]])).astype(np.int64),
        leaf=joined([tree.leaf_node + at for tree, at in with_trees]),
        leaf_at=leaves[:-1].astype(np.int64),
        first=joined([tree.first for tree, _ in with_trees]),
        last=joined([tree.last for tree, _ in with_trees]),
        parent=joined([np.where(tree.parent < 0, -1, tree.parent + at) for tree, at in with_trees]),
    )


MONDRIAN = Algorithm(
    name=NAME,
    run=mondrian,
    family="recoding",
    paper="LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity. ICDE 2006",
    guarantee="k-anonymity",
    complexity="O(n q log n)",
    summary="the classical baseline: equal records, very fast, much loss",
    colour="#a08a00",
    shape="inverted_triangle",
    option_problems=sets_problems,
    variants=({}, {"improve": "chains", "kicks": 0}),
    **IMPROVED,
)
