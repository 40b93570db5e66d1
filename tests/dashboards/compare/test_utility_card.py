"""What analyses lose on the screens Compare and Explore: every declared measure, for every run, as the library says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow.dashboards.compare.measure_form import LISTED, ConditionForm, MeasureForm
from anonflow.dashboards.compare.utility_card import UtilityCard
from anonflow.dashboards.compare.utility_model import EVERYTHING, UtilityModel, about, request_title
from anonflow.dashboards.explore.association_card import AssociationCard
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.heat_map import difference_map
from anonflow.utility import MEASURES, measures_of_analyses
from anonflow.utility.analyses.association import associations_of

WAIT = 300.0


@pytest.fixture(scope="module")
def done() -> Iterator[Workspace]:
    workspace = Workspace()
    rng = np.random.default_rng(1)
    age = rng.integers(20, 60, 120)
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], 120),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], 120),
            "ill": np.where(age + rng.integers(0, 20, 120) > 50, "yes", "no"),
        }
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "categorical"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
        "ill": {"role": "sensitive"},
    }
    workspace.opener.open_frame(frame, columns, "people")
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([4, 20])
    workspace.start()
    workspace.wait(WAIT)
    yield workspace
    workspace.close()


def waited(model: UtilityModel) -> None:
    model.background.wait(WAIT)  # also for what is drawn after the last number
    assert not model.busy


def test_every_measure_that_is_declared_is_offered_with_its_direction_and_cost(done: Workspace) -> None:
    model = UtilityModel(done)
    offered = model.offered()
    assert set(measures_of_analyses()) <= set(offered)
    assert set(offered) <= set(MEASURES)
    for name in offered:
        assert f"{MEASURES[name].better} is better".capitalize() in about(name)
        assert MEASURES[name].cost in about(name)
        assert MEASURES[name].extra in about(name)
        form = MeasureForm(name, done.data.table)
        plain = {key for key, option in MEASURES[name].options.items() if option.kind is not None}
        assert set(form.fields) == plain
        assert form.settings() == {}, "nothing is filled in yet"
    assert "question" not in model.without_settings()
    assert "regression" not in model.without_settings()
    assert "classification" in model.without_settings()


def test_the_users_own_question_is_answered_for_every_run(done: Workspace) -> None:
    card = UtilityCard(done)
    card.model.clear()
    card.measure.value = "question"
    assert card.form is not None
    where, among = card.form.condition("where"), card.form.condition("among")
    where.column.value = "age"
    where.low.value, where.high.value = 30.0, 39.0
    among.column.value = "sex"
    assert among.values.options == ["f", "m"]
    among.values.value = ["f"]
    settings = card.form.settings()
    assert settings == {"where": {"age": {"from": 30, "to": 39}}, "among": {"sex": ["f"]}}
    card.start.clicks += 1
    waited(card.model)
    title = request_title("question", settings)
    assert title == "question: where age 30 to 39; among sex = f"
    for run in done.runs.finished:
        anon = run.result.anonymization
        expected = af.measure(anon.table, anon, {"question": settings})
        assert card.model.numbers[title][run.id] == expected
    assert title in card.table.object
    assert "lower is better" in card.table.object
    assert "truth" in card.table.object
    assert card.model.problem == ""
    # asked once more, nothing is computed again
    card.start.clicks += 1
    assert not card.model.busy
    card.model.clear()
    assert card.table.object == ""


def test_a_regression_that_cannot_be_is_a_sentence(done: Workspace) -> None:
    card = UtilityCard(done)
    card.measure.value = "regression"
    card.start.clicks += 1
    waited(card.model)
    assert "needs the option &#39;formula&#39;" in card.problem.object
    assert card.form is not None
    card.form.fields["formula"].value = "income ~ age"
    card.start.clicks += 1
    waited(card.model)
    assert "income" in card.problem.object
    assert "regression" not in " ".join(card.model.numbers)


@pytest.mark.slow
def test_all_that_needs_no_settings_is_measured_for_every_run(done: Workspace) -> None:
    pytest.importorskip("sklearn", reason="learners are an extra")
    card = UtilityCard(done)
    card.model.clear()
    assert card.measure.value == EVERYTHING
    card.start.clicks += 1
    waited(card.model)
    wanted = card.model.without_settings()
    assert list(card.model.numbers) == wanted
    for name in wanted:
        best = card.model.best(name)
        values = {id: result[name] for id, result in card.model.numbers[name].items()}
        if len(set(values.values())) > 1:
            top = (min if MEASURES[name].better == "lower" else max)(values.values())
            assert best == {id for id, value in values.items() if value == top}
        assert [point.id for point in card.model.points(name)] == [run.id for run in done.runs.finished]
    assert card.title.options == wanted
    assert card.figure.html.count("data-key") >= len(done.runs.finished)
    card.model.clear()


def test_values_of_a_column_with_many_are_typed() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * (LISTED + 1), "b": [f"v{at}" for at in range(2 * LISTED + 2)]})
    roles = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame}
    form = ConditionForm("Condition", af.Table(frame, roles))
    assert (form.values.visible, form.typed.visible) == (True, False)
    form.column.value = "b"
    assert (form.values.visible, form.typed.visible) == (False, True)
    assert form.condition() is None
    form.typed.value = "v1, v2 ,"
    assert form.condition() == {"b": ["v1", "v2"]}


def test_the_associations_of_the_chosen_run_are_those_of_the_library(done: Workspace) -> None:
    card = AssociationCard(done)
    assert card.picture.object == ""
    card.start.clicks += 1
    card.background.wait(WAIT)
    anon = done.runs.chosen_run.result.anonymization
    expected = associations_of(anon.table, anon)
    shown = done.runs.noted.associations[done.runs.chosen]
    assert shown.columns == ("age", "sex", "town", "ill")
    assert np.allclose(shown.before, expected.before)
    assert np.allclose(shown.after, expected.after)
    for part in ("Before and after", "The difference", "What changed most"):
        assert part in card.picture.object
    change = expected.after - expected.before
    assert f"{change[3, 0]:+.2f}" in card.picture.object
    other = next(run.id for run in done.runs.finished if run.id != done.runs.chosen)
    before, done.runs.chosen = done.runs.chosen, other
    assert card.picture.object == ""
    assert card.start.visible
    done.runs.chosen = before
    assert "The difference" in card.picture.object


def test_a_difference_map_tells_more_from_less() -> None:
    change = np.array([[0, 0.2, 0], [0.2, 0, -0.4], [0, -0.4, 0]])
    drawn = str(difference_map(["a", "<b>", "c"], change, "change"))
    assert "+0.20" in drawn
    assert "-0.40" in drawn
    assert "&lt;b&gt; and a, stronger in the release" in drawn
    assert "c and &lt;b&gt;, weaker in the release" in drawn
    assert "<b>" not in drawn
