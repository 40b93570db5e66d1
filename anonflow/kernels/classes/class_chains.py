"""Local search over equivalence classes: ejection chains move records, kicks change some classes at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.classes.class_state import Classes, put, renew_class
from anonflow.kernels.classes.clusters import drop
from anonflow.kernels.costs import join_cost, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.nearest import least
from anonflow.kernels.row_costs import increase_row, join_row
from anonflow.kernels.state import Plan, State, empty_state

GAIN = 1e-10
"""A smaller change of the loss counts as no change, because sizes times costs are rounded."""

PARTS = 3
"""The most classes whose records one kick distributes again."""

NEAR = 4
"""Number of classes that each step of a chain examines, and of nearest classes among which a kick chooses the next one."""

DRAWS = 3 + 2 * (PARTS - 1)
"""Random numbers that one kick uses."""


class ClassChainScratch(NamedTuple):
    """Working memory of the search for n records in C classes of at most R; allocated once.

    Attributes
    ----------
    waiting : numpy.ndarray, shape (n,), bool
        Records in the queue.
    queue : numpy.ndarray, shape (n + 1,), int64
        A ring buffer.
    counters : numpy.ndarray, shape (4,), int64
        Begin and end of the queue (both only grow), number of searches for a chain, number of classes noted.
    mark : numpy.ndarray, shape (C,), int64
        The last chain that contained the class.
    noted : numpy.ndarray, shape (C,), int64
        The kick in which a class was noted last.
    log : numpy.ndarray, shape (C,), int64
        The classes that a kick has changed.
    sizes : numpy.ndarray, shape (C,), int64
        Their sizes before.
    members : numpy.ndarray, shape (C, R), int64
        Their records before.
    growth, beyond : numpy.ndarray, shape (C,), (C R,), float64
        Rows of costs.
    key, near : numpy.ndarray, shape (min(NEAR, C),), float64, int32
        The classes of the least costs in such a row.
    pile : State
        The records that a kick distributes again.
    ids : numpy.ndarray, shape (PARTS R,), int64
        Which these are.
    unit : numpy.ndarray, shape (PARTS R,), int64
        The classes whose records a kick distributes again, and the others that it fills.
    heads : State
        The classes that it builds.
    built : numpy.ndarray, shape (PARTS R, R), int64
        Their records.
    filled : numpy.ndarray, shape (PARTS R,), int64
        How many.
    """

    waiting: np.ndarray
    queue: np.ndarray
    counters: np.ndarray
    mark: np.ndarray
    noted: np.ndarray
    log: np.ndarray
    sizes: np.ndarray
    members: np.ndarray
    growth: np.ndarray
    beyond: np.ndarray
    key: np.ndarray
    near: np.ndarray
    pile: State
    ids: np.ndarray
    unit: np.ndarray
    heads: State
    built: np.ndarray
    filled: np.ndarray


def class_chain_scratch(plan: Plan, n: int, classes: Classes) -> ClassChainScratch:
    """Return room for the search of n records in some classes."""
    count, room = classes.member.shape
    return ClassChainScratch(
        waiting=np.zeros(n, bool),
        queue=np.zeros(n + 1, np.int64),
        counters=np.zeros(4, np.int64),
        mark=np.full(count, -1, np.int64),
        noted=np.full(count, -1, np.int64),
        log=np.zeros(count, np.int64),
        sizes=np.zeros(count, np.int64),
        members=np.zeros((count, room), np.int64),
        growth=np.zeros(count),
        beyond=np.zeros(max(count, PARTS) * room),
        key=np.zeros(min(NEAR, count)),
        near=np.zeros(min(NEAR, count), np.int32),
        pile=empty_state(plan, PARTS * room),
        ids=np.zeros(PARTS * room, np.int64),
        unit=np.zeros(PARTS * room, np.int64),
        heads=empty_state(plan, PARTS * room),
        built=np.zeros((PARTS * room, room), np.int64),
        filled=np.zeros(PARTS * room, np.int64),
    )


def find_chain(
    plan: Plan,
    origin: State,
    classes: Classes,
    work: ClassChainScratch,
    k: int,
    first: int,
    stamp: int,
    moved: np.ndarray,
    into: np.ndarray,
) -> tuple[int, float]:
    """Find an ejection chain that begins with a record and lowers the loss; return its number of steps and its gain.

    The record leaves its class and takes the place of another one elsewhere, this one that of a third, and so on;
    the last one takes the place that the first one left, or joins a class if the first class keeps at least k records.
    A chain contains each class at most once, so the gain is exact.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    classes : Classes
    work : ClassChainScratch
        `mark`, `growth` and `beyond` are written.
    k : int
        Least size of a class.
    first : int
        The record.
    stamp : int
        A number that differs in each call.
    moved, into : numpy.ndarray, shape (depth + 1,), int64
        Written: record ``moved[d]`` goes to place ``into[d]``.

    Returns
    -------
    steps : int
        0: there is no such chain; negative: in the last step a class grows.
    gain : float
        O(depth (C q + R q)) time as a rule.

    Notes
    -----
    After Lin and Kernighan (Operations Research 21, 1973): the search follows the step of greatest partial gain, and
    the partial gain stays positive. It prices a place only where the gain exceeds the class's growth by the record less
    the worth of the record that leaves, which is the least cost if worth falls as classes grow.
    """
    room = classes.member.shape[1]
    count = len(classes.size)
    joined = classes.joined
    rest = classes.rest
    home = classes.label[first]
    opened = home * room + classes.slot[first]
    size = classes.size[home]
    spare = size > k
    # The loss of the open class until a record enters it: without the record, or as if a record entered at no cost.
    held = (size - 1 if spare else size) * rest.cost[opened]
    closing = size * rest.cost[opened] - held
    gain = size * joined.cost[home] - held
    if gain <= GAIN:
        return 0, 0.0
    # stamps instead of flags: nothing has to be cleared for the next search
    work.mark[home] = stamp
    i = first
    for d in range(len(moved) - 1):
        best = GAIN
        close = -1
        absorb = -1
        widest = GAIN
        follow = -1
        increase_row(plan, origin, i, joined, np.int64(0), np.int64(count), work.growth)
        for c in range(count):
            others = classes.size[c]
            if others == 0 or work.mark[c] == stamp:
                work.growth[c] = np.inf
                continue
            growth = work.growth[c]
            if spare and others < room:
                total = gain - (others * growth + joined.cost[c] + growth)
                if total > best:
                    best = total
                    absorb = c
            # A lower bound of the loss of an exchange with a record of that class.
            bound = others * (growth - classes.most[c])
            work.growth[c] = bound if gain - bound > GAIN else np.inf
        least(work.growth, 0, work.key, work.near)
        for x in range(len(work.near)):
            c = int(work.near[x])
            if work.growth[c] == np.inf:
                continue
            others = classes.size[c]
            start = c * room
            stop = start + others
            # The class's rests are stored side by side; `cost` is relative to the class's cost.
            join_row(plan, origin, i, rest, np.int64(start), np.int64(stop), work.beyond)
            for place in range(start, stop):
                partial = gain - others * (work.beyond[place] - joined.cost[c])
                if partial <= GAIN:
                    continue
                if partial - closing > best:
                    j = classes.member[c, place - start]
                    total = partial - (size * join_cost(plan, origin, j, rest, opened) - held)
                    if total > best:
                        best = total
                        close = place
                        absorb = -1
                if partial > widest:
                    widest = partial
                    follow = place
        moved[d] = i
        if absorb >= 0:
            into[d] = absorb * room + classes.size[absorb]
            # negative: the last record joins a class, instead of taking the place of another one
            return -(d + 1), best
        if close >= 0:
            into[d] = close
            moved[d + 1] = classes.member[close // room, close % room]
            into[d + 1] = opened
            return d + 2, best
        if follow < 0:
            return 0, 0.0
        into[d] = follow
        gain = widest
        i = classes.member[follow // room, follow % room]
        work.mark[follow // room] = stamp
    return 0, 0.0


find_chain_jit = jit(find_chain, borrows=True)


def wake(classes: Classes, work: ClassChainScratch, c: int) -> None:
    """Put the records of class c into the queue that are not in it."""
    for s in range(classes.size[c]):
        i = classes.member[c, s]
        if not work.waiting[i]:
            work.waiting[i] = True
            # a ring: a record waits in it at most once, so n + 1 places are enough
            work.queue[work.counters[1] % len(work.queue)] = i
            work.counters[1] += 1


wake_jit = jit(wake, borrows=True)


def note(classes: Classes, work: ClassChainScratch, kick: int, c: int) -> None:
    """Remember the records of class c as they were before this kick; kicks below 0 are not undone."""
    if kick < 0 or work.noted[c] == kick:
        return
    work.noted[c] = kick
    at = work.counters[3]
    work.log[at] = c
    work.sizes[at] = classes.size[c]
    for s in range(classes.size[c]):
        work.members[at, s] = classes.member[c, s]
    work.counters[3] += 1


note_jit = jit(note, borrows=True)


def undo(plan: Plan, origin: State, classes: Classes, work: ClassChainScratch) -> None:
    """Restore the noted classes."""
    room = classes.member.shape[1]
    for at in range(work.counters[3]):
        c = work.log[at]
        classes.size[c] = work.sizes[at]
        for s in range(work.sizes[at]):
            put(classes, work.members[at, s], c * room + s)
        if work.sizes[at] > 0:
            renew_class(plan, origin, classes, c)


undo_jit = jit(undo, borrows=True)


def run_chains(
    plan: Plan, origin: State, classes: Classes, work: ClassChainScratch, k: int, depth: int, kick: int
) -> tuple[float, int]:
    """Search a chain from each record in the queue, and again from the records of classes that a chain has changed.

    Parameters
    ----------
    plan : Plan
    origin : State
    classes : Classes
    work : ClassChainScratch
    k : int
    depth : int
        Classes of a chain at most, less one.
    kick : int
        Number of the kick that these chains follow: the classes that they change are noted for it.

    Returns
    -------
    gained : float
        By how much the loss fell.
    chains : int
    """
    room = classes.member.shape[1]
    moved = np.empty(depth + 1, np.int64)
    into = np.empty(depth + 1, np.int64)
    gained = 0.0
    chains = 0
    while work.counters[0] < work.counters[1]:
        first = work.queue[work.counters[0] % len(work.queue)]
        work.counters[0] += 1
        work.waiting[first] = False
        work.counters[2] += 1
        steps, gain = find_chain(plan, origin, classes, work, k, first, work.counters[2], moved, into)
        if steps == 0:
            continue
        gained += gain
        chains += 1
        home = classes.label[first]
        gap = home * room + classes.slot[first]
        grows = steps < 0
        steps = abs(steps)
        # all classes of the chain, before the first record moves
        note(classes, work, kick, home)
        for d in range(steps):
            note(classes, work, kick, into[d] // room)
        for d in range(steps):
            put(classes, moved[d], into[d])
        if grows:
            classes.size[into[steps - 1] // room] += 1
            classes.size[home] -= 1
            last = classes.size[home]
            # members are stored without gaps: the last one takes the place that became free
            if gap != home * room + last:
                put(classes, classes.member[home, last], gap)
            renew_class(plan, origin, classes, home)
            wake(classes, work, home)
        for d in range(steps):
            renew_class(plan, origin, classes, into[d] // room)
            wake(classes, work, into[d] // room)
    return gained, chains


run_chains_jit = jit(run_chains)


def grow_again(
    plan: Plan,
    origin: State,
    classes: Classes,
    work: ClassChainScratch,
    k: int,
    parts: int,
    target: int,
    first: int,
) -> float:
    """Build classes again from the records of some classes; return their loss. They are written to `heads` and `built`.

    The first class begins with a given record, each other with the record furthest from the class before; k - 1 times
    the record that raises the loss least joins. The remaining records go where they raise the loss least.

    Parameters
    ----------
    plan : Plan
    origin : State
    classes : Classes
    work : ClassChainScratch
        ``unit[:parts]``: the classes, with at least k `target` records and at most ``target R``.
    k : int
    parts, target : int
        Classes before and after.
    first : int
        The record: its number among them.

    Returns
    -------
    float
        O(m^2 q) time for m records.

    Notes
    -----
    :func:`anonflow.kernels.classes.clusters.k_member_clusters` among few records, from a head that is drawn.
    """
    room = classes.member.shape[1]
    start = np.int64(0)  # a literal would be a type of its own
    m = 0
    for x in range(parts):
        c = work.unit[x]
        for s in range(classes.size[c]):
            move(work.pile, m, classes.member[c, s], origin)
            work.ids[m] = classes.member[c, s]
            m += 1
    exact = m == k * target
    for x in range(target):
        at = first
        if x > 0:
            join_row(plan, work.heads, x - 1, work.pile, start, np.int64(m), work.beyond)
            at = 0
            for s in range(1, m):
                if work.beyond[s] > work.beyond[at]:
                    at = s
        move(work.heads, x, at, work.pile)
        for s in range(k):
            if s > 0:
                at = 0
                # the last of classes that need every record takes what is left, whatever it costs
                if not exact or x < target - 1:
                    join_row(plan, work.heads, x, work.pile, start, np.int64(m), work.beyond)
                    for r in range(1, m):
                        if work.beyond[r] < work.beyond[at]:
                            at = r
                widen(plan, work.heads, x, origin, work.ids[at])
            work.built[x, s] = work.ids[at]
            drop(work.pile, work.ids, at, m)
            m -= 1
        work.filled[x] = k
    for s in range(m):
        i = work.ids[s]
        join_row(plan, origin, i, work.heads, start, np.int64(target), work.beyond)
        at = -1
        lowest = np.inf
        for x in range(target):
            # the new record pays the new cost, and every other one by how much it has risen
            rise = work.beyond[x] + work.filled[x] * (work.beyond[x] - work.heads.cost[x])
            if work.filled[x] < room and rise < lowest:
                lowest = rise
                at = x
        work.built[at, work.filled[at]] = i
        work.filled[at] += 1
        widen(plan, work.heads, at, origin, i)
    after = 0.0
    for x in range(target):
        after += work.filled[x] * work.heads.cost[x]
    return after


grow_again_jit = jit(grow_again, borrows=True)


def choose_unit(
    plan: Plan, origin: State, classes: Classes, work: ClassChainScratch, parts: int, draws: np.ndarray
) -> int:
    """Draw a class, and others near records of those drawn, into `unit`; return how many."""
    count = len(classes.size)
    c = draws[0] % count
    if classes.size[c] == 0:
        return 0
    work.unit[0] = c
    for x in range(1, parts):
        c = work.unit[draws[2 * x + 1] % x]
        # other bits of the number than those that chose the class
        i = classes.member[c, (draws[2 * x + 1] >> 4) % classes.size[c]]
        increase_row(plan, origin, i, classes.joined, np.int64(0), np.int64(count), work.growth)
        for c in range(count):
            if classes.size[c] == 0:
                work.growth[c] = np.inf
        for y in range(x):
            work.growth[work.unit[y]] = np.inf
        # ties begin at i: else the same few classes would be near to everybody
        least(work.growth, i % count, work.key, work.near)
        c = np.int64(work.near[draws[2 * x + 2] % len(work.near)])
        if work.growth[c] == np.inf:
            return x
        work.unit[x] = c
    return parts


choose_unit_jit = jit(choose_unit, borrows=True)


def improve_classes(
    plan: Plan,
    origin: State,
    classes: Classes,
    work: ClassChainScratch,
    k: int,
    depth: int,
    slack: float,
    draws: np.ndarray,
) -> tuple[float, int, int]:
    """Run chains from every record, then kicks, each with chains from the classes that it changed; undo a kick unless the loss falls.

    A kick takes the records of one to `PARTS` near classes and builds classes of them again: as many as before, one
    more where there are enough records, or one fewer. Chains follow if the new classes lose at most ``1 + slack`` times
    as much.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    classes : Classes
        Classes of at least k records, or of none; changed in place.
    work : ClassChainScratch
    k : int
        At least 2.
    depth : int
        Classes of a chain at most, less one.
    slack : float
        At least 0.
    draws : numpy.ndarray, shape (kicks, DRAWS), int64
        Random numbers of at least 0.

    Returns
    -------
    gained : float
        By how much the loss fell, summed over records; never negative.
    chains : int
        Chains that were found.
    kicks : int
        Kicks that were kept.
    """
    room = classes.member.shape[1]
    count = len(classes.size)
    for c in range(count):
        if classes.size[c] > 0:
            renew_class(plan, origin, classes, c)
            wake(classes, work, c)
        else:
            classes.joined.cost[c] = 0.0
            # lanes of empty classes are read in rows: they have to hold something
            move(classes.joined, c, 0, origin)
    gained, chains = run_chains(plan, origin, classes, work, k, depth, -1)
    kicks = 0
    for kick in range(len(draws)):
        parts = choose_unit(plan, origin, classes, work, 1 + draws[kick, 1] % PARTS, draws[kick])
        if parts == 0:
            continue
        m = 0
        before = 0.0
        for x in range(parts):
            c = work.unit[x]
            m += classes.size[c]
            before += classes.size[c] * classes.joined.cost[c]
        target = m // k
        # one class fewer is only tried now and then: fewer and larger classes rarely lose less
        if target > 1 and draws[kick, 2] % 4 == 0 and m <= (target - 1) * room:
            target -= 1
        filled = parts
        c = 0
        while filled < target and c < count:
            if classes.size[c] == 0:
                work.unit[filled] = c
                filled += 1
            c += 1
        target = min(target, filled)
        # nothing can be gained, or the same records would be one class again
        if before <= GAIN or (parts == 1 and target == 1):
            continue
        after = grow_again(plan, origin, classes, work, k, parts, target, (draws[kick, 2] >> 2) % m)
        if after > before * (1.0 + slack) or abs(after - before) <= GAIN:
            continue
        work.counters[3] = 0
        for x in range(max(parts, target)):
            c = work.unit[x]
            note(classes, work, kick, c)
            classes.size[c] = work.filled[x] if x < target else 0
            for s in range(classes.size[c]):
                put(classes, work.built[x, s], c * room + s)
            if classes.size[c] > 0:
                renew_class(plan, origin, classes, c)
                wake(classes, work, c)
        fallen, lowering = run_chains(plan, origin, classes, work, k, depth, kick)
        change = before - after + fallen
        if change > GAIN:
            gained += change
            chains += lowering
            kicks += 1
        else:
            undo(plan, origin, classes, work)
    return gained, chains, kicks


improve_classes_jit = jit(improve_classes)
