"""Pattern-guided k-anonymity with the fewest suppressions (Bredereck 2013, section 2.2): an integer program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, Any, Literal

import numpy as np
from scipy import optimize, sparse

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.enumeration import row_assignment, transported, two
from anonflow.algorithms.patterns.greedy import Patterns, Weights, place, publish_places, within_boundaries
from anonflow.algorithms.patterns.language import mask_costs, pattern_masks, whole_costs
from anonflow.algorithms.patterns.relaxation import relaxed
from anonflow.algorithms.patterns.row_choices import RowChoices, choices_of, searched
from anonflow.errors import ParameterError
from anonflow.option import Option

__all__ = ["PATTERN_GUIDED_OPTIMAL", "RowChoices", "choices_of", "pattern_guided_optimal"]

GRACE = 0.4
"""Seconds past the time limit that a solver is waited for, which mostly ends by itself."""

LARGEST = 1_500_000
"""Choices of a pattern by a row type up to which the integer program is tried."""


def pattern_guided_optimal(
    part: Partition,
    k: int,
    *,
    patterns: Patterns = "all",
    weights: Weights = None,
    time_limit: Annotated[float, Option("Time limit (seconds)", least=0, below=1e9, time_limit=True)] = 60.0,
    exact: Annotated[Literal["ilp", "row-assignment", "two", "auto"], Option("Proof by")] = "ilp",
) -> Outcome:
    """Suppress as few entries as possible so that every class has k rows and every row follows a pattern.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns : "all", mapping or sequence
        Which columns may be hidden together, as pattern-guided takes it
        (:func:`anonflow.algorithms.patterns.greedy.pattern_guided`).
    weights : mapping, optional
        Column -> what suppressing one of its entries costs; 1 for the others.
    time_limit : float
        For each partition; when it is over, the best result found is kept.

        It is that of the integer program, and the facts say how far the result can be from the best there is.
    exact : {"ilp", "row-assignment", "two", "auto"}, optional
        Integer program; or an enumeration, for small tables.

        ``ilp``: the integer program. ``row-assignment``: Theorem 3's enumeration, for at most 16 instances of
        patterns. ``two``: Theorem 2, for k = 2. ``auto``: the first of these two that fits, else ``ilp``. The
        time limit is that of the integer program.

    Returns
    -------
    Outcome
        With classes. Rows that follow no pattern are suppressed altogether. Facts: `suppressed_entries`;
        `cost`, the same with weights; `lower_bound`, which no solution is below; `heuristic`, the cost of
        the heuristic, and `local_search`, what it is after rows moved to better instances; `proven`, whether
        the solution is known to be optimal.

    Raises
    ------
    ParameterError
        If a pattern or a weight is none, `exact` is not for this k, or the table too large for it.

    Notes
    -----
    Bredereck 2013, equations (5) to (8), solved with HiGHS. Before that: instances with fewer than k compatible rows
    are dropped; the cheapest instance left to each row bounds from below, and if the heuristic's solution
    meets the bound it is published. Else a local search improves it
    (:func:`anonflow.algorithms.patterns.row_choices.searched`), and a choice that costs so much more than its row's cheapest that
    no solution with it could be better is dropped too, again and again, also by the linear relaxation's
    reduced costs. The rows that
    choose an instance are bounded one by one, not by (6)'s sum, which is the same for whole numbers and
    tighter for fractions; and only the choice of instances is asked to be whole: with it fixed, the rest is a
    transport of rows, whose vertices are whole.

    Departing from (7), rows may be suppressed altogether without k of them, as the heuristic does with its
    remainder: they are published as suppressed records are. Exponential time at worst. The wall clock
    decides where an unproven search stops, so only proven results are the same everywhere.
    """
    if exact == "two" and k != 2:
        raise ParameterError("pattern-guided-optimal: exact='two' is for k = 2; use exact='ilp'")
    end = time.monotonic() + time_limit
    records = part.records
    masks = within_boundaries(records, pattern_masks(records.domains, patterns, weights))
    masks = masks[masks != np.uint64((1 << records.q) - 1)]  # that is suppression, which needs no k rows
    whole, unit = whole_costs(records.domains, weights)
    start, used = place(records, masks, k)
    of_pattern = mask_costs(masks, whole)
    out = int(whole.sum())
    heuristic = int(np.where(used >= 0, np.append(of_pattern, 0)[used], out).sum())
    choices = choices_of(records, masks, of_pattern, out, k)
    bound = choices.bound()
    labels, cost = start, heuristic
    if bound < cost and exact != "ilp":
        amount = _enumerated(choices, exact)
        if amount is not None:
            bound = choices.cost_of(amount)
            if bound < cost:
                cost = bound
                labels, used = choices.places(amount)
    if bound < cost and time_limit > 0:
        moved = searched(choices, used)
        if choices.cost_of(moved) < cost:
            cost = choices.cost_of(moved)
            labels, used = choices.places(moved)
    searched_cost = cost
    if bound < cost and choices.narrow(cost):
        bound = max(bound, min(choices.bound(), cost))
        found, least = None, 0
        if bound < cost:
            least = _relaxation(choices, cost, end)
        if max(bound, least) < cost:
            found, proved = _solve(choices, end)
            least = max(least, proved)
        bound = min(max(bound, least), cost)
        if found is not None and choices.cost_of(found) < cost:
            labels, used = choices.places(found)
            cost = choices.cost_of(found)
    elif bound < cost:
        bound = cost  # nothing better exists
    return publish_places(
        records,
        masks,
        labels,
        used,
        None,
        cost=cost / unit,
        lower_bound=min(bound, cost) / unit,
        heuristic=heuristic / unit,
        local_search=searched_cost / unit,
        proven=bound >= cost,
    )


def _enumerated(choices: RowChoices, exact: str) -> np.ndarray | None:
    """An optimum by Theorem 2 or 3; None where ``auto`` finds neither to fit."""
    for name, way in (("row-assignment", row_assignment), ("two", two)):
        if exact == name:
            return way(choices)
        if exact == "auto":
            try:
                return way(choices)
            except ParameterError:
                continue
    return None


def _relaxation(choices: RowChoices, cost: int, end: float) -> int:
    """The relaxation's bound; drops the choices that are in no solution of less cost than `cost`."""
    if len(choices.kind) > LARGEST:
        return 0
    found = relaxed(choices, end)
    if found is None:
        return 0
    bound, reduced, opening = found
    slack = cost - 1 - bound + 1  # the bound is rounded up by less than 1
    choices.keep((reduced <= slack + 1e-3) & (opening <= slack + 1e-3))
    choices.drop_small()
    if not choices.narrow(cost):
        return cost
    return bound


