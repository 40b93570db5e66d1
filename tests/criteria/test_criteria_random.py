"""The verifier against brute force on random small tables, untouched and mutated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from anonflow.criteria import verify
from anonflow.table import Table
from tests.cases.criteria import (
    VALUES,
    anonymization,
    naive_case,
    random_generalization,
    random_table,
    release_frame,
)
from tests.naive.criteria import Case, disjoint_assignments, edge_counts, on_perfect_matchings, regular_flow
from tests.strategies import seeded

NAMES = ["covers", "k-anonymity", "(1,k)", "(k,1)", "(k,k)", "k-concealment", "k-regular"]


def mutate(frame: pd.DataFrame, table: Table, rng: np.random.Generator) -> str:
    """Narrow a cell, copy a row over another, swap two cells, move a sensitive value, or blank a row."""
    names = list(table.qi_columns)
    manner = str(
        rng.choice(["none", "narrow", "copy", "swap", "move", "blank"], p=[0.3, 0.2, 0.1, 0.2, 0.1, 0.1])
    )
    i, j = rng.integers(0, len(frame), size=2)
    a = int(rng.integers(0, len(names)))
    if manner == "narrow":
        values = sorted(set(table.frame[names[a]]))
        frame.iat[i, a] = str(rng.choice(values))
    elif manner == "copy":
        frame.iloc[i] = frame.iloc[j]
    elif manner == "swap":
        frame.iat[i, a], frame.iat[j, a] = frame.iat[j, a], frame.iat[i, a]
    elif manner == "move":
        frame.iat[i, len(names)] = str(rng.choice(["1", "2", "5"]))
    elif manner == "blank":
        frame.iloc[i] = "*"
    return manner


def check_one(seed: int) -> tuple[str, str, dict[str, bool]]:
    """A release, as it is published and mutated, and the anonymization, whose rows are in order."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 8)), int(rng.integers(2, 4))
    table, kinds = random_table(rng, n)
    result, manner = random_generalization(rng, table, k)
    frame = release_frame(table, result, rng)
    done = mutate(frame, table, rng)
    check = verify(table, frame, NAMES, k=k)
    want = naive_case(table, kinds, frame, k).answers()
    assert {finding.criterion: finding.holds for finding in check} == want, (seed, manner, done)
    for finding in check:
        assert finding.holds == (finding.failed == 0)
        assert len(finding.positions) == min(finding.failed, 20)
    suppressed = result.suppressed_rows()
    ordered = verify(table, anonymization(result, k, suppressed=suppressed), NAMES)
    decoded = result.decode(suppressed=suppressed)
    want = naive_case(table, kinds, decoded, k, own=True, others=False).answers()
    assert {finding.criterion: finding.holds for finding in ordered} == want, (seed, manner)
    return manner, done, want


@seeded(500, 20)
def test_verifier_agrees_with_brute_force(seeds: range) -> None:
    answers = [check_one(seed) for seed in seeds]
    if len(answers) < 400:
        return
    assert {done for _, done, _ in answers} == {"none", "narrow", "copy", "swap", "move", "blank"}
    for name in NAMES:
        holds = sum(want[name] for _, _, want in answers)
        assert name == "covers" or 0.05 < holds / len(answers) < 0.95, name


def test_the_naive_references_agree_with_each_other() -> None:
    rng = np.random.default_rng(5)
    seen = []
    for _ in range(300):
        n, k = int(rng.integers(2, 6)), int(rng.integers(2, 4))
        graph = (rng.random((n, n)) < rng.choice([0.5, 0.75, 0.95])).tolist()
        blank = (rng.random(n) < 0.2).tolist()
        seen.append(disjoint_assignments(graph, k, blank))
        assert seen[-1] == (regular_flow(graph, k, blank) == n * k)
        _, counts = edge_counts(graph)
        assert on_perfect_matchings(graph) == [[count > 0 for count in row] for row in counts]
    assert 30 < sum(seen) < 270


def test_regular_implies_concealed_implies_candidates() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        n, k = int(rng.integers(3, 7)), int(rng.integers(2, 4))
        graph = (rng.random((n, n)) < rng.choice([0.5, 0.75, 0.95])).tolist()
        case = Case(graph, [("x",)] * n, k)
        assert not case.regular() or case.concealment()
        assert not case.concealment() or case.one_k()


assert VALUES
