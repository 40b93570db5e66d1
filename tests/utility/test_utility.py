"""Measures of what a release is still good for, against their definitions."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets, utility
from anonflow.errors import DataError, ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Records
from anonflow.utility.queries import Query, anchors, estimates, exact, prepared
from tests import strategies
from tests.cases.criteria import random_table
from tests.naive import utility as naive
from tests.strategies import examples, loop

SIZES = ["row-types", "average-class-size", "min-class-size", "max-class-size"]


def originals_of(boxes: Generalization, matches: np.ndarray) -> list[list[int]]:
    """For each class of equal generalized records all originals that its members match."""
    classes: dict[int, set[int]] = {}
    for label, row in zip(boxes.classes().tolist(), matches.tolist(), strict=True):
        classes.setdefault(label, set()).update(i for i in row if i >= 0)
    return [sorted(rows) for rows in classes.values()]


def columns_of(table: af.Table) -> tuple[list[list[Any]], list[bool]]:
    """The QI columns as plain values, and which are of kind numeric."""
    numeric = [table.schema[name].kind == "numeric" for name in table.qi_columns]
    columns = [
        [float(value) if is_number else value for value in table.frame[name].tolist()]
        for name, is_number in zip(table.qi_columns, numeric, strict=True)
    ]
    return columns, numeric


def boxes_of(generalized: Generalization) -> list[list[set[int]]]:
    """Each cell as the set of codes in it."""
    layout = generalized.layout
    boxes: list[list[set[int]]] = [[set() for _ in generalized.domains] for _ in range(generalized.n)]
    for j in range(generalized.n):
        for t, a in enumerate(layout.ranges):
            boxes[j][a] = set(range(generalized.lo[t, j], generalized.hi[t, j] + 1))
        for t, a in enumerate(layout.sets):
            for code in range(generalized.domains[a].size):
                if int(generalized.bits[layout.offset[t] + code // 64, j]) >> code % 64 & 1:
                    boxes[j][a].add(code)
    return boxes


# ------------------------------------------------------------------------------------ usefulness


@given(st.integers(0, 2**32), st.integers(1, 14), st.integers(1, 4))
def test_usefulness_of_classes(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, n)
    classes = rng.integers(0, max(1, n // k), n)
    boxes = Generalization.join_by_class(table.records, classes)
    subject = SimpleNamespace(generalization=boxes, classes=classes)
    columns, numeric = columns_of(table)
    # classes that are published alike are one
    expected = naive.usefulness(columns, numeric, boxes.classes())
    assert af.measure(table, subject, "usefulness")["usefulness"] == pytest.approx(expected)
    none = naive.usefulness(columns, [False] * len(columns), boxes.classes())
    assert af.measure(table, subject, "usefulness", numeric=[])["usefulness"] == pytest.approx(none)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4))
def test_usefulness_of_matches(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    table, kinds = random_table(rng, n)
    matches = np.concatenate([np.arange(n)[:, None], rng.integers(-1, n, (n, k))], axis=1).astype(np.int32)
    boxes = Generalization.join_of(table.records, matches)
    columns, numeric = columns_of(table)
    expected = naive.usefulness_of_sets(columns, numeric, originals_of(boxes, matches))
    subject = SimpleNamespace(generalization=boxes, matches=matches)
    assert af.measure(table, subject, "usefulness")["usefulness"] == pytest.approx(expected)
    if set(kinds) <= {"numeric", "categorical"}:
        # what is covered says the same where ranges and sets are tight
        assert af.measure(table, boxes, "usefulness")["usefulness"] == pytest.approx(expected)


@loop("values", [1, 63, 64, 70, 250, 256, 300])
@loop("parts", [1, 3])
def test_usefulness_of_large_domains(values: int, parts: int) -> None:
    """Values are bits of a word, of several words, or listed; partitions are combined."""
    rng = np.random.default_rng(values)
    n = 900
    job = [f"v{i % values}" for i in rng.permutation(n)]
    frame = pd.DataFrame({"job": [None if i == 5 else item for i, item in enumerate(job)], "age": range(n)})
    table = af.Table(frame, {"job": {"role": "quasi-identifier", "kind": "categorical"},
                             "age": {"role": "insensitive"}})  # fmt: skip
    classes = rng.integers(0, 40, n)
    matches = np.argsort(classes, kind="stable")[np.searchsorted(np.sort(classes), classes)][:, None]
    matches = np.concatenate([np.arange(n)[:, None], matches], axis=1).astype(np.int32)
    boxes = Generalization.join_of(table.records, matches)
    expected = naive.usefulness_of_sets([frame["job"].tolist()], [False], originals_of(boxes, matches))
    ready = utility.asked(table.records, "usefulness")
    chunks = []
    part = classes % parts
    for p in range(parts):
        at = np.flatnonzero(part == p)
        place = np.full(n, -1)
        place[at] = np.arange(len(at))
        subject = SimpleNamespace(generalization=boxes.take(at), matches=place[matches[at]])
        chunks.append(utility.partial(ready, table.records.take(at), subject))
    result = utility.finalize(ready, utility.combine(ready, chunks))["usefulness"]
    assert result == pytest.approx(expected)


@loop("values", [1, 127, 128, 300, 33_000])
@loop("parts", [1, 3])
def test_usefulness_of_many_numbers(values: int, parts: int) -> None:
    """A missing number may be any, a code beside numbers is none; places of numbers take one, two or four bytes."""
    rng = np.random.default_rng(values)
    n = max(600, values)
    pay: list[Any] = [float(i % values) ** 2 / 7 for i in rng.permutation(n)]
    age: list[Any] = [str(i % values) for i in rng.permutation(n)]
    score: list[Any] = [str(i % 200) for i in rng.permutation(n)]
    for i in rng.integers(0, n, 15).tolist():
        pay[i] = score[-i] = None
        age[i] = "N"
    numeric = {"role": "quasi-identifier", "kind": "numeric"}
    table = af.Table(
        pd.DataFrame({"pay": pay, "age": age, "score": score}),
        {
            "pay": {**numeric, "missing": "suppress"},
            "age": {**numeric, "codes": ["N"]},
            "score": {"role": "quasi-identifier", "kind": "categorical"},
        },
    )
    classes = rng.integers(0, n // 3, n)
    matches = np.argsort(classes, kind="stable")[np.searchsorted(np.sort(classes), classes)][:, None]
    matches = np.concatenate([np.arange(n)[:, None], matches], axis=1).astype(np.int32)
    boxes = Generalization.join_of(table.records, matches)

    columns = [
        [None if value in (None, "N") else float(value) for value in column] for column in (pay, age, score)
    ]
    ends = [
        (min(numbers), max(numbers))
        for numbers in ([value for value in column if value is not None] for column in columns)
    ]
    total = 0.0
    originals = originals_of(boxes, matches)
    for rows in originals:
        for name, column, (least, greatest) in zip(("pay", "age", "score"), columns, ends, strict=True):
            numbers = [column[i] for i in rows if column[i] is not None]
            if name != "age" and len(numbers) < len(rows):
                numbers += [least, greatest]
            if numbers and greatest > least:
                total += (max(numbers) - min(numbers)) / (greatest - least)
        total += len({age[i] == "N" for i in rows}) / 2
    ready = utility.asked(table.records, "usefulness", numeric=["pay", "age", "score"])
    chunks = []
    for p in range(parts):
        at = np.flatnonzero(classes % parts == p)
        place = np.full(n, -1)
        place[at] = np.arange(len(at))
        subject = SimpleNamespace(generalization=boxes.take(at), matches=place[matches[at]])
        chunks.append(utility.partial(ready, table.records.take(at), subject))
    result = utility.finalize(ready, utility.combine(ready, chunks))["usefulness"]
    assert result == pytest.approx(total / len(originals))


@given(st.integers(0, 2**32), st.integers(1, 10))
def test_usefulness_of_what_is_covered(seed: int, n: int) -> None:
    """k-concealment: the values of the table in each cell, by column."""
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, n)
    result = Generalization.join_of(table.records, rng.integers(0, n, (n, 3)))
    boxes = boxes_of(result)
    at: dict[str, list[int]] = {}
    for a, domain in enumerate(table.domains):
        at.setdefault(domain.column, []).append(a)
    _, first = np.unique(result.classes(), return_index=True)
    total = 0.0
    for j in first:
        for name, places in at.items():
            values = {tuple(row[places].tolist()) for row in table.codes}
            inside = [v for v in values if all(code in boxes[j][a] for code, a in zip(v, places))]
            if table.schema[name].kind == "numeric":
                points = table.domains[places[0]].points
                numbers = [points[v[0]] for v in inside]
                width = points[-1] - points[0]
                total += (max(numbers) - min(numbers)) / width if width else 0.0
            else:
                total += len(inside) / len(values)
    measured = af.measure(table, SimpleNamespace(generalization=result), "usefulness")
    assert measured["usefulness"] == pytest.approx(total / len(first))


def one_column(values: list[Any], kind: str, **entry: Any) -> af.Table:
    return af.Table(pd.DataFrame({"a": values}), {"a": {"role": "quasi-identifier", "kind": kind, **entry}})


def test_numeric_attributes_are_an_option() -> None:
    table = one_column(["1", "2", "4", "9"], "suppression")
    subject = SimpleNamespace(
        generalization=Generalization.join_by_class(table.records, np.array([0, 0, 1, 1])),
        classes=np.array([0, 0, 1, 1]),
    )
    # both classes are published as *: one class of all four
    assert af.measure(table, subject, "usefulness")["usefulness"] == 1
    kept = SimpleNamespace(generalization=Generalization.of(table.records), classes=np.arange(4))
    assert af.measure(table, kept, "usefulness") == {"usefulness": 0.25}
    assert af.measure(table, kept, {"usefulness": {"numeric": ["a"]}}) == {"usefulness": 0}
    assert af.measure(table, kept, "usefulness", numeric="a") == {"usefulness": 0}


def test_numeric_attributes_that_are_none() -> None:
    words = one_column(["x", "y"], "categorical")
    with pytest.raises(ParameterError, match="no numbers") as caught:
        af.measure(words, Generalization.of(words.records), "usefulness", numeric=["a"])
    assert "x" not in str(caught.value).replace("exp", "")
    with pytest.raises(ParameterError, match="is not a quasi-identifier"):
        af.measure(words, Generalization.of(words.records), "usefulness", numeric=["b"])
    codes = one_column(["11", "12"], "positions")
    with pytest.raises(ParameterError, match="positions"):
        af.measure(codes, Generalization.of(codes.records), "usefulness", numeric=["a"])


def test_missing_numbers_may_be_any() -> None:
    table = one_column([1.0, 3.0, None, 5.0], "numeric", missing="suppress")
    boxes = Generalization.of(table.records)
    for subject in (SimpleNamespace(generalization=boxes, classes=np.arange(4)), boxes):
        assert af.measure(table, subject, "usefulness") == {"usefulness": 0.25}


def test_long_codes_are_told_apart() -> None:
    """More combinations of positions than fit into 64 bits."""
    rng = np.random.default_rng(0)
    letters = np.array(list("0123456789abcdefghijklmnopqrstuv"))
    codes = ["".join(row) for row in letters[rng.integers(0, 32, (60, 20))]]
    table = one_column([*codes, *codes], "positions")
    boxes = Generalization.of(table.records)
    own = SimpleNamespace(generalization=boxes, classes=boxes.classes())
    assert af.measure(table, own, "usefulness")["usefulness"] == pytest.approx(1 / 60)
    ready = utility.asked(table.records, "usefulness")
    parts = [np.arange(0, 50), np.arange(50, 120)]
    chunks = [
        utility.partial(
            ready, table.records.take(at), SimpleNamespace(generalization=boxes.take(at), classes=at)
        )
        for at in parts
    ]
    assert utility.finalize(ready, utility.combine(ready, chunks))["usefulness"] == pytest.approx(1 / 60)


# --------------------------------------------------------------------------------------- classes


@given(strategies.tables(min_n=1, max_n=10), st.data())
def test_classes_and_discernibility(table: af.Table, data: st.DataObject) -> None:
    classes = data.draw(strategies.labels(table.n))
    k = data.draw(st.integers(2, 4))
    boxes = Generalization.join_by_class(table.records, classes)
    subject = SimpleNamespace(generalization=boxes, classes=classes, k=k)
    labels = boxes.classes().tolist()
    sizes = naive.class_sizes(labels)
    measured = af.measure(table, subject, [*SIZES, "c-avg", "discernibility"])
    assert list(measured.values())[:4] == [len(sizes), pytest.approx(sizes.mean()), sizes[-1], sizes[0]]
    assert measured["c-avg"] == pytest.approx(table.n / len(sizes) / k)
    assert measured["discernibility"] == naive.discernibility(labels, k)
    assert all(type(value) in (int, float) for value in measured.values())


@given(st.integers(0, 2**32), st.integers(2, 12))
def test_discernibility_of_heterogeneous_releases(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, n)
    matches = np.stack([np.arange(n), rng.permutation(n)], axis=1)
    boxes = Generalization.join_of(table.records, matches)
    covered = naive.covered(boxes_of(boxes), table.codes.tolist())
    subject = SimpleNamespace(generalization=boxes, matches=matches, k=2)
    assert af.measure(table, subject, "discernibility") == {"discernibility": covered}
    assert af.measure(table, boxes.decode(), "discernibility") == {"discernibility": covered}


def test_suppressed_records_are_one_class() -> None:
    table = af.Table(datasets.freeform_example(), datasets.schema("freeform_example"))
    hidden = np.array([True, False] * 4)
    boxes = Generalization.of(table.records).with_suppressed(hidden)
    subject = SimpleNamespace(
        generalization=boxes, suppressed=hidden, classes=np.where(hidden, -1, np.arange(8))
    )
    measured = af.measure(table, subject, [*SIZES, "suppressed", "stars", "gcp"])
    assert list(measured.values()) == [5, 8 / 5, 1, 4, 4, 8, 0.5]
    assert af.measure(table, boxes.decode(), "suppressed") == {"suppressed": 4}


# --------------------------------------------------------------------------------------- queries


def draw_queries(records: Records, queries: int, seed: int) -> tuple[Query, ...]:
    at = anchors(records.domains, records.n, queries, seed)
    return prepared(records.take(at), records.n, queries, seed)


@given(st.integers(0, 2**32), st.integers(1, 10))
def test_query_answers(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, n)
    result = Generalization.join_of(table.records, rng.integers(0, n, (n, 2)))
    queries = draw_queries(table.records, 6, seed % 100)
    boxes, rows = boxes_of(result), table.codes.tolist()
    requests = [{c.qi: set(np.flatnonzero(c.inside).tolist()) for c in query} for query in queries]
    assert all(1 <= len(item) <= 3 for item in requests)
    true = np.array([naive.count_exact(rows, entry) for entry in requests])
    guess = np.array([naive.count_estimate(boxes, element) for element in requests])
    assert (exact(queries, table.records) == true).all()
    assert (true > 0).all()
    assert estimates(queries, result) == pytest.approx(guess)
    error = np.median(np.abs(guess - true) / true)
    measures = af.measure(table, result, "query-error", queries=6, seed=seed % 100)
    assert measures["query-error"] == pytest.approx(error)


def test_query_error_is_seeded_and_zero_without_generalization() -> None:
    table = af.Table(datasets.census_like(2_000, 1), datasets.schema("census_like"))
    assert af.measure(table, Generalization.of(table.records), "query-error") == {"query-error": 0}
    boxes = Generalization.join_by_class(table.records, np.arange(2_000) // 20)
    errors = [af.measure(table, boxes, "query-error", seed=seed)["query-error"] for seed in (0, 0, 1)]
    assert errors[0] == errors[1] != errors[2]
    assert errors[0] > 0.01
    for bad in ({"queries": 0}, {"seed": -1}, {"queries": 2.5}):
        with pytest.raises(ParameterError, match="query-error"):
            af.measure(table, boxes, {"query-error": bad})


def test_a_missing_number_meets_no_condition() -> None:
    table = one_column([1.0, 3.0, None, 5.0], "numeric", missing="suppress")
    queries = draw_queries(table.records, 20, 0)
    assert exact(queries, table.records).max() <= 3


# ------------------------------------------------------------------------- partitions and the door


@examples(40)
@given(st.integers(0, 2**32), st.integers(2, 14), st.booleans())
@example(33459, 10, True)
def test_partitions_combine_to_the_whole(seed: int, n: int, homogeneous: bool) -> None:
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, n)
    cut = int(rng.integers(1, n))
    order = rng.permutation(n)
    parts = [order[:cut], order[cut:]]
    classes = np.empty(n, np.int64)
    matches = np.stack([np.arange(n), np.arange(n)], axis=1)
    for number, at in enumerate(parts):
        classes[at] = 10 * number + rng.integers(0, 3, len(at))
        matches[at, 1] = rng.permutation(at)
    if homogeneous:
        boxes = Generalization.join_by_class(table.records, classes)
        subject: Any = SimpleNamespace(generalization=boxes, classes=classes, k=2)
    else:
        boxes = Generalization.join_of(table.records, matches)
        subject = SimpleNamespace(generalization=boxes, matches=matches, k=2)
    # the bound needs partitions of k records: the test after this one; whose rows cover whom is counted over all rows:
    # tests of pieces compare it with memory; what compares originals and plausible tables needs all rows at once
    apart = {"partition-lower-bound", *utility.measures_of_analyses()}
    apart |= set() if homogeneous else {"discernibility"}
    names = [name for name in utility.measure_names() if name not in apart]
    whole = af.measure(table, subject, names)
    ready = pickle.loads(pickle.dumps(utility.asked(table.records, names, k=2)))
    place = np.empty(n, np.int64)
    chunks = []
    for at in parts:
        place[at] = np.arange(len(at))
        own: dict[str, Any] = {"generalization": boxes.take(at)}
        if homogeneous:
            own["classes"] = classes[at]
        else:
            own["matches"] = place[matches[at]]
        chunks.append(utility.partial(ready, table.records.take(at), SimpleNamespace(**own)))
    twice = utility.combine(ready, [utility.combine(ready, chunks[:1]), chunks[1]])
    combined = utility.finalize(ready, twice)
    if homogeneous and np.unique(classes, return_counts=True)[1].min() < 2:
        # rows of too small classes that read alike are one class of the whole, for which there is a higher bound
        assert combined.pop("lower-bound") <= whole.pop("lower-bound") + 1e-12
        for numbers in (combined, whole):
            numbers.pop("lower-bound-excess", None)
    assert combined == pytest.approx(whole)


@loop("seed", range(5))
def test_the_lower_bound_of_partitions_combines_to_that_of_all(seed: int) -> None:
    """Partitions of at least k records, at once or one after the other, whoever adds them up."""
    rng = np.random.default_rng(seed)
    table, _ = random_table(rng, 12)
    order = rng.permutation(12)
    parts = [np.sort(order[:5]), np.sort(order[5:])]
    matches = np.empty((12, 2), np.int64)
    for at in parts:
        matches[at] = np.stack([at, np.roll(at, 1)], axis=1)
    boxes = Generalization.join_of(table.records, matches)
    ready = pickle.loads(pickle.dumps(utility.asked(table.records, ["partition-lower-bound"], k=2)))
    subject = SimpleNamespace(generalization=boxes, matches=matches, k=2)
    whole = utility.finalize(ready, utility.partial(ready, table.records, subject, parts))
    place = np.empty(12, np.int64)
    chunks = []
    for at in parts:
        place[at] = np.arange(len(at))
        own = SimpleNamespace(generalization=boxes.take(at), matches=place[matches[at]])
        chunks.append(utility.partial(ready, table.records.take(at), own, [np.arange(len(at))]))
    assert utility.finalize(ready, utility.combine(ready, chunks)) == pytest.approx(whole)
    assert 0 <= whole["partition-lower-bound"] <= af.measure(table, subject, ["gcp"])["gcp"] + 1e-12


def test_published_tables_and_certificates() -> None:
    table = af.Table(datasets.freeform_example(), datasets.schema("freeform_example"))
    matches = datasets.freeform_example_matches()
    boxes = Generalization.join_of(table.records, matches)
    own = SimpleNamespace(generalization=boxes, matches=matches, k=3)
    names = ["gcp", "usefulness", "row-types", "c-avg", "discernibility", "query-error"]
    order = np.random.default_rng(0).permutation(8)
    certificate = SimpleNamespace(offsets=np.arange(0, 25, 3), originals=matches[order].ravel(), k=3)
    release = SimpleNamespace(
        frame=boxes.decode().iloc[order].reset_index(drop=True), certificate=certificate
    )
    assert af.measure(table, release, names) == pytest.approx(af.measure(table, own, names))
    alone = af.measure(table, release.frame, names, k=3)
    assert alone["usefulness"] == pytest.approx(af.measure(table, own, "usefulness")["usefulness"])


def test_the_usual_measures_of_an_anonymization_grow_with_k() -> None:
    table = af.Table(datasets.census_like(600, 2), datasets.schema("census_like"))
    anon = af.anonymize(table, "greedy", k=5, seed=0)
    measured = af.measure(table, anon)
    assert list(measured) == ["gcp", "usefulness", "row-types"]
    assert measured["gcp"] == pytest.approx(anon.loss("gcp"))
    assert 0 < measured["usefulness"] < 8
    # the more originals a record stands for, the further apart they are
    wider = af.measure(table, af.anonymize(table, "greedy", k=20, seed=0), "usefulness")
    assert wider["usefulness"] > measured["usefulness"]


def test_what_cannot_be_asked() -> None:
    table = af.Table(datasets.freeform_example(), datasets.schema("freeform_example"))
    boxes = Generalization.of(table.records)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ("usefullness", {}, "did you mean 'usefulness'"),
        (["gcp", "gcp"], {}, "is named twice"),
        ([3], {}, "unknown measure"),
        (3, {}, "measures are names"),
        ({"usefulness": 3}, {}, "options are a mapping"),
        ({"usefulness": {"numerical": []}}, {}, "did you mean 'numeric'"),
        ({"gcp": {"numeric": []}}, {}, "unknown option"),
        ("gcp", {"numeric": []}, "unknown option 'numeric'"),
        (
            {"query-error": {"queries": 100_001}},
            {},
            "queries must be a whole number of at least 1 and at most 100000",
        ),
        ("query-error", {"queries": 0.5}, "queries must be a whole number"),
        ("c-avg", {}, "needs k"),
    ]
    for measures, options, text in cases:
        with pytest.raises(ParameterError, match=text):
            af.measure(table, boxes, measures, **options)
    with pytest.raises(ParameterError, match="needs k"):
        af.measure(table, SimpleNamespace(generalization=boxes, classes=np.arange(8)), "discernibility")
    with pytest.raises(ParameterError, match="cannot measure"):
        af.measure(table, "x")
    with pytest.raises(ParameterError, match=r"anonflow\.Table"):
        af.measure(datasets.freeform_example(), boxes)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="7 generalized records for 8"):
        af.measure(table, boxes.take(np.arange(7)))
    for wrong in (np.full((8, 1), -1), np.full((8, 2), 8)):
        with pytest.raises(DataError, match="matches"):
            af.measure(table, SimpleNamespace(generalization=boxes, matches=wrong))
