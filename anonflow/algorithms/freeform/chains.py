"""Ejection chains and kicks: the second phase of two-phase, round by round over blocks drawn anew."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from anonflow.algorithms.method import Partition, Progress
from anonflow.errors import ParameterError
from anonflow.kernels.freeform.chains import Search
from anonflow.kernels.freeform.descent import DRAWS, block_chains_jit
from anonflow.kernels.freeform.slot_rows import SlotRows, empty_rows, renew_span_jit
from anonflow.kernels.freeform.two_hops import two_hops_jit
from anonflow.partition import lexicographic_order
from anonflow.table.domain import Domain
from anonflow.table.records import places_in
from anonflow.threads import run_each

DEPTH = 8
"""Records in a chain at most."""

LINKS = 10
"""Records in a chain of links at most, even."""

TESTS = 32
"""Steps from each record of a chain whose closing is tested."""

VISITS = 16
"""Records visited after a kick at most: those that lower the loss need few."""

JOURNAL = 1_024
"""Exchanges that can be undone after a kick."""

HIGHEST_PRICE = 2.0
"""The highest price of a kick, in mean costs of a record."""

REACH = 8
"""Number of neighbours along an order, on each side, that become candidates."""

ORDERS = 4
"""Number of lexicographic orders, with the QIs in random order, besides the usual one."""

STRANGERS = 16
"""Records at random distances that become candidates."""

BLOCKS = 16
"""Blocks of a large table in each round, whatever the threads."""

LEAST = 2_048
"""Records in a block at least, where there are so many."""

LONGEST = 65_536
"""Records in a block at most."""

SHORT = 2**15
"""Codes below this are sorted as 16-bit numbers: numpy sorts these by their bytes, ten times as fast."""

ENOUGH = 1e-4
"""Rounds of chains alone end when a round lowers the loss by a smaller share than this."""

_PIECE = 512


def improve_by_chains(
    part: Partition,
    matches: np.ndarray,
    candidates: int,
    rounds: int,
    kicks: int,
    pool: ThreadPoolExecutor,
    mutual: bool = False,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a k-regular graph of lower loss, by ejection chains and kicks.

    Parameters
    ----------
    part : Partition
        P records.
    matches : numpy.ndarray, shape (P, k), int32
        k-regular, ``matches[:, 0]`` the records themselves.
    candidates : int
        Originals that each record may take, at most.
    rounds : int
        Rounds of chains alone at most.
    kicks : int
        Rounds after these, each with as many kicks as there are records.
    pool : concurrent.futures.ThreadPoolExecutor
        The result does not depend on its threads.
    mutual : bool, optional
        Whether the graph is symmetric and stays so: chains and kicks exchange links
        (:mod:`anonflow.kernels.freeform.symmetric_chains`).

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    facts : dict
        `chains` that lowered the loss, `kicks_kept` of those tried, `rounds`, and `kicks`: rounds of kicks, fewer than asked
        for if the partition `is_over` before.

    Raises
    ------
    ParameterError
        If P k is too large for the numbers of places.

    Notes
    -----
    In each round candidates are renewed, and the records are divided anew into blocks along an order of QIs drawn
    at random, those on which matches agree sooner; chains stay inside a block, so threads share no record. Blocks are a
    sixteenth of the table, 2,048 to 65,536 records.

    O(P (k^3 + k depth (C (q + k) + tests q))) time per round; O(P k q) memory: P k rows of 8 bytes for every
    hierarchy QI, 16 for every other run and 8 for every 64 values of sets.
    """
    n, k = matches.shape
    # a place, j k + s, is an int32 in the kernels
    if n * k >= 2**31:
        raise ParameterError("two-phase: improve: chains takes at most 2**31 matches; use smaller partitions")
    # Along the order, near records lie near each other in memory.
    order = lexicographic_order(part.records)
    rank = places_in(order, n)
    rng, plan = part.rng, part.plan
    origin = part.take(order).originals()
    rows = empty_rows(plan, origin, k)
    search = search_of(rank[matches[order]].astype(np.int32), min(candidates, n))
    run_each(
        pool, lambda at: renew_span_jit(rows, search.matches, at, min(at + _PIECE, n)), range(0, n, _PIECE)
    )
    codes = part.records.codes[order]
    if codes.max(initial=0) < SHORT:
        codes = codes.astype(np.int16)
    totals = np.zeros(5, np.int64)
    turns, chains_only = 0, rounds
    if part.is_over is not None:
        part.is_over()  # the first round begins, and is made in any case
    while turns < chains_only + kicks:
        # candidates are drawn anew each round: what one round cannot exchange, the next one may
        _look_around(rows, search, codes, rng, pool)
        before = float(rows.drop[::k].sum())
        kicking = turns >= chains_only
        totals += _one_round(
            rows,
            search,
            codes,
            HIGHEST_PRICE * before / n,
            rng,
            pool,
            mutual=mutual,
            kicking=kicking,
        )
        turns += 1
        now = float(rows.drop[::k].sum())
        if part.watch is not None:
            part.watch(Progress(turns, chains_only + kicks, now))
        if not kicking and before - now <= ENOUGH * abs(before):
            chains_only = turns
        if part.is_over is not None and part.is_over():
            chains_only = min(chains_only, turns)
            break
        # nothing is left to gain
        if now == 0.0:
            break
    facts = {
        "rounds": turns,
        "kicks": max(turns - chains_only, 0),
        "chains": int(totals[0]),
        "kicks_tried": int(totals[2]),
        "kicks_kept": int(totals[3]),
    }
    return order[search.matches[rank]].astype(np.int32), facts


