"""The explorer without a browser: the state behind it, and widgets that show it and change it."""

from __future__ import annotations

import re
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms import registry
from anonflow.algorithms.freeform.greedy import GREEDY
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.engine import attempt, background
from anonflow.engine.execution import tasks
from anonflow.errors import ParameterError
from anonflow.table.identification import uniqueness

pytest.importorskip("ipywidgets")

from anonflow.widgets import Exploration


@pytest.fixture(scope="module")
def table() -> af.Table:
    frame = af.datasets.census_like(300, seed=3)
    return af.Table(frame, af.datasets.schema("census_like"))


def done(panel: Any) -> Any:
    panel.start()
    panel.wait(300)
    return panel


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """greedy waits in every partition until the event is set."""
    go = threading.Event()

    def run(part: Partition, k: int, **options: Any) -> Outcome:
        go.wait(300)
        return GREEDY.run(part, k)

    method = Algorithm("greedy", run, "freeform", "", "k-regular", "", "")
    real = registry.algorithm_named
    monkeypatch.setattr(tasks, "algorithm_named", lambda name: method if name == "greedy" else real(name))
    return go


# ------------------------------------------------------------------------------------- the state


def test_it_begins_with_what_can_be_run(table: af.Table) -> None:
    model = Exploration(table)
    assert (model.k, model.methods, model.partition_size) == (10, ("greedy", "mondrian"), 250)
    assert model.problems == ()
    assert model.roles["Age"] == "quasi-identifier"
    assert model.roles["Salary-class"] == "sensitive"
    assert Exploration(table.take(np.arange(5))).k == 5
    assert Exploration(table.take(np.arange(40))).partition_size is None
    assert list(model.runs.columns)[:4] == ["algorithm", "k", "records", "gcp"]
    assert len(model.runs) == 0
    assert model.chosen is None