def _solve(choices: RowChoices, end: float) -> tuple[np.ndarray | None, int]:
    """How many rows make each choice, if a solution was found in time, and a bound from below."""
    if end <= time.monotonic() or len(choices.kind) > LARGEST:
        return None, 0
    c, t = len(choices.kind), len(choices.rows)
    ids, at = np.unique(choices.instance, return_inverse=True)
    inside = choices.instance >= 0
    at = at - int(not inside.all())
    m = int(inside.sum() and at.max() + 1)
    assert len(ids) == m + int(not inside.all())
    chosen = np.flatnonzero(inside)
    rows, one = choices.rows[choices.kind].astype(float), np.ones
    everyone = sparse.csr_array((one(c), (choices.kind, np.arange(c))), shape=(t, c + m))
    each = sparse.csr_array(
        (
            np.concatenate([one(len(chosen)), -rows[chosen]]),
            (np.tile(np.arange(len(chosen)), 2), np.concatenate([chosen, c + at[chosen]])),
        ),
        shape=(len(chosen), c + m),
    )
    enough = sparse.csr_array(
        (
            np.concatenate([one(len(chosen)), np.full(m, -float(choices.k))]),
            (np.concatenate([at[chosen], np.arange(m)]), np.concatenate([chosen, c + np.arange(m)])),
        ),
        shape=(m, c + m),
    )
    costs = np.concatenate([choices.cost, np.zeros(m)]).astype(float)
    limits = [
        optimize.LinearConstraint(everyone, choices.rows, choices.rows),
        optimize.LinearConstraint(each, -np.inf, 0),
        optimize.LinearConstraint(enough, 0, np.inf),
    ]
    whole = np.concatenate([np.zeros(c), np.ones(m)])
    seconds = end - time.monotonic()
    solved = _in_time(
        end,
        lambda: optimize.milp(
            costs,
            integrality=whole,
            bounds=optimize.Bounds(0, np.concatenate([rows, np.ones(m)])),
            constraints=limits,
            options={"time_limit": max(seconds, 0.0), "mip_rel_gap": 0.0},
        ),
    )
    if solved is None:
        return None, 0
    if solved.status == 2:
        return None, np.iinfo(np.int64).max  # nothing better than the heuristic exists
    least = 0
    if solved.mip_dual_bound is not None and np.isfinite(solved.mip_dual_bound):
        least = int(np.ceil(solved.mip_dual_bound - 1e-6 * max(1.0, abs(solved.mip_dual_bound))))
    if solved.x is None:
        return None, least
    chosen_instances = solved.x[c:] > 0.5
    return _in_time(end + GRACE, lambda: transported(choices, at, chosen_instances, costs[:c])), least


def _in_time(end: float, work: Callable[[], Any]) -> Any:
    """What `work` returns, or None if it has not returned by `end`, plus a grace.

    HiGHS looks at the clock between its steps only, and one step of a large program can take many times the
    limit. A thread that is waited for no longer ends when its step does; what it finds is dropped. What goes wrong
    in it goes wrong here.
    """
    found: Future[Any] = Future()

    def solve() -> None:
        try:
            found.set_result(work())
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=solve, daemon=True).start()
    try:
        return found.result(max(end - time.monotonic(), 0.0) + GRACE)
    except TimeoutError:
        return None


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
)
