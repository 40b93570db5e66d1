"""What minimal generalization gives away: the attackers `downcoding` and `refinement` beside an enumeration of all tables."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import risk
from anonflow.errors import ParameterError
from anonflow.release import Release
from anonflow.risk.attackers import refinement
from anonflow.risk.attackers.downcoding import minimal_shares
from anonflow.risk.attackers.refinement import Rounds, possible_values
from anonflow.risk.attackers.row_types import RowTypes
from tests.cases.tables import mixed
from tests.naive import rounds as naive
from tests.strategies import loop

QI = {"role": "quasi-identifier", "kind": "hierarchy"}
TOWNS = {"North": ["Hull", "York"], "South": ["Bath", "Dover"]}
SEXES = ["f", "m"]
SCHEMA: dict[str, Any] = {
    "town": {**QI, "hierarchy": {"nested": {"*": TOWNS}}},
    "sex": {**QI, "hierarchy": {"nested": {"*": SEXES}}},
    "ill": {"role": "sensitive"},
}
LEAVES = [town for towns in TOWNS.values() for town in towns]
COLUMNS = [
    [
        {town: frozenset([town]) for town in LEAVES},
        {town: frozenset(towns) for towns in TOWNS.values() for town in towns},
        dict.fromkeys(LEAVES, frozenset(LEAVES)),
    ],
    [{sex: frozenset([sex]) for sex in SEXES}, dict.fromkeys(SEXES, frozenset(SEXES))],
]
N, K = 7, 2


def table_of(rows: list[tuple[str, ...]]) -> af.Table:
    frame = pd.DataFrame(rows, columns=["town", "sex"])
    return af.Table(frame.assign(ill=np.resize(["flu", "gout"], len(rows))), SCHEMA)


def some_rows(seed: int, n: int = N) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    towns, sexes = rng.choice(LEAVES, n, p=rng.dirichlet(np.ones(4))), rng.choice(SEXES, n)
    return [(str(town), str(sex)) for town, sex in zip(towns, sexes, strict=True)]


def released(
    table: af.Table, algorithm: str = "local-recoding", k: int = K, **options: Any
) -> tuple[Any, RowTypes]:
    release = af.anonymize(table, algorithm, k=k, seed=1, **options).release(seed=2**127)
    return release, RowTypes.of(risk.AttackContext.of(table, release, seed=1), "refinement", 10**6)


def cells_of(types: RowTypes, at: int) -> naive.Cells:
    leaves = [domain.labels for domain in types.rows.domains]
    return tuple(frozenset(leaves[a][types.rows.lo[a, at] : types.rows.hi[a, at] + 1]) for a in range(2))


@cache
def every_table() -> Any:
    return naive.values_by_release(COLUMNS, N, K)


# ------------------------------------------------------------------------------------- refinement


@pytest.mark.slow
def test_what_rounds_rule_out_is_impossible() -> None:
    """Over all tables with the same release no record has a value that is ruled out, and much of what is impossible is ruled out."""
    known = every_table()
    impossible = ruled_out = 0
    for seed in range(60):
        _, types = released(table_of(some_rows(seed)))
        key = frozenset((cells_of(types, at), int(size)) for at, size in enumerate(types.size))
        assert key in known
        rounds = Rounds(types.rows, types.size)
        for at in range(len(types.size)):
            cells = cells_of(types, at)
            answer = possible_values(rounds, at, types.within(at), K)
            assert answer is not None
            possible, _ = answer
            for domain, codes, cell, values in zip(
                types.rows.domains, possible, cells, known[key][cells], strict=True
            ):
                left = {label for label, good in zip(domain.labels, codes, strict=True) if good}
                assert values <= left <= cell
                impossible += len(cell - values)
                ruled_out += len(cell - left)
    assert ruled_out >= 0.5 * impossible > 0


@loop("seed", range(6))
def test_it_is_never_wrong_about_rounds(seed: int) -> None:
    table = table_of(some_rows(100 + seed, 60))
    for algorithm in ("local-recoding", "full-domain", "pattern-guided"):
        release, _ = released(table, algorithm, 4)
        result = af.attack(table, release, "refinement").iloc[0]
        assert "wrong" not in result["sentence"]


def test_numbers_and_positions_have_levels() -> None:
    rng = np.random.default_rng(3)
    ages = np.concatenate([rng.integers(20, 30, 300), rng.integers(30, 99, 60)])
    frame = pd.DataFrame(
        {"age": ages, "zip": rng.choice(["101", "102", "211", "213"], 360, p=[0.7, 0.1, 0.1, 0.1])}
    )
    schema: dict[str, Any] = {"age": {**QI, "kind": "numeric"}, "zip": {**QI, "kind": "positions"}}
    table = af.Table(frame, schema)
    for options in ({}, {"widths": {"age": [7, 14, 28]}}):
        release, types = released(table, k=5, **options)
        rounds = Rounds(types.rows, types.size, widths=options.get("widths"))
        assert rounds.visible
        assert len(rounds.nodes) > 1
        result = af.attack(table, release, {"refinement": options}).iloc[0]
        assert "wrong" not in result["sentence"]
    assert "finds none" in af.attack(table, release, "refinement")["sentence"][0]  # with other widths


def test_rows_of_other_methods_are_not_those_of_rounds() -> None:
    table = table_of(some_rows(5, 40))
    for algorithm in ("greedy", "mondrian", "k-member"):
        release, _ = released(table, algorithm, 4)
        result = af.attack(table, release, ["refinement", "downcoding"])
        assert ((result["success"] >= 0) & (result["success"] <= 1)).all()


# ------------------------------------------------------------------------------------- downcoding


@loop(
    ("prior", "size", "k"),
    [
        ([1, 1], 3, 2),
        ([1, 3], 5, 3),
        ([1, 2, 5], 5, 3),
        ([1, 3], 8, 2),
        ([2, 3, 4], 8, 2),
        ([0, 3, 4], 7, 2),
        ([0, 1], 6, 2),
        ([1, 1, 1, 1], 3, 2),
    ],
)
def test_shares_of_a_minimal_node(prior: list[int], size: int, k: int) -> None:
    chance = [Fraction(p, sum(prior)) for p in prior]
    expected = [float(share) for share in naive.shares(chance, size, k)]
    np.testing.assert_allclose(minimal_shares(np.array(chance, float), size, k), expected, atol=1e-12)


def test_shares_add_up_and_stay_finite() -> None:
    rng = np.random.default_rng(1)
    for size in (2, 9, 1_000, 300_000):
        for parts in (1, 2, 30):
            prior = rng.dirichlet(np.full(parts, 0.3))
            shares = minimal_shares(prior, size, 5)
            assert shares.sum() == pytest.approx(1)
            assert (shares >= 0).all()


def by_enumeration(rows: list[tuple[str, ...]], types: RowTypes, k: int) -> tuple[Fraction, Fraction] | None:
    """How often the finer cell is right, with minimality and without; None if guesses are as good as others, or classes too large."""
    weights = [{value: sum(row[c] == value for row in rows) for value in COLUMNS[c][0]} for c in range(2)]
    classes = [cells_of(types, at) for at in range(len(types.size))]
    right = [0, 0]
    for at, cells in enumerate(classes):
        size = int(types.size[at])
        if all(len(cell) == 1 for cell in cells):
            continue
        if size > 8 or (size >= 2 * k and len(cells[0]) * (k - 1) >= size):
            return None
        whole = all(len(cell) == len(column[0]) for cell, column in zip(cells, COLUMNS, strict=True))
        inside = [
            other
            for there, other in enumerate(classes)
            if there != at
            and types.size[there] >= k
            and all(o <= c for o, c in zip(other, cells, strict=True))
        ]
        members = [rows[i] for i, of in zip(types.original, types.type, strict=True) if of == at]
        with_it = naive.guess(cells, size, inside if size > k or whole else [], COLUMNS, weights, k)
        usual = naive.guess(cells, None, [], COLUMNS, weights, k)
        for place, guesses in enumerate((with_it, usual)):
            if len(guesses) > 1 and guesses[0][0] == guesses[1][0]:
                return None
            _, column, child = guesses[0]
            right[place] += sum(member[column] in child for member in members)
    return Fraction(right[0], len(rows)), Fraction(right[1], len(rows))


@pytest.mark.slow
def test_downcoding_agrees_with_every_record() -> None:
    compared = better = 0
    for seed in range(120):
        rows = some_rows(seed, 16)
        table = table_of(rows)
        release, types = released(table, k=3)
        expected = by_enumeration(rows, types, 3)
        if expected is None:
            continue
        result = af.attack(table, release, "downcoding").iloc[0]
        assert result["success"] == pytest.approx(float(expected[0]))
        assert result["baseline"] == pytest.approx(float(expected[1]))
        compared += 1
        better += expected[0] != expected[1]
    assert compared >= 10
    assert better >= 2


def test_a_class_inside_is_excluded() -> None:
    """Rows of North beside many of Hull: without minimality Hull is likeliest, and with it York is certain."""
    rows = [("Hull", "f")] * 10 + [("York", "f")] * 3 + [("York", "m")] * 3 + [("Bath", "f")] * 6
    table = table_of(rows)
    cells = [("Hull", "f")] * 10 + [("North", "*")] * 6 + [("Bath", "f")] * 6
    frame = pd.DataFrame(cells, columns=["town", "sex"]).assign(ill=table.frame["ill"])
    release = Release(frame, None, np.arange(len(rows)))
    result = af.attack(table, release, "downcoding", k=5).iloc[0]
    assert result["success"] > result["baseline"]
    assert "Hull" not in result["sentence"]
    # of six rows with two cells each: York of all and f of half of them, against Hull of none and f of half
    assert "it guesses 75.0% correctly, and 25.0% without" in result["sentence"]


# ------------------------------------------------------------------------------------- both


def test_a_seed_attacks_the_same_rows() -> None:
    table = table_of(some_rows(8, 80))
    release, _ = released(table, k=4)
    attackers = [{"refinement": {"targets": 20}}, {"downcoding": {"targets": 20, "distribution": False}}]
    chosen = [attacker for each in attackers for attacker in risk.attackers_of(each)]
    first, second = (af.attack(table, release, chosen, seed=9) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert (first["low"] < first["high"]).all()


@loop(
    ("attacker", "words"),
    [
        ({"refinement": {"targets": 0}}, "at least 1"),
        ({"downcoding": {"targets": True}}, "at least 1"),
        ({"downcoding": {"distribution": 3}}, "true or false"),
        ({"downcoding": {"k": 3}}, "targets and distribution"),
        ({"refinement": {"k": 3}}, "targets, loss and widths"),
        ({"refinement": {"loss": "none"}}, "loss"),
        ({"refinement": {"loss": 3}}, "loss"),
        ({"refinement": {"widths": 5}}, "widths"),
        ({"refinement": {"widths": {"age": 5}}}, "widths"),
        ({"refinement": {"widths": {"age": [0, 5]}}}, "widths"),
        ({"refinement": {"widths": {"age": ["5"]}}}, "widths"),
        ({"refinement": {"widths": {"age": [10, 5]}}}, "widths"),
    ],
)
def test_wrong_parameters_are_refused(attacker: Any, words: str) -> None:
    table = table_of(some_rows(1))
    with pytest.raises(ParameterError, match=words):
        af.attack(table, table.frame, attacker, k=2)


def test_what_cannot_be_attacked_is_refused() -> None:
    table = mixed(40)
    release = af.anonymize(table, "greedy", k=3, seed=1).release(seed=2**127)
    with pytest.raises(ParameterError, match="no levels"):
        af.attack(table, release, "refinement")
    assert af.attack(table, release, "downcoding")["targets"][0] == 40
    with pytest.raises(ParameterError, match="needs the true rows"):
        af.attack(table, release.frame, "downcoding", k=3)
    with pytest.raises(ParameterError, match="needs the original table"):
        af.attack(table.schema, release, "downcoding", k=3)


def test_only_steps_that_publish_the_same_again_are_asked_why() -> None:
    """Nobody's illness decided about these classes; of a freeform release a draw decides what rows show."""
    table = table_of(some_rows(8, 24))
    classes, freeform = (af.anonymize(table, name, k=3, seed=1) for name in ("k-member", "greedy"))
    result = af.attack(table, classes, risk.Minimality(exchanges=5)).iloc[0]
    assert result["success"] == result["baseline"]
    assert result["at_risk"] == 0
    with pytest.raises(ParameterError, match="a draw, or covers alone"):
        af.attack(table, freeform, risk.Minimality(exchanges=5))
    with pytest.raises(ParameterError, match="column names a published column besides"):
        af.attack(table, classes, risk.Minimality("town", exchanges=5))


