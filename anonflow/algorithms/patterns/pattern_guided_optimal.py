"""Pattern-guided k-anonymity with the fewest suppressions (Bredereck 2013, section 2.2): an integer program."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.integer_program import NONE, improved
from anonflow.algorithms.patterns.language import fallback_of, option_problems, pattern_set
from anonflow.algorithms.patterns.pattern_guided import (
    Fallback,
    Patterns,
    Weights,
    check_company,
    follows_all,
    has_levels,
    joined,
    place,
    publish_places,
    rows_without_pattern,
    within_boundaries,
)
from anonflow.algorithms.patterns.row_choices import RowChoices, choices_of, searched
from anonflow.errors import InfeasibleError, errors_of, setting
from anonflow.kernels.jit import method_clock
from anonflow.option import Option


def pattern_guided_optimal(
    part: Partition,
    k: int,
    *,
    patterns: Patterns = "all",
    weights: Weights = None,
    time_limit: Annotated[float, Option("Time limit (seconds)", least=0, below=1e9, time_limit=True)] = 60.0,
    fallback: Fallback = None,
) -> Outcome:
    """Suppress as few entries as possible so that every class has k rows and every row follows a pattern.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns : "all", mapping or sequence
        Which columns may be hidden together, as pattern-guided takes it
        (:func:`anonflow.algorithms.patterns.pattern_guided.pattern_guided`).
    weights : mapping, optional
        Column -> what suppressing one of its entries costs; 1 for the others.
    time_limit : float
        For each partition; when it is over, the best result found is kept.

        The compilation of kernels in a first run is not counted. The limit is that of the integer program; the facts say how far
        the result can be from the optimum.
    fallback : {"none", "all", "strict"}, optional
        What becomes of rows that no pattern can take, as pattern-guided takes it.

    Returns
    -------
    Outcome
        With classes. Rows that follow no pattern are suppressed altogether; under ``strict`` there are none.
        Facts: `suppressed_entries` and, of a whole table, `rows_without_pattern`, as the heuristic's; `cost`, the suppressed entries
        with their weights; `lower_bound`, which no solution is below; `heuristic`, the cost of the heuristic,
        and `local_search`, what it is after rows moved to better instances (both only where these find a
        solution); `proven`, whether the solution is known to be optimal.

    Raises
    ------
    ParameterError
        If a pattern or a weight is invalid.
    InfeasibleError
        If under ``strict`` there is no solution, or none is found in time.

    Notes
    -----
    Bredereck 2013, equations (5) to (8), solved with HiGHS. Before that: instances with fewer than k
    compatible rows are dropped; the cheapest instance left to each row bounds from below, and if the
    heuristic's solution meets the bound it is published. Else a local search improves it
    (:func:`anonflow.algorithms.patterns.row_choices.searched`). The program consists of independent parts
    (:func:`anonflow.algorithms.patterns.integer_program.improved`). In each, a choice that costs so much more than its
    row's cheapest that no solution with it could be better is dropped too, again and again; an instance whose rows
    all fit one that costs no more is dropped. Costs are whole numbers, so the program ends at a gap below 1. The rows
    that choose an instance are bounded one by one, not by (6)'s sum, which is the same for whole numbers and tighter
    for fractions; and only the choice of instances must be integer: with it fixed, the rest is a transport problem
    with integer vertices.

    Departing from (7), unless `fallback` is ``strict``, rows may be suppressed altogether without k of them,
    as the heuristic does with its remainder: they are published as suppressed records are. Under ``strict``
    the pattern that suppresses everything joins all rows to one part. It is left out of the joining first:
    if then no row or at least k rows are suppressed, this is the solution of the complete program. Exponential time at
    worst. The wall clock decides where an unproven search stops, so only proven results are the same
    everywhere. The paper's enumerations (Theorems 2 and 3) are not built: the program proves the same in less time (200 rows of four
    columns, k = 2: 0.1 s of processor time, and 17 s by pairs and triples; Theorem 3 ends at some 16 instances of patterns).
    """
    end = method_clock() + time_limit
    records = part.records
    with errors_of("pattern-guided-optimal", shared="pattern-guided"):
        allowed = within_boundaries(records, pattern_set(records.domains, patterns, weights, fallback))
        strict = fallback_of(patterns, fallback) == "strict"
    if not strict:
        # that is suppression, which needs no k rows
        allowed = allowed.take(allowed.masks != allowed.everything)
    masks, costs, columns, unit = allowed.masks, allowed.costs, allowed.shown(records), allowed.unit
    labels, used = place(columns, masks, k)
    facts = {}
    if strict:
        labels, used = joined(columns, masks, labels, used)
        choices = choices_of(columns, masks, costs, None, k)
        with errors_of("pattern-guided-optimal", shared="pattern-guided"):
            check_company(choices)
    else:
        choices = choices_of(columns, masks, costs, allowed.out, k)
    amount: np.ndarray | None = None
    if not strict or (used >= 0).all():
        amount = choices.amount_of(used)
        facts["heuristic"] = choices.cost_of(amount) / unit
    bound = choices.bound()
    if time_limit > 0 and _cost(choices, amount) > bound:
        amount = (
            _searched(choices, choices.priced().amount_of(used))
            if strict
            else searched(choices, choices.amount_of(used))
        )
    if amount is not None:
        facts["local_search"] = choices.cost_of(amount) / unit
    if time_limit > 0 and _cost(choices, amount) > bound:
        amount, least = _improved(choices, amount, masks == allowed.everything, end)
        bound = max(bound, least)
    if amount is None:
        raise InfeasibleError(
            "pattern-guided-optimal: there is no way for every row to follow a pattern; allow more patterns, "
            "lower k, or let rows be suppressed with fallback none or all"
            if bound == NONE
            else "pattern-guided-optimal: no way for every row to follow a pattern was found; allow more patterns, "
            "raise "
            + setting("time-limit", "time_limit")
            + ", or let rows be suppressed with fallback none or all"
        )
    cost = choices.cost_of(amount)
    labels, used = choices.places(amount)
    return publish_places(
        records,
        allowed,
        labels,
        used,
        cost=cost / unit,
        lower_bound=min(bound, cost) / unit,
        **facts,
        proven=bound >= cost,
    )


def _cost(choices: RowChoices, amount: np.ndarray | None) -> int:
    """Return the cost of a solution; :data:`NONE` without a solution."""
    return NONE if amount is None else choices.cost_of(amount)


def _searched(choices: RowChoices, amount: np.ndarray) -> np.ndarray | None:
    """Return the local search's solution in which every row follows a pattern; None if some rows follow none.

    Parameters
    ----------
    choices : RowChoices
    amount : numpy.ndarray, shape (t + c,), int64
        Of ``choices.priced()``.
    """
    moved = searched(choices.priced(), amount)
    t = len(choices.rows)
    return None if moved[:t].any() else moved[t:]


def _improved(
    choices: RowChoices, amount: np.ndarray | None, hides_all: np.ndarray, end: float
) -> tuple[np.ndarray | None, int]:
    """Return the integer program's solution, starting from a given one, and a bound.

    `hides_all`, shape (p,), bool, is the pattern that suppresses everything, if it needs k rows.
    """
    hidden = np.append(hides_all, False)[choices.pattern]
    if not hidden.any():
        return improved(choices, amount, end)
    # first as if hidden rows needed no company: a bound, and the optimum where nobody or k rows are hidden
    apart = replace(choices, instance=np.where(hidden, -1, choices.instance))
    free, bound = improved(apart, amount, end)
    if free is None:
        return improved(choices, amount, end)
    if not 0 < int(free[hidden].sum()) < choices.k:
        return free, bound
    no_places = np.zeros(len(choices.rows), np.int64)
    joint = _searched(choices, np.concatenate([no_places, _hidden_together(choices, free, hidden)]))
    if _cost(choices, amount) < _cost(choices, joint):
        joint = amount
    if _cost(choices, joint) <= bound:
        return joint, bound
    better, least = improved(choices, joint, end)
    return better, max(bound, least)


def _hidden_together(choices: RowChoices, amount: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return more rows suppressed, until they are k: rows that their instance can spare, else one instance's."""
    amount = amount.copy()
    hide = np.full(len(choices.rows), -1)
    hide[choices.kind[hidden]] = np.flatnonzero(hidden)
    size = np.bincount(choices.instance, amount).astype(np.int64)
    need = choices.k - int(amount[hidden].sum())
    spare = np.flatnonzero(~hidden & (amount > 0) & (size[choices.instance] > choices.k))
    for c in spare[np.argsort(-choices.cost[spare], kind="stable")].tolist():
        moving = min(int(amount[c]), need, int(size[choices.instance[c]]) - choices.k)
        if moving > 0:
            amount[c] -= moving
            amount[hide[choices.kind[c]]] += moving
            size[choices.instance[c]] -= moving
            need -= moving
    if need > 0:
        visible = ~hidden & (amount > 0)
        rises = np.bincount(
            choices.instance[visible], (choices.cost[hidden].max() - choices.cost[visible]) * amount[visible]
        )
        rises[np.bincount(choices.instance[visible]) == 0] = np.inf
        moved = np.flatnonzero(visible & (choices.instance == int(rises.argmin())))
        np.add.at(amount, hide[choices.kind[moved]], amount[moved])
        amount[moved] = 0
    return amount


PATTERN_GUIDED_OPTIMAL = Algorithm(
    name="pattern-guided-optimal",
    run=pattern_guided_optimal,
    family="pattern",
    paper="Bredereck, Nichterlein, Niedermeier: Pattern-guided k-anonymity. Algorithms 6(4), 2013, section 2.2",
    guarantee="k-anonymity",
    complexity="exponential at worst; stops at a time limit with a proven gap",
    summary="the fewest hidden entries there can be, or how far from it the result may be",
    colour="#2a7fb8",
    shape="star",
    small=True,
    hides=True,
    keeps_limits=True,
    fixed_cells=has_levels,
    complete=follows_all,
    without_pattern=rows_without_pattern,
    option_problems=option_problems,
    gone={"exact": "leave it out: the integer program proves the optimum"},
)
