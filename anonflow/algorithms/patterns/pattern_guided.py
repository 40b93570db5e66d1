"""Pattern-guided k-anonymity (Bredereck, Nichterlein and Niedermeier, Algorithms 6, 2013): the greedy heuristic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.language import (
    PREDICATES,
    FallbackWord,
    fallback_of,
    mask_costs,
    pattern_masks,
    qi_costs,
    whole_costs,
)
from anonflow.algorithms.patterns.row_choices import RowChoices, choices_of, searched
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.patterns import place_rows, place_rows_jit
from anonflow.option import Option
from anonflow.partition import limited
from anonflow.table.domain import Domain
from anonflow.table.records import Records, equal_columns

__all__ = [
    "PATTERN_GUIDED",
    "check_company",
    "everything",
    "follows_all",
    "joined",
    "pattern_guided",
    "place",
    "publish_places",
    "within_boundaries",
]

Patterns = Annotated[Any, Option("Patterns", in_form=False, words=("all", "none", *PREDICATES))]
Weights = Annotated[Any, Option("Weights of columns", in_form=False)]
Fallback = Annotated[FallbackWord | None, Option("Rows that no pattern fits", in_form=False)]

LARGEST = 30_000_000
"""Patterns times row types up to which a local search is made."""

ORDERS = 1000
"""Orders of equally dear patterns that may be tried."""


def pattern_guided(
    part: Partition,
    k: int,
    *,
    patterns: Patterns = "all",
    weights: Weights = None,
    local_search: Annotated[bool, Option("Local search")] = False,
    fallback: Fallback = None,
    orders: Annotated[int, Option("Orders tried", least=1, most=ORDERS)] = 1,
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
        see :func:`anonflow.algorithms.patterns.language.pattern_masks`. Equally dear ones are tried in the
        order in which they are given.
    weights : mapping, optional
        Column -> what suppressing one of its entries costs; 1 for the others.
    local_search : bool, optional
        Rows move between classes while that hides fewer entries: never worse, slower.

        They move between the classes that they fit (:func:`anonflow.algorithms.patterns.row_choices.searched`), which
        is many times as slow where there are many patterns. Off, the result is the paper's.
    fallback : {"none", "all", "strict"}, optional
        What becomes of rows that no pattern can take.

        See :func:`anonflow.algorithms.patterns.language.fallback_of`. Under ``strict`` they join classes that
        they fit; if some are left, one class is suppressed with them where a pattern suppresses everything.
    orders : int, optional
        Of patterns that hide equally many columns; the result that hides the fewest entries is kept.

        That is how many orders of equally dear patterns are tried; of equally cheap results the first is kept.
        The given order is the first, its reverse the second, the others are drawn at random.

    Returns
    -------
    Outcome
        With classes. Rows that no pattern can take are suppressed altogether. Facts: `suppressed_entries`;
        `rows_without_pattern`, how many rows are suppressed altogether though no pattern does that or they are
        fewer than k; `cost` with weights; with a local search, `saved`, by how much it lowered the cost.

    Raises
    ------
    ParameterError
        If a pattern or weight names an unknown column, a pattern has another length, predicates contradict
        each other, or there are too many patterns (for a local search, too many for so many records).
    InfeasibleError
        If rows are left under ``strict``.

    Notes
    -----
    Bredereck 2013, section 2.3: the greedy heuristic. O(p P q) time for p patterns and each order, O(P q)
    memory. The information loss asked for is not looked at: the cost is suppressed entries.
    Weights are the outlook of the paper's section 4. Patterns that suppress a QI whose boundary does not
    allow that are left out.
    """
    domains = part.records.domains
    masks = within_boundaries(part.records, pattern_masks(domains, patterns, weights, fallback))
    strict = fallback_of(patterns, fallback) == "strict"
    whole, unit = whole_costs(domains, weights)
    hides_all = bool((masks == everything(domains)).any())
    if local_search and not strict:
        masks = masks[masks != everything(domains)]  # that is suppression, which needs no k rows
    costs = mask_costs(masks, whole)
    labels, used = cheapest_order(part, masks, costs, int(whole.sum()), k, orders)
    if strict:
        labels, used = joined(part.records, masks, labels, used)
    facts = {}
    small = len(masks) * len(np.unique(part.records.classes())) <= LARGEST
    if local_search and not small:
        raise ParameterError(
            f"pattern-guided: {len(masks)} patterns are too many for a local search in {part.n} records; "
            "allow fewer patterns, use smaller partitions, or do without"
        )
    if local_search or (strict and small and (used < 0).any()):
        choices = choices_of(part.records, masks, costs, None if strict else int(whole.sum()), k)
        if strict:
            check_company(choices)
            choices = choices.priced()
        amount = searched(choices, choices.amount_of(used))
        if local_search:
            before = int(np.append(costs, int(whole.sum()))[used].sum())
            after = int((np.append(costs, int(whole.sum()))[choices.pattern] * amount).sum())
            facts["saved"] = (before - after) / unit
        labels, used = choices.places(amount)
    if strict and (used < 0).any():
        raise InfeasibleError(
            f"pattern-guided: the heuristic leaves {int((used < 0).sum())} rows that follow no pattern; allow "
            "more patterns, use pattern-guided-optimal, or let rows be suppressed with fallback none or all"
        )
    return publish_places(part.records, masks, labels, used, weights, k, hides_all, **facts)


