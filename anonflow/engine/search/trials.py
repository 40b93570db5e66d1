"""The target of a search, the distance of a trial from it, and the choice of a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from anonflow.algorithms.anonymize import Anonymization
from anonflow.engine.duration import seconds_of
from anonflow.engine.execution.result import RunResult
from anonflow.errors import ParameterError
from anonflow.option import is_finite
from anonflow.strict_yaml import unknown
from anonflow.utility.frontier import frontier

SECONDS = 120.0
"""Default seconds of a search."""

KEYS = ("loss", "risk", "disclosure", "signs", "time")


@dataclass(frozen=True)
class SearchTarget:
    """The requirements of a release.

    Attributes
    ----------
    loss : float or None
        The GCP at most, 0 to 1.
    risk : float or None
        The probability, at most, with which an attacker who knows everybody's quasi-identifiers and the method points at
        the row of any person.
    signs : tuple of str
        Formulas of regressions: each coefficient whose interval from the originals is without 0 keeps its sign.
    seconds : float
        That the search may take.
    disclosure : float or None
        The probability, at most, with which the same attacker guesses a sensitive value of any person.
    below : float or None
        The threshold of the flow's report: the risk must be smaller. It is then the largest probability over all attackers that
        the release card judges, those who link by other columns among them.

    Raises
    ------
    ParameterError
        If there is no requirement, or a value is outside its domain.
    """

    loss: float | None = None
    risk: float | None = None
    signs: tuple[str, ...] = ()
    seconds: float = SECONDS
    disclosure: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "risk", "disclosure"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and 0 < value <= 1):
                raise ParameterError(
                    f"{name} is a number above 0 and at most 1, such as 0.1", subject="target"
                )
        if not (is_finite(self.seconds) and 0 < self.seconds < math.inf):
            raise ParameterError("time is a duration above 0, such as 2m", subject="target")
        if not all(isinstance(formula, str) and formula.count("~") == 1 for formula in self.signs):
            raise ParameterError(
                "signs is a list of formulas such as 'income ~ age + education'", subject="target"
            )
        if self.loss is None and self.risk is None and self.disclosure is None and not self.signs:
            raise ParameterError(
                "says nothing to reach; name a loss, a risk, a disclosure or signs, such as {loss: 0.1}",
                subject="target",
            )

    @classmethod
    def of(cls, settings: Any) -> SearchTarget:
        """Return a target from a mapping such as ``{"loss": 0.1, "risk": 0.09, "time": "2m"}``, as a flow has it.

        Parameters
        ----------
        settings : SearchTarget or mapping
            ``time`` is a duration as flows write it, or a number of seconds; ``signs`` a formula or a list of them.

        Raises
        ------
        ParameterError
            If a key is unknown, or a value outside its domain.
        """
        if isinstance(settings, cls):
            return settings
        if not isinstance(settings, Mapping):
            raise ParameterError("target is a mapping such as {'loss': 0.1, 'risk': 0.09, 'time': '2m'}")
        for key in settings:
            if key not in KEYS:
                raise ParameterError(f"{unknown(str(key), KEYS)}", subject="target")
        signs, time = settings.get("signs") or (), settings.get("time", SECONDS)
        if isinstance(signs, str):
            signs = (signs,)
        if not isinstance(signs, Sequence):
            raise ParameterError(
                "signs is a list of formulas such as 'income ~ age + education'", subject="target"
            )
        seconds = seconds_of(time) if isinstance(time, str) else time
        return cls(
            settings.get("loss"), settings.get("risk"), tuple(signs), seconds, settings.get("disclosure")
        )

    @property
    def is_of_risk(self) -> bool:
        """Whether it limits what an attacker may learn."""
        return self.risk is not None or self.disclosure is not None or self.below is not None

    @property
    def least_k(self) -> int:
        """The smallest k whose 1/k its risks allow."""
        # 1 / (1 / 49) is more than 49 in floats
        least = 2 if self.risk is None else max(2, math.ceil(1.0 / self.risk - 1e-9))
        while self.below is not None and 1.0 / least >= self.below:
            least += 1
        return least

    def shortfall(
        self, loss: float, risk: float, signs: bool | None = None, disclosure: float | None = None
    ) -> float:
        """Return how far a result is from the target: by how much of the targets it is beyond them, added up; 0 where it meets it.

        A regression without its signs counts 1; what is None was not looked at.
        """
        beyond = 0.0
        for value, limit in ((loss, self.loss), (risk, self.risk), (disclosure, self.disclosure)):
            if limit is not None and value is not None:
                excess = value / limit - 1.0
                beyond += excess if excess > 1e-12 else 0.0  # a limit counts as met in spite of rounding
        # a risk that equals the threshold fails, as on the release card
        if self.below is not None and risk >= self.below:
            beyond += max(risk / self.below - 1.0, 1e-9)
        return beyond + (1.0 if self.signs and signs is False else 0.0)

    def sentence(self) -> str:
        """Return the target in words."""
        limits = (
            ("a loss (GCP) of at most {:g}", self.loss),
            ("nobody found with a probability above {:g}%", self.risk and 100 * self.risk),
            ("every attacker of the release card below {:g}%", self.below and 100 * self.below),
            (
                "no sensitive value guessed with a probability above {:g}%",
                self.disclosure and 100 * self.disclosure,
            ),
        )
        parts = [text.format(limit) for text, limit in limits if limit is not None]
        return ", ".join([*parts, *(f"{formula} keeps its signs" for formula in self.signs)])


@dataclass(frozen=True)
class Setup:
    """A candidate without its k.

    Attributes
    ----------
    algorithm : str
    size : int or None
        Records in a partition; None for the whole table.
    options : tuple of (str, object)
        Of the method, by name.
    diversity : tuple of (str, object)
        Settings of the flow's step diversify that are other than the flow says; with a criterion, a whole step in its place.
    """

    algorithm: str
    size: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    diversity: tuple[tuple[str, Any], ...] = ()

    def __hash__(self) -> int:
        # options may be lists and mappings, such as patterns
        return hash((self.algorithm, self.size, repr(self.options), repr(self.diversity)))

    @property
    def timed_as(self) -> tuple[str, str]:
        """The method with its options, which one timing is for."""
        return self.algorithm, repr(self.options)


@dataclass(frozen=True)
class Candidate:
    """A candidate: a setup with a k."""

    setup: Setup
    k: int

    @property
    def name(self) -> str:
        """A short name, such as ``greedy k=10 size=250``."""
        words = [f"size={self.setup.size}"] if self.setup.size is not None else []
        words += [f"{key}={value}" for key, value in self.setup.options]
        for key, value in self.setup.diversity:
            if key != "column":
                words.append(str(value) if key == "criterion" else f"{key}={value}")
        return " ".join([self.setup.algorithm, f"k={self.k}", *words])


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate that was run.

    Attributes
    ----------
    candidate : Candidate
    loss, risk : float or None
        Measured; None without a result.
    signs : bool or None
        Whether the regressions keep their signs; None where loss or risk are beyond the target already, or none is asked for.
    seconds : float
        Elapsed seconds.
    expected : float
        Seconds that were expected.
    problem : str or None
        Why there is no result, or why it does not count.
    result : RunResult or None
        The owner's; None of a trial that was read from a flow.
    disclosure : float or None
        The largest probability of guessing a sensitive value of any person; None where the target has none.
    without : tuple of str
        Columns without which the same result meets the target, where it does not with them; empty where none were tried or found.
    risk_without : float or None
        The risk that was measured without them.
    """

    candidate: Candidate
    loss: float | None = None
    risk: float | None = None
    signs: bool | None = None
    seconds: float = 0.0
    expected: float = 0.0
    problem: str | None = None
    result: RunResult | None = field(default=None, repr=False)
    disclosure: float | None = None
    without: tuple[str, ...] = ()
    risk_without: float | None = None

    def shortfall(self, target: SearchTarget) -> float:
        """Return how far it is from a target: infinite without a result."""
        if self.loss is None or self.risk is None or self.problem is not None:
            return math.inf
        return target.shortfall(self.loss, self.risk, self.signs, self.disclosure)


