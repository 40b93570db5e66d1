"""p-sensitivity, the kinds of l-diversity, and (alpha, k)-anonymity: how many values, and how often the most frequent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from scipy.sparse import csr_array

from anonflow.criteria.diversity.diversity import Column, DiversityCriterion, Per, Spread, diversity
from anonflow.criteria.diversity.diversity_target import (
    SHORT,
    SLACK,
    Target,
    deviation,
    log_excess,
    too_frequent,
)
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural
from anonflow.option import Option

L = Annotated[float, Option("l", least=1, step=0.5, start=2, sentence="Of the kinds of l-diversity.")]


def _enough_values(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    distinct = np.diff(groups.counts.indptr)
    return distinct >= parameters["p"], f"at least {int(distinct.min())} distinct values"


class _DistinctValues(Target):
    """At least p different values."""

    of_presence = True

    @property
    def distinct(self) -> int:
        return max(1, math.ceil(self.parameters["p"] - SLACK))

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distinct = (counts > 0).sum(axis=1)
        return float(self.parameters["p"]) - distinct, distinct >= self.parameters["p"]

    def best(self, counts: np.ndarray) -> str:
        return f"p is {len(counts)}"

    def surplus(self, counts: np.ndarray, size: np.ndarray) -> np.ndarray:
        return size

    def helpful(self, counts: np.ndarray) -> np.ndarray:
        return counts <= 0

    def unsafe(self, rows: int, risk: float) -> float:
        share = self.overall[self.overall > 0]
        return log_excess(_too_few(share, int(self.parameters["p"]), rows), risk)


_SUBSETS = 20_000
"""More sets of values are not tried."""


def _too_few(share: np.ndarray, p: int, rows: int) -> float:
    """Return an upper bound of the chance that independent rows show fewer than p values."""
    if len(share) < p:
        return 1.0
    # a share of 1 leaves nothing whose logarithm could be taken
    surest = float(np.exp(rows * np.log1p(-np.minimum(-np.sort(-share)[:p], 1 - 1e-16))).sum())
    if p < 2:
        return 0.0
    if math.comb(len(share), p - 1) > _SUBSETS:
        return surest
    among = sum(math.fsum(shares) ** rows for shares in combinations(share.tolist(), p - 1))
    return min(surest, among)


def p_sensitivity(
    evidence: Evidence,
    *,
    p: Annotated[
        float,
        Option(
            "p: distinct values", least=1, whole=True, start=2, sentence="Of p-sensitivity: distinct values."
        ),
    ],
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the number of distinct values."""
    return diversity(evidence, P_SENSITIVITY, p=p, column=column, per=per)


P_SENSITIVITY = DiversityCriterion(
    name="p-sensitivity",
    check=p_sensitivity,
    judge=_enough_values,
    target=_DistinctValues,
    sentence="The rows that may be a person's show at least p different values.",
    also={"distinct-l-diversity": {"l": "p"}},
)


def _top(groups: Spread) -> np.ndarray:
    """Return how often each group's most frequent value occurs."""
    return np.maximum.reduceat(groups.counts.data, groups.counts.indptr[:-1])


