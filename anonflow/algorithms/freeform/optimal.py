"""Optimal (Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 4): the least possible loss, with a proof."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.freeform.optimal_model import Sets, all_sets, as_matches, near_sets, positions
from anonflow.algorithms.freeform.optimal_symmetric import SymmetricSets
from anonflow.algorithms.freeform.reciprocal import Reciprocal, reciprocal_matches
from anonflow.algorithms.freeform.two_phase import mutual_two_phase_matches, two_phase_matches
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.errors import ParameterError, setting
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.jit import method_clock
from anonflow.kernels.state import GRID
from anonflow.loss import LOSSES
from anonflow.option import Option
from anonflow.utility.bounds import record_bounds

LARGEST = 1_000
"""Records in a partition at most."""

SETS = 1_500_000
"""Sets of k records that are listed at most; a hundred megabytes or so."""

RATE = 150_000
"""Sets for each second of the time limit: listing them must not take most of it."""

NEAR = 60_000
"""Sets of near records, where there are too many of all."""

PATIENT = 0.002
"""Seconds of the time limit for each match from which two-phase computes the start; it uses a part of them."""

EXACT = 1e-9
"""Losses that differ by less than this count as equal."""


def optimal(
    part: Partition,
    k: int,
    *,
    time_limit: Annotated[float, Option("Time limit (seconds)", least=0, below=1e9, time_limit=True)] = 60.0,
    gap: Annotated[float, Option("Gap that is good enough", least=0, below=1, step=0.01)] = 0.0,
    reciprocal: Reciprocal = False,
) -> Outcome:
    """Return the k-regular generalization graph of least information loss, or the best one found and its gap.

    Every kind of QI and every information loss, entropy included. Up to 1,500,000 sets of k records (14 records
    and any k, 60 and k = 4, 200 and k = 3, 1,000 and k = 2; fewer with a limit below ten seconds) all are
    listed. Then the bound is tight: samples of 14 and 60 records with k = 3 were proved in seconds, 60 with
    k = 4 left a gap of some percent. Beyond, only sets of near records are listed, and the bound is the
    weaker one of :func:`anonflow.utility.bounds.record_bounds`, 0 for entropy.

    Parameters
    ----------
    part : Partition
        P records, P >= k, at most 1,000.
    k : int
    time_limit : float, optional
        For each partition; at its end, the best result found is kept.

        The compilation of kernels in a first run is not counted. A result that the time limit ended depends on the machine.
    gap : float, optional
        A share: 0.01 is one percent above the least loss there can be.

        The search stops at a result with a proved gap of at most this.
    reciprocal : bool, optional
        If row A could be person B's, row B could be person A's: safer against those who know some true matches.

        The least symmetric graph, by :class:`~anonflow.algorithms.freeform.optimal_symmetric.SymmetricSets`, for up to 9% more
        loss (k from 2 to 5, 60 records of two tables: the benchmark reciprocal). Each of its records may choose among the sets it is in, so fewer are listed: 14 records
        and any k, 60 and k = 3. Where P (k - 1) is odd, the least of the (k + 1)-regular ones.

    Returns
    -------
    Outcome
        With matches. Facts: the sum of the records' losses (`cost`), a lower bound of all k-regular graphs of the
        partition (`lower_bound`), the `gap` between the two as a share of the cost, whether it is closed (`proven`, to
        1e-9), and the cost of the solution it started from (`start`). Of reciprocal ones how many records have k + 1
        matches (`one_more_match`).

    Raises
    ------
    ParameterError
        If the partition is larger than 1,000.

    Notes
    -----
    Doka 2015, section 4, equations 4 to 11, in another form: the variables are not edges but how often each set of k
    records is covered (:class:`~anonflow.algorithms.freeform.optimal_model.Sets`). Its linear relaxation is that of a
    fractional perfect matching in a hypergraph, far tighter than (4) to (11), where fractional edges hide the cost of a
    set. It does not say which record has which set, so it has none of the symmetries of the edge form. The costs of
    sets are constants, so the loss needs no special form.

    The start is what :func:`~anonflow.algorithms.freeform.two_phase.two_phase` makes with its defaults and the same random
    numbers, so the loss is never higher than there; with less than 2 milliseconds of the limit for each match, without kicks. Of
    reciprocal graphs
    likewise, however few sets; or greedy. Column generation bounds the loss from below; sets that are in no better
    solution are dropped; CP-SAT decides among those that are left, with one worker. Exponential at worst.
    """
    if part.n > LARGEST:
        raise ParameterError(
            f"optimal: {part.n} records are too many at once; use "
            + setting("partition-size", f"a partition_size of {LARGEST}", LARGEST)
            + " at most (14 to 60 for a proof), or the method two-phase"
        )
    end = method_clock() + time_limit
    if reciprocal:
        return _symmetric(part, k, time_limit, gap, end)
    origin = part.originals()
    # this depends on the limit and never on the clock, so that the start is always the same
    patient = time_limit >= PATIENT * part.n * k
    effort: dict[str, Any] = {} if patient else {"start": "dense", "kicks": 0}
    matches, _ = two_phase_matches(part, k, threads=1, **effort)
    start = cost = _grid_cost(part, matches)
    if math.comb(part.n, k) <= min(SETS, RATE * time_limit):
        sets = all_sets(part.plan, origin, k)
        copies = positions(sets, matches)
        bound, prices = sets.bound(np.array(list(copies)), cost, end)
        if bound < cost * (1 - gap):
            copies, bound = sets.solve(copies, cost, prices, bound, gap, end)
            matches, cost = as_matches(sets, copies), _cost(sets, copies)
    else:
        bound = min(_loose_bound(part, k, time_limit, end), cost)
        room = min(NEAR, int(RATE * time_limit / 10))
        if bound < cost * (1 - gap) and part.n * k <= room and method_clock() < end:
            sets = near_sets(part.plan, origin, k, matches, room)
            copies = positions(sets, matches)
            # a proof about these sets alone only shows which of them cannot help
            only, prices = sets.bound(np.array(list(copies)), cost, end)
            if only < cost:
                copies, _ = sets.solve(copies, cost, prices, only, gap, end)
                matches, cost = as_matches(sets, copies), _cost(sets, copies)
    return _outcome(part, matches, cost, bound, start)


def _symmetric(part: Partition, k: int, time_limit: float, gap: float, end: float) -> Outcome:
    """Return the least symmetric graph, or the best found."""
    # links are pairs: n records have an odd number of links each only if n is even
    degree = k + part.n * (k - 1) % 2
    if time_limit >= PATIENT * part.n * k:
        matches = mutual_two_phase_matches(part, k, threads=1)[0]
    else:
        matches = reciprocal_matches(part, k, "greedy")[0]
    start = cost = _grid_cost(part, matches)
    origin = part.originals()
    every = math.comb(part.n, degree) * degree <= min(SETS, RATE * time_limit)
    room = min(NEAR, int(RATE * time_limit / 10)) // degree
    bound = 0 if every else min(_loose_bound(part, degree, time_limit, end), cost)
    if every or (bound < cost * (1 - gap) and part.n <= room and method_clock() < end):
        model = SymmetricSets(
            all_sets(part.plan, origin, degree)
            if every
            else near_sets(part.plan, origin, degree, matches, room)
        )
        choices = model.choices(matches)
        # a proof about near sets alone only shows which of them cannot help
        low, prices = model.bound(choices, cost, end)
        if low < cost * (1 - gap):
            choices, low = model.solve(choices, cost, prices, low, gap, end)
            matches, cost = model.matches(choices), model.cost(choices)
        bound = low if every else bound
    extra_matches = part.n if degree > k else 0
    return _outcome(part, matches, cost, min(bound, cost), start, one_more_match=extra_matches)


def _loose_bound(part: Partition, k: int, time_limit: float, end: float) -> int:
    """Return the sum of the least costs of covering k originals over all records; 0 if a loss may fall when more is covered."""
    if not LOSSES[part.loss].monotone:
        return 0
    effort = min(1.0, time_limit / 60) if method_clock() < end else 0.0
    return math.floor(float(record_bounds(part.records, k, part.loss, effort).sum()) / GRID)


def _outcome(
    part: Partition, matches: np.ndarray, cost: int, bound: int, start: int, **facts: int
) -> Outcome:
    proven = cost - bound <= EXACT / GRID
    least = cost if proven else bound
    return Outcome.of_matches(
        part.records,
        matches,
        cost=cost * GRID,
        lower_bound=least * GRID,
        gap=1 - least / cost if cost else 0.0,
        proven=bool(proven),
        start=start * GRID,
        **facts,
    )


def _grid_cost(part: Partition, matches: np.ndarray) -> int:
    """Return the sum of the records' costs, in multiples of ``GRID``."""
    joined = Generalization.join_of(part.records, matches)
    state = load(part.plan, joined.lo, joined.hi, joined.bits)
    return int(np.rint(state.cost / GRID).astype(np.int64).sum())


def _cost(sets: Sets, copies: dict[int, int]) -> int:
    return sum(int(sets.cost[s]) * times for s, times in copies.items())


OPTIMAL = Algorithm(
    name="optimal",
    run=optimal,
    family="freeform",
    paper="Doka, Xue, Tsoumakos, Karras: k-anonymization by freeform generalization. ASIACCS 2015, section 4",
    guarantee="k-regular",
    complexity="exponential at worst; stops at a time limit with a proven gap",
    summary="the least loss there is, or how far from it the result may be: for small partitions",
    colour="#a08a00",
    shape="diamond",
    small=True,
)
