"""A search over a table, and over a flow whose pick is run again bit by bit."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine, strict_yaml
from anonflow.algorithms.pilots import PilotModel
from anonflow.engine import expected as expected_module
from anonflow.engine.search import search as search_module
from anonflow.engine.search.space import Space
from anonflow.engine.search.trials import SearchReport, SearchTarget, Trial
from anonflow.engine.storage import storage
from anonflow.errors import AnonflowError, FlowError, InfeasibleError, ParameterError
from tests.cases.runs import shell

SEED = "5e" * 16
LONG = "10m"

FLOW = """\
flow: wanted
version: 1
table:
  source: {dataset: census_like, n: 240, seed: 3}
  columns:
    Age: {role: quasi-identifier, kind: numeric}
    Gender: {role: quasi-identifier, kind: categorical}
    Education: {role: quasi-identifier, kind: numeric}
    Occupation: {role: sensitive}
steps:
  - anonymize: {loss: ncp}
  - draw: {}
target: {loss: 0.9, risk: 0.34, time: 10m}
matrix:
  anonymize.algorithm: [mondrian, greedy]
  anonymize.k: [3, 5]
  partition.size: [80]
publish: {table: out/release.csv}
"""


@pytest.fixture(scope="module")
def table() -> af.Table:
    frame = af.datasets.load("census_like", n=240, seed=3)
    names = ("Age", "Gender", "Education")
    kinds = ("numeric", "categorical", "numeric")
    columns = {
        name: {"role": "quasi-identifier", "kind": kind} for name, kind in zip(names, kinds, strict=True)
    }
    kept = [*names, "Occupation"]
    return af.Table(frame[kept], {**columns, "Occupation": {"role": "sensitive"}})


def searched(table: af.Table, target: Any, **options: Any) -> SearchReport:
    return af.search(
        table,
        target,
        seed=SEED,
        **{"algorithms": ["mondrian", "greedy"], "k": [3, 5], "partition_size": 80, **options},
    )


def test_what_is_picked_meets_the_target_and_is_repeated_bit_by_bit(table: af.Table) -> None:
    seen: list[Trial] = []
    report = searched(table, {"loss": 0.9, "risk": 0.34, "time": LONG}, watch=seen.append)
    assert report.ok
    best, result = report.best, report.anonymization
    assert best is not None
    assert result is not None
    assert best.loss == pytest.approx(result.loss())
    assert float(best.risk or 1) <= 0.34
    assert [trial.candidate for trial in seen] == [trial.candidate for trial in report.trials]
    options = dict(best.candidate.setup.options)
    again = af.anonymize(
        table,
        best.candidate.setup.algorithm,
        best.candidate.k,
        partition_size=best.candidate.setup.size,
        seed=SEED,
        **options,
    )
    for name in ("lo", "hi", "bits"):
        np.testing.assert_array_equal(
            getattr(again.generalization, name), getattr(result.generalization, name)
        )
    assert report.runs["picked"].sum() == 1
    assert report.ended == "nothing else is expected to be better"
    assert report.sentence() in repr(report)
    # whoever others beat keeps its numbers, and no records
    shown = {id(trial) for trial in (*report.frontier, best)}
    for trial in report.trials:
        assert (trial.result is not None and trial.result.anonymization is not None) == (id(trial) in shown)


def test_the_risk_is_that_of_the_attackers_who_point_at_a_row(table: af.Table) -> None:
    report = searched(table, {"risk": 0.2, "time": LONG}, algorithms=["mondrian"], k=5)
    anon = report.anonymization
    assert anon is not None
    worst = af.attack(table, anon, ["prosecutor", "linker"], seed=1)["worst"].max()
    assert report.trials[0].risk == pytest.approx(worst)
    assert report.ok


def test_a_target_that_nothing_meets_gives_the_nearest(table: af.Table) -> None:
    report = searched(table, {"loss": 0.0001, "time": LONG})
    assert not report.ok
    assert report.best is not None
    assert "does not meet it" in report.sentence()
    assert report.best.loss == min(trial.loss for trial in report.trials if trial.loss is not None)


def test_a_method_that_refuses_the_table_is_a_trial_with_its_reason(table: af.Table) -> None:
    report = searched(table, {"risk": 0.5, "time": LONG}, algorithms=["full-domain", "mondrian"], k=3)
    (refused,) = [trial for trial in report.trials if trial.problem is not None]
    assert refused.candidate.setup.algorithm == "full-domain"
    assert "hierarchy" in str(refused.problem)
    assert report.ok


def test_it_is_stopped_from_another_thread_and_keeps_what_was_tried(table: af.Table) -> None:
    flow = engine.Flow.for_table(table, ["greedy"], [3])
    tried = threading.Event()
    work = engine.TargetSearch(
        flow,
        SearchTarget(loss=0.001, seconds=600),
        Space(("mondrian",), tuple(range(2, 100)), (None,)),
        seed=SEED,
        watch=lambda trial: (work.cancel(), tried.set())[1],
    )
    report = work.run()
    assert tried.is_set()
    assert report.ended == "it was stopped"
    assert len(report.trials) == 1
    assert report.left > 50
    assert report.best is not None


def test_nothing_is_run_that_is_expected_to_take_longer_than_is_left(
    table: af.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PilotModel, "seconds", lambda self, records: 1e6)
    report = searched(table, {"loss": 0.1, "time": "1m"})
    assert not report.trials
    assert report.best is None
    assert report.ended == "its time is over"
    assert report.sentence().startswith("No candidate has a result: its time is over; wanted: ")


def test_only_options_with_an_effect_are_varied() -> None:
    setups = Space(("mondrian", "greedy")).setups(240, 3, True)
    assert {(setup.algorithm, setup.diversity) for setup in setups} == {
        ("mondrian", ()),
        ("greedy", ()),
        ("greedy", (("way", "blind"),)),
    }


def test_diversity_holds_for_every_trial(table: af.Table) -> None:
    report = searched(
        table, {"risk": 0.34, "time": LONG}, k=3, diversify={"criterion": "p-sensitivity", "p": 2}
    )
    assert report.ok
    anon = report.anonymization
    assert anon is not None
    names = {finding.criterion for finding in report.best.result.findings}  # type: ignore[union-attr]
    assert "p-sensitivity" in names or anon.matches is not None
    with pytest.raises(InfeasibleError, match="largest feasible"):
        searched(table, {"risk": 0.34}, k=3, diversify={"criterion": "p-sensitivity", "p": 200})
    for wrong in ({"criterion": "diverse"}, {"l": 2}, 3):
        with pytest.raises(ParameterError, match="search: diversify"):
            searched(table, {"risk": 0.34}, diversify=wrong)


def test_a_disclosure_is_reached_by_diversity_that_the_flow_does_not_name(table: af.Table) -> None:
    common = table.frame["Occupation"].value_counts(normalize=True).max()
    wanted = round(float(common) + 0.1, 2)
    report = searched(table, {"disclosure": wanted, "time": LONG}, algorithms=["mondrian"], k=[3, 20])
    assert report.ok
    best, result = report.best, report.anonymization
    assert best is not None
    assert result is not None
    worst = af.attack(table, result, ["homogeneity"], seed=1)["worst"].max()
    assert best.disclosure == pytest.approx(worst)
    assert float(best.disclosure or 1) <= wanted
    tried = {trial.candidate.setup.diversity for trial in report.trials}
    assert () in tried
    assert any(dict(way).get("criterion") == "alpha-k-anonymity" for way in tried)
    assert report.runs["disclosure"].notna().all()
    assert "disclosure" in report.sentence()
    with pytest.raises(ParameterError, match=r"no release hides that: raise it to at least 0\.\d+"):
        searched(table, {"disclosure": 0.01})
    bare = af.Table(table.frame, {"Age": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match="disclosure needs a sensitive column"):
        searched(bare, {"disclosure": 0.5})


def test_several_diversities_are_tried_and_one_that_nothing_has_is_a_trial_with_its_reason(
    table: af.Table,
) -> None:
    steps: list[dict[str, Any]] = [
        {},
        {"criterion": "l-diversity", "l": 2.0},
        {"criterion": "t-closeness", "t": 0.4},
        {"criterion": "p-sensitivity", "p": 200},
    ]
    report = searched(
        table, {"risk": 0.34, "loss": 1.0, "time": LONG}, algorithms=["mondrian"], k=3, diversify=steps
    )
    assert report.ok
    (refused,) = [trial for trial in report.trials if trial.problem is not None]
    assert "largest feasible" in str(refused.problem)
    assert dict(refused.candidate.setup.diversity)["p"] == 200
    with pytest.raises(InfeasibleError, match="largest feasible"):
        searched(table, {"risk": 0.34}, k=3, diversify=steps[3:])
    for wrong in ([{"criterion": "diverse"}], [3], "l-diversity", []):
        with pytest.raises(ParameterError, match="search: diversify"):
            searched(table, {"risk": 0.34}, diversify=wrong)


@pytest.mark.slow
def test_a_regression_keeps_its_signs_or_is_not_picked() -> None:
    rng = np.random.default_rng(4)
    import pandas as pd

    x = rng.integers(0, 60, 240)
    frame = pd.DataFrame({"x": x, "sex": rng.choice(["f", "m"], 240), "y": x * 2.0 + rng.normal(0, 5, 240)})
    table = af.Table(
        frame,
        {
            "x": {"role": "quasi-identifier", "kind": "numeric"},
            "sex": {"role": "quasi-identifier", "kind": "categorical"},
            "y": {"role": "sensitive"},
        },
    )
    report = searched(table, {"signs": "y ~ x", "risk": 0.5, "time": LONG})
    assert report.ok
    assert report.best is not None
    assert report.best.signs is True
    measured = af.measure(table, report.anonymization, {"regression": {"formula": "y ~ x"}})
    assert measured["regression-signs"] == 1.0
    hidden = frame.astype(object).assign(x="*", sex="*")
    assert af.measure(table, hidden, {"regression": {"formula": "y ~ x"}})["regression-signs"] == 0.0
    with pytest.raises(ParameterError, match="there is no column 'z'"):
        searched(table, {"signs": "y ~ z"})


def test_what_is_no_table_or_list_is_refused(table: af.Table) -> None:
    with pytest.raises(ParameterError, match="search takes an"):
        af.search(table.frame, {"loss": 0.1})  # type: ignore[arg-type]
    for wrong in ({"algorithms": 3}, {"k": 2.5}, {"partition_size": "auto"}, {"order": "backwards"}):
        with pytest.raises(ParameterError):
            searched(table, {"loss": 0.1}, **wrong)


# ------------------------------------------------------------------------------------------------- flows


def test_a_flow_is_searched_and_then_runs_its_pick_without_timing_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "wanted.yaml"
    place.write_text(FLOW)
    with pytest.raises(FlowError, match="has a target, and nothing is picked yet"):
        af.run(place)
    flow, report = engine.search_flow(place, seed=SEED)
    assert report.ok
    document = engine.picked_document(strict_yaml.read(place, error=FlowError).data, report)
    chosen = tmp_path / "picked.yaml"
    chosen.write_text(strict_yaml.dumps(document))

    def refused(*args: Any, **more: Any) -> Any:
        raise AssertionError("a pick is not searched again")

    monkeypatch.setattr(expected_module, "run_pilots", refused)
    first = af.run(chosen, seed=SEED)
    result, again = report.anonymization, first.results[0].anonymization
    assert result is not None
    assert again is not None
    for name in ("lo", "hi", "bits"):
        np.testing.assert_array_equal(
            getattr(again.generalization, name), getattr(result.generalization, name)
        )
    release = (tmp_path / "out" / "release.csv").read_bytes()
    af.run(chosen, replay=tmp_path / "owner" / "wanted")
    assert (tmp_path / "out" / "release.csv").read_bytes() == release
    assert [entry["picked"] for entry in document["target"]["tried"] if entry.get("picked")] == [True]
    assert flow.target == SearchTarget(0.9, 0.34, (), 600.0)
    with pytest.raises(FlowError, match="has no target that is still open"):
        engine.search_flow(chosen)


def test_a_flow_lists_diversities_and_runs_the_one_that_was_picked(tmp_path: Path) -> None:
    place = tmp_path / "wanted.yaml"
    listed = "  diversify: [{criterion: l-diversity, l: 2.0}, {criterion: p-sensitivity, p: 3}]\n"
    place.write_text(
        FLOW.replace("publish:", listed + "publish:").replace("[mondrian, greedy]", "[mondrian]")
    )
    flow, report = engine.search_flow(place, seed=SEED)
    assert flow.space is not None
    assert len(flow.space.diversities) == 2
    assert report.best is not None
    document = engine.picked_document(strict_yaml.read(place, error=FlowError).data, report)
    assert [next(iter(step)) for step in document["steps"]] == ["anonymize", "diversify", "draw"]
    assert document["steps"][1]["diversify"] == dict(report.best.candidate.setup.diversity)
    chosen = tmp_path / "picked.yaml"
    chosen.write_text(strict_yaml.dumps(document))
    again, result = af.run(chosen, seed=SEED).results[0].anonymization, report.anonymization
    assert result is not None
    assert again is not None
    np.testing.assert_array_equal(again.generalization.lo, result.generalization.lo)
    # a matrix of diversities is of searches alone
    for wrong, sentence in (
        ("diversify: [{criterion: l-diversity}]", "l-diversity needs l"),
        ("diversify: [{criterion: diverse}]", "did you mean 'l-diversity'"),
        ("diversify: [3]", "a step diversify is a mapping"),
        ("diversify: []", "a matrix key is 'anonymize.' or 'partition.'"),
        ("diversify: [{}, {}]", "a value is listed twice"),
    ):
        place.write_text(FLOW.replace("publish:", f"  {wrong}\npublish:"))
        with pytest.raises(FlowError) as caught:
            engine.load_flow(place)
        assert any(sentence in problem for problem in caught.value.problems), caught.value.problems
        assert all("wanted.yaml:" in problem for problem in caught.value.problems)
    place.write_text(
        FLOW.replace("target: {loss: 0.9, risk: 0.34, time: 10m}\n", "").replace(
            "publish:", listed + "publish:"
        )
    )
    with pytest.raises(FlowError, match="a matrix key is"):
        engine.load_flow(place)


def test_a_table_in_pieces_is_searched_as_in_memory(
    tmp_path: Path, table: af.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.frame.to_csv(tmp_path / "people.csv", index=False)
    place = tmp_path / "wanted.yaml"
    text = FLOW.replace("{dataset: census_like, n: 240, seed: 3}", "{csv: people.csv, pieces: 100}")
    read: list[int] = []
    real = storage.load
    monkeypatch.setattr(storage, "load", lambda *arguments: read.append(1) or real(*arguments))
    for words, mapped in ((text, 1), (text.replace(", pieces: 100", ""), 0)):
        place.write_text(words)
        _, report = engine.search_flow(place, seed=SEED)
        assert report.best is not None
        assert len(read) == mapped
        read.clear()
    monkeypatch.setattr("anonflow.engine.storage.storage.total_memory", lambda: 1000)
    engine.search_flow(place, seed=SEED)
    assert len(read) == 1
    place.write_text(text.replace("pieces: 100", "pieces: false"))
    assert engine.search_flow(place, seed=SEED)[1].ok


def test_a_flow_that_runs_something_else_than_its_pick_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "wanted.yaml"
    place.write_text(FLOW)
    _, report = engine.search_flow(place, seed=SEED)
    document = engine.picked_document(strict_yaml.read(place, error=FlowError).data, report)
    document["steps"][0]["anonymize"]["k"] += 1
    place.write_text(strict_yaml.dumps(document))
    with pytest.raises(FlowError, match="the steps are not what the search has picked"):
        engine.load_flow(place)
    for entry in document["target"]["tried"]:
        entry.pop("picked", None)
    place.write_text(strict_yaml.dumps(document))
    with pytest.raises(FlowError, match="marks 0 entries as picked"):
        engine.load_flow(place)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("loss: 0.9, risk: 0.34,", "", "says nothing to reach"),
        ("loss: 0.9", "loss: 2", "'loss' must be a number of at most 1"),
        ("loss: 0.9", "loss: low", "'loss'"),
        ("time: 10m", "time: soon", "'time' must be a number and one of s, m, h, d"),
        ("time: 10m", "time: '0'", "time is a duration above 0"),
        ("risk: 0.34", "risks: 0.34", "did you mean 'risk'"),
        ("[mondrian, greedy]", "[mondrian, greedi]", "did you mean 'greedy'"),
        ("partition.size: [80]", "partition.order: [input]", "beside a target a matrix lists"),
        ("{loss: ncp}", "{loss: ncp, budget: 3.0}", "'budget' and a target exclude each other"),
        ("[mondrian, greedy]", "[auto]", "leave auto out"),
        ("{loss: 0.9, risk: 0.34, time: 10m}", "fast", "'target' is a mapping"),
    ],
)
def test_a_section_that_cannot_be_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    place = tmp_path / "wanted.yaml"
    assert old in FLOW
    place.write_text(FLOW.replace(old, new))
    with pytest.raises(FlowError) as caught:
        engine.load_flow(place)
    assert any(sentence in problem for problem in caught.value.problems), caught.value.problems
    assert all("wanted.yaml:" in problem for problem in caught.value.problems)


def test_without_a_matrix_the_step_says_what_may_be_tried(tmp_path: Path) -> None:
    place = tmp_path / "wanted.yaml"
    text = FLOW.split("matrix:")[0] + "publish: {table: out/release.csv}\n"
    place.write_text(text)
    assert engine.load_flow(place).space == Space()
    place.write_text(text.replace("{loss: ncp}", "{algorithm: k-member, k: 4, improve: chains}"))
    assert engine.load_flow(place).space == Space(
        ("k-member",), (4,), (), {"k-member": {"improve": "chains"}}
    )
    place.write_text(text.replace("{loss: ncp}", "{improve: chains}"))
    with pytest.raises(AnonflowError, match="an option needs its method"):
        engine.load_flow(place)


def test_a_method_that_refuses_the_table_is_not_timed_after_one_that_takes_it(
    table: af.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []
    real = expected_module.run_pilots

    def noting(method: Any, *arguments: Any, **more: Any) -> Any:
        timed.append(method.name)
        return real(method, *arguments, **more)

    monkeypatch.setattr(expected_module, "run_pilots", noting)
    target = {"loss": 0.9, "time": "10m"}
    report = searched(table, target, algorithms=["k-member", "greedy-cka"], k=[3], boundaries=False)
    assert set(timed) == {"k-member"}
    refused = [trial for trial in report.trials if trial.candidate.setup.algorithm == "greedy-cka"]
    assert refused
    assert all("keeps boundaries" in str(trial.problem) for trial in refused)


def test_a_refusal_is_told_however_little_time_there_is(table: af.Table) -> None:
    report = searched(
        table,
        {"loss": 0.9, "time": 1e-9},
        algorithms=["mondrian", "greedy-cka", "pattern-guided", "full-domain"],
        k=[3, 5],
        options={"pattern-guided": {"patterns": [["nobody"]]}},
        boundaries=False,
    )
    problems = {trial.candidate.setup.algorithm: str(trial.problem) for trial in report.trials}
    assert set(problems) == {"greedy-cka", "pattern-guided", "full-domain"}
    assert "keeps boundaries" in problems["greedy-cka"]
    assert "nobody" in problems["pattern-guided"]
    assert problems["full-domain"].startswith("full-domain: no hierarchy for ")
    assert len(report.trials) == 3


def test_a_search_whose_methods_all_refuse_has_trials_and_no_result(table: af.Table) -> None:
    report = searched(table, {"loss": 0.9, "time": LONG}, algorithms=["greedy-cka"], k=[3], boundaries=False)
    assert report.best is None
    assert [trial.loss for trial in report.trials] == [None]


def test_a_diversity_is_judged_for_each_method_and_k_by_itself() -> None:
    """More than half have the common value: who may suppress two records has the diversity, others have not."""
    n = 240
    frame = pd.DataFrame({"age": [str(i % 4) for i in range(n)], "ill": ["flu"] * 121 + ["cold"] * 119})
    schema = {"age": {"role": "quasi-identifier", "kind": "suppression"}, "ill": {"role": "sensitive"}}
    work = search_module.TargetSearch(
        search_module.Flow.for_table(af.Table(frame, schema), ["mondrian"], [2], name="search"),
        SearchTarget(risk=0.5),
        Space(
            ("mondrian", "full-domain"), (2, 5), (None,),
            diversities=({"criterion": "alpha-k-anonymity", "column": "ill", "alpha": 0.5},),
        ),
        seed=SEED,
    )  # fmt: skip
    work._refuse_diversities()
    assert {(each.setup.algorithm, each.k) for each in work._candidates} == {("full-domain", 5)}
    assert {trial.candidate.setup.algorithm for trial in work.trials} == {"mondrian"}
    assert {trial.candidate.k for trial in work.trials} == {2}


def judged_flow(folder: Path, extra: str = "") -> Path:
    """A flow whose report has a threshold; the columns pay and tax follow from the age."""
    rng = np.random.default_rng(7)
    n = 240
    age = rng.integers(20, 90, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], n),
            "ill": rng.choice(["flu", "cold"], n),
            "pay": age * 1000 + rng.integers(0, 50, n),
            "tax": age * 10,
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    path = folder / "judged.yaml"
    path.write_text(
        "flow: judged\nversion: 1\ntable:\n  source: {csv: people.csv}\n  columns:\n"
        "    age: {role: quasi-identifier, kind: numeric}\n    sex: {role: quasi-identifier, kind: categorical}\n"
        f"    ill: {{role: sensitive}}\n{extra}"
        "steps:\n  - anonymize: {loss: ncp}\n  - draw: {}\n  - verify: [covers, guarantee]\n"
        "target: {risk: 0.34, loss: 1.0, time: 10m}\n"
        "matrix:\n  anonymize.algorithm: [mondrian]\n  anonymize.k: [3, 6, 10]\n  partition.size: [240]\n"
        "publish:\n  table: out/release.csv\n  report: {file: out/report.html, threshold: 0.3}\n"
    )
    return path


FOLLOWING = "    pay: {role: insensitive}\n    tax: {role: insensitive}\n"


def test_a_search_judges_what_the_report_judges(tmp_path: Path) -> None:
    """k = 3 gives 1/3, at most the risk of the target, and not below the threshold of the report: it is no pick."""
    path = judged_flow(tmp_path)
    _, report = engine.search_flow(path, seed=SEED)
    assert report.ok
    assert report.answer is None
    best = report.best
    assert best is not None
    assert best.candidate.k > 3
    assert float(best.risk or 1) < 0.3
    assert "every attacker of the release card below 30%" in report.sentence()
    document = strict_yaml.read(path, error=FlowError)
    picked = tmp_path / "picked.yaml"
    picked.write_text(strict_yaml.dumps(engine.picked_document(document.data, report)))
    ran = engine.run(picked, seed=SEED)
    assert ran.ok, ran.problems
    assert ran.card is not None
    assert ran.card.worst == pytest.approx(best.risk, abs=0.05)
    assert ran.card.worst < 0.3


def test_what_could_be_signed_is_tried_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two columns follow from the age: no k passes with them, and one passes without."""
    path = judged_flow(tmp_path, FOLLOWING)
    picked = tmp_path / "picked.yaml"
    status, text, _ = shell(capsys, "search", path, "--output", picked, "--quiet")
    assert status == 1
    assert "does not meet it" in text
    (sentence,) = [line for line in text.splitlines() if "does not meet it" in line]
    assert "Without the columns" in sentence
    assert "'pay'" in sentence
    assert "'tax'" in sentence
    written = strict_yaml.read(picked, error=FlowError).data
    assert set(written["table"]["columns"]) == {"age", "sex", "ill"}
    ran = engine.run(picked)
    assert ran.ok, ran.problems
    assert set(pd.read_csv(tmp_path / "out" / "release.csv")) == {"age", "sex", "ill"}


def test_a_k_that_the_flow_fixes_is_named_where_no_trial_meets_the_target(tmp_path: Path) -> None:
    """Whoever adds a target to a flow that missed its threshold has a k in it, and no other one is tried."""
    path = judged_flow(tmp_path)
    matrix = "  anonymize.k: [3, 6, 10]\n"
    path.write_text(path.read_text().replace(matrix, "").replace("{loss: ncp}", "{loss: ncp, k: 3}"))
    _, report = engine.search_flow(path, seed=SEED)
    assert not report.ok
    assert "Only k = 3 was tried; leave k out" in report.sentence()


@pytest.mark.parametrize("name", ["tax", "tax (EUR)"])
def test_columns_that_the_flow_names_stay(tmp_path: Path, name: str) -> None:
    path = judged_flow(tmp_path, FOLLOWING.replace("tax", json.dumps(name)))
    people = tmp_path / "people.csv"
    people.write_text(people.read_text().replace("tax", name))
    path.write_text(
        path.read_text().replace(
            "  - draw: {}", f"  - draw: {{}}\n  - measure: [{{association: {{by: {json.dumps(name)}}}}}]"
        )
    )
    _, report = engine.search_flow(path, seed=SEED)
    assert not report.ok
    assert report.answer is None
