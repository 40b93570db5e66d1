"""A flow of a table whose people were published before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.files.paths import check_confined
from anonflow.errors import DataError, FlowError, ParameterError, VerificationError
from anonflow.release import Earlier
from tests.cases.released_twice import FLOW
from tests.cases.runs import shell


def table(folder: Path, numbers: range, t: int = 0) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(200)],
            "age": rng.integers(18, 80, 200) + t,
            "work": rng.choice(list("abcd"), 200),
            "ill": rng.choice(list("uvwxyz"), 200),
        }
    )
    frame.iloc[list(numbers)].to_csv(folder / "people.csv", index=False)


def flow_file(folder: Path, more: str = "") -> Path:
    path = folder / "people.yaml"
    path.write_text(FLOW + more)
    return path


def test_a_flow_of_the_next_year_goes_on_from_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(tmp_path, range(150))
    assert engine.run(flow_file(tmp_path)).ok
    table(tmp_path, range(10, 200), 1)
    flow = flow_file(tmp_path, "earlier: {people: 4}\n")
    status, _, text = shell(capsys, "run", flow, "--quiet")
    assert status == 0
    assert "earlier release" not in text
    published = pd.read_csv(tmp_path / "out" / "people.csv")
    (release,) = engine.load_flow(flow).earlier
    assert release == tmp_path / "owner"
    whole = engine.load_flow(flow).schema
    assert 50 < len(published) < 190
    assert published.groupby(["age", "work"]).size().min() >= 4
    rows = af.Table.read(tmp_path / "people.csv", whole)
    again = engine.run(flow, again=True)
    assert again.ok
    assert again.release is not None
    assert len(again.release.frame) == len(published)
    assert "are held back; all releases leave each person at least 4 people" in " ".join(
        again.results[0].said
    )
    assert again.attacks is not None
    sentence = again.attacks.set_index("attacker")["sentence"]["linker"]
    assert "An attacker who has 3 releases of these people" in sentence  # the second was drawn twice
    assert "An attacker who has 3 releases of these people" in (tmp_path / "out" / "people.html").read_text()
    part = again.results[0].anonymization
    assert part is not None
    assert part.table.n + part.facts["held_back"] == rows.n
    assert af.verify(part.table, again.release, [{"repeated": {"earlier": tmp_path / "owner", "people": 4}}])
    with pytest.raises(ParameterError, match="cannot be replayed"):
        engine.run(flow, replay=tmp_path / "owner" / "people")


def test_two_flows_that_draw_at_once_see_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is kept when the other one looks: whoever is kept last looks once more, and one that goes on from the others stops."""
    table(tmp_path, range(60))
    flow = flow_file(tmp_path)
    flow.write_text(flow.read_text().replace("k: 10", "k: 5"))
    other = tmp_path / "other.yaml"
    keep = Earlier.keep
    for goes_on in ("", "earlier: {}\n"):
        text = flow.read_text()
        named = text.replace("flow: people", f"flow: other{len(goes_on)}").replace("out/people", "out/other")
        other.write_text(named.replace("k-member, k: 5", "mondrian, k: 7") if goes_on else named)
        flow.write_text(text + goes_on)

        def meanwhile(place: Earlier, *arguments: Any) -> Any:
            monkeypatch.setattr(Earlier, "keep", keep)
            assert engine.run(other).ok
            return keep(place, *arguments)

        monkeypatch.setattr(Earlier, "keep", meanwhile)
        if goes_on:
            kept = Earlier(tmp_path / "owner").kept
            with pytest.raises(VerificationError, match="may leave people fewer than k"):
                engine.run(flow)
            assert Earlier(tmp_path / "owner").kept == kept + 1, "what is not published is not kept"
        else:
            assert any("60 of 60 people are in an earlier" in text for text in engine.run(flow).warnings)


