"""Local search for pattern-guided k-anonymity: rows move between instances of patterns that they fit."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import stable_order

TRIED = 8
"""The most donors that are tried, one at a time, to open an instance: the donor is dissolved."""


def cheapest_open(
    kind_at: np.ndarray,
    instance: np.ndarray,
    cost: np.ndarray,
    size: np.ndarray,
    t: int,
    without: int,
) -> int:
    """Return the cheapest choice of row type `t` in an open instance other than `without`, or suppression."""
    best = np.int64(-1)
    for d in range(kind_at[t], kind_at[t + 1]):
        at = instance[d]
        open_to = at < 0 or (at != without and size[at] > 0)
        if open_to and (best < 0 or cost[d] < cost[best]):
            best = np.int64(d)
    return int(best)


cheapest_open_jit = jit(cheapest_open, borrows=True)


def fits(kind_at: np.ndarray, instance: np.ndarray, t: int, b: int) -> bool:
    """Return whether rows of type `t` fit instance `b`."""
    is_listed = False
    for d in range(kind_at[t], kind_at[t + 1]):
        is_listed |= bool(instance[d] == b)
    return is_listed


fits_jit = jit(fits, borrows=True)


def move_rows(
    kind_at: np.ndarray,
    kind: np.ndarray,
    instance: np.ndarray,
    cost: np.ndarray,
    inst_at: np.ndarray,
    by_inst: np.ndarray,
    k: int,
    passes: int,
    amount: np.ndarray,
    size: np.ndarray,
) -> int:
    """Move rows between instances while that lowers the cost; return by how much the cost fell.

    Parameters
    ----------
    kind_at : numpy.ndarray, shape (t + 1,), int64
        Choices are sorted by row type; those of type u are ``kind_at[u]:kind_at[u + 1]``.
    kind : numpy.ndarray, shape (c,), int64
        Of each choice: its row type.
    instance : numpy.ndarray, shape (c,), int64
        Its instance; -1 for suppression, which each type has.
    cost : numpy.ndarray, shape (c,), int64
        Its cost of a row.
    inst_at : numpy.ndarray, shape (m + 1,), int64
    by_inst : numpy.ndarray, int64
        The choices of instance b are ``by_inst[inst_at[b]:inst_at[b + 1]]``.
    k : int
    passes : int
    amount : numpy.ndarray, shape (c,), int64
        How many rows make each choice; changed.
    size : numpy.ndarray, shape (m,), int64
        Rows in each instance, 0 or at least k; changed.

    Returns
    -------
    int
        By how much the cost fell; every move lowers it.

    Notes
    -----
    Three moves. An instance takes rows that it is cheaper for, from instances that keep k and from suppression.
    A closed one is opened by at least k rows, if they gain together; if too few rows are available, one donor is
    dissolved: its rows that fit join, the others go to their cheapest open choice. An open one is dissolved if its rows
    are better off elsewhere. O(passes sum over choices of their type's choices).
    """
    m = len(size)
    gained = np.int64(0)
    donations = np.zeros(m, np.int64)
    most = np.int64(0)
    for b in range(m):
        rows_of_types = np.int64(0)
        for e in range(inst_at[b], inst_at[b + 1]):
            t = kind[by_inst[e]]
            rows_of_types += kind_at[t + 1] - kind_at[t]
        most = max(most, rows_of_types)
    gain = np.empty(most, np.int64)
    source = np.empty(most, np.int64)
    target = np.empty(most, np.int64)
    moved = np.empty(most, np.int64)
    tried = np.empty(TRIED, np.int64)
    for _ in range(passes):
        before = gained
        for b in range(m):
            closed = size[b] == 0
            count = 0
            for e in range(inst_at[b], inst_at[b + 1]):
                c = by_inst[e]
                t = kind[c]
                for d in range(kind_at[t], kind_at[t + 1]):
                    if d != c and amount[d] > 0 and (closed or cost[d] > cost[c]):
                        gain[count] = cost[d] - cost[c]
                        source[count] = d
                        target[count] = c
                        count += 1
            if count == 0:
                continue
            order = stable_order(-gain[:count])
            need = np.int64(k) if closed else np.int64(0)
            donors = 0
            # without a donor first, then with one that is dissolved
            for attempt in range(-1, TRIED):
                if attempt >= donors or (attempt >= 0 and not closed):
                    break
                away = np.int64(-1)
                if attempt >= 0:
                    away = tried[attempt]
                total = np.int64(0)
                net = np.int64(0)
                for x in range(count):
                    moved[x] = 0
                for x in range(count):
                    y = order[x]
                    at = instance[source[y]]
                    if away >= 0 and at == away:
                        moved[y] = amount[source[y]]
                        total += moved[y]
                        net += moved[y] * gain[y]
                for x in range(count):
                    y = order[x]
                    at = instance[source[y]]
                    if away >= 0 and at == away:
                        continue
                    # rows that lose by the move only serve to reach k
                    if gain[y] <= 0 and total >= need:
                        break
                    give = amount[source[y]]
                    if at >= 0:
                        # an open instance keeps at least k rows, after all it has given in this move
                        give = min(give, size[at] - k - donations[at])
                        if attempt < 0 and give < amount[source[y]] and donors < TRIED:
                            new = True
                            for z in range(donors):
                                new &= tried[z] != at
                            if new:
                                tried[donors] = at
                                donors += 1
                    if gain[y] <= 0:
                        give = min(give, need - total)
                    if give > 0:
                        moved[y] = give
                        total += give
                        net += give * gain[y]
                        if at >= 0:
                            donations[at] += give
                for x in range(count):
                    at = instance[source[x]]
                    if at >= 0:
                        donations[at] = 0
                if away >= 0:
                    # the donor's rows that do not fit here
                    for e in range(inst_at[away], inst_at[away + 1]):
                        d = by_inst[e]
                        if amount[d] > 0 and not fits(kind_at, instance, kind[d], b):
                            other = cheapest_open(kind_at, instance, cost, size, kind[d], int(away))
                            net += amount[d] * (cost[d] - cost[other])
                if total < need or net <= 0:
                    continue
                if away >= 0:
                    for e in range(inst_at[away], inst_at[away + 1]):
                        d = by_inst[e]
                        if amount[d] > 0 and not fits(kind_at, instance, kind[d], b):
                            other = cheapest_open(kind_at, instance, cost, size, kind[d], int(away))
                            amount[other] += amount[d]
                            size[away] -= amount[d]
                            if instance[other] >= 0:
                                size[instance[other]] += amount[d]
                            amount[d] = 0
                for x in range(count):
                    if moved[x] > 0:
                        at = instance[source[x]]
                        amount[source[x]] -= moved[x]
                        amount[target[x]] += moved[x]
                        size[b] += moved[x]
                        if at >= 0:
                            size[at] -= moved[x]
                gained += net
                break
        for a in range(m):
            if size[a] == 0:
                continue
            net = np.int64(0)
            for e in range(inst_at[a], inst_at[a + 1]):
                d = by_inst[e]
                if amount[d] > 0:
                    other = cheapest_open(kind_at, instance, cost, size, kind[d], a)
                    net += amount[d] * (cost[d] - cost[other])
            if net <= 0:
                continue
            for e in range(inst_at[a], inst_at[a + 1]):
                d = by_inst[e]
                if amount[d] > 0:
                    other = cheapest_open(kind_at, instance, cost, size, kind[d], a)
                    amount[other] += amount[d]
                    if instance[other] >= 0:
                        size[instance[other]] += amount[d]
                    amount[d] = 0
            size[a] = 0
            gained += net
        if gained == before:
            break
    return int(gained)


move_rows_jit = jit(move_rows)
