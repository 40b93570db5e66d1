"""Originals without a value are told from what is published as *, and a run is never shown without its release card."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.components.direction import arrow, better, directed
from anonflow.dashboards.explore.model import ExploreModel
from anonflow.dashboards.explore.screen import ExploreScreen
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.session.workspace import Workspace
from anonflow.loss import cell_costs
from anonflow.utility import MEASURES
from anonflow.utility.before_after import BeforeAfter
from anonflow.utility.distributions import MISSING

N = 40


@pytest.fixture(scope="module")
def blanks() -> Iterator[Workspace]:
    """Every fifth age is missing and suppressed, every tenth town is missing and a value of its own."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": [None if i % 5 == 0 else float(rng.integers(20, 60)) for i in range(N)],
            "town": [None if i % 10 == 1 else ("Volos", "Patras")[i % 2] for i in range(N)],
            "income": [("low", "high")[i % 3 == 0] for i in range(N)],
        }
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
        "income": {"role": "sensitive"},
    }
    workspace = Workspace()
    workspace.opener.open_frame(frame, columns)
    workspace.draft.set_algorithms(["greedy"])
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(300)
    yield workspace
    workspace.close()


def test_missing_originals_are_shown_as_missing(blanks: Workspace) -> None:
    model = ExploreModel(blanks)
    records = model.view().records
    assert isinstance(records, BeforeAfter)
    for name in ("age", "town"):
        without = blanks.data.frame[name].isna().to_numpy()
        assert set(records.before[name][without]) == {MISSING}
        assert "*" not in set(records.before[name])
        assert MISSING not in set(records.before[name][~without])
    ages = blanks.data.frame["age"].isna().to_numpy()
    assert set(records.after["age"][ages]) == {"*"}
    assert records.changed[ages, 0].all(), "no value that is published as * has changed"
    towns = records.before["town"] == MISSING
    kept = towns & (records.after["town"].astype(str) == MISSING)
    assert not records.changed[kept.to_numpy(), 1].any(), "no value that is published as none has not"
    assert set(records.containing(MISSING)) >= set(np.flatnonzero(ages))


def test_the_loss_of_missing_values_is_told_apart(blanks: Workspace) -> None:
    model = ExploreModel(blanks)
    anon = model.anonymization
    assert anon is not None
    costs = {
        d.column: cost for d, cost in zip(anon.table.domains, cell_costs(anon.generalization), strict=True)
    }
    lost = {each.column: each for each in model.view().missing}
    assert list(lost) == ["age", "town"]
    for name, each in lost.items():
        without = blanks.data.frame[name].isna().to_numpy()
        assert each.cells == without.sum()
        assert each.loss == pytest.approx(costs[name][without].mean())
        assert each.others == pytest.approx(costs[name][~without].mean())
    assert lost["age"].loss == 1.0
    text = str(ExploreScreen(workspace=blanks).facts.object)
    assert "8 records without a value lose 100.0%" in text
    assert "town: 4 records" in text


def test_of_numbers_with_codes_the_text_says_what_the_map_says() -> None:
    rng = np.random.default_rng(2)
    ages = pd.Series(rng.integers(18, 90, 90)).astype(str).where(rng.random(90) > 0.2, "unknown")
    blank = rng.random(90) < 0.2
    frame = pd.DataFrame({"age": ages.where(~blank), "town": rng.choice(list("ab"), 90)})
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "codes": ["unknown"], "missing": "value"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
    }
    workspace = Workspace()
    workspace.opener.open_frame(frame, columns, "people")
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(300)
    (lost,) = ExploreModel(workspace).view().missing
    assert lost.cells == blank.sum(), "a code is a value"
    both = (lost.cells * lost.loss + (90 - lost.cells) * lost.others) / 90
    assert both == pytest.approx(workspace.runs.finished[0].losses["age"])
    workspace.close()


def test_the_release_card_stands_on_explore_as_it_does_on_publish(blanks: Workspace) -> None:
    screen = ExploreScreen(workspace=blanks)
    screen.model.attack()
    screen.model.background.wait(300)
    attacks = screen.model.attacks
    assert attacks is not None
    assert attacks.card is not None
    text = str(screen.attacked.object)
    assert attacks.card.headline() in text
    for line in attacks.card.lines:
        assert line.name.capitalize() in text
    publish = PublishModel(blanks)
    publish.draw()
    publish.background.wait(300)
    publication = publish.publication
    assert publication is not None
    assert publication.card is not None
    assert [(line.name, line.verdict, line.says) for line in publication.card.lines] == [
        (line.name, line.verdict, line.says) for line in attacks.card.lines
    ]


def test_directions_are_those_of_the_declarations() -> None:
    for name, measure in MEASURES.items():
        assert better(name) == measure.better
    assert directed("GCP", "gcp") == "GCP, lower is better"
    assert directed("rows", "row-types").endswith("higher is better")
    assert directed("size", "min-class-size") == "size"
    assert arrow("suppressed", "suppressed") == "suppressed ↓"
    assert arrow("k", "k") == "k"


def test_card_and_attackers_have_one_figure_of_the_insider() -> None:
    """The card, which may be published, must not use whose row is whose; the list beside it says the same."""
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=300, seed=1)
    workspace.draft.set_algorithms(["hungarian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    model = ExploreModel(workspace)
    model.attack()
    model.background.wait(300)
    (line,) = [line for line in model.attacks.card.lines if line.name == "insider"]
    (row,) = [row for row in model.attacks.rows if row["attacker"] == "insider"]
    assert row["sentence"][1:] in line.says
    assert bool(row["at_risk"]) == (line.verdict == "failed")
    workspace.close()
