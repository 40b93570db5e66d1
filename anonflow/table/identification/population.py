"""Estimate how many people of a population are unique, from the sizes of a sample's classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import numpy as np
import scipy

from anonflow.errors import ParameterError
from anonflow.option import is_finite

NOT_ESTIMABLE = "not estimable"

_Z = 1.959964
"""The normal quantile of a two-sided 95% interval."""

_REPLICATES = 400
"""The number of resamples of the bootstrap."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of how many people of the population are unique on the key.

    Attributes
    ----------
    model : str
    uniques : float
        NaN if it is not estimable.
    low, high : float
        The 95% interval, if the model holds; NaN if there is none.
    why : str
        The assumptions, or why it is not estimable.
    """

    model: str
    uniques: float
    low: float = math.nan
    high: float = math.nan
    why: str = ""

    @property
    def is_there(self) -> bool:
        """Whether there is an estimate."""
        return math.isfinite(self.uniques)


_Estimator = Callable[[np.ndarray, float], Estimate]
"""What makes an estimate of the sizes of classes and the sampling fraction."""


def check_fraction(fraction: float | None) -> float:
    """Return a sampling fraction, which must be known.

    Raises
    ------
    ParameterError
        If it is not above 0 and at most 1.
    """
    if fraction is None or not is_finite(fraction) or not 0 < fraction <= 1:
        raise ParameterError("a sampling fraction is a number above 0 and at most 1, such as 0.05")
    return float(fraction)


def _histogram(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct sizes, ascending, and how many classes have each."""
    return np.unique(np.asarray(sizes, np.int64), return_counts=True)


def _nothing(model: str, why: str) -> Estimate:
    return Estimate(model, math.nan, why=f"{NOT_ESTIMABLE}: {why}")


def _estimator(model: str) -> Callable[[_Estimator], _Estimator]:
    """Return a decorator of an estimator: it checks the fraction, and answers where there is nothing to estimate."""

    def of_model(estimate: _Estimator) -> _Estimator:
        @wraps(estimate)
        def checked(sizes: np.ndarray, fraction: float) -> Estimate:
            if check_fraction(fraction) < 1.0 and len(sizes):
                return estimate(sizes, float(fraction))
            uniques = float((sizes == 1).sum())
            everybody = Estimate(model, uniques, uniques, uniques, "the sample is the population")
            return everybody if len(sizes) else _nothing(model, "there are no records")

        return checked

    return of_model


@_estimator("zayatz")
def zayatz(sizes: np.ndarray, fraction: float) -> Estimate:
    """Return population uniques by the chance that a sample unique is one (Zayatz 1991).

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
        Records of each class of the sample.
    fraction : float
        n / N of a simple random sample.

    Returns
    -------
    Estimate
        ``s_1 P(unique in the population | unique in the sample) / fraction``: classes of the population are taken to be
        as large, in distribution, as those of the sample, which overestimates uniques. The interval is that of
        400 Poisson resamples of the histogram. O(distinct sizes).

    Raises
    ------
    ParameterError
        If the fraction is not above 0 and at most 1.

    Notes
    -----
    P(one of F people is drawn) = F C(N - F, n - 1) / C(N, n), the hypergeometric distribution.
    """
    size, count = _histogram(sizes)
    if size[0] != 1:
        return Estimate("zayatz", 0.0, 0.0, 0.0, "no record of the sample is unique")
    n = float((size * count).sum())
    total = max(n / fraction, n + 1.0)
    with np.errstate(divide="ignore"):
        chance = np.log(size) + _log_choose(total - size, n - 1) - _log_choose(total, n)
    chance = np.exp(chance)

    def uniques(counts: np.ndarray) -> np.ndarray:
        sample_uniques = (counts * chance).sum(axis=-1)
        good = sample_uniques > 0
        share = np.divide(
            counts[..., 0] * chance[0], sample_uniques, out=np.zeros_like(sample_uniques), where=good
        )
        result: np.ndarray = counts[..., 0] * share / fraction
        return result

    # a fixed seed: the same sample has the same interval
    rng = np.random.default_rng(0)
    resampled = uniques(rng.poisson(count, (_REPLICATES, len(count))).astype(np.float64))
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    return Estimate(
        "zayatz",
        float(uniques(count.astype(np.float64))),
        low,
        high,
        "if the population's classes are as large as the sample's",
    )


