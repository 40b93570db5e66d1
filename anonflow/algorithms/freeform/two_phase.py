"""Two-phase (Murakami and Uno, Int. J. Inf. Secur. 17, 2018, section 3.2): assignments, then improvement."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.algorithms.freeform.chains import chain_memory, improve_by_chains
from anonflow.algorithms.freeform.hungarian import hungarian_matches
from anonflow.algorithms.freeform.near_pairs import DIGITS, MOST, costs_of_difference
from anonflow.algorithms.freeform.nh import rings_along
from anonflow.algorithms.freeform.reciprocal import (
    Reciprocal,
    mutual_outcome,
    reciprocal_matches,
)
from anonflow.algorithms.freeform.two_phase_candidates import (
    MatchedRecords,
    cancel,
    cancel_all,
    nearness,
    sparse_matches,
)
from anonflow.algorithms.method import MOST_EFFORT, Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.pattern_guided import place
from anonflow.errors import ParameterError
from anonflow.kernels.freeform.reassign import cover_jit
from anonflow.kernels.state import empty_state, take
from anonflow.option import Option
from anonflow.partition import lexicographic_order, space_filling_order
from anonflow.table.domain import Domain
from anonflow.table.records import matches_among
from anonflow.threads import run_each

LABELS = 20
"""Number of labels for each match after which the search for the last negative cycles ends."""

LEAST_LABELS = 50_000
"""Number of labels that this search takes at least, if it needs them."""

FEW = 3
"""Assignments over candidate edges that a start of its own choice makes at most: each takes long."""

FARTHER = 0.95
"""It computes them if the nearest records among all cost at most this share of the nearest in a dense stretch."""

SLACK = 0.5
"""The smallest bid in the auctions of a dense start before chains (:func:`anonflow.algorithms.freeform.hungarian.hungarian_matches`)."""

MANY = 50_000
"""Records among which a sparse start of few assignments seeks near records by sorting, if nothing else is said.

Of 30,000 normal numbers by suppression, k = 3, all pairs lose 1.3% less in 1.7 times the seconds; of 100,000 they lose 1.1% less in
four times the seconds, and sorting with ten kicks takes less than that and loses 2% less.
"""

DENSE = 2_000
"""Default number of records in a stretch of a dense start; half as many without an auction."""

WINDOW, WINDOWS = 256, 16
"""Records in a window that is solved along two orders, to choose the order of a dense start, and windows along each at most."""

NARROWER = 0.95
"""The windows of a space-filling order have to lose at most this share of the lexicographic ones'.