def _rare_enough(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    top, size = _top(groups), groups.sizes
    detail = f"the most frequent has a share of at most {float((top / size).max()):.4g}"
    # a very large whole number times the counts would overflow, and be small again
    return top * float(parameters["l"]) <= size * (1 + SLACK), detail


class _Frequency(Target):
    """No value on more than one in l records."""

    @property
    def most(self) -> float:
        """The largest share of a value."""
        return 1 / self.parameters["l"]

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top, l = counts.max(axis=1), float(self.parameters["l"])
        return l - size / np.maximum(top, 1e-300), top * l <= size * (1 + SLACK)

    def best(self, counts: np.ndarray) -> str:
        return _l_is(counts.sum() / counts.max())

    def surplus(self, counts: np.ndarray, size: np.ndarray) -> np.ndarray:
        top = counts.max(axis=1, initial=0)
        # the others stay, with as many records of the most frequent value as they allow
        stay = (size - top) * self.most / max(1 - self.most, SLACK)
        return np.ceil(top - stay * (1 + SLACK) - SHORT).astype(np.int64)

    def helpful(self, counts: np.ndarray) -> np.ndarray:
        return counts < counts.max() - 1e-9

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        return log_excess(too_frequent(share, rows, rows * self.most), risk)


def _l_is(most: float) -> str:
    return f"l is {math.floor(most * 10000) / 10000:g}"


def l_diversity(
    evidence: Evidence,
    *,
    l: L,
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the share of the most frequent value."""
    return diversity(evidence, L_DIVERSITY, l=l, column=column, per=per)


L_DIVERSITY = DiversityCriterion(
    name="l-diversity",
    check=l_diversity,
    judge=_rare_enough,
    target=_Frequency,
    sentence="No value is on more than one in l of the rows that may be a person's.",
    also={"frequency-l-diversity": {}},
)


def _rare_enough_among_k(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    top, size = _top(groups), groups.sizes
    good = (top <= parameters["alpha"] * size * (1 + SLACK)) & (size >= parameters.get("k", 1))
    fewest = plural(int(size.min()), "row")
    detail = f"the most frequent has a share of at most {float((top / size).max()):.4g} of at least {fewest}"
    return good, detail


class _LargestShare(_Frequency):
    """No value on more than a share of alpha."""

    @property
    def most(self) -> float:
        return self.parameters["alpha"]

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = counts.max(axis=1) / size
        return top - self.most, top <= self.most * (1 + SLACK)

    def best(self, counts: np.ndarray) -> str:
        share = math.ceil(counts.max() / counts.sum() * 10000) / 10000
        return f"share is {share:g}: no smaller alpha will do"


def alpha_k_anonymity(
    evidence: Evidence,
    *,
    alpha: Annotated[
        float,
        Option(
            least=0,
            most=1,
            step=0.05,
            start=0.5,
            label="alpha",
            sentence="Of alpha-k-anonymity: the largest share of one value.",
        ),
    ],
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the share of the most frequent value, among at least k rows (Wong 2006, Definition 2).

    Raises
    ------
    ParameterError
        If k is not known.
    """
    k = evidence.need_k("alpha-k-anonymity")
    return diversity(evidence, ALPHA_K_ANONYMITY, alpha=alpha, column=column, per=per, k=k)


ALPHA_K_ANONYMITY = DiversityCriterion(
    name="alpha-k-anonymity",
    check=alpha_k_anonymity,
    judge=_rare_enough_among_k,
    target=_LargestShare,
    sentence="At least k rows may be a person's, and no value is on more than a share of alpha of them.",
    also={"(alpha,k)-anonymity": {}},
)


def _mixed_enough(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    counts = groups.counts
    share = counts.data / np.repeat(groups.sizes, np.diff(counts.indptr))
    entropy = -np.add.reduceat(share * np.log(share), counts.indptr[:-1])
    detail = f"entropy of at least log {math.exp(max(float(entropy.min()), 0.0)):.4g}"
    return entropy >= math.log(parameters["l"]) - SLACK, detail


class _EvenShares(Target):
    """Entropy of at least log l."""

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        entropy = _entropy(counts / size[:, None])
        l = self.parameters["l"]
        return l - np.exp(entropy), entropy >= math.log(l) - SLACK

    def best(self, counts: np.ndarray) -> str:
        return _l_is(math.exp(float(_entropy((counts / counts.sum())[None, :])[0])))

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        # no share above 1 / l makes an entropy of at least log l, too
        if too_frequent(share, rows, rows * (1 / self.parameters["l"])) <= risk:
            return 0.0
        values = max(len(share), 2)
        # beyond, the bound falls again, and the worst is an entropy of 0
        moved = min(1 - 1 / values, values * deviation(share, rows, risk) / 2)
        mixed = -moved * math.log(moved) - (1 - moved) * math.log(1 - moved)
        slack = moved * math.log(values - 1) + mixed
        return max(0.0, math.log(self.parameters["l"]) + slack - float(_entropy(share[None, :])[0]))


def _entropy(share: np.ndarray) -> np.ndarray:
    logs = np.log(share, where=share > 0, out=np.zeros_like(share))
    return -(share * logs).sum(axis=1)


def entropy_l_diversity(
    evidence: Evidence,
    *,
    l: L,
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the entropy of the values."""
    return diversity(evidence, ENTROPY_L_DIVERSITY, l=l, column=column, per=per)


ENTROPY_L_DIVERSITY = DiversityCriterion(
    name="entropy-l-diversity",
    check=entropy_l_diversity,
    judge=_mixed_enough,
    target=_EvenShares,
    sentence="The values on these rows are as mixed as l equally frequent ones.",
)


def _tail_enough(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    good = _recursive(groups.counts, groups.sizes, int(parameters["l"]), float(parameters["c"]))
    return good, f"{plural(int((~good).sum()), 'group', 'are')} not recursively diverse"


def _recursive(counts: csr_array, size: np.ndarray, l: int, c: float) -> np.ndarray:
    """r_1 < c (r_l + ... + r_m), counts falling; false where there are fewer than l values."""
    length = np.diff(counts.indptr)
    group = np.repeat(np.arange(len(length)), length)
    falling = counts.data[np.lexsort((-counts.data, group))]
    starts = counts.indptr[:-1]
    rank = np.arange(len(falling)) - starts[group]
    head = np.add.reduceat(np.where(rank < l - 1, falling, 0), starts)
    top = falling[starts]
    return (length >= l) & (top < c * (size - head))


class _RareTail(Target):
    """r_1 < c (r_l + ... + r_m), counts falling."""

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        falling = -np.sort(-counts, axis=1)
        at = min(int(self.parameters["l"]) - 1, falling.shape[1])  # a larger l is met by no group either
        lacking = falling[:, 0] - self.parameters["c"] * falling[:, at:].sum(axis=1)
        enough = (counts > 0).sum(axis=1) > at
        # groups with too few values are furthest off
        missing = np.maximum(at + 1 - (counts > 0).sum(axis=1), 0)
        return lacking / size + missing, enough & (lacking < 0)

    def best(self, counts: np.ndarray) -> str:
        falling = -np.sort(-counts)
        c = self.parameters["c"]
        best = [l for l in range(1, len(falling) + 1) if falling[0] < c * falling[l - 1 :].sum()]
        return f"l is {max(best)}" if best else f"l does not exist for c = {c:g}; use a larger c"

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        epsilon = deviation(share, rows, risk)
        falling = -np.sort(-share)
        at = int(self.parameters["l"]) - 1
        tail = float(np.maximum(falling[at:] - epsilon, 0).sum())
        return max(0.0, float(falling[0]) + epsilon - self.parameters["c"] * tail + SHORT)


def recursive_l_diversity(
    evidence: Evidence,
    *,
    l: Annotated[float, Option("l", least=1, whole=True, start=2, sentence="Of recursive l-diversity.")],
    c: Annotated[float, Option("c", least=0, step=0.5, start=2, sentence="Of recursive l-diversity.")],
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """:func:`diversity` by the most frequent value against the rare ones."""
    return diversity(evidence, RECURSIVE_L_DIVERSITY, l=l, c=c, column=column, per=per)


RECURSIVE_L_DIVERSITY = DiversityCriterion(
    name="recursive-l-diversity",
    check=recursive_l_diversity,
    judge=_tail_enough,
    target=_RareTail,
    sentence="The most frequent value is rarer than c times the l-th and rarer ones together.",
)
