"""The local search on the heuristic's solution: never worse, never below the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.patterns.language import mask_costs, whole_costs
from anonflow.algorithms.patterns.pattern_guided import place
from anonflow.algorithms.patterns.row_choices import choices_of, searched
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.cases.patterns import TABLE_7, best, pattern_masks, table
from tests.cases.plain_kernels import plainly
from tests.strategies import examples, loop

ROWS = st.lists(st.tuples(*[st.sampled_from("xyz")] * 3), min_size=2, max_size=7)
PATTERNS = st.lists(
    st.sampled_from(["000", "001", "010", "100", "011", "101"]), min_size=1, max_size=4, unique=True
)


def tried(coded: Table, k: int, patterns: Any) -> tuple[int, int, np.ndarray, Any]:
    records = coded.records
    masks = pattern_masks(records.domains, patterns)
    whole, _ = whole_costs(records.domains, None)
    costs = mask_costs(masks, whole)
    _, used = place(records, masks, k)
    choices = choices_of(records, masks, costs, int(whole.sum()), k)
    before = int(np.where(used >= 0, np.append(costs, 0)[used], whole.sum()).sum())
    amount = searched(choices, choices.amount_of(used))
    return before, choices.cost_of(amount), amount, choices


@pytest.mark.slow
@examples(60)
@given(ROWS, st.integers(2, 3), PATTERNS)
def test_between_the_optimum_and_the_heuristic(
    rows: list[tuple[str, ...]], k: int, patterns: list[str]
) -> None:
    if len(rows) < k:
        return
    coded = table(pd.DataFrame(rows, columns=["a", "b", "c"]))
    before, after, amount, choices = tried(coded, k, patterns)
    assert best(rows, k, patterns, [1, 1, 1]) <= after <= before
    assert np.array_equal(np.bincount(choices.kind, amount, minlength=len(choices.rows)), choices.rows)
    inside = choices.instance >= 0
    sizes = np.bincount(choices.instance[inside], amount[inside]) if inside.any() else np.zeros(1)
    assert (sizes[sizes > 0] >= k).all()
    assert np.array_equal(amount, plainly(tried, coded, k, patterns)[2])
    anon = af.anonymize(coded, "pattern-guided", k=k, patterns=patterns, local_search=True)
    assert anon.facts["suppressed_entries"] == after
    assert anon.facts["saved"] == before - after
    assert af.verify(coded, anon, ["covers", "k-anonymity", "pattern"], k=k)


@loop("m", [3, 4, 5, 8])
def test_theorem_4_is_solved(m: int) -> None:
    """Where the heuristic is m - 1 times the optimum, the local search finds the optimum."""
    coded = table(datasets.theorem4(m))
    patterns = [list(pattern) for pattern in datasets.theorem4_patterns(m)]
    plain = af.anonymize(coded, "pattern-guided", k=m, patterns=patterns)
    moved = af.anonymize(coded, "pattern-guided", k=m, patterns=patterns, local_search=True)
    assert plain.facts["suppressed_entries"] == (m - 1) * m**2
    assert moved.facts["suppressed_entries"] == m**2


@pytest.mark.parametrize("k", [*(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4, 7)), 25])
def test_local_search_saves_weighted_cost(k: int) -> None:
    coded = table(datasets.nursery(classification=False))
    parameters: dict[str, Any] = {"patterns": {"at-most": 3}, "weights": {"parents": 2.5, "form": 0.5}}
    plain = af.anonymize(coded, "pattern-guided", k=k, **parameters)
    moved = af.anonymize(coded, "pattern-guided", k=k, **parameters, local_search=True)
    assert moved.facts["cost"] == plain.facts["cost"] - moved.facts["saved"] <= plain.facts["cost"]


@pytest.mark.data
@loop("k", [5, 10])
def test_cmc_nearer_to_the_optimum(k: int, data_folder: object) -> None:
    """Optima from the integer program (test_pattern_guided_optimal.py)."""
    coded = table(datasets.cmc())
    parameters: dict[str, Any] = {"patterns": {"at-most": 2, "fallback": "all"}}
    plain = af.anonymize(coded, "pattern-guided", k=k, **parameters).facts["suppressed_entries"]
    moved = af.anonymize(coded, "pattern-guided", k=k, **parameters, local_search=True).facts[
        "suppressed_entries"
    ]
    assert TABLE_7[k][1] <= moved < plain


@loop("value", [1, "yes", None])
def test_local_search_is_true_or_false(value: Any) -> None:
    coded = table(pd.DataFrame({"a": ["x", "x"]}))
    with pytest.raises(ParameterError, match="local_search must be true or false"):
        af.anonymize(coded, "pattern-guided", k=2, local_search=value)


def test_too_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.patterns.pattern_guided.LARGEST", 10)
    coded = table(pd.DataFrame({"a": list("xyxy"), "b": list("uvuv"), "c": list("ssss")}))
    with pytest.raises(ParameterError, match="too many for a local search"):
        af.anonymize(coded, "pattern-guided", k=2, local_search=True)