Found on eight tables, k = 10: where it is at most 0.95 (Nursery 0.92, three and five normal numbers 0.67 and 0.76), two-phase loses
less along the space-filling order; where it is more (Adult 1.2, answers about health 1.2, places with ages and jobs 1.05), more.
"""

STRETCH = 100_000
"""Records, along the lexicographic order, among which neighbours are sought (the cited work's blocks)."""


def two_phase(
    part: Partition,
    k: int,
    *,
    start: Annotated[Literal["auto", "dense", "sparse", "patterns"], Option("Start")] = "auto",
    first: Annotated[int | None, Option("Records per stretch", least=1)] = None,
    candidates: Annotated[int, Option("Near records", least=1)] = 32,
    pairs: Annotated[Literal["auto", "all", "sorted"], Option("Near records among")] = "auto",
    improve: Annotated[Literal["chains", "cycles"], Option("Second phase")] = "chains",
    rounds: Annotated[int, Option("Rounds of chains", least=0, most=MOST_EFFORT)] = 8,
    kicks: Annotated[int, Option("Kicks for each record", least=0, most=MOST_EFFORT)] = 10,
    t: Annotated[int, Option("Labels before a trace", least=1, most=MOST_EFFORT)] = 2,
    p: Annotated[int | None, Option("Labels in all", least=0, most=10**9)] = None,
    reciprocal: Reciprocal = False,
    threads: Annotated[int | None, Option("Threads", least=1, in_form=False)] = None,
) -> Outcome:
    """Return a k-regular generalization graph: k assignments, then improvements until they gain little.

    First phase: k - 1 assignments of least cost, costs renewed after each; ``dense``: those of
    :func:`~anonflow.algorithms.freeform.hungarian.hungarian` in stretches of the lexicographic order, or of a space-filling one where
    a few windows along both lose less by it; before chains found by auctions, which come near the least cost in a fraction of the time; ``sparse``: over
    candidate edges among all records of blocks of 100,000. ``patterns``: no assignments, but classes of equal rows. Second phase, ``chains``: ejection chains, then kicks
    (:mod:`anonflow.algorithms.freeform.chains`); it loses less than ``cycles`` in a fraction of the time. ``cycles``: negative cycles
    are reversed. The paper's labelling algorithm finds the first ones; then all are sought, until none is left that passes each record
    at most once.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    start : {"auto", "dense", "sparse", "patterns"}, optional
        Sparse loses less where many columns have similar weight, and takes longer. Patterns only where values are published or concealed.

        ``auto``: sparse for k up to 4 where the nearest records among all cost at least 5% less than those in
        the same dense stretch, as a sample of 256 shows; else dense. ``patterns``: the classes of
        :func:`~anonflow.algorithms.patterns.pattern_guided.pattern_guided`, sets of QIs that cost little to conceal first; it needs at most 20
        QIs that cost the same whichever two values differ. Where no near records lie together in any order, and k is not small, it
        loses less in a hundredth of the time. Rows that no chain changes are those of rounds: see Notes there.
    first : int, optional
        Of a dense start: records of which each stretch is solved at once.

        Without it 2,000 before chains, and 1,000 with reciprocal or cycles. More records lose less; time grows in proportion.
    candidates : int, optional
        Number of candidates of each original in a sparse start and for cycles, and of each record for chains.
    pairs : {"auto", "all", "sorted"}, optional
        How a sparse start finds near records.

        ``all``: among all records, again for each assignment. ``sorted``: once, by multiple sorting, as in the paper.
        This takes a tenth of the time; its loss grows with k. It needs QIs that cost the same whichever two values
        differ (suppressed ones, and sets but for entropy); else all are compared. ``auto``: sorted among more than 50,000 records
        with k of 4 at most.
    improve : {"chains", "cycles"}, optional
        How matches are exchanged to lower the loss.
    rounds : int, optional
        Rounds of chains at most; they end before when one gains less than a hundredth of a percent.
    kicks : int, optional
        Rounds after these, each with a kick for each record; the loss falls more and more slowly.

        Time grows in proportion. ``af.anonymize(..., budget=30.0)`` chooses it for 30 seconds.
    t : int, optional
        Threshold t of the search for cycles: a record is traced after so many better labels.
    p : int, optional
        Threshold p of the search for cycles, which ends after so many labels.

        Without it as many as there are records; then 20 for each match, and at least 50,000, until no negative cycle is
        left; cycles of two records are then sought without a limit. A search without any limit may take exponential time.
    reciprocal : bool, optional
        If row A could be person B's, row B could be person A's: safer against those who know some true matches.

        Symmetric graphs of hungarian in stretches, then chains and kicks of links; it goes with ``improve="chains"``. One
        partition of an odd size may use k + 1.
    threads : int, optional
        As many as there are processors without it; every number of them gives the same.

    Returns
    -------
    Outcome
        With matches. Facts: the `start` taken, by how much the second phase lowered the loss, summed over records (`gained`), how
        often sparse candidates were doubled (`widened`). Of cycles: how many `cycles` were reversed, and whether none is left among
        the candidates (`finished`). Of chains: `rounds`, `chains` that lowered the loss, rounds of `kicks`, single ones
        (`kicks_tried`, `kicks_kept`).

    Raises
    ------
    ParameterError
        If `reciprocal` is combined with another improvement than chains, or a start by patterns meets QIs that it cannot take.

    Notes
    -----
    Murakami 2018, section 3.2, for every loss. Departures: a dense first phase where it is no worse or much cheaper; candidates
    are renewed as generalized records grow; after the paper's thresholds t and p, cycles are sought until none is left. No edge is
    doubled.

    Chains are in none of the cited works: a local search in the manner of Lin and Kernighan (Oper. Res. 21, 1973).

    O(k P first^2) time for a dense first phase, O(k P^2 q) for a sparse one, P^2 being P times 100,000 beyond that size;
    O(P (q + k + candidates) + threads first^2) memory, with chains O(P k q).
    """
    if reciprocal:
        if improve != "chains":
            raise ParameterError("two-phase: reciprocal needs improve: chains; leave one of the two out")
        mutual, counts, mutual_facts = mutual_two_phase_matches(
            part, k, first, candidates, rounds, kicks, threads
        )
        return mutual_outcome(part, k, mutual, counts, **mutual_facts)
    matches, facts = two_phase_matches(
        part,
        k,
        first,
        threads,
        start=start,
        candidates=candidates,
        pairs=pairs,
        improvement=improve,
        rounds=rounds,
        kicks=kicks,
        t=t,
        p=p,
    )
    return Outcome.of_matches(part.records, matches, **facts)


def mutual_two_phase_matches(
    part: Partition,
    k: int,
    first: int | None = None,
    candidates: int = 32,
    rounds: int = 8,
    kicks: int = 10,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return the symmetric matches of :func:`two_phase`: graphs of stretches, then chains of links between all records.

    Parameters
    ----------
    part : Partition
    k, first, candidates, rounds, kicks, threads
        As there.

    Returns
    -------
    matches : numpy.ndarray, shape (P, d), int32
        d = k, or k + 1 where P (k - 1) is odd.
    counts : numpy.ndarray, shape (2,), int64
        The two facts of :func:`anonflow.algorithms.freeform.reciprocal.reciprocal_matches`.
    facts : dict
        Those of :func:`anonflow.algorithms.freeform.chains.improve_by_chains`.
    """
    # the same degree in all stretches: with one more record in one of them, no graph of even degree is symmetric
    degree = k + part.n * (k - 1) % 2
    size = max(first or DENSE // 2, degree)
    size += size % 2
    matches = np.empty((part.n, degree), np.int32)
    counts = np.zeros(2, np.int64)
    for rows in stretches(lexicographic_order(part.records), size, degree):
        stretch = Partition(part.records.take(rows), part.loss, part.rng)
        stretch_matches, repairs = reciprocal_matches(stretch, degree, "hungarian")
        matches[rows] = rows[stretch_matches]
        counts += repairs
    facts: dict[str, Any] = {}
    if 1 < degree < part.n:
        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            matches, facts = improve_by_chains(part, matches, candidates, rounds, kicks, pool, mutual=True)
    return matches, counts, facts


def two_phase_matches(
    part: Partition,
    k: int,
    first: int | None = None,
    threads: int | None = None,
    *,
    start: str = "auto",
    candidates: int = 32,
    pairs: str = "auto",
    improvement: str = "chains",
    rounds: int = 8,
    kicks: int = 10,
    t: int = 2,
    p: int | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the matches of :func:`two_phase` and the facts about them.

    Parameters
    ----------
    part : Partition
    k, first, threads, start, candidates, pairs, rounds, kicks, t, p
        As there.
    improvement : str, optional
        As `improve` there.

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    facts : dict
    """
    threads = threads or os.cpu_count() or 1
    chained = improvement == "chains"
    first = first or (DENSE if chained else DENSE // 2)
    slack = SLACK if chained else 0.0
    order = lexicographic_order(part.records)
    matches = np.empty((part.n, k), np.int32)
    plan, n = part.plan, part.n
    facts: dict[str, Any] = {"gained": 0.0, "widened": 0}

    def begin(rows: np.ndarray) -> None:
        stretch = Partition(part.records.take(rows), part.loss, part.rng)
        matches[rows] = rows[hungarian_matches(stretch, k, slack)]

    origin = part.originals()
    dense, sources = stretches(order, max(first, k), k), stretches(order, max(STRETCH, k), k)
    if start == "auto":
        far = 2 <= k <= FEW + 1 and nearness(plan, origin, dense, sources, k, part.rng) <= FARTHER
        start = "sparse" if far else "dense"
    facts["start"] = start
    with ThreadPoolExecutor(threads) as pool:
        if start == "dense":
            run_each(pool, begin, dense_stretches(part, dense, max(first, k), k, pool))
        elif start == "patterns":
            matches = pattern_matches(part, k)
        else:
            for rows in sources:
                stretch = Partition(part.records.take(rows), part.loss, part.rng)
                sparse, widened = sparse_matches(
                    stretch, k, candidates, pool, _pair_search(pairs, len(rows), k)
                )
                matches[rows] = rows[sparse]
                facts["widened"] += widened
        joined = empty_state(plan, n)
        cover_jit(plan, origin, matches, 0, n, joined)
        before = float(joined.cost.sum())

        if 1 < k < n and chained:
            matches, counts = improve_by_chains(part, matches, candidates, rounds, kicks, pool)
            facts |= counts
            cover_jit(plan, origin, matches, 0, n, joined)
        elif 1 < k < n:
            facts |= {"cycles": 0, "finished": True}
            for rows in sources if inside(matches, sources) else [order]:
                inner_matches = matches_among(matches, rows)
                graph = MatchedRecords(plan, take(origin, rows), inner_matches, take(joined, rows))
                cycles, labels = cancel(graph, candidates, t, len(rows) if p is None else p, part.rng)
                cover_jit(plan, graph.origin, inner_matches, 0, len(rows), graph.joined)
                label_budget = (
                    max(LABELS * inner_matches[:, 1:].size, LEAST_LABELS) if p is None else p - labels
                )
                others, finished = cancel_all(
                    graph, candidates, label_budget, part.rng, pool, part.watch, pairs=p is None
                )
                facts["cycles"] += cycles + others
                facts["finished"] &= finished
                matches[rows] = rows[inner_matches]
            cover_jit(plan, origin, matches, 0, n, joined)
        facts["gained"] = before - float(joined.cost.sum())
    return matches, facts


def dense_stretches(
    part: Partition, lexicographic: list[np.ndarray], size: int, k: int, pool: ThreadPoolExecutor
) -> list[np.ndarray]:
    """Return the stretches of a dense start: those of the lexicographic order, or of a space-filling one where it loses much less.

    Windows at the same places along both are solved to see it.

    Parameters
    ----------
    part : Partition
    lexicographic : list of numpy.ndarray
        Stretches of `size` records.
    size, k : int
    pool : concurrent.futures.ThreadPoolExecutor

    Returns
    -------
    list of numpy.ndarray
    """
    if len(lexicographic) == 1 or k == 1:
        return lexicographic
    curve = space_filling_order(part.records)

    def lost(rows: np.ndarray) -> float:
        window = Partition(part.records.take(rows), part.loss, part.rng)
        joined = empty_state(part.plan, window.n)
        cover_jit(part.plan, window.originals(), hungarian_matches(window, k, SLACK), 0, window.n, joined)
        return float(joined.cost.sum()) / window.n

    means = []
    for order in (np.concatenate(lexicographic), curve):
        windows = stretches(order, max(min(WINDOW, size), k), k)
        places = np.unique(np.linspace(0, len(windows) - 1, WINDOWS).round().astype(int)).tolist()
        means.append(float(np.mean(run_each(pool, lost, [windows[at] for at in places]))))
    return stretches(curve, size, k) if means[1] < NARROWER * means[0] else lexicographic


def pattern_matches(part: Partition, k: int) -> np.ndarray:
    """Return rings of the records that agree in the QIs that a set leaves, set after set of QIs, those that cost least to conceal first.

    A class takes all records that are left and agree, where they are at least k. Fewer than k that are left in the end join the last class.

    Parameters
    ----------
    part : Partition
        P records, P >= k, over q QIs.
    k : int

    Returns
    -------
    numpy.ndarray, shape (P, k), int32

    Raises
    ------
    ParameterError
        If what a difference costs depends on the values, or there are more than 20 QIs.

    Notes
    -----
    O(2^q P q), mostly much less: the search ends when fewer than k records are left.
    """
    costs = costs_of_difference(part.records, part.plan)
    if costs is None or len(costs) > MOST:
        raise ParameterError(
            f"two-phase: start: patterns needs at most {MOST} quasi-identifiers, and of each that its values are published or concealed "
            "and have no limits, such as kind: suppression; take another start"
        )
    # of sets that cost the same, those of the last QIs come first, as the paper of patterns has them
    masks, prices = np.zeros(1, np.uint64), np.zeros(1)
    for a in reversed(range(len(costs))):
        masks = np.concatenate([masks, masks | np.uint64(1 << a)])
        prices = np.concatenate([prices, prices + costs[a]])
    labels, _ = place(part.records, masks[np.argsort(np.round(prices, DIGITS), kind="stable")], k)
    labels[labels < 0] = labels.max()
    order = np.argsort(labels, kind="stable")
    return rings_along(order, np.append(0, np.cumsum(np.bincount(labels)))).matches(k)


def memory_of(domains: Sequence[Domain], n: int, k: int, options: Mapping[str, Any]) -> int:
    """Return about how many bytes :func:`two_phase` takes: the costs of a stretch for each thread, and those of chains.

    Parameters
    ----------
    domains : sequence of Domain
    n, k : int
    options : mapping
        All of them.
    """
    dense = min(options["first"] or DENSE, n) ** 2 * 8 * (options["threads"] or os.cpu_count() or 1)
    chained = options["improve"] == "chains"
    return dense + (chain_memory(domains, n, k, options["candidates"]) if chained else 0)


def inside(matches: np.ndarray, sources: list[np.ndarray]) -> bool:
    """Return whether every match is in the same one of some disjoint lists of records as the record that covers it."""
    label = np.empty(len(matches), np.int64)
    for number, rows in enumerate(sources):
        label[rows] = number
    return bool((label[matches] == label[:, None]).all())


def stretches(order: np.ndarray, size: int, k: int) -> list[np.ndarray]:
    """Return the records in runs of `size` along an order; one that is left with fewer than k joins its neighbour."""
    cuts = list(range(size, len(order), size))
    if cuts and len(order) - cuts[-1] < k:
        cuts.pop()
    return np.split(order, cuts)


def _pair_search(pairs: str, n: int, k: int) -> str:
    """Return where a sparse start of n records seeks near ones: ``all`` or ``sorted``."""
    if pairs != "auto":
        return pairs
    return "sorted" if n > MANY and k <= FEW + 1 else "all"


def slow_or_quick(
    k: int, n: int, options: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the options of the two starts, where :func:`two_phase` would choose between them by the table."""
    if options.get("start", "auto") != "auto" or options.get("reciprocal") or not 2 <= k <= FEW + 1:
        return None
    return {"start": "sparse", "pairs": _pair_search(options.get("pairs", "auto"), n, k)}, {"start": "dense"}


TWO_PHASE = Algorithm(
    name="two-phase",
    run=two_phase,
    family="freeform",
    paper="Murakami, Uno: Optimization algorithm for k-anonymization of datasets with low information loss. "
    "Int. J. Inf. Secur. 17, 2018, section 3.2",
    guarantee="k-regular",
    complexity="O(k first n), then O(k C (q + k) n) per round or kick",
    summary="the least loss on whole tables, in the seconds that you give it",
    effort="kicks",
    ends_early=True,
    effort_needs={"improve": "chains"},
    effort_before={"rounds": 1},
    memory=memory_of,
    linear=True,
    slow_or_quick=slow_or_quick,
    gone={
        **dict.fromkeys(
            ("block", "passes", "restarts"), "leave it out: chains lose less in a fraction of its time"
        ),
        **dict.fromkeys(
            ("improve: reassign", "improve: both"), "take chains: they lose less in a fraction of its time"
        ),
    },
    colour="#56b4e9",
    shape="hex",
)
