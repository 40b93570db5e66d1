"""`aggregate`: means and medians of classes in the place of ranges, published, verified, measured, attacked, described."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import DataError, FlowError, ParameterError, SchemaError
from anonflow.generalization import Generalization
from anonflow.release import read_release
from tests.naive.aggregates import class_value, possible_members, squared_distance, variance
from tests.strategies import city_tree, examples, loop

QI = {"role": "quasi-identifier"}
SEED = 2**127 + 11
OF_CLASSES = [name for name, method in REGISTRY.items() if method.guarantee == "k-anonymity"]


def people(n: int = 40, seed: int = 3, **age: Any) -> af.Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 60, n),
            "income": rng.normal(3000, 700, n).round(2),
            "city": rng.choice(["Topeka", "Wichita", "Lincoln"], n),
            "ill": rng.choice(list("abc"), n),
        }
    )
    return af.Table(frame, schema(**age))


def schema(**age: Any) -> dict[str, Any]:
    return {
        "age": {**QI, "kind": "numeric", "aggregate": "mean", **age},
        "income": {**QI, "kind": "numeric", "aggregate": "median"},
        "city": {**QI, "kind": "hierarchy", "hierarchy": city_tree()},
        "ill": {"role": "sensitive"},
    }


def anonymized(table: af.Table, name: str = "mdav", k: int = 3, **more: Any) -> af.Anonymization:
    options = {"limit": 0.3} if name == "full-domain" else {}
    return af.anonymize(table, name, k=k, seed=SEED, **options, **more)


@loop("name", OF_CLASSES)
def test_every_method_of_classes_publishes_them(name: str) -> None:
    table = people(16)
    anon = anonymized(table, name)
    cells, release = anon.frame(), anon.release(seed=SEED)
    assert anon.classes is not None
    for column, aggregate in (("age", "mean"), ("income", "median")):
        for label in set(anon.classes[~anon.suppressed].tolist()):
            inside = anon.classes == label
            (text,) = set(cells[column][inside])
            expected = class_value(table.frame[column][inside].tolist(), aggregate)
            assert float(text) == pytest.approx(float(expected), rel=1e-15)
        assert set(cells[column][anon.suppressed]) <= {"*"}
    assert sorted(release.frame["age"]) == sorted(cells["age"])
    for certificate in (None, release.certificate):
        check = af.verify(table, release, k=3, certificate=certificate)
        assert check
        assert "aggregates" in [finding.criterion for finding in check.findings]


NUMBERS = st.floats(-1e300, 1e300, allow_nan=False).map(lambda x: x + 0.0)


@examples(60)
@example([0.0, 1.0, 8.648063381756594e-295, -1e300], "median", Random(1))
@example([1.5e308, 1.5e308, -1.5e308, -1.5e308, 3e-300], "mean", Random(1))
@given(st.lists(NUMBERS, min_size=4, max_size=12), st.sampled_from(["mean", "median"]), st.randoms())
def test_numbers_are_exact_whatever_the_order(numbers: list[float], aggregate: str, order: Any) -> None:
    """The last bits of a sum would tell in which order the table has its rows."""
    texts = []
    for _ in range(2):
        frame = pd.DataFrame({"x": numbers, "same": ["a"] * len(numbers)})
        columns = {
            "x": {**QI, "kind": "numeric", "aggregate": aggregate},
            "same": {**QI, "kind": "suppression"},
        }
        anon = anonymized(af.Table(frame, columns), "mondrian", k=len(numbers))
        texts.append(set(anon.frame()["x"]))
        order.shuffle(numbers)
    assert texts[0] == texts[1]
    ((text,),) = [texts[0]]
    exact = class_value(numbers, aggregate)
    assert abs(Fraction(float(text)) - exact) <= abs(exact) * Fraction(1, 2**51) + Fraction(5e-324)
    assert min(numbers) <= float(text) <= max(numbers)


def test_ranges_are_what_is_lost() -> None:
    """The loss is that of the class's range: a receiver sees less of it, not more."""
    table = people()
    plain = af.Table(
        table.frame, {**schema(), "age": {**QI, "kind": "numeric"}, "income": {**QI, "kind": "numeric"}}
    )
    means, ranges = anonymized(table), anonymized(plain)
    assert (means.classes == ranges.classes).all()
    for measure in ("ncp", "lm", "entropy"):
        assert means.loss(measure) == ranges.loss(measure)
        assert af.measure(table, means, [measure]) == af.measure(plain, ranges, [measure])
    release = means.release(seed=SEED)
    # who has the certificate measures the same
    assert af.measure(table, release, ["gcp"])["gcp"] == pytest.approx(means.loss("ncp"))


