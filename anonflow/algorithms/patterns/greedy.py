"""Pattern-guided k-anonymity (Bredereck, Nichterlein and Niedermeier, Algorithms 6, 2013): the greedy heuristic."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.language import PREDICATES, mask_costs, pattern_masks, qi_costs, whole_costs
from anonflow.algorithms.patterns.row_choices import choices_of, searched
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.patterns import place_rows, place_rows_jit
from anonflow.option import Option
from anonflow.partition import limited
from anonflow.table.records import Records, equal_columns

__all__ = ["PATTERN_GUIDED", "pattern_guided", "place", "publish_places", "within_boundaries"]

Patterns = Annotated[Any, Option("Patterns", in_form=False, words=("all", "none", *PREDICATES))]
Weights = Annotated[Any, Option("Weights of columns", in_form=False)]

LARGEST = 30_000_000
"""Patterns times row types up to which a local search is made."""


def pattern_guided(
    part: Partition,
    k: int,
    *,
    patterns: Patterns = "all",
    weights: Weights = None,
    local_search: Annotated[bool, Option("Local search")] = False,
) -> Outcome:
    """Suppress entries so that every class has k rows and every row follows one of the given patterns.

    Patterns are tried by increasing number of suppressed quasi-identifiers (QIs), or by increasing weight. A
    class of a pattern takes all the rows left that agree on what the pattern keeps, when they are at least k.
    Values that are kept are published as they are, whatever the kind of the QI; the others as ``*``.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns : "all", mapping or sequence
        Which columns may be hidden together: all, predicates, or a list of patterns.

        All 2^q patterns (q <= 20); predicates such as ``{at-most: 2, never: [education], fallback: all}``; or
        a list of patterns, of which each is a list of columns to suppress, a text of 0 and 1, or predicates:
        see :func:`anonflow.algorithms.patterns.language.pattern_masks`.
    weights : mapping, optional
        Column -> what suppressing one of its entries costs; 1 for the others.
    local_search : bool, optional
        Rows move between classes while that hides fewer entries: never worse, slower.

        They move between the classes that they fit (:func:`anonflow.algorithms.patterns.row_choices.searched`), which
        is many times as slow where there are many patterns. Off, the result is the paper's.

    Returns
    -------
    Outcome
        With classes. Rows that no pattern can take are suppressed altogether. Facts: `suppressed_entries`,
        and `cost` with weights; with a local search, `saved`, by how much it lowered the cost.

    Raises
    ------
    ParameterError
        If a pattern or weight names an unknown column, a pattern has another length, predicates contradict
        each other, or there are too many patterns (for a local search, too many for so many records).

    Notes
    -----
    Bredereck 2013, the greedy heuristic; its order of equally many suppressed QIs is that of the binary number whose
    most significant bit is the first QI, increasing, so the last QI is suppressed first. O(p P q) time for p
    patterns, O(P q) memory. The information loss asked for is not looked at: the cost is suppressed entries.
    Weights are the outlook of the paper's section 4. Patterns that suppress a QI whose boundary does not
    allow that are left out.
    """
    domains = part.records.domains
    masks = within_boundaries(part.records, pattern_masks(domains, patterns, weights))
    if not local_search:
        labels, used = place(part.records, masks, k)
        return publish_places(part.records, masks, labels, used, weights)
    masks = masks[masks != np.uint64((1 << part.records.q) - 1)]  # that is suppression, which needs no k rows
    labels, used = place(part.records, masks, k)
    if len(masks) * len(np.unique(part.records.classes())) > LARGEST:
        raise ParameterError(
            f"pattern-guided: {len(masks)} patterns are too many for a local search in {part.n} records; "
            "allow fewer patterns, use smaller partitions, or do without"
        )
    whole, unit = whole_costs(domains, weights)
    costs = mask_costs(masks, whole)
    choices = choices_of(part.records, masks, costs, int(whole.sum()), k)
    amount = searched(choices, used)
    before = int(np.where(used >= 0, np.append(costs, 0)[used], int(whole.sum())).sum())
    labels, used = choices.places(amount)
    saved = (before - choices.cost_of(amount)) / unit
    return publish_places(part.records, masks, labels, used, weights, saved=saved)


def publish_places(
    records: Records, masks: np.ndarray, labels: np.ndarray, used: np.ndarray, weights: Any, **facts: Any
) -> Outcome:
    """The outcome of giving each record a class and a pattern.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
    labels, used : numpy.ndarray, shape (n,), int64
        As :func:`place` returns them.
    weights : mapping or None
    **facts
        More facts.

    Raises
    ------
    ParameterError
        If a weight is no positive number, or of no quasi-identifier.
    """
    q = records.q
    hidden = np.full(records.n, (1 << q) - 1, np.uint64)
    hidden[used >= 0] = masks[used[used >= 0]]
    whole = (hidden[None, :] >> np.arange(q, dtype=np.uint64)[:, None]) & np.uint64(1) != 0
    suppressed = whole.all(axis=0)
    classes = np.where(suppressed, labels.max(initial=-1) + 1, labels)
    facts["suppressed_entries"] = int(whole.sum())
    if weights is not None:
        facts["cost"] = float(qi_costs(records.domains, weights) @ whole.sum(axis=1))
    return Outcome(_starred(records, whole), classes=classes, suppressed=suppressed, facts=facts)


def within_boundaries(records: Records, masks: np.ndarray) -> np.ndarray:
    """The patterns that suppress no value whose boundary or limit is less than its whole domain."""
    kept = sum(1 << a for a in limited(records))
    for a, domain in enumerate(records.domains):
        if domain.bound is not None:
            codes = records.codes[:, a]
            runs = domain.bound[codes[codes >= 0]]
            if (runs[:, 0] > 0).any() or (runs[:, 1] < domain.size - 1).any():
                kept |= 1 << a
    return masks[(masks & np.uint64(kept)) == 0]


def place(
    records: Records, masks: np.ndarray, k: int, compiled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The class and the pattern of each record.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
        Patterns in order of preference; bit a is set where QI a is suppressed.
    k : int
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Returns
    -------
    labels, used : numpy.ndarray, shape (n,), int64
        -1 where no pattern could take the record.
    """
    row_type = equal_columns(records.codes.T, records.n)
    _, example, weight = np.unique(row_type, return_index=True, return_counts=True)
    types = np.ascontiguousarray(records.codes[example].T)
    sizes = [domain.size + 1 for domain in records.domains]
    word_at = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    # fixed words: they decide how fast, never what; classes are compared value by value
    words = np.random.Generator(np.random.PCG64(5)).integers(0, 2**64, sum(sizes), np.uint64) | np.uint64(1)
    labels = np.empty(types.shape[1], np.int64)
    used = np.empty(types.shape[1], np.int64)
    kernel = place_rows_jit if compiled else place_rows
    with np.errstate(over="ignore"):
        kernel(types, weight.astype(np.int64), words, word_at, masks, k, labels, used)
    return labels[row_type], used[row_type]


