"""Choose for a budget of seconds what the caller left open: the method, its partition size, its effort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anonflow.algorithms.budget import AUTO, TimedTable, fitting_effort, fitting_size
from anonflow.algorithms.method import Algorithm
from anonflow.algorithms.registry import algorithm_named
from anonflow.errors import ParameterError
from anonflow.table.records import Records

__all__ = ["GUARANTEES", "Choice", "check_automatic", "choose", "choose_method", "first_method", "is_open"]


@dataclass(frozen=True)
class _Rung:
    """A candidate of ``auto``: a method with options and a partition size, or a least size if larger partitions fit."""

    algorithm: str
    options: Mapping[str, Any]
    size: int | str
    least: int = 0


_LADDERS: dict[str, tuple[_Rung, ...]] = {
    "k-regular": (
        _Rung("two-phase", {}, 500_000),
        _Rung("two-phase", {"first": 500}, 500_000),
        _Rung("hungarian", {}, AUTO, least=100),
        _Rung("greedy", {}, AUTO),
    ),
    "k-anonymity": (
        _Rung("k-member", {"improve": "chains"}, 5_000),
        _Rung("k-member", {"improve": "chains", "kicks": 0}, AUTO, least=250),
        _Rung("mondrian", {}, AUTO),
    ),
}
"""Guarantee -> the candidates, least loss first; the benchmarks chains and classes have the figures."""

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
        Of the method that was chosen, as :class:`anonflow.algorithms.budget.Fitted` or
        :class:`anonflow.algorithms.budget.Effort` has them.
    open_effort : str
        The option of effort that was chosen, if it is above 0.
    left : float
        Seconds that the pilots left for it.
    """

    algorithm: str
    size: int | None
    options: Mapping[str, Any]
    budget: float
    expected: float
    pilots: tuple[tuple[float, ...], ...] = field(default=())
    open_effort: str = ""
    left: float = 0.0

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
    problems = []
    if guarantee not in GUARANTEES:
        problems.append(("guarantee", f"the method auto needs a guarantee: {' or '.join(GUARANTEES)}"))
    if budget is None:
        problems.append(("budget", "the method auto needs a budget in seconds, such as 5.0"))
    if size is not None and size != AUTO:
        problems.append(("size", "the method auto chooses the partition size; leave it out"))
    problems += [(name, f"the method auto chooses its options; leave {name} out") for name in options]
    return problems


def first_method(guarantee: str | None) -> Algorithm:
    """Return the method that ``auto`` tries first; of the first guarantee if the guarantee is unknown."""
    return algorithm_named(_LADDERS[guarantee if guarantee in _LADDERS else GUARANTEES[0]][0].algorithm)


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
    k-regular: ``two-phase`` with chains, then the same with a start in shorter stretches, ``hungarian`` and
    ``greedy`` in the largest partitions that fit, the former of 100 records at least. k-anonymity: ``k-member`` with chains and kicks in
    partitions of 5,000, without kicks in the largest that fit, of 250 records at least, ``mondrian``. Each is timed on some of the table's records;
    the first that is expected to fit what the pilots have left is taken, as far as it goes in these seconds.
    """
    if guarantee not in _LADDERS:
        raise ParameterError(f"auto guarantees {' or '.join(GUARANTEES)}; name one of them")
    ladder = _LADDERS[guarantee]
    spent = 0.0
    choice = None
    for rung in ladder:
        method = algorithm_named(rung.algorithm)
        size: int | str | None = rung.size
        if isinstance(size, int):
            limit = size if most is None else max(k, min(size, most(method, rung.options)))
            size = None if limit >= records.n else limit
        last = rung is ladder[-1]
        if choice is not None and budget - spent <= 0.0 and not last:
            continue
        choice = choose(
            method,
            records,
            k,
            max(budget - spent, 1e-9),
            workers,
            size=size,
            order=order,
            loss=loss,
            options=rung.options,
            most=most,
        )
        if choice.fits and (choice.size is None or choice.size >= min(rung.least, records.n)):
            break
        spent += sum(pilot[-1] for pilot in choice.pilots)
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
        Seconds for all of the table, pilots included.
    workers : int, optional
    size : int, "auto" or None
        Records in a partition; None for the whole table.
    order : str
    loss : str
    options : mapping
        The method's own. An effort among them stays as it is.
    most : callable, optional
        As there.

    Raises
    ------
    ParameterError
        If the method refuses an option, or neither size nor effort is open.
    InfeasibleError
        If no partition can be cut within the boundaries.

    Notes
    -----
    With both open, the whole table is taken if the method fits there with no effort at all, and then as much effort
    as the rest of the seconds allows; else the largest partitions that fit without effort.
    """
    effort = method.effort_under(options)
    both = size == AUTO and effort is not None and effort not in options
    spent = 0.0
    limit = records.n if most is None else max(k, most(method, options))
    if (both and limit >= records.n) or size != AUTO:
        whole = None if isinstance(size, str) else size
        fit = fitting_effort(method, records, k, budget, workers, size=whole, loss=loss, options=options)
        if fit.fits or not both:
            chosen = {**options, **fit.options}
            whole = records.n if both else whole
            left = budget - sum(pilot[-1] for pilot in fit.pilots)
            open_effort = fit.option if fit.value else ""
            return Choice(method.name, whole, chosen, budget, fit.expected, fit.pilots, open_effort, left)
        spent = sum(pilot[-1] for pilot in fit.pilots)
    if both:
        options = {**options, str(effort): 0}
    fitted = fitting_size(
        method, records, k, max(budget - spent, 1e-9), workers, order=order, loss=loss, options=options
    )
    return Choice(
        method.name, min(fitted.size, limit), options, budget, spent + fitted.expected, fitted.pilots
    )