def _log_choose(n: np.ndarray | float, k: float) -> np.ndarray:
    """Return log C(n, k); minus infinity if k > n."""
    top = np.asarray(n, np.float64)
    inside = np.maximum(top - k, 0.0)
    gammaln = scipy.special.gammaln
    logs = gammaln(top + 1) - gammaln(k + 1) - gammaln(inside + 1)
    return np.where(top >= k, logs, -np.inf)


@_estimator("pitman")
def pitman(sizes: np.ndarray, fraction: float) -> Estimate:
    """Return population uniques by Pitman's sampling formula (Pitman 1995, Hoshino 2001).

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
    fraction : float
        n / N of a simple random sample.

    Returns
    -------
    Estimate
        The expected singletons of a partition of N people, with theta and alpha of greatest likelihood:
        ``N (theta + alpha)_{N-1} / (theta + 1)_{N-1}`` (rising factorials). The interval is by the delta method.

    Raises
    ------
    ParameterError
        If the fraction is not above 0 and at most 1.

    Notes
    -----
    The likelihood is that of the sample: a sample of such a partition is one, too. Not estimable where no record or
    every record is unique, and where the maximum is at the edge of the parameters or is not found.
    """
    size, count = _histogram(sizes)
    n, classes = int((size * count).sum()), int(count.sum())
    if size[-1] == 1:
        return _nothing("pitman", "every record of the sample is unique")
    if classes < 3:
        return _nothing("pitman", "the sample has fewer than 3 classes")
    people = n / fraction
    gammaln = scipy.special.gammaln

    def minus_log_likelihood(at: np.ndarray) -> float:
        alpha, theta = _pitman_parameters(at)
        # sum of log(theta + i alpha), i = 1 .. classes - 1
        if alpha > 1e-12:
            first = (classes - 1) * math.log(alpha)
            first += float(gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1))
        else:
            first = (classes - 1) * math.log(theta)
        second = float(gammaln(theta + n) - gammaln(theta + 1))
        third = float((count * (gammaln(size - alpha) - gammaln(1 - alpha))).sum())
        value = second - first - third
        return value if math.isfinite(value) else 1e300

    def uniques(at: np.ndarray) -> float:
        alpha, theta = _pitman_parameters(at)
        logs = (
            gammaln(theta + alpha + people - 1)
            + gammaln(theta + 1)
            - gammaln(theta + alpha)
            - gammaln(theta + people)
        )
        return float(people * math.exp(float(logs)))

    starts = [np.array([a, math.log(max(classes * s, 1.0))]) for a in (-2.0, 0.0, 1.5) for s in (0.1, 1.0)]
    why = "if classes follow Pitman's sampling formula"
    return _fitted(
        "pitman", minus_log_likelihood, uniques, starts, why, lambda at: _pitman_parameters(at)[0] < 0.999
    )


def _pitman_parameters(at: np.ndarray) -> tuple[float, float]:
    """Return alpha in (0, 1) from its logit, and theta above 0 from its logarithm."""
    # without a cut math.exp would raise an error above 709
    alpha = 1 / (1 + math.exp(-min(max(float(at[0]), -40.0), 40.0)))
    return alpha, math.exp(min(max(float(at[1]), -40.0), 40.0))


