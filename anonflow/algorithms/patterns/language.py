"""Patterns of suppression: lists, a small language of predicates, or all of them (Bredereck 2013)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from anonflow.errors import ParameterError
from anonflow.table import Table
from anonflow.table.domain import Domain
from anonflow.table.schema import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FALLBACKS",
    "FallbackWord",
    "fallback_of",
    "mask_costs",
    "pattern_costs",
    "pattern_grid",
    "pattern_masks",
    "qi_costs",
    "whole_costs",
]

MOST = 20
"""QIs up to which all patterns may be asked for; predicates may leave at most 2^20 patterns."""

HIDDEN, SHOWN = "*1☆", "-0_.□"
"""Marks of a pattern that is written as text."""

PREDICATES = ("at-most", "never", "together", "at-most-one-of", "fallback")

FallbackWord = Literal["none", "all", "strict"]

FALLBACKS: tuple[str, ...] = get_args(FallbackWord)
"""What becomes of rows that no pattern can take."""


def pattern_masks(
    domains: Sequence[Domain], patterns: Any = "all", weights: Any = None, fallback: Any = None
) -> np.ndarray:
    """Return patterns as masks, in the order in which the heuristic tries them.

    Parameters
    ----------
    domains : sequence of Domain, length q
    patterns : "all", mapping, or sequence
        All 2^q patterns (q <= 20); or predicates; or a list, each of which is

        - the columns that are suppressed (a position of a code as ``zip[3]``, the column for all its
          positions);
        - a text with a mark for each QI in schema order, ``*`` or 1 for suppressed, ``-`` or 0 for kept, as the
          criterion ``pattern`` and :func:`pattern_grid` write it;
        - predicates: the patterns that meet all of them.

        Predicates are a mapping with any of ``at-most`` (so many QIs), ``never`` (columns), ``together``
        (columns that are suppressed all or not at all; several such lists in a list), ``at-most-one-of``
        (columns; several lists in a list) and ``fallback``: ``all`` adds the pattern that suppresses
        everything whatever the others say; see :func:`fallback_of` for the others.
    weights : mapping, optional
        Column -> what suppressing one of its entries costs, 1 for the others.
    fallback : {"none", "all", "strict"}, optional
        The same for patterns that are no predicates.

    Returns
    -------
    numpy.ndarray, shape (p,), uint64
        Bit a is set where QI a is suppressed; each pattern once, by increasing cost. Equal costs keep the
        order of the list. Predicates stand in it for their patterns in the order in which combinations grow,
        first QI first: the first QI, the second, both, the third, it and the first, and so on (the binary
        number whose least significant bit is the first QI). This is the order of Table 7 of Bredereck 2013.
        All 2^q patterns are, as in its Tables 1, 3 and 6, in the order of the binary number whose most
        significant bit is the first QI, so the last QI is suppressed first.

    Raises
    ------
    ParameterError
        If a pattern or weight names an unknown column, a pattern has another length, predicates contradict
        each other, or there are too many patterns.
    """
    q = len(domains)
    coded = next((domain.column for domain in domains if domain.has_codes), None)
    if coded is not None:
        raise ParameterError(
            f"pattern-guided: column {coded!r} has numbers and codes, which are not hidden apart; recode it under prepare, "
            "or use another method"
        )
    if isinstance(patterns, str) and patterns == "all":
        if q > MOST:
            raise ParameterError(
                f"pattern-guided: all patterns of {q} quasi-identifiers are too many; list patterns, or "
                "say how many may be suppressed with {at-most: 2}"
            )
        masks = np.arange(1 << q, dtype=np.uint64)
    else:
        if isinstance(patterns, str) or not isinstance(patterns, Mapping | Sequence) or not len(patterns):
            raise ParameterError(
                "pattern-guided: patterns is 'all' or a list of patterns, or predicates such as {at-most: 2}"
            )
        if q > 63:
            raise ParameterError("pattern-guided: at most 63 quasi-identifiers")
        listed = [patterns] if isinstance(patterns, Mapping) else patterns
        masks = np.concatenate([_masks_of(pattern, domains) for pattern in listed])
        if fallback_of(patterns, fallback) == "all":
            masks = np.append(masks, np.uint64((1 << q) - 1))
        masks = masks[np.sort(np.unique(masks, return_index=True)[1])]
    costs = mask_costs(masks, whole_costs(domains, weights)[0])
    if isinstance(patterns, str):
        return masks[np.lexsort([_reversed_bits(masks, q), costs])]
    return masks[np.argsort(costs, kind="stable")]


def fallback_of(patterns: Any, fallback: Any = None) -> str:
    """Return what becomes of rows that no pattern can take.

    Parameters
    ----------
    patterns : "all", mapping, or sequence
        As :func:`pattern_masks` takes them; predicates may name the fallback.
    fallback : {"none", "all", "strict"}, optional

    Returns
    -------
    {"none", "all", "strict"}
        ``none``, without any: they are suppressed altogether and follow no pattern. ``all``: likewise, and
        suppressing everything is one of the patterns. ``strict``: there must be no such row, and the pattern
        that suppresses everything, where it is one, needs k rows as any other: the problem as Bredereck 2013
        defines it.

    Raises
    ------
    ParameterError
        If it is none of these, or two different ones are named.
    """
    listed = patterns if isinstance(patterns, Sequence) and not isinstance(patterns, str) else [patterns]
    named = [entry["fallback"] for entry in listed if isinstance(entry, Mapping) and "fallback" in entry]
    if fallback is not None:
        named.append(fallback)
    for name in named:
        if name not in FALLBACKS:
            raise ParameterError(
                "pattern-guided: fallback is 'strict' (every row follows a pattern), 'all' (everything "
                "suppressed is a pattern) or 'none'"
            )
    if fallback is not None and any(name != fallback for name in named):
        raise ParameterError("pattern-guided: the option fallback and that of the patterns differ; name one")
    if "strict" in named and "all" in named:
        raise ParameterError("pattern-guided: patterns name fallback 'all' and 'strict'; name one")
    return next((name for name in ("strict", "all") if name in named), "none")


def qi_costs(domains: Sequence[Domain], weights: Any = None) -> np.ndarray:
    """Return what suppressing an entry of each QI costs, shape (q,), float64.

    Raises
    ------
    ParameterError
        If a weight is no positive number, or of no quasi-identifier.
    """
    whole, unit = whole_costs(domains, weights)
    return whole / unit


def pattern_costs(masks: np.ndarray, domains: Sequence[Domain], weights: Any = None) -> np.ndarray:
    """Return what a row of each pattern costs, shape (p,), float64.

    Raises
    ------
    ParameterError
        As :func:`qi_costs`.
    """
    whole, unit = whole_costs(domains, weights)
    return mask_costs(masks, whole) / unit


def pattern_grid(table: Table, patterns: Any = "all", weights: Any = None) -> pd.DataFrame:
    """Return patterns as a grid to look at: a row per pattern in the order of preference, a column per QI.

    Parameters
    ----------
    table : Table
        Or anything with ``domains``.
    patterns, weights
        As :func:`pattern_masks` takes them.

    Returns
    -------
    pandas.DataFrame, shape (p, q + 2), text and numbers
        ``*`` where the QI is suppressed and ``-`` where it is kept; then `suppressed`, how many are, and
        `cost`, what a row of the pattern costs.

    Raises
    ------
    ParameterError
        As :func:`pattern_masks`.
    """
    import pandas as pd

    masks = pattern_masks(table.domains, patterns, weights)
    columns: dict[str, Any] = {}
    for a, domain in enumerate(table.domains):
        hidden = (masks >> np.uint64(a)) & np.uint64(1) != 0
        columns[domain.name] = np.where(hidden, "*", "-").astype(object)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(masks)))
    frame["suppressed"] = np.bitwise_count(masks).astype(np.int64)
    frame["cost"] = pattern_costs(masks, table.domains, weights)
    return frame


def _masks_of(pattern: Any, domains: Sequence[Domain]) -> np.ndarray:
    """Return one entry of the list: one pattern, or all that meet its predicates."""
    q = len(domains)
    if isinstance(pattern, Mapping):
        return _Predicates(pattern, domains).masks()
    if isinstance(pattern, str):
        if len(pattern) != q or set(pattern) - set(HIDDEN + SHOWN):
            raise ParameterError(
                f"pattern-guided: a pattern as text has {q} characters, a mark for each quasi-identifier: * suppressed, - kept"
            )
        return np.array([sum(1 << a for a, mark in enumerate(pattern) if mark in HIDDEN)], np.uint64)
    if not isinstance(pattern, Sequence) or not all(isinstance(name, str) for name in pattern):
        raise ParameterError(
            "pattern-guided: a pattern is a list of column names, a text such as '-*-', or predicates"
        )
    mask = 0
    for name in pattern:
        mask |= _mask_of(name, domains)
    return np.array([mask], np.uint64)


def _mask_of(name: str, domains: Sequence[Domain]) -> int:
    mask = sum(1 << a for a, domain in enumerate(domains) if name in (domain.name, domain.column))
    if not mask:
        known = tuple(dict.fromkeys(domain.column for domain in domains))
        raise ParameterError(f"pattern-guided: no quasi-identifier {name!r}{did_you_mean(name, known)}")
    return mask


class _Predicates:
    """One mapping of predicates, checked."""

    def __init__(self, given: Mapping[Any, Any], domains: Sequence[Domain]) -> None:
        self.domains = domains
        options: dict[str, Any] = {}
        for key, value in given.items():
            name = str(key).replace("_", "-")
            if name not in PREDICATES:
                raise ParameterError(f"pattern-guided: no predicate {key!r}{did_you_mean(name, PREDICATES)}")
            options[name] = value
        if not options:
            raise ParameterError(
                "pattern-guided: predicates such as {at-most: 2} are expected, none are given"
            )
        self.most = options.get("at-most", len(domains))
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 0:
            raise ParameterError("pattern-guided: at-most is a number of quasi-identifiers, such as 2")
        self.fallback = fallback_of(options) == "all"
        never = options.get("never", [])
        self.never = [] if never in ([], ()) else self._names("never", never, least=1)
        self.exclusive = list(self._groups("at-most-one-of", options.get("at-most-one-of", [])))
        self.together = list(self._groups("together", options.get("together", [])))
        self._check()

    def masks(self) -> np.ndarray:
        """Return all patterns that meet the predicates, in the order in which combinations grow, then the fallback's."""
        units = self._units()
        groups = [[np.uint64(_mask_of(name, self.domains)) for name in group] for group in self.exclusive]
        masks = np.zeros(1, np.uint64)
        for unit in units:
            # each predicate still unmet stays unmet when more is suppressed: nothing useful is lost here
            more = masks | np.uint64(unit)
            allowed = np.bitwise_count(more) <= self.most
            for group in groups:
                allowed &= sum((more & item != 0).astype(np.int64) for item in group) <= 1
            masks = np.concatenate([masks, more[allowed]])
            if len(masks) > 1 << MOST:
                raise ParameterError(
                    f"pattern-guided: the predicates leave more than {1 << MOST} patterns; lower at-most, or "
                    "name columns under never"
                )
        masks.sort()
        if self.fallback:
            masks = np.append(masks, np.uint64((1 << len(self.domains)) - 1))
        return masks

    def _units(self) -> list[int]:
        """Return QIs, or QIs that go together, that may be suppressed at all."""
        units = [1 << a for a in range(len(self.domains))]
        for group in self.together:
            joined = self._mask(group)
            apart = [unit for unit in units if not unit & joined]
            for unit in units:
                if unit not in apart:
                    joined |= unit
            units = [*apart, joined]
        never = self._mask(self.never)
        return sorted((unit for unit in units if not unit & never), key=lambda unit: unit & -unit)

    def _mask(self, names: Sequence[str]) -> int:
        mask = 0
        for name in names:
            mask |= _mask_of(name, self.domains)
        return mask

    def _check(self) -> None:
        """Predicates that forbid for good what another speaks of."""
        for group in self.together:
            # as other groups may tie more columns to it
            mask = next(unit for unit in [*self._tied(), 0] if not unit or unit & self._mask(group))
            words = " and ".join(map(repr, group))
            for name in self.never:
                if _mask_of(name, self.domains) & mask:
                    raise ParameterError(
                        f"pattern-guided: contradictory patterns: columns {words} go together, yet {name!r} is "
                        "never to be suppressed; drop one of the two"
                    )
            for rivals in self.exclusive:
                both = [name for name in rivals if _mask_of(name, self.domains) & mask]
                if len(both) > 1:
                    raise ParameterError(
                        f"pattern-guided: contradictory patterns: columns {words} go together, yet at most one "
                        f"of {both[0]!r} and {both[1]!r} may be suppressed; drop one of the two"
                    )
            if mask.bit_count() > self.most:
                raise ParameterError(
                    f"pattern-guided: contradictory patterns: columns {words} go together, yet at most "
                    f"{self.most} may be suppressed, and they are {mask.bit_count()}; raise at-most"
                )

    def _tied(self) -> list[int]:
        never, self.never = self.never, []
        try:
            return self._units()
        finally:
            self.never = never

    def _groups(self, what: str, given: Any) -> Iterator[list[str]]:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ParameterError(f"pattern-guided: {what} is a list of columns, or a list of such lists")
        if not given:
            return
        if all(isinstance(each, str) for each in given):
            given = [given]
        for group in given:
            yield self._names(what, group, least=2)

    def _names(self, what: str, given: Any, least: int) -> list[str]:
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise ParameterError(f"pattern-guided: {what} is a list of columns")
        for at, name in enumerate(names):
            _mask_of(name, self.domains)
            if name in names[:at]:
                raise ParameterError(f"pattern-guided: {what} names column {name!r} twice")
        if len(names) < least:
            raise ParameterError(f"pattern-guided: {what} needs at least {least} columns")
        return list(names)


