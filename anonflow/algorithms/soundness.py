"""Checks of every result before it is returned: each of them fails only because of a bug in anonflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.registry import criterion_of
from anonflow.criteria.request import read_criteria
from anonflow.criteria.set_counts import named_sets, on_columns
from anonflow.errors import BUG, AnonflowError
from anonflow.generalization import Generalization
from anonflow.loss import record_costs
from anonflow.table.records import Records

SAMPLE, SHARE = 32, 8
"""Records that are generalized again: so many, or one of so many where there are more."""

COUNTED = 8
"""Records of a partition whose neighbours are counted, where a method names neither matches nor classes."""

NEAR = 1e-6
"""Share by which a loss that kernels add up may differ: they round each record's to a grid."""


def check_outcome(
    method: Algorithm, records: Records, k: int, loss: str, options: Mapping[str, Any], outcome: Outcome
) -> None:
    """Refuse a partition's result that contradicts the method's guarantee, or that of several partitions as one.

    Parameters
    ----------
    method : Algorithm
    records : Records
        P records.
    k : int
    loss : str
        The measure that the method was to keep low.
    options : mapping
        The method's own.
    outcome : Outcome

    Raises
    ------
    AnonflowError
        If a record that is not suppressed is not covered by its own generalized record; if the matches are no
        k-regular graph with its self-matches (degree k + 1 is right for reciprocal matches); if a class has fewer than k
        records or several generalized records; if a generalized record of a sample is not what its matches or its
        class make, or covers fewer than the guarantee says; or if the loss that the method tells is not its result's.

    Notes
    -----
    O(P k + P q), about 0.4 ms for 250 records with 8 QIs, and a fraction of it for each of several partitions together.
    numpy alone, for what is wrong may be how a kernel was compiled.
    """
    _refuse(method, _form_problem(records.n, outcome) or _problem(method, records, k, loss, options, outcome))


def check_form(method: Algorithm, n: int, outcome: Outcome) -> None:
    """Refuse a partition's result that is none of n records, so that it cannot be joined with others.

    Raises
    ------
    AnonflowError
        If the arrays have another shape or type, or name records that do not exist.
    """
    _refuse(method, _form_problem(n, outcome))


def _refuse(method: Algorithm, problem: str) -> None:
    if problem:
        raise AnonflowError(f"{method.name} made a wrong result, in which {problem}; {BUG}")


def _form_problem(n: int, outcome: Outcome) -> str:
    matches, classes, suppressed = outcome.matches, outcome.classes, outcome.suppressed
    if outcome.generalization.n != n or suppressed.shape != (n,) or suppressed.dtype != bool:
        return f"there are not {n} records"
    if matches is not None:
        if matches.ndim != 2 or len(matches) != n or matches.dtype.kind != "i" or not matches.shape[1]:
            return "the matches are no table of positions"
        if matches.min(initial=0) < -1 or matches.max(initial=0) >= n:
            return "a record matches one that does not exist"
    if classes is not None and (classes.shape != (n,) or classes.dtype.kind != "i"):
        return "the classes are no labels"
    return ""


def _problem(
    method: Algorithm, records: Records, k: int, loss: str, options: Mapping[str, Any], outcome: Outcome
) -> str:
    n, generalization, suppressed = records.n, outcome.generalization, outcome.suppressed
    positions = np.flatnonzero(~suppressed)
    # the cheap checks come first: each of the later ones may assume that these hold
    last = np.array([records.domains[a].size - 1 for a in generalization.layout.ranges], np.int32)[:, None]
    if ((generalization.lo < 0) | (generalization.hi > last)).any():
        return "a generalized record goes beyond its domain"
    if not generalization.covers(Generalization.of(records))[positions].all():
        return "a record is not covered by its own generalized record"
    problem = ""
    if outcome.matches is not None:
        problem = _matches_problem(outcome.matches, suppressed, k, method.symmetric(options))
    if not problem and outcome.classes is not None:
        problem = _classes_problem(outcome.classes, generalization, positions, k)
    if not problem and outcome.matches is None and outcome.classes is None:
        guarantee = str(outcome.facts.get("guarantee") or method.guarantee)
        problem = _guarantee_problem(guarantee, records, generalization, positions, k)
    if not problem and len(positions):
        problem = _generalization_problem(
            method.hides, method.has_fixed_cells(options), records, outcome, positions
        )
    if not problem and outcome.matches is not None and {"cost", "lower_bound"} <= outcome.facts.keys():
        cost, true = outcome.facts["cost"], float(record_costs(generalization, loss).sum())
        if not abs(cost - true) <= NEAR * max(1.0, n, true):
            problem = "the loss is not what the method says"
    return problem


