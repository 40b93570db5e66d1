"""Less loss by moving records between equivalence classes: chains of ejections, kicks and their undoing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.candidates import least
from anonflow.kernels.costs import increase_row, join_cost, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State

EPS = 1e-10


class Classes(NamedTuple):
    member: np.ndarray
    size: np.ndarray
    label: np.ndarray
    slot: np.ndarray
    worth: np.ndarray
    most: np.ndarray
    near: np.ndarray


def renew_class(plan, origin, cl, joined, rest, c):
    room = cl.member.shape[1]
    size = cl.size[c]
    base = c * room
    move(joined, c, cl.member[c, 0], origin)
    for s in range(1, size):
        move(rest, base + s, c, joined)
        widen(plan, joined, c, origin, cl.member[c, s])
    # what follows each record, from the last one back; slot room - 1 + 1 ... held in rest of slot 0
    move(rest, base, cl.member[c, size - 1], origin)
    for s in range(size - 2, 0, -1):
        widen(plan, rest, base + s, rest, base)
        widen(plan, rest, base, origin, cl.member[c, s])
    cost = joined.cost[c]
    most = 0.0
    for s in range(size):
        worth = cost - rest.cost[base + s]
        cl.worth[c, s] = worth
        if worth > most:
            most = worth
    cl.most[c] = most


renew_class_jit = jit(renew_class)


def near_classes(plan, origin, cl, joined, classes, start, stop):
    C = len(joined.cost)
    growth = np.empty(C)
    key = np.empty(cl.near.shape[1])
    for i in range(start, stop):
        increase_row(plan, origin, i, joined, np.int64(0), C, growth)
        for c in range(C):
            if cl.size[c] == 0:
                growth[c] = np.inf
        growth[cl.label[i]] = np.inf
        least(growth, i % C, key, cl.near[i])


near_classes_jit = jit(near_classes)


def find_chain(plan, origin, cl, joined, rest, k, first, depth, mark, stamp, moved, into):
    """Steps; negative: the last one is absorbed. 0: none."""
    room = cl.member.shape[1]
    home = cl.label[first]
    opened = home * room + cl.slot[first]
    size0 = cl.size[home]
    spare = size0 > k
    held = (size0 - 1 if spare else size0) * rest.cost[opened]
    gain = size0 * joined.cost[home] - held
    if gain <= EPS:
        return 0, 0.0
    mark[home] = stamp
    i = first
    for d in range(depth):
        best_closed = EPS
        closed_at = -1
        absorbed = -1
        best_open = EPS
        open_at = -1
        for x in range(cl.near.shape[1]):
            c = np.int64(cl.near[i, x])
            if mark[c] == stamp or cl.size[c] == 0:
                continue
            size = cl.size[c]
            cost = joined.cost[c]
            more = join_cost(plan, origin, i, joined, c) - cost
            if spare and size < room:
                closed = gain - (size * more + cost + more)
                if closed > best_closed:
                    best_closed = closed
                    absorbed = c
                    closed_at = -1
            if gain - size * (more - cl.most[c]) <= EPS:
                continue
            for s in range(size):
                if gain - size * (more - cl.worth[c, s]) <= EPS:
                    continue
                at = c * room + s
                partial = gain - size * (join_cost(plan, origin, i, rest, at) - cost)
                if partial <= EPS:
                    continue
                if partial - (size0 * rest.cost[opened] - held) > best_closed:
                    closed = partial - (size0 * join_cost(plan, origin, cl.member[c, s], rest, opened) - held)
                    if closed > best_closed:
                        best_closed = closed
                        closed_at = at
                        absorbed = -1
                if partial > best_open:
                    best_open = partial
                    open_at = at
        moved[d] = i
        if absorbed >= 0:
            into[d] = absorbed * room + cl.size[absorbed]
            return -(d + 1), best_closed
        if closed_at >= 0:
            into[d] = closed_at
            moved[d + 1] = cl.member[closed_at // room, closed_at % room]
            into[d + 1] = opened
            return d + 2, best_closed
        if open_at < 0:
            return 0, 0.0
        into[d] = open_at
        gain = best_open
        i = cl.member[open_at // room, open_at % room]
        mark[open_at // room] = stamp
    return 0, 0.0


find_chain_jit = jit(find_chain)


def note(cl, c, kick, logged, log, sizes, members, count):
    if logged[c] == kick:
        return count
    logged[c] = kick
    log[count] = c
    sizes[count] = cl.size[c]
    for s in range(cl.size[c]):
        members[count, s] = cl.member[c, s]
    return count + 1


note_jit = jit(note)


def put(cl, i, at):
    room = cl.member.shape[1]
    cl.member[at // room, at % room] = i
    cl.label[i] = at // room
    cl.slot[i] = at % room


put_jit = jit(put)


def wake(cl, c, active, queue, tail):
    for s in range(cl.size[c]):
        i = cl.member[c, s]
        if not active[i]:
            active[i] = True
            queue[tail % len(queue)] = i
            tail += 1
    return tail


wake_jit = jit(wake)


def work_block(plan, origin, cl, joined, rest, k, depth, tries, slack, scratch, active, draws, out):
    room = cl.member.shape[1]
    C = len(cl.size)
    total = 0
    for c in range(C):
        total += cl.size[c]
    queue = np.empty(total + 1, np.int64)
    head = 0
    tail = 0
    for c in range(C):
        for s in range(cl.size[c]):
            i = cl.member[c, s]
            if active[i]:
                queue[tail] = i
                tail += 1
    mark = np.full(C, -1, np.int64)
    stamp = 0
    moved = np.empty(depth + 1, np.int64)
    into = np.empty(depth + 1, np.int64)
    logged = np.full(C, -1, np.int64)
    log = np.empty(C, np.int64)
    sizes = np.empty(C, np.int64)
    members = np.empty((C, room), np.int64)
    unit = np.empty(8, np.int64)
    pile = np.empty(8 * room, np.int64)
    built = np.empty(8 * room, np.int64)
    tried = 0
    ran = 0
    count = 0
    gained = 0.0
    chains = 0
    kept = 0
    for kick in range(-1, len(draws)):
        change = 0.0
        count = 0
        if kick >= 0:
            if tries > 0:
                # of some random exchanges between near classes the one that costs least
                lowest = np.inf
                a = -1
                b = -1
                for x in range(tries):
                    z = 4 * x
                    c = draws[kick, z] % C
                    if cl.size[c] == 0:
                        continue
                    s = draws[kick, z + 1] % cl.size[c]
                    i = cl.member[c, s]
                    to = np.int64(cl.near[i, draws[kick, z + 2] % cl.near.shape[1]])
                    if to == c or cl.size[to] == 0:
                        continue
                    r = draws[kick, z + 3] % cl.size[to]
                    j = cl.member[to, r]
                    if cl.worth[c, s] <= 0.0 and cl.worth[to, r] <= 0.0:
                        continue
                    rise = cl.size[to] * (join_cost(plan, origin, i, rest, to * room + r) - joined.cost[to])
                    rise += cl.size[c] * (join_cost(plan, origin, j, rest, c * room + s) - joined.cost[c])
                    if rise < lowest and rise > 1e-6:
                        lowest = rise
                        a = c * room + s
                        b = to * room + r
                if a < 0:
                    continue
                c = a // room
                to = b // room
                i = cl.member[c, a % room]
                j = cl.member[to, b % room]
                count = note(cl, c, kick, logged, log, sizes, members, count)
                count = note(cl, to, kick, logged, log, sizes, members, count)
                change += cl.size[c] * joined.cost[c] + cl.size[to] * joined.cost[to]
                put(cl, i, b)
                put(cl, j, a)
                renew_class(plan, origin, cl, joined, rest, c)
                renew_class(plan, origin, cl, joined, rest, to)
                change -= cl.size[c] * joined.cost[c] + cl.size[to] * joined.cost[to]
            else:
                parts = -tries
                unit[0] = draws[kick, 0] % C
                if cl.size[unit[0]] == 0:
                    continue
                good = True
                for x in range(1, parts):
                    c = unit[(draws[kick, 3 * x] >> 8) % x]
                    i = cl.member[c, draws[kick, 3 * x + 1] % cl.size[c]]
                    to = np.int64(cl.near[i, draws[kick, 3 * x + 2] % cl.near.shape[1]])
                    good = good and cl.size[to] > 0
                    for y in range(x):
                        good = good and unit[y] != to
                    if not good:
                        break
                    unit[x] = to
                if not good:
                    continue
                total = 0
                before = 0.0
                for x in range(parts):
                    c = unit[x]
                    before += cl.size[c] * joined.cost[c]
                    for s in range(cl.size[c]):
                        pile[total] = cl.member[c, s]
                        total += 1
                first = draws[kick, 1] % total
                after = 0.0
                left = total
                fill = 0
                for x in range(parts):
                    c = unit[x]
                    if x > 0:
                        # the one furthest from the class before
                        first = 0
                        furthest = -1.0
                        for s in range(left):
                            far = join_cost(plan, origin, pile[s], scratch, x - 1)
                            if far > furthest:
                                furthest = far
                                first = s
                    move(scratch, x, pile[first], origin)
                    built[fill] = pile[first]
                    fill += 1
                    left -= 1
                    pile[first] = pile[left]
                    for s in range(1, cl.size[c]):
                        lowest = np.inf
                        at = 0
                        if x < parts - 1:
                            for r in range(left):
                                cost = join_cost(plan, origin, pile[r], scratch, x)
                                if cost < lowest:
                                    lowest = cost
                                    at = r
                        widen(plan, scratch, x, origin, pile[at])
                        built[fill] = pile[at]
                        fill += 1
                        left -= 1
                        pile[at] = pile[left]
                    after += cl.size[c] * scratch.cost[x]
                tried += 1
                if after > before * (1 + slack) or after == before:
                    continue
                ran += 1
                change = before - after
                fill = 0
                for x in range(parts):
                    c = unit[x]
                    count = note(cl, c, kick, logged, log, sizes, members, count)
                    for s in range(cl.size[c]):
                        put(cl, built[fill], c * room + s)
                        fill += 1
                    renew_class(plan, origin, cl, joined, rest, c)
                    tail = wake(cl, c, active, queue, tail)
                to = unit[0]
            tail = wake(cl, c, active, queue, tail)
            tail = wake(cl, to, active, queue, tail)
        while head < tail:
            i = queue[head % len(queue)]
            head += 1
            active[i] = False
            stamp += 1
            steps, gain = find_chain(plan, origin, cl, joined, rest, k, i, depth, mark, stamp, moved, into)
            if steps == 0:
                continue
            chains += 1
            change += gain
            home = cl.label[i]
            gap = cl.slot[i]
            if kick >= 0:
                count = note(cl, home, kick, logged, log, sizes, members, count)
            absorbed = steps < 0
            if absorbed:
                steps = -steps
            for d in range(steps):
                c = into[d] // room
                if kick >= 0:
                    count = note(cl, c, kick, logged, log, sizes, members, count)
                put(cl, moved[d], into[d])
            if absorbed:
                cl.size[into[steps - 1] // room] += 1
                last = cl.size[home] - 1
                if gap != last:
                    put(cl, cl.member[home, last], home * room + gap)
                cl.size[home] = last
                renew_class(plan, origin, cl, joined, rest, home)
                tail = wake(cl, home, active, queue, tail)
            for d in range(steps):
                c = into[d] // room
                renew_class(plan, origin, cl, joined, rest, c)
                tail = wake(cl, c, active, queue, tail)
        if kick >= 0 and change < 0.0:
            for x in range(count):
                c = log[x]
                cl.size[c] = sizes[x]
                for s in range(sizes[x]):
                    put(cl, members[x, s], c * room + s)
                renew_class(plan, origin, cl, joined, rest, c)
            continue
        if kick >= 0 and change > 0:
            kept += 1
        gained += change
    out[0] = gained
    out[1] = chains
    out[2] = kept
    out[3] = tried
    out[4] = ran


work_block_jit = jit(work_block)


def solve_block(plan, origin, cl, joined, rest, k, depth, tries, slack, scratch, draws, out):
    for c in range(len(cl.size)):
        if cl.size[c] > 0:
            renew_class(plan, origin, cl, joined, rest, c)
    near_classes(plan, origin, cl, joined, None, 0, len(cl.label))
    active = np.ones(len(cl.label), np.bool_)
    work_block(plan, origin, cl, joined, rest, k, depth, tries, slack, scratch, active, draws, out)


solve_block_jit = jit(solve_block)
