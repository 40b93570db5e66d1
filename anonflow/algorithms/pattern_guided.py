"""Pattern-guided k-anonymity (Bredereck, Nichterlein and Niedermeier, Algorithms 6, 2013): the greedy heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anonflow.algorithms.contract import Algorithm, Outcome, Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.patterns import place_rows, place_rows_jit
from anonflow.table.domain import Domain
from anonflow.table.records import Records, equal_columns
from anonflow.table.schema import did_you_mean

__all__ = ["PATTERN_GUIDED", "pattern_guided", "pattern_masks", "place"]

MOST = 20
"""QIs up to which all patterns may be asked for."""


def pattern_guided(part: Partition, k: int, *, patterns: Any = "all") -> Outcome:
    """Suppress entries so that every class has k rows and every row follows one of the given patterns.

    Patterns are tried by increasing number of suppressed quasi-identifiers (QIs). A class of a pattern takes
    all the rows left that agree on what the pattern keeps, when they are at least k. Values that are kept are
    published as they are, whatever the kind of the QI; the others as ``*``.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns : "all" or sequence
        All 2^q patterns (q <= 20), or a list; each pattern is a list of the columns that it suppresses (a
        position of a code as ``zip[3]``, the column for all its positions), or a text of 0 and 1, a character
        per QI in schema order, 1 for suppressed.

    Returns
    -------
    Outcome
        With classes. Rows that no pattern can take are suppressed altogether. Facts:
        `suppressed_entries`.

    Raises
    ------
    ParameterError
        If a pattern names an unknown column, has another length, or all patterns of more than 20 QIs are
        asked for.

    Notes
    -----
    Paper 5, the greedy heuristic; its order of equally many suppressed QIs is that of the binary number whose
    most significant bit is the first QI, increasing, so the last QI is suppressed first. O(p P q) time for p
    patterns, O(P q) memory. The information loss asked for is not looked at: the cost is suppressed entries.
    Patterns that suppress a QI whose boundary does not allow that are left out.
    """
    masks = within_boundaries(part.records, pattern_masks(part.records.domains, patterns))
    labels, used = place(part.records, masks, k)
    q = part.records.q
    hidden = np.full(part.n, (1 << q) - 1, np.uint64)
    hidden[used >= 0] = masks[used[used >= 0]]
    whole = (hidden[None, :] >> np.arange(q, dtype=np.uint64)[:, None]) & np.uint64(1) != 0
    suppressed = whole.all(axis=0)
    classes = np.where(suppressed, labels.max(initial=-1) + 1, labels)
    return Outcome(
        _starred(part.records, whole),
        classes=classes,
        suppressed=suppressed,
        facts={"suppressed_entries": int(whole.sum())},
    )


def within_boundaries(records: Records, masks: np.ndarray) -> np.ndarray:
    """The patterns that suppress no value whose boundary is less than its whole domain.

    Raises
    ------
    None
    """
    kept = 0
    for a, domain in enumerate(records.domains):
        if domain.bound is not None:
            codes = records.codes[:, a]
            runs = domain.bound[codes[codes >= 0]]
            if (runs[:, 0] > 0).any() or (runs[:, 1] < domain.size - 1).any():
                kept |= 1 << a
    return masks[(masks & np.uint64(kept)) == 0]


def place(
    records: Records, masks: np.ndarray, k: int, compiled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The class and the pattern of each record.

    Parameters
    ----------
    records : Records
        n records.
    masks : numpy.ndarray, shape (p,), uint64
        Patterns in order of preference; bit a is set where QI a is suppressed.
    k : int
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Returns
    -------
    labels, used : numpy.ndarray, shape (n,), int64
        -1 where no pattern could take the record.

    Raises
    ------
    None
    """
    row_type = equal_columns(records.codes.T, records.n)
    _, example, weight = np.unique(row_type, return_index=True, return_counts=True)
    types = np.ascontiguousarray(records.codes[example].T)
    sizes = [domain.size + 1 for domain in records.domains]
    word_at = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    # fixed words: they decide how fast, never what; classes are compared value by value
    words = np.random.Generator(np.random.PCG64(5)).integers(0, 2**64, sum(sizes), np.uint64) | np.uint64(1)
    labels = np.empty(types.shape[1], np.int64)
    used = np.empty(types.shape[1], np.int64)
    kernel = place_rows_jit if compiled else place_rows
    with np.errstate(over="ignore"):
        kernel(types, weight.astype(np.int64), words, word_at, masks, k, labels, used)
    return labels[row_type], used[row_type]


