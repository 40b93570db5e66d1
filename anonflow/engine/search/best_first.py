"""Choose the candidate that is run next, from predictions by the results so far and by short stretches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from anonflow.engine.search.trials import Candidate, SearchTarget, Setup, Trial, picked

SLOPE = 0.5
"""The assumed power of k with which loss grows, until two results of a setup show it."""

GAIN = 0.01
"""A candidate is run only if it is expected to lower the least loss at its risk by this share."""

HOPE = 0.9
"""Factor on the expected loss of a setup without any result: it may be better than its guess."""

PAUSE = 0.05
"""Seconds that any run takes besides its method."""


@dataclass(frozen=True)
class Guess:
    """The estimate for a setup from stretches of the table: loss and seconds, with one k."""

    k: int
    loss: float
    seconds: float


@dataclass(frozen=True)
class Prediction:
    """The expected loss, risk and seconds of a candidate."""

    loss: float
    risk: float
    seconds: float
    disclosure: float | None = None


class BestFirst:
    """The waiting candidates, and the results so far.

    Parameters
    ----------
    target : SearchTarget
    candidates : iterable of Candidate
    guesses : mapping
        Setup -> its estimate; a setup without one is not tried.

    Notes
    -----
    Loss: with two results of a setup a power of k through the nearest two, with one the same with the mean power of the other
    setups; without one the guess, corrected by the median of what the others' guesses were wrong by. Seconds are taken to grow
    with k. Risk is 1/k, times what the setup's results were beyond that. Disclosure is that of the setup's nearest k; without one
    the median of the nearest k of others with the same diversity; without these as the target wants it. Invariant: a candidate is
    proposed once.
    """

    def __init__(
        self, target: SearchTarget, candidates: Iterable[Candidate], guesses: Mapping[Setup, Guess]
    ) -> None:
        self.target = target
        self.guesses = dict(guesses)
        self.waiting = {candidate: None for candidate in candidates if candidate.setup in self.guesses}
        self.trials: list[Trial] = []
        self._of: dict[Setup, list[Trial]] = {}

    def add(self, trial: Trial) -> None:
        """Record a trial. If a setup has no solution at some k, larger ones are not tried."""
        candidate = trial.candidate
        self.waiting.pop(candidate, None)
        self.trials.append(trial)
        if trial.loss is None:
            for other in [
                other for other in self.waiting if other.setup == candidate.setup and other.k > candidate.k
            ]:
                del self.waiting[other]
            return
        trials = self._of.setdefault(candidate.setup, [])
        trials.append(trial)
        trials.sort(key=lambda past_trial: past_trial.candidate.k)
        self._refine(candidate.setup)

    def _refine(self, setup: Setup) -> None:
        """Add the middle between a k that keeps the loss, or the disclosure, and the next one that does not: it may be better."""
        trials = self._of[setup]
        target = self.target
        for low, high in itertools.pairwise(trials):
            a, b = low.candidate.k, high.candidate.k
            between = (
                target.loss is not None and float(low.loss or 0) <= target.loss < float(high.loss or 0)
            ) or (
                target.disclosure is not None
                and float(low.disclosure or 0) > target.disclosure >= float(high.disclosure or 0)
            )
            if between and b - a > 1:
                middle = Candidate(setup, min(max(round(math.sqrt(a * b)), a + 1), b - 1))
                if all(trial.candidate != middle for trial in trials):
                    self.waiting[middle] = None

    def predict(self, candidate: Candidate) -> Prediction:
        """Return the prediction for a candidate. O(trials)."""
        setup, k = candidate.setup, candidate.k
        trials = self._of.get(setup, [])
        guess = self.guesses[setup]
        risk = 1.0 / k
        if trials:
            risk *= max(1.0, *(float(trial.risk or 0.0) * trial.candidate.k for trial in trials))
            near = min(trials, key=lambda trial: abs(math.log(trial.candidate.k / k)))
            seconds = near.seconds * max(k / near.candidate.k, 0.1)
            loss = float(near.loss or 0.0) * (k / near.candidate.k) ** self._slope(setup, k)
        else:
            growth = k / guess.k
            seconds = guess.seconds * max(growth, 0.1) * self._correction("seconds")
            loss = guess.loss * growth ** self._mean_slope() * self._correction("loss")
        return Prediction(min(loss, 1.0), min(risk, 1.0), seconds, self._disclosure(candidate))

    def _disclosure(self, candidate: Candidate) -> float | None:
        """Return the disclosure that is expected; None where the target has none."""
        if self.target.disclosure is None:
            return None

        def nearest(trials: Sequence[Trial]) -> float:
            near = min(trials, key=lambda trial: abs(math.log(trial.candidate.k / candidate.k)))
            return float(near.disclosure or 0.0)

        setup = candidate.setup
        if setup in self._of:
            return nearest(self._of[setup])
        alike = [trials for other, trials in self._of.items() if other.diversity == setup.diversity]
        return median(nearest(trials) for trials in alike) if alike else self.target.disclosure

    def next(self, seconds: float) -> tuple[Candidate, Prediction] | None:
        """Return the most promising candidate that is expected to end in time; None if none is worth its time.

        Parameters
        ----------
        seconds : float
            Seconds that are left.
        """
        best = min((trial.shortfall(self.target) for trial in self.trials), default=math.inf)
        pick = picked(self.target, self.trials)
        answer = None if pick is None else self.trials[pick]
        ranked = []
        for at, candidate in enumerate(self.waiting):
            expected = self.predict(candidate)
            if expected.seconds > seconds:
                continue
            short = self.target.shortfall(expected.loss, expected.risk, disclosure=expected.disclosure)
            hope = HOPE if candidate.setup not in self._of else 1.0
            gain = self._gain(expected, hope)
            if best > 0.0:
                ranked.append((short, -gain, expected.seconds, at, candidate, expected))
            elif gain > GAIN:
                # a better answer comes first, then others that meet the target; of them the most gain in a second
                better = short == 0.0 and self._is_better(expected, hope, answer)
                ranked.append(
                    (
                        float(short > 0.0) - better,
                        -gain / (expected.seconds + PAUSE),
                        short,
                        at,
                        candidate,
                        expected,
                    )
                )
        if not ranked:
            return None
        *_, candidate, expected = min(ranked, key=lambda entry: entry[:4])
        return candidate, expected

    def _is_better(self, expected: Prediction, hope: float, answer: Trial | None) -> bool:
        """Return whether a candidate that meets the target is expected to be picked instead of the answer so far."""
        if answer is None:
            return True
        if self.target.is_of_risk:
            return hope * expected.loss < (1.0 - GAIN) * float(answer.loss or 0.0)
        return expected.risk < (1.0 - GAIN) * float(answer.risk or 0.0)

    def _gain(self, expected: Prediction, hope: float) -> float:
        """Return by which share the least loss of those with at most this risk may fall; 1 if there are none.

        Those that lose a sign, or disclose more than is wanted and expected here, are no measure.
        """
        discloses = max(expected.disclosure or 0.0, self.target.disclosure or 0.0) * (1 + 1e-9)
        losses = [
            float(trial.loss)
            for trial in self.trials
            if trial.loss is not None
            and float(trial.risk or 0.0) <= expected.risk * (1 + 1e-9)
            and float(trial.disclosure or 0.0) <= discloses
            and trial.signs is not False
        ]
        if not losses:
            return 1.0
        least = min(losses)
        return 1.0 - hope * expected.loss / least if least > 0 else 0.0

    def _slope(self, setup: Setup, k: int) -> float:
        trials = [trial for trial in self._of.get(setup, []) if trial.loss]
        if len(trials) < 2:
            return self._mean_slope()
        a, b = sorted(trials, key=lambda trial: abs(math.log(trial.candidate.k / k)))[:2]
        return _power(a, b)

    def _mean_slope(self) -> float:
        slopes = [
            _power(trials[0], trials[-1])
            for trials in self._of.values()
            if len(trials) > 1 and trials[0].loss and trials[-1].loss
        ]
        return sum(slopes) / len(slopes) if slopes else SLOPE

    def _correction(self, quantity: str) -> float:
        """Return the median error of the guesses, as a factor."""
        factors = []
        for setup, trials in self._of.items():
            guess, first = self.guesses[setup], trials[0]
            growth = first.candidate.k / guess.k
            if quantity == "seconds":
                factors.append(first.seconds / (guess.seconds * max(growth, 0.1)))
            elif guess.loss > 0:
                factors.append(float(first.loss or 0.0) / (guess.loss * growth ** self._mean_slope()))
        return median(factors) if factors else 1.0


def _power(a: Trial, b: Trial) -> float:
    """Return the power of k between two results, between 0 and 2."""
    ratio = math.log(float(b.loss or 1.0) / float(a.loss or 1.0))
    return min(max(ratio / math.log(b.candidate.k / a.candidate.k), 0.0), 2.0)


def ladder(least: int, most: int, steps: Sequence[int]) -> tuple[int, ...]:
    """Return the ks that are tried: the least, and the steps beyond it up to the most."""
    return tuple(sorted({k for k in (least, *steps) if least <= k <= most}))
