"""beta-likeness, delta-disclosure and (alpha, k)-anonymity: made, verified, and refused where no release has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.diversity.target import check_diversity, target_of
from anonflow.errors import InfeasibleError, ParameterError
from tests.naive import criteria as naive
from tests.strategies import loop

QUIET = pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
REQUESTS: list[tuple[str, dict[str, float]]] = [
    ("beta-likeness", {"beta": 0.6}),
    ("enhanced-beta-likeness", {"beta": 2.0}),
    ("delta-disclosure", {"delta": 1.2}),
    ("alpha-k-anonymity", {"alpha": 0.6}),
]


def people(n: int = 90) -> af.Table:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"age": rng.integers(20, 60, n), "ill": rng.choice(list("aaabbc"), n)})
    schema = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    return af.Table(frame, schema)


@QUIET
@pytest.mark.parametrize("algorithm", ["mondrian", "greedy"])
@loop(("criterion", "parameters"), REQUESTS)
def test_what_is_asked_is_made(algorithm: str, criterion: str, parameters: dict[str, float]) -> None:
    table = people()
    anon = af.anonymize(table, algorithm, k=4, seed=1)
    diverse = af.diversify(anon, criterion, seed=1, risk=0.05, **parameters)  # type: ignore[arg-type]
    release = diverse.release(seed=2**127)
    assert af.verify(table, release, ["covers", {criterion: parameters}], k=4)
    if algorithm == "mondrian":
        groups = release.frame.groupby("age")["ill"].apply(list)
        whole = table.frame["ill"].tolist()
        judge: dict[str, Any] = {
            "beta-likeness": lambda shown: naive.beta_like(shown, whole, 0.6),
            "enhanced-beta-likeness": lambda shown: naive.beta_like(shown, whole, 2.0, True),
            "delta-disclosure": lambda shown: naive.delta_disclosed(shown, whole, 1.2),
            "alpha-k-anonymity": lambda shown: naive.alpha_k(shown, 0.6, 4),
        }
        assert all(judge[criterion](shown) for shown in groups)


@loop("seed", range(12))
def test_no_gap_exactly_where_the_criterion_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.choice(list("abc"), 30)
    overall = np.array([np.mean(whole == v) for v in "abc"])
    for criterion, parameters in REQUESTS:
        target = target_of(criterion, parameters, overall)
        for _ in range(10):
            shown = rng.choice(list("abc"), int(rng.integers(1, 9))).tolist()
            counts = np.array([[shown.count(v) for v in "abc"]])
            beta, delta = parameters.get("beta", 0.0), parameters.get("delta", 0.0)
            holds = {
                "beta-likeness": naive.beta_like(shown, whole.tolist(), beta),
                "enhanced-beta-likeness": naive.beta_like(shown, whole.tolist(), beta, True),
                "delta-disclosure": naive.delta_disclosed(shown, whole.tolist(), delta),
                "alpha-k-anonymity": naive.alpha_k(shown, parameters.get("alpha", 1.0), 1),
            }[criterion]
            assert (target.gaps(counts)[0] == 0) == holds, (criterion, shown)


def test_what_no_release_can_have_is_one_sentence() -> None:
    table = people()
    anon = af.anonymize(table, "mondrian", k=2, seed=1)
    with pytest.raises(ParameterError, match="'ill' has 3 values, more than k = 2; use a larger k"):
        af.diversify(anon, "delta-disclosure", delta=1)
    with pytest.raises(InfeasibleError, match="largest feasible share is"):
        check_diversity(table, "alpha-k-anonymity", alpha=0.2)
    for criterion, parameters, words in (
        ("beta-likeness", {"beta": -1}, "a number of at least 0"),
        ("alpha-k-anonymity", {"alpha": 1.5}, "at least 0 and at most 1"),
        ("delta-disclosure", {}, "needs delta"),
        ("beta-likeness", {"beta": 1, "t": 0.2}, "takes beta, not t"),
    ):
        with pytest.raises(ParameterError, match=words):
            af.diversify(anon, criterion, **parameters)  # type: ignore[arg-type]
