"""Pattern-guided k-anonymity (Bredereck, Nichterlein and Niedermeier, Algorithms 6, 2013): the greedy heuristic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.lowering import for_sets, write_cells
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.language import (
    LEVELS,
    PREDICATES,
    FallbackWord,
    PatternSet,
    columns_to_hide,
    fallback_of,
    option_problems,
    pattern_set,
    with_codes,
)
from anonflow.algorithms.patterns.row_choices import RowChoices, choices_of, searched
from anonflow.algorithms.recoding.key_set_search import CellLevels, KeySetSearch
from anonflow.algorithms.set_options import (
    Importance,
    Of,
    Sets,
    promise_of_sets,
    qis_of,
    sets_of,
    sets_problems,
)
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.kernels.patterns.pattern_guided import place_rows_jit
from anonflow.option import Option
from anonflow.partition import limited
from anonflow.table import Domain, Records, equal_columns

NAME = "pattern-guided"

Patterns = Annotated[Any, Option("Patterns", in_form=False, words=("all", "none", LEVELS, *PREDICATES))]
Weights = Annotated[Any, Option("Weights of columns", in_form=False)]
Fallback = Annotated[FallbackWord | None, Option("Rows that no pattern fits", in_form=False)]

LARGEST = 30_000_000
"""Patterns times row types up to which a local search is made, and classes are compared with a search for sets."""

ORDERS = 1000
"""The most orders of patterns of equal cost that may be tried."""


def pattern_guided(
    part: Partition,
    k: int,
    *,
    patterns: Patterns = "all",
    weights: Weights = None,
    local_search: Annotated[bool, Option("Local search")] = False,
    fallback: Fallback = None,
    orders: Annotated[int, Option("Orders tried", least=1, most=ORDERS)] = 1,
    sets: Sets = None,
    of: Of = None,
    importance: Importance = None,
) -> Outcome:
    """Suppress entries so that every class has k rows and every row follows one of the given patterns.

    Patterns are tried by increasing number of suppressed quasi-identifiers (QIs), or by increasing weight. A
    class of a pattern takes all the rows left that agree on what the pattern keeps, when they are at least k.
    Values that are kept are published as they are, whatever the kind of the QI; the others as ``*``. A pattern may
    also say at which level of its hierarchy, or in intervals of which width, a QI is published.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns : "all", mapping or sequence
        Which columns may be hidden together: all, predicates, or a list of patterns.

        All 2^q patterns (q <= 20); predicates such as ``{at-most: 2, never: [education], fallback: all}``;
        levels such as ``{levels: {age: "width 10", country: ["level 1", "*"]}}``; or a list of patterns, of which
        each is a list of columns to suppress, a text of 0 and 1, predicates, or levels: see
        :func:`anonflow.algorithms.patterns.language.pattern_set`. Patterns of equal cost are tried in the order of the list.
    weights : mapping, optional
        Column -> what suppressing one of its entries costs; 1 for the others. At a level, a share of it.
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

        This is the number of orders of patterns of equal cost that are tried, each to its end: a local search and joins under ``strict``
        included. Among results of equal cost the first is kept.
        The given order is the first, its reverse the second, the others are drawn at random.
    sets : list of lists of str, optional
        Columns that others may know, each set by itself: cells that no set needs hidden are published as they were. Only with patterns of
        which each may also hide less, and without levels.

        Where patterns let each QI be hidden or not by itself, and `fallback` is not ``strict``, there are no classes, and neither a local
        search nor orders: as :func:`anonflow.algorithms.recoding.local_suppression.local_suppression`. Under other patterns, and where
        classes hide fewer entries (without `importance`, where there are few patterns), as :func:`anonflow.algorithms.lowering.for_sets`.
    of : int, optional
        Instead of sets: all sets of so many columns.
    importance : mapping, optional
        Of sets: column -> number, 0 where none is given. Cells of the columns with the greatest number are hidden last.

    Returns
    -------
    Outcome
        With classes. Rows that no pattern can take are suppressed altogether. Facts: `suppressed_entries`; with levels `generalized_entries`, published at one that neither shows nor hides the value; `cost`
        with weights or levels; with a local search, `saved`, by how much it lowered the cost. Of a whole table,
        `rows_without_pattern`: :func:`rows_without_pattern`.

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
    memory. The method ignores the requested information loss: its cost is the number of suppressed entries.
    Weights and hierarchies are suggested in the paper's section 5. At a level a class takes all the rows left that the
    pattern publishes alike; an entry costs the share of its height that the level has, of an interval the share of the
    domain's width. Patterns that suppress a QI whose boundary does not allow that, or generalize it beyond, are left out.

    A row that an earlier pattern could have taken follows no later one: the attacker :class:`anonflow.risk.Refinement` rules its
    values out, and needs nobody's quasi-identifiers. It did so for 30% of the people of 5,000 records of Adult with four
    quasi-identifiers (age, education, occupation, marital status) at k = 5, and with a local search for 26%. A list with a single
    pattern has no rounds: nothing was ruled out there, and the loss was 37% higher.
    """
    allowed = within_boundaries(part.records, pattern_set(part.records.domains, patterns, weights, fallback))
    strict = fallback_of(patterns, fallback) == "strict"
    chosen = sets_of(part.records, sets, of, importance, NAME)
    if chosen:
        for _, problem in _shows_more(allowed):
            raise ParameterError(problem, subject=NAME)
        hidden = _hidden_alone(allowed)
        if hidden is not None and not strict and part.n >= k:
            promise = promise_of_sets(sets, chosen, "matches")
            outcome = _hidden_for_sets(part.records, k, allowed, hidden, chosen, importance, promise)
            if not importance and _is_small(part.records, allowed):
                # classes that hide fewer entries keep the promise, too: the search ends where no single cell can be shown
                classes = pattern_guided(part, k, patterns=patterns, weights=weights, fallback=fallback)
                if _cost(part.records, classes, allowed) < _cost(part.records, outcome, allowed):
                    outcome = for_sets(part, k, classes, sets, of, importance, NAME, follows_patterns=True)
            return _counted(part.records, outcome, allowed, weights)
    if local_search and not strict:
        # that is suppression, which needs no k rows
        allowed = allowed.take(allowed.masks != allowed.everything)
    masks, costs, columns = allowed.masks, allowed.costs, allowed.shown(part.records)
    small = _is_small(part.records, allowed)
    if local_search and not small:
        raise ParameterError(
            f"{len(masks)} patterns are too many for a local search in {part.n} records; "
            "allow fewer patterns, use smaller partitions, or do without",
            subject=NAME,
        )
    # the last price, at -1, is that of suppression
    prices = np.append(costs, allowed.out)
    choices: RowChoices | None = None
    least: tuple[int, int] | None = None
    for order in tied_orders(costs, orders, part.rng):
        group, pattern = place(columns, masks[order], k)
        # -1, no pattern, stays -1
        pattern = np.append(order, -1)[pattern]
        if strict:
            group, pattern = joined(columns, masks, group, pattern)
        placed = int(prices[pattern].sum())
        if local_search or (strict and small and (pattern < 0).any()):
            choices = choices or _choices_to_search(columns, masks, costs, None if strict else allowed.out, k)
            group, pattern = choices.places(searched(choices, choices.amount_of(pattern)))
        # under strict an order that leaves fewer rows is better at any cost
        cost = int((pattern < 0).sum()) if strict else 0, int(prices[pattern].sum())
        if least is None or cost < least:
            least, labels, used, saved = cost, group, pattern, placed - cost[1]
    facts = {"saved": saved / allowed.unit} if local_search else {}
    if strict and (used < 0).any():
        raise InfeasibleError(
            f"the heuristic leaves {plural(int((used < 0).sum()), 'row')} without a pattern; allow "
            "more patterns, use pattern-guided-optimal, or let rows be suppressed with fallback none or all",
            subject=NAME,
        )
    if weights is not None:
        facts["cost"] = int(np.append(costs, allowed.out)[used].sum()) / allowed.unit
    outcome = publish_places(part.records, allowed, labels, used, **facts)
    if not chosen:
        return outcome
    return _counted(
        part.records,
        for_sets(part, k, outcome, sets, of, importance, NAME, follows_patterns=True),
        allowed,
        weights,
    )


def _is_small(records: Records, allowed: PatternSet) -> bool:
    """Return whether there are few enough patterns for as many distinct records."""
    return len(allowed.masks) * len(np.unique(records.classes())) <= LARGEST


def _hides(records: Records, outcome: Outcome) -> np.ndarray:
    """Return which cells an outcome hides, shape (q, n), bool."""
    hides = outcome.generalization.whole() & ~Generalization.of(records).whole()
    hides[:, outcome.suppressed] = True
    return hides


def _cost(records: Records, outcome: Outcome, allowed: PatternSet) -> int:
    """Return what the hidden cells of an outcome cost, in the patterns' units."""
    return int(_hides(records, outcome).sum(axis=1) @ allowed.whole)


