"""`tests/checks.py` and the verifier say the same of whatever an algorithm could return."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.criteria import verify
from anonflow.generalization import Generalization
from tests.cases.criteria import random_generalization, random_table, regular_matches
from tests.checks import DEFINITIONS, adjacency, check_result, on_perfect_matchings
from tests.naive.criteria import edge_counts
from tests.strategies import seeded

APART = ("k-regular", "key-sets(of=1, hidden=any, rows=matches)", "key-sets(of=2, hidden=any, rows=matches)")
"""Definitions that have tests of their own: of matches, and of sets of columns, which are a finding each."""


@seeded(300, 40)
def test_the_definitions_and_the_verifier_agree(seeds: range) -> None:
    seen: set[tuple[str, bool]] = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 30)), int(rng.integers(2, 5))
        table, _ = random_table(rng, n)
        produced, manner = random_generalization(rng, table, k)
        if manner == "star":
            continue  # what suppressed records need is a matter of its own
        result = SimpleNamespace(
            table=table,
            generalization=produced,
            k=k,
            matches=None,
            classes=None,
            suppressed=np.zeros(n, bool),
            frame=lambda boxes=produced: boxes.decode(),
        )
        covers = adjacency(table.records, produced)
        definitions = {name: holds for name, holds in DEFINITIONS.items() if name not in APART}
        findings = verify(table, result, list(definitions)).findings
        for finding, (name, holds) in zip(findings, definitions.items(), strict=True):
            assert finding.holds == holds(result, covers, k), (seed, name)
            seen.add((name, finding.holds))
    assert len(seen) == 10


def test_cycles_are_matches() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        covers = rng.random((n, n)) < 0.4
        np.fill_diagonal(covers, True)
        _, counts = edge_counts(covers.tolist())
        assert np.array_equal(on_perfect_matchings(covers), np.array(counts) > 0)


def test_a_sound_result_passes_and_spoiled_ones_do_not() -> None:
    rng = np.random.default_rng(1)
    table, _ = random_table(rng, 24)
    while min(domain.size for domain in table.domains) < 3:
        table, _ = random_table(rng, 24)
    matches = regular_matches(rng, 24, 3)
    boxes = Generalization.join_of(table.records, matches)

    def result(**changes: object) -> SimpleNamespace:
        fields: dict[str, object] = {
            "table": table,
            "generalization": boxes,
            "k": 3,
            "matches": matches,
            "classes": None,
            "suppressed": np.zeros(24, bool),
            "guarantee": "k-regular",
            **changes,
        }
        shown = fields["generalization"]
        assert isinstance(shown, Generalization)
        return SimpleNamespace(**fields, frame=lambda: shown.decode(index=table.index))

    check_result(result())
    own = Generalization.of(table.records)
    twice = matches.copy()
    twice[:, 1] = twice[:, 0]
    spoiled = [
        {"generalization": own},
        {"k": 4},
        {"matches": twice},
        {"suppressed": np.arange(24) == 3},
        {"classes": np.arange(24)},
        {"guarantee": "k-anonymity"},
    ]
    for changes in spoiled:
        with pytest.raises(AssertionError):
            check_result(result(**changes))


def test_all_altered_rows_are_listed_with_a_certificate() -> None:
    """Rows with another quasi-identifier do not hide those with another value."""
    frame = pd.DataFrame({"age": [20, 21, 22, 40, 41, 42], "pay": list("xyyxyx")})
    schema = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "pay": {"role": "sensitive"}}
    table = af.Table(frame, schema)
    release = af.anonymize(table, "mondrian", k=3).release(seed=1 << 100)
    altered = release.frame.copy()
    young, old = (np.flatnonzero(altered["age"] == cell) for cell in ("20-22", "40-42"))
    altered.loc[young[0], "age"] = "40-42"
    altered.loc[old[:2], "pay"] = "z"
    positions = verify(table, altered, ["covers"], 3, release.certificate).findings[0].positions
    assert sorted(positions) == sorted([young[0], *old[:2]])
