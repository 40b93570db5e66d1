"""Signs of sampling weights: the names that statistical offices use, and the shape of the numbers."""

from __future__ import annotations

import re

import numpy as np

_NAME = re.compile(
    r"_*(fnlwgt|[pf]weight|wgt|wt|pwgtp|wgtp|perwt|hhwt|asecwt|wtfinl|finalwt|llcpwt|wtsurvy|wtssall|wtint\d*yr|wtmec\d*yr|wtper|earnwt|dweight|"
    r"pspwght|pweight|anweight|pondera\w*([-_ ]final\w*)?|pond|pondih|fexp\w*|fac[-_ ]?(exp|hog|per)\w*|factor[-_ ]?((de[-_ ]?)?expansi[oó]n|07)|extri\w*|"
    r"coef[-_ ]?pond\w*|phrf|hhrf|hrf|hochrechnungsfaktor|hochrechnung|gewichtungsfaktor|"
    r"(haushalts|personen|design|stichproben|hochrechnungs)[-_ ]?gewicht|peso[-_ ]?(muestral|pop|am|campionario|finale)|"
    r"fator[-_ ]?(de[-_ ]?)?expans[aã]o|ponderaci[oó]n|poids[-_ ]?((de[-_ ]?)?sondage|final\w*|cale\w*)|"
    r"(sampl\w*|survey|design|final|person|household|hh|expansion|calibrat\w*|grossing|raking)[-_ ]?(weight|wgt|wght|wt|factor))",
    re.IGNORECASE,
)
"""Names that offices give to sampling weights, and to nothing else."""

_AMBIGUOUS = re.compile(
    r"_*(weights?|wght|gewicht|peso|poids|vikt|v[aæ]gt|waga|vekt|paino|hmotnost|factor|exp[fr])\d*",
    re.IGNORECASE,
)
"""Names of sampling weights and of other things, such as the weight of a body."""

_REPLICATE = re.compile(
    r"_*(pwgtp|wgtp|repwtp?|repwgt|rep[-_ ]?w(eigh)?ts?|brr|fay|w_?fstr|bsw|wtrep)[-_ ]?\d+", re.IGNORECASE
)

_SKEWED = 3.0
"""The largest sampling weight is usually so many times the median at least."""

_BODY = 300.0
"""Numbers up to this, with at most one decimal, may be kilograms or pounds."""


_NEARLY = 0.05
"""How far the mean of scaled weights is from 1, at most."""


def weight_name(name: str) -> str | None:
    """Return what a name says about sampling weights: ``weight``, ``replicate``, ``maybe`` or nothing; a remark in brackets says nothing."""
    plain = re.sub(r"\s*\([^()]*\)$", "", name.strip()).replace("é", "e")
    if _REPLICATE.fullmatch(plain):
        return "replicate"
    if _NAME.fullmatch(plain):
        return "weight"
    return "maybe" if _AMBIGUOUS.fullmatch(plain) else None


def weight_shape(numbers: np.ndarray, named: bool = True) -> bool:
    """Return whether numbers look like sampling weights and not like weights of bodies, or amounts.

    Parameters
    ----------
    numbers : numpy.ndarray, shape (n,), float64
        Finite.
    named : bool, optional
        Whether the name is that of a weight. If it is not, most numbers have three decimals or more, which amounts do not have.

    Notes
    -----
    All are at least 1, because a record stands for itself at least. Most have two decimals or more, or the largest is beyond
    what scales show and far above the median.
    """
    if not len(numbers) or float(numbers.min()) < 1:
        return False
    skewed = float(numbers.max()) > max(_BODY, _SKEWED * float(np.median(numbers)))
    return _has_decimals(numbers, 2) or skewed if named else _has_decimals(numbers, 3) and skewed


def scaled_weights(numbers: np.ndarray) -> bool:
    """Return whether positive numbers look like sampling weights that were divided by their mean, as files of surveys have them.

    Some are below 1, their mean is nearly 1, and most have two decimals or more: no body weighs so little on average.
    """
    if not len(numbers) or not 0 < float(numbers.min()) < 1:
        return False
    return abs(float(numbers.mean()) - 1) <= _NEARLY and _has_decimals(numbers, 2)


def _has_decimals(numbers: np.ndarray, count: int) -> bool:
    """Return whether most numbers have so many decimals or more."""
    shifted = numbers * 10.0 ** (count - 1)
    # in floats 0.29 * 100 is no whole number
    return bool((np.abs(shifted - np.rint(shifted)) > 1e-9 * shifted).mean() >= 0.5)
