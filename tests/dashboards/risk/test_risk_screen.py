"""The screen Risk without a browser: it is computed when somebody looks, for the table and the settings of now."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow import datasets
from anonflow.dashboards import Workspace
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.risk import parts
from anonflow.dashboards.risk.model import RiskModel, set_sizes
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.risk import population_risk
from anonflow.risk.before import risk_before
from anonflow.table import Table
from tests.cases.drafts import value_at
from tests.dashboards.conftest import Hand
from tests.dashboards.data.uploading import send

WAIT = 300.0


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    item = Workspace()
    yield item
    item.close()


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
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    screen.model.background.wait(WAIT)
    assert screen.inside.visible
    assert not screen.nothing.visible
    for name in list(value_at(workspace.draft, ("table", "columns"), {})):
        if value_at(workspace.draft, ("table", "columns", name, "role")) == "quasi-identifier":
            workspace.data.set_column(name, role="insensitive")
    assert screen.nothing.visible
    assert "quasi-identifier" in screen.nothing.object or "cannot be used" in screen.nothing.object


def test_it_shows_the_numbers_of_the_library(workspace: Workspace) -> None:
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    screen = shown(workspace)
    picture = screen.model.picture
    risk = picture.risk
    assert f"<b>{risk.unique:,}</b>" in screen.parts["alone"].object
    assert f"<b>{risk.special:,}</b>" in screen.parts["alone"].object
    first = risk.sets.riskiest(1)["position"].iloc[0]
    assert f'<td class="n">{first:,}</td>' in screen.parts["riskiest"].object
    marked = screen.parts["riskiest"].object.count("<mark>")
    assert marked == sum(len(sets[0]) for sets in picture.smallest)
    for column in workspace.data.table.qi_columns:
        assert column in screen.parts["sets"].object
    assert "By two columns" in screen.parts["pairs"].object
    assert not screen.people.visible
    assert screen.unsampled.visible
    screen.size.value = 1
    assert screen.parts["sets"].object.count("<g><title>") == len(workspace.data.table.qi_columns)
    assert len(screen.size.options) == 1 + risk.sets.most


@pytest.mark.parametrize(
    ("names", "words"),
    [(["Age", "Gender"], "if the model holds"), (["Age", "code"], "not estimable")],
)
def test_the_population_is_shown_for_a_fraction(workspace: Workspace, names: list[str], words: str) -> None:
    columns = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in names}
    frame = datasets.census_like(200, seed=1).assign(code=[f"c{at}" for at in range(200)])
    workspace.opener.open_frame(frame[names], columns, "people")
    screen = shown(workspace)
    screen.fraction.value = 0.05
    screen.model.background.wait(WAIT)
    assert not screen.unsampled.visible
    text = screen.parts["population"].object
    risk = population_risk(workspace.data.table, fraction=0.05)
    for each in risk.estimates:
        assert each.model in text
        if each.is_there:
            assert f"{each.uniques:,.1f}" in text
    assert f"<b>{risk.expected:,.1f}</b>" in text
    assert words in text


def test_people_households_and_weights_are_those_of_the_schema(workspace: Workspace, hand: Hand) -> None:
    frame = datasets.census_like(60, seed=1)[["Age", "Gender"]].copy()
    frame["person"] = [f"p{at // 2}" for at in range(60)]
    frame["home"] = [f"h{at // 4}" for at in range(60)]
    frame["stands for"] = [10.0 + at // 2 % 3 for at in range(60)]
    columns = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Gender": {"role": "quasi-identifier", "kind": "suppression"},
        "person": {"role": "unit"},
        "home": {"role": "household"},
        "stands for": {"role": "weight"},
    }
    workspace.opener.open_frame(frame, columns, "people")
    screen = RiskScreen(workspace)
    hand.do_all()
    assert screen.people.visible
    assert "people (the unit)" in screen.parts["owners"].object
    assert "households" in screen.parts["owners"].object
    assert not screen.fraction.visible
    assert "stands for" in screen.sampled.object
    assert "weights are unequal" in screen.parts["population"].object
    frame["stands for"] = [10.0 + at % 3 for at in range(60)]
    workspace.opener.open_frame(frame, columns, "people")
    screen.model.draw()
    hand.do_all()
    assert "30 units have rows of different weights" in screen.status.object


def test_nothing_is_computed_while_nobody_looks(workspace: Workspace) -> None:
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    screen = shown(workspace)
    before = screen.model.picture
    root = screen.__panel__()
    root.visible = False
    name = workspace.data.table.qi_columns[0]
    workspace.data.set_column(name, role="insensitive")
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
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    model = RiskModel(workspace)
    model.fraction = 2.0
    model.draw()
    model.background.wait(WAIT)
    assert "fraction" in model.problem
    model.fraction = 0.5
    model.draw()
    model.background.wait(WAIT)
    assert model.problem == ""
    assert model.picture.risk.population is not None
    model.most = 40  # more than there are columns: all of them
    model.draw()
    model.background.wait(WAIT)
    assert model.picture.risk.sets.most == max(model.sizes())


def test_names_and_values_are_escaped(workspace: Workspace) -> None:
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame({bad: [f"{bad}{at}" if at < 3 else "y" for at in range(12)], "b": list("uvw") * 4})
    columns = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame}
    workspace.opener.open_frame(frame, columns, "people")
    screen = shown(workspace)
    for name, pane in (*screen.parts.items(), ("known", screen.known)):
        assert "<img" not in pane.object, name


REGISTER = ("steps", "attack")


def sampled(workspace: Workspace) -> pd.DataFrame:
    """People of whom every second one is in the open table."""
    everybody = datasets.census_like(120, seed=1)[["Age", "Gender", "Salary-class"]]
    columns = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Gender": {"role": "quasi-identifier", "kind": "categorical"},
        "Salary-class": {"role": "sensitive"},
    }
    workspace.opener.open_frame(everybody[::2].reset_index(drop=True), columns, "people")
    return everybody


def dropped(screen: RiskScreen, name: str, frame: pd.DataFrame) -> None:
    send(screen.dropper, name, frame.to_csv(index=False).encode(), size=10**6)
    screen.register.background.wait(WAIT)


def test_a_register_is_compared_and_attacks_what_is_published(workspace: Workspace) -> None:
    everybody = sampled(workspace)
    screen = shown(workspace)
    assert not screen.forget.visible
    other = {"linkable-columns": {"threshold": 0.4}}
    workspace.draft.put(workspace.draft.spec.with_steps(attack=(other, "linker")))
    dropped(screen, "people.csv", everybody[["Gender", "Age"]])
    assert screen.register.problem == ""
    figures = screen.register.figures
    keys = everybody["Age"].astype(str) + everybody["Gender"]
    fits = keys[::2].map(keys.value_counts())
    assert figures.people == 120
    assert figures.of_row.tolist() == fits.tolist()
    assert figures.single == int((fits == 1).sum())
    assert figures.average == pytest.approx((1 / fits).mean())
    assert f"<b>{figures.single:,}</b>" in screen.of_register.object
    named = value_at(workspace.draft, REGISTER)
    assert {"journalist": {"population": "register-people.csv"}} in named
    assert workspace.data.problems == ()
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(WAIT)
    model = PublishModel(workspace)
    model.draw()
    model.background.wait(WAIT)
    assert model.publication is not None, model.problem
    attacks = model.publication.attacks.set_index("attacker")
    assert attacks.loc["presence", "targets"] == 120
    assert "journalist" in attacks.index
    assert b"a register of the population" in model.publication.review
    # a register is a table about people: it leaves with the table only
    files = {
        with_table: zipfile.ZipFile(io.BytesIO(workspace.save_project(with_table)))
        for with_table in (False, True)
    }
    assert not any("register" in name for name in files[False].namelist())
    assert all(b"register-people" not in files[False].read(name) for name in files[False].namelist())
    assert "files/register-people.csv" in files[True].namelist()
    # undone and done again, it is the draft's; taken away, it is in no flow
    workspace.draft.undo()
    screen.forget.clicks += 1
    assert value_at(workspace.draft, REGISTER) == [other, "linker"]
    assert screen.register.figures is None
    assert not screen.forget.visible


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.drop(columns="Age"), "the population lacks the columns 'Age'"),
        (lambda frame: frame.iloc[:0], "the population has no people"),
        (lambda frame: frame.assign(Age="old"), "Age"),
    ],
)
def test_a_register_that_cannot_be_used_is_one_sentence(workspace: Workspace, change: Any, says: str) -> None:
    everybody = sampled(workspace)
    screen = shown(workspace)
    dropped(screen, "voters.csv", change(everybody))
    assert says in screen.register.problem
    assert screen.register.problem in html_of(screen)
    assert value_at(workspace.draft, REGISTER) is None
    assert not (workspace.folder / "register-voters.csv").exists()
    dropped(screen, "voters.pdf", everybody)
    assert "a table is a .csv, .parquet or .xlsx file" in screen.register.problem
    # one that can be used takes the sentence away
    dropped(screen, "voters.csv", everybody)
    assert screen.register.problem == ""
    assert screen.register.figures.people == 120


def html_of(screen: RiskScreen) -> str:
    return unescape(str(screen.of_register.object))


def test_another_table_has_no_register(workspace: Workspace) -> None:
    everybody = sampled(workspace)
    screen = shown(workspace)
    dropped(screen, "voters.csv", everybody)
    assert screen.register.figures is not None
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    screen.model.background.wait(WAIT)
    assert screen.register.figures is None
    assert screen.register.file is None


def test_columns_of_pictures_are_in_the_order_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many columns those with most unique records, named as the table has them."""
    rng = np.random.default_rng(1)
    values = {f"c{at:02d}": rng.integers(0, 12 if at in (1, 8) else 2, 60) for at in range(11)}
    columns = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in values}
    risk = risk_before(Table(pd.DataFrame(values), columns), most=2)
    monkeypatch.setattr(parts, "PAIRED", 2)
    assert re.findall("c[0-9][0-9]", parts.pairs_of(risk))[:2] == ["c01", "c08"]
    monkeypatch.setattr(parts, "DRAWN", 1)
    names = list(dict.fromkeys(re.findall("c[0-9][0-9]", parts.column_sets_of(risk))))
    assert names == ["c01", "c08"]


def test_a_picture_that_is_cancelled_begins_again_when_somebody_looks(
    workspace: Workspace, hand: Hand
) -> None:
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    screen = RiskScreen(workspace)
    assert "combination of columns" in screen.model.background.doing
    screen.model.stop()
    hand.do_all()
    assert (screen.model.picture, screen.model.busy) == (None, False)
    assert "Cancelled" in screen.status.object
    screen.shown = False
    screen.shown = True
    hand.do_all()
    assert screen.model.picture is not None
    assert not screen.status.visible