def test_rows_that_are_too_wide_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(some_rows(8, 80))
    release, _ = released(table, k=4)
    monkeypatch.setattr(refinement, "MOST_PARTS", 0)
    result = af.attack(table, release, "refinement").iloc[0]
    assert result["success"] == 0
    assert "100.0% of the rows were not looked at" in result["sentence"]


def test_people_with_several_rows_and_boundaries() -> None:
    frame = table_of(some_rows(8, 80)).frame.assign(who=np.arange(80) // 2)
    units = af.Table(frame, SCHEMA | {"who": {"role": "unit"}})
    release, _ = released(units, k=4)
    result = af.attack(units, release, "downcoding").iloc[0]
    assert result["targets"] == 40
    with pytest.raises(ParameterError, match="units"):
        af.attack(units, release, "refinement")
    bounded = SCHEMA | {"town": {**SCHEMA["town"], "boundary": ["North", "South"]}}
    table = af.Table(frame.drop(columns="who"), bounded)
    release, _ = released(table, k=4)
    with pytest.raises(ParameterError, match="a boundary or a limit"):
        af.attack(table, release, "refinement")
    assert 0 <= af.attack(table, release, "downcoding")["success"][0] <= 1


def test_who_knows_some_columns_only() -> None:
    table = table_of(some_rows(8, 80))
    release, _ = released(table, k=4)
    result = af.attack(table, release, ["downcoding", "refinement"], sets=[["town"], ["sex"]])
    assert list(result["keys"]) == ["town", "town", "sex", "sex"]
    assert (result["success"] <= 1).all()


def test_a_release_that_hides_nothing_has_nothing_to_refine() -> None:
    table = table_of(some_rows(8, 80))
    bare = Release(table.frame.copy(), None, np.arange(80))
    result = af.attack(table, bare, ["downcoding", "refinement"], k=1)
    assert (result["success"] == 0).all()
    assert (result["at_risk"] == 0).all()