def _starred(records: Records, whole: np.ndarray) -> Generalization:
    """Each record as itself but for the cells of `whole` (q, n), which become the whole domain."""
    own = Generalization.of(records)
    everything = own.with_suppressed(np.ones(own.n, bool))
    layout = own.layout
    lo, hi, bits = own.lo.copy(), own.hi.copy(), own.bits.copy()
    for t, a in enumerate(layout.ranges):
        lo[t] = np.where(whole[a], everything.lo[t], own.lo[t])
        hi[t] = np.where(whole[a], everything.hi[t], own.hi[t])
    for t, a in enumerate(layout.sets):
        rows = slice(layout.offset[t], layout.offset[t + 1])
        bits[rows] = np.where(whole[a], everything.bits[rows], own.bits[rows])
    return Generalization(records.domains, lo, hi, bits)


PATTERN_GUIDED = Algorithm(
    name="pattern-guided",
    run=pattern_guided,
    family="pattern",
    paper="Bredereck, Nichterlein, Niedermeier: Pattern-guided k-anonymity. Algorithms 6(4), 2013",
    guarantee="k-anonymity",
    complexity="O(p n q) for p patterns",
    summary="values stay exact or are hidden; you say which columns may be hidden together",
    colour="#8a8a8a",
    shape="hex",
    hides=True,
)
