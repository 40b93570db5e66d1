"""The definition of an attacker and of its success."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Protocol

from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import options_of
from anonflow.risk.attack_context import AttackContext
from anonflow.table import Schema, Table

Z = 1.96
"""Of a two-sided interval with confidence 95%."""

THRESHOLD = 0.09
"""The largest probability that EMA and Health Canada take as low enough for publication: 1/11 rounded down, so that k = 11 fails."""


@dataclass(frozen=True)
class Households:
    """How often an attacker wins against somebody of a household.

    Attributes
    ----------
    number : int
        Households with somebody who was attacked.
    mean, worst : float
        The probability that one of its people is named: on average, and of the household at highest risk.
    """

    number: int
    mean: float
    worst: float

    def sentence(self) -> str:
        """Return the same in plain words."""
        return (
            f"Of {plural(self.number, 'household')} somebody is named for {percent(self.mean)} on average, "
            f"{percent(self.worst)} at most."
        )


@dataclass(frozen=True)
class Success:
    """How often an attacker wins.

    Attributes
    ----------
    targets : int
        How many people were attacked.
    rate : float
        Share of them for whom the attacker wins; an expectation where it guesses.
    worst : float
        The probability of winning against the person at highest risk.
    at_risk : int
        People against whom it wins more often than the baseline says.
    baseline : float
        The largest rate that the release allows: 1/k, or the rate of a guess without the release.
    sentence : str
        The same in plain words: counts and rates, never a value.
    counted : bool
        Whether the rate was counted on some of the people, or along one draw, and not computed as an expectation over
        everybody: only then it has an interval.
    households : Households or None
        The same of households, where the schema has them.
    columns : tuple of str
        Columns that the attacker uses besides the quasi-identifiers, the most revealing first.
    z : float
        Standard deviations of the interval, on each side; more where the best of several ways of guessing counts.
    """

    targets: int
    rate: float
    worst: float
    at_risk: int
    baseline: float
    sentence: str
    counted: bool = False
    households: Households | None = None
    columns: tuple[str, ...] = ()
    z: float = Z

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of a counted rate, with confidence 95% at least; for an exact expectation, the rate itself."""
        return wilson(self.rate, self.targets, self.z) if self.counted else (self.rate, self.rate)


