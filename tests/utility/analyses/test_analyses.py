"""Measures of an analysis: what they are of nothing lost, of everything lost, and by hand in between."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import AnonflowError, ParameterError
from anonflow.release import ReleaseWarning
from anonflow.utility import MEASURES, measures_of_analyses
from anonflow.utility.analyses import association, marginals, questions
from anonflow.utility.analyses.comparison import Comparison, comparison_of, originals_of
from anonflow.utility.subject import part_of
from tests.naive import comparison as naive
from tests.strategies import examples, loop

SEED = 1 << 100

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "job": {"role": "quasi-identifier", "kind": "categorical"},
    "sex": {"role": "quasi-identifier", "kind": "categorical"},
    "income": {"role": "insensitive"},
    "rich": {"role": "sensitive"},
}


def people(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    age = rng.integers(20, 60, n)
    job = rng.choice(["clerk", "cook", "nurse"], n)
    income = age * 100 + 500 * (job == "nurse") + rng.normal(0, 300, n).round()
    sex = rng.choice(["f", "m"], n)
    return pd.DataFrame(
        {"age": age, "job": job, "sex": sex, "income": income, "rich": np.where(income > 4200, "yes", "no")}
    )


@pytest.fixture(scope="module")
def table() -> af.Table:
    return af.Table(people(), COLUMNS)


REQUESTS: dict[str, Any] = {
    "k-marginals": {},
    "k-marginals-3": {},
    "pair-distance": {},
    "association": {},
    "propensity": {},
    "regression": {"formula": "income ~ age + job"},
    "classification": {"target": "rich"},
    "question": {"where": {"age": {"from": 30, "to": 39}, "sex": "f"}},
}


def needs(name: str) -> None:
    if MEASURES[name].extra:
        pytest.importorskip({"scikit-learn": "sklearn"}.get(MEASURES[name].extra, MEASURES[name].extra))


def test_every_measure_of_an_analysis_is_declared_whole() -> None:
    assert set(REQUESTS) == set(measures_of_analyses())
    for name in REQUESTS:
        item = MEASURES[name]
        assert item.better in ("lower", "higher")
        assert item.cost
        assert {"tables", "seed", "by"} <= set(item.options)
        assert all(option.sentence for option in item.options.values())


@loop("name", REQUESTS)
def test_nothing_lost_is_best_and_all_lost_is_worst(table: af.Table, name: str) -> None:
    needs(name)
    own = af.measure(
        table, table.frame.astype("str").assign(income=table.frame["income"]), [{name: REQUESTS[name]}]
    )
    hidden = table.frame.astype(object).assign(age="*", job="*", sex="*", income="*", rich="*")
    gone = af.measure(table, hidden, [{name: REQUESTS[name]}])
    best, worst = own[name], gone[name]
    if name == "propensity":
        assert best == own["propensity-null"] == 0
        assert worst == 0.25
    elif name == "classification":
        # the rows of a bare frame name no originals: those that are tested on are among those that are learned from
        assert best >= own["classification-originals"] > own["classification-majority"]
        assert worst == gone["classification-majority"]
    elif name == "association":
        assert max(best, own["association-worst"]) < 1e-12
        assert worst > 0.1
    else:
        ideal = {"k-marginals": (1000, 0), "k-marginals-3": (1000, 0), "pair-distance": (0, 1)}
        ideal |= {"regression": (1, 0), "question": (0, 1)}
        # a regression's degrees of freedom are Barnard and Rubin's, a little fewer than the originals'
        assert (best, worst) == pytest.approx(ideal[name], rel=1e-4 if name == "regression" else 1e-9)


@loop("name", [name for name in REQUESTS if name != "classification"])
def test_rows_that_are_hidden_count_as_lost(table: af.Table, name: str) -> None:
    """Rows that are hidden at random bring a measure towards its worst value, and never closer to its best."""
    needs(name)
    shown = table.frame.astype("str").assign(income=table.frame["income"])
    values = []
    for share in (0.0, 0.4, 0.9):
        rows = np.random.default_rng(1).random(table.n) < share
        hidden = shown.copy()
        hidden.loc[rows, ["age", "job", "sex"]] = "*"
        values.append(af.measure(table, hidden, [{name: REQUESTS[name]}])[name])
    ordered = values if MEASURES[name].better == "lower" else values[::-1]
    assert ordered == sorted(ordered)
    assert len(set(values)) == 3


def test_a_run_that_hides_nearly_everybody_is_not_best(table: af.Table) -> None:
    """All of them are one class for usefulness: the more rows it has, the less it weighs."""
    fine = af.anonymize(table, "greedy", k=5, seed=SEED)
    rows = np.arange(table.n) >= 30
    generalization = fine.generalization.of(table.records).with_suppressed(rows)
    hiding = {"usefulness": 0.0, "usefulness-of-all-rows": 0.0}
    hiding |= af.measure(table, generalization, list(hiding))  # type: ignore[arg-type]
    whole = af.measure(table, fine, ["usefulness", "usefulness-of-all-rows"])
    assert whole["usefulness"] == whole["usefulness-of-all-rows"]
    assert hiding["usefulness-of-all-rows"] == pytest.approx(
        (sum(_usefulness_of_classes(table, generalization, rows)) + rows.sum() * 3)
        / (len(_usefulness_of_classes(table, generalization, rows)) + rows.sum())
    )
    assert hiding["usefulness-of-all-rows"] > whole["usefulness-of-all-rows"]


def _usefulness_of_classes(table: af.Table, result: Any, hidden: np.ndarray) -> list[float]:
    """By hand: without classes, the diversity of the values that each kind of row covers."""
    sizes = [len(domain.labels) for domain in table.domains]
    width = float(table.domains[0].width)
    results = {}
    for i in np.flatnonzero(~hidden).tolist():
        codes = tuple(table.codes[i].tolist())
        results[codes] = 0 / width + sum(1 / size for size in sizes[1:])
    return list(results.values())


CODES = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=15)


@examples(40)
@given(CODES, CODES, st.sampled_from([0.0, 0.25]), st.sampled_from([2, 3]))
def test_marginals_are_those_by_hand(original: Any, release: Any, lost: float, ways: int) -> None:
    frames = [
        pd.DataFrame([[f"v{x}" for x in row] for row in rows], columns=list("abc"))
        for rows in (original, release)
    ]
    compared = Comparison(frames[0], (frames[1],), lost)
    assert marginals.k_marginals(compared, ways)[""] == pytest.approx(
        naive.k_marginals(original, release, ways, lost)
    )
    assert marginals.pair_distance(compared)["worst"] == pytest.approx(
        max(naive.distance(original, release, pair, lost) for pair in ((0, 1), (0, 2), (1, 2)))
    )


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-9, 9)), min_size=2, max_size=15))
def test_associations_are_those_by_hand(rows: Any) -> None:
    a, b, x = (list(column) for column in zip(*rows, strict=True))
    frame = pd.DataFrame({"a": [f"v{v}" for v in a], "b": [f"v{v}" for v in b], "x": np.array(x, float)})
    _, before, after = association.matrices(Comparison(frame, (frame,), 0.5))
    assert before[0, 1] == pytest.approx(naive.cramer(a, b), abs=1e-9)
    assert before[0, 2] == pytest.approx(naive.ratio(a, x), abs=1e-9)
    np.testing.assert_allclose(np.tril(after, -1), np.tril(before, -1) / 2, atol=1e-12)
    both = pd.DataFrame({"x": np.array(x, float), "y": np.array(a, float)})
    _, before, _ = association.matrices(Comparison(both, (), 1.0))
    if len(set(x)) > 1 and len(set(a)) > 1:
        assert before[0, 1] == pytest.approx(abs(np.corrcoef(x, a)[0, 1]), abs=1e-9)


@given(st.tuples(st.floats(-5, 5), st.floats(0.1, 5)), st.tuples(st.floats(-5, 5), st.floats(0.1, 5)))
def test_overlap_is_that_by_hand(interval: tuple[float, float], other: tuple[float, float]) -> None:
    ends = (interval[0], interval[0] + interval[1]), (other[0], other[0] + other[1])
    assert questions._overlap(*ends[0], *ends[1]) == pytest.approx(naive.overlap(*ends))


@pytest.mark.parametrize("method", ["greedy", "mondrian", "k-concealment"])
def test_every_kind_of_release_is_measured(table: af.Table, method: str) -> None:
    anon = af.anonymize(table, method, k=4, seed=SEED)
    names = ["k-marginals", "pair-distance", "association", {"question": REQUESTS["question"]}]
    measures = af.measure(table, anon, names)  # type: ignore[arg-type]
    assert 300 < measures["k-marginals"] < 1000
    assert measures["k-marginals"] == pytest.approx(1000 * (1 - measures["pair-distance"]))
    assert measures == af.measure(table, anon, names)  # type: ignore[arg-type]
    assert measures["question-truth"] == ((people()["age"].between(30, 39)) & (people()["sex"] == "f")).sum()
    with pytest.warns(ReleaseWarning):  # incomes are nearly unique
        release = anon.release(seed=SEED)
    other = af.measure(table, release, ["k-marginals"])["k-marginals"]
    assert other == pytest.approx(measures["k-marginals"], abs=60)


def test_the_worst_subgroup_is_measured_and_small_ones_refused(table: af.Table) -> None:
    anon = af.anonymize(table, "greedy", k=4, seed=SEED)
    measures = af.measure(table, anon, [{"k-marginals": {"by": "sex"}}])
    assert list(measures) == ["k-marginals", "k-marginals-worst-by-sex"]
    assert measures["k-marginals-worst-by-sex"] < measures["k-marginals"]
    small = people().assign(sex=["x"] * 5 + ["f"] * 235)
    other = af.Table(small, COLUMNS)
    with pytest.raises(ParameterError) as error:
        af.measure(other, af.anonymize(other, "greedy", k=4, seed=SEED), [{"k-marginals": {"by": "sex"}}])
    assert str(error.value) == (
        "by: the smallest subgroup of 'sex' has 5 people, and an analysis needs 50; "
        "unite its rare values, or name another column"
    )


def test_the_same_release_beside_other_originals(table: af.Table) -> None:
    """Nothing of the first measurement is left: neither its originals nor cells that have changed since."""
    release = table.frame.astype("str").assign(income=table.frame["income"])
    assert af.measure(table, release, ["k-marginals"])["k-marginals"] == pytest.approx(1000)
    other = af.Table(people().assign(rich="yes"), COLUMNS)
    assert af.measure(other, release, ["k-marginals"])["k-marginals"] < 990
    release["job"] = "cook"
    assert af.measure(table, release, ["k-marginals"])["k-marginals"] < 900


@loop("by", ["sex", "rich"])
def test_a_subgroup_that_is_hidden_is_lost(table: af.Table, by: str) -> None:
    """The share that counts is that of the subgroup: a fifth of all may be nearly everybody of it."""
    shown = table.frame.astype("str").assign(income=table.frame["income"])
    small = table.frame[by].value_counts().index[-1]
    rows = np.flatnonzero(table.frame[by] == small)[:-5]
    lost = len(rows) / (len(rows) + 5)
    hidden = shown.copy()
    hidden.loc[rows, ["age", "job", "sex"]] = "*"
    measured = af.measure(table, hidden, [{"pair-distance": {"by": by}}, {"k-marginals": {"by": by}}])
    assert measured[f"pair-distance-worst-by-{by}"] >= lost - 1e-9
    assert measured[f"k-marginals-worst-by-{by}"] <= 1000 * (1 - lost) + 1e-6


def test_numbers_and_dates_of_a_file_are_compared_as_such() -> None:
    """A CSV file is read without guessing: its numbers are text in the table."""
    frame = people().assign(born=pd.date_range("1960-01-01", periods=240).astype(str))
    columns = COLUMNS | {"born": {"role": "quasi-identifier", "kind": "numeric"}}
    written = frame.assign(age=frame["age"].astype(str), income=frame["income"].astype(str))
    names: list[Any] = ["k-marginals", "association", {"question": REQUESTS["question"]}]
    numbers = []
    for each in (frame, written):
        table = af.Table(each, columns)
        numbers.append(af.measure(table, af.anonymize(table, "mondrian", k=4, seed=SEED), names))
    assert numbers[0] == numbers[1]


def test_numbers_are_measured_in_every_spelling_that_a_table_takes() -> None:
    """In the originals: a release has one spelling of each."""
    plain = pd.DataFrame({"age": [f"{20 + row % 40}" for row in range(80)], "ill": [*"uv"] * 40})
    spelled = plain.assign(age=plain["age"].replace({"21": "+21", "23": "2.3e1", "25": "025"}))
    columns = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    names = ["association", "k-marginals"]
    measured = []
    for frame in (plain, spelled, spelled.assign(age=spelled["age"].replace({"22": " 22 ", "24": "٢٤"}))):
        table = af.Table(frame, columns)
        measured.append(af.measure(table, af.anonymize(table, "mondrian", k=4, seed=SEED), names))
    assert measured[0] == measured[1]
    assert measured[2].keys() == measured[0].keys()  # drawn otherwise: its cells are other texts


def test_an_association_that_is_lost_makes_up_for_none_that_is_too_strong() -> None:
    x = np.array(["a", "b"] * 50)
    weak = pd.DataFrame({"x": x, "y": np.where(np.arange(100) < 25, x, np.roll(x, 1))})
    strong = pd.DataFrame({"x": x[:50], "y": x[:50]})
    before = association.matrices(Comparison(weak, (strong,), 0.5))[1][0, 1]
    assert before == pytest.approx(0.5, abs=0.01)  # and 1 in the rows that are left: half of it is 1/2, too
    assert association.association(Comparison(weak, (strong,), 0.5))[""] == pytest.approx(0.5)


def test_a_question_of_ones_own(table: af.Table) -> None:
    anon = af.anonymize(table, "greedy", k=4, seed=SEED)
    by_hand = af.measure(table, anon, [{"question": {"where": lambda item: float(item["age"].mean())}}])
    assert by_hand["question-truth"] == people()["age"].mean()
    assert by_hand["question"] < 0.05
    share = af.measure(table, anon, [{"question": {"where": {"rich": "yes"}, "among": {"job": "nurse"}}}])
    nurses = people()[people()["job"] == "nurse"]
    assert share["question-truth"] == (nurses["rich"] == "yes").mean()


@loop(
    ("request_", "words"),
    [
        ({"regression": {}}, "measure 'regression' needs the option 'formula', such as"),
        (
            {"regression": {"formula": "income ~ agee"}},
            "formula: there is no column 'agee' (did you mean 'age'?)",
        ),
        ({"regression": {"formula": "income age"}}, "a formula is text such as"),
        ({"regression": {"formula": "income ~ age + "}}, "a column is missing between the signs"),
        ({"regression": {"formula": "income ~ income"}}, "stands on both sides"),
        ({"regression": {"formula": "income ~ age + age"}}, "listed twice"),
        ({"regression": {"formula": "job ~ age"}}, "take an outcome of numbers, or of two values"),
        ({"regression": {"formula": "income ~ __import__('os').system('x')"}}, "formula: there is no column"),
        ({"question": {}}, "measure 'question' needs the option 'where'"),
        ({"question": {"where": {"agee": 3}}}, "there is no column 'agee'"),
        ({"question": {"where": lambda item: "x"}}, "must give one number"),
        ({"classification": {"target": "x"}}, "there is no column 'x'"),
        ({"classification": {"target": "income"}}, "name a column of 2 to 50"),
        ({"k-marginals": {"by": "agee"}}, "there is no column 'agee'"),
        ({"k-marginals": {"tables": 1}}, "tables must be a whole number of at least 2"),
        ({"k-marginals": {"tabels": 1}}, "unknown option 'tabels'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(table: af.Table, request_: Any, words: str) -> None:
    for name in request_:
        needs(name)
    anon = af.anonymize(table, "mondrian", k=4, seed=SEED)
    with pytest.raises(ParameterError) as error:
        af.measure(table, anon, [request_])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_package_that_is_not_installed(table: af.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [item for item in sys.modules if item.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(AnonflowError, match=r"pip install 'anonflow\[utility\]'"):
        af.measure(
            table, af.anonymize(table, "mondrian", k=4, seed=SEED), [{"propensity": REQUESTS["propensity"]}]
        )


def test_a_regression_is_that_of_statsmodels(table: af.Table) -> None:
    api = pytest.importorskip("statsmodels.api")
    from anonflow.analysis.models import Design

    frame = people()
    value, variance, _ = Design.of("income ~ age + sex + age:sex", [frame]).fit(frame)
    other = "m" if (frame["sex"] == "f").sum() >= (frame["sex"] == "m").sum() else "f"
    male = (frame["sex"] == other).to_numpy(float)
    matrix = np.column_stack([np.ones(len(frame)), frame["age"], male, frame["age"] * male])
    direct = api.OLS(frame["income"].to_numpy(), matrix).fit()
    assert list(value.index) == ["constant", "age", f"sex={other}", f"age:sex={other}"]
    np.testing.assert_allclose(value, direct.params, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(variance), direct.bse, rtol=1e-8)
    value, _, _ = Design.of("rich ~ age", [frame]).fit(frame)
    logit = api.Logit((frame["rich"] == "yes").astype(float).to_numpy(), matrix[:, :2]).fit(disp=0)
    np.testing.assert_allclose(value, logit.params, rtol=1e-5)


def test_a_comparison_has_a_column_for_each_number(table: af.Table) -> None:
    runs = af.compare(table, ["greedy", "mondrian"], k=4, seed=SEED, measures=["pair-distance"])
    assert (runs["pair-distance-worst"] >= runs["pair-distance"]).all()
    with pytest.raises(ParameterError, match="unknown measure"):
        af.compare(table, ["greedy"], k=4, measures=["pair-distence"])


def test_measures_of_analyses_read_numbers_with_codes_and_blanks() -> None:
    rng = np.random.default_rng(5)
    n = 240
    age = pd.Series(rng.integers(18, 90, n)).astype(str).where(rng.random(n) > 0.2, "unknown")
    frame = pd.DataFrame({"age": age.where(rng.random(n) > 0.1), "ill": rng.choice(list("abc"), n)})
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "codes": ["unknown"], "missing": "value"},
        "ill": {"role": "sensitive"},
    }
    table = af.Table(frame, schema)
    originals = originals_of(table)
    known = frame["age"].notna() & frame["age"].ne("unknown")
    assert originals["age"].dropna().tolist() == frame["age"][known].astype(float).tolist()
    beside = originals["age (code)"]
    assert (beside == "number").tolist() == known.tolist()
    assert set(beside[~known]) == {"", "unknown"}
    assert beside[frame["age"].isna()].eq("").all()
    measured = af.measure(
        table, af.anonymize(table, "greedy", k=4, seed=1), ["association", "k-marginals", "pair-distance"]
    )
    assert all(np.isfinite(value) for value in measured.values() if isinstance(value, float))


@loop("job", ["p|q", "{x}", '"x"', "*", " outer", "'s-Hertogenbosch", ""])
def test_a_category_that_is_published_in_quotes_is_the_same_category(job: str) -> None:
    """Nothing is generalized, so nothing is lost."""
    frame = pd.DataFrame(
        {"job": [job, "cook"] * 8, "sex": ["f", "f", "m", "m"] * 4, "rich": ["yes", "no"] * 8}
    )
    table = af.Table(frame, {name: COLUMNS[name] for name in frame})
    anon = af.anonymize(table, "mondrian", k=2, seed=1)
    assert anon.loss("ncp") == 0
    for subject in (anon, anon.release(seed=SEED).frame):
        measured = af.measure(table, subject, ["pair-distance", "k-marginals", "propensity"])
        assert (measured["pair-distance"], measured["k-marginals"], measured["propensity"]) == (0, 1000, 0)


@loop(
    ("shown", "expected"),
    [
        (["1-2", "1-2", "*", "1-2"], {"number"}),
        (["*", "*", "*", "*"], {"*"}),
        (["N", "N", '"p|q"', '"p|q"'], {"N", "p|q"}),
    ],
)
def test_codes_that_no_row_shows_beside_numbers(shown: list[str], expected: set[str]) -> None:
    """The originals have a column of codes; plausible tables of these rows need one, too."""
    cells = ["1", "2", "N", "p|q"] if expected == {"number"} else ["N", "N", "p|q", "p|q"]
    cells = ["1", *cells[1:]] if expected == {"*"} else cells
    frame = pd.DataFrame({"age": cells * 3 + ["1"], "sex": ["f", "m"] * 6 + ["f"]})
    coded = {"role": "quasi-identifier", "kind": "numeric", "codes": ["N", "p|q"]}
    table = af.Table(frame, {"age": coded, "sex": COLUMNS["sex"]})
    release = pd.DataFrame({"age": shown * 3 + ["*"], "sex": ["f", "m"] * 6 + ["*"]})
    part = replace(part_of(table, release), table=table, subject=release)
    for drawn in comparison_of(part, 2, 1).tables:
        assert set(drawn["age (code)"]) == expected
    af.measure(table, release, ["pair-distance", "k-marginals", "propensity", "association"])
