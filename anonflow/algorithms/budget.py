"""Choose for a budget of seconds what the caller left open: the method, its partition size, its effort.

Quality grows with partitions and effort, and so does time: at equal budgets methods can be compared (Doka 2015, section 8.1). What a
choice is expected to take is said by :class:`anonflow.algorithms.pilots.PilotModel`, from runs on short stretches of the same table.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from anonflow.algorithms.method import MOST_EFFORT, Algorithm
from anonflow.algorithms.pilots import SETTLED, SMALLEST, PilotModel, TimedTable, run_pilots
from anonflow.algorithms.registry import algorithm_named
from anonflow.errors import ParameterError
from anonflow.option import is_finite
from anonflow.table.records import Records

AUTO = "auto"
"""The partition size that stands for the largest one that fits the budget, and the method that stands for the one of least loss."""

MOST_SECONDS = 1e9
"""A longer budget is as good as this one, of 31 years."""

SHARE = 0.15
"""Share of the budget that the pilots of a method may take."""

MARGIN = 0.9
"""Share of the time left after the pilots that the choice plans with."""

UNENDED = 0.8
"""The same for the effort of a method that no clock ends: what a kick takes is known to about 20% (the benchmark auto)."""

ENDING = 0.97
"""Share of the time left after the pilots at which a method ends that can: its result is still to be checked."""

AHEAD = 4
"""How many times the expected effort is allowed where a deadline ends it."""

START = 0.5
"""Of what the pilots leave: what a start may take that a quicker one could replace."""

FEWEST = 32
"""Records of the first pilots where the size of partitions is chosen, at least."""

REACH = 4
"""Partitions of up to this many times the largest pilot may be chosen."""


@dataclass(frozen=True)
class _Rung:
    """A candidate of ``auto``: a method with options and a partition size, or a least size if larger partitions fit.

    It is taken if it is expected to take at most a `share` of the seconds without any effort.
    """

    algorithm: str
    options: Mapping[str, Any]
    size: int | str
    least: int = 0
    share: float = 1.0


_LADDERS: dict[str, tuple[_Rung, ...]] = {
    "k-regular": (
        _Rung("two-phase", {}, 500_000, share=START),
        _Rung("two-phase", {"first": 500}, 500_000, share=START),
        _Rung("two-phase", {"first": 250}, 500_000),
        _Rung("greedy", {}, AUTO),
    ),
    "k-anonymity": (
        _Rung("k-member", {"improve": "chains"}, 5_000),
        _Rung("k-member", {"improve": "chains", "kicks": 0}, AUTO, least=250),
        _Rung("mondrian", {}, AUTO),
    ),
}
"""Guarantee -> the candidates, least loss first; the benchmark auto has the figures."""

MostRecords = Callable[[Algorithm, Mapping[str, Any]], int]

GUARANTEES = tuple(_LADDERS)
"""The guarantees of ``auto``."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for a budget, as numbers that make the same result again.

    Attributes
    ----------
    algorithm : str
    size : int or None
        Records in a partition; None for the whole table.
    options : mapping
        All options of the method that are not its defaults, the caller's and the chosen.
    budget : float
        Seconds.
    expected : float
        Seconds that the table is expected to take, pilots included.
    pilots : tuple
        Of the method that was chosen: records of a timed stretch, units of effort where they are chosen, and seconds.
    open_effort : str
        The option of effort that was chosen.
    left : float
        Seconds that the pilots left for it.
    start : float
        Seconds of these that it is expected to take without any effort.
    """

    algorithm: str
    size: int | None
    options: Mapping[str, Any]
    budget: float
    expected: float
    pilots: tuple[tuple[float, ...], ...] = field(default=())
    open_effort: str = ""
    left: float = 0.0
    start: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether the budget is expected to be kept; otherwise this is the fastest choice."""
        return self.expected <= self.budget

    def sentence(self) -> str:
        """Return the choice in words."""
        where = "on the whole table" if self.size is None else f"in partitions of {self.size}"
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        choice = f"{self.algorithm} {where}" + (f" with {options}" if options else "")
        if self.fits:
            return f"{choice} for a budget of {self.budget:g} s"
        return f"no method keeps the budget of {self.budget:g} s; {choice} is expected to take {self.expected:.2g} s"

    def facts(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {
            "picked": self.sentence(),
            "fits_budget": self.fits,
            "expected_seconds": round(self.expected, 3),
            "pilots": [[*pilot[:-1], round(pilot[-1], 6)] for pilot in self.pilots],
        }


def is_open(algorithm: str, size: Any, budget: Any) -> bool:
    """Return whether a budget is to choose something."""
    return algorithm == AUTO or budget is not None or (isinstance(size, str) and size == AUTO)


def check_budget(size: Any, budget: Any, effort: str | None = None) -> float | None:
    """Return the budget that goes with a partition size: seconds for ``auto``, none for any other.

    Parameters
    ----------
    size : int, str or None
    budget : float or None
    effort : str, optional
        The method's option of effort: with it a budget goes with every size.

    Raises
    ------
    ParameterError
        If only one of them is there, or the budget is not a number of seconds greater than 0.
    """
    if size != AUTO or not isinstance(size, str):
        if isinstance(size, str):
            raise ParameterError("partition_size is a whole number, None for the whole table, or 'auto'")
        if budget is not None and effort is None:
            raise ParameterError("a budget needs partition_size='auto'; set it, or leave the budget out")
        if budget is None:
            return None
    elif budget is None:
        raise ParameterError("partition_size='auto' needs a budget in seconds, such as budget=5.0")
    if not is_finite(budget) or not budget > 0:
        raise ParameterError("budget must be a number of seconds greater than 0, such as 5.0")
    return min(float(budget), MOST_SECONDS)


def check_automatic(
    guarantee: Any, size: Any, budget: Any, options: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return the problems of the settings of the method ``auto``: a pair (setting, problem) for each.

    Parameters
    ----------
    guarantee : str or None
    size : int, str or None
    budget : float or None
    options : mapping
        None may be there.
    """
    problems = (
        (guarantee not in GUARANTEES, "guarantee", f"needs a guarantee: {' or '.join(GUARANTEES)}"),
        (budget is None, "budget", "needs a budget in seconds, such as 5.0"),
        (size not in (None, AUTO), "size", "chooses the partition size; leave it out"),
        *((True, name, f"chooses its options; leave {name} out") for name in options),
    )
    return [(name, f"the method auto {problem}") for is_wrong, name, problem in problems if is_wrong]


def first_method(guarantee: str | None) -> Algorithm:
    """Return the method that ``auto`` tries first; of the first guarantee if the guarantee is unknown."""
    return algorithm_named(_LADDERS[guarantee if guarantee in _LADDERS else GUARANTEES[0]][0].algorithm)


class Deadline:
    """When a method that works in rounds is to end: before a round that is expected to take longer than what is left.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds
        self._last: float | None = None
        self._longest = 0.0

    def __call__(self) -> bool:
        """Return whether to end; called before the first round, and after each, which is taken to be as long as the longest so far."""
        now = time.perf_counter()
        if self._last is not None:
            self._longest = max(self._longest, now - self._last)
        self._last = now
        return now + self._longest > self._end


def choose_method(
    guarantee: str,
    records: Records | TimedTable,
    k: int,
    budget: float,
    workers: int | None,
    *,
    order: str,
    loss: str,
    most: MostRecords | None = None,
) -> Choice:
    """Return the method of least loss that is expected to keep a budget, with all of its seconds used.

    Parameters
    ----------
    guarantee : str
        One of ``GUARANTEES``.
    records : Records or TimedTable
        n records, as every method sees them.
    k : int
        At most n.
    budget : float
        Seconds for all of the table, pilots included. Compiling is not: it happens once on a machine.
    workers : int, optional
        As many as there are processors without it.
    order : str
    loss : str
    most : callable, optional
        Method, options -> records of a partition at most, for memory's sake.

    Returns
    -------
    Choice
        If nothing fits, the fastest.

    Raises
    ------
    ParameterError
        If the guarantee is unknown.
    InfeasibleError
        If no partition can be cut within the boundaries.

    Notes
    -----
    k-regular: ``two-phase`` with the longest stretches in its start that leave half of the seconds to chains, then ``greedy`` in the
    largest partitions that fit. k-anonymity: ``k-member`` with chains and kicks in partitions of 5,000, without kicks in the largest that
    fit, of 250 records at least, ``mondrian``. Each is timed on some of the table's records; the first that is expected to fit what the
    pilots have left is taken, as far as it goes in these seconds.
    """
    if guarantee not in _LADDERS:
        raise ParameterError(f"auto guarantees {' or '.join(GUARANTEES)}; name one of them")
    table = records if isinstance(records, TimedTable) else TimedTable.of(records, order)
    ladder = _LADDERS[guarantee]
    spent = 0.0
    choice = None
    for rung in ladder:
        method = algorithm_named(rung.algorithm)
        size: int | str | None = rung.size
        if isinstance(size, int):
            limit = size if most is None else max(k, min(size, most(method, rung.options)))
            size = None if limit >= table.n else limit
        # the last candidate is the quickest: it is timed even where nothing is left of the budget
        if choice is not None and budget - spent <= 0.0 and rung is not ladder[-1]:
            continue
        choice = choose(
            method, table, k, max(budget - spent, 1e-9), workers,
            size=size, order=order, loss=loss, options=rung.options, most=most,
        )  # fmt: skip
        large = choice.size is None or choice.size >= min(rung.least, table.n)
        if choice.fits and large and choice.start <= rung.share * choice.left:
            break
        # what the pilots of a candidate took is gone for the next one
        spent += choice.budget - choice.left
    assert choice is not None
    return replace(choice, budget=budget, expected=spent + choice.expected)


def choose(
    method: Algorithm,
    records: Records | TimedTable,
    k: int,
    budget: float,
    workers: int | None,
    *,
    size: int | str | None,
    order: str,
    loss: str,
    options: Mapping[str, Any],
    most: MostRecords | None = None,
) -> Choice:
    """Return the partition size (if it is ``auto``) and the effort of a method for a budget.

    Parameters
    ----------
    method : Algorithm
    records : Records or TimedTable
        n records, as the method sees them.
    k : int
        At most n.
    budget : float
        Seconds for all of the table, pilots included. Compiling is not: it happens once on a machine.
    workers : int, optional
        Partitions, or threads of one, that are worked on at once; as many as there are processors without it.
    size : int, "auto" or None
        Records in a partition; None for the whole table.
    order : str
        What partitions are cut along; for the pilots, a random order is the table's.
    loss : str
    options : mapping
        The method's own. A `time_limit` is an eighth of the budget for pilots, if it is longer.
    most : callable, optional
        Method, options -> records of a partition at most, for memory's sake.

    Raises
    ------
    ParameterError
        If the method refuses an option, or its effort is among them and the size is not ``auto``.
    InfeasibleError
        If no partition can be cut within the boundaries.

    Notes
    -----
    Pilots take 15% of the budget at most, those of a slow start as much again. With both open, the whole table is taken if the method fits there with no effort at all,
    and then as much effort as the rest of the seconds allows; else the largest partitions that fit without effort, up to four times the
    largest pilot; if none fits, those that take the least. Where a method chooses by the table between a slow start and a quick one
    (`slow_or_quick`), the slow one is timed, too; the quick one is named where the slow one would take more than half of what is left.
    """
    table = records if isinstance(records, TimedTable) else TimedTable.of(records, order)
    n, threads = table.n, workers or os.cpu_count() or 1
    effort = method.effort_under(options)
    if effort in options:
        if size != AUTO:
            raise ParameterError(
                f"{method.name}: {effort} and a budget exclude each other; leave one of the two out"
            )
        effort = None
    limit = n if most is None else min(n, max(k, most(method, options)))
    size_at_most = min(size, n) if isinstance(size, int) else limit if size == AUTO else n
    least, greatest = ({}, {}) if effort is None else method.efforts(options)
    idle = least if effort is None else {**least, effort: 0}
    starts = effort and method.slow_or_quick and method.slow_or_quick(k, size_at_most, options)
    slow, quick = starts or ({}, {})
    shorter = {
        name: min(options.get(name, option.default), budget / 8)
        for name, option in method.options.items()
        if option.time_limit
    }

    # beyond this the time of a linear method grows in proportion: longer stretches would teach nothing
    largest = min(size_at_most, 2 * SETTLED) if method.linear and size != AUTO else size_at_most
    at_once = threads if size == AUTO else min(threads, -(-n // size_at_most))
    timed = partial(run_pilots, method, table, k, loss=loss, seconds=SHARE * budget, at_once=at_once)

    def expected(at: int) -> float:
        # the method may take either start: the longer time counts
        return max(model.expected(*table.cuts(at, k).lengths, threads).wall for model in models)

    settings = {**options, **shorter, **idle}
    model = timed(
        options={**settings, **quick},
        largest=largest,
        smallest=FEWEST if size == AUTO else SMALLEST,
        effort=None if effort is None else greatest,
    )
    models, spent, start = [model], model.spent, quick
    if slow:
        squared = timed(options={**settings, **slow}, largest=model.pilots[-1].records)
        models.append(replace(squared, linear=False))
        spent += squared.spent
        if expected(size_at_most) <= START * MARGIN * (budget - spent):
            start = {}  # the method may choose
        else:
            models.pop()
    seconds_left = budget - spent
    cut: int | None = size if isinstance(size, int) else None
    if size == AUTO and effort and limit >= n and expected(n) <= MARGIN * seconds_left:
        cut = n
    elif size == AUTO:
        cut = _largest(expected, k, min(limit, REACH * model.pilots[-1].records), MARGIN * seconds_left)
    base = expected(cut or n)
    # where the method can end by the clock, a wrong estimate does no harm
    share = MARGIN if method.ends_early and size is None else UNENDED
    takes, added = dict(start), 0.0
    if effort:
        wall = model.effort_wall(*table.cuts(cut or n, k).lengths, threads, k)
        first, further = (unit * n * wall for unit in model.unit_seconds())
        units, part, added = _units(first, further, max(share * seconds_left - base, 0.0))
        takes |= greatest if units else _between(least, greatest, part)
        takes[effort] = units
    return Choice(
        method.name,
        cut,
        {**options, **takes},
        budget,
        spent + base + added,
        _figures(model, bool(effort)),
        open_effort=effort or "",
        left=seconds_left,
        start=base,
    )


def _largest(expected: Callable[[int], float], k: int, reach: int, seconds: float) -> int:
    """Return the largest size of partitions up to `reach` that is expected to fit the seconds; if none does, the fastest."""
    # four sizes in each doubling, up to more records than a table has
    sizes = {reach, *(int(2 ** (step / 4)) for step in range(4 * 40))}
    lasts = {size: expected(size) for size in sorted(sizes) if k <= size <= reach}
    fitting = [size for size, duration in lasts.items() if duration <= seconds]
    return max(fitting) if fitting else min(lasts, key=lambda size: (lasts[size], size))


def _units(first: float, further: float, seconds: float) -> tuple[int, float, float]:
    """Return the units of effort that fit the seconds, the part of the first that fits where it does not, and what they take."""
    if seconds >= first:
        units = min(1 + int((seconds - first) / further), MOST_EFFORT)
        return units, 1.0, first + (units - 1) * further
    part = seconds / first if math.isfinite(first) else 0.0
    return 0, part, seconds if part else 0.0


def _between(least: Mapping[str, int], greatest: Mapping[str, int], part: float) -> dict[str, int]:
    """Return the values of options that a part of the way leads to, from the least to those of the first unit of effort."""
    return {name: value + int(part * (greatest[name] - value)) for name, value in least.items()}


def _figures(model: PilotModel, efforts: bool) -> tuple[tuple[float, ...], ...]:
    """Return the pilots as a choice has them: those of efforts with the seconds of a record."""
    if not efforts:
        return tuple((pilot.records, pilot.seconds) for pilot in model.pilots)
    timed = [(pilot.records, 0, pilot.seconds) for pilot in model.pilots]
    return (*timed, *((1, units, seconds) for units, seconds in model.efforts if units))