def pattern_masks(domains: Sequence[Domain], patterns: Any) -> np.ndarray:
    """Patterns as masks, in the order in which the heuristic tries them.

    Parameters
    ----------
    domains : sequence of Domain, length q
    patterns : "all" or sequence
        As :func:`pattern_guided` takes them.

    Returns
    -------
    numpy.ndarray, shape (p,), uint64
        Bit a is set where QI a is suppressed; each pattern once.

    Raises
    ------
    ParameterError
        As :func:`pattern_guided`.
    """
    q = len(domains)
    if isinstance(patterns, str) and patterns == "all":
        if q > MOST:
            raise ParameterError(
                f"pattern-guided: all patterns of {q} quasi-identifiers are too many; list patterns"
            )
        numbers = np.arange(1 << q, dtype=np.uint64)
    else:
        if isinstance(patterns, str) or not isinstance(patterns, Sequence) or not len(patterns):
            raise ParameterError("pattern-guided: patterns is 'all' or a list of patterns")
        if q > 63:
            raise ParameterError("pattern-guided: at most 63 quasi-identifiers")
        numbers = np.array([_number(pattern, domains) for pattern in patterns], np.uint64)
    numbers = np.unique(numbers)
    order = np.lexsort([numbers, np.bitwise_count(numbers)])
    return _reversed_bits(numbers[order], q)


def _number(pattern: Any, domains: Sequence[Domain]) -> int:
    """A pattern as the binary number whose most significant bit is the first QI."""
    q = len(domains)
    if isinstance(pattern, str):
        if len(pattern) != q or set(pattern) - {"0", "1"}:
            raise ParameterError(f"pattern-guided: a pattern as text has {q} characters, each 0 or 1")
        return int(pattern, 2)
    if not isinstance(pattern, Sequence) or not all(isinstance(name, str) for name in pattern):
        raise ParameterError("pattern-guided: a pattern is a list of column names or a text of 0 and 1")
    number = 0
    for name in pattern:
        found = [a for a, domain in enumerate(domains) if name in (domain.name, domain.column)]
        if not found:
            known = tuple(dict.fromkeys(domain.column for domain in domains))
            raise ParameterError(f"pattern-guided: no quasi-identifier {name!r}{did_you_mean(name, known)}")
        for a in found:
            number |= 1 << (q - 1 - a)
    return number


def _reversed_bits(numbers: np.ndarray, q: int) -> np.ndarray:
    masks = np.zeros_like(numbers)
    for a in range(q):
        masks |= ((numbers >> np.uint64(q - 1 - a)) & np.uint64(1)) << np.uint64(a)
    return masks


def _starred(records: Records, whole: np.ndarray) -> Generalization:
    """Each record as itself but for the cells of `whole` (q, n), which become the whole domain."""
    own = Generalization.of(records)
    everything = own.with_suppressed(np.ones(own.n, bool))
    layout = own.layout
    lo, hi, bits = own.lo.copy(), own.hi.copy(), own.bits.copy()
    for t, a in enumerate(layout.ranges):
        lo[t] = np.where(whole[a], everything.lo[t], own.lo[t])
        hi[t] = np.where(whole[a], everything.hi[t], own.hi[t])
    for t, a in enumerate(layout.sets):
        rows = slice(layout.offset[t], layout.offset[t + 1])
        bits[rows] = np.where(whole[a], everything.bits[rows], own.bits[rows])
    return Generalization(records.domains, lo, hi, bits)


PATTERN_GUIDED = Algorithm(
    name="pattern-guided",
    run=pattern_guided,
    family="pattern",
    paper="Bredereck, Nichterlein, Niedermeier: Pattern-guided k-anonymity. Algorithms 6(4), 2013",
    guarantee="k-anonymity",
    complexity="O(p n q) for p patterns",
    summary="values stay exact or are hidden; you say which columns may be hidden together",
)
