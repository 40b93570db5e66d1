"""The screen Risk without a browser: it is computed when somebody looks, for the table and the settings of now."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow import datasets
from anonflow.dashboards import Workspace
from anonflow.dashboards.risk import parts
from anonflow.dashboards.risk.model import RiskModel, set_sizes
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.risk import population_risk
from anonflow.table.infer import advise

WAIT = 60.0


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    one = Workspace()
    yield one
    one.close()


def shown(workspace: Workspace) -> RiskScreen:
    screen = RiskScreen(workspace)
    screen.model.background.wait(WAIT)
    return screen


def test_the_sets_that_are_offered_take_no_long_time() -> None:
    assert set_sizes(3, 100) == {1: 3, 2: 6, 3: 7}
    assert list(set_sizes(13, 30_000)) == [1, 2, 3, 4, 5]
    assert list(set_sizes(13, 320_000)) == [1, 2]
    assert list(set_sizes(500, 1_000)) == [1]
    assert set_sizes(0, 5) == {}


def test_without_a_table_it_says_where_to_get_one(workspace: Workspace) -> None:
    screen = RiskScreen(workspace)
    assert screen.nothing.visible
    assert "go to Data" in screen.nothing.object
    assert not screen.inside.visible
    workspace.open_dataset("census_like", n=60, seed=1)
    screen.model.background.wait(WAIT)
    assert screen.inside.visible
    assert not screen.nothing.visible
    for name in list(workspace.draft.get(("table", "columns"), {})):
        if workspace.draft.get(("table", "columns", name, "role")) == "quasi-identifier":
            workspace.set_column(name, role="insensitive")
    assert screen.nothing.visible
    assert "quasi-identifier" in screen.nothing.object or "cannot be used" in screen.nothing.object


def test_it_shows_the_numbers_of_the_library(workspace: Workspace) -> None:
    workspace.open_dataset("census_like", n=60, seed=1)
    screen = shown(workspace)
    picture = screen.model.picture
    risk = picture.risk
    assert f"<b>{risk.unique:,}</b>" in screen.parts["alone"].object
    assert f"<b>{risk.special:,}</b>" in screen.parts["alone"].object
    first = risk.sets.riskiest(1)["position"].iloc[0]
    assert f'<td class="n">{first:,}</td>' in screen.parts["riskiest"].object
    marked = screen.parts["riskiest"].object.count("<mark>")
    assert marked == sum(len(sets[0]) for sets in picture.smallest)
    for column in workspace.table.qi_columns:
        assert column in screen.parts["sets"].object
    assert "By two columns" in screen.parts["pairs"].object
    assert not screen.people.visible
    assert screen.unsampled.visible
    screen.size.value = 1
    assert screen.parts["sets"].object.count("<g><title>") == len(workspace.table.qi_columns)
    assert len(screen.size.options) == 1 + risk.sets.most


@pytest.mark.parametrize(
    ("names", "words"),
    [(["Age", "Gender"], "if the model holds"), (["Age", "code"], "not estimable")],
)
def test_the_population_is_shown_for_a_fraction(workspace: Workspace, names: list[str], words: str) -> None:
    columns = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in names}
    frame = datasets.census_like(200, seed=1).assign(code=[f"c{at}" for at in range(200)])
    workspace.open_frame(frame[names], columns, "people")
    screen = shown(workspace)
    screen.fraction.value = 0.05
    screen.model.background.wait(WAIT)
    assert not screen.unsampled.visible
    text = screen.parts["population"].object
    told = population_risk(workspace.table, fraction=0.05)
    for each in told.estimates:
        assert each.model in text
        if each.is_there:
            assert f"{each.uniques:,.1f}" in text
    assert f"<b>{told.expected:,.1f}</b>" in text
    assert words in text


def test_people_households_and_weights_are_those_of_the_schema(workspace: Workspace) -> None:
    frame = datasets.census_like(60, seed=1)[["Age", "Gender"]].copy()
    frame["person"] = [f"p{at // 2}" for at in range(60)]
    frame["home"] = [f"h{at // 4}" for at in range(60)]
    frame["stands for"] = [10.0 + at % 3 for at in range(60)]
    columns = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Gender": {"role": "quasi-identifier", "kind": "suppression"},
        "person": {"role": "unit"},
        "home": {"role": "household"},
        "stands for": {"role": "weight"},
    }
    workspace.open_frame(frame, columns, "people")
    screen = shown(workspace)
    assert screen.people.visible
    assert "people (the unit)" in screen.parts["owners"].object
    assert "households" in screen.parts["owners"].object
    assert not screen.fraction.visible
    assert "stands for" in screen.sampled.object
    assert "weights are unequal" in screen.parts["population"].object


def test_nothing_is_computed_while_nobody_looks(workspace: Workspace) -> None:
    workspace.open_dataset("census_like", n=60, seed=1)
    screen = shown(workspace)
    before = screen.model.picture
    root = screen.__panel__()
    root.visible = False
    name = workspace.table.qi_columns[0]
    workspace.set_column(name, role="insensitive")
    screen.model.background.wait(WAIT)
    assert screen.model.picture is before
    assert screen.model.stale
    assert "af-stale" in screen.cards[0].css_classes
    root.visible = True
    screen.model.background.wait(WAIT)
    assert screen.model.picture is not before
    assert not screen.model.stale
    assert name not in screen.model.picture.risk.columns
    workspace.draft.undo()
    screen.model.background.wait(WAIT)
    assert name in screen.model.picture.risk.columns


def test_a_wrong_setting_is_a_sentence_and_a_right_one_mends_it(workspace: Workspace) -> None:
    workspace.open_dataset("census_like", n=60, seed=1)
    model = RiskModel(workspace)
    model.fraction = 2.0
    model.compute()
    model.background.wait(WAIT)
    assert "fraction" in model.problem
    model.fraction = 0.5
    model.compute()
    model.background.wait(WAIT)
    assert model.problem == ""
    assert model.picture.risk.population is not None
    model.most = 40  # more than there are columns: all of them
    model.compute()
    model.background.wait(WAIT)
    assert model.picture.risk.sets.most == max(model.sizes())


def test_the_advisor_speaks_of_columns_that_it_sees_otherwise_first(workspace: Workspace) -> None:
    frame = pd.DataFrame(
        {"mail": [f"a{at}@example.org" for at in range(30)], "age": [at % 9 + 20 for at in range(30)]}
    )
    workspace.open_frame(frame, None, "people")
    workspace.set_column("age", role="insensitive")
    rows = str(parts.reasons(advise(frame), workspace.draft.get(("table", "columns"), {})))
    assert rows.index("<b>age</b>") < rows.index("<b>mail</b>")
    assert "→ quasi-identifier" in rows


def test_names_and_values_are_escaped(workspace: Workspace) -> None:
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame({bad: [f"{bad}{at}" if at < 3 else "y" for at in range(12)], "b": list("uvw") * 4})
    columns = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame}
    workspace.open_frame(frame, columns, "people")
    screen = shown(workspace)
    for name, pane in (*screen.parts.items(), ("known", screen.known)):
        assert "<img" not in pane.object, name
