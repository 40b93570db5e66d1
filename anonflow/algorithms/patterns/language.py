"""Patterns of suppression and of levels: lists, a small language of predicates, or all of them (Bredereck 2013)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from anonflow.errors import ParameterError
from anonflow.table import Domain, Records, Table
from anonflow.table.level_cells import CellsAtLevel, RunsAtLevel, cells_at
from anonflow.table.named_settings import WITHOUT_CODES
from anonflow.table.schema import did_you_mean

MOST = 20
"""QIs up to which all patterns may be asked for; predicates may leave at most 2^20 patterns."""

MOST_SHOWN = 63
"""Quasi-identifiers, and levels of them that patterns name, together: bits of a mask."""

HIDDEN, SHOWN = "*1☆", "-0_.□"
"""Marks of a pattern that is written as text."""

LEVELS = "levels"
"""The key of patterns that say at which level each column is published."""

PREDICATES = ("at-most", "never", "together", "at-most-one-of", "fallback")

FallbackWord = Literal["none", "all", "strict"]

FALLBACKS: tuple[str, ...] = get_args(FallbackWord)
"""The treatment of rows that no pattern can take."""


@dataclass(frozen=True, eq=False)
class PatternSet:
    """Patterns in the order in which the heuristic tries them, as masks over the columns that they show.

    What a pattern can show of a quasi-identifier (QI) is its value, or its cell at a level that some pattern names. Each is a
    column of :meth:`shown`, and a bit of the masks: set where it is hidden. A pattern shows one of a QI's columns at most.

    Attributes
    ----------
    domains : tuple of Domain, length q
    qis : tuple of int, length v
        The QI of each column: 0 .. q - 1, their values; then that of each level. v is 63 at most.
    levels : tuple of str, length v - q
    cells : tuple of RunsAtLevel, length v - q
        What the values are published as at these levels.
    masks : numpy.ndarray, shape (p,), uint64
        Each pattern once, by increasing cost.
    costs : numpy.ndarray, shape (p,), int64
        Of a row of each pattern, as multiples of 1 / unit.
    whole : numpy.ndarray, shape (q,), int64
        Likewise, of hiding an entry of each QI.
    unit : int
    """

    domains: tuple[Domain, ...]
    qis: tuple[int, ...]
    levels: tuple[str, ...]
    cells: tuple[RunsAtLevel, ...]
    masks: np.ndarray
    costs: np.ndarray
    whole: np.ndarray
    unit: int

    @property
    def out(self) -> int:
        """Cost of a row that is suppressed completely."""
        return int(self.whole.sum())

    @property
    def everything(self) -> np.uint64:
        """The pattern that hides everything."""
        return np.uint64((1 << len(self.qis)) - 1)

    def take(self, places: np.ndarray) -> PatternSet:
        """Return the patterns of a mask, shape (p,), bool, or at some positions."""
        return replace(self, masks=self.masks[places], costs=self.costs[places])

    def hides(self, a: int) -> np.ndarray:
        """Return which patterns hide a QI, shape (p,), bool."""
        bits = np.uint64(sum(1 << b for b, qi in enumerate(self.qis) if qi == a))
        return self.masks & bits == bits

    def shows(self, b: int) -> np.ndarray:
        """Return which patterns show a column, shape (p,), bool."""
        return (self.masks >> np.uint64(b)) & np.uint64(1) == 0

    def shown(self, records: Records) -> Records:
        """Return all columns that a pattern can show: the records themselves, then a column for each level.

        Parameters
        ----------
        records : Records
            n records over the same QIs.

        Returns
        -------
        Records
            n records over v columns. Codes at a level are the first ones of their cells; -1 is a missing number.
        """
        if not self.cells:
            return records
        columns = [records.codes]
        for qi, cells in zip(self.qis[records.q :], self.cells, strict=True):
            codes = records.codes[:, qi]
            columns.append(np.where(codes < 0, np.int32(-1), cells.lo[codes])[:, None])
        return Records(
            tuple(records.domains[qi] for qi in self.qis),
            np.ascontiguousarray(np.concatenate(columns, axis=1), np.int32),
            records.units,
        )


def pattern_set(
    domains: Sequence[Domain], patterns: Any = "all", weights: Any = None, fallback: Any = None
) -> PatternSet:
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
        - predicates: the patterns that meet all of them;
        - levels: ``{levels: {age: "width 10", country: ["level 1", "*"]}}``, at which level each column is
          published, one or several of :func:`anonflow.table.level_cells.cells_at`: the patterns are all their
          combinations, first column first. Columns that are not named are published as they are.

        Predicates are a mapping with any of ``at-most`` (so many QIs), ``never`` (columns), ``together``
        (columns that are suppressed all or not at all; several such lists in a list), ``at-most-one-of``
        (columns; several lists in a list) and ``fallback``: ``all`` adds the pattern that suppresses
        everything whatever the others say; see :func:`fallback_of` for the others.
    weights : mapping, optional
        Column -> what suppressing one of its entries costs, 1 for the others. An entry at a level costs a share of it.
    fallback : {"none", "all", "strict"}, optional
        The same for patterns that are no predicates.

    Returns
    -------
    PatternSet
        By increasing cost; equal costs keep the order of the list. Predicates stand in it for their patterns in the
        order of the binary number whose lowest bit is the first QI (1 = suppressed): the first QI, the second, both,
        the third, the third and the first, and so on. So pairs come as 12, 13, 23, 14, 24, 34, not as 12, 13, 14, 23,
        24, 34, the order of ``itertools.combinations``. This is the order of Table 7 of Bredereck 2013. All 2^q
        patterns are, as in its Tables 1, 3 and 6, in the order of the binary number whose highest bit is the first QI,
        so the last QI is suppressed first.

    Raises
    ------
    ParameterError
        If a pattern or weight names an unknown column or level, a pattern has another length, predicates contradict
        each other, or there are too many patterns.
    """
    named = columns_to_hide(domains)
    q = len(named)
    whole, unit = whole_costs(domains, weights)
    columns = _ShownColumns(domains)
    everything = fallback_of(patterns, fallback) == "all"
    if isinstance(patterns, str) and patterns == "all":
        if q > MOST:
            raise ParameterError(
                f"all patterns of {q} quasi-identifiers are too many; list patterns, or "
                "say how many may be suppressed with {at-most: 2}",
                subject="pattern-guided",
            )
        masks = with_codes(np.arange(1 << q, dtype=np.uint64), domains)
    else:
        if isinstance(patterns, str) or not isinstance(patterns, Mapping | Sequence) or not len(patterns):
            raise ParameterError(
                "patterns is 'all' or a list of patterns, or predicates such as {at-most: 2}",
                subject="pattern-guided",
            )
        if len(domains) > MOST_SHOWN:
            raise ParameterError(f"at most {MOST_SHOWN} quasi-identifiers", subject="pattern-guided")
        listed = [patterns] if isinstance(patterns, Mapping) else list(patterns)
        for pattern in listed:
            if isinstance(pattern, Mapping) and LEVELS in pattern:
                columns.enter(pattern)
        masks = np.concatenate(
            [
                columns.masks_of(pattern)
                if isinstance(pattern, Mapping) and LEVELS in pattern
                else with_codes(_masks_of(pattern, named), domains) | columns.between
                for pattern in listed
            ]
        )
        if everything:
            masks = np.append(masks, columns.everything)
        # each pattern once, where it is listed first
        masks = masks[np.sort(np.unique(masks, return_index=True)[1])]
    bit_costs = [Fraction(int(cost)) for cost in whole]
    bit_costs += [
        bit_costs[qi] * (1 - cells.share)
        for qi, cells in zip(columns.qis[len(domains) :], columns.cells, strict=True)
    ]
    finer = lcm(*(cost.denominator for cost in bit_costs), 1)
    whole, unit = whole * finer, unit * finer
    if max(whole.tolist(), default=0) >= 2**45:
        raise ParameterError("weights have too many digits; round them", subject="pattern-guided")
    costs = int(whole.sum()) - mask_costs(
        ~masks, np.array([int(cost * finer) for cost in bit_costs], np.int64)
    )
    order = (
        np.lexsort([_reversed_bits(masks, len(domains)), costs])
        if isinstance(patterns, str)
        else np.argsort(costs, kind="stable")
    )
    return PatternSet(
        tuple(domains),
        tuple(columns.qis),
        tuple(columns.levels),
        tuple(columns.cells),
        masks[order],
        costs[order],
        whole,
        unit,
    )


