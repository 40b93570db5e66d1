"""Diversity of classes: unions of whole classes along a tree that sizes and generalized records alone determine."""

from __future__ import annotations

import itertools

import numpy as np

from anonflow.algorithms.diversity.target import Targets
from anonflow.kernels.costs import widen_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import Plan, State, take

ALIKE = 1.25
"""Children of a node have as good as equal sizes if the largest is at most so many times the smallest."""

MOST_TOLD = 0.1
"""How much an undivided node with children of other sizes may add to the probability of somebody's value."""

NEAR = 3
"""How often near unions are paired; larger ones are paired at random, because near ones lack the same shares. A criterion that asks
only which values are present has near unions throughout: they soon have a rare value."""

_DEALS = 2_000
"""Random deals of a node's values that measure this."""


def united(plan: Plan, boxes: State, counts: np.ndarray, target: Targets) -> np.ndarray | None:
    """Unite classes until all are diverse.

    Parameters
    ----------
    plan : Plan
    boxes : State
        The generalized records of b classes; the lowest of each union is widened to all its classes.
    counts : numpy.ndarray, shape (b, V), int64
        How often each sensitive value occurs in each class.
    target : Targets

    Returns
    -------
    numpy.ndarray, shape (b,), int64, or None
        The lowest class of the union that each class is part of; None if not even all classes together are diverse.
        O(b^2 q + b V log b) time.

    Notes
    -----
    Ours; after Cormode, Srivastava, Li and Li (PVLDB 3, 2010) the step is symmetric. Classes are paired, the pairs are
    paired, and so on, by sizes and generalized records alone. Then the root of this tree is divided into its children if
    each of them is diverse as a whole, and so is each child. Whether a node is reached depends on counts that exchanges
    inside published classes leave alone. A node that stays whole says that one of its children lacks diversity, but not
    which: if they have equal sizes, everybody in it has a value with a probability equal to its share there, also for
    an attacker who runs the method again. Where sizes differ, the smaller child is the likelier one: a node whose values,
    dealt at random, would tell more than `MOST_TOLD` by staying whole stays whole in any case.
    """
    of_presence = all(column_target.of_presence for column_target in target.each)
    members, below = _merge_tree(plan, boxes, counts.sum(axis=1) // len(target.each), of_presence)
    tallies = np.array([counts[classes].sum(axis=0) for classes in members])
    size = tallies.sum(axis=1) // len(target.each)
    diverse = target.gaps(tallies) == 0
    if not diverse[-1]:
        return None
    into = np.arange(len(counts))
    waiting = [len(below) - 1]
    while waiting:
        node = waiting.pop()
        children = below[node]
        if children and diverse[children].all() and _tells_little(tallies[node], size[children], target):
            waiting.extend(below[node])
            continue
        lowest = int(members[node].min())
        into[members[node]] = lowest
        for other in members[node].tolist():
            widen_jit(plan, boxes, lowest, boxes, other)
    return into


def _tells_little(counts: np.ndarray, size: np.ndarray, target: Targets) -> bool:
    """Return whether a node that is not divided, because a child lacks diversity, says little about its people's values.

    It looks at the node's counts and its children's sizes alone.
    """
    if size.max() <= ALIKE * size.min():
        return True
    dealt = _deals(counts, size, target)
    lacking = np.any([target.gaps(hand) > 0 for hand in dealt], axis=0)
    if not lacking.any():
        return True
    shares = [
        hand[lacking].mean(axis=0) / records for hand, records in zip(dealt, size.tolist(), strict=True)
    ]
    return bool(np.max(shares - counts / size.sum()) <= MOST_TOLD)


def _deals(counts: np.ndarray, size: np.ndarray, target: Targets) -> list[np.ndarray]:
    """Return values that children of these sizes have where a node's values are dealt at random: shape (deals, V), int64, each."""
    # always the same deals: which classes are united depends on the classes alone
    rng = np.random.default_rng(0)
    pool = np.tile(counts, (_DEALS, 1))
    dealt = []
    for records in size.tolist():
        hand = np.zeros_like(pool)
        for start, stop in itertools.pairwise(target.starts.tolist()):
            sample_size = np.full(_DEALS, records)
            others = pool[:, start:stop].sum(axis=1)
            for value in range(start, stop):
                others = others - pool[:, value]
                hand[:, value] = rng.hypergeometric(pool[:, value], others, sample_size)
                sample_size = sample_size - hand[:, value]
        pool = pool - hand
        dealt.append(hand)
    return dealt


def _merge_tree(
    plan: Plan, boxes: State, size: np.ndarray, of_presence: bool
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return the classes of each node, and its children: b classes first, the root last.

    Near unions are paired: in the first `NEAR` rounds, or in all where the target asks for the presence of values.
    """
    b = len(size)
    members = [np.array([at]) for at in range(b)]
    below: list[list[int]] = [[] for _ in range(b)]
    level = list(range(b))
    state = take(boxes, np.arange(b))
    height = 0
    while len(level) > 1:
        groups = _paired_records(plan, state, size, of_presence or height < NEAR)
        following = []
        for first, *others in groups:
            children = [level[first], *(level[other] for other in others)]
            following.append(len(below))
            below.append(children)
            members.append(np.concatenate([members[child] for child in children]))
            for other in others:
                widen_jit(plan, state, first, state, other)
        level = following
        size = np.array([size[group].sum() for group in groups])
        state = take(state, np.array([group[0] for group in groups]))
        height += 1
    return members, below


def _paired_records(plan: Plan, state: State, size: np.ndarray, near: bool) -> list[list[int]]:
    """Return records in pairs, the last of an odd number with a pair: the partner has the nearest size and, among these, is near or any.

    The record of the highest cost chooses first, its partner is the one that loses least with it; ties: the lowest.
    """
    b = len(size)
    rng = np.random.default_rng(b)
    cost = np.empty(b)
    free = np.ones(b, bool)
    groups: list[list[int]] = []
    for at in np.argsort(-state.cost, kind="stable").tolist():
        if not free[at]:
            continue
        free[at] = False
        partners = np.flatnonzero(free)
        join_row_jit(plan, state, at, state, np.int64(0), np.int64(b), cost)
        if not len(partners):
            widest = [size[group].sum() * cost[group].max() for group in groups]
            groups[int(np.argmin(widest))].append(at)
            break
        apart = np.abs(size[partners] - size[at])
        rise = (size[partners] + size[at]) * cost[partners] - size[partners] * state.cost[partners]
        if not near:
            rise = rng.random(len(partners))
        best = int(partners[np.lexsort([partners, rise, apart])[0]])
        free[best] = False
        groups.append([at, best])
    return groups