def follows_all(options: Mapping[str, Any]) -> bool:
    """Return whether every row must follow a pattern."""
    return fallback_of(options.get("patterns", "all"), options.get("fallback")) == "strict"


def everything(domains: Sequence[Domain]) -> np.uint64:
    """Return the pattern that suppresses every QI."""
    return np.uint64((1 << len(domains)) - 1)


def check_company(choices: RowChoices) -> None:
    """Refuse rows that agree with fewer than k rows under every pattern.

    Raises
    ------
    InfeasibleError
        If there are any: they can follow no pattern.
    """
    inside = choices.instance >= 0
    alone = np.bincount(choices.kind[inside], minlength=len(choices.rows)) == 0
    if alone.any():
        raise InfeasibleError(
            f"pattern-guided: {int(choices.rows[alone].sum())} rows agree with fewer than k = {choices.k} rows "
            "under every pattern, so not every row can follow one; allow more patterns, lower k, or let rows be "
            "suppressed with fallback none or all"
        )


def cheapest_order(
    part: Partition, masks: np.ndarray, costs: np.ndarray, out: int, k: int, orders: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what :func:`place` returns for the cheapest of several orders of equally dear patterns.

    Parameters
    ----------
    part : Partition
        P records.
    masks : numpy.ndarray, shape (p,), uint64
        By increasing cost.
    costs : numpy.ndarray, shape (p,), int64
    out : int
        Cost of a row that no pattern could take.
    k, orders : int
    """
    best = place(part.records, masks, k)
    prices = np.append(costs, out)
    least = int(prices[best[1]].sum())
    for nth in range(1, orders):
        ties = -np.arange(len(masks)) if nth == 1 else part.rng.permutation(len(masks))
        order = np.lexsort([ties, costs])
        labels, used = place(part.records, masks[order], k)
        used = np.append(order, -1)[used]
        if (cost := int(prices[used].sum())) < least:
            best, least = (labels, used), cost
    return best


def joined(
    records: Records, masks: np.ndarray, labels: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that no pattern took join the cheapest class that they fit.

    Those that fit none are suppressed if a pattern suppresses everything, together with the class for which
    that costs least: it has k rows. O(p n q) time for the p patterns that are in use.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
        By increasing cost.
    labels, used : numpy.ndarray, shape (n,), int64
        As :func:`place` returns them.

    Returns
    -------
    labels, used : numpy.ndarray, shape (n,), int64
        -1 where a row is still left.
    """
    labels, used, before = labels.copy(), used.copy(), used
    left = np.flatnonzero(used < 0)
    for p in np.unique(before[before >= 0]).tolist():
        if not len(left):
            break
        inside = np.flatnonzero(before == p)
        kept = [a for a in range(records.q) if not int(masks[p]) >> a & 1]
        rows = np.concatenate([inside, left])
        same = equal_columns(records.codes[rows][:, kept].T, len(rows))
        class_of = np.full(int(same.max()) + 1, -1)
        class_of[same[: len(inside)]] = labels[inside]
        target = class_of[same[len(inside) :]]
        fits = target >= 0
        labels[left[fits]], used[left[fits]] = target[fits], p
        left = left[~fits]
    whole = np.flatnonzero(masks == everything(records.domains))
    if len(left) and len(whole) and (before >= 0).any():
        kept_cells = np.append(records.q - np.bitwise_count(masks).astype(np.int64), 0)[used]
        lost = np.bincount(labels[used >= 0], kept_cells[used >= 0])
        lost[np.bincount(labels[used >= 0]) == 0] = np.inf
        with_them = (labels == int(lost.argmin())) | (used < 0)
        labels[with_them], used[with_them] = int(lost.argmin()), int(whole[0])
    return labels, used


def publish_places(
    records: Records,
    masks: np.ndarray,
    labels: np.ndarray,
    used: np.ndarray,
    weights: Any,
    k: int,
    hides_all: bool,
    **facts: Any,
) -> Outcome:
    """Return the outcome of giving each record a class and a pattern.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
    labels, used : numpy.ndarray, shape (n,), int64
        As :func:`place` returns them.
    weights : mapping or None
    k : int
    hides_all : bool
        Whether suppressing everything is one of the patterns.
    **facts
        More facts.

    Raises
    ------
    ParameterError
        If a weight is no positive number, or of no quasi-identifier.
    """
    q = records.q
    hidden = np.full(records.n, everything(records.domains), np.uint64)
    hidden[used >= 0] = masks[used[used >= 0]]
    whole = (hidden[None, :] >> np.arange(q, dtype=np.uint64)[:, None]) & np.uint64(1) != 0
    suppressed = whole.all(axis=0)
    classes = np.where(suppressed, labels.max(initial=-1) + 1, labels)
    facts["suppressed_entries"] = int(whole.sum())
    facts["rows_without_pattern"] = int((used < 0).sum()) if not hides_all or suppressed.sum() < k else 0
    if weights is not None:
        facts["cost"] = float(qi_costs(records.domains, weights) @ whole.sum(axis=1))
    return Outcome(_starred(records, whole), classes=classes, suppressed=suppressed, facts=facts)


def within_boundaries(records: Records, masks: np.ndarray) -> np.ndarray:
    """Return the patterns that suppress no value whose boundary or limit is less than its whole domain."""
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
    """Return the class and the pattern of each record.

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
    """Return each record as itself but for the cells of `whole` (q, n), which become the whole domain."""
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
    complete=follows_all,
)
