"""What an attacker is, and how its success is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anonflow.risk.attack_context import AttackContext

__all__ = ["THRESHOLD", "Attacker", "Households", "Success", "percent", "wilson"]

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
        The probability that one of its people is named: on average, and of the household it knows best.
    """

    number: int
    mean: float
    worst: float

    def sentence(self) -> str:
        """Return the same in plain words."""
        return f"Of {self.number:,} households somebody is named for {percent(self.mean)} on average, {percent(self.worst)} at most."


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
        The probability of winning against the person that it knows best.
    at_risk : int
        People against whom it wins more often than the baseline says.
    baseline : float
        What the release promises at most: 1/k, or what can be guessed without it.
    sentence : str
        The same in plain words: counts and rates, never a value.
    counted : bool
        Whether the rate was counted on some of the people, or along one draw, and not computed as an expectation over
        everybody: only then it has an interval.
    households : Households or None
        The same of households, where the schema has them.
    """

    targets: int
    rate: float
    worst: float
    at_risk: int
    baseline: float
    sentence: str
    counted: bool = False
    households: Households | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Between which rates a counted one lies with confidence 95%; an exact expectation is what it is."""
        return wilson(self.rate, self.targets) if self.counted else (self.rate, self.rate)


class Attacker(Protocol):
    """Somebody with some knowledge and one way to use it.

    Attributes
    ----------
    name : str
    knows : str
        What the attacker has besides the release.

    Notes
    -----
    Attackers of this package also say whether their rate is counted against the truth (``needs_truth``). Such a
    rate says a little about the draw: it is the owner's, and in no report.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def knows(self) -> str:
        """What it has besides the release."""

    def attack(self, context: AttackContext) -> Success:
        """Attack every person of a table, or a sample of them.

        Raises
        ------
        ParameterError
            If the context lacks what the attacker is judged by.
        """


def wilson(rate: float, trials: int, z: float = Z) -> tuple[float, float]:
    """Wilson's interval for a success rate.

    Parameters
    ----------
    rate : float
        Between 0 and 1.
    trials : int
        (0, 1) is the interval of none.
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