def columns_to_hide(domains: Sequence[Domain]) -> list[Domain]:
    """Return the QIs that patterns may hide: all but the codes beside numbers, which are hidden with their numbers."""
    return [domain for domain in domains if domain.kind != "codes"]


def with_codes(masks: np.ndarray, domains: Sequence[Domain]) -> np.ndarray:
    """Return masks over all QIs from masks over :func:`columns_to_hide`: codes are hidden where their numbers are."""
    all_masks = np.zeros_like(masks)
    at = -1
    for a, domain in enumerate(domains):
        at += domain.kind != "codes"
        all_masks |= (masks >> np.uint64(at) & np.uint64(1)) << np.uint64(a)
    return all_masks


class _ShownColumns:
    """What patterns can show: values, and the levels that they name."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = domains
        self.qis = list(range(len(domains)))
        self.levels: list[str] = []
        self.cells: list[RunsAtLevel] = []

    @property
    def between(self) -> np.uint64:
        """The bits of all levels that are neither values nor hidden."""
        return np.uint64(((1 << len(self.cells)) - 1) << len(self.domains))

    @property
    def everything(self) -> np.uint64:
        """All bits."""
        return np.uint64((1 << len(self.qis)) - 1)

    def enter(self, pattern: Mapping[Any, Any]) -> None:
        """Give each level that patterns name a column."""
        for column, levels in self._checked(pattern).items():
            qis = [a for a, domain in enumerate(self.domains) if domain.column == column]
            for level in levels:
                for qi, cells in zip(qis, self._cells(column, level), strict=True):
                    named = list(zip(self.qis[len(self.domains) :], self.levels, strict=True))
                    if isinstance(cells, RunsAtLevel) and (qi, level) not in named:
                        self.qis.append(qi)
                        self.levels.append(level)
                        self.cells.append(cells)
        if len(self.qis) > MOST_SHOWN:
            raise ParameterError(
                f"the quasi-identifiers and the levels named are {len(self.qis)}, {MOST_SHOWN} are possible; "
                "name fewer levels",
                subject="pattern-guided",
            )

    def masks_of(self, pattern: Mapping[Any, Any]) -> np.ndarray:
        """Return all combinations of the levels, the columns in the order in which they are named."""
        named = self._checked(pattern)
        if prod(map(len, named.values())) > 1 << MOST:
            raise ParameterError(
                f"the levels make more than {1 << MOST} patterns; name fewer of them",
                subject="pattern-guided",
            )
        free = sum(1 << a for a, domain in enumerate(self.domains) if domain.column not in named)
        ways = product(
            *([self._shown(column, level) for level in levels] for column, levels in named.items())
        )
        everything = int(self.everything)
        return np.array([everything & ~(free | sum(way)) for way in ways], np.uint64)

    def _shown(self, column: str, level: str) -> int:
        """Return the bits of what a level shows of a column."""
        bits = 0
        qis = [a for a, domain in enumerate(self.domains) if domain.column == column]
        for qi, cells in zip(qis, self._cells(column, level), strict=True):
            if isinstance(cells, RunsAtLevel):
                pairs = list(zip(self.qis[len(self.domains) :], self.levels, strict=True))
                bits |= 1 << len(self.domains) + pairs.index((qi, level))
            elif cells.share == 0:
                bits |= 1 << qi
        return bits

    def _cells(self, column: str, level: str) -> list[CellsAtLevel]:
        try:
            return cells_at([domain for domain in self.domains if domain.column == column], level)
        except ParameterError as error:
            raise ParameterError(f"{error}", subject="pattern-guided") from None

    def _checked(self, pattern: Mapping[Any, Any]) -> dict[str, list[str]]:
        """Return the levels named for each column."""
        for key in pattern:
            if key not in (LEVELS, "fallback"):
                raise ParameterError(
                    f"levels go with fallback alone, not with {str(key)[:40]!r}; list the two as patterns of their own",
                    subject="pattern-guided",
                )
        named = pattern[LEVELS]
        if not isinstance(named, Mapping) or not named:
            raise ParameterError(
                'levels is a mapping of columns to levels, such as {age: "width 10"}',
                subject="pattern-guided",
            )
        columns = tuple(dict.fromkeys(domain.column for domain in self.domains))
        checked = {}
        for column, levels in named.items():
            if column not in columns:
                raise ParameterError(
                    f"no quasi-identifier {str(column)[:40]!r}{did_you_mean(str(column), columns)}",
                    subject="pattern-guided",
                )
            if any(domain.has_codes for domain in self.domains if domain.column == column):
                raise ParameterError(
                    f"column {column!r} has numbers and codes, which have no common levels; name it in no levels: it is then "
                    "published as it is, or recode it " + WITHOUT_CODES,
                    subject="pattern-guided",
                )
            entries = [levels] if isinstance(levels, str) else levels
            if (
                not isinstance(entries, Sequence)
                or not entries
                or not all(isinstance(e, str) for e in entries)
            ):
                raise ParameterError(
                    f"the levels of column {column!r} are texts such as 'values', 'level 1', 'width 10' or '*'",
                    subject="pattern-guided",
                )
            checked[str(column)] = list(dict.fromkeys(entries))
        return checked


def fallback_of(patterns: Any, fallback: Any = None) -> str:
    """Return the treatment of rows that no pattern can take.

    Parameters
    ----------
    patterns : "all", mapping, or sequence
        As :func:`pattern_set` takes them; predicates may name the fallback.
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
        If it is unknown, or two different values are named.
    """
    listed = patterns if isinstance(patterns, Sequence) and not isinstance(patterns, str) else [patterns]
    named = [entry["fallback"] for entry in listed if isinstance(entry, Mapping) and "fallback" in entry]
    if fallback is not None:
        named.append(fallback)
    for name in named:
        if name not in FALLBACKS:
            raise ParameterError(
                "fallback is 'strict' (every row follows a pattern), 'all' (everything "
                "suppressed is a pattern) or 'none'",
                subject="pattern-guided",
            )
    if fallback is not None and any(name != fallback for name in named):
        raise ParameterError(
            "the option fallback and that of the patterns differ; name one", subject="pattern-guided"
        )
    different = sorted(set(named))
    if len(different) > 1:
        raise ParameterError(
            f"patterns name fallback {' and '.join(map(repr, different))}; name one", subject="pattern-guided"
        )
    return next(iter(different), "none")


def option_problems(
    domains: Sequence[Domain] | None, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of `patterns`, `weights` and `fallback`: the option and what is wrong with it.

    Parameters
    ----------
    domains : sequence of Domain or None
        None where they are not known: then `fallback` alone is checked.
    options : mapping
        A method's.
    """
    patterns, fallback = options.get("patterns", "all"), options.get("fallback")
    try:
        fallback_of(patterns, fallback)
    except ParameterError as error:
        yield "patterns" if fallback is None else "fallback", error.text
        return
    if domains is None:
        return
    weights = options.get("weights")
    for name, check in (
        ("weights", lambda: whole_costs(domains, weights)),
        ("patterns", lambda: pattern_set(domains, patterns, fallback=fallback)),
    ):
        try:
            check()
        except ParameterError as error:
            yield name, error.text