def test_a_flow_of_matches_goes_on_too(tmp_path: Path) -> None:
    table(tmp_path, range(150))
    flow = flow_file(tmp_path, "partition: {size: 10}\n")
    text = flow.read_text().replace("k-member, k: 10", "greedy, k: 3")
    flow.write_text(text)
    assert engine.run(flow).ok
    table(tmp_path, range(2, 200), 1)
    flow.write_text(text + "earlier: {owner: [owner]}\n")
    report = engine.run(flow)
    assert report.ok
    assert not any("earlier release" in warning for warning in report.warnings)
    assert {finding.criterion for finding in report.results[0].findings} == {"covers", "k-regular"}


@pytest.mark.parametrize("most", [100_000, 100], ids=["whole", "sample"])
def test_an_attacker_has_all_releases_whichever_the_flow_names(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("anonflow.engine.publish", "anonflow.engine.report.attacks"):
        monkeypatch.setattr(f"{module}.MOST", most)
    monkeypatch.setattr("anonflow.engine.report.attacks.SAMPLE", most // 2)
    table(tmp_path, range(150))
    assert engine.run(flow_file(tmp_path)).ok
    table(tmp_path, range(10, 200), 1)
    flow = flow_file(tmp_path, "earlier: {people: 4}\n")
    flow.write_text(flow.read_text().replace("  - draw: {}", "  - draw: {}\n  - attack: [prosecutor]"))
    attacks = engine.run(flow).attacks
    assert attacks is not None
    assert attacks["attacker"].tolist() == ["prosecutor", "linker"]
    assert "An attacker who has 2 releases of these people" in attacks["sentence"][1]


def test_without_the_key_the_owner_is_warned(tmp_path: Path) -> None:
    table(tmp_path, range(150))
    flow = flow_file(tmp_path)
    engine.run(flow)
    table(tmp_path, range(10, 200), 1)
    assert any("are in an earlier release" in warning for warning in engine.run(flow).warnings)


def test_flows_of_a_folder_for_each_year(tmp_path: Path) -> None:
    """The third names both folders before it; with the last alone its people of the first year would be new."""
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for t, folder in enumerate(folders):
        folder.mkdir()
        table(folder, range(t, 150), t)
    assert engine.run(flow_file(folders[0])).ok
    assert engine.run(flow_file(folders[1], "earlier: {people: 4, owner: [../first/owner]}\n")).ok
    with pytest.raises(DataError, match="in none of the folders named"):
        engine.run(flow_file(folders[2], "earlier: {people: 4, owner: [../second/owner]}\n"))
    flow = flow_file(folders[2], "earlier: {people: 4, owner: [../first/owner, ../second/owner]}\n")
    assert engine.run(flow).ok


def test_what_does_not_go_with_earlier_releases_is_named(tmp_path: Path) -> None:
    table(tmp_path, range(150))
    for more, words in (
        ("earlier: {}\nmatrix: {anonymize.k: [5, 10]}\n", "only one release can follow"),
        ("earlier: {people: 1}\n", "at least 2"),
        ("earlier: {folder: owner}\n", "folder"),
        ("earlier: {owner: owner}\n", "owner"),
        ("earlier: {owner: []}\n", "'owner' must not be empty"),
    ):
        with pytest.raises(FlowError, match=words):
            engine.load_flow(flow_file(tmp_path, more))
    flow = flow_file(tmp_path, "earlier: {}\n")
    flow.write_text(
        flow.read_text().replace(
            "  - draw: {}", "  - diversify: {criterion: p-sensitivity, p: 2}\n  - draw: {}"
        )
    )
    with pytest.raises(FlowError, match="would unite the people of the earlier releases"):
        engine.load_flow(flow)
    with pytest.raises(
        DataError, match=r"has no earlier release; .* a first release is made without earlier"
    ):
        engine.run(flow_file(tmp_path, "earlier: {}\n"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("earlier",), {"owner": ["/somewhere"]}),
        (("steps", "verify"), [{"repeated": {"earlier": "/somewhere"}}]),
        (("steps", "verify"), [{"repeated": {"earlier": ["/somewhere"]}}]),
        (("steps", "verify"), ["repeated(earlier=/somewhere)"]),
    ],
)
def test_dashboards_read_no_owners_folder(place: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="run the flow with anonflow run"):
        check_confined(NO_FLOW.changed([(place, value)]), tmp_path)
