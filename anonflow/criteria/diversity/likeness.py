"""beta-likeness and delta-disclosure: each value's share against that of the whole table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
import scipy

from anonflow.criteria.diversity.diversity import Column, DiversityCriterion, Per, Spread, diversity
from anonflow.criteria.diversity.diversity_target import SLACK, Target, log_excess, more_than, too_frequent
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import Option

Beta = Annotated[
    float,
    Option(
        "beta",
        least=0,
        step=0.5,
        start=1,
        sentence="Of the kinds of beta-likeness: by how much of its share a value may be more frequent.",
    ),
]


def _shares_against_table(groups: Spread) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every value of a group, its share there divided by that of the whole table, and the latter."""
    counts = groups.counts
    whole = groups.overall / max(int(groups.overall.sum()), 1)
    usual = whole[counts.indices]
    share = counts.data / np.repeat(groups.sizes, np.diff(counts.indptr))
    # the ratio is infinite for a value that the table does not have
    return np.divide(share, usual, out=np.full(len(share), np.inf), where=usual > 0), usual


def _beta_like(
    groups: Spread, parameters: Mapping[str, Any], enhanced: bool = False
) -> tuple[np.ndarray, str]:
    """(p - q) / q <= beta of every value; enhanced: also <= -ln q."""
    ratio, usual = _shares_against_table(groups)
    most = np.full(len(ratio), float(parameters["beta"]))
    if enhanced:
        with np.errstate(divide="ignore"):
            most = np.minimum(most, -np.log(usual))
    excess = np.where(ratio > 1, ratio - 1 - most * (1 + SLACK), -1.0)
    over = np.maximum.reduceat(excess, groups.counts.indptr[:-1])
    highest = max(float(ratio.max()) - 1, 0.0)
    return over <= SLACK, f"no value is more than {highest:.4g} times its share of the table more frequent"


class _Likeness(Target):
    """No value more than 1 + beta times as frequent as in the whole table."""

    of_shares = True

    def most(self, usual: np.ndarray) -> np.ndarray:
        """Return the largest relative gain of values with these shares of the whole table."""
        return np.full(len(usual), self.parameters["beta"])

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        usual = self.overall[self.overall > 0]
        ratio = _share_ratios(self.overall, counts, size)
        over = np.where(ratio > 1, ratio - 1 - self.most(usual) * (1 + SLACK), -1.0).max(axis=1)
        return over, over <= SLACK

    def best(self, counts: np.ndarray) -> str:
        return "beta is any: the whole table is as frequent as itself"

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        return log_excess(too_frequent(share, rows, rows * share * (1 + self.most(share))), risk)


def _share_ratios(overall: np.ndarray, counts: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the share of each value of the table in groups, shape (g, V'), divided by that of the whole table."""
    in_table = overall > 0
    return (counts / size[:, None])[:, in_table] / overall[in_table]


class _EnhancedLikeness(_Likeness):
    """The same, at most by -ln q for a value of share q."""

    def most(self, usual: np.ndarray) -> np.ndarray:
        """Return the same, at most -ln of the share."""
        return np.minimum(super().most(usual), -np.log(usual))


def beta_likeness(
    evidence: Evidence,
    *,
    beta: Beta,
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by how much more frequent a value is than in the whole table (Cao, Karras 2012, Definition 2)."""
    return diversity(evidence, BETA_LIKENESS, beta=beta, column=column, per=per)


BETA_LIKENESS = DiversityCriterion(
    name="beta-likeness",
    check=beta_likeness,
    judge=_beta_like,
    target=_Likeness,
    sentence="No value is, on these rows, more than 1 + beta times as frequent as in the whole table.",
    also={"basic-beta-likeness": {}},
)


def enhanced_beta_likeness(
    evidence: Evidence,
    *,
    beta: Beta,
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the same, at most -ln q for a value of share q (Cao, Karras 2012, Definition 3)."""
    return diversity(evidence, ENHANCED_BETA_LIKENESS, beta=beta, column=column, per=per)


ENHANCED_BETA_LIKENESS = DiversityCriterion(
    name="enhanced-beta-likeness",
    check=enhanced_beta_likeness,
    judge=partial(_beta_like, enhanced=True),
    target=_EnhancedLikeness,
    sentence="As beta-likeness, and a frequent value gains less: at most -ln of its share of the whole table.",
)


def _delta_disclosed(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    """|ln(p / q)| < delta of every value of the table; a value that a group lacks is infinitely far."""
    ratio, _ = _shares_against_table(groups)
    far = np.maximum.reduceat(np.abs(np.log(ratio)), groups.counts.indptr[:-1])
    lacking = np.diff(groups.counts.indptr) < int((groups.overall > 0).sum())
    far[lacking] = np.inf
    detail = f"the log of a share against the whole table's is at most {float(far.max()):.4g}"
    if lacking.any():
        detail = f"{plural(int(lacking.sum()), 'group', 'lack')} a value of the table"
    return far < parameters["delta"], detail


class _Disclosure(Target):
    """Every value as frequent as in the whole table, up to a factor below e to the delta."""

    of_shares = True

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratio = _share_ratios(self.overall, counts, size)
        lacking = (ratio <= 0).sum(axis=1)
        far = np.abs(np.log(np.where(ratio > 0, ratio, 1.0))).max(axis=1)
        # groups that lack most values are furthest off
        delta = self.parameters["delta"]
        return np.maximum(far - delta, 0.0) + lacking, (far < delta) & (lacking == 0)

    def best(self, counts: np.ndarray) -> str:
        return "delta is any above 0: the whole table is as frequent as itself"

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        delta = self.parameters["delta"]
        # strictly between: counts at the bounds themselves fail
        high = np.ceil(rows * share * math.exp(delta) * (1 - SLACK)) - 1
        low = np.floor(rows * share * math.exp(-delta) * (1 + SLACK))
        chance = float((more_than(high, rows, share) + scipy.special.bdtr(low, rows, share)).sum())
        return log_excess(chance, risk)

    @classmethod
    def check_k(cls, column: str, values: int, k: int) -> None:
        """Refuse a column with more than k values: every class shows each of them.

        Raises
        ------
        ParameterError
            With what to do.
        """
        if values > k:
            raise ParameterError(
                f"delta-disclosure requires every value in every class: column {column!r} has {values} values, more than "
                f"k = {k}; use a larger k, fewer values, or beta-likeness"
            )


def delta_disclosure(
    evidence: Evidence,
    *,
    delta: Annotated[
        float,
        Option(
            "delta",
            least=0,
            step=0.1,
            start=1,
            sentence="Of delta-disclosure: what the log of a share against the whole table's must stay below.",
        ),
    ],
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the log of a value's share against the whole table's (Brickell, Shmatikov 2008, Definition 3).

    Raises
    ------
    ParameterError
        If the table has more values than k: the criterion wants every value in every class.
    """
    for name in [column] if column is not None else evidence.table.sensitive:
        if evidence.k is not None and name in evidence.table.frame.columns:
            values = int(evidence.table.frame[name].nunique(dropna=False))
            _Disclosure.check_k(name, values, evidence.k)
    return diversity(evidence, DELTA_DISCLOSURE, delta=delta, column=column, per=per)


DELTA_DISCLOSURE = DiversityCriterion(
    name="delta-disclosure",
    check=delta_disclosure,
    judge=_delta_disclosed,
    target=_Disclosure,
    sentence="Every value of the table is on these rows, as frequent as there up to a factor below e to the delta.",
    also={"delta-disclosure-privacy": {}},
)