class Attacker(Protocol):
    """An attacker: some knowledge, and one way to use it.

    Attributes
    ----------
    name : str
    knows : str
        The attacker's knowledge besides the release.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def knows(self) -> str:
        """The knowledge of the attacker besides the release."""

    def attack(self, context: AttackContext) -> Success:
        """Attack every person of a table, or a sample of them.

        Raises
        ------
        ParameterError
            If the context lacks the data to evaluate the attacker.
        """


@dataclass(frozen=True, eq=False)
class WholeRelease:
    """What is counted on all rows of a release that is too large to be attacked but by a sample.

    Attributes
    ----------
    table : Table
        The originals.
    release : Release
    sizes : sequence of (int, int)
        Of rows that list people, and how many people are listed by so many.
    k : int
    people : Success or None
        Of the attacker who looks for people by all their rows, which are not all in a sample.
    earlier : list of paths
        The owner's folders of earlier releases of these people.
    """

    table: Table
    release: Any
    sizes: Sequence[tuple[int, int]]
    k: int
    people: Success | None = None
    earlier: Sequence[Any] = ()


class AttackerKind:
    """What an attacker of this package says of itself, for all who choose among attackers; a new one says what differs.

    It is said in the head of the class: ``class Linker(AttackerKind, name="linker", points_at_row=True): ...``. Parameters are
    the fields of the dataclass; what a value may be stands there (:mod:`anonflow.option`) and is checked here.

    Attributes
    ----------
    name : str
    does : str
        Its attack in a few words.
    needs_truth : bool
        Whether its rate is counted against the truth. Such a rate reveals a little about the draw: it belongs to the owner and is in
        no report.
    needs_originals : bool
        Whether it knows the originals, and not the rows alone.
    reads_rows_alone : bool
        Whether it needs only the rows of a release.
    points_at_row : bool
        Whether it points at a row, with probabilities that may be published because they do not use the truth: the largest is a
        person's risk.
    takes_register : bool
        Whether it takes a register: in a flow, a file under ``population``.
    of_population : bool
        Whether it knows a population beyond the table: its register, or how large it is.
    of_people : bool
        Whether it looks for people with several rows.
    of_other_columns : bool
        Whether it uses published columns besides the quasi-identifiers to point at a row.
    of_each_column : bool
        Whether it is tried once for each sensitive column, its first parameter.
    of_classes : bool
        Whether it needs a release of classes.
    of_fresh_draw : bool
        Whether screens show its rate on a fresh draw from the release's matches, as the release card does.
    of_strangers : bool
        Whether screens try it with those columns alone that strangers know.
    of_sets : bool
        Whether it stands for the attackers of its parameter ``attackers``, each with every set of columns of its parameter ``sets``.
    of_earlier : bool
        Whether it uses the context's earlier releases: where there are some, it is tried without being named.
    takes_releases : bool
        Whether its parameter is other releases of the same people: where there are some, it is tried without being named.
    beside_register : bool
        Whether the screen tries it beside the attackers who take a register.
    not_of_sample : str
        Why it cannot attack a sample of a large release, and what to do; empty if it can.
    usual_where : callable or None
        Of a context: whether it is tried if nobody names attackers. None if it never is.
    takes : str
        Its parameters, to whom gave others, where their names do not say enough.
    call : str
        Of an attacker to whom a flow cannot give what it needs: how it is called in Python, in words that follow its name.
    """

    name: ClassVar[str]
    does: ClassVar[str]
    needs_truth: ClassVar[bool] = False
    needs_originals: ClassVar[bool] = False
    reads_rows_alone: ClassVar[bool] = False
    points_at_row: ClassVar[bool] = False
    takes_register: ClassVar[bool] = False
    of_population: ClassVar[bool] = False
    of_people: ClassVar[bool] = False
    of_other_columns: ClassVar[bool] = False
    of_each_column: ClassVar[bool] = False
    of_classes: ClassVar[bool] = False
    of_fresh_draw: ClassVar[bool] = False
    of_strangers: ClassVar[bool] = False
    of_sets: ClassVar[bool] = False
    of_earlier: ClassVar[bool] = False
    takes_releases: ClassVar[bool] = False
    beside_register: ClassVar[bool] = False
    not_of_sample: ClassVar[str] = ""
    usual_where: ClassVar[Callable[[AttackContext], bool] | None] = None
    takes: ClassVar[str] = ""
    call: ClassVar[str] = ""

    def __init_subclass__(cls, **declared: Any) -> None:
        super().__init_subclass__()
        for name, value in declared.items():
            # a plain function in a class would get the attacker as its first argument
            setattr(cls, name, staticmethod(value) if callable(value) else value)

    def __post_init__(self) -> None:
        kind: Any = type(self)  # a class is hashable, which the type checker does not see
        for name, option in options_of(kind, keyword_only=False).items():
            problem = option.problem(getattr(self, name))
            if problem is not None:
                raise ParameterError(f"{self.name}: {name} {problem}")

    @property
    def knows(self) -> str:
        """The knowledge of the attacker besides the release."""
        return ""

    def with_result(self, anonymization: Any) -> AttackerKind:
        """Return the attacker with the owner's result, for a report of the owner; itself where it needs none."""
        return self

    def members(self, read: Callable[[Any], list[Attacker]]) -> list[Any]:
        """Return the attackers that it stands for: itself, or others, whom `read` makes of the names that were given."""
        return [self]

    @classmethod
    def of_whole(cls, whole: WholeRelease) -> Success | None:
        """Return its exact success against a large release; None if it attacks a sample."""
        return None

    def schema_problem(self, schema: Schema) -> str | None:
        """Return what the attacker needs but the columns lack, or what they determine already; None if there is nothing."""
        return None

    @classmethod
    def asked_for(cls) -> str:
        """Return what to say to who gave it something else than its parameters."""
        if cls.takes_register:
            return (
                "needs a population; give a register: --register FILE in the shell, "
                f"risk.{cls.__name__}(population=frame) in Python"
            )
        *first, last = signature(cls).parameters or [""]
        names = f"s {', '.join(first)} and {last}" if first else f" {last}"
        return cls.takes or (f"has the parameter{names}" if last else "has no parameters")


def wilson(rate: float, trials: int, z: float = Z) -> tuple[float, float]:
    """Wilson's interval for a success rate.

    Parameters
    ----------
    rate : float
        Between 0 and 1.
    trials : int
        For no observations it is (0, 1).
    z : float
        Standard deviations of the normal distribution; 1.96 for confidence 95%.
    """
    if trials <= 0:
        return 0.0, 1.0
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)


def percent(rate: float) -> str:
    """Return a rate for people to read."""
    return f"{100 * rate:.1f}%" if rate >= 0.001 or rate == 0 else "under 0.1%"