def picked(target: SearchTarget, trials: Sequence[Trial]) -> int | None:
    """Return the trial that is picked: the nearest to the target; among those that meet it, the best in the open quantity.

    Parameters
    ----------
    target : SearchTarget
    trials : sequence of Trial

    Returns
    -------
    int or None
        Of those that meet the target the one of least loss where a risk or a disclosure is asked for, else the one of least
        risk; the earlier one where all is equal. None if no trial has a result.
    """

    def order(at: int) -> tuple[float, ...]:
        trial = trials[at]
        pair = (float(trial.loss or 0.0), float(trial.risk or 0.0))
        return trial.shortfall(target), *(pair if target.is_of_risk else pair[::-1]), at

    usable = [at for at in range(len(trials)) if math.isfinite(trials[at].shortfall(target))]
    return min(usable, key=order) if usable else None


def frontier_of(trials: Sequence[Trial]) -> list[int]:
    """Return the trials for which no other is better in both risk and loss, by increasing risk."""
    usable = [at for at, trial in enumerate(trials) if trial.problem is None and trial.loss is not None]
    points = frontier(
        [float(trials[at].risk or 0.0) for at in usable], [float(trials[at].loss or 0.0) for at in usable]
    )
    return [usable[at] for at in points.tolist()]


@dataclass(frozen=True, eq=False)
class SearchReport:
    """The trials of a search, and its pick.

    Attributes
    ----------
    target : SearchTarget
    trials : tuple of Trial
        In the order in which they were run.
    picked : int or None
        The trial that comes nearest to the target; None if none has a result.
    seconds : float
        Elapsed seconds.
    left : int
        Candidates that were not run.
    ended : str
        Why the search ended.
    only_k : int or None
        The k of all candidates, where there is no other.
    """

    target: SearchTarget
    trials: tuple[Trial, ...]
    picked: int | None
    seconds: float
    left: int
    ended: str
    only_k: int | None = None

    @property
    def best(self) -> Trial | None:
        """The trial that was picked."""
        return None if self.picked is None else self.trials[self.picked]

    @property
    def answer(self) -> int | None:
        """Where no trial meets the target: the trial that does without some columns, of the fewest; None if there is none."""
        usable = [at for at, trial in enumerate(self.trials) if trial.without]
        if self.ok or not usable:
            return None
        return min(usable, key=lambda at: (len(self.trials[at].without), float(self.trials[at].loss or 0.0)))

    @property
    def ok(self) -> bool:
        """Whether the pick meets the target."""
        return self.best is not None and self.best.shortfall(self.target) == 0.0

    @property
    def frontier(self) -> tuple[Trial, ...]:
        """The trials for which no other is better in both risk and loss, by increasing risk."""
        return tuple(self.trials[at] for at in frontier_of(self.trials))

    @property
    def anonymization(self) -> Anonymization | None:
        """The result that was picked; the owner's."""
        best = self.best
        return None if best is None or best.result is None else best.result.anonymization

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each trial: algorithm, k, size, options, loss, risk, disclosure, signs, seconds, expected, frontier, meets, picked, problem, without."""
        frontier_positions = set(frontier_of(self.trials))
        columns = (
            "algorithm", "k", "size", "options", "loss", "risk", "disclosure", "signs", "seconds", "expected",
            "frontier", "meets", "picked", "problem", "without",
        )  # fmt: skip
        rows = []
        for at, trial in enumerate(self.trials):
            setup = trial.candidate.setup
            options = " ".join(f"{name}={value}" for name, value in (*setup.options, *setup.diversity))
            rows.append(
                (
                    setup.algorithm, trial.candidate.k, setup.size, options, trial.loss, trial.risk, trial.disclosure,
                    trial.signs, round(trial.seconds, 3), round(trial.expected, 3), at in frontier_positions,
                    trial.shortfall(self.target) == 0.0, at == self.picked, trial.problem or "",
                    ", ".join(trial.without),
                )
            )  # fmt: skip
        return pd.DataFrame(rows, columns=columns).astype({"size": "Int64"})

    def sentence(self) -> str:
        """Return the pick, in words."""
        best = self.best
        if best is None:
            return f"No candidate has a result: {self.ended}; wanted: {self.target.sentence()}."
        reached = "meets the target" if self.ok else "is the nearest to the target, and does not meet it"
        values = "" if best.disclosure is None else f", disclosure {100 * best.disclosure:.2f}%"
        sentence = (
            f"{best.candidate.name} {reached} ({self.target.sentence()}): loss {best.loss:.4f}, "
            f"risk {100 * float(best.risk or 0.0):.2f}%{values}."
        )
        if not self.ok and self.only_k is not None:
            sentence += f" Only k = {self.only_k} was tried; leave k out, and larger ones are tried, too."
        if self.answer is None:
            return sentence
        other = self.trials[self.answer]
        names = ", ".join(map(repr, other.without))
        columns = f"column{'s' if len(other.without) > 1 else ''} {names}"
        return (
            f"{sentence} Without the {columns}, {other.candidate.name} meets it: loss {other.loss:.4f}, "
            f"risk {100 * float(other.risk_without or 0.0):.2f}%."
        )

    def __repr__(self) -> str:
        lines = [
            f"SearchReport: {len(self.trials)} trials in {self.seconds:.1f} s, {self.left} not run; {self.ended}"
        ]
        if self.trials:
            lines.append(self.runs.to_string(index=False))
        return "\n".join([*lines, self.sentence()])
