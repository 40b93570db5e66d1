"""A flow that was released and has not changed is not released again, unless somebody says so."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine.owner import checkpoints, folder, last_release
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.whole_file import drafted, write_whole
from tests.cases.flow_files import REPORTED, write_flow
from tests.cases.runs import SEED, shell


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of all published files and of the owner's."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for place in ("out", "owner")
        for path in sorted((folder / place).rglob("*"))
        if path.is_file()
    }


def test_a_finished_flow_does_nothing_again(tmp_path: Path) -> None:
    path = write_flow(tmp_path, publish=REPORTED)
    first = engine.run(path)
    files = files_of(tmp_path)
    kinds: list[str] = []
    second = engine.run(path, on_event=lambda event: kinds.append(type(event).__name__))
    assert kinds == ["FlowDone"]
    assert files_of(tmp_path) == files
    assert second.ok
    assert "nothing changed" in second.unchanged
    assert not first.unchanged
    assert (second.results, second.release) == ((), None)
    assert (second.published, second.owner) == (first.published, first.owner)
    same = ["algorithm", "k", "records", "gcp", "usefulness", "suppressed", "seconds", "checks"]
    pd.testing.assert_frame_equal(second.runs[same], first.runs[same])
    assert second.attacks is not None
    assert second.attacks["sentence"].tolist() == first.attacks["sentence"].tolist()
    assert "released on" in repr(second)


def test_the_shell_says_so_with_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flow(tmp_path)
    shell(capsys, "run", path)
    files = files_of(tmp_path)
    status, out, _ = shell(capsys, "run", path)
    assert status == 0
    assert out.startswith("released on 20")
    assert "nothing changed" in out
    assert "--again" in out
    status, out, _ = shell(capsys, "run", path, "--json")
    answer = json.loads(out)
    assert (status, answer["ok"], answer["unchanged"]) == (0, True, True)
    assert answer["runs"][0]["algorithm"] == "greedy"
    assert files_of(tmp_path) == files
    status, out, err = shell(capsys, "run", path, "--again")
    assert status == 0
    assert "released before" in err
    assert files_of(tmp_path)["out/release.csv"] != files["out/release.csv"]


def changed_flow(folder: Path) -> None:
    path = folder / "flow.yaml"
    path.write_text(path.read_text().replace("k: 3", "k: 4"))


def changed_source(folder: Path) -> None:
    with (folder / "people.csv").open("a") as stream:
        stream.write("30,Volos,10431,poor\n")


def changed_hierarchy(folder: Path) -> None:
    path = folder / "cities.csv"
    path.write_text(path.read_text().replace("South", "Islands"))


@pytest.mark.parametrize("change", [changed_flow, changed_source, changed_hierarchy])
def test_what_has_changed_is_released(tmp_path: Path, change: Callable[[Path], None]) -> None:
    (tmp_path / "cities.csv").write_text("Athens;South;*\nPatras;South;*\nVolos;North;*\nChania;South;*\n")
    columns = """\
    age: {role: quasi-identifier, kind: numeric}
    city: {role: quasi-identifier, kind: hierarchy, hierarchy: cities.csv}
    income: {role: sensitive}
