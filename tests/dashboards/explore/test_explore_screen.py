"""The screen Explore: its logic by params, its parts by the models a browser would get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.view import sizes_of
from anonflow.dashboards.explore.model import (
    ExploreModel,
    RunView,
    called,
    in_plain_words,
)
from anonflow.dashboards.explore.screen import ExploreScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import screen_work
from anonflow.drawing.figures import overlay
from anonflow.drawing.neighbours import around_one
from anonflow.risk.attack import ATTACKERS
from anonflow.utility.before_after import BeforeAfter
from anonflow.utility.distributions import MISSING, distribution
from anonflow.utility.neighbourhood import neighbourhood
from tests.dashboards.conftest import Hand


@pytest.fixture(scope="module")
def done() -> Iterator[Workspace]:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=120, seed=2)
    workspace.draft.set_algorithms(["greedy", "mondrian", "k-concealment"])
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(300)
    yield workspace
    workspace.close()


def chosen(workspace: Workspace, algorithm: str) -> ExploreModel:
    workspace.runs.choose(
        next(run.id for run in workspace.runs.finished if run.result.algorithm == algorithm)
    )
    return ExploreModel(workspace)


def test_without_a_run_there_is_nothing_to_explore() -> None:
    workspace = Workspace()
    model = ExploreModel(workspace)
    assert model.run is None
    assert model.columns == []
    assert model.distribution() is None
    assert model.view() is None
    assert model.neighbourhood() is None
    assert model.heat() == (["all (GCP)"], [], [])
    model.attack()
    assert not model.busy
    workspace.close()


def test_the_heat_map_has_every_run_and_column(done: Workspace) -> None:
    model = chosen(done, "mondrian")
    columns, runs, values = model.heat()
    assert columns == [*model.columns, "all (GCP)"]
    assert len(runs) == len(values) == 3
    assert sum(name.startswith("▶") for name in runs) == 1
    for run, line in zip(done.runs.finished, values, strict=True):
        assert line[-1] == pytest.approx(np.mean(line[:-1]))
        assert line[-1] == pytest.approx(run.result.anonymization.loss("gcp"))


@pytest.mark.parametrize("algorithm", ["greedy", "mondrian", "k-concealment"])
def test_records_before_and_after(done: Workspace, algorithm: str) -> None:
    model = chosen(done, algorithm)
    records = model.view().records
    anon = model.run.result.anonymization
    assert records.after.to_numpy().tolist() == anon.frame().to_numpy().tolist()
    for name in records.before:
        assert records.before[name].tolist() == done.data.frame[name].astype(str).tolist()
    assert (records.changed == (records.before.to_numpy() != records.after.to_numpy())).all()
    assert records.changed.any()
    assert model.view().records is records


def test_records_are_found_by_text_before_and_after(done: Workspace) -> None:
    records = chosen(done, "mondrian").view().records
    assert records.containing("").tolist() == list(range(120))
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
    assert records.containing(sought.upper()).tolist() == expected
    assert records.containing("no such text anywhere").tolist() == []
    assert (
        records.containing("", only_changed=True).tolist()
        == np.flatnonzero(records.changed.any(axis=1)).tolist()
    )
    assert records.containing("(", only_changed=False) is not None  # a text, not a regular expression


def test_distribution_and_neighbourhood_follow_the_choice(done: Workspace) -> None:
    model = chosen(done, "greedy")
    model.column = "Age"
    assert model.distribution().name == "Age"
    model.record = 7
    around = model.neighbourhood()
    assert (around.kind, around.record, len(around.originals)) == ("matches", 7, 4)
    done.runs.choose(next(run.id for run in done.runs.finished if run.result.algorithm == "mondrian"))
    assert model.column == "Age", "the column stays while runs change"
    assert model.neighbourhood().kind == "class"
    sizes = sizes_of(model.anonymization)
    assert sum(count for _, count in sizes) == 120
    assert min(size for size, _ in sizes) >= 4
    assert 0 <= model.view().worst < 120


def test_runs_of_a_project_are_offered_to_be_run_again(tmp_path: Path) -> None:
    workspace, other = Workspace(), Workspace()
    table = tmp_path / "people.csv"
    af.datasets.census_like(40, seed=1).to_csv(table, index=False)
    workspace.opener.open_file("people.csv", table)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(300)
    saved = tmp_path / "people.anonflow.zip"
    saved.write_bytes(workspace.save_project(with_table=True))
    other.opener.read_project_file(saved)()
    screen = ExploreScreen(workspace=other)
    assert screen.repeat.visible
    assert not screen.inside.visible
    screen.repeat.clicks += 1
    other.starts.restorer.wait(300)
    other.wait(300)
    assert screen.inside.visible
    assert not screen.repeat.visible
    workspace.close()
    other.close()


def test_a_stranger_attacks_with_what_everybody_could_know(done: Workspace) -> None:
    model = chosen(done, "mondrian")
    names = model.anonymization.table.qi_columns
    done.data.confirm({names[0]: "acquaintances"})
    try:
        model.attack()
        model.background.wait(300)
        *others, stranger = model.attacks.rows
        prosecutor = next(row for row in others if row["attacker"] == "prosecutor")
        assert called(stranger) == f"{called(prosecutor)}: a stranger"
        assert f"{', '.join(names[1:])} only" in stranger["knows"]
        assert stranger["success"] <= prosecutor["success"]
        assert [line.name for line in model.attacks.card.lines].count("prosecutor") <= 1
    finally:
        done.data.answers = {}
        done.runs.noted.attacks.clear()


def test_attacks_run_aside_and_are_told_in_plain_words(done: Workspace) -> None:
    model = chosen(done, "greedy")
    assert model.attacks is None
    model.attack()
    model.background.wait(300)
    assert not model.busy
    assert model.problem == ""
    attacks = model.attacks
    assert {row["attacker"] for row in attacks.rows} >= {"prosecutor", "marketer", "linker"}
    assert {row["attacker"] for row in attacks.rows} <= set(ATTACKERS)
    linker = next(row for row in attacks.rows if row["attacker"] == "linker")
    assert linker["success"] == pytest.approx(1 / 4)
    assert sum(count for _, count in attacks.covering) == 120
    assert min(size for size, _ in attacks.covering) >= 4
    assert called(linker) == ATTACKERS["linker"].does
    secret = next(row for row in attacks.rows if row["attacker"] == "homogeneity")
    assert called(secret).endswith(": Salary-class")
    # one draw: the card, the attackers and the screen Publish say the same figures
    says = {line.name: line.says for line in attacks.card.lines}
    assert says["homogeneity"] == secret["sentence"]
    linkable = next(row for row in attacks.rows if row["attacker"] == "linkable-columns")
    assert says["linkable columns"].startswith(linkable["sentence"])
    published = done.publish(model.run.id).card
    assert {line.name: line.says for line in published.lines} == says
    words = in_plain_words(linker)
    assert linker["sentence"] in words
    assert "confidence" not in words  # an expectation over everybody is exact
    assert "between 20.0% and 30.0%, with confidence 95%" in in_plain_words(
        linker | {"low": 0.2, "high": 0.3}
    )
    done.runs.choose(next(run.id for run in done.runs.finished if run.result.algorithm == "mondrian"))
    assert model.attacks is None
    done.runs.choose(next(run.id for run in done.runs.finished if run.result.algorithm == "greedy"))
    assert model.attacks is attacks


def test_a_new_table_ends_what_was_explored() -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    model = ExploreModel(workspace)
    model.record = 59
    assert model.view() is not None
    workspace.opener.open_dataset("freeform_example")
    assert model.run is None
    assert (model.record, model.column, model.attacks) == (0, "", None)
    assert len(workspace.data.frame) == len(af.datasets.freeform_example())
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
    by_name = {run.result.algorithm: run.id for run in done.runs.finished}
    done.runs.choose(by_name["greedy"])
    screen = ExploreScreen(workspace=done)
    assert screen.inside.visible
    assert "k-regular" in screen.facts.object
    assert "Each of the 120 published rows: 4 originals" in screen.sizes.object
    first = screen.overlay.object
    screen.column.value = "Education"
    assert screen.model.column == "Education"
    assert screen.overlay.object != first
    screen.record.value = 17
    assert screen.model.record == 17
    assert "#17: " in screen.graph.object
    assert screen.graph.object.count("<circle") == 8
    screen.chosen.value = by_name["mondrian"]
    assert done.runs.chosen == by_name["mondrian"]
    assert "class of" in screen.graph.object
    done.runs.choose(by_name["k-concealment"])
    assert "not that each is equally likely" in screen.graph.object
    assert "owner" in str(screen.__panel__()[0].object).lower()


def test_changed_cells_are_marked_and_searched(done: Workspace) -> None:
    done.runs.choose(done.runs.finished[0].id)
    screen = ExploreScreen(workspace=done)
    records = screen.model.view().records
    table = screen.table.value
    for number, name in enumerate(records.after.columns):
        marked = table[f"{name} · published"].str.startswith("✎ ").to_numpy()
        assert (marked == records.changed[:, number]).all()
    screen.search.value = "female"
    assert 0 < len(screen.table.value) < 120
    assert screen.table.value["record"].tolist() == records.containing("female").tolist()
    screen.search.value = "no such value"
    assert len(screen.table.value) == 0
    assert "0 of 120 records" in screen.matching.object
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
    anon = af.anonymize(table, "greedy", 3)
    around = neighbourhood(anon, 0)
    before, _ = around.texts(anon)
    drawn = around_one([", ".join(row) for row in before.to_numpy().tolist()], ["x"] * len(around.rows), [])
    assert "<img" not in drawn
    overlay_labels = distribution(table.records, anon.generalization, "name").labels
    assert bad in overlay_labels
    assert "<img" not in overlay(distribution(table.records, anon.generalization, "name"))


def test_a_missing_original_is_called_missing_beside_those_it_is_hidden_among() -> None:
    frame = pd.DataFrame({"age": [None, 31, 32, 41, 42, 43], "town": ["a", None, "a", "b", "b", "b"]})
    table = af.Table(
        frame,
        {
            "age": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"},
            "town": {"role": "quasi-identifier", "kind": "categorical", "missing": "value"},
        },
    )
    anon = af.anonymize(table, "mondrian", 3)
    for record, column in ((0, "age"), (1, "town")):
        before, after = neighbourhood(anon, record).texts(anon)
        assert before[column].iloc[0] == MISSING
        assert (before.map(lambda text: text in ("*", ""))).sum().sum() == 0
        assert not (after == "").any().any()
    _, after = neighbourhood(anon, 0).texts(anon)
    assert after["age"].iloc[0] == "*", "what is published of it is said as it is published"


def test_attack_on_the_screen(done: Workspace) -> None:
    done.runs.choose(next(run.id for run in done.runs.finished if run.result.algorithm == "mondrian"))
    screen = ExploreScreen(workspace=done)
    assert "Nobody has attacked" in screen.attacked.object
    screen.attack.clicks += 1
    screen.model.background.wait(300)
    assert "as promised" in screen.attacked.object
    assert "confidence 95%" in screen.attacked.object
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
    anon = af.anonymize(table, "mondrian", k=5)
    born = distribution(table.records, anon.generalization, "born")
    assert born.dates
    assert re.findall(r">(\d{4})</text>", overlay(born)), "years"
    weight = distribution(table.records, anon.generalization, "weight")
    assert not weight.dates
    assert len(weight.labels) == len(weight.edges)
    assert overlay(weight).count('class="before"') == len(weight.edges) - 1


def test_a_click_on_a_node_of_the_lattice_runs_it() -> None:
    frame = pd.DataFrame(
        {"sex": list("fm") * 20, "town": list("abcd") * 9 + list("eeff"), "ill": list("xy") * 20}
    )
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    workspace = Workspace()
    workspace.opener.open_table(af.Table(frame, {"sex": qi, "town": qi, "ill": {"role": "sensitive"}}))
    screen = ExploreScreen(workspace)
    assert not screen.levels.visible
    workspace.draft.set_algorithms(["full-domain"])
    workspace.draft.set_ks([6])
    workspace.start()
    workspace.wait(300)
    assert screen.levels.visible
    part = screen.model.view().lattice
    assert part is not None
    assert screen.lattice.html.count('data-key="node:') == len(part.nodes) == 4
    draft = workspace.draft.text()
    for at, node in enumerate(part.nodes):
        screen._node_clicked(f"node:{at}")
        workspace.wait(300)
        run = workspace.runs.finished[-1]
        assert workspace.runs.chosen == run.id
        assert run.result.anonymization.facts["levels"] == part.named(node)
        assert run.result.suppressed == node.suppressed
        shown = screen.model.view().lattice
        assert shown is not None
        assert shown.nodes[shown.of_run].levels == node.levels
        workspace.runs.choose(workspace.runs.finished[0].id)
    assert len(workspace.runs.finished) == 5
    assert workspace.draft.text() == draft
    assert not screen.levels_problem.visible  # an empty bar in the colour of errors
    screen._node_clicked("node:99")
    assert "no such node" in screen.levels_problem.object
    assert screen.levels_problem.visible
    screen._node_clicked("elsewhere")
    assert not screen.levels_problem.visible
    workspace.close()


def test_many_records_are_computed_and_searched_off_the_event_loop(
    done: Workspace, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_work, "FEW", 10)
    aside: dict[str, set[bool]] = {"view": set(), "search": set()}
    of, containing = RunView.of, BeforeAfter.containing

    def watched_of(anonymization: Anonymization) -> RunView:
        aside["view"].add(hand.is_working)
        return of(anonymization)

    def watched_containing(records: BeforeAfter, *args: Any) -> np.ndarray:
        aside["search"].add(hand.is_working)
        return containing(records, *args)

    monkeypatch.setattr(RunView, "of", watched_of)
    monkeypatch.setattr(BeforeAfter, "containing", watched_containing)
    done.runs.choose(next(run.id for run in done.runs.finished if run.result.algorithm == "mondrian"))
    screen = ExploreScreen(workspace=done)
    hand.do_all()
    assert "120 of 120 records" in screen.matching.object
    sought = screen.model.view().records.before["Marital"].iloc[0]
    screen.search.value = sought
    hand.do_all()
    expected = len(containing(screen.model.view().records, sought))
    assert f"{expected} of 120 records" in screen.matching.object
    assert aside == {"view": {True}, "search": {True}}
    assert screen.model.view().missing == ()
    assert 0 <= screen.model.view().worst < 120


def test_every_attacker_has_its_words() -> None:
    words = [kind.does for kind in ATTACKERS.values()]
    assert all(words)
    assert len(set(words)) == len(words)


def test_the_attackers_of_a_table_with_people_of_several_rows_are_drawn() -> None:
    people = af.datasets.census_like(120, seed=2).assign(person=[str(i // 2) for i in range(120)])
    workspace = Workspace()
    workspace.opener.open_frame(people, {**af.datasets.schema("census_like"), "person": {"role": "unit"}})
    workspace.draft.set_algorithms(["greedy"])
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(300)
    screen = ExploreScreen(workspace=workspace)
    screen.model.attack()
    screen.model.background.wait(300)
    assert not screen.attack.disabled
    assert any(called(row) == ATTACKERS["unit"].does for row in screen.model.attacks.rows)
    workspace.close()
