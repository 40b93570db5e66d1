"""Units of privacy: k units per row for every method, what is refused, and what an attacker who looks for people reaches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.linkable import candidates, linked_columns
from anonflow.engine.report.held_out import held_out
from anonflow.errors import DataError, InfeasibleError, SchemaError
from anonflow.partition import kept_apart
from anonflow.risk.people import at_least_one

SEED = 2**100
SCHEMA = {
    "person": {"role": "unit"},
    "home": {"role": "household"},
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "city": {"role": "quasi-identifier", "kind": "suppression"},
    "ill": {"role": "sensitive"},
}


def visits(people: int = 40, most: int = 4, seed: int = 1) -> pd.DataFrame:
    """Rows of people who came several times; ill is the same on all of a person's rows."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(people), rng.integers(1, most + 1, people))
    n = len(unit)
    frame = pd.DataFrame(
        {
            "person": [f"p{one}" for one in unit],
            "home": [f"h{one // 3}" for one in unit],
            "age": rng.integers(20, 80, n),
            "city": rng.choice(["A", "B", "C"], n),
            "ill": [("flu", "cold", "cough")[one % 3] for one in unit],
        }
    )
    return frame.iloc[rng.permutation(n)].reset_index(drop=True)


def released(method: str, k: int = 4, **options: Any) -> tuple[af.Table, Any, Any]:
    table = af.Table(visits(), SCHEMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = af.anonymize(table, method, k=k, seed=SEED, **options)
        return table, made, made.release(seed=SEED + 1)


@pytest.mark.parametrize("method", list(REGISTRY))
def test_every_row_lists_k_units(method: str) -> None:
    """From the lists by a loop, and from the rows by the verifier."""
    table, made, release = released(method)
    unit = table.unit
    assert unit is not None
    if made.matches is not None:
        for j in np.flatnonzero(~made.suppressed):
            assert len(set(unit[made.matches[j]])) == len(made.matches[j])
    elif made.classes is not None:
        for label in np.unique(made.classes):
            mine = unit[made.classes == label]
            if 0 < made.suppressed[made.classes == label].sum() < 4:
                continue  # nothing is published of them
            assert max(np.bincount(mine)) / len(mine) <= 1 / 4 + 1e-12
    for subject in (made, release, release.frame):
        checked = af.verify(table, subject, k=4)
        assert checked, checked.frame()
        assert [one.criterion for one in checked.findings].count("units") == 1


def test_a_release_that_forgets_units_fails() -> None:
    """The same table without the role: some row lists one person twice, and the verifier says so."""
    frame = visits(most=8)
    table = af.Table(frame, SCHEMA)
    keys = {name: SCHEMA[name] for name in ("age", "city", "ill")}
    plain = af.anonymize(
        af.Table(frame.sort_values("person"), keys), "k-member", k=4, seed=SEED, order="input"
    )
    sorted_table = af.Table(frame.sort_values("person"), SCHEMA)
    (finding,) = af.verify(sorted_table, plain, "units", k=4).findings
    expected = 0
    for label in np.unique(plain.classes):
        mine = sorted_table.unit[plain.classes == label]
        expected += len(mine) * (max(np.bincount(mine)) / len(mine) > 1 / 4)
    assert finding.failed == expected
    assert bool(finding.holds) is bool(expected == 0)
    worst = af.anonymize(table, k=4, seed=SEED)
    matches = np.array(worst.matches)
    own = np.flatnonzero(table.unit == np.bincount(table.unit).argmax())
    matches[own[0], 1] = own[1]  # two of one person on one row
    (finding,) = [
        one
        for one in af.verify(table, worst.release(seed=SEED), "units", k=4, certificate=matches).findings
        if one.criterion == "units"
    ]
    assert not finding.holds


@pytest.mark.parametrize(
    ("rows", "k", "feasible"), [(5, 4, True), (5, 5, False), (10, 2, True), (11, 2, False)]
)
def test_a_unit_with_more_than_n_over_k_rows_is_infeasible(rows: int, k: int, feasible: bool) -> None:
    """20 rows, `rows` of them of one unit: k units per row can be had if and only if rows <= 20 / k."""
    frame = visits(people=20, most=1).assign(person=[0] * rows + list(range(1, 21 - rows)), home=0)
    table = af.Table(frame, SCHEMA)
    if feasible:
        made = af.anonymize(table, k=k, seed=SEED)
        assert af.verify(table, made)
    else:
        with pytest.raises(
            InfeasibleError, match=f"one unit has {rows} of 20 rows, more than n/k = {20 // k}"
        ):
            af.anonymize(table, k=k, seed=SEED)


def test_layers_keep_people_apart_and_are_large_enough() -> None:
    records = af.Table(visits(most=6), SCHEMA).records
    labels = kept_apart(records)
    assert records.units is not None
    pairs = set(zip(labels.tolist(), records.units.tolist(), strict=True))
    assert len(pairs) == records.n
    most = int(np.bincount(records.units).max())
    assert np.bincount(labels).min() >= records.n // most
    assert len(np.bincount(labels)) == most


def test_an_attacker_counts_people_and_households() -> None:
    table, _, release = released("k-member")
    row = af.attack(table, release, "unit").iloc[0]
    covering = 1.0 / af.risk.AttackContext.of(table, release).candidates()
    people: dict[int, float] = {}
    for chance, one in zip(covering, table.unit.tolist(), strict=True):
        people[one] = people.get(one, 1.0) * (1 - chance)
    risk = np.array([1 - people[one] for one in sorted(people)])
    assert row["targets"] == len(risk) == len(set(visits()["person"]))
    assert row["success"] == pytest.approx(risk.mean())
    assert row["worst"] == pytest.approx(risk.max())
    assert row["at_risk"] == int((risk > 1 / 4 + 1e-9).sum())
    assert f"Of {visits()['home'].nunique()} households somebody is named" in row["sentence"]
    assert "unit" in set(af.attack(table, release)["attacker"])


def at_risk_by_loops(table: af.Table, chance: np.ndarray) -> tuple[list[float], list[float]]:
    """The probability that somebody is named by one of the person's rows, and that somebody of a household is."""
    people: dict[Any, float] = {}
    homes: dict[Any, float] = {}
    whose = zip(table.identifiers["person"], table.identifiers["home"], strict=True)
    home_of = {}
    for (person, home), one in zip(whose, chance.tolist(), strict=True):
        people[person] = people.get(person, 1.0) * (1 - one)
        home_of[person] = home
    for person, missed in people.items():
        homes[home_of[person]] = homes.get(home_of[person], 1.0) * missed
    return [1 - missed for missed in people.values()], [1 - missed for missed in homes.values()]


def test_every_attacker_counts_people_and_households() -> None:
    """Those whose probabilities can be counted by loops have them; all have people as targets, and households beside."""
    table, made, release = released("k-member")
    context = af.risk.AttackContext.of(table, release)
    register = table.frame[["age", "city"]]
    attackers = [
        "prosecutor", "marketer", "linker", "unit", "homogeneity", "disco", "order",
        {"insider": {"c": 1}}, af.risk.Replayer(range(2), made), af.risk.Intersection([release]),
        af.risk.Journalist(register),
    ]  # fmt: skip
    seen = af.attack(table, release, attackers).set_index("attacker")
    people, homes = len(set(table.unit.tolist())), len(set(table.household.tolist()))
    assert people < table.n
    assert set(seen["targets"]) == {people}
    assert set(seen["households"]) == {homes}
    for name, among in (
        ("prosecutor", context.covering()),
        ("marketer", context.covering()),
        ("linker", context.candidates()),
    ):
        risk, of_homes = at_risk_by_loops(table, 1 / among)
        row = seen.loc[name]
        assert row["success"] == pytest.approx(max(risk) if name == "prosecutor" else np.mean(risk))
        assert row["worst"] == pytest.approx(max(risk))
        assert row["at_risk"] == sum(one > 1 / 4 + 1e-9 for one in risk)
        assert row["household_success"] == pytest.approx(np.mean(of_homes))
        assert row["household_worst"] == pytest.approx(max(of_homes))
        assert f"Of {homes} households somebody is named" in row["sentence"]
    in_register = [
        max(
            1 / sum(fits(row, other) for other in register.to_dict("records"))
            for row in release.frame.astype(str).to_dict("records")
            if fits(row, person)
        )
        for person in register.to_dict("records")
    ]
    assert seen.loc["journalist", "worst"] == pytest.approx(
        max(at_risk_by_loops(table, np.array(in_register))[0])
    )


def fits(row: dict[str, str], person: dict[str, Any]) -> bool:
    low, _, high = row["age"].partition("-")
    return int(low) <= person["age"] <= int(high or low) and row["city"] in ("*", person["city"])


@pytest.mark.parametrize("with_lists", [True, False])
def test_homogeneity_finds_people_by_any_of_their_rows(with_lists: bool) -> None:
    """From the classes by a loop: whose class shows one value, on any row of the person."""
    frame = visits(most=3)
    frame["ill"] = np.where(frame["age"] < 40, "flu", frame["ill"])
    table = af.Table(frame, SCHEMA)
    made = af.anonymize(table, "mondrian", k=3, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = made.release(seed=SEED + 1)
    of_class = frame.groupby(np.asarray(made.classes))["ill"].nunique()
    certain = of_class.loc[made.classes].to_numpy() == 1
    expected = len(set(frame["person"][certain]))
    assert 0 < expected < frame["person"].nunique()
    subject = release if with_lists else release.frame
    seen = af.attack(table, subject, "homogeneity", k=3).iloc[0]
    assert seen["targets"] == frame["person"].nunique()
    assert seen["at_risk"] == expected if with_lists else seen["at_risk"] <= expected
    fewer = af.attack(table, release.frame[:-9], ["homogeneity", "disco"], k=3, another_tool=True)
    assert (fewer["targets"] <= frame["person"].nunique()).all()


def test_without_units_and_households_nothing_is_added() -> None:
    keys = {name: SCHEMA[name] for name in ("age", "city", "ill")}
    table = af.Table(visits(), keys)
    made = af.anonymize(table, "k-member", k=4, seed=SEED)
    seen = af.attack(table, made, ["prosecutor", "linker"])
    assert "households" not in seen
    assert set(seen["targets"]) == {table.n}


def test_linkable_columns_add_up_a_persons_records() -> None:
    """A row whose list has two records of one person: the person's probability is their sum, by counting."""
    table = af.Table(visits(most=8), SCHEMA)
    keys = {name: SCHEMA[name] for name in ("age", "city", "ill")}
    release = af.anonymize(af.Table(visits(most=8), keys), "mondrian", k=8, seed=SEED).release(seed=SEED + 1)
    evidence = af.risk.AttackContext.of(table, release.frame, k=8).evidence
    (link,) = linked_columns(evidence, declared=["ill"])
    lists = candidates(evidence)
    own, shown = table.frame["ill"].tolist(), release.frame["ill"].tolist()
    several = 0
    for j, highest in enumerate(link.highest.tolist()):
        at = lists.row_list[j]
        mine = lists.originals[lists.offsets[at] : lists.offsets[at + 1]].tolist()
        people: dict[int, int] = {}
        for i in mine:
            if own[i] == shown[j]:
                people[int(table.unit[i])] = people.get(int(table.unit[i]), 0) + 1
        several += max(people.values()) > 1
        assert highest == pytest.approx(max(people.values()) / sum(people.values()))
    assert several


def test_what_is_constant_is_intersected() -> None:
    table, made, release = released("mondrian")
    found = af.risk.people.intersections(af.risk.AttackContext.of(table, release))
    shown: dict[int, set[str]] = {}
    for i, one in enumerate(table.unit.tolist()):
        values = set(table.frame["ill"][made.classes == made.classes[i]])
        shown[one] = shown.get(one, values) & values
    several = np.flatnonzero(np.bincount(table.unit) > 1)
    assert found["ill"].tolist() == [len(shown[one]) for one in several.tolist()]


def test_one_of_several_chances() -> None:
    assert at_least_one(np.array([0.5, 0.5, 0.25]), np.array([0, 0, 1])).tolist() == [0.75, 0.25]


def test_units_and_households_are_never_published() -> None:
    table, _, release = released("greedy")
    assert list(release.frame.columns) == ["age", "city", "ill"]
    assert table.unit_columns == ("person",)
    with pytest.raises(DataError, match="the schema says unit"):
        af.verify(table.schema, visits().astype(str), k=2)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"person": None}, "have no unit; every row needs one"),
        ({"home": None}, "have no household; every row needs one"),
        ({"home": "moved"}, "1 units are in several households"),
    ],
)
def test_units_that_are_none(change: dict[str, Any], problem: str) -> None:
    frame = visits()
    often = frame.index[frame["person"] == frame["person"].value_counts().index[0]][0]
    for name, value in change.items():
        frame.loc[often, name] = value
    with pytest.raises(DataError, match=problem) as caught:
        af.Table(frame, SCHEMA)
    assert "p1" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"other": {"role": "unit"}}, "column 'other': a second unit; a table has one"),
        ({"other": {"role": "household"}}, "column 'other': a second household"),
        ({"person": {"role": "insensitive"}}, "a household needs a column with the role unit"),
        ({"person": {"role": "unit", "kind": "numeric"}}, "only for the role quasi-identifier"),
    ],
)
def test_schemas_with_units_that_cannot_be(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        af.Schema({**SCHEMA, **columns})


def test_without_a_unit_column_the_criterion_and_the_attacker_say_what_they_need() -> None:
    keys = {name: SCHEMA[name] for name in ("age", "city", "ill")}
    table = af.Table(visits(), keys)
    made = af.anonymize(table, k=4, seed=SEED)
    (finding,) = af.verify(table, made, "units").findings
    assert finding.holds is None
    assert "role unit" in finding.detail
    with pytest.raises(af.errors.ParameterError, match="no column with the role unit"):
        af.attack(table, made, "unit")


@pytest.mark.parametrize("homes", [True, False])
def test_nobody_is_released_and_held_out(homes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: have many rows; those that are held out show what the other half tells, and the release seems to add nothing."""
    schema = SCHEMA if homes else {name: column for name, column in SCHEMA.items() if name != "home"}
    table = af.Table(visits(60), schema)
    made = af.anonymize(table, "k-member", k=3, seed=SEED)
    sides: list[af.Table] = []

    def noted(inside: af.Table, frame: pd.DataFrame, outside: af.Table, rng: Any) -> tuple[()]:
        sides.extend([inside, outside])
        return ()

    monkeypatch.setattr("anonflow.engine.report.held_out.three_questions", noted)
    held_out(made, SEED)
    name = "home" if homes else "person"
    inside, outside = (set(side.identifiers[name]) for side in sides)
    assert not inside & outside
    assert sum(side.n for side in sides) == table.n
    assert table.n // 3 <= sides[0].n <= table.n * 2 // 3


def test_the_card_says_what_people_and_households_risk() -> None:
    table, made, _ = released("k-member", 3)
    card = af.release_card(made, threshold=0.4, prices=False, seed=SEED)
    measured = next(line for line in card.lines if line.name == "measured")
    assert "Of 14 households somebody is named" in measured.says
    assert measured.verdict == "failed"
    assert [remedy.what for remedy in measured.remedies] == ["make one row of each unit"]
    assert card.worst == pytest.approx(af.attack(table, made, "unit")["worst"][0])
