"""The screen Publish: one draw, its files, and what is whose."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn

import anonflow as af
from anonflow import strict_yaml
from anonflow.dashboards.components.release_card import Remedies
from anonflow.dashboards.publish.model import OWNER, PUBLIC, PublishModel
from anonflow.dashboards.publish.screen import REDRAW, PublishScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import screen_work
from anonflow.engine.report.card import CardLine, ReleaseCard, Remedy
from anonflow.release import Certificate
from anonflow.table.infer import Advice, advise
from tests.cases.drafts import value_at
from tests.dashboards.conftest import Hand
from tests.dashboards.publish.drawing import drawn


@pytest.fixture
def done() -> Iterator[Workspace]:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=90, seed=2)
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    yield workspace
    workspace.close()


def ready_to_draw(owner: Path) -> Workspace:
    workspace = Workspace(owner=owner)
    workspace.opener.open_dataset("census_like", n=90, seed=2)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    return workspace


def test_nothing_is_handed_out_before_the_draw(done: Workspace) -> None:
    model = PublishModel(done)
    assert model.publication is None
    assert all(model.content(kind) == b"" for kind in PUBLIC | OWNER)
    with pytest.raises(KeyError):
        model.content("truth")


def test_the_files_are_what_they_say(done: Workspace, tmp_path: Path) -> None:
    model = drawn(done)
    assert model.problem == ""
    assert model.publication.ok
    csv = pd.read_csv(io.BytesIO(model.content("csv")), dtype=str)
    parquet = pd.read_parquet(io.BytesIO(model.content("parquet"))).astype(str)
    assert csv.shape == parquet.shape == (90, len(done.data.table.frame.columns))
    path = tmp_path / "release.csv"
    path.write_bytes(model.content("csv"))
    assert af.verify(done.data.table, str(path), ["covers", "k-regular"], k=3)
    proof = tmp_path / "certificate.npz"
    proof.write_bytes(model.content("certificate"))
    assert Certificate.load(proof).k == 3
    html = model.content("report").decode()
    assert html.startswith("<!doctype html>")
    assert model.content("seed").decode().strip() == f"{model.run.seed:032x}"
    assert f"{model.run.seed:x}" not in model.content("flow").decode()
    assert "seed" not in strict_yaml.loads(model.content("flow").decode()).data


def test_the_flow_and_the_seed_repeat_the_release(done: Workspace, tmp_path: Path) -> None:
    model = drawn(done)
    flow = tmp_path / "again.yaml"
    flow.write_bytes(model.content("flow"))
    seed = tmp_path / "seed"
    seed.write_bytes(model.content("seed"))
    from typer.testing import CliRunner

    from anonflow.cli.command_line import app

    answer = CliRunner().invoke(app, ["run", str(flow), "--seed-file", str(seed), "--quiet"])
    assert answer.exit_code == 0, answer.output
    name = strict_yaml.loads(model.content("flow").decode()).data["publish"]["table"]
    assert (tmp_path / name).read_bytes() == model.content("csv")


def test_asking_again_gives_the_same_release(done: Workspace) -> None:
    model = drawn(done)
    first = model.publication
    model.draw()
    assert model.publication is first
    done.runs.choose(done.runs.finished[1].id)
    assert model.publication is None
    done.runs.choose(done.runs.finished[0].id)
    assert model.publication is first


def test_a_release_that_was_drawn_before_an_interruption_counts_as_no_earlier_one(done: Workspace) -> None:
    """A server was stopped after a draw: its page warned of a second release of these people, and offered to go on from the first."""
    first = drawn(done)
    before = first.content("csv")
    done.runs.noted.publications.clear()  # what a session on disk does not have
    screen = PublishScreen(done)
    assert screen.draw.label == REDRAW
    assert not screen.draw.disabled
    assert not screen.released.card.visible
    assert "this is no second release" in screen.state.object
    screen.model.draw()
    screen.model.background.wait(300)
    assert screen.draw.label == "Already drawn"
    assert screen.released.card.visible
    assert "Nobody of this table is in a release" in screen.released.people.object
    assert screen.model.content("csv") == before


def test_a_second_draw_of_the_same_table_warns(done: Workspace) -> None:
    model = drawn(done)
    first = done.runs.of(done.runs.chosen)
    assert model.drawn == []
    done.runs.choose(next(run.id for run in done.runs.finished if run is not first))
    assert model.drawn == [f"{first.name} (#{first.id})"]
    assert model.needs_agreement
    model.draw()
    assert not model.busy
    assert model.publication is None, "not without agreement"
    model.agreed = True
    model.draw()
    model.background.wait(300)
    assert model.publication.ok
    assert not model.agreed, "an agreement is for one draw"
    done.opener.open_dataset("freeform_example")
    assert model.drawn == [], "another table"


def test_a_release_of_people_who_were_released_before_needs_agreement(tmp_path: Path) -> None:
    """Another session, or another process: a keyed mark in the owner's folder is all that the two have in common."""
    first, second = ready_to_draw(tmp_path), ready_to_draw(tmp_path)
    try:
        model = drawn(first)
        assert model.publication.ok
        assert not any(
            "forgotten" in warning or "remembers" in warning for warning in model.publication.warnings
        )
        screen = PublishScreen(workspace=second)
        again = screen.model
        assert again.drawn == []
        for _ in range(2):  # nothing is remembered of what is not handed out
            again.draw()
            again.background.wait(300)
            assert again.publication is None
            assert "90 of 90 people are in an earlier release" in again.earlier
        assert screen.second.visible
        assert "90 of 90 people are in an earlier release" in screen.second.object
        assert screen.draw.disabled
        assert all(again.content(kind) == b"" for kind in PUBLIC | OWNER)
        again.agreed = True
        again.draw()
        again.background.wait(300)
        assert again.publication.ok
        assert again.earlier in again.publication.warnings
        assert len(list((tmp_path / ".releases").glob("*.npz"))) == 2
    finally:
        first.close()
        second.close()