"""
    path = write_flow(tmp_path, columns=columns)
    engine.run(path)
    assert engine.run(path).unchanged
    change(tmp_path)
    report = engine.run(path)
    assert not report.unchanged
    assert [text for text in report.warnings if "released before" in text]
    assert engine.run(path).unchanged


def test_a_copy_or_a_new_time_is_no_change(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    for name in ("people.csv", "flow.yaml"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(content)
    assert engine.run(path).unchanged
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(moved)
    report = engine.run(moved / "flow.yaml")
    assert report.published[0] == moved / "out" / "release.csv"


def test_each_setting_from_outside_is_released_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_flow(tmp_path)
    settings = [("--set", f"steps.anonymize.k={k}", "--set", f"publish.table=out/{k}.csv") for k in (4, 5)]
    for setting in settings:
        assert "nothing changed" not in shell(capsys, "run", path, *setting)[1]
    files = files_of(tmp_path)
    for setting in settings:
        assert "nothing changed" in shell(capsys, "run", path, *setting)[1]
    assert files_of(tmp_path) == files
    (tmp_path / "out" / "4.csv").unlink()  # an earlier one is drawn anew
    _, out, err = shell(capsys, "run", path, *settings[0])
    assert "released before" in err
    assert "nothing changed" not in out


def test_a_seed_that_is_another_one_needs_again(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path, seed=SEED)
    files = files_of(tmp_path)
    assert engine.run(path, seed=SEED).unchanged
    with pytest.raises(FlowError, match=r"released on .*, with another seed; another draw .* needs --again"):
        engine.run(path, seed=SEED + 1)
    assert files_of(tmp_path) == files
    assert not engine.run(path, seed=SEED + 1, again=True).unchanged


def test_starting_over_is_no_other_draw_and_a_replay_repeats(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    release = files_of(tmp_path)["out/release.csv"]
    assert engine.run(path, fresh=True).unchanged
    report = engine.run(path, replay=tmp_path / "owner" / "test")
    assert not report.unchanged
    assert files_of(tmp_path)["out/release.csv"] == release
    with pytest.raises(ParameterError, match="leave --again out"):
        engine.run(path, replay=tmp_path / "owner" / "test", again=True)


def deleted(file: Path) -> None:
    file.unlink()


def edited(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"poor", b"rich"))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("release.csv", deleted),
        ("release.csv", edited),
        ("release.csv-metadata.json", deleted),
        ("report.html", deleted),
    ],
)
def test_files_that_are_lost_are_those_of_the_same_release_again(
    tmp_path: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    path = write_flow(tmp_path, publish=REPORTED)
    engine.run(path)
    files = files_of(tmp_path)
    spoil(tmp_path / "out" / name)
    report = engine.run(path)
    assert not report.unchanged
    assert [text for text in report.warnings if "is not as it was released" in text] == [
        f"{tmp_path / 'out' / name}: is not as it was released; the same release is written again"
    ]
    again = files_of(tmp_path)
    for same in ("out/release.csv", "out/release.csv-metadata.json", "owner/test/seed"):
        assert again[same] == files[same], same
    assert (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "owner" / "test" / "earlier").exists()
    assert engine.run(path).unchanged


def test_a_report_that_was_filled_in_stays(tmp_path: Path) -> None:
    path = write_flow(tmp_path, publish=REPORTED)
    engine.run(path)
    page = tmp_path / "out" / "report.html"
    page.write_text(page.read_text(encoding="utf-8") + "<!-- signed -->", encoding="utf-8")
    assert engine.run(path).unchanged
    assert page.read_text(encoding="utf-8").endswith("<!-- signed -->")


def test_results_are_not_kept_longer_by_runs_that_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    path = write_flow(tmp_path)
    engine.run(path)
    results = tmp_path / "owner" / "test" / "checkpoints"
    assert list(results.iterdir())
    assert engine.run(path).unchanged
    assert list(results.iterdir())
    with pytest.raises(ParameterError, match="keep is a number of seconds"):
        engine.run(path, keep=-1.0)
    assert engine.run(path, keep=0.0).unchanged
    assert not list(results.iterdir())


def test_a_release_that_is_only_returned_is_the_same_again(tmp_path: Path) -> None:
    path = write_flow(tmp_path, publish="", steps="  - draw: {}\n")
    first, second = engine.run(path), engine.run(path)
    pd.testing.assert_frame_equal(first.release.frame, second.release.frame)
    other = engine.run(path, again=True)
    assert not first.release.frame.equals(other.release.frame)


def test_a_flow_without_a_draw_runs_each_time(tmp_path: Path) -> None:
    path = write_flow(tmp_path, publish="{report: out/report.html}")
    engine.run(path)
    assert engine.run(path).results


def test_another_version_releases_nothing_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    version = last_release.__version__
    monkeypatch.setattr(last_release, "__version__", "99.0")
    assert f"by anonflow {version}, nothing changed" in engine.run(path).unchanged
    (tmp_path / "out" / "release.csv").unlink()
    with pytest.raises(FlowError, match="install that version to make the same one again; another draw"):
        engine.run(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"hashes": 3}'])
def test_a_record_that_cannot_be_read_is_no_release(tmp_path: Path, text: str) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    (tmp_path / "owner" / "test" / "record.json").write_text(text)
    report = engine.run(path)
    assert not report.unchanged
    assert [warning for warning in report.warnings if "released before" in warning]


def test_other_people_in_a_frame_are_a_change(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    frame = pd.read_csv(tmp_path / "people.csv", dtype=str)
    settings: dict[str, Any] = {"source": frame}
    engine.run(path, **settings)
    assert engine.run(path, **settings).unchanged
    assert not engine.run(path, source=frame.iloc[1:].reset_index(drop=True)).unchanged


def test_a_table_of_other_people_is_no_second_release(tmp_path: Path) -> None:
    """By their identifier: without one, the same people may have other quasi-identifiers by now."""
    columns = "    patient: {role: identifier}\n    age: {role: quasi-identifier, kind: numeric}\n    income: {role: sensitive}\n"
    frame = pd.DataFrame({"age": [20 + at % 40 for at in range(60)], "income": ["low", "high"] * 30})
    days = [frame.assign(patient=[f"p{day + at}" for at in range(60)]) for day in (0, 60, 90)]
    warned = []
    for day in days:
        path = write_flow(tmp_path, columns=columns, data=day.to_csv(index=False).encode())
        logged: list[str] = []
        report = engine.run(path, on_event=lambda event, to=logged: to.append(getattr(event, "message", "")))
        again = any("released before" in text for text in report.warnings)
        warned.append((again, "the earlier releases are of other people, by patient" in logged))
    assert warned == [(False, False), (False, True), (True, False)]


@pytest.mark.parametrize("every", [0.0, checkpoints.EVERY], ids=["results are stored", "a quick run"])
def test_a_publication_that_was_interrupted_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    """The owner's files are those of the second draw already, and the published table is not."""
    monkeypatch.setattr(checkpoints, "EVERY", every)
    path = write_flow(tmp_path)
    engine.run(path)
    first = files_of(tmp_path)["out/release.csv"]
    rename = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith("release.csv"):
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(AnonflowError, match="cannot be written"):
            engine.run(path, again=True, seed=SEED)
    assert files_of(tmp_path)["out/release.csv"] == first
    assert not engine.run(path).unchanged
    assert OwnerFolder(tmp_path / "owner" / "test").seed() == SEED
    assert files_of(tmp_path)["out/release.csv"] != first
    assert engine.run(path).unchanged