def whole_costs(domains: Sequence[Domain], weights: Any) -> tuple[np.ndarray, int]:
    """Return what suppressing an entry of each QI costs, as whole multiples of 1 / unit: sums are exact.

    Returns
    -------
    costs : numpy.ndarray, shape (q,), int64
    unit : int

    Raises
    ------
    ParameterError
        If a weight is no positive number, or of no quasi-identifier.
    """
    costs = [Fraction(1)] * len(domains)
    if weights is not None:
        if not isinstance(weights, Mapping):
            raise ParameterError(
                "pattern-guided: weights is a mapping from column to number, such as {age: 2}"
            )
        for name, weight in weights.items():
            mask = _mask_of(str(name), domains)
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e6:
                raise ParameterError(f"pattern-guided: the weight of {name!r} must be a number above 0")
            for a in range(len(domains)):
                if mask >> a & 1:
                    costs[a] = Fraction(str(weight))
    unit = lcm(*(cost.denominator for cost in costs), 1)
    if max(costs, default=Fraction(1)) * unit >= 2**45:
        raise ParameterError("pattern-guided: weights have too many digits; round them")
    return np.array([int(cost * unit) for cost in costs], np.int64), unit


def mask_costs(masks: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return what a row of each pattern costs, shape (p,), int64, from whole costs of the QIs."""
    total = np.zeros(len(masks), np.int64)
    for a, cost in enumerate(costs):
        total += ((masks >> np.uint64(a)) & np.uint64(1)).astype(np.int64) * cost
    return total


def _reversed_bits(numbers: np.ndarray, q: int) -> np.ndarray:
    turned = np.zeros_like(numbers)
    for a in range(q):
        turned |= ((numbers >> np.uint64(q - 1 - a)) & np.uint64(1)) << np.uint64(a)
    return turned