@_estimator("snb")
def slide_negative_binomial(sizes: np.ndarray, fraction: float) -> Estimate:
    """Return population uniques where classes are one person plus a negative binomial number (Chen, Keller-McNulty 1998).

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
    fraction : float
        Each person is in the sample with this probability.

    Returns
    -------
    Estimate
        ``K P(F = 1)``, K the number of classes of the population: the observed ones divided by the chance of being
        observed. The interval is by the delta method.

    Raises
    ------
    ParameterError
        If the fraction is not above 0 and at most 1.

    Notes
    -----
    With F - 1 negative binomial (a, b), the sample of a class is a Bernoulli(fraction) number plus a negative binomial
    (a, b / (1 - (1 - b)(1 - fraction))) one; the likelihood is that of classes that are seen. Not estimable where the
    maximum is at the edge of the parameters or is not found.
    """
    size, count = _histogram(sizes)
    classes = int(count.sum())
    if size[-1] == 1:
        return _nothing("snb", "every record of the sample is unique")
    if len(size) < 3:
        return _nothing("snb", "the classes of the sample have fewer than 3 sizes")

    def seen(a: float, b: float) -> tuple[float, float]:
        """Return the parameter of the sample's part, and the chance that a class is not observed."""
        inside = b / (1 - (1 - b) * (1 - fraction))
        return inside, (1 - fraction) * math.exp(a * math.log(inside))

    def minus_log_likelihood(at: np.ndarray) -> float:
        a, b = _snb_parameters(at)
        inside, unseen = seen(a, b)
        chance = (1 - fraction) * _negative_binomial(size, a, inside)
        chance = chance + fraction * _negative_binomial(size - 1, a, inside)
        if not (chance > 0).all() or unseen >= 1:
            return 1e300
        return float(classes * math.log1p(-unseen) - (count * np.log(chance)).sum())

    def uniques(at: np.ndarray) -> float:
        a, b = _snb_parameters(at)
        return classes / (1 - seen(a, b)[1]) * math.exp(a * math.log(b))

    starts = [np.array([math.log(a), b]) for a in (0.05, 0.5, 3.0) for b in (-6.0, -3.0, 0.0)]
    why = "if classes are one person plus a negative binomial number"
    return _fitted("snb", minus_log_likelihood, uniques, starts, why, lambda at: abs(float(at[1])) < 25)


def _snb_parameters(at: np.ndarray) -> tuple[float, float]:
    """Return a above 0 from its logarithm, b in (0, 1) from its logit."""
    return math.exp(min(max(float(at[0]), -30.0), 30.0)), 1 / (
        1 + math.exp(-min(max(float(at[1]), -30.0), 30.0))
    )


