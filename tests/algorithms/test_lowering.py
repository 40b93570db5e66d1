"""Classes for sets of columns: the promise by plain loops, no cell wider than it needs, and everything that does not go with it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms import lowering
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import ParameterError
from anonflow.kernels.classes.lowering import lower_cells
from tests.cases.column_sets import ROWS, TABLES, kinds, may_be, table
from tests.naive.compatible import fewest, names_nobody
from tests.strategies import examples

METHODS = tuple(name for name, method in REGISTRY.items() if "sets" in method.options and not method.of_sets)
KEEPS = "covers", "boundary", "guarantee"


def people_for(method: str, n: int, seed: int, **columns: Any) -> af.Table:
    """People with a column of every kind that the method takes."""
    if method in ("k-member", "mondrian"):
        return kinds(n, seed, **columns)
    frame = kinds(n, seed).frame.drop(columns="income")
    schema = kinds(n, seed, job={"kind": "suppression"}, **columns).schema.to_mapping()
    return af.Table(frame, {name: schema[name] for name in frame})


def covers(cell: str, value: Any) -> bool:
    """Whether a cell that may list ranges, values and codes covers a value."""
    number = str(value).isdigit() and len(str(value)) == 1
    return any(
        may_be(part, float(value) if number and part[0].isdigit() else value)
        for part in cell.strip("{}").split("|")
    )


def test_the_methods_of_classes_that_a_user_would_try_take_sets() -> None:
    assert {"k-member", "local-recoding", "mondrian", "pattern-guided"} <= set(METHODS)


@pytest.mark.parametrize("method", METHODS)
@examples(40)
@given(rows=TABLES, data=st.data())
def test_no_set_names_anybody_and_frequent_values_stay(
    method: str, rows: list[list[str]], data: st.DataObject
) -> None:
    q = len(rows[0])
    k, of = data.draw(st.integers(2, 4)), data.draw(st.integers(1, q))
    people, sets = table(rows), list(itertools.combinations(range(q), of))
    classes = af.anonymize(people, method, k=k, seed=1)
    anon = af.anonymize(people, method, k=k, of=of, seed=1)
    assert anon.guarantee == f"key-sets(of={of}, hidden=any, rows=matches)"
    assert anon.classes is None
    assert anon.matches is None
    left = int(classes.suppressed.sum())
    if not 0 < left < k:
        assert names_nobody(rows, anon.frame().to_numpy().tolist(), sets, k, matches=True)
    assert af.verify(people, anon, ["covers", "guarantee"], k=k)
    cells, joined = anon.frame().to_numpy(), classes.frame().to_numpy()
    values = np.array(rows, object)
    assert ((cells == "*") | (cells == values)).all() or method in ("k-member", "mondrian")
    assert anon.loss() <= classes.loss() + 1e-12 or (left and method == "pattern-guided")
    several = [len(set(column)) > 1 for column in zip(*rows, strict=True)]
    if method == "pattern-guided":
        assert anon.facts["suppressed_entries"] == (cells == "*")[:, several].sum()
    else:
        assert ((cells == joined) | (cells == values)).all()
        assert anon.facts["lowered_cells"] == (cells != joined)[:, several].sum()
    for i, c in np.argwhere(cells != values).tolist():
        if left == 0:
            shown = cells.copy()
            shown[i, c] = values[i, c]
            assert not names_nobody(rows, shown.tolist(), sets, k, matches=True)


@pytest.mark.parametrize("method", METHODS)
def test_sets_lose_clearly_less_than_all_columns_together(method: str) -> None:
    for seed in range(2):
        people = people_for(method, 40, seed)
        classes = af.anonymize(people, method, k=3, seed=1)
        anon = af.anonymize(people, method, k=3, of=2, seed=1)
        assert anon.loss() < 0.9 * classes.loss()


def test_ten_people_lose_the_fewest_cells() -> None:
    """An integer program proves that no fewer are enough; on all columns together 20 are hidden."""
    least = fewest(ROWS, list(itertools.combinations(range(4), 2)), 3)
    for method, sets in itertools.product(("pattern-guided", "local-recoding"), ({}, {"of": 2})):
        hidden = int((af.anonymize(table(ROWS), method, k=3, **sets).frame() == "*").sum(axis=None))
        assert hidden == (least if sets else 20), (method, sets)


@examples(40)
@given(rows=TABLES, data=st.data())
def test_rows_of_patterns_that_hide_few_columns(rows: list[list[str]], data: st.DataObject) -> None:
    q, k = len(rows[0]), data.draw(st.integers(2, 3))
    words = {
        "at-most": data.draw(st.integers(1, q)),
        "never": [f"c{c}" for c in data.draw(st.sets(st.integers(0, q - 1), max_size=q - 1))],
    }
    patterns = {word: value for word, value in words.items() if data.draw(st.booleans())} or "all"
    people = table(rows)
    try:
        anon = af.anonymize(people, "pattern-guided", k=k, of=2, patterns=patterns)
    except ParameterError:  # predicates that contradict each other
        reject()
    cells = anon.frame().to_numpy()[~anon.suppressed]
    if "at-most" in patterns:
        assert ((cells == "*").sum(axis=1) <= patterns["at-most"]).all()
    if "never" in patterns:
        assert not (cells[:, [int(name[1:]) for name in patterns["never"]]] == "*").any()
    assert af.verify(people, anon, ["covers", "guarantee"], k=k)
    if not 0 < int(anon.suppressed.sum()) < k:
        assert names_nobody(
            rows, anon.frame().to_numpy().tolist(), list(itertools.combinations(range(q), 2)), k, matches=True
        )


def test_a_column_that_is_never_hidden_does_not_let_rows_hide_all_others() -> None:
    people = table([["a", "a", "a"]] * 3 + [["a", "b", "b"]])
    anon = af.anonymize(people, "pattern-guided", k=2, of=2, patterns={"at-most": 1, "never": ["c0"]})
    assert af.verify(people, anon, ["covers", "guarantee", "pattern"], k=2)
    assert int((anon.frame()[~anon.suppressed] == "*").sum(axis=1).max()) <= 1


def test_sets_hide_no_more_than_classes() -> None:
    """The search for sets hid a cell more here, which hypothesis found."""
    people = table([list(row) for row in ("aaaa", "aaaa", "aaab", "abbc", "acca", "baaa")])
    classes = af.anonymize(people, "pattern-guided", k=2)
    anon = af.anonymize(people, "pattern-guided", k=2, of=2)
    assert af.verify(people, anon, ["covers", "guarantee", "pattern"], k=2)
    assert anon.loss() <= classes.loss()


def test_a_code_in_place_of_a_number_has_no_numbers() -> None:
    """In a column that patterns never hide it had all of them: the loss was too high, and the release warned of intervals that nobody sees."""
    frame = pd.DataFrame({"age": ["0", "19", "19", "N", "N", "0"], "town": [*"PPQQQP"]})
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "codes": ["N"]},
        "town": {"role": "quasi-identifier", "kind": "suppression"},
    }
    never = {"never": ["age"]}
    anon = af.anonymize(
        af.Table(frame, schema), "pattern-guided", k=2, sets=[["age"]], patterns=never, importance={"age": 1}
    )
    assert anon.frame().equals(frame)
    assert anon.loss("ncp") == 0
    assert af.verify(anon.table, anon.release(seed=2**127), ["covers", "guarantee"])


def test_weights_of_patterns_are_prices() -> None:
    people = table(ROWS)
    dear = af.anonymize(people, "pattern-guided", k=3, of=2, weights={"c0": 9, "c1": 9})
    equal = af.anonymize(people, "pattern-guided", k=3, of=2)
    hidden = [(anon.frame()[["c0", "c1"]] == "*").sum(axis=None) for anon in (dear, equal)]
    assert hidden[0] < hidden[1]
    stars = (dear.frame() == "*").sum()
    assert dear.facts["cost"] == 9 * (stars["c0"] + stars["c1"]) + stars["c2"] + stars["c3"]


def test_cells_of_levels_between_values_and_classes() -> None:
    people = people_for("local-recoding", 60, 1)
    anon = af.anonymize(people, "local-recoding", k=3, of=2, widths={"age": [5, 10]})
    assert {"coast", "south"} & set(anon.frame()["town"])
    assert anon.frame()["age"].str.fullmatch(r"[0-9]+-[0-9]+").any()


@pytest.mark.parametrize("method", METHODS)
def test_cells_of_important_columns_are_lowered_first(method: str) -> None:
    """Over several tables: with a number, a column has clearly fewer cells that differ from its values."""
    wide = np.zeros((2, 2), int)
    for seed in range(2):
        people = people_for(method, 50, seed)
        for way, importance in enumerate((None, {"town": 2, "job": 1})):
            anon = af.anonymize(people, method, k=3, of=2, seed=1, importance=importance)
            assert af.verify(people, anon, ["covers", "guarantee"], k=3)
            wide[way] += [(anon.frame()[name] != people.frame[name]).sum() for name in ("town", "job")]
    assert wide[1, 0] < 0.7 * wide[0, 0]


@pytest.mark.filterwarnings("ignore:intervals of 'age' end at a value:anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_column(method: str, subtests: Any) -> None:
    for seed, options in enumerate(({"of": 2}, {"of": 1}, {"sets": [["age", "town"], ["zip", "town"]]})):
        with subtests.test(options=options):
            people = people_for(method, 40, seed)
            anon = af.anonymize(people, method, k=3, seed=seed, **options)
            classes = af.anonymize(people, method, k=3, seed=seed)
            assert anon.loss() <= classes.loss()
            assert options.get("of") != 1 or anon.loss() < classes.loss()
            for subject in (anon, anon.release(seed=2**127)):
                assert af.verify(people, subject, ["covers", "guarantee"], k=3)
            names = list(people.qi_columns)
            sets = options.get("sets") or list(itertools.combinations(names, options.get("of", 2)))
            places = [[names.index(name) for name in columns] for columns in sets]
            originals = people.frame[names].to_numpy().tolist()
            if not classes.suppressed.any():
                assert names_nobody(
                    originals, anon.frame()[names].to_numpy().tolist(), places, 3, covers, matches=True
                )
            attacked = af.attack(people, anon.release(seed=2**127), sets=[list(columns) for columns in sets])
            assert attacked["worst"].max() <= 1 / 3 + 1e-9


def test_plain_kernels_and_small_batches_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    people = people_for("local-recoding", 60, 2)
    compiled = af.anonymize(people, "local-recoding", k=3, of=2)
    monkeypatch.setattr(lowering, "lower_cells_jit", lower_cells)
    monkeypatch.setattr(lowering, "MOST_COVERED", 500)
    pd.testing.assert_frame_equal(af.anonymize(people, "local-recoding", k=3, of=2).frame(), compiled.frame())


def test_a_large_table_begins_with_the_cells_that_sets_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "FROM_CLASSES", 0)
    for method in ("k-member", "mondrian", "local-recoding"):
        people = people_for(method, 60, 3)
        anon = af.anonymize(people, method, k=3, of=2, seed=1)
        assert af.verify(people, anon, ["covers", "guarantee"], k=3)
        assert anon.loss() < 0.9 * af.anonymize(people, method, k=3, seed=1).loss()


def test_a_column_in_no_set_is_published_as_it_is() -> None:
    people = kinds(60, 3)
    anon = af.anonymize(people, "k-member", k=3, sets=[["age", "town"]], seed=1)
    assert (anon.frame()["job"] == people.frame["job"]).all()
    assert (anon.frame()["zip"] == people.frame["zip"]).all()


def test_values_that_are_frequent_on_each_set_are_published(subtests: Any) -> None:
    """Also of the few records that a method suppresses because they fit no class."""
    frame = pd.DataFrame({"age": np.arange(40) % 7 + 20, "sex": list("FM") * 20, "town": list("abcd") * 10})
    qi = {"role": "quasi-identifier"}
    kind = {**qi, "kind": "suppression"}
    people = af.Table(frame, {"age": {**qi, "kind": "numeric"}, "sex": kind, "town": kind})
    assert af.anonymize(people, "local-recoding", k=3, seed=1).suppressed.any()
    for method in METHODS:
        with subtests.test(method=method):
            anon = af.anonymize(people, method, k=3, sets=[["age"], ["sex", "town"]], seed=1)
            assert anon.loss() == 0
            assert not anon.suppressed.any()


def test_limits_and_boundaries_are_kept() -> None:
    for method in ("k-member", "mondrian", "pattern-guided"):
        for age in ({"max-width": 4}, {"boundary": {"width": 5}} if method != "pattern-guided" else {}):
            people = people_for(method, 80, 4, age=age)
            anon = af.anonymize(people, method, k=3, of=2, seed=1)
            assert af.verify(people, anon, list(KEEPS), k=3), (method, age)


def test_patterns_that_a_row_could_leave_are_refused() -> None:
    people = table([list(row) for row in ("aab", "abb", "bba", "aab", "bbb")])
    within = af.anonymize(people, "pattern-guided", k=2, of=2, patterns={"at-most": 2}, seed=1)
    assert ((within.frame() == "*").sum(axis=1)[~within.suppressed] <= 2).all()
    with pytest.raises(ParameterError, match="hide less"):
        af.anonymize(people, "pattern-guided", k=2, of=2, patterns=["110", "000"])
    towns = people_for("pattern-guided", 60, 1)
    with pytest.raises(ParameterError, match="patterns of levels"):
        af.anonymize(towns, "pattern-guided", k=2, of=2, patterns={"levels": {"town": ["level 1", "*"]}})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": 9}, "of is 9, and there are 3 quasi-identifiers"),
        ({"of": 0}, "of must be a whole number of at least 1"),
        ({"sets": [["town"]]}, "'town' in a set is no quasi-identifier"),
        ({"sets": "c0"}, "sets is a list of lists"),
        ({"sets": [["c0"]], "of": 2}, "either sets or of"),
        ({"sets": [["c0", "c1"], ["c1", "c0"]]}, "the set c1, c0 occurs twice"),
        ({"of": 2, "importance": {"town": 1}}, "importance of 'town', which is no quasi-identifier"),
        ({"of": 2, "importance": {"c0": "high"}}, "the importance of 'c0' must be a number"),
        ({"of": 2, "importance": 3}, "importance maps columns to numbers"),
        ({"importance": {"c0": 1}}, "importance goes with sets or of"),
    ],
)
def test_bad_sets_are_named(options: dict[str, Any], words: str) -> None:
    for method in METHODS:
        with pytest.raises(ParameterError, match=words):
            af.anonymize(
                table([list(row) for row in ("aab", "abb", "bba", "aab", "bbb")]), method, k=2, **options
            )


def test_what_does_not_go_with_sets_is_refused(tmp_path: Path) -> None:
    people = kinds(60, 5)
    anon = af.anonymize(people, "k-member", k=3, of=2, seed=1)
    with pytest.raises(ParameterError, match="cannot be made diverse"):
        af.diversify(anon, "l-diversity", column="job", l=2)
    twice = pd.concat([people.frame] * 2, ignore_index=True).assign(person=np.arange(120) % 60)
    schema = {**people.schema.to_mapping(), "person": {"role": "unit"}}
    with pytest.raises(ParameterError, match="the same person's"):
        af.anonymize(af.Table(twice, schema), "k-member", k=3, of=2)
    mean = {"age": {"role": "quasi-identifier", "kind": "numeric", "aggregate": "mean"}}
    with pytest.raises(ParameterError, match="mean or median of a class"):
        af.anonymize(af.Table(pd.DataFrame({"age": range(9)}), mean), "k-member", k=3, of=1)


def test_a_flow_makes_and_proves_it(tmp_path: Path) -> None:
    people = kinds(80, 6)
    people.frame.to_csv(tmp_path / "people.csv", index=False)
    columns = (
        "    age: {role: quasi-identifier, kind: numeric, missing: suppress}\n    town: {role: quasi-identifier, kind: suppression}\n"
        "    job: {role: quasi-identifier, kind: suppression}\n    zip: {role: insensitive}\n    income: {role: insensitive}\n"
    )
    text = (
        f"flow: sets\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns:\n{columns}partition: {{size: 20}}\n"
        "steps:\n  - anonymize: {algorithm: ALGORITHM, k: 3, of: 2, importance: {town: 1}}\nMORE  - draw: {}\n  - verify: [covers, guarantee]\n"
        "publish: {table: out/sets.csv, report: out/sets.html}\n"
    )
    for method in ("k-member", "mondrian", "pattern-guided"):
        flow = tmp_path / f"{method}.yaml"
        flow.write_text(text.replace("ALGORITHM", method).replace("MORE", ""))
        report = af.run(flow, again=True)
        assert report.ok
        assert report.results[0].guarantee == "key-sets(of=2, hidden=any, rows=matches)"
        cannot = af.read_release(tmp_path / "out/sets.csv").summary().cannot
        assert "from one of the named sets of columns alone" in cannot[0]
        assert (
            "every person is compatible with at least 3 published rows"
            in (tmp_path / "out/sets.html").read_text()
        )
    step = "  - diversify: {criterion: l-diversity, column: job, l: 2}\n"
    flow.write_text(text.replace("ALGORITHM", "k-member").replace("MORE", step))
    with pytest.raises(af.errors.FlowError, match="cannot be made diverse"):
        af.run(flow)