def test_a_frame_gets_a_first_guess() -> None:
    model = Exploration(af.datasets.nursery().iloc[::61])
    assert set(model.roles.values()) == {"quasi-identifier"}
    assert model.table is not None
    assert model.table.schema["form"].kind == "categorical"


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"k": 1}, "k must be"),
        ({"k": True}, "k must be"),
        ({"methods": ["gredy"]}, "did you mean 'greedy'"),
        ({"partition_size": 1}, "partition_size"),
    ],
)
def test_what_there_is_not_is_refused(table: af.Table, bad: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        af.explorer(table, **bad)
    with pytest.raises(ParameterError, match="takes an anonflow"):
        af.explorer("adult.csv")  # type: ignore[arg-type]


def test_runs_are_those_of_the_library(table: af.Table) -> None:
    """The same numbers as af.anonymize, verified."""
    model = done(Exploration(table, k=4, methods=["mondrian", "greedy"], partition_size=100))
    runs = model.runs
    assert list(runs["algorithm"]) == ["mondrian", "greedy"]
    assert list(runs.index) == [1, 2]
    assert set(runs["checks"]) == {"2/2"}
    assert set(runs["partition"]) == {"100"}
    for name, gcp in zip(runs["algorithm"], runs["gcp"], strict=True):
        anon = af.anonymize(table, name, k=4, partition_size=100)
        assert anon.loss("gcp") == pytest.approx(gcp, abs=1e-12)
    assert model.chosen is not None
    assert model.chosen.algorithm.name == "greedy"  # it loses less
    af.verify(table, model.chosen, ["covers", "k-regular"]).raise_if_failed()


def test_runs_add_up_and_are_chosen(table: af.Table) -> None:
    model = done(Exploration(table, k=3, methods=["mondrian"], partition_size=None))
    model.k = 6
    done(model)
    assert list(model.runs["k"]) == [3, 6]
    assert list(model.runs["partition"]) == ["whole table"] * 2
    assert model.chosen.k == 6
    model.choose(1)
    assert model.chosen.k == 3
    with pytest.raises(ParameterError, match="no such run"):
        model.choose(3)


def test_roles_make_another_table(table: af.Table) -> None:
    model = Exploration(table, k=3, methods=["mondrian"])
    before = model.unique.unique
    for name in ("Country", "Occupation", "Age"):
        model.set_role(name, "insensitive")
    assert model.table.qi_columns == ("Gender", "Education", "Marital", "Race", "Workclass")
    assert model.unique.unique < before
    model.set_role("Age", "identifier")
    assert "Age" not in model.table.frame.columns
    model.set_role("Age", "quasi-identifier")
    assert model.table.schema["Age"].kind == "numeric"
    model.set_role("Salary-class", "quasi-identifier")
    assert model.table.schema["Salary-class"].kind == "categorical"
    done(model)
    assert list(model.chosen.frame().columns) == [
        "Age", "Gender", "Education", "Marital", "Race", "Workclass", "Salary-class",
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="unknown column"):
        model.set_role("Agee", "sensitive")
    with pytest.raises(ParameterError, match="unknown role"):
        model.set_role("Age", "secret")


def test_what_cannot_work_is_said_before_the_run(table: af.Table) -> None:
    model = Exploration(table, methods=["greedy", "mondrian"], partition_size=100)
    model.k = 301
    assert len(model.problems) == 2
    assert all("300" in problem or "k" in problem for problem in model.problems)
    with pytest.raises(ParameterError, match="greedy"):
        model.start()
    model.k = 10
    model.methods = ()
    assert model.problems == ("no method is chosen; choose at least one",)
    model.methods = "greedy"
    assert model.problems == ()
    for name in model.roles:
        model.set_role(name, "sensitive")
    assert model.table is None
    assert "quasi-identifier" in model.problems[0]
    with pytest.raises(ParameterError, match="quasi-identifier"):
        model.start()


def test_blanks_beside_numbers_are_values_unless_the_schema_says_more() -> None:
    frame = pd.DataFrame({"age": [1.0, None, 3.0, 4.0], "city": list("aabb")})
    model = Exploration(
        af.Table(
            frame, {"age": {"role": "sensitive"}, "city": {"role": "quasi-identifier", "kind": "categorical"}}
        ),
        k=2,
        methods=["mondrian"],
    )
    model.set_role("age", "quasi-identifier")
    assert model.problems == ()  # the guess says what is done with them
    assert model.table.schema["age"].missing == "value"


def test_cancel_keeps_what_is_finished(table: af.Table, slow: threading.Event) -> None:
    model = Exploration(table, k=3, methods=["mondrian", "greedy", "nh"], partition_size=60)
    is_first = threading.Event()
    model.listen(lambda: is_first.set() if model.finished else None)
    model.start()
    assert model.running
    assert is_first.wait(300)
    assert model.running
    model.cancel()
    slow.set()
    model.wait(300)
    assert not model.running
    assert list(model.runs["algorithm"]) == ["mondrian"]
    assert model.status == "Cancelled; 1 of 3 runs are done."
    assert model.chosen.algorithm.name == "mondrian"
    done(model)  # and it runs again
    assert list(model.runs["algorithm"]) == ["mondrian", "mondrian", "greedy", "nh"]


def test_who_waits_finds_the_listeners_told(table: af.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even who begins to wait when the last run is over, and the widgets are not yet drawn."""
    model = Exploration(table, k=3, methods=["mondrian"], partition_size=60)
    is_over, go, drawn = threading.Event(), threading.Event(), []

    def listen() -> None:
        if model.status == "1 of 1 runs are done." and not model.running:
            is_over.set()
            assert go.wait(300)
            drawn.append(model.status)

    model.listen(listen)
    model.start()
    assert is_over.wait(300)
    thread = model._thread
    waits = SimpleNamespace(
        join=lambda seconds: (
            go.set(),
            thread.join(seconds),
        ),  # whoever waits is there before the widgets are drawn
        is_alive=thread.is_alive,
    )
    monkeypatch.setattr(model, "_thread", waits)
    model.wait(300)
    go.set()
    assert drawn


def test_progress_goes_up(table: af.Table) -> None:
    seen: list[float] = []
    model = Exploration(table, k=3, methods=["mondrian"], partition_size=50)
    one_by_one = threading.Lock()  # whoever starts the runs tells it, too

    def look() -> None:
        with one_by_one:
            seen.append(model.progress.get("mondrian k=3", -1.0))

    model.listen(look)
    done(model)
    shares = [share for share in seen if share >= 0]
    assert shares == sorted(shares)
    assert {round(share, 4) for share in shares} >= {round(at / 6, 4) for at in range(7)}
    assert seen[-1] == -1.0


def test_a_method_without_an_answer_is_a_row(table: af.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from anonflow.errors import InfeasibleError

    def run(part: Partition, k: int, **options: Any) -> Outcome:
        raise InfeasibleError("no release exists; lower k")

    method = Algorithm("mondrian", run, "classes", "", "k-anonymity", "", "")
    real = registry.algorithm_named
    monkeypatch.setattr(tasks, "algorithm_named", lambda name: method if name == "mondrian" else real(name))
    model = done(Exploration(table, k=3, methods=["mondrian", "greedy"]))
    assert list(model.runs["checks"]) == ["infeasible", "2/2"]
    assert model.chosen.algorithm.name == "greedy"
    with pytest.raises(ParameterError, match="no such run"):
        model.choose(1)


# ----------------------------------------------------------------------------------- the widgets


def test_widgets_change_the_state(table: af.Table) -> None:
    panel = af.explorer(table, partition_size=100)
    panel.slider.value = 7
    assert panel.k == 7
    panel.boxes["mondrian"].value = False
    panel.boxes["nh"].value = True
    assert panel.methods == ("greedy", "nh")
    panel.size.value = None
    assert panel.partition_size is None
    panel.roles["Age"].value = "insensitive"
    assert "Age" not in panel.table.qi_columns


def test_a_method_is_compiled_on_a_few_records_once(table: af.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_compiled", set())
    sizes: list[int] = []
    start = background.start

    def noted(flow: Any, **settings: Any) -> Any:
        sizes.append(flow.table.n)
        return start(flow, **settings)

    monkeypatch.setattr(background, "start", noted)
    model = Exploration(table, k=4, methods=["mondrian"], partition_size=100)
    statuses: list[str] = []
    model.listen(lambda: statuses.append(model.status))
    done(done(model))
    assert sizes == [40, 300, 300]
    assert any("compiling" in status for status in statuses)
    assert len(model.runs) == 2


def test_two_questions_find_the_run_of_least_loss(table: af.Table) -> None:
    panel = af.explorer(table, k=7)
    assert panel.strength.value is None
    panel.strength.value = 5
    assert (panel.k, panel.slider.value) == (5, 5)
    panel.slider.value = 9
    assert panel.strength.value is None
    panel.strength.value = 3
    panel.time.options = [("a second", 1.0)]
    panel.best.click()
    panel.wait(300)
    assert len(panel.runs) == 3
    assert set(panel.runs["algorithm"]) > {"k-member", "mondrian"}
    assert panel.chosen.loss("gcp") == pytest.approx(panel.runs["gcp"].min())
    n = panel.exploration.unique.at_risk(3)
    assert f"{n:,} → 0" in panel.numbers.value
    with pytest.raises(ParameterError):
        panel.find(-1)


def test_of_people_with_several_records_the_records_at_risk_are_counted() -> None:
    frame = af.datasets.census_like(60, seed=2)[["Age", "Gender"]].assign(person=lambda rows: rows.index // 2)
    schema: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in ("Age", "Gender")}
    schema["Age"]["kind"], schema["Gender"]["kind"] = "numeric", "categorical"
    labels = {}
    for role in ("unit", "insensitive"):
        panel = af.explorer(af.Table(frame, schema | {"person": {"role": role}}), k=3, methods=["mondrian"])
        panel.start()
        panel.wait(300)
        labels[role] = [word for word in ("people at risk", "records at risk") if word in panel.numbers.value]
    assert labels == {"unit": ["records at risk"], "insensitive": ["people at risk"]}


def test_what_is_chosen_while_another_thread_draws_is_taken(table: af.Table) -> None:
    panel = af.explorer(table, k=5)

    class Lock:
        """Free when the other thread has drawn."""

        def __enter__(self) -> None:
            panel._hushed = False

        def __exit__(self, *error: object) -> None:
            pass

    panel._busy, panel._hushed = Lock(), True
    panel.slider.value = 7
    assert panel.k == panel.slider.value == 7


def test_the_state_changes_widgets(table: af.Table) -> None:
    panel = af.explorer(table)
    panel.k = 120
    assert (panel.slider.value, panel.slider.max) == (120, 120)
    panel.methods = ["forest"]
    assert [name for name, box in panel.boxes.items() if box.value] == ["forest"]
    panel.partition_size = 123
    assert panel.size.value == 123
    panel.exploration.set_role("Race", "sensitive")
    assert panel.roles["Race"].value == "sensitive"
    assert len(panel.runs) == 0


def test_run_is_off_where_it_cannot_work(table: af.Table) -> None:
    panel = af.explorer(table)
    assert not panel.run.disabled
    assert panel.stop.disabled
    for box in panel.boxes.values():
        box.value = False
    assert panel.run.disabled
    assert "no method is chosen" in panel.status.value
    panel.boxes["greedy"].value = True
    assert not panel.run.disabled


def test_the_count_at_risk_follows_k(table: af.Table) -> None:
    panel = af.explorer(table)
    results = []
    for k in (2, 5, 40):
        panel.slider.value = k
        (count,) = re.findall(r"; ([\d,]+) \([\d.]+%\) share", panel.hint.value)
        results.append(int(count))
        sizes = table.frame.groupby(list(table.qi_columns), dropna=False).size()
        assert results[-1] == int(sizes[sizes < k].sum())
    assert results == sorted(results)


def test_run_fills_the_table_and_the_plots(table: af.Table) -> None:
    panel = af.explorer(table, k=3, methods=["greedy", "mondrian"], partition_size=100)
    panel.run.click()
    panel.wait(300)
    assert panel.results.value.count("<tr>") == 3
    assert "2/2" in panel.results.value
    assert [label for label, _ in panel.pick.options] == ["1: greedy, k = 3", "2: mondrian, k = 3"]
    assert panel.pick.value == 1
    assert panel.bars.children == ()
    assert panel.plots[0].value.count("<title>") == 3 + 2  # the picture, two points, two in the legend
    assert "each of the 300 records has 3 matches" in panel.plots[2].value
    panel.pick.value = 2
    assert panel.chosen.algorithm.name == "mondrian"
    assert "records in the class" in panel.plots[2].value
    assert not panel.run.disabled
    assert panel.stop.disabled


def test_cancel_is_a_button(table: af.Table, slow: threading.Event) -> None:
    panel = af.explorer(table, k=3, methods=["greedy"], partition_size=60)
    panel.run.click()
    assert panel.run.disabled
    assert not panel.stop.disabled
    panel.stop.click()
    slow.set()
    panel.wait(300)
    assert len(panel.runs) == 0
    assert "Cancelled; 0 of 1 runs are done." in panel.status.value
    assert panel.stop.disabled


def test_it_shows_itself_without_widgets_too(table: af.Table) -> None:
    panel = done(af.explorer(table, k=3, methods=["mondrian"]))
    bundle, _ = panel._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == "Explorer(300 records, k=3, methods=mondrian, 1 runs)"
    assert "owner’s view" in bundle["text/html"]
    assert bundle["text/html"].count("<svg") == 3


def test_hostile_names_are_escaped() -> None:
    evil = "<script>alert(1)</script>"
    frame = pd.DataFrame({evil: list("aabbccdd") * 3, "age": range(24)})
    schema = {
        evil: {"role": "quasi-identifier", "kind": "categorical"},
        "age": {"role": "quasi-identifier", "kind": "numeric"},
    }
    panel = done(af.explorer(af.Table(frame, schema), k=2))
    bundle, _ = panel._repr_mimebundle_()
    shown = [bundle["text/html"], panel.results.value, panel.hint.value, panel.status.value]
    assert "<script>" not in "".join([*shown, *(plot.value for plot in panel.plots)])


def test_a_slider_step_counts_no_record_again(table: af.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of a table are counted once; each k after that is looked up, in the thread of the slider."""
    panel = af.explorer(table)
    panel.slider.value = 11
    threads: list[object] = []

    def refused(*args: Any, **settings: Any) -> Any:
        raise AssertionError("the records are counted again")

    monkeypatch.setattr(uniqueness, "class_labels", refused)
    monkeypatch.setattr(threading.Thread, "start", threads.append)
    for k in range(12, 17):
        panel.slider.value = k
        assert panel.k == k
        assert "share theirs with fewer than k - 1 others" in panel.hint.value
    assert threads == [], "nothing goes on aside"