def pattern_grid(
    table: Table, patterns: Any = "all", weights: Any = None, fallback: Any = None
) -> pd.DataFrame:
    """Return patterns as a table: a row for each pattern in the order of preference, a column for each QI.

    Parameters
    ----------
    table : Table
        Or anything with ``domains``.
    patterns, weights, fallback
        As :func:`pattern_set` takes them.

    Returns
    -------
    pandas.DataFrame, shape (p, q + 2), text and numbers
        ``*`` where the QI is suppressed, ``-`` where it is kept, else the level at which it is published; then
        `suppressed`, how many are, and `cost`, what a row of the pattern costs: `pattern-suppressed` and `pattern-cost`
        beside a QI of that name.

    Raises
    ------
    ParameterError
        As :func:`pattern_set`.
    """
    allowed = pattern_set(table.domains, patterns, weights, fallback)
    columns: dict[str, Any] = {}
    suppressed = np.zeros(len(allowed.masks), np.int64)
    for a, domain in enumerate(table.domains):
        if domain.kind == "codes":
            continue
        hidden = allowed.hides(a)
        suppressed += hidden
        columns[domain.name] = np.where(hidden, "*", "-").astype(object)
    q = len(table.domains)
    for b, level in enumerate(allowed.levels, start=q):
        columns[table.domains[allowed.qis[b]].name][allowed.shows(b)] = level
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(allowed.masks)))
    for name, values in (("suppressed", suppressed), ("cost", allowed.costs / allowed.unit)):
        while name in frame:
            name = f"pattern-{name}"
        frame[name] = values
    return frame


