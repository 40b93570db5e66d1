"""A table that is published every year, from the screens: who was released before, what going on costs, and that it runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")

import anonflow as af
from anonflow.dashboards.publish.screen import PublishScreen
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import DataError
from anonflow.release import Earlier
from anonflow.table.identification.packed_releases import packed, unpack
from tests.cases.released_twice import NAMED, people
from tests.dashboards.data.uploading import send


def session(owner: Path | None, frame: pd.DataFrame, algorithm: str = "k-member", k: int = 10) -> Workspace:
    workspace = Workspace(owner=owner)
    workspace.opener.open_frame(frame, NAMED, "people")
    workspace.draft.set_algorithms([algorithm])
    workspace.draft.set_ks([k])
    workspace.start()
    workspace.wait(300)
    return workspace


def draw(workspace: Workspace) -> Any:
    screen = PublishScreen(workspace=workspace)
    screen.model.draw()
    screen.model.background.wait(300)
    return screen


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Workspace]:
    """The table of the second year, beside an owner's folder that remembers the first."""
    first = session(tmp_path, people(180).iloc[:150])
    draw(first)
    first.close()
    later = people(180).iloc[10:].assign(age=lambda frame: frame["age"] + 1)
    workspace = session(tmp_path, later)
    yield workspace
    workspace.close()


def test_a_run_goes_on_from_the_releases_of_the_session_before(second: Workspace, tmp_path: Path) -> None:
    screen = PublishScreen(workspace=second)
    model, plain = screen.model, second.runs.chosen_run
    assert screen.released.card.visible
    assert screen.inside[1] is screen.released.card, "known before the draw"
    assert "150" in screen.released.people.object
    assert "140 of 170" in screen.released.people.object
    assert screen.people.end == 10
    model.people = 4
    screen.go_on.clicks += 1
    second.wait(300)
    run = second.runs.chosen_run
    assert run is not plain
    assert run.spec.document["earlier"] == {"people": 4}
    facts = run.result.anonymization.facts
    assert facts["held_back"] > 0
    for text in (f"{facts['held_back']:,}", "held back", "without earlier releases", "all releases leave"):
        assert text in screen.released.people.object
    model.draw()
    model.background.wait(300)
    publication = model.publication
    assert publication.ok
    assert len(model.releases.known.shared) == 1, "not the release that was drawn just now"
    assert not publication.again
    assert not any("earlier release" in warning for warning in publication.warnings)
    assert "An attacker who has 2 releases of these people" in publication.report.decode()
    history = Earlier(tmp_path).history()
    assert len(history.releases) == 2
    assert history.people_left.min() >= 4
    assert str(tmp_path) not in model.content("flow").decode()
    assert screen.go_on.label == "Run again without earlier releases"
    screen.go_on.clicks += 1
    second.wait(300)
    assert second.runs.chosen_run.spec.earlier is None


def test_a_plain_second_release_says_whom_it_leaves_alone(second: Workspace) -> None:
    screen = draw(second)
    assert "140 of 170 people are in an earlier release" in screen.second.object
    assert "here all releases together leave" in screen.second.object
    warning = screen.second.object
    screen.model.agreed = True
    screen.model.draw()
    screen.model.background.wait(300)
    for text in (warning, screen.state.object):
        assert "go on from the earlier one, under Released before" in text
        assert "in Python" not in text


def risk_of(workspace: Workspace) -> Any:
    """The screen Risk, and what its card of releases says."""
    screen = RiskScreen(workspace=workspace)
    screen.releases.counting.wait(300)
    return screen, screen.released.people.object


