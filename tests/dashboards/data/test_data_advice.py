"""The advice of the page Data: values, reasons, answers that confirm roles, prices of blanks, columns that lead to others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.data.advice import DataAdvice
from anonflow.dashboards.data.column_form import ANSWERS, ColumnChoice
from anonflow.dashboards.data.screen import DataScreen
from anonflow.dashboards.prepare.screen import PrepareScreen
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.table.schema import UNPUBLISHED

WAIT = 120


def people(n: int = 240) -> pd.DataFrame:
    """Numbers with blanks, numbers with codes, a name, an identifier, and a column that follows from another."""
    rng = np.random.default_rng(3)
    region = rng.integers(0, 6, n)
    income = pd.Series(rng.integers(10, 90, n) * 100).astype(str).where(rng.random(n) > 0.1, "unknown")
    return pd.DataFrame(
        {
            "name": [f"Ann Lee{at}" for at in range(n)],
            "age": rng.integers(18, 90, n),
            "hours": pd.Series(rng.integers(1, 60, n)).where(rng.random(n) > 0.3).astype("Int64"),
            "region": np.array(list("abcdef"))[region],
            "density": region * 10 + 7,
            "income": income,
        }
    )


@pytest.fixture
def workspace() -> Workspace:
    space = Workspace()
    space.opener.open_frame(people(), None, "people")
    return space


def test_each_column_has_its_values_drawn_its_guess_and_the_reason(workspace: Workspace) -> None:
    rows = ColumnChoice(workspace).rows.set_index("column")
    assert rows["values"].str.startswith("<svg").all()
    assert "different" in rows.loc["age", "values"]
    assert f"{workspace.data.frame['hours'].isna().sum()} blank" in rows.loc["hours", "values"]
    assert rows.loc["name", "why"] == "its name is that of a name of a person"
    assert rows.loc["age", "who"] == "everybody?"
    assert rows.loc["income", "who"] == "nobody?"
    assert rows.loc["name", "who"] == ""


def test_the_reason_says_the_guess_where_the_role_is_another(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    choice.choose("age", "role", "insensitive")
    assert choice.rows.set_index("column").loc["age", "why"].startswith("guess: quasi-identifier, because ")


@pytest.mark.parametrize("answer", list(ANSWERS))
def test_an_answer_sets_the_roles_of_many_columns_and_confirms_them(
    workspace: Workspace, answer: str
) -> None:
    choice = ColumnChoice(workspace)
    assert choice.choose_many(["age", "income"], "who", answer)
    rows = choice.rows.set_index("column")
    assert set(rows.loc[["age", "income"], "who"]) == {answer}
    assert set(rows.loc[["age", "income"], "role"]) <= set(ANSWERS[answer])
    assert {"age", "income"}.isdisjoint(workspace.data.unconfirmed(workspace.draft.spec))
    assert not choice.choose("age", "who", "the king")
    assert "is one of" in choice.refusal


def test_an_answer_that_goes_with_the_role_leaves_it(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    choice.choose("region", "role", "insensitive")
    choice.choose("region", "who", "nobody")
    assert workspace.draft.spec.columns["region"].role == "insensitive"


def test_nothing_is_published_whose_role_nobody_confirmed(workspace: Workspace) -> None:
    workspace.start()
    workspace.wait(WAIT)
    model = PublishModel(workspace)
    published = [
        name for name, column in workspace.draft.spec.columns.items() if column.role not in UNPUBLISHED
    ]
    assert model.unconfirmed == published
    model.draw()
    assert not model.busy
    assert model.publication is None
    ColumnChoice(workspace).confirm()
    assert model.unconfirmed == []
    model.draw()
    model.background.wait(WAIT)
    assert model.publication is not None


def test_roles_that_were_declared_need_no_answer() -> None:
    space = Workspace()
    space.opener.open_dataset("census_like", n=60, seed=1)
    assert space.data.unconfirmed(space.draft.spec) == []
    space.opener.open_frame(people(), {"age": {"role": "quasi-identifier", "kind": "numeric"}}, "people")
    assert space.data.unconfirmed(space.draft.spec) == []


def test_an_answer_goes_with_a_column_that_is_renamed(workspace: Workspace) -> None:
    ColumnChoice(workspace).choose("age", "who", "everybody")
    form = PrepareScreen(workspace=workspace)
    form.step.value, form.column.value = "rename", "age"
    form.fields["to"].value = "years"
    form.add.clicks += 1
    assert "years" in workspace.draft.spec.columns
    assert "years" not in workspace.data.unconfirmed(workspace.draft.spec)


def test_numbers_with_blanks_are_proposed_with_value(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    assert choice.rows.set_index("column").loc["hours", "no value"] == "value"
    choice.choose("hours", "kind", "categorical")
    choice.choose("hours", "kind", "numeric")
    assert choice.rows.set_index("column").loc["hours", "no value"] == "value"


def test_each_way_with_blanks_has_its_price(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    advice = screen.advice
    advice.price()
    advice.background.wait(WAIT)
    (price,) = advice.prices
    assert (price.column, price.blanks) == ("hours", int(workspace.data.frame["hours"].isna().sum()))
    assert list(price.losses) == ["value", "suppress", "drop"]
    assert all(0 < loss < 1 for loss in price.losses.values())
    assert price.losses["value"] < price.losses["suppress"]
    assert "✓" in screen.rules.object
    screen.choice.choose("hours", "no value", "drop")
    assert advice.prices == (price,)  # the ways are what is compared
    screen.choice.choose("age", "role", "insensitive")
    assert advice.prices == ()


def test_columns_that_lead_to_quasi_identifiers_are_named_when_roles_change(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    assert "density" not in screen.linked.object
    screen.choice.choose("density", "who", "nobody")
    screen.advice.reading.wait(WAIT)
    assert "column &#39;density&#39; tells &#39;region&#39;" in screen.linked.object
    screen.choice.choose("density", "role", "identifier")
    screen.advice.reading.wait(WAIT)
    assert "density" not in screen.linked.object


def test_what_opens_files_is_folded_while_a_table_is_open(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    assert not screen._ways_in.visible
    screen.__panel__().get_root()
    assert not screen.way._models, "a page has no models of what is folded away"
    screen.unfold.clicks += 1
    assert screen._ways_in.visible
    assert screen.way._models
    assert not screen.dropper._models, "nor of the other ways"
    empty = DataScreen(workspace=Workspace())
    assert empty._ways_in.visible
    assert not empty.unfold.visible


def test_the_list_of_tables_shows_the_open_table() -> None:
    space = Workspace()
    screen = DataScreen(workspace=space)
    space.opener.open_dataset("nursery")
    assert screen.dataset.value == "nursery" != screen.dataset.options[0]
    space.close()


def test_answers_outlive_a_server(workspace: Workspace, tmp_path: Path) -> None:
    ColumnChoice(workspace).choose("age", "who", "acquaintances")
    from anonflow.dashboards.session.project import read_session_runs

    kept = workspace.place.runs
    assert kept is not None
    assert read_session_runs(kept, tmp_path)[3] == {"age": "acquaintances"}


def test_what_only_acquaintances_know_is_counted_apart(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    names = [str(name) for name in choice.quasi_identifiers]
    assert "strangers" not in choice.sentence()
    choice.choose(names[0], "who", "acquaintances")
    assert choice.known == (*names[1:], names[0])
    assert [bar[0] for bar in choice.bars] == [*names[1:], names[0]]
    sizes = workspace.data.frame.groupby(names[1:], dropna=False, observed=True).size()
    assert f"only, {(sizes == 1).sum():,} (" in choice.sentence()
    risk = RiskScreen(workspace)
    assert f"Acquaintances also: <b>{names[0]}</b>" in risk.known.object
    choice.choose_many(names, "who", "acquaintances")
    assert "strangers" not in choice.sentence()  # they know nothing


def test_advice_needs_a_table() -> None:
    advice = DataAdvice(Workspace())
    advice.price()
    assert advice.problem


def test_a_kind_leaves_the_role_of_a_sensitive_column(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    before = workspace.draft.spec
    assert not choice.choose("income", "kind", "numeric")
    assert "choose that role first" in choice.refusal
    assert workspace.draft.spec == before