def _counted(records: Records, outcome: Outcome, allowed: PatternSet, weights: Any) -> Outcome:
    """Return an outcome for sets of columns with its facts of hidden entries."""
    outcome.facts["suppressed_entries"] = int(_hides(records, outcome)[_entries(records)].sum())
    if weights is not None:
        outcome.facts["cost"] = _cost(records, outcome, allowed) / allowed.unit
    return outcome


def _entries(records: Records) -> list[int]:
    """Return the QIs whose cells are counted as entries: numbers and the codes beside them are one."""
    return [a for a, domain in enumerate(records.domains) if domain.kind != "codes"]


def _hidden_alone(allowed: PatternSet) -> np.uint64 | None:
    """Return the QIs that patterns hide, as a mask, if each may be hidden or not by itself, whatever a row hides besides; else None."""
    parts = allowed.masks[allowed.masks != allowed.everything]
    hidden = np.bitwise_or.reduce(parts, initial=np.uint64(0))
    if hidden == allowed.everything:  # a row that hides all columns is suppressed, which needs no pattern
        parts = np.append(parts, hidden)
    free = len(np.unique(parts)) == 1 << int(np.bitwise_count(hidden))
    return hidden if free else None


def _hidden_for_sets(
    records: Records,
    k: int,
    allowed: PatternSet,
    hidden: np.uint64,
    chosen: Sequence[Sequence[str]],
    importance: Any,
    promise: str,
) -> Outcome:
    """Return records with few hidden entries, under patterns by which each QI of a mask may be hidden or not by itself.

    The search is that of :func:`anonflow.algorithms.recoding.local_suppression.local_suppression`.
    """
    zeros = np.zeros(records.n, np.int64)
    columns = [
        CellLevels(
            np.array([equal_columns([records.codes[:, a]], records.n), zeros], np.int32),
            np.array([zeros, zeros + cost], np.float64),
            (records.codes[:, a] < 0).astype(np.int64),
            int(hidden >> np.uint64(a) & np.uint64(1)),
            float((importance or {}).get(domain.column, 0)),
        )
        for a, (domain, cost) in enumerate(zip(records.domains, allowed.whole, strict=True))
    ]
    search = KeySetSearch(columns, qis_of(records.domains, chosen), k)
    search.run()
    search.suppress_rest()
    cells = Generalization.of(records)
    everything = cells.with_suppressed(np.ones(records.n, bool))
    # rows that no pattern helps are hidden in all columns, also where others have one value
    suppressed = np.asarray((search.level > 0).all(axis=0))
    for a, level in enumerate(search.level):
        # a missing number has no level below, but its cell need not be hidden: a code may stand in its place
        hides = (level > 0) & (suppressed | (records.codes[:, a] >= 0))
        write_cells(cells, everything, [a], np.flatnonzero(hides))
    return Outcome(cells, suppressed=suppressed, facts={"guarantee": promise})