def test_without_an_owners_folder_it_says_that_nothing_is_remembered(done: Workspace) -> None:
    assert "--owner FOLDER" in drawn(done).publication.warnings[-1]


def test_a_failed_check_hands_nothing_out(done: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from anonflow.criteria.verification import Finding

    real = done.publish
    bad = Finding("covers", False, 2, "published", (1, 2), "two rows cover nobody")
    monkeypatch.setattr(
        Workspace, "publish", lambda self, *args: replace(real(*args), ok=False, findings=(bad,))
    )
    screen = PublishScreen(workspace=done)
    screen.model.draw()
    screen.model.background.wait(300)
    assert all(screen.model.content(kind) == b"" for kind in PUBLIC | OWNER)
    assert not screen.files.visible
    assert "A check failed" in screen.state.object
    assert "✗" in screen.state.object
    assert screen.model.drawn == []


def test_file_names_say_flow_method_and_k_only(done: Workspace) -> None:
    model = PublishModel(done)
    assert model.file_name("csv") == f"census_like-{model.run.result.algorithm}-k3-release.csv"
    assert len({model.file_name(kind) for kind in PUBLIC | OWNER}) == len(PUBLIC | OWNER)


def test_the_link_holds_no_value_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    import base64

    frame = pd.DataFrame({"Confidential": ["Zaphod", "Trillian", "Arthur"] * 4, "age": range(12)})
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    workspace = Workspace()
    workspace.opener.open_file("people.csv", path)
    workspace.data.set_column("Confidential", role="quasi-identifier", kind="categorical")
    workspace.data.set_column(
        "Confidential", kind="hierarchy", hierarchy={"nested": {"all": ["Zaphod", "Trillian", "Arthur"]}}
    )
    workspace.draft.set_ks([3])
    model = PublishModel(workspace)
    code = model.link().removeprefix("c=")
    text = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).decode()
    for word in ("Zaphod", "Confidential", "people", "age"):
        assert word not in text
    assert any("Confidential" in place for place in model.not_in_the_link())
    workspace.close()


