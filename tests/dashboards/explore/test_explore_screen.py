"""The screen Explore: its logic by params, its parts by the models a browser would get."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow.dashboards.components import figures
from anonflow.dashboards.explore.model import ATTACKERS, ExploreModel, called, in_plain_words
from anonflow.dashboards.explore.screen import ExploreScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.neighbours import around_one
from anonflow.utility.distributions import distribution
from anonflow.utility.neighbourhood import neighbourhood


@pytest.fixture(scope="module")
def done() -> Iterator[Workspace]:
    workspace = Workspace()
    workspace.open_dataset("census_like", n=120, seed=2)
    workspace.set_algorithms(["greedy", "mondrian", "k-concealment"])
    workspace.set_ks([4])
    workspace.start()
    workspace.wait(60)
    yield workspace
    workspace.close()


def chosen(workspace: Workspace, algorithm: str) -> ExploreModel:
    workspace.choose(next(run.id for run in workspace.runs if run.result.algorithm == algorithm))
    return ExploreModel(workspace)


def test_without_a_run_there_is_nothing_to_explore() -> None:
    workspace = Workspace()
    model = ExploreModel(workspace)
    assert model.run is None
    assert model.columns == []
    assert model.distribution() is None
    assert model.records() is None
    assert model.neighbourhood() is None
    assert model.heat() == (["all (GCP)"], [], [])
    model.attack()
    assert not model.attacking
    workspace.close()


def test_the_heat_map_has_every_run_and_column(done: Workspace) -> None:
    model = chosen(done, "mondrian")
    columns, runs, values = model.heat()
    assert columns == [*model.columns, "all (GCP)"]
    assert len(runs) == len(values) == 3
    assert sum(name.startswith("▶") for name in runs) == 1
    for run, line in zip(done.runs, values, strict=True):
        assert line[-1] == pytest.approx(np.mean(line[:-1]))
        assert line[-1] == pytest.approx(run.result.anonymization.loss("gcp"))


@pytest.mark.parametrize("algorithm", ["greedy", "mondrian", "k-concealment"])
def test_records_before_and_after(done: Workspace, algorithm: str) -> None:
    model = chosen(done, algorithm)
    records = model.records()
    made = model.run.result.anonymization
    assert records.after.to_numpy().tolist() == made.frame().to_numpy().tolist()
    for name in records.before:
        assert records.before[name].tolist() == done.frame[name].astype(str).tolist()
    assert (records.changed == (records.before.to_numpy() != records.after.to_numpy())).all()
    assert records.changed.any()
    assert model.records() is records


def test_records_are_found_by_text_before_and_after(done: Workspace) -> None:
    records = chosen(done, "mondrian").records()
    assert records.found("").tolist() == list(range(120))
    sought = records.before["Marital"].iloc[0]
    expected = [
        at
        for at in range(120)
        if any(
            sought.lower() in cell.lower()
            for frame in (records.before, records.after)
            for cell in frame.iloc[at]
        )
    ]
    assert records.found(sought.upper()).tolist() == expected
    assert records.found("no such text anywhere").tolist() == []
    assert (
        records.found("", only_changed=True).tolist() == np.flatnonzero(records.changed.any(axis=1)).tolist()
    )
    assert records.found("(", only_changed=False) is not None  # a text, not a regular expression


def test_distribution_and_neighbourhood_follow_the_choice(done: Workspace) -> None:
    model = chosen(done, "greedy")
    model.column = "Age"
    assert model.distribution().name == "Age"
    model.record = 7
    around = model.neighbourhood()
    assert (around.kind, around.record, len(around.originals)) == ("matches", 7, 4)
    done.choose(next(run.id for run in done.runs if run.result.algorithm == "mondrian"))
    assert model.column == "Age", "the column stays while runs change"
    assert model.neighbourhood().kind == "class"
    assert sum(count for _, count in model.sizes()) == 120
    assert min(size for size, _ in model.sizes()) >= 4
    assert 0 <= model.worst_record() < 120


def test_attacks_run_aside_and_are_told_in_plain_words(done: Workspace) -> None:
    model = chosen(done, "greedy")
    assert model.attacks is None
    model.attack()
    model.background.wait(60)
    assert not model.attacking
    assert model.problem == ""
    found = model.attacks
    assert {row["attacker"] for row in found.rows} >= {"prosecutor", "marketer", "linker"}
    assert {row["attacker"] for row in found.rows} <= set(ATTACKERS)
    linker = next(row for row in found.rows if row["attacker"] == "linker")
    assert linker["success"] == pytest.approx(1 / 4)
    assert sum(count for _, count in found.covering) == 120
    assert min(size for size, _ in found.covering) >= 4
    assert called(linker) == ATTACKERS["linker"]
    secret = next(row for row in found.rows if row["attacker"] == "homogeneity")
    assert called(secret).endswith(": Salary-class")
    words = in_plain_words(linker)
    assert linker["sentence"] in words
    assert "confidence" not in words  # an expectation over everybody is exact
    assert "between 20.0 % and 30.0 %, with confidence 95 %" in in_plain_words(
        linker | {"low": 0.2, "high": 0.3}
    )
    done.choose(next(run.id for run in done.runs if run.result.algorithm == "mondrian"))
    assert model.attacks is None
    done.choose(next(run.id for run in done.runs if run.result.algorithm == "greedy"))
    assert model.attacks is found


def test_a_new_table_ends_what_was_explored() -> None:
    workspace = Workspace()
    workspace.open_dataset("census_like", n=60, seed=2)
    workspace.set_ks([3])
    workspace.start()
    workspace.wait(60)
    model = ExploreModel(workspace)
    model.record = 59
    model.records()
    workspace.open_dataset("freeform_example")
    assert model.run is None
    assert (model.record, model.column, model.attacks) == (0, "", None)
    assert len(workspace.frame) == len(af.datasets.freeform_example())
    workspace.close()


# ------------------------------------------------------------------------------------- the screen


def test_the_screen_without_a_run_says_how_to_get_one() -> None:
    workspace = Workspace()
    screen = ExploreScreen(workspace=workspace)
    assert screen.nothing.visible
    assert not screen.inside.visible
    assert "Compare" in screen.nothing.object
    workspace.close()


def test_the_screen_follows_the_chosen_run(done: Workspace) -> None:
    by_name = {run.result.algorithm: run.id for run in done.runs}
    done.choose(by_name["greedy"])
    screen = ExploreScreen(workspace=done)
    assert screen.inside.visible
    assert "k-regular" in screen.facts.object
    assert "Each of the 120 published rows: 4 originals" in screen.sizes.object
    first = screen.overlay.object
    screen.column.value = "Education"
    assert screen.model.column == "Education"
    assert screen.overlay.object is not first
    screen.record.value = 17
    assert screen.model.record == 17
    assert "#17: " in screen.graph.object
    assert screen.graph.object.count("<circle") == 8
    screen.chosen.value = by_name["mondrian"]
    assert done.chosen == by_name["mondrian"]
    assert "class of" in screen.graph.object
    done.choose(by_name["k-concealment"])
    assert "not that each is equally likely" in screen.graph.object
    assert "owner" in str(screen.__panel__()[0].object).lower()


def test_changed_cells_are_marked_and_searched(done: Workspace) -> None:
    done.choose(done.runs[0].id)
    screen = ExploreScreen(workspace=done)
    records = screen.model.records()
    table = screen.table.value
    for number, name in enumerate(records.after.columns):
        marked = table[f"{name} · published"].str.startswith("✎ ").to_numpy()
        assert (marked == records.changed[:, number]).all()
    screen.search.value = "female"
    assert 0 < len(screen.table.value) < 120
    assert screen.table.value["record"].tolist() == records.found("female").tolist()
    screen.search.value = "no such value"
    assert len(screen.table.value) == 0
    assert "0 of 120 records" in screen.found.object
    screen.search.value = ""
    screen.only_changed.value = True
    assert len(screen.table.value) == int(records.changed.any(axis=1).sum())


def test_a_value_with_markup_stays_text() -> None:
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame({"name": [bad, "b"] * 6, "age": range(12)})
    table = af.Table(
        frame,
        {
            "name": {"role": "quasi-identifier", "kind": "categorical"},
            "age": {"role": "quasi-identifier", "kind": "numeric"},
        },
    )
    made = af.anonymize(table, "greedy", 3)
    around = neighbourhood(made, 0)
    before, _ = around.texts(made)
    drawn = around_one([", ".join(row) for row in before.to_numpy().tolist()], ["x"] * len(around.rows), [])
    assert "<img" not in drawn
    overlay_labels = distribution(table.records, made.generalization, "name").labels
    assert bad in overlay_labels  # bokeh draws text on a canvas, and escapes it in what floats over it


def test_attack_on_the_screen(done: Workspace) -> None:
    done.choose(next(run.id for run in done.runs if run.result.algorithm == "mondrian"))
    screen = ExploreScreen(workspace=done)
    assert "Nobody has attacked" in screen.attacked.object
    screen.attack.clicks += 1
    screen.model.background.wait(60)
    assert "as promised" in screen.attacked.object
    assert "confidence 95 %" in screen.attacked.object
    assert not screen.attack.disabled


def test_figures_of_dates_have_dates_on_their_axis_and_missing_numbers_have_no_bar() -> None:
    n = 120
    days = pd.date_range("1950-01-01", periods=n, freq="40D").strftime("%Y-%m-%d")
    weights = [None if i % 10 == 0 else 40.0 + 0.7 * i for i in range(n)]
    columns = {
        "born": {"role": "quasi-identifier", "kind": "numeric"},
        "weight": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"},
    }
    table = af.Table(pd.DataFrame({"born": days, "weight": weights}), columns)
    made = af.anonymize(table, "mondrian", k=5)
    born = distribution(table.records, made.generalization, "born")
    assert born.dates
    figure = figures.overlay(born, figures.look(False))
    assert type(figure.xaxis[0].formatter).__name__ == "DatetimeTickFormatter"
    weight = distribution(table.records, made.generalization, "weight")
    assert not weight.dates
    assert len(weight.labels) == len(weight.edges)
    source = figures.overlay(weight, figures.look(False)).renderers[0].data_source
    assert {len(values) for values in source.data.values()} == {len(weight.edges) - 1}


def test_a_click_on_a_node_of_the_lattice_runs_it() -> None:
    frame = pd.DataFrame(
        {"sex": list("fm") * 20, "town": list("abcd") * 9 + list("eeff"), "ill": list("xy") * 20}
    )
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    workspace = Workspace()
    workspace.open_table(af.Table(frame, {"sex": qi, "town": qi, "ill": {"role": "sensitive"}}))
    screen = ExploreScreen(workspace)
    assert not screen.levels.visible
    workspace.set_algorithms(["full-domain"])
    workspace.set_ks([6])
    workspace.start()
    workspace.wait(60)
    assert screen.levels.visible
    part = screen.model.lattice()
    assert part is not None
    assert screen.lattice.html.count('data-key="node:') == len(part.nodes) == 4
    draft = workspace.draft.text()
    for at, node in enumerate(part.nodes):
        screen._node_clicked(f"node:{at}")
        workspace.wait(60)
        run = workspace.runs[-1]
        assert workspace.chosen == run.id
        assert run.result.anonymization.facts["levels"] == part.named(node)
        assert run.result.suppressed == node.suppressed
        shown = screen.model.lattice()
        assert shown is not None
        assert shown.nodes[shown.here].levels == node.levels
        workspace.choose(workspace.runs[0].id)
    assert len(workspace.runs) == 5
    assert workspace.draft.text() == draft
    assert not screen.levels_problem.visible  # an empty bar in the colour of errors
    screen._node_clicked("node:99")
    assert "no such node" in screen.levels_problem.object
    assert screen.levels_problem.visible
    screen._node_clicked("elsewhere")
    assert not screen.levels_problem.visible
    workspace.close()