def _matches_problem(matches: np.ndarray, suppressed: np.ndarray, k: int, reciprocal: bool) -> str:
    n = len(suppressed)
    if (matches[:, 0] != np.arange(n)).any():
        return "a record does not match its own"
    ordered = np.sort(matches, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        return "a record matches another twice"
    entered = matches >= 0
    # a reciprocal graph of an odd number of records may need a match more
    degree = entered.sum(axis=1)
    right = np.where(suppressed, degree == 1, (degree == k) | ((degree == k + 1) & reciprocal))
    # each component has one degree: at both ends of an edge as many meet
    back = np.bincount(matches[entered], minlength=n)
    if not right.all() or (entered & (back[matches] != degree[:, None])).any():
        return f"the graph of matches is not {k}-regular"
    return ""


def _classes_problem(
    classes: np.ndarray, generalization: Generalization, positions: np.ndarray, k: int
) -> str:
    if not len(positions):
        return ""
    _, first, label, size = np.unique(
        classes[positions], return_index=True, return_inverse=True, return_counts=True
    )
    if size.min() < k:
        return f"a class has fewer than {k} records"
    like = positions[first[label]]
    if any(
        (part[:, positions] != part[:, like]).any()
        for part in (generalization.lo, generalization.hi, generalization.bits)
    ):
        return "a class has several generalized records"
    return ""


def _guarantee_problem(
    guarantee: str, records: Records, generalization: Generalization, positions: np.ndarray, k: int
) -> str:
    """Return a violation of the guarantee of a method without matches and classes, as far as the check is cheap."""
    if not len(positions):
        return ""
    if promises_classes(guarantee):
        _, size = np.unique(generalization.classes()[positions], return_counts=True)
        return f"a class has fewer than {k} records" if size.min() < k else ""
    for people, rows in _parts_of(guarantee, records, generalization):
        originals = Generalization.of(people)
        for at in _sample(positions, COUNTED):
            # one record against all: the graph of who covers whom would take n^2 bits
            everywhere = np.full(rows.n, at)
            if guarantee != "(1,k)" and rows.take(everywhere).covers(originals).sum() < k:
                return f"a generalized record covers fewer than {k} records"
            if guarantee != "(k,1)" and rows.covers(originals.take(everywhere)).sum() < k:
                return f"a record is covered by fewer than {k} generalized records"
    return ""


def _parts_of(
    guarantee: str, records: Records, generalization: Generalization
) -> list[tuple[Records, Generalization]]:
    """Return people and rows on all columns; under a guarantee of sets of columns, on some of these sets."""
    criterion = criterion_of(guarantee)
    if criterion is None or not criterion.of_sets:
        return [(records, generalization)]
    (request,) = read_criteria(guarantee, None)
    names = list(dict.fromkeys(domain.column for domain in records.domains))
    sets = named_sets(request.parameters.get("sets"), request.parameters.get("of"), names)
    chosen = _sample(np.arange(len(sets)), COUNTED).tolist()
    return [on_columns(records, generalization, sets[at]) for at in chosen]


def _generalization_problem(
    hides: bool, fixed_cells: bool, records: Records, outcome: Outcome, positions: np.ndarray
) -> str:
    """Generalize a sample again from its matches or classes, with whole domains where a pattern hides values, and compare."""
    rows = _sample(positions, max(SAMPLE, len(positions) // SHARE))
    if outcome.matches is not None:
        anew = Generalization.join_of(records, outcome.matches[rows])
    elif outcome.classes is not None:
        members = np.flatnonzero(~outcome.suppressed & np.isin(outcome.classes, outcome.classes[rows]))
        joined = Generalization.join_by_class(records.take(members), outcome.classes[members])
        anew = joined.take(np.searchsorted(members, rows))
    else:
        return ""
    generalization = outcome.generalization.take(rows)
    if fixed_cells:
        return "" if generalization.covers(anew).all() else "a generalized record does not cover its class"
    if hides:
        hidden = generalization.whole()
        anew = _hidden(anew, hidden)
        generalization = _hidden(generalization, hidden)
    if any((getattr(generalization, name) != getattr(anew, name)).any() for name in ("lo", "hi", "bits")):
        return "a generalized record is not that of its matches or class"
    return ""


def _hidden(generalization: Generalization, cells: np.ndarray) -> Generalization:
    """Return the same, with some cells (q, n) taken out of the comparison."""
    layout = generalization.layout
    lo, hi, bits = generalization.lo.copy(), generalization.hi.copy(), generalization.bits.copy()
    # any equal cells on both sides do: these are not compared
    lo[cells[layout.ranges]] = hi[cells[layout.ranges]] = 0
    for a, words in layout.words.items():
        bits[words, cells[a]] = 0
    return Generalization(generalization.domains, lo, hi, bits)


def _sample(rows: np.ndarray, most: int) -> np.ndarray:
    """Return some of them, evenly spread."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64))]
