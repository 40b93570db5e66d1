"""Query error: the accuracy of COUNT queries that are answered from the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonflow.generalization import Generalization
from anonflow.option import check_whole
from anonflow.table import Domain, Records
from anonflow.utility.subject import Part


@dataclass(frozen=True, eq=False)
class Condition:
    """The condition of a query on one coded QI.

    Attributes
    ----------
    qi : int
        Which coded QI.
    inside : numpy.ndarray, shape (D,), bool
        The codes that meet it; on a range QI a run.
    """

    qi: int
    inside: np.ndarray

    @property
    def run(self) -> tuple[int, int]:
        """First and last code that meet it."""
        codes = np.flatnonzero(self.inside)
        return int(codes[0]), int(codes[-1])

    @property
    def words(self) -> np.ndarray:
        """The codes as 64-bit words, lowest code in the lowest bit."""
        flags = np.zeros(-(-len(self.inside) // 64) * 64, np.uint8)
        flags[: len(self.inside)] = self.inside
        return np.packbits(flags, bitorder="little").view(np.uint64)


Query = tuple[Condition, ...]
"""All conditions hold at once; each is about another coded QI."""


def anchors(domains: Sequence[Domain], n: int, queries: int = 200, seed: int = 0) -> np.ndarray:
    """Return positions of the originals that queries are drawn around, shape (queries,), int64.

    Parameters
    ----------
    domains : sequence of Domain
    n : int
        Originals.
    queries : int
        How many.
    seed : int
        The workload depends on the table alone, so compared releases have the same queries.

    Raises
    ------
    ParameterError
        If `queries` is not a positive whole number, or `seed` not a non-negative one.
    """
    for name, number, least in (("queries", queries, 1), ("seed", seed, 0)):
        check_whole(number, least, f"query-error: {name} must be a whole number of at least {least}")
    codes = np.zeros((queries, len(domains)), np.int32)  # their values change no later position
    rng = np.random.default_rng(seed)
    return np.array([_draw_query(domains, n, codes[at], rng)[0] for at in range(queries)], np.int64)


def prepared(records: Records, n: int, queries: int = 200, seed: int = 0) -> tuple[Query, ...]:
    """Return random COUNT queries on one to three quasi-identifiers (QIs), each met by the original that it is drawn around.

    For each query the number of coded QIs (1 to 3) and which ones are uniform, and an original is drawn. On
    a range QI the query asks for the run of codes between that original's and a uniform one; on a set QI for
    its value and a uniform number, less than the domain's size, of others.

    Parameters
    ----------
    records : Records
        Those at :func:`anchors`, one for each query.
    n : int
        All originals.
    queries, seed : int
        As there.
    """
    rng = np.random.default_rng(seed)
    return tuple(_draw_query(records.domains, n, records.codes[at], rng)[1] for at in range(queries))


def _draw_query(
    domains: Sequence[Domain], n: int, anchor: np.ndarray, rng: np.random.Generator
) -> tuple[int, Query]:
    """Return the position of a random original, and a query around it, if it has these codes."""
    q = len(domains)
    columns = rng.choice(q, size=int(rng.integers(1, min(3, q) + 1)), replace=False)
    position = int(rng.integers(n))
    conditions = []
    for qi in sorted(columns.tolist()):
        domain = domains[qi]
        code = max(int(anchor[qi]), 0)
        inside = np.zeros(domain.size, bool)
        if domain.shape == "range":
            other = int(rng.integers(domain.size))
            inside[min(code, other) : max(code, other) + 1] = True
        else:
            inside[rng.choice(domain.size, size=int(rng.integers(domain.size)), replace=False)] = True
            inside[code] = True
        conditions.append(Condition(qi, inside))
    return position, tuple(conditions)


def exact(queries: Sequence[Query], records: Records) -> np.ndarray:
    """Return how many originals meet each query, shape (queries,), int64; a missing number meets no condition."""
    counts = np.empty(len(queries), np.int64)
    columns = np.asfortranarray(records.codes)
    for number, query in enumerate(queries):
        met = np.ones(records.n, bool)
        for condition in query:
            codes = columns[:, condition.qi]
            met &= np.append(condition.inside, False)[codes]  # code -1 is the last place
        counts[number] = met.sum()
    return counts


def estimates(queries: Sequence[Query], generalization: Generalization) -> np.ndarray:
    """Return the expected number of records that meet each query, shape (queries,), float64.

    A generalized record counts with the product over the conditions of the share of its run's or set's
    values that meet them: each value of the domain in it is taken to be as likely as the others, and QIs
    independent of each other. O(queries n).
    """
    layout = generalization.layout
    members = np.maximum(generalization.counts(), 1).astype(np.float64)
    totals = np.empty(len(queries))
    for number, query in enumerate(queries):
        share = np.ones(generalization.n)
        for condition in query:
            t = layout.row_of_range.get(condition.qi)
            if t is not None:
                first, last = condition.run
                domain, lo, hi = (
                    generalization.domains[condition.qi],
                    generalization.lo[t],
                    generalization.hi[t],
                )
                # of runs that do not meet, the end lies before the start
                both = domain.values_in(np.maximum(lo, first), np.minimum(hi, last))
                share *= np.maximum(both, 0) / np.maximum(domain.values_in(lo, hi), 1)
                if generalization.domains[condition.qi].has_codes:
                    # a number is one of the members of the set of codes that stands beside
                    share /= members[layout.place_of_set[condition.qi + 1]]
            else:
                t = layout.place_of_set[condition.qi]
                words = generalization.bits[layout.words[condition.qi]]
                both = np.bitwise_count(words & condition.words[:, None]).sum(axis=0, dtype=np.int64)
                share *= both / members[t]
        totals[number] = share.sum()
    return totals


def chunk(queries: Sequence[Query], part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return exact and expected answers of a partition, each shape (queries,); those of partitions add up."""
    return exact(queries, part.records), estimates(queries, part.generalization)


def finalize(chunks: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the median over the queries of ``|expected - exact| / max(exact, 1)``."""
    true = np.sum([chunk[0] for chunk in chunks], axis=0)
    guess = np.sum([chunk[1] for chunk in chunks], axis=0)
    return float(np.median(np.abs(guess - true) / np.maximum(true, 1)))
