"""People with several rows on the screens: the role is chosen, the verdict says units, bad columns are a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")

from anonflow.dashboards.app import App, four_numbers
from anonflow.dashboards.data.column_form import ColumnChoice
from anonflow.dashboards.explore.model import ExploreModel
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.risk.model import RiskModel
from anonflow.dashboards.session.workspace import Workspace

VISITS = "patient,age,ward,ill\n" + "".join(
    f"p{i // 3},{20 + i * 7 % 40},{'AB'[i % 2]},{('flu', 'cold')[i % 5 == 0]}\n" for i in range(60)
)


def opened(tmp_path: Path, text: str) -> tuple[Workspace, ColumnChoice]:
    workspace = Workspace()
    (tmp_path / "visits").write_text(text, encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file("visits.csv", tmp_path / "visits")
    for column, role in {"age": "quasi-identifier", "ward": "quasi-identifier", "ill": "sensitive"}.items():
        assert choice.choose(column, "role", role)
    return workspace, choice


def test_the_role_unit_is_chosen_and_the_verdict_says_units(tmp_path: Path) -> None:
    workspace, choice = opened(tmp_path, VISITS)
    assert choice.choose("patient", "role", "unit")
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    app = App(workspace=workspace)
    workspace.start()
    workspace.wait(300)
    assert app.bar.numbers[2][:2] == ("0", "failing lines")
    attacked = ExploreModel(workspace)
    attacked.attack()
    attacked.background.wait(300)
    of_attack = app.bar.numbers[2][:2]
    model = PublishModel(workspace)
    model.draw()
    model.background.wait(300)
    assert model.publication is not None, model.problem
    failing = [line.name for line in model.publication.card.failing]
    assert "measured" in failing, "a person with three rows is found for one of them more often than one in k"
    assert app.bar.numbers[2][:2] == of_attack == (str(len(failing)), "failing lines")
    findings = {each.criterion: each.holds for each in model.publication.findings}
    assert findings["units"] is True
    assert b"patient" not in model.content("csv")
    workspace.close()


def test_people_with_several_rows_are_not_counted_by_their_rows(tmp_path: Path) -> None:
    workspace, choice = opened(tmp_path, VISITS)
    assert choice.choose("patient", "role", "identifier")
    assert four_numbers(workspace, lambda k: (60, 60))[0][:2] == ("60", "people at risk")
    assert choice.choose("patient", "role", "unit")
    assert four_numbers(workspace, lambda k: (60, 60))[0][:2] == ("60", "records at risk")
    workspace.close()


def test_a_unit_column_with_blanks_is_one_sentence(tmp_path: Path) -> None:
    workspace, choice = opened(tmp_path, VISITS.replace("p3,", ",", 1))
    choice.choose("patient", "role", "unit")
    messages = [str(problem) for problem in workspace.data.problems]
    assert any("1 row has no unit; every row needs one" in text for text in messages), messages
    workspace.close()


WEIGHED = "age,ward,w,ill\n" + "".join(
    f"{20 + i * 7 % 40},{'AB'[i % 2]},{{}},{('flu', 'cold')[i % 5 == 0]}\n" for i in range(20)
)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((2, 0), "column 'w': 10 weights are zero or negative"),
        ((2, -1), "10 weights are zero or negative"),
        ((2, ""), "10 weights are missing or no number"),
    ],
)
def test_weights_that_none_can_be_are_one_sentence(
    tmp_path: Path, weights: tuple[object, object], words: str
) -> None:
    """On Data and Protect, and on Risk, which computes with them."""
    workspace, choice = opened(tmp_path, WEIGHED.format(*weights * 10))
    assert choice.choose("w", "role", "weight")
    sentences = [str(problem) for problem in workspace.data.problems]
    assert sum(words in sentence for sentence in sentences) == 1, sentences
    model = RiskModel(workspace)
    model.draw()
    model.background.wait(300)
    assert words in model.problem
    workspace.close()


def test_unequal_weights_are_a_sentence_where_a_model_forbids_them(tmp_path: Path) -> None:
    workspace, choice = opened(tmp_path, WEIGHED.format(*(2, 3) * 10))
    assert choice.choose("w", "role", "weight")
    model = RiskModel(workspace)
    model.draw()
    model.background.wait(300)
    assert model.problem == ""
    assert "the weights are unequal" in model.picture.risk.population.refused
    workspace.close()