def _shows_more(allowed: PatternSet) -> Iterator[tuple[str, str]]:
    """Yield why sets of columns do not go with patterns: a row that shows again what it hid would follow none of them."""
    if allowed.cells:
        yield "sets", "sets of columns do not go with patterns of levels; leave one of them out"
        return
    for bit in with_codes(
        np.uint64(1) << np.arange(len(columns_to_hide(allowed.domains)), dtype=np.uint64), allowed.domains
    ):
        if not np.isin(allowed.masks[(allowed.masks & bit) > 0] & ~bit, allowed.masks).all():
            yield (
                "sets",
                "with sets of columns, rows show again what no set needs hidden, and so each pattern must be allowed to hide less; "
                "take patterns such as {at-most: 2} or {never: [sex]}, or leave the sets out",
            )
            return


def _option_problems(
    domains: Sequence[Domain] | None, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the option and the problem of each that does not go with another one or with the columns."""
    problems = list(option_problems(domains, options))
    yield from problems
    yield from sets_problems(domains, options)
    if problems or domains is None or (options.get("sets") is None and options.get("of") is None):
        return
    allowed = pattern_set(
        domains, options.get("patterns", "all"), options.get("weights"), options.get("fallback")
    )
    yield from _shows_more(allowed)


def follows_all(options: Mapping[str, Any]) -> bool:
    """Return whether every row must follow a pattern."""
    return fallback_of(options.get("patterns", "all"), options.get("fallback")) == "strict"


def has_levels(options: Mapping[str, Any]) -> bool:
    """Return whether a pattern says at which level a column is published."""
    patterns = options.get("patterns", "all")
    listed = patterns if isinstance(patterns, Sequence) and not isinstance(patterns, str) else [patterns]
    return any(isinstance(pattern, Mapping) and LEVELS in pattern for pattern in listed)


def rows_without_pattern(records: Records, suppressed: np.ndarray, options: Mapping[str, Any]) -> int:
    """Return how many suppressed rows follow no pattern, provided that at least k rows are suppressed.

    Fewer follow none at all. The numbers of partitions add up; whether there are k is known of the whole table only.

    Parameters
    ----------
    records : Records
        n records.
    suppressed : numpy.ndarray, shape (n,), bool
        Rows that are published as ``*`` throughout.
    options : mapping
        The method's own.

    Returns
    -------
    int
        0 if a pattern hides everything, if need be in QIs of one value or at levels of one cell. A number that a record
        has not is hidden under every pattern.

    Raises
    ------
    ParameterError
        As :func:`anonflow.algorithms.patterns.language.pattern_set`.
    """
    if not suppressed.any():
        return 0
    allowed = pattern_set(
        records.domains, options.get("patterns", "all"), options.get("weights"), options.get("fallback")
    )
    hidden = allowed.masks.copy()
    for b, a in enumerate(allowed.qis):
        last = records.domains[a].size - 1
        cells = None if b < records.q else allowed.cells[b - records.q]
        if last == 0 or (cells is not None and ((cells.lo[:-1] == 0) & (cells.hi[:-1] == last)).any()):
            hidden |= np.uint64(1 << b)
    # a number that has a code in its place is hidden, or shown as its code
    absent = (records.codes[suppressed] < 0) & ~np.array([domain.has_codes for domain in records.domains])
    codes, counts = np.unique(absent, axis=0, return_counts=True)
    rows = 0
    for missing, count in zip(codes, counts.tolist(), strict=True):
        blank = np.uint64(sum(1 << b for b, a in enumerate(allowed.qis) if missing[a]))
        rows += 0 if (hidden | blank == allowed.everything).any() else count
    return rows


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
        rows = int(choices.rows[alone].sum())
        raise InfeasibleError(
            f"{plural(rows, 'row', 'agree')} with fewer than k = {choices.k} rows "
            "of those anonymized together, whatever the pattern, so not every row can follow one; allow more patterns, lower k, "
            "use larger partitions if the table is cut, or let rows be suppressed with fallback none or all",
            subject=NAME,
        )


def tied_orders(costs: np.ndarray, orders: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield several orders of patterns by increasing cost: equal costs as given, then reversed, then drawn.

    Parameters
    ----------
    costs : numpy.ndarray, shape (p,), int64
        Increasing.
    orders : int
    rng : numpy.random.Generator

    Yields
    ------
    numpy.ndarray, shape (p,), int64
        Positions of patterns.
    """
    yield np.arange(len(costs))
    for nth in range(1, orders):
        ties = -np.arange(len(costs)) if nth == 1 else rng.permutation(len(costs))
        yield np.lexsort([ties, costs])


def _choices_to_search(
    records: Records, masks: np.ndarray, costs: np.ndarray, out: int | None, k: int
) -> RowChoices:
    """Return the choices of a local search; without `out` a row that follows no pattern costs more than all others.

    Raises
    ------
    InfeasibleError
        If, without `out`, a row can follow no pattern.
    """
    choices = choices_of(records, masks, costs, out, k)
    if out is not None:
        return choices
    check_company(choices)
    return choices.priced()


def joined(
    records: Records, masks: np.ndarray, labels: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Let rows that no pattern took join the cheapest class that they fit.

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
    unplaced = np.flatnonzero(used < 0)
    for p in np.unique(before[before >= 0]).tolist():
        if not len(unplaced):
            break
        inside = np.flatnonzero(before == p)
        qis = [a for a in range(records.q) if not int(masks[p]) >> a & 1]
        rows = np.concatenate([inside, unplaced])
        same = equal_columns(records.codes[rows][:, qis].T, len(rows))
        class_of = np.full(int(same.max()) + 1, -1)
        class_of[same[: len(inside)]] = labels[inside]
        target = class_of[same[len(inside) :]]
        fits = target >= 0
        labels[unplaced[fits]], used[unplaced[fits]] = target[fits], p
        unplaced = unplaced[~fits]
    whole = np.flatnonzero(masks == np.uint64((1 << records.q) - 1))
    if len(unplaced) and len(whole) and (before >= 0).any():
        entries = np.uint64(sum(1 << a for a in _entries(records)))
        # a row without a pattern, -1, takes the last entry
        kept_cells = np.append(np.bitwise_count(~masks & entries).astype(np.int64), 0)[used]
        lost = np.bincount(labels[used >= 0], kept_cells[used >= 0])
        lost[np.bincount(labels[used >= 0]) == 0] = np.inf
        with_them = (labels == int(lost.argmin())) | (used < 0)
        labels[with_them], used[with_them] = int(lost.argmin()), int(whole[0])
    return labels, used


def publish_places(
    records: Records,
    allowed: PatternSet,
    labels: np.ndarray,
    used: np.ndarray,
    **facts: Any,
) -> Outcome:
    """Return the outcome of giving each record a class and a pattern.

    Parameters
    ----------
    records : Records
        n records.
    allowed : PatternSet
    labels, used : numpy.ndarray, shape (n,), int64
        As :func:`place` returns them.
    **facts
        More facts.
    """
    # a record without a pattern, -1, takes the last entry: it hides everything
    patterns = np.append(allowed.masks, allowed.everything)[used]
    whole = np.ones((records.q, records.n), bool)
    originals = Generalization.of(records)
    everything = originals.with_suppressed(np.ones(originals.n, bool))
    layout = originals.layout
    lo, hi, bits = originals.lo.copy(), originals.hi.copy(), originals.bits.copy()
    row_of = layout.row_of_range
    generalized = 0
    for b, a in enumerate(allowed.qis):
        rows = np.flatnonzero((patterns >> np.uint64(b)) & np.uint64(1) == 0)
        whole[a, rows] = False
        if b >= records.q:
            cells, codes = allowed.cells[b - records.q], records.codes[rows, a]
            lo[row_of[a], rows], hi[row_of[a], rows] = cells.lo[codes], cells.hi[codes]
            generalized += len(rows)
    for t, a in enumerate(layout.ranges):
        lo[t] = np.where(whole[a], everything.lo[t], lo[t])
        hi[t] = np.where(whole[a], everything.hi[t], hi[t])
    for a, words in layout.words.items():
        bits[words] = np.where(whole[a], everything.bits[words], bits[words])
    published = Generalization(records.domains, lo, hi, bits)
    suppressed = np.asarray(whole.all(axis=0))
    if allowed.cells:
        facts["generalized_entries"] = generalized
        facts.setdefault("cost", int(np.append(allowed.costs, allowed.out)[used].sum()) / allowed.unit)
        suppressed |= published.suppressed_rows()  # cells of a level may be as wide as the domain
    classes = np.where(suppressed, labels.max(initial=-1) + 1, labels)
    facts["suppressed_entries"] = int(whole[_entries(records)].sum())
    return Outcome(published, classes=classes, suppressed=suppressed, facts=facts)


def within_boundaries(records: Records, allowed: PatternSet) -> PatternSet:
    """Return the patterns that neither suppress nor generalize a value beyond its boundary or limit."""
    good = np.ones(len(allowed.masks), bool)
    beyond_limit = set(limited(records))
    for a, domain in enumerate(records.domains):
        codes = records.codes[:, a]
        bound = None if domain.bound is None else domain.bound[codes[codes >= 0]]
        if a in beyond_limit or (
            bound is not None and ((bound[:, 0] > 0) | (bound[:, 1] < domain.size - 1)).any()
        ):
            good &= ~allowed.hides(a)
    for b, cells in enumerate(allowed.cells, start=records.q):
        domain = records.domains[allowed.qis[b]]
        codes = records.codes[:, allowed.qis[b]]
        codes = codes[codes >= 0]
        lo, hi = cells.lo[codes], cells.hi[codes]
        beyond = False
        if domain.bound is not None:
            beyond = bool(((lo < domain.bound[codes, 0]) | (hi > domain.bound[codes, 1])).any())
        if domain.limit is not None:
            beyond |= bool((domain.points[hi] - domain.points[lo] > domain.limit).any())
        if beyond:
            good &= ~allowed.shows(b)
    return allowed.take(good)


def place(records: Records, masks: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the class and the pattern of each record.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
        Patterns in order of preference; bit a is set where QI a is suppressed.
    k : int

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
    # fixed words: they affect the speed, never the result; classes are compared value by value
    words = np.random.Generator(np.random.PCG64(5)).integers(0, 2**64, sum(sizes), np.uint64) | np.uint64(1)
    labels = np.empty(types.shape[1], np.int64)
    used = np.empty(types.shape[1], np.int64)
    with np.errstate(over="ignore"):
        place_rows_jit(types, weight.astype(np.int64), words, word_at, masks, k, labels, used)
    return labels[row_type], used[row_type]


PATTERN_GUIDED = Algorithm(
    name=NAME,
    run=pattern_guided,
    family="pattern",
    paper="Bredereck, Nichterlein, Niedermeier: Pattern-guided k-anonymity. Algorithms 6(4), 2013",
    guarantee="k-anonymity",
    complexity="O(p n q) for p patterns",
    summary="values stay exact or are hidden; you say which columns may be hidden together",
    colour="#8a8a8a",
    shape="hex",
    hides=True,
    fixed_cells=has_levels,
    complete=follows_all,
    without_pattern=rows_without_pattern,
    keeps_limits=True,
    option_problems=_option_problems,
)