def _negative_binomial(number: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return P(X = number) for the number X of failures before a successes of probability b."""
    special = scipy.special
    log_choose = -special.betaln(a, number + 1.0) - np.log(a + number)
    chance: np.ndarray = np.exp(log_choose + special.xlogy(a, b) + special.xlog1py(number, -b))
    return chance


def _fitted(
    model: str,
    minus_log_likelihood: Callable[[np.ndarray], float],
    uniques: Callable[[np.ndarray], float],
    starts: list[np.ndarray],
    why: str,
    inside: Callable[[np.ndarray], bool],
) -> Estimate:
    """Return the estimate at the greatest likelihood of two parameters; not estimable where there is no proper maximum."""
    best = None
    for start in starts:
        fit = scipy.optimize.minimize(
            minus_log_likelihood, start, method="Nelder-Mead",
            options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 2000, "maxfev": 4000},
        )  # fmt: skip
        # 1e300 stands for parameters without any likelihood
        if fit.success and fit.fun < 1e299 and (best is None or fit.fun < best.fun - 1e-9):
            best = fit
    if best is None:
        return _nothing(model, "the likelihood has no maximum that could be found")
    at = np.asarray(best.x)
    curve = _hessian(minus_log_likelihood, at)
    # parameters are cut off at 30 on the scales of the search
    if np.abs(at).max() > 29 or not inside(at) or not (np.linalg.eigvalsh(curve) > 0).all():
        return _nothing(model, "the likelihood is greatest at the edge of the parameters: no convergence")
    value = uniques(at)
    if not math.isfinite(value):
        return _nothing(model, "the likelihood is greatest where no number follows from it")
    step = 1e-4
    slope = np.array([
        (math.log(max(uniques(at + step * e), 1e-300)) - math.log(max(uniques(at - step * e), 1e-300))) / (2 * step)
        for e in np.eye(2)
    ])  # fmt: skip
    spread = _Z * math.sqrt(max(float(slope @ np.linalg.solve(curve, slope)), 0.0))
    # the exponential of 710 is no float
    low, high = value * math.exp(-min(spread, 700.0)), value * math.exp(min(spread, 700.0))
    return Estimate(model, value, low, high, why)


def _hessian(of: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Return second differences in two variables, shape (2, 2)."""
    step = 1e-3
    e = np.eye(2) * step
    second = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            second[i, j] = (
                of(at + e[i] + e[j]) - of(at + e[i] - e[j]) - of(at - e[i] + e[j]) + of(at - e[i] - e[j])
            ) / (4 * step * step)
    return second


def dankar(sizes: np.ndarray, fraction: float) -> tuple[Estimate, list[Estimate]]:
    """Return the estimate that Dankar's rule picks (Dankar 2012, as ARX applies it), and all of them.

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
    fraction : float

    Returns
    -------
    chosen : Estimate
        Sampling fraction of at most 0.1: Pitman; else the smaller of Zayatz and SNB; Zayatz where a model is not
        estimable.
    all : list of Estimate
        Zayatz, Pitman, SNB.

    Raises
    ------
    ParameterError
        If the fraction is not above 0 and at most 1.
    """
    fraction = check_fraction(fraction)
    estimates = [zayatz(sizes, fraction), pitman(sizes, fraction), slide_negative_binomial(sizes, fraction)]
    by_zayatz, by_pitman, by_snb = estimates
    if fraction <= 0.1:
        return (by_pitman if by_pitman.is_there else by_zayatz), estimates
    if by_snb.is_there and by_zayatz.is_there and by_snb.uniques < by_zayatz.uniques:
        return by_snb, estimates
    return by_zayatz, estimates


def intrusion(sizes: np.ndarray, fraction: float) -> float:
    """Return the chance that a unique match with a sample is right, by data intrusion simulation (Skinner and Elliot 2002).

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
        Records of each class of the sample.
    fraction : float
        n / N of a simple random sample.

    Returns
    -------
    float
        ``f s_1 / (f s_1 + (1 - f) 2 s_2)``, f the fraction, s_1 and s_2 the classes of one and of two records; nan (not
        estimable) if no class has one or two records. O(classes).

    Raises
    ------
    ParameterError
        If the fraction is not above 0 and at most 1.

    Notes
    -----
    A random record is removed from the sample and put back with probability f. It then matches exactly one record if it
    was alone and is back, which is right, or one of two and is not back, which is wrong.
    """
    fraction = check_fraction(fraction)
    right = fraction * int((sizes == 1).sum())
    wrong = (1 - fraction) * 2 * int((sizes == 2).sum())
    return right / (right + wrong) if right + wrong > 0 else math.nan


def individual_risk(sizes: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Return the chance that a record of a class is linked correctly, by Benedetti and Franconi (1998).

    Parameters
    ----------
    sizes : numpy.ndarray, shape (classes,), int64
        f, records of each class in the sample; at least 1.
    people : numpy.ndarray, shape (classes,), float64
        The sum of their weights: about how many people of the population are in the class; at least f.

    Returns
    -------
    numpy.ndarray, shape (classes,), float64
        E(1 / F | f), F - f negative binomial with f successes of probability p = f / people. O(classes).

    Notes
    -----
    ``p^f / f 2F1(f, f; f + 1; 1 - p)``, after Euler's transformation ``p / f 2F1(1, 1; f + 1; 1 - p)``: a series of positive
    terms. For f of at most 3 the series may be slow, and the closed form with a logarithm is used.
    """
    f = np.asarray(sizes, np.float64)
    p = np.minimum(f / np.maximum(people, f), 1.0)
    rest = 1.0 - p
    term = np.ones(len(f))
    total = np.ones(len(f))
    slow = (f <= 3) & (rest > 0.5)
    live = np.flatnonzero(~slow & (rest > 0))
    step = 0
    while len(live):
        term[live] *= rest[live] * (step + 1) / (f[live] + 1 + step)
        total[live] += term[live]
        step += 1
        if step % 16 == 0:  # the rest of the series is at most a few hundred times its last term
            live = live[term[live] > 1e-15 * total[live]] if step < _TERMS else live[:0]
    risk: np.ndarray = p / f * total
    p, rest = p[slow], rest[slow]
    # with I(f) = integral of u^(f-1) / (p + rest u) over 0..1: p I(f) + rest I(f + 1) = 1 / f, and the risk is p I(f)
    integral = -np.log(p) / rest
    for order in (1, 2):
        integral = np.where(f[slow] > order, (1.0 / order - p * integral) / rest, integral)
    risk[slow] = p * integral
    return risk


_TERMS = 20_000