def chain_memory(domains: Sequence[Domain], n: int, k: int, candidates: int) -> int:
    """Return about how many bytes :func:`improve_by_chains` takes; O(n k q).

    Parameters
    ----------
    domains : sequence of Domain
        q of them.
    n, k, candidates : int
    """
    values = sum(domain.size for domain in domains if domain.shape == "set")
    runs = sum(domain.shape == "range" for domain in domains)
    trees = sum(domain.hierarchy is not None for domain in domains)
    row = 2 * runs - trees + -(-values // 64)
    # rows, what they cost; matches, holders, turns; and to sort these once
    places = k * (8 * row + 8 + 3 * 4 + 2 * 8)
    # originals, coded thrice; candidates; orders
    originals = 80 * len(domains) + 4 * candidates + 16 * (ORDERS + 1)
    return n * (places + originals)


def search_of(matches: np.ndarray, candidates: int) -> Search:
    """Return a k-regular graph as chains need it, without candidates yet, in one block.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, k), int32
        Changed by the search.
    candidates : int
    """
    n, k = matches.shape
    # a stable order: each original's own place, slot 0 of its own record, is to come first
    key = 2 * matches.ravel().astype(np.int64) + np.tile(np.arange(k) > 0, n)
    holders = np.argsort(key, kind="stable").astype(np.int32).reshape(n, k)
    turn = np.empty(n * k, np.int32)
    # the inverse: at which place of its original's list each slot stands
    turn[holders.ravel()] = np.tile(np.arange(k, dtype=np.int32), n)
    return Search(
        matches=matches,
        holders=holders,
        turn=turn.reshape(n, k),
        near=np.full((n, candidates), -1, np.int32),
        block=np.zeros(n, np.int32),
        waiting=np.zeros(n, bool),
    )


def _look_around(
    rows: SlotRows,
    search: Search,
    codes: np.ndarray,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
) -> None:
    """Find new candidates for every record."""
    n, k = search.matches.shape
    shifts, begin = rng.integers(n, size=STRANGERS), int(rng.integers(k))
    turns = [rng.permutation(codes.shape[1]) for _ in range(ORDERS)]
    orders = np.array(
        [np.arange(n), *pool.map(lambda turn: np.lexsort([codes[:, a] for a in turn]), turns)], np.int64
    )
    ranks = np.empty_like(orders)
    for at, line in zip(ranks, orders, strict=True):
        at[line] = np.arange(n)

    def find(start: int) -> None:
        stop = min(start + _PIECE, n)
        two_hops_jit(rows, search, orders, ranks, REACH, shifts, begin, start, stop)

    run_each(pool, find, range(0, n, _PIECE))


def _one_round(
    rows: SlotRows,
    search: Search,
    codes: np.ndarray,
    highest_price: float,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    *,
    mutual: bool,
    kicking: bool,
) -> np.ndarray:
    """Run chains, and kicks if `kicking`, in newly drawn blocks; return the counts of ``block_chains``."""
    n = len(codes)
    blocks = _blocks(search.matches, codes, rng)
    for number, members in enumerate(blocks):
        search.block[members] = number
    # drawn before the threads start: the result does not depend on which block comes first
    lanes = [
        rng.integers(2**32, size=(len(members) if kicking else 0, DRAWS), dtype=np.uint32)
        for members in blocks
    ]
    sizes = np.array([LINKS if mutual else DEPTH, TESTS, 10 * n, VISITS, JOURNAL], np.int64)

    def work(number: int) -> np.ndarray:
        facts = np.zeros(5, np.int64)
        block_chains_jit(rows, search, mutual, blocks[number], lanes[number], highest_price, sizes, facts)
        return facts

    return np.sum(run_each(pool, work, range(len(blocks))), axis=0)


def _blocks(matches: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the records in blocks along a random order of the QIs, cut at random places."""
    n = len(codes)
    size = min(max(LEAST, -(-n // BLOCKS)), LONGEST)
    if n <= size:
        return [np.arange(n)]
    sample = rng.integers(n, size=min(n, 10_000))
    slot = rng.integers(matches.shape[1], size=len(sample))
    agree = (codes[sample] == codes[matches[sample, slot]]).mean(axis=0)
    # columns in which matches agree come first: such matches then lie in one block, where they can be exchanged
    columns = np.argsort(rng.random(codes.shape[1]) * (1.0 - agree), kind="stable")
    line = np.lexsort([codes[:, a] for a in columns[::-1]])
    # cut at other places each time: records at a block's end meet their neighbours in another round
    return np.array_split(np.roll(line, int(rng.integers(n))), -(-n // size))