def _masks_of(pattern: Any, domains: Sequence[Domain]) -> np.ndarray:
    """Return one entry of the list: one pattern, or all that meet its predicates."""
    q = len(domains)
    if isinstance(pattern, Mapping):
        return _Predicates(pattern, domains).masks()
    if isinstance(pattern, str):
        if len(pattern) != q or set(pattern) - set(HIDDEN + SHOWN):
            raise ParameterError(
                f"a pattern as text has {q} characters, a mark for each quasi-identifier: * suppressed, - kept",
                subject="pattern-guided",
            )
        return np.array([sum(1 << a for a, mark in enumerate(pattern) if mark in HIDDEN)], np.uint64)
    if not isinstance(pattern, Sequence) or not all(isinstance(name, str) for name in pattern):
        raise ParameterError(
            "a pattern is a list of column names, a text such as '-*-', or predicates",
            subject="pattern-guided",
        )
    mask = 0
    for name in pattern:
        mask |= _mask_of(name, domains)
    return np.array([mask], np.uint64)


def _mask_of(name: str, domains: Sequence[Domain]) -> int:
    mask = sum(1 << a for a, domain in enumerate(domains) if name in (domain.name, domain.column))
    if not mask:
        columns = tuple(dict.fromkeys(domain.column for domain in domains))
        raise ParameterError(
            f"no quasi-identifier {name!r}{did_you_mean(name, columns)}", subject="pattern-guided"
        )
    return mask


