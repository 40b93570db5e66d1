"""The screen Compare: its logic by params, its parts by the models a browser would get."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow.algorithms.registry import REGISTRY, look_of
from anonflow.dashboards.compare.model import BARS, CompareModel
from anonflow.dashboards.compare.screen import FIVE, CompareScreen
from anonflow.dashboards.session.diff import changes, differences
from anonflow.dashboards.session.draft_spec import NO_FLOW, MethodSpec
from anonflow.dashboards.session.publication import card_of_run
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.user_limits import Limits
from anonflow.drawing.comparisons import heat, intervals, pairs
from anonflow.drawing.figures import Point, against_k
from anonflow.drawing.method_mark import SHAPES, sparkline
from anonflow.drawing.neighbours import around_one
from anonflow.engine.flows.spec import DrawSpec
from anonflow.loss import cell_costs
from anonflow.table.schema import MISSING_RULES
from anonflow.utility import MEASURES
from anonflow.utility.frontier import frontier
from anonflow.utility.missing_loss import loss_of_blanks
from tests.cases.drafts import put_at
from tests.dashboards.conftest import Hand


@pytest.fixture(scope="module")
def done() -> Iterator[Workspace]:
    """A workspace with four runs over 150 records; tests that change runs make their own."""
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=150, seed=2)
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    workspace.draft.set_ks([3, 5])
    workspace.start()
    workspace.wait(300)
    yield workspace
    workspace.close()


@pytest.fixture
def small() -> Iterator[Workspace]:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    yield workspace
    workspace.close()


def test_a_partition_of_all_records_is_the_whole_table(small: Workspace) -> None:
    """A budget may choose one of them, which was told as another way than the whole table."""
    small.draft.set_algorithms(["mondrian"])
    small.draft.set_ks([3])
    for size in (60, 20):
        small.draft.put(small.draft.spec.with_partition(size=size))
        small.start()
        small.wait(300)
    assert list(CompareModel(small).rows()["partition"]) == ["whole table", "20"]


def test_every_run_is_a_row_with_its_pictures(done: Workspace) -> None:
    model = CompareModel(done)
    rows = model.rows()
    assert sorted(rows["run"]) == ["greedy k=3", "greedy k=5", "mondrian k=3", "mondrian k=5"]
    assert set(rows["checks"]) == {"✓ 2 of 2 hold"}
    assert rows["columns"].str.startswith("<svg").all()
    assert rows["records"].str.startswith("<svg").all()
    for run in done.runs.finished:
        row = rows[rows["id"] == run.id].iloc[0]
        assert row["gcp"] == pytest.approx(run.result.anonymization.loss("gcp"))
        assert row["seconds"] > 0
        bars = [
            sum(count for percent, count in run.result.spread if at == min(BARS - 1, percent // (100 / BARS)))
            for at in range(BARS)
        ]
        assert row["records"] == str(sparkline(bars, "records by their loss, from 0% left to 100% right"))


def test_no_cell_of_the_table_is_in_the_table_of_runs(done: Workspace) -> None:
    text = CompareModel(done).rows().to_csv()
    for column in ("Marital", "Education", "Workclass"):
        if column in done.data.frame:
            for value in done.data.frame[column].astype(str).unique():
                assert len(value) < 4 or value not in text


def test_points_are_the_measures_of_the_runs(done: Workspace) -> None:
    model = CompareModel(done)
    for measure in ("gcp", "usefulness", "seconds"):
        points = model.points(measure)
        assert [point.id for point in points] == [run.id for run in done.runs.finished]
        for point, run in zip(points, done.runs.finished, strict=True):
            assert point.x == run.result.k
            expected = run.result.seconds if measure == "seconds" else run.result.measures[measure]
            assert point.y == pytest.approx(expected)


def test_nothing_is_drawn_while_the_screen_is_hidden(done: Workspace) -> None:
    screen = CompareScreen(workspace=done)
    chosen, other = (run.id for run in done.runs.finished[:2])
    done.runs.choose(chosen)
    drawn = screen.frontier.html, screen.table.selection
    screen.__panel__().visible = False
    done.runs.choose(other)
    assert (screen.frontier.html, screen.table.selection) == drawn
    screen.__panel__().visible = True
    assert screen.frontier.html != drawn[0]
    assert screen.table.selection != drawn[1]
    assert [int(screen.table.value["id"].iloc[at]) for at in screen.table.selection] == [other]


def test_the_frontier_is_that_of_risk_and_loss(done: Workspace) -> None:
    model = CompareModel(done)
    points = model.frontier_points()
    assert {point.x for point in points} == {1 / 3, 1 / 5}
    expected = frontier([p.x for p in points], [p.y for p in points])
    assert model.best() == [points[at].id for at in expected]
    marked = model.rows().set_index("id")["best"]
    assert {id for id, text in marked.items() if text} == set(model.best())


def test_a_method_that_promises_no_probability_is_not_drawn_at_one_in_k(hand: Hand) -> None:
    """k-concealment stood on the frontier with 1/k, which it does not promise."""
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    workspace.draft.set_algorithms(["k-concealment", "greedy"])
    workspace.draft.set_ks([3])
    workspace.start()
    hand.do_all()
    screen = CompareScreen(workspace=workspace)
    model = screen.model
    by_name = {run.name: run.id for run in workspace.runs.finished}
    assert [point.id for point in model.frontier_points()] == model.best() == [by_name["greedy k=3"]]
    assert "Not drawn: k-concealment k=3" in screen.risk_said.object
    model.risk = "measured"
    hand.do_all()
    assert {point.id for point in model.frontier_points()} == set(by_name.values())
    for run in workspace.runs.finished:
        card = card_of_run(run.seed, run.result)
        (line,) = [line for line in card.lines if line.name == "measured"]
        assert f"the probability is {100 * model.measured[run.id]:.2f}".rstrip("0").rstrip(".") in line.says
    workspace.close()


def test_measured_risk_is_that_of_the_most_exposed_person(done: Workspace) -> None:
    model = CompareModel(done)
    model.risk = "measured"
    for _ in range(len(done.runs.finished)):
        model.background.wait(300)
    assert not model.busy
    assert set(model.measured) == {run.id for run in done.runs.finished}
    for run in done.runs.finished:
        rate = model.measured[run.id]
        assert 0 < rate <= 1 / run.result.k + 1e-9
        if run.result.algorithm == "mondrian":
            # in a class of c each record is one in c
            classes = run.result.anonymization.classes
            assert rate == pytest.approx(1 / np.unique(classes, return_counts=True)[1].min())
    assert len(model.frontier_points()) == 4


def test_column_losses_are_the_mean_costs_of_the_cells(done: Workspace) -> None:
    run = done.runs.finished[0]
    anon = run.result.anonymization
    expected = dict(
        zip([d.name for d in anon.table.domains], cell_costs(anon.generalization).mean(axis=1), strict=True)
    )
    assert run.losses == pytest.approx(expected)


def test_two_runs_side_by_side(done: Workspace) -> None:
    model = CompareModel(done)
    by_name = {run.name: run.id for run in done.runs.finished}
    model.param.update(first=by_name["greedy k=3"], second=by_name["mondrian k=5"])
    answers = {name: (a, b) for name, a, b in model.what_differs()}
    assert answers["method"] == ("greedy", "mondrian")
    assert answers["k"] == ("3", "5")
    assert answers["guarantee"] == ("k-regular", "k-anonymity")
    assert "information loss (GCP) ↓" in answers
    # every measure that the flow asks for, with the direction that it declares
    requests = {
        name for run in model.pair() for name, value in run.result.measures.items() if np.isscalar(value)
    }
    assert "usefulness" in requests
    assert requests - {"gcp"} <= {name.split(" ")[0] for name in answers}
    assert not any(" of " in place for place in answers)
    screen = CompareScreen(workspace=done)
    screen.model.param.update(first=model.first, second=model.second)
    for id in (model.first, model.second):
        for loss in done.runs.of(id).losses.values():
            assert f"{100 * loss:.1f}%" in screen.losses.object
    model.second = model.first
    assert model.pair() is None
    assert model.what_differs() == []


def test_history_undo_and_taking_up_a_run(small: Workspace) -> None:
    model = CompareModel(small)
    assert model.history() == []
    small.draft.set_ks([4])
    small.draft.set_algorithms(["mondrian"])
    assert model.history() == ["method: greedy → mondrian", "k: 10 → 4"]
    small.start()
    small.wait(300)
    run = small.runs.finished[0]
    small.draft.undo()
    assert small.data.algorithms == ["greedy"]
    assert len(model.history()) == 1
    assert small.runs.finished == [run], "undo leaves the runs"
    small.draft.set_algorithms(["greedy", "nh"])
    model.take_up(run.id)
    assert (small.data.algorithms, small.data.ks) == (["mondrian"], [4])
    assert small.data.problems == ()
    small.draft.undo()
    assert small.data.algorithms == ["greedy", "nh"]


def test_differences_are_named_by_their_place() -> None:
    first = NO_FLOW.with_method(k=3).with_steps(draw=DrawSpec())
    second = NO_FLOW.with_method(k=5).with_partition(size=9).model_copy(update={"flow": "b"})
    assert sorted(differences(first, second)) == [
        ("draw", "yes", "–"),
        ("k", "3", "5"),
        ("partition size", "–", "9"),
    ]
    assert differences(first, first) == []
    assert changes(first, first.model_copy(update={"flow": "c"})) == "nothing that runs differently"
    source = {"dataset": "x", "n": 1, "seed": 2}
    many = first.changed([(("table", "source"), source), (("partition", "size"), 2)])
    assert changes(first, many).endswith("; 1 more")


def test_the_run_that_is_chosen_is_one_of_the_two_side_by_side(small: Workspace) -> None:
    small.draft.set_ks([2, 3, 4])
    small.draft.set_algorithms(["mondrian"])
    small.start()
    small.wait(300)
    model = CompareModel(small)
    small.runs.choose(2)
    assert (model.first, model.second) == (2, 3)
    small.runs.choose(3)  # is there already
    assert (model.first, model.second) == (2, 3)
    model.second = 1
    small.runs.choose(3)
    small.runs.delete(3)
    assert {model.first, model.second} == {1, 2}


def test_a_run_without_a_result_is_a_row_that_says_so(small: Workspace) -> None:
    small.starts.limits = Limits(seconds=1e-6)
    small.draft.set_ks([3])
    small.start()
    small.wait(300)
    model = CompareModel(small)
    row = model.rows().iloc[0]
    assert row["checks"] == "✗ no result"
    assert "stopped after" in row["problem"]
    assert row["columns"] == row["records"] == ""
    assert model.pair() is None
    assert model.best() == []
    model.risk = "measured"
    assert not model.busy


def test_usefulness_is_not_shown_of_runs_that_treat_missing_values_differently(
    small: Workspace, hand: Hand
) -> None:
    names = ["gcp", "usefulness"]
    blank = np.arange(60) % 7 == 0
    towns = pd.Series(np.arange(60) % 3).map(["Volos", "Patras", "Arta"].__getitem__).mask(blank)
    categorical = {"role": "quasi-identifier", "kind": "categorical"}
    small.opener.open_frame(
        pd.DataFrame({"town": towns, "sex": ["f", "m"] * 30}), {"town": categorical, "sex": categorical}
    )
    small.draft.set_algorithms(["mondrian"])
    small.draft.set_ks([3])
    small.start()
    hand.do_all()
    screen = CompareScreen(workspace=small)
    (default, *_, other) = MISSING_RULES["categorical"]
    # the default, said or not, is one way; and a column without blanks has none to treat
    for column, way, shown in (("town", default, names), ("sex", other, names), ("town", other, ["gcp"])):
        small.data.set_column(column, missing=way)
        small.start()
        hand.do_all()
        assert [name for name in screen.model.measures() if name in names] == shown
        assert [name for name in names if name not in screen.table.hidden_columns] == shown
        assert ("treat missing values differently" in screen.blanks.object) is (shown != names)
    screen.model.param.update(first=small.runs.finished[0].id, second=small.runs.finished[-1].id)
    assert not any("usefulness" in name for name, _, _ in screen.model.what_differs())
    small.runs.delete(small.runs.finished[-1].id)
    assert "usefulness" in screen.model.measures()
    assert "usefulness" not in screen.table.hidden_columns


def test_a_new_table_forgets_what_was_measured(small: Workspace) -> None:
    model = CompareModel(small)
    small.draft.set_ks([3])
    small.start()
    small.wait(300)
    model.risk = "measured"
    model.background.wait(300)
    assert model.measured
    small.opener.open_dataset("freeform_example")
    assert model.measured == {}
    assert (model.first, model.second) == (None, None)
    assert af.datasets.freeform_example().shape[0] == len(small.data.frame)


# ------------------------------------------------------------------------------------- the screen


def test_the_screen_without_a_table_says_what_to_do() -> None:
    workspace = Workspace()
    screen = CompareScreen(workspace=workspace)
    assert screen.nothing.visible
    assert not screen.results.visible
    assert screen.run.disabled
    assert screen.cancel.disabled
    assert "Data" in screen.notice.object
    workspace.close()


def test_controls_and_workspace_say_the_same(small: Workspace) -> None:
    screen = CompareScreen(workspace=small)
    assert screen.methods.value == ["greedy"]
    screen.methods.value = ["greedy", "nh"]
    screen.ks.value = "5, 3"
    assert (small.data.algorithms, small.data.ks) == (["greedy", "nh"], [3, 5])
    assert screen.run.label == "Run 4"
    screen.ks.value = "three"
    assert "whole number" in screen.notice.object
    assert small.data.ks == [3, 5]
    screen.methods.value = []
    assert screen.methods.value == ["greedy", "nh"], "a flow without a method is none"
    screen.five.clicks += 1
    assert small.data.algorithms == FIVE
    small.draft.undo()
    assert screen.methods.value == ["greedy", "nh"]
    screen.ks.value = "61"
    assert screen.run.disabled
    assert "This cannot run yet" in screen.notice.object


def test_the_method_that_a_time_chooses_is_ticked_until_another_is(small: Workspace) -> None:
    screen = CompareScreen(workspace=small)
    spec = small.draft.spec.with_steps(
        anonymize=MethodSpec(algorithm="auto", k=3, guarantee="k-regular", budget=1)
    )
    small.draft.put(spec)
    assert screen.methods.value == ["auto"]
    screen.methods.value = []
    assert screen.methods.value == ["auto"]
    screen.methods.value = ["auto", "nh"]
    assert small.data.algorithms == ["nh"]
    assert "auto" not in screen.methods.options
    assert small.draft.spec.method.budget is None


def test_run_fills_the_table_and_a_tap_chooses(small: Workspace) -> None:
    screen = CompareScreen(workspace=small)
    screen.methods.value = ["greedy", "mondrian"]
    screen.ks.value = "3, 4"
    seen: list[int] = []
    small.runs.param.watch(lambda event: seen.append(len(screen.table.value)), "finished", precedence=1)
    screen.run.clicks += 1
    small.wait(300)
    assert seen == [1, 2, 3, 4], "results arrive one by one"
    assert screen.results.visible
    assert screen.pair.visible
    other = int(screen.table.value["id"].iloc[-1])
    screen.frontier._handle_msg({"key": f"run:{other}"})
    assert small.runs.chosen == other
    assert screen.table.selection == [screen.table.value["id"].tolist().index(other)]
    assert screen.chosen.value == other
    screen.table.selection = [0]
    assert small.runs.chosen == screen.table.value["id"].iloc[0]
    screen.chosen.value = other
    assert small.runs.chosen == other


def test_methods_differ_by_shape_and_have_the_colours_of_their_page(done: Workspace) -> None:
    screen = CompareScreen(workspace=done)
    drawn = screen.figures["gcp"].html
    methods = {run.result.algorithm for run in done.runs.finished}
    for name in methods:
        assert f'd="{SHAPES[look_of(name).shape]}"' in drawn
    colours = set(re.findall(r"#[0-9a-f]{6}", drawn))
    assert colours == {look_of(name).colour for name in methods}, (
        "text and lines are those of the page, light or dark"
    )


def test_every_measure_that_judges_can_be_drawn_with_its_direction() -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    judging = ["c-avg", "row-types", "discernibility"]
    put_at(workspace.draft, ("steps", "measure"), ["min-class-size", *judging, "gcp"])
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3, 5])
    screen = CompareScreen(workspace=workspace)
    workspace.start()
    workspace.wait(300)
    labels = screen.model.measures()
    # in the order of the declarations; the size of the smallest class judges nothing
    assert list(labels) == ["gcp", "usefulness", "row-types", "c-avg", "discernibility", "seconds"]
    for name in ("gcp", *judging):
        assert labels[name].endswith(f", {MEASURES[name].better} is better")
        assert [point.y for point in screen.model.points(name)] == [
            run.result.measures[name] for run in workspace.runs.finished
        ]
    assert screen.drawn_box.visible
    assert list(screen.drawn.options) == list(labels)
    assert list(screen.figures) == screen.drawn.value == ["gcp", "usefulness", "seconds"]
    screen.drawn.value = ["discernibility", "c-avg"]
    assert list(screen.figures) == ["c-avg", "discernibility"]
    for figure, name in zip(screen.figure_row, ("c-avg", "discernibility"), strict=True):
        assert f">{labels[name]}</text>" in figure.html
    screen.drawn.value = []
    assert len(screen.figure_row) == 0
    workspace.close()


def test_a_single_k_is_drawn_by_method() -> None:
    points = [Point(1, "a", "greedy", 5.0, 0.1), Point(2, "b", "mondrian", 5.0, 0.2)]
    drawn = against_k(points, "GCP", look_of)
    assert ">greedy</text>" in drawn
    assert ">mondrian</text>" in drawn
    several = against_k([*points, Point(3, "c", "greedy", 9.0, 0.3)], "GCP", look_of)
    assert ">5</text>" in several
    assert ">9</text>" in several
    assert ">greedy</text>" not in several
    assert "<svg" in against_k([], "GCP", look_of)


def test_the_ring_is_around_the_chosen_run_in_every_figure(done: Workspace) -> None:
    screen = CompareScreen(workspace=done)
    for run in done.runs.finished:
        done.runs.choose(run.id)
        for figure in (*screen.figures.values(), screen.frontier):
            around = [mark for mark in figure.html.split("<g ")[1:] if 'class="ring"' in mark]
            assert [f'data-key="run:{run.id}"' in mark for mark in around] == [True]


def test_the_look_of_methods_differs() -> None:
    names = list(REGISTRY)
    looks = [(look_of(name).colour, look_of(name).shape) for name in names]
    assert len(set(looks)) == len(names)
    five = [look_of(name) for name in FIVE]
    assert len({mark.colour for mark in five}) == len({mark.shape for mark in five}) == 5
    assert {mark.shape for mark in map(look_of, names)} <= set(SHAPES)


def test_drawings_escape_what_they_are_given() -> None:
    bad = "<script>alert(1)</script>"
    for markup in (
        heat([bad], [bad], [[0.5]]),
        pairs([bad], [0.1], [0.2], (bad, bad), bad),
        intervals([(bad, 0.1, 0.0, 0.2, 0.1)], bad),
        around_one([bad], [bad], [(0, 0)], left=bad, right=bad),
        sparkline([0.0, 1.0], bad),
    ):
        assert "<script" not in markup
        assert "&lt;script" in markup


def test_a_run_is_named_noted_pinned_filtered_and_deleted() -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3, 5])
    workspace.start()
    workspace.wait(300)
    screen = CompareScreen(workspace=workspace)
    second = workspace.runs.finished[1]
    workspace.runs.choose(second.id)
    screen.run_name.value = "for the board"
    screen.note.value = "keep the sexes apart"
    screen.pin.value = True
    run = workspace.runs.of(second.id)
    assert (run.name, run.note, run.pinned) == ("for the board", "keep the sexes apart", True)
    assert screen.table.value["id"].tolist() == [second.id, workspace.runs.finished[0].id]
    screen.filter.value = "SEXES"
    assert screen.table.value["id"].tolist() == [second.id]
    screen.filter.value = "nothing like this"
    assert len(screen.table.value) == 0
    screen.filter.value = ""
    screen.delete.clicks += 1
    assert [run.id for run in workspace.runs.finished] == [1]
    assert workspace.runs.chosen == 1
    assert screen.run_name.value == ""
    workspace.close()


@pytest.mark.parametrize("algorithm", ["greedy", "mondrian"])
def test_a_run_whose_loss_comes_from_blanks_is_a_warning(algorithm: str) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(0, 9, 200), "hours": rng.integers(0, 90, 200).astype(float)})
    frame.loc[rng.random(200) < 0.3, "hours"] = np.nan
    space = Workspace()
    for rule, warns in (("suppress", True), ("value", False)):
        columns = {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "hours": {"role": "quasi-identifier", "kind": "numeric", "missing": rule},
        }
        space.opener.open_frame(frame, columns, "people")
        space.draft.set_algorithms([algorithm])
        space.start()
        space.wait(300)
        screen = CompareScreen(workspace=space)
        anonymization = space.runs.chosen_run.result.anonymization
        share, names = loss_of_blanks(space.runs.chosen_run.result.anonymization)
        assert screen.blanks.visible == (share > 0.5)
        if warns:
            published = anonymization.frame()["hours"].eq("*")
            least = (frame["hours"].isna() & published).mean() / 2 / anonymization.loss("gcp")
            assert least - 1e-9 <= share <= published.mean() / 2 / anonymization.loss("gcp") + 1e-9
            assert names == ["hours"]
            assert ("comes from blanks in hours" in screen.blanks.object) == (share > 0.5)
            assert share > (0.5 if algorithm == "greedy" else 0.3)
        else:
            assert (share, names) == (0.0, [])
    space.close()