def test_what_it_does_to_variances() -> None:
    table = people(60)
    only = {"age": schema()["age"], "ill": {"role": "sensitive"}}
    means = anonymized(af.Table(table.frame[["age", "ill"]], only))
    before, after = table.frame["age"].tolist(), means.frame()["age"].astype(float).tolist()
    measures = af.measure(means.table, means, ["sse", "variance-kept"])
    assert measures["sse"] == pytest.approx(squared_distance(before, after))
    assert measures["variance-kept"] == pytest.approx(variance(after) / variance(before))
    # of means the one is what the other leaves
    assert measures["sse"] + measures["variance-kept"] == pytest.approx(1)
    assert measures["variance-kept"] < 1
    assert measures["sse"] == pytest.approx(means.facts["sse"] / means.facts["sst"])
    ranges = anonymized(af.Table(table.frame[["age"]], {"age": {**QI, "kind": "numeric"}}))
    middles = [sum(map(float, (text.split("-") * 2)[:2])) / 2 for text in ranges.frame()["age"]]
    assert af.measure(ranges.table, ranges, ["sse"])["sse"] == pytest.approx(
        squared_distance(before, middles)
    )
    release = means.release(seed=SEED)
    assert af.measure(means.table, release, ["variance-kept"]) == pytest.approx(
        {"variance-kept": measures["variance-kept"]}
    )
    with pytest.raises(ParameterError, match="give the anonymization"):
        af.measure(means.table, release, ["sse"])


def test_diverse_classes_have_their_own_means() -> None:
    table = people()
    plain = anonymized(table)
    anon = af.diversify(plain, "p-sensitivity", p=3)
    assert anon.classes is not None
    assert len(set(anon.classes.tolist())) < len(set(plain.classes.tolist()))  # type: ignore[union-attr]
    release = anon.release(seed=SEED)
    assert af.verify(
        table, release, ["covers", "k-anonymity", "p-sensitivity(p=3)"], k=3, certificate=release.certificate
    )


def test_a_missing_number_and_suppressed_records_show_none() -> None:
    frame = people(12).frame.astype({"age": float})
    frame.loc[[0, 5], "age"] = np.nan
    table = af.Table(frame, schema(missing="suppress"))
    anon = anonymized(table, k=4)
    hidden = set(anon.classes[[0, 5]].tolist())  # type: ignore[index]
    cells = anon.frame()["age"]
    assert {text == "*" for text, label in zip(cells, anon.classes, strict=True) if label in hidden} == {True}  # type: ignore[arg-type]
    release = anon.release(seed=SEED)
    assert af.verify(table, release, k=4, certificate=release.certificate)


# ------------------------------------------------------------------------------------------------ verifying


def tampered(release: af.Release, change: dict[str, str]) -> pd.DataFrame:
    frame = release.frame.copy()
    frame["age"] = frame["age"].replace(change)
    return frame