def test_a_table_whose_report_could_not_be_written_is_drawn_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table may have been taken already: with another draw it could be intersected."""
    path = write_flow(tmp_path, publish=REPORTED)
    rename = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith("report.html"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(AnonflowError, match="make room and run again"):
            engine.run(path)
    first = files_of(tmp_path)
    report = engine.run(path)
    again = files_of(tmp_path)
    for same in ("out/release.csv", "owner/test/seed"):
        assert again[same] == first[same], same
    assert "out/report.html" in again
    assert not [warning for warning in report.warnings if "release" in warning or "draw" in warning]
    assert not (tmp_path / "owner" / "test" / "earlier").exists(), (
        "the interrupted attempt is no release of its own"
    )
    assert engine.run(path).unchanged


def interrupted(path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Run a flow whose table gets its name, and whose report does not."""
    rename = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith("report.html"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(AnonflowError, match="make room and run again"):
            engine.run(path, **settings)


FEWER = "    age: {role: quasi-identifier, kind: numeric}\n    income: {role: sensitive}\n"
WITH_ZIP = "    zip: {role: quasi-identifier, kind: categorical}\n" + FEWER


@pytest.mark.parametrize("change", ["columns", "fresh", "seed", "columns, twice", "columns, the same seed"])
def test_another_draw_after_an_interrupted_publication_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Its table may have been taken. Marks of people do not say so where they are of other quasi-identifiers."""
    path = write_flow(tmp_path, publish=REPORTED)
    interrupted(path, monkeypatch, seed=SEED)
    settings: dict[str, Any] = {"fresh": {"fresh": True}, "seed": {"seed": SEED + 1}}.get(change, {})
    if change == "columns, the same seed":
        settings = {"seed": SEED}
    if change.startswith("columns"):
        write_flow(tmp_path, publish=REPORTED, columns=FEWER)
    if change == "columns, twice":
        interrupted(path, monkeypatch)
        write_flow(tmp_path, publish=REPORTED, columns=WITH_ZIP)
    report = engine.run(path, **settings)
    (warning,) = [text for text in report.warnings if "was interrupted" in text]
    assert "publish one of them only" in warning
    owner = tmp_path / "owner" / "test"
    assert (owner / "earlier" / "0001" / "certificate.npz").exists()
    assert (owner / "earlier" / "0002" / "certificate.npz").exists() == (change == "columns, twice")
    assert engine.run(path).unchanged


def test_a_run_that_is_killed_after_its_record_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_flow(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(OwnerFolder, "forget_unfinished", lambda folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.run(path)
    assert engine.run(path).unchanged
    seed = OwnerFolder(tmp_path / "owner" / "test").seed()
    assert engine.run(path, again=True).ok
    assert OwnerFolder(tmp_path / "owner" / "test").seed() != seed, "another draw was asked for"


LIKE_ITSELF = (
    "{algorithm: greedy, k: 2}",
    "  - draw: {}\n  - verify: [covers, guarantee, {p-sensitivity: 2}]\n",
)


def test_a_release_that_a_check_refused_is_not_drawn_until_it_passes(tmp_path: Path) -> None:
    """Which rows go together would tell which draws were refused: k equal values beside each other are ruled out. Of 25 draws 17 pass."""
    method, steps = LIKE_ITSELF
    settings: dict[str, Any] = {"anonymize": method, "steps": steps, "n": 12}
    path = write_flow(tmp_path, **settings)
    seed = next(seed for seed in range(2**127, 2**127 + 50) if not engine.run(path, seed=seed, fresh=True).ok)
    for _ in range(3):
        report = engine.run(path)
        assert not report.ok
        assert any("to draw until one passes would bias the draw" in warning for warning in report.warnings)
    note = OwnerFolder(tmp_path / "owner" / "test").unfinished()
    assert note is not None
    assert int(note["seed"], 16) == seed
    write_flow(tmp_path, **{**settings, "n": 13})  # corrected people are another table
    engine.run(path)
    note = OwnerFolder(tmp_path / "owner" / "test").unfinished()
    assert note is None or int(note["seed"], 16) != seed
    write_flow(tmp_path, **{**settings, "steps": ""})
    assert engine.run(path).ok
    assert OwnerFolder(tmp_path / "owner" / "test").unfinished() is None


@pytest.mark.parametrize("where", ["verify", "attack", "write_all"])
def test_a_run_that_is_stopped_after_its_draw_does_not_draw_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Whoever stops a run before it is judged, and runs it again, has as many draws as there are runs; nothing had noted the first."""
    path = write_flow(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(f"anonflow.engine.publish.{where}", lambda *arguments, **settings: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.run(path)
    note = OwnerFolder(tmp_path / "owner" / "test").unfinished()
    assert note is not None
    assert engine.run(path).ok
    owner = OwnerFolder(tmp_path / "owner" / "test")
    assert owner.seed() == int(note["seed"], 16)
    assert owner.unfinished() is None
    engine.run(path, again=True)
    assert owner.seed() != int(note["seed"], 16)


def test_nothing_is_drawn_whose_seed_cannot_be_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(owner: OwnerFolder, facts: dict[str, Any]) -> None:
        raise AnonflowError("no space left")

    monkeypatch.setattr(OwnerFolder, "write_unfinished", full)
    monkeypatch.setattr("anonflow.engine.publish.verify", lambda *arguments, **settings: 1 / 0)
    with pytest.raises(AnonflowError, match="no space left"):
        engine.run(write_flow(tmp_path))


def test_what_an_owners_folder_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = OwnerFolder(tmp_path / "owner" / "test")
    assert not owner.has_seed(SEED)
    with owner.locked():
        owner.write_seed(SEED)
        (owner.path / folder.UNFINISHED).mkdir()  # where a file is deleted
    assert owner.has_seed(SEED)
    assert not owner.has_seed(SEED + 1)

    def refuse(*arguments: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(folder, "open_descriptor", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    refused = f"^{re.escape(str(owner.path))}: cannot be written to: Read-only file system$"
    with pytest.raises(FlowError, match=refused):
        owner.check()
    with pytest.raises(AnonflowError, match=refused):
        owner.set_earlier_aside()
    with pytest.raises(AnonflowError, match=rf"{folder.UNFINISHED}: cannot be deleted: \w"):
        owner.forget_unfinished()
    assert owner.has_seed(SEED)


@pytest.mark.parametrize("moves", [1, 2])
def test_a_release_that_is_half_set_aside_stays_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """Fault: the process is killed between two renames. On disk: certificate, seed and record of a release in one folder."""
    path = write_flow(tmp_path)
    engine.run(path)
    owner = OwnerFolder(tmp_path / "owner" / "test")
    renames = [os.replace] * moves

    def rename(source: Any, target: Any) -> None:
        if not renames:
            raise KeyboardInterrupt
        renames.pop()(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", rename)
        with pytest.raises(KeyboardInterrupt):
            owner.set_earlier_aside()
    engine.run(path, again=True)
    (place,) = (owner.path / "earlier").iterdir()
    assert {file.name for file in place.iterdir()} == {"certificate.npz", "seed", "record.json"}


def test_drafts_are_removed_also_where_the_flow_names_another_file_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a run is killed, and publishes under another name afterwards. On disk: nothing of the other draw."""
    path = write_flow(tmp_path, publish=REPORTED)
    interrupted(path, monkeypatch)
    out, owner = tmp_path / "out", tmp_path / "owner" / "test"
    left = [out / name for target in ("release.csv", "report.html") for name in drafts_of(out / target)]
    left += [owner / name for target in ("certificate.npz", "seed") for name in drafts_of(owner / target)]
    for draft in left:
        draft.write_text("age\n33\n")
    assert engine.run(write_flow(tmp_path, publish="{table: out/other.csv}")).ok
    assert not [file for file in left if file.exists()]


def drafts_of(target: Path) -> set[str]:
    """The names of a draft of a file and of a draft of this draft."""
    drafts: set[str] = set()

    def write(draft: Path) -> None:
        drafts.add(draft.name)
        write_whole(draft, lambda inner: (inner.touch(), drafts.add(inner.name)))

    with drafted(target, write, make_folders=True):
        return drafts


def test_what_a_killed_run_left_beside_its_targets_is_removed(tmp_path: Path) -> None:
    """It may be a release of another draw, in the folder that is published; what others are writing stays."""
    path = write_flow(tmp_path, publish=REPORTED)
    out = tmp_path / "out"
    targets = {"release.csv", "release.csv-metadata.json", "report.html"}
    others = drafts_of(out / "other.csv")
    left = {name for target in targets for name in drafts_of(out / target)}
    assert len(left) == 6
    out.mkdir()
    for name in left | others:
        (out / name).write_text("age\n33\n")
    assert engine.run(path).ok
    assert {file.name for file in out.iterdir()} == targets | others


def test_an_earlier_release_is_replayed_and_no_proof_is_lost(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    first = files_of(tmp_path)
    engine.run(path, again=True)
    second = files_of(tmp_path)
    owner = tmp_path / "owner" / "test"
    report = engine.run(path, replay=owner / "earlier" / "0001")
    assert report.ok
    after = files_of(tmp_path)
    assert after["out/release.csv"] == first["out/release.csv"] != second["out/release.csv"]
    assert not (owner / "earlier" / "0001" / "key").exists()
    for name in ("certificate.npz", "seed"):
        assert after[f"owner/test/{name}"] == first[f"owner/test/{name}"]
        assert after[f"owner/test/earlier/0002/{name}"] == second[f"owner/test/{name}"]


def test_settings_that_cannot_be_used_are_refused_also_where_nothing_is_done(tmp_path: Path) -> None:
    flow = write_flow(tmp_path)
    assert engine.run(flow, seed=SEED).ok
    for wrong in ({"workers": -1}, {"workers": 0}, {"scheduler": "thread"}):
        with pytest.raises(ParameterError):
            engine.run(flow, **wrong)
    assert engine.run(flow).unchanged