def test_two_sessions_that_draw_at_once_see_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is remembered when the other one looks: whoever is remembered last looks once more, and hands nothing out."""
    first, other = (session(tmp_path, people(60), "mondrian", 5) for _ in range(2))
    keep, drawn = first.memory.keep, []

    def meanwhile(*arguments: Any) -> Any:
        drawn.append(draw(other).model)
        return keep(*arguments)

    monkeypatch.setattr(first.memory, "keep", meanwhile)
    late = draw(first).model
    (early,) = drawn
    assert early.publication.ok
    assert late.publication is None
    assert late.needs_agreement
    assert "60 of 60 people are in an earlier release" in late.earlier
    monkeypatch.setattr(first.memory, "keep", keep)
    late.agreed = True
    late.draw()
    late.background.wait(300)
    assert any("60 of 60 people" in warning for warning in late.publication.warnings)
    for item in (first, other):
        item.close()


def test_a_session_that_goes_on_is_handed_nothing_if_another_draws_at_once(
    second: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = PublishScreen(workspace=second)
    screen.model.people = 4
    screen.go_on.clicks += 1
    second.wait(300)
    other = session(second.owner, people(180).iloc[10:], "mondrian", 7)
    keep = second.memory.keep

    def meanwhile(*arguments: Any) -> Any:
        late = draw(other).model
        late.agreed = True
        late.draw()
        late.background.wait(300)
        assert late.publication.ok
        return keep(*arguments)

    monkeypatch.setattr(second.memory, "keep", meanwhile)
    screen.model.draw()
    screen.model.background.wait(300)
    other.close()
    assert screen.model.publication is None
    assert "may leave people fewer than k" in screen.state.object
    assert Earlier(second.owner).kept == 2


def test_risk_lists_the_releases_that_have_these_people(second: Workspace) -> None:
    _, text = risk_of(second)
    assert "140 of 170" in text
    strangers = session(second.owner, people(60).assign(name=lambda frame: "x" + frame["name"]))
    try:
        assert "Nobody of this table is in a release that this session knows" in risk_of(strangers)[1]
        screen = PublishScreen(workspace=strangers)
        assert screen.released.people.object == risk_of(strangers)[1]
        assert not screen.go_on.visible
        assert screen.inside[-1] is screen.released.card, "of no use to a first visitor"
    finally:
        strangers.close()


def test_the_screens_say_beforehand_what_a_release_gives_away_and_costs(
    second: Workspace, tmp_path: Path
) -> None:
    """At least so many as a plain release leaves alone, and exactly so many as a run holds back, of each number of people."""
    screen = PublishScreen(workspace=second)
    outlook = screen.model.releases.known.outlook
    plain = Earlier(tmp_path).overlap(
        second.data.table, af.anonymize(second.data.table, "k-member", 10).release()
    )
    assert plain.few is not None
    assert 0 < outlook.few <= plain.few + 10  # ten left, whom a later release does not count
    assert outlook.alone <= plain.alone + 10
    for least, held in outlook.held_back.items():
        again = af.anonymize(second.data.table, "k-member", 10, people=least, earlier=tmp_path)
        assert held == again.facts["held_back"]
    assert len(outlook.held_back) == 4
    for text in (screen.released.people.object, risk_of(second)[1]):
        assert f"at least {outlook.few} people with fewer than k = 10" in text
        assert f'<td class="n">{outlook.held_back[5]}</td>' in text
        assert "30 people of this table are in no earlier release" in text


def test_of_components_no_number_of_people_can_be_chosen(tmp_path: Path) -> None:
    first = session(tmp_path, people(60), "greedy", 3)
    draw(first)
    second = session(tmp_path, people(60), "greedy", 3)
    try:
        screen = PublishScreen(workspace=second)
        assert screen.released.card.visible
        assert not screen.people.visible
        screen.go_on.clicks += 1
        second.wait(300)
        assert second.runs.chosen_run.result.anonymization.facts["persisting"] == 60
        assert second.runs.chosen_run.spec.document["earlier"] == {}
    finally:
        first.close()
        second.close()


def upload(screen: Any, content: bytes, name: str = "owner.zip") -> str:
    """What the screen says of an upload."""
    send(screen.released.dropper, name, content, 10_000)
    model = screen.releases if hasattr(screen, "releases") else screen.model.releases
    model.background.wait(300)
    model.counting.wait(300)
    return str(screen.released.state.object)


def test_releases_go_from_a_session_to_that_of_the_next_year(tmp_path: Path) -> None:
    """Neither has a folder that lasts: the owner downloads the releases, and uploads them a year later, and the year after."""
    frame, held = people(200), []
    content = b""
    for year in range(3):
        now = frame.iloc[8 * year : 150 + 20 * year].assign(age=frame["age"] + year)
        workspace = session(None, now)
        try:
            screen = PublishScreen(workspace=workspace)
            assert not screen.go_on.visible
            if year:
                assert f"{year} release" in upload(screen, content)
                assert screen.released.forget.visible
                assert screen.go_on.visible
                screen.model.people = 4
                screen.go_on.clicks += 1
                workspace.wait(300)
                assert screen.people.visible is False
                facts = workspace.runs.chosen_run.result.anonymization.facts
                held.append(facts["held_back"])
            publication = draw(workspace).model.publication
            assert publication.ok
            assert any("keep the file Earlier releases" in warning for warning in publication.warnings)
            screen.model.publication = publication
            content = screen.model.content("releases")
            assert b"owner" not in screen.model.content("owner")
        finally:
            workspace.close()
    assert min(held) > 0
    (tmp_path / "releases.zip").write_bytes(content)
    unpack(tmp_path / "releases.zip", "releases.zip", Earlier(tmp_path / "owner"))
    history = Earlier(tmp_path / "owner").history()
    assert len(history.releases) == 3
    assert history.people_left.min() >= 4
    later = af.Table(frame.iloc[30:], NAMED)
    assert af.anonymize(later, "k-member", 10, people=4, earlier=tmp_path / "owner").facts["persisting"] > 0


def packed_release(folder: Path, frame: pd.DataFrame, seed: int = 0) -> bytes:
    """A release that was made from Python, packed."""
    again = Earlier(folder).kept > 0
    options: dict[str, Any] = {"earlier": folder, "people": 4} if again else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        af.anonymize(af.Table(frame, NAMED), "k-member", 10, **options).release(
            seed=2**127 + seed, owner=folder
        )
    return packed(Earlier(folder))


def test_several_folders_are_uploaded_and_have_one_key(second: Workspace, tmp_path: Path) -> None:
    """The folder of the session has a key of its own: its releases are listed, too, and a run goes on from the uploaded ones."""
    frame = people(180)
    first = packed_release(tmp_path / "a", frame.iloc[:100])
    both = packed_release(tmp_path / "a", frame.iloc[5:110], 1)
    screen, _ = risk_of(second)
    assert "1 release with" in upload(screen, first)
    assert "90 of 170" in screen.released.people.object
    assert "140 of 170" in screen.released.people.object
    assert "2 releases with" in upload(screen, both)
    publish = PublishScreen(workspace=second)
    model = publish.model
    assert len(model.releases.known.shared) == 3
    says = upload(screen, packed_release(tmp_path / "b", frame.iloc[:50]))
    assert "has another key than the releases that are here" in says
    assert str(tmp_path) not in says
    assert "2 releases with" in upload(screen, both)
    model.people = 4
    model.go_on()
    second.wait(300)
    assert second.runs.chosen_run.spec.document["earlier"] == {"people": 4}
    publication = draw(second).model.publication
    assert publication.ok
    assert "which has another key than the uploaded ones" in " ".join(publication.warnings)
    assert second.memory.kept == (3, 2)
    assert Earlier(second.memory.folder).history().people_left.min() >= 4
    screen.released.forget.clicks += 1
    assert second.memory.kept == (0, 2)
    assert not screen.released.forget.visible
    assert "140 of 170" in screen.released.people.object


def test_a_folder_with_strangers_releases_is_not_handed_out(tmp_path: Path) -> None:
    """People come to a server without a name: all their releases are in one folder, and its key undoes them."""
    place, frame = tmp_path / "shared", people(180)
    first = session(place, frame.iloc[:100])
    draw(first)
    first.close()
    stranger = Workspace(owner=place, shares_owner=True)
    stranger.opener.open_frame(frame.iloc[:60], NAMED, "people")
    try:
        assert sum(each.people for each in stranger.memory.known(stranger.data.table).shared) == 60
        assert stranger.memory.packed() == b""
        screen = RiskScreen(workspace=stranger)
        assert "1 release with" in upload(screen, packed_release(tmp_path / "own", frame.iloc[5:50]))
        (tmp_path / "out.zip").write_bytes(stranger.memory.packed())
        unpack(tmp_path / "out.zip", "out.zip", Earlier(tmp_path / "out"))
        assert Earlier(tmp_path / "out").kept == 1
        assert Earlier(tmp_path / "out").key() != Earlier(place).key()
    finally:
        stranger.close()
    # nor does a folder without releases take a key that somebody knows
    empty = Workspace(owner=tmp_path / "empty", shares_owner=True)
    try:
        upload(RiskScreen(workspace=empty), packed_release(tmp_path / "own", frame.iloc[5:50], 1))
        assert Earlier(tmp_path / "empty").key() != Earlier(tmp_path / "own").key()
    finally:
        empty.close()


def test_an_upload_with_the_key_of_the_session_adds_what_its_folder_has(
    second: Workspace, tmp_path: Path
) -> None:
    content = packed(Earlier(tmp_path))
    packed_release(tmp_path, people(180).iloc[3:155], 1)
    screen, _ = risk_of(second)
    upload(screen, content)
    assert second.memory.kept == (2, 2)
    assert len(screen.releases.known.shared) == 2


def test_an_upload_that_is_no_owners_folder_is_one_sentence(second: Workspace) -> None:
    screen, before = risk_of(second)
    files = set(second.folder.parent.rglob("*"))
    for content, words in (
        (b"name,age\n", "evil.zip: is damaged, or no ZIP file"),
        (b"", "evil.zip: is damaged, or no ZIP file"),
    ):
        says = upload(screen, content, "../<script>evil.zip")
        assert words.replace("evil", "script-evil") in says or words in says
        assert "<script>" not in says
    assert screen.released.people.object == before
    assert second.memory.kept == (0, 1)
    assert set(second.folder.parent.rglob("*")) == files
    assert not second.data.problems


def test_a_hosted_server_bounds_what_is_uploaded(tmp_path: Path) -> None:
    content = packed_release(tmp_path / "a", people(100))
    for limits, words in (
        (Limits(upload_bytes=1_000), "this server takes at most"),
        (Limits(rows=99), "has 100 records, and this server takes at most 99"),
        (Limits(rows=100), ""),
    ):
        workspace = Workspace(limits=limits)
        memory = workspace.memory
        (tmp_path / "upload").write_bytes(content)
        try:
            if not words:
                memory.take("owner.zip", tmp_path / "upload")
                assert memory.kept == (1, 0)
                continue
            with pytest.raises(DataError, match=words):
                memory.take("owner.zip", tmp_path / "upload")
            assert memory.kept == (0, 0)
        finally:
            workspace.close()


def test_releases_that_cannot_be_counted_together_say_why(tmp_path: Path) -> None:
    """The folder of the second year, without that of the first."""
    packed_release(tmp_path / "a", people(100))
    af.anonymize(af.Table(people(98), NAMED), "k-member", 10, people=2, earlier=tmp_path / "a").release(
        seed=2**127 + 1, owner=tmp_path / "b"
    )
    workspace = session(None, people(90))
    try:
        screen, _ = risk_of(workspace)
        upload(screen, packed(Earlier(tmp_path / "b")))
        text = screen.released.people.object
        assert "These releases cannot be counted together" in text
        assert "1 earlier releases that are in none of the folders named" in text
        assert str(workspace.folder.parent) not in text
        upload(screen, packed(Earlier(tmp_path / "a")))
        assert "cannot be counted" not in screen.released.people.object
    finally:
        workspace.close()