class _Predicates:
    """One mapping of predicates, checked."""

    def __init__(self, predicates: Mapping[Any, Any], domains: Sequence[Domain]) -> None:
        self.domains = domains
        options: dict[str, Any] = {}
        for key, value in predicates.items():
            name = str(key).replace("_", "-")
            if name not in PREDICATES:
                raise ParameterError(
                    f"no predicate {key!r}{did_you_mean(name, PREDICATES)}", subject="pattern-guided"
                )
            options[name] = value
        if not options:
            raise ParameterError(
                "predicates such as {at-most: 2} are expected, none are given", subject="pattern-guided"
            )
        self.most = options.get("at-most", len(domains))
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 0:
            raise ParameterError(
                "at-most is a number of quasi-identifiers, such as 2", subject="pattern-guided"
            )
        self.fallback = fallback_of(options) == "all"
        never = options.get("never", [])
        self.never = [] if never in ([], ()) else self._names("never", never, least=1)
        self.exclusive = list(self._groups("at-most-one-of", options.get("at-most-one-of", [])))
        self.together = list(self._groups("together", options.get("together", [])))
        self._check()

    def masks(self) -> np.ndarray:
        """Return all patterns that meet the predicates, the first QI as the lowest bit, then the fallback's."""
        units = self._units()
        groups = [[np.uint64(_mask_of(name, self.domains)) for name in group] for group in self.exclusive]
        masks = np.zeros(1, np.uint64)
        for unit in units:
            # a predicate that does not hold now cannot hold when more is suppressed: no valid pattern is lost here
            unions = masks | np.uint64(unit)
            allowed = np.bitwise_count(unions) <= self.most
            for group in groups:
                allowed &= sum((unions & item != 0).astype(np.int64) for item in group) <= 1
            masks = np.concatenate([masks, unions[allowed]])
            if len(masks) > 1 << MOST:
                raise ParameterError(
                    f"the predicates leave more than {1 << MOST} patterns; lower at-most, or "
                    "name columns under never",
                    subject="pattern-guided",
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
        """Refuse predicates that always forbid a column that another predicate names."""
        for group in self.together:
            # because other groups may tie more columns to it
            mask = next(unit for unit in [*self._tied(), 0] if not unit or unit & self._mask(group))
            words = " and ".join(map(repr, group))
            for name in self.never:
                if _mask_of(name, self.domains) & mask:
                    raise ParameterError(
                        f"contradictory patterns: columns {words} go together, yet {name!r} is "
                        "never to be suppressed; drop one of the two",
                        subject="pattern-guided",
                    )
            for rivals in self.exclusive:
                both = [name for name in rivals if _mask_of(name, self.domains) & mask]
                if len(both) > 1:
                    raise ParameterError(
                        f"contradictory patterns: columns {words} go together, yet at most one "
                        f"of {both[0]!r} and {both[1]!r} may be suppressed; drop one of the two",
                        subject="pattern-guided",
                    )
            if mask.bit_count() > self.most:
                raise ParameterError(
                    f"contradictory patterns: columns {words} go together, yet at most "
                    f"{self.most} may be suppressed, and they are {mask.bit_count()}; raise at-most",
                    subject="pattern-guided",
                )

    def _tied(self) -> list[int]:
        never, self.never = self.never, []
        try:
            return self._units()
        finally:
            self.never = never

    def _groups(self, entry: str, columns: Any) -> Iterator[list[str]]:
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise ParameterError(
                f"{entry} is a list of columns, or a list of such lists", subject="pattern-guided"
            )
        if not columns:
            return
        if all(isinstance(column, str) for column in columns):
            columns = [columns]
        for group in columns:
            yield self._names(entry, group, least=2)

    def _names(self, entry: str, columns: Any, least: int) -> list[str]:
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise ParameterError(f"{entry} is a list of columns", subject="pattern-guided")
        for at, name in enumerate(names):
            _mask_of(name, self.domains)
            if name in names[:at]:
                raise ParameterError(f"{entry} names column {name!r} twice", subject="pattern-guided")
        if len(names) < least:
            raise ParameterError(f"{entry} needs at least {least} columns", subject="pattern-guided")
        return list(names)


def whole_costs(domains: Sequence[Domain], weights: Any) -> tuple[np.ndarray, int]:
    """Return what suppressing an entry of each QI costs, as whole multiples of 1 / unit: sums are exact. Codes cost nothing beside their numbers.

    Returns
    -------
    costs : numpy.ndarray, shape (q,), int64
    unit : int

    Raises
    ------
    ParameterError
        If a weight is no positive number, or of no quasi-identifier.
    """
    named = columns_to_hide(domains)
    of_named = [Fraction(1)] * len(named)
    if weights is not None:
        if not isinstance(weights, Mapping):
            raise ParameterError(
                "weights is a mapping from column to number, such as {age: 2}", subject="pattern-guided"
            )
        for name, weight in weights.items():
            mask = _mask_of(str(name), named)
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e6:
                raise ParameterError(
                    f"the weight of {name!r} must be a number above 0", subject="pattern-guided"
                )
            for a in range(len(named)):
                if mask >> a & 1:
                    # as it is written: 0.1 is a tenth, its float is not
                    of_named[a] = Fraction(str(weight))
    following = iter(of_named)
    costs = [Fraction(0) if domain.kind == "codes" else next(following) for domain in domains]
    unit = lcm(*(cost.denominator for cost in costs), 1)
    if max(costs, default=Fraction(1)) * unit >= 2**45:
        raise ParameterError("weights have too many digits; round them", subject="pattern-guided")
    return np.array([int(cost * unit) for cost in costs], np.int64), unit


def mask_costs(masks: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the cost of a row of each pattern, shape (p,), int64, from integer costs of the QIs."""
    total = np.zeros(len(masks), np.int64)
    for a, cost in enumerate(costs):
        total += ((masks >> np.uint64(a)) & np.uint64(1)).astype(np.int64) * cost
    return total


def _reversed_bits(numbers: np.ndarray, q: int) -> np.ndarray:
    turned = np.zeros_like(numbers)
    for a in range(q):
        turned |= ((numbers >> np.uint64(q - 1 - a)) & np.uint64(1)) << np.uint64(a)
    return turned