def test_a_large_table_is_looked_at_off_the_event_loop_and_only_for_who_sees_the_link(
    tmp_path: Path, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside: list[bool] = []

    def advice(frame: pd.DataFrame, tell: Any) -> list[Advice]:
        aside.append(hand.is_working)
        return advise(frame, tell=tell)

    workspace = Workspace()
    path = tmp_path / "people.csv"
    pd.DataFrame({"age": [20 + i % 9 for i in range(60)], "town": list("ab") * 30}).to_csv(path, index=False)
    workspace.opener.open_file("people.csv", path)
    monkeypatch.setattr(screen_work, "FEW", 10)
    monkeypatch.setattr(workspace.data, "advice", advice)
    screen = PublishScreen(workspace)
    page = screen.__panel__()
    hand.do_all()
    assert aside == [True]
    workspace.data.set_column("age", role="quasi-identifier", kind="numeric", weight=3)
    assert "weight of age" in screen.link.object
    page.visible = False
    shown = screen.link.object
    workspace.data.set_column("age", weight=None)
    assert screen.link.object == shown
    page.visible = True
    assert "weight of age" not in screen.link.object
    assert aside == [True]
    workspace.close()


def test_the_link_of_a_built_in_table_restores_it(done: Workspace) -> None:
    from anonflow.dashboards.session import share_link

    model = PublishModel(done)
    assert model.not_in_the_link() == []
    again = Workspace()
    again.opener.open_dataset("census_like", n=90, seed=2)
    again.draft.put(share_link.merged(again.draft.spec, share_link.configuration(model.link())))
    assert (again.data.algorithms, again.data.ks) == (done.data.algorithms, done.data.ks)
    assert again.draft.document["table"] == done.draft.document["table"]
    again.close()


def test_the_screen_says_what_is_public_and_what_is_the_owners(done: Workspace, tmp_path: Path) -> None:
    screen = PublishScreen(workspace=done)
    assert not screen.files.visible
    assert not screen.buttons, "files are built with the first release"
    screen.model.draw()
    screen.model.background.wait(300)
    assert screen.files.visible
    assert "✓" in screen.state.object
    assert not screen.seed.visible, "the seed is offered apart"
    screen.show_seed.value = True
    assert screen.seed.visible
    assert screen.buttons["csv"].callback().read() == screen.model.content("csv")
    assert "intersected" in screen.limits.object
    for kind, description in (("csv", "csv-metadata"), ("parquet", "package")):  # as they are downloaded
        for file in (kind, description):
            (tmp_path / screen.model.file_name(file)).write_bytes(screen.model.content(file))
        read = af.read_release(tmp_path / screen.model.file_name(kind))
        assert read.about == screen.model.publication.release.about
    assert screen.draw.disabled
    run = screen.model.run
    assert f"{run.seed:x}" not in str(
        [pane.object for pane in pn.panel(screen).select(pn.pane.HTML) if hasattr(pane, "object")]
    )


def test_without_a_run_the_screen_says_how_to_get_one() -> None:
    workspace = Workspace()
    screen = PublishScreen(workspace=workspace)
    assert screen.nothing.visible
    assert not screen.inside.visible
    assert "Compare" in screen.nothing.object
    workspace.close()


def test_checks_never_stand_alone_beside_a_failing_line(done: Workspace) -> None:
    """The release card is on the screen, with what each failing line needs; a page for a reviewer is among the files."""
    screen = PublishScreen(done)
    screen.model.draw()
    screen.model.background.wait(300)
    publication = screen.model.publication
    assert publication is not None
    assert publication.card is not None
    assert "Release card" in screen.state.object
    assert ("this release may be published" in screen.state.object) is publication.card.ok
    for line in publication.card.failing:
        assert all(remedy.sentence().split(" (")[0] in screen.state.object for remedy in line.remedies)
    page = screen.model.content("review").decode()
    assert "Signatures" in page
    assert "0.09" in page


def test_a_line_that_fails_has_a_remedy_that_is_applied_and_run(hand: Hand) -> None:
    """Each remedy that a flow can say is one edit, and one run, which is then the chosen one."""
    workspace = Workspace()
    age = [20 + 7 * at % 40 for at in range(60)]
    frame = pd.DataFrame({"age": age, "town": list("abc") * 20, "ill": [item // 30 for item in age]})
    workspace.opener.open_frame(frame, {
        "age": {"role": "quasi-identifier", "kind": "numeric"}, "town": {"role": "quasi-identifier", "kind": "categorical"},
        "ill": {"role": "sensitive"},
    })  # fmt: skip
    workspace.draft.set_algorithms(["greedy"])
    workspace.draft.set_ks([3])
    workspace.start()
    hand.do_all()
    screen = PublishScreen(workspace=workspace)
    screen.model.draw()
    hand.do_all()
    card = screen.model.publication.card
    assert card.headline() in screen.state.object
    assert "may be published" not in screen.may.object
    offered = [remedy for line in card.failing for remedy in line.remedies if remedy.change]
    assert [button.label for button in screen.remedies.buttons] == [remedy.action for remedy in offered]
    assert {"leave out the column ill", "make ill a quasi-identifier", "p = 2"} <= {
        remedy.action for remedy in offered
    }
    # prices are asked for, and then on the card
    assert all(remedy.price is None for remedy in offered)
    screen.remedies.price.clicks += 1
    assert screen.remedies.price.disabled
    hand.do_all()
    assert not screen.remedies.price.visible
    priced = {
        remedy.action: remedy.price
        for line in screen.model.publication.card.failing
        for remedy in line.remedies
    }
    assert priced["p = 2"] is not None
    assert "p = 2 costs +" in screen.state.object
    for number, (button, remedy) in enumerate(zip(list(screen.remedies.buttons), offered, strict=True), 2):
        workspace.runs.choose(1)
        button.clicks += 1
        hand.do_all()
        assert not screen.remedies.refusal.visible, screen.remedies.refusal.object
        assert [run.id for run in workspace.runs.finished] == list(range(1, number + 1))
        assert workspace.runs.chosen == number
        for path, value in remedy.change:
            assert value_at(workspace.draft, path) == value
        workspace.draft.undo()
        assert all(value_at(workspace.draft, path) != value for path, value in remedy.change)
    workspace.close()


def test_a_remedy_that_cannot_be_is_said(hand: Hand) -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=30, seed=2)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.start()
    hand.do_all()
    remedies = Remedies(workspace, lambda: None)
    change = ((("steps", "anonymize", "k"), 31),)
    line = CardLine(
        "measured", "failed", "It is too large.", (Remedy("k = 31", None, "", change), Remedy("think"))
    )
    remedies.show(ReleaseCard((line,), 0.03, 0.1), 1)
    (button,) = remedies.buttons
    button.clicks += 1
    assert remedies.refusal.visible
    assert "31" in remedies.refusal.object
    remedies.show(None, 1)
    assert not remedies.__panel__().visible
    # the run that comes next is none that a remedy began: it is not chosen
    workspace.draft.set_ks([3])
    workspace.start()
    hand.do_all()
    assert (workspace.runs.chosen, len(workspace.runs.finished)) == (1, 2)
    workspace.close()