def test_a_wrong_mean_is_found() -> None:
    table = people()
    release = anonymized(table).release(seed=SEED)
    text = release.frame["age"].iloc[0]
    low, high = str(float(text) + 0.25), str(table.frame["age"].max() + 40)
    rows = int((release.frame["age"] == text).sum())
    wrong = tampered(release, {text: low})
    # alone: they do not add up; with the certificate: these rows
    alone = af.verify(table, wrong, ["aggregates"], k=3)
    assert alone.findings[0].holds is False
    assert alone.findings[0].failed == 40
    listed = af.verify(table, wrong, ["aggregates"], k=3, certificate=release.certificate)
    assert (listed.findings[0].holds, listed.findings[0].failed) == (False, rows)
    with pytest.raises(DataError, match="no generalization of its values"):
        af.verify(table, tampered(release, {text: high}), ["aggregates"], k=3)
    with pytest.raises(DataError, match="no generalization of its values"):
        af.verify(
            table, tampered(release, {text: f"{text}0" if "." in text else f"{text}.0"}), ["covers"], k=3
        )
    # a mean that is hidden where it need not be
    hidden = af.verify(
        table, tampered(release, {text: "*"}), ["aggregates"], k=3, certificate=release.certificate
    )
    assert (hidden.findings[0].holds, hidden.findings[0].failed) == (False, rows)


def test_swapped_means_need_the_certificate() -> None:
    """Two classes of equal size whose means are exchanged: the rows alone cannot show it, and the verifier says so."""
    table = people(60)
    release = anonymized(table, "k-member").release(seed=SEED)
    sizes: dict[int, list[str]] = defaultdict(list)
    for text, size in release.frame["age"].value_counts().items():
        sizes[int(size)].append(str(text))
    first, second = sizes[3][:2]
    wrong = tampered(release, {first: second, second: first})
    alone = af.verify(table, wrong, k=3)
    assert alone
    assert any("only the owner's certificate shows" in remark for remark in alone.remarks)
    (request,) = af.verify(table, wrong, ["aggregates"], k=3).findings
    assert request.holds is None
    listed = af.verify(table, wrong, ["aggregates"], k=3, certificate=release.certificate)
    assert [(each.criterion, each.failed) for each in listed.findings] == [
        ("aggregates", 6),
        ("certificate", 6),
    ]


def test_medians_of_one_person_each_are_no_k_regular_release() -> None:
    """Attack: publish everybody's own number as the median of a class of one; every median could cover everybody."""
    table = af.Table(people().frame, {**schema(), "age": {**QI, "kind": "numeric"}})
    release = anonymized(table).release(seed=SEED)
    assert release.truth is not None
    numbers = table.frame["income"].to_numpy()[release.truth]
    own = release.frame.assign(income=[np.format_float_positional(number, trim="-") for number in numbers])
    check = af.verify(table, own, k=3)
    assert not check
    assert [each.criterion for each in check.findings if each.holds] == ["covers"]
    names = ["k-regular", "k-concealment", "(1,k)", "(k,1)", "(k,k)", "linkable-columns(threshold=0.9)"]
    without = af.verify(table, release.frame, names, k=3)
    assert not any(each.holds for each in without.findings)
    assert af.verify(table, release, names[:-1], k=3)
    with pytest.raises(ParameterError, match="only classes can be judged"):
        af.verify(table, release.frame, ["p-sensitivity(p=2, column=ill, per=matches)"], k=3)


def test_attackers_who_need_to_know_whom_a_mean_covers_need_the_certificate() -> None:
    """Whoever a cell could cover by its number alone would be a candidate, and the figures far too small."""
    table = people()
    release = anonymized(table).release(seed=SEED)
    tried = af.attack(table, release.frame, k=3)["attacker"].tolist()
    assert "linkable-columns" in af.attack(table, release)["attacker"].tolist()
    assert "prosecutor" in tried
    assert "linkable-columns" not in tried
    with pytest.raises(ParameterError, match="needs the certificate"):
        af.attack(table, release.frame, "linkable-columns", k=3)
    register = table.frame[["age", "income", "city"]]
    for attacker in ("journalist", "presence"):
        with pytest.raises(ParameterError, match="a register does not say whom one covers"):
            af.attack(table, release, attacker, register=register)


