"""Lower the loss of equivalence classes of any method: chains and kicks move records between classes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.algorithms.diversity.target import SensitiveValues
from anonflow.algorithms.method import MOST_EFFORT, Outcome, Partition, Progress
from anonflow.algorithms.near_blocks import near_blocks
from anonflow.generalization import Generalization
from anonflow.kernels.classes.class_chains import (
    DRAWS,
    class_chain_scratch,
    improve_classes_jit,
)
from anonflow.kernels.classes.class_state import classes_of
from anonflow.kernels.classes.clusters import k_member_clusters_jit
from anonflow.kernels.costs import load
from anonflow.kernels.state import Plan, State, empty_state, take
from anonflow.option import Option
from anonflow.partition import lexicographic_order

Improve = Annotated[
    Literal["none", "chains"],
    Option(
        "Afterwards", sentence="Chains: records then move between the classes while that lowers the loss."
    ),
]
Rounds = Annotated[
    int,
    Option(
        "Rounds of chains",
        least=1,
        most=MOST_EFFORT,
        sentence="Rounds of chains; in each, classes exchange records with others that are near. With kicks, as many rounds more.",
    ),
]
Kicks = Annotated[
    int,
    Option(
        "Kicks for each class",
        least=0,
        most=MOST_EFFORT,
        sentence="Kicks for each class: near classes are made again at random; this takes longer and loses less.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        "Threads",
        least=1,
        in_form=False,
        sentence="Threads for the chains; as many as there are processors by default. The result is the same.",
    ),
]

ROUNDS = 1
"""Default number of rounds; with `KICKS`, the classes benchmark shows the effect of more rounds."""

KICKS = 0
"""Kicks for each class, likewise."""

IMPROVED: dict[str, Any] = {
    "effort": "kicks",
    "effort_needs": {"improve": "chains"},
    "effort_takes": {"rounds": 6},
}
"""The declaration of the effort of methods with these options; kicks gain most in six rounds (see the benchmark)."""

BLOCK = 256
"""Classes of a block: in one round records move inside it only."""

DEPTH = 8
"""Classes of a chain at most, less one, in the rounds of kicks."""

SHORT = 1
"""The same in the rounds before: moves and exchanges alone, so that k-member takes less than three times as long."""

SLACK = 0.3
"""How much more the classes of a kick may lose before its chains are not tried."""

STRETCH = 2_000
"""Records of one large class that are clustered at a time."""


@dataclass(frozen=True)
class ImproveEffort:
    """How far classes are improved.

    Attributes
    ----------
    rounds, kicks : int
        At least 1, at least 0. With kicks there are twice as many rounds.
    threads : int or None
    """

    rounds: int = ROUNDS
    kicks: int = KICKS
    threads: int | None = None


def effort_of(improve: str, rounds: int, kicks: int, threads: int | None) -> ImproveEffort | None:
    """Return the options of the improvement as one object; None for ``none``."""
    return None if improve == "none" else ImproveEffort(int(rounds), int(kicks), threads)


def outcome_of(
    part: Partition, labels: np.ndarray, clusters: int, k: int, effort: ImproveEffort | None
) -> Outcome:
    """Return the outcome of a method with these classes, improved if `improve` says so.

    Parameters
    ----------
    part : Partition
    labels : numpy.ndarray, shape (P,), int64
    clusters : int
        Classes.
    k : int
    effort : ImproveEffort or None

    Returns
    -------
    Outcome
        With classes. Facts: their number, `clusters`; of an improvement those of :func:`improve_labels`.
    """
    if effort is None:
        return Outcome.of_classes(part.records, labels, found=clusters)
    labels, facts = improve_labels(part, labels, k, effort)
    return Outcome.of_classes(part.records, labels, **facts)


def improve_labels(
    part: Partition,
    labels: np.ndarray,
    k: int,
    effort: ImproveEffort,
    seen: Callable[[np.ndarray], None] | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Move records between classes so that the loss falls; every class keeps at least k.

    Classes of 2k records and more are first cut in several, where that loses no more. Then rounds: the classes are
    dealt to blocks of near ones, drawn anew, and in each block records move by
    :func:`anonflow.kernels.classes.class_chains.improve_classes`. The rounds without kicks come first and are the same with
    any number of kicks; as many rounds with kicks follow, so kicks never lose more than none.

    Parameters
    ----------
    part : Partition
        P records.
    labels : numpy.ndarray, shape (P,), int64
        Classes of at least k records, or one of all.
    k : int
    effort : ImproveEffort
        Kicks are spread evenly over their rounds.
    seen : callable, optional
        Called with the labels after each round.

    Returns
    -------
    labels : numpy.ndarray, shape (P,), int64
        From 0.
    facts : dict
        The number of classes (`found`), of `chains` and of `kicks` that lowered the loss, and by how much it fell,
        summed over records (`gained`).

    Notes
    -----
    After Lin and Kernighan (Operations Research 21, 1973) and Glover (Discrete Applied Mathematics 65, 1996); the
    loss of a class is its size times the cost of its generalized record. It never rises, whatever the information
    loss. Blocks share nothing, and their random numbers are drawn before they run, so any number of threads gives
    the same bits. O(P C q) time a round for C = 256 classes in a block, and C^2 q / 256 for the blocks of all C;
    O(P q) memory.
    """
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    facts: dict[str, Any] = {"found": int(labels.max(initial=-1)) + 1, "chains": 0, "kicks": 0, "gained": 0.0}
    if k < 2 or part.n < 2 * k:
        return labels, facts
    origin = part.originals()
    labels, fallen = cut_large(part, origin, labels, k)
    facts["gained"] += fallen
    turns = effort.rounds * (2 if effort.kicks else 1)
    for turn in range(turns):
        labels, fallen, chains, kicks = _round(part, origin, labels, k, effort, turn)
        facts["gained"] += fallen
        facts["chains"] += chains
        facts["kicks"] += kicks
        if seen is not None:
            seen(labels)
        if part.watch is not None:
            lost = float(np.bincount(labels) @ class_states(part, labels).cost)
            part.watch(Progress(turn + 1, turns, lost))
    facts["found"] = int(labels.max()) + 1
    return labels, facts