def test_without_such_a_column_there_is_nothing_to_check() -> None:
    table = af.Table(pd.DataFrame({"age": range(6)}), {"age": {**QI, "kind": "numeric"}})
    (finding,) = af.verify(table, af.anonymize(table, "mdav", k=3), ["aggregates"]).findings
    assert (finding.holds, finding.detail) == (True, "no column is published as a mean or median")


# ------------------------------------------------------------------------------------------------ what it tells


@given(st.lists(st.integers(0, 9), min_size=4, max_size=10), st.integers(2, 4))
def test_a_mean_tells_which_numbers_its_class_can_have(ages: list[int], k: int) -> None:
    frame = pd.DataFrame({"age": ages})
    table = af.Table(frame, {"age": {**QI, "kind": "numeric", "aggregate": "mean"}})
    cells = anonymized(table, k=min(k, len(ages))).frame()
    read = Generalization.parse(cells, table.domains)
    domain = table.domains[0]
    for row, text in enumerate(cells["age"]):
        size = int((cells["age"] == text).sum())
        known = domain.points[int(read.lo[0, row]) : int(read.hi[0, row]) + 1].tolist()
        assert known == possible_members(domain.points.tolist(), size, float(text))
        assert ages[row] in known


def test_attackers_know_who_is_in_a_class() -> None:
    """A mean hides the range from who reads it, not from who runs the method again, or looks for the nearest mean."""
    table = people()
    release = anonymized(table).release(seed=SEED)
    plain = anonymized(
        af.Table(table.frame, {**schema(), **{n: {**QI, "kind": "numeric"} for n in ("age", "income")}})
    )
    ranges = plain.release(seed=SEED)
    names = ["prosecutor", "marketer", "linker"]
    expected = af.attack(plain.table, ranges, names, k=3)["success"].tolist()
    assert af.attack(table, release, names, k=3)["success"].tolist() == pytest.approx(expected)
    # of the rows alone nobody may seem safer than in a class
    alone = af.attack(table, release.frame, names, k=3)["success"].tolist()
    assert min(alone) >= 1 / 5 - 1e-9
    assert max(alone) <= 1 / 3 + 1e-9


def test_whoever_knows_the_others_learns_the_last_number() -> None:
    """What the documentation warns of: of k - 1 known members the mean gives away the last."""
    table = people()
    anon = anonymized(table)
    assert anon.classes is not None
    inside = np.flatnonzero(anon.classes == anon.classes[0])
    mean = float(anon.frame()["age"].iloc[0])
    ages = table.frame["age"].to_numpy()
    assert round(len(inside) * mean - ages[inside[1:]].sum()) == ages[inside[0]]


# ------------------------------------------------------------------------------------------------ files


def test_the_description_says_what_a_cell_is(tmp_path: Path) -> None:
    table = people()
    release = anonymized(table).release(seed=SEED)
    release.write(tmp_path / "r.csv")
    described = json.loads((tmp_path / "r.csv-metadata.json").read_text())
    columns = {entry["name"]: entry for entry in described["tableSchema"]["columns"]}
    assert columns["age"]["urn:anonflow:notation"] == "class-mean"
    assert "variance of the cells is smaller" in columns["income"]["http://purl.org/dc/terms/description"]
    read = read_release(tmp_path / "r.csv")
    age = read.column("age")
    assert age.middle.tolist() == [float(text) for text in release.frame["age"]]
    assert age.low.isna().all()
    assert not age.exact.any()
    assert age.contains(18).all()
    assert age.share_of((18, 60)).isna().all()
    assert read.to_frame("nullable")["age"].tolist() == age.middle.tolist()
    assert age.with_domain((18, 60)).high.tolist() == [60.0] * 40
    summary = read.summary()
    assert {column.name: column.cells for column in summary.columns}["income"] == "medians of classes"
    assert any("mean and the sum of age" in sentence for sentence in summary.can)
    assert any("spread around those of their classes" in sentence for sentence in summary.cannot)
    assert af.verify(table, tmp_path / "r.csv", k=3, certificate=release.certificate)
    with pytest.raises(ParameterError):
        _ = age.values
    # without the file beside, the schema says it
    (tmp_path / "r.csv-metadata.json").unlink()
    assert read_release(tmp_path / "r.csv", table.schema).column("age").about.notation == "class-mean"


FLOW = """
flow: means
version: 1
table:
  source: {{csv: people.csv{pieces}}}
  columns:
    age: {{role: quasi-identifier, kind: numeric, aggregate: mean}}
    income: {{role: quasi-identifier, kind: numeric, aggregate: median}}
    ill: {{role: sensitive}}
partition: {{size: 30}}
steps:
  - anonymize: {{algorithm: {method}, k: 4}}
  - diversify: {{criterion: l-diversity, l: 2}}
  - draw: {{}}
  - verify: [covers, guarantee, aggregates]
  - measure: [gcp, sse, variance-kept, row-types]
publish: {{table: out/{name}.csv, report: out/{name}.html}}
"""


def test_a_flow_in_memory_and_in_pieces(tmp_path: Path) -> None:
    people(90).frame.drop(columns="city").to_csv(tmp_path / "people.csv", index=False)
    seen = []
    for name, pieces in (("memory", ""), ("pieces", ", pieces: true")):
        (tmp_path / f"{name}.yaml").write_text(FLOW.format(name=name, pieces=pieces, method="mdav"))
        report = af.run(tmp_path / f"{name}.yaml", seed=SEED)
        assert report.ok
        measures = report.runs[["gcp", "sse", "variance-kept", "row-types"]].iloc[0].tolist()
        seen.append(((tmp_path / "out" / f"{name}.csv").read_bytes(), measures))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] == pytest.approx(seen[1][1])
    published = pd.read_csv(tmp_path / "out" / "memory.csv")
    assert published["age"].dtype == float
    # sums are kept
    assert published["age"].mean() == pytest.approx(people(90).frame["age"].mean())


def test_a_method_without_classes_is_refused(tmp_path: Path) -> None:
    table = people(12)
    with pytest.raises(
        ParameterError, match=r"greedy: column 'age' is to be published as the mean.*take mdav"
    ):
        af.anonymize(table, "greedy", k=3)
    people(90).frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "flow.yaml").write_text(FLOW.format(name="x", pieces="", method="greedy"))
    with pytest.raises(FlowError, match=r"flow.yaml:7:\d+: .*take mdav"):
        af.run(tmp_path / "flow.yaml")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"aggregate": "mode"}, "aggregate is one of mean, median"),
    ({"aggregate": "meen"}, "did you mean 'mean'"),
    ({"aggregate": True}, "aggregate is one of mean, median"),
    ({"boundary": {"width": 5}}, "does not go with codes, missing: value, a boundary or max-width"),
    ({"max-width": 5}, "does not go with codes"),
    ({"codes": ["N"]}, "does not go with codes"),
]


@loop(("age", "words"), BAD)
def test_bad_aggregates_are_a_sentence(age: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        af.Schema(schema(**age))


def test_other_kinds_and_dates_have_no_mean() -> None:
    with pytest.raises(SchemaError, match="aggregate goes with kind numeric, not suppression"):
        af.Schema({"sex": {**QI, "kind": "suppression", "aggregate": "mean"}})
    frame = pd.DataFrame({"born": pd.date_range("2000-01-01", periods=5)})
    with pytest.raises(DataError, match="these are dates"):
        af.Table(frame, {"born": {**QI, "kind": "numeric", "aggregate": "mean"}})


def test_the_schema_writes_it() -> None:
    declared = af.Schema({"age": schema()["age"]})
    assert declared.to_mapping()["age"]["aggregate"] == "mean"
    assert "class mean" in declared["age"].details