def cut_large(part: Partition, origin: State, labels: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Return classes of at least 2k records cut into several of at least k where that loses no more.

    Returns
    -------
    labels : numpy.ndarray, shape (P,), int64
        From 0.
    gained : float
        By how much the loss fell, summed over records. O(s q (k + 2,000)) time for a class of s records.

    Notes
    -----
    The cuts are those of :func:`anonflow.algorithms.classes.k_member.k_member`; equal records keep their order. Entropy
    may rise when a class is cut; the class then stays as it is.
    """
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= 2 * k)
    if not len(large):
        return labels, 0.0
    before = sizes * class_states(part, labels).cost
    rank = np.empty(part.n, np.int64)
    rank[lexicographic_order(part.records)] = np.arange(part.n)
    rows_of = members(labels)
    fine = labels.copy()
    used = len(sizes)
    for c in large.tolist():
        rows = rows_of[c]
        if before[c] > 0.0:
            pieces = np.array_split(rows[np.argsort(rank[rows])], max(1, len(rows) // max(STRETCH, 2 * k)))
            parts = [
                piece[at]
                for piece in pieces
                for at in members(clustered(part.plan, take(origin, piece), 0, k)[0])
            ]
        else:
            # a class that costs nothing loses nothing wherever it is cut
            parts = np.array_split(rows, len(rows) // k)
        for inner in parts[1:]:
            fine[inner] = used
            used += 1
    source = np.empty(used, np.int64)
    source[fine] = labels
    lost = np.bincount(fine) * class_states(part, fine).cost
    after = np.bincount(source, weights=lost)
    # entropy may rise where a class is cut: such a class stays as it is
    worse = after > before
    fine = np.where(worse[labels], labels, fine)
    return np.unique(fine, return_inverse=True)[1].astype(np.int64), float((before - after)[~worse].sum())


def class_states(part: Partition, labels: np.ndarray) -> State:
    """Return the closure of each class in the kernels' form: C generalized records for the labels 0 to C - 1."""
    covers = Generalization.join_by_class(part.records, labels).take(np.unique(labels, return_index=True)[1])
    return load(part.plan, covers.lo, covers.hi, covers.bits)


def members(labels: np.ndarray) -> list[np.ndarray]:
    """Return the records of each class, ascending, for labels from 0 that all occur."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def clustered(
    plan: Plan, origin: State, first: int, k: int, sensitive: SensitiveValues | None = None
) -> tuple[np.ndarray, int]:
    """Return the cluster of each record and the number of clusters, by :func:`anonflow.kernels.classes.clusters.k_member_clusters`.

    Parameters
    ----------
    plan : Plan
    origin : State
        P originals, P >= k.
    first : int
        The record from which the first cluster is to be far.
    k : int
    sensitive : SensitiveValues, optional
        Of these records, for clusters that each have enough different values.

    Returns
    -------
    labels : numpy.ndarray, shape (P,), int64
    clusters : int
        0 where all records together have too few different values.
    """
    n = len(origin.cost)
    labels = np.zeros(n, np.int64)
    values, distinct, n_values = np.empty((n, 0), np.int64), np.empty(0, np.int64), 0
    if sensitive is not None:
        targets = sensitive.targets
        values, distinct, n_values = (
            np.ascontiguousarray(sensitive.values, np.int64),
            targets.distinct,
            targets.size,
        )
    clusters = k_member_clusters_jit(
        plan,
        origin,
        empty_state(plan, n),
        empty_state(plan, n // k),
        first,
        k,
        values,
        distinct,
        n_values,
        labels,
    )
    return labels, int(clusters)


def _round(
    part: Partition,
    origin: State,
    labels: np.ndarray,
    k: int,
    effort: ImproveEffort,
    turn: int,
) -> tuple[np.ndarray, float, int, int]:
    """Return one round: the labels from 0, by how much the loss fell, chains and kicks that lowered it."""
    plan = part.plan
    rows_of = members(labels)
    small = np.array([len(rows) <= 2 * k for rows in rows_of])
    # Larger ones are those whose cut loses more (entropy): they stay as they are.
    numbers = part.rng.permutation(np.flatnonzero(small))
    blocks = [numbers]
    if len(numbers) > BLOCK:
        joined = class_states(part, labels)
        blocks = near_blocks(plan, joined, joined, numbers, BLOCK)
    jobs = []
    used = int((~small).sum())
    kicked = max(0, turn - effort.rounds)
    kicking = turn >= effort.rounds
    for block in blocks:
        rows = np.concatenate([rows_of[c] for c in block]) if len(block) else np.empty(0, np.int64)
        # kicks until then and kicks until now: so rounding loses none of them over the rounds
        due = [effort.kicks * len(block) * turns // effort.rounds for turns in (kicked, kicked + kicking)]
        # drawn here and not in the threads, so that the result does not depend on their order
        draws = part.rng.integers(0, 2**31, (due[1] - due[0], DRAWS))
        inside = np.repeat(np.arange(len(block)), [len(rows_of[c]) for c in block])
        jobs.append((rows, inside, used, draws))
        used += len(rows) // k
    renewed = np.empty(part.n, np.int64)
    for at, c in enumerate(np.flatnonzero(~small)):
        renewed[rows_of[c]] = at

    depth = DEPTH if kicking else SHORT

    def work(job: tuple[np.ndarray, np.ndarray, int, np.ndarray]) -> tuple[float, int, int]:
        rows, inside, first, draws = job
        if len(rows) < 2 * k:
            renewed[rows] = first
            return 0.0, 0, 0
        # room for as many classes as these records allow: kicks may add some
        classes = classes_of(plan, inside, len(rows) // k, 2 * k)
        changed = improve_classes_jit(
            plan,
            take(origin, rows),
            classes,
            class_chain_scratch(plan, len(rows), classes),
            k,
            depth,
            SLACK,
            draws,
        )
        renewed[rows] = first + classes.label
        return changed

    # Blocks share no record, so the order of the threads does not matter.
    threads = min(len(jobs), effort.threads or os.cpu_count() or 1)
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            changes = list(pool.map(work, jobs))
    else:
        changes = [work(job) for job in jobs]
    labels = np.unique(renewed, return_inverse=True)[1].astype(np.int64)
    return (
        labels,
        float(sum(change[0] for change in changes)),
        sum(int(change[1]) for change in changes),
        sum(int(change[2]) for change in changes),
    )
