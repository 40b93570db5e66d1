"""A second release by another process: what warns of it must not live in the memory of the first one.

Figure: releases in two sessions of Python, of flows with two names, or from two sessions of the dashboards said nothing of each other. Now
each must say how many people were released before, also where the table has grown, is sorted otherwise or has other values.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.errors import DataError
from anonflow.release import Earlier, ReleaseWarning
from anonflow.table.identification.earlier import KEY_FILE, MEMORY
from anonflow.table.row_marks import unit_marks
from tests.cases.flow_files import REPORTED, write_flow
from tests.cases.released_twice import NAMED, SCHEMA, people
from tests.cases.runs import shell

RELEASE = """
import sys, warnings, anonflow as af
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    table = af.Table.read(sys.argv[1], sys.argv[2])
    af.anonymize(table, "mondrian", k=5).release(owner=sys.argv[3])
print([str(each.message) for each in caught])
"""


@pytest.mark.slow
def test_a_second_release_warns_in_another_process(tmp_path: Path) -> None:
    frame = people(60)
    af.anonymize(af.Table(frame, NAMED), "mondrian", k=5).release(seed=2**127, owner=tmp_path / "owner")
    frame.iloc[20:].assign(age=lambda f: f["age"] + 1).to_csv(tmp_path / "later.csv", index=False)
    (tmp_path / "schema.yaml").write_text("columns: " + json.dumps(NAMED))
    text = subprocess.run(
        [sys.executable, "-c", RELEASE, tmp_path / "later.csv", tmp_path / "schema.yaml", tmp_path / "owner"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "40 of 40 people are in an earlier release" in text
    assert "0.48 from two" in text
    assert "'name'" in text


def test_people_whose_names_are_written_otherwise_are_told_of(tmp_path: Path) -> None:
    """Another program left spaces out, or wrote capitals: nobody was recognized, and nothing said so."""
    memory, frame = Earlier(tmp_path / "owner"), people(60)
    written = frame["name"].str.title().where(frame.index >= 20, " " + frame["name"])
    first = af.Table(frame.assign(name=written), NAMED)
    af.anonymize(first, "mondrian", k=5).release(seed=2**127, owner=memory.path)
    assert (memory.overlap(first).again, memory.overlap(first).alike) == (60, 0)
    again = memory.overlap(af.Table(frame, NAMED))
    assert (again.again, again.alike) == (0, 60)
    assert again.sentence().startswith(
        "60 people are in an earlier release from this owner's folder if spaces and capitals of 'name' do not count"
    )
    mixed = frame["name"].where(frame.index >= 50, written)
    again = memory.overlap(af.Table(frame.assign(name=mixed), NAMED))
    assert (again.again, again.alike) == (50, 10)
    assert "50 of 60 people are in an earlier release" in again.sentence()
    assert "; 10 people are in an earlier release" in again.sentence()
    twins = pd.concat([frame.assign(name=written), frame.assign(name="x" + frame["name"])], ignore_index=True)
    assert memory.overlap(af.Table(twins, NAMED)).alike == 0
    others = frame.assign(name=written.where(frame.index > 0, "PERSON 1"))
    assert memory.overlap(af.Table(others, NAMED)).alike == 0, "person 1 is there, too"


def test_people_known_by_quasi_identifiers_are_counted_at_least(tmp_path: Path) -> None:
    """The first release codes ages at the top, the second does not: most of the old people are others, and nothing said so."""
    frame = people(60).drop(columns="name")
    coded = af.Schema(SCHEMA, prepare=[{"top-code": {"column": "age", "at": 40}}])
    memory = Earlier(tmp_path / "owner")
    first, second = af.Table(frame, coded), af.Table(frame, SCHEMA)
    af.anonymize(first, "mondrian", k=5).release(seed=2**127, owner=memory.path)
    overlap = memory.overlap(second)
    assert 0 < overlap.again < 60
    at_least = (
        "at least, because people with other values of 'age', 'work' in that release are not recognized"
    )
    assert at_least in overlap.sentence()
    named = people(60)
    af.anonymize(af.Table(named, NAMED), "mondrian", k=5).release(seed=2**127, owner=tmp_path / "named")
    assert "at least" not in Earlier(tmp_path / "named").overlap(af.Table(named, NAMED)).sentence()


def test_people_whose_numbers_are_written_otherwise_are_told_of(tmp_path: Path) -> None:
    """`007` of one year and `7` of the next read as one number, and were one person without a word.

    The key is fixed: two spellings of a number share the byte that tells them apart for 1 in 255 keys, and then a person is not counted.
    """
    memory, frame = Earlier(tmp_path / "owner"), people(60)
    (memory.path / MEMORY).mkdir(parents=True)
    (memory.path / MEMORY / KEY_FILE).write_text("0123456789abcdef" * 2)
    numbers = pd.Series([f"{number:03}" for number in range(60, 120)])
    first = af.Table(frame.assign(name=numbers), NAMED)
    af.anonymize(first, "mondrian", k=5).release(seed=2**127, owner=memory.path)
    assert (memory.overlap(first).again, memory.overlap(first).rewritten) == (60, 0)
    assert "only the number is the same" not in memory.overlap(first).sentence()
    for cells in (numbers.astype(int), numbers.astype(int).astype(str), numbers.astype(float)):
        again = memory.overlap(af.Table(frame.assign(name=cells), NAMED))
        assert (again.again, again.rewritten) == (60, 40), "100 to 119 are as they were"
    assert again.sentence().endswith(
        "; of 40 people only the number is the same, and 'name' was written differently, as 007 and 7: if they are other people, "
        "put a letter before each 'name', in the tables of all years"
    )
    fractions = af.Table(frame.assign(name=[f"{number}.0" for number in range(60, 120)]), NAMED)
    assert memory.overlap(fractions).rewritten == 60
    file = next(memory.path.glob(".releases/*.npz"))
    with np.load(file) as arrays:
        of_older_version = {name: arrays[name] for name in arrays if name != "written"}
    np.savez(file, **of_older_version)
    assert (memory.overlap(fractions).again, memory.overlap(fractions).rewritten) == (60, 0), "not known"


def test_decimals_are_the_people_that_their_texts_are(tmp_path: Path) -> None:
    """`1.10` as a decimal of one year, and as the text of a file of the next."""
    memory, frame = Earlier(tmp_path / "owner"), people(60)
    texts = pd.Series([f"{number}.10" for number in range(60)])
    first = af.Table(frame.assign(name=texts.map(Decimal)), NAMED)
    af.anonymize(first, "mondrian", k=5).release(seed=2**127, owner=memory.path)
    assert memory.overlap(af.Table(frame.assign(name=texts), NAMED)).again == 60


def test_of_more_pairs_than_memory_holds_the_overlap_is_told_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few quasi-identifiers make large classes: a second release of 200,000 people took all memory, and its process was killed."""
    monkeypatch.setattr("anonflow.table.identification.history.total_memory", lambda: 10_000)
    first = af.anonymize(af.Table(people(60), NAMED), "mondrian", k=5)
    first.release(seed=2**127, owner=tmp_path / "owner")
    again = af.anonymize(af.Table(people(60), NAMED), "mondrian", k=7)
    with pytest.warns(ReleaseWarning, match="60 of 60 people are in an earlier release") as caught:
        again.release(seed=2**127 + 1, owner=tmp_path / "owner")
    assert "fewer than" not in str(caught[0].message)
    with pytest.raises(af.errors.AnonflowError, match="half of this machine's memory; take smaller classes"):
        af.anonymize(af.Table(people(60), NAMED), "mondrian", k=5, earlier=tmp_path / "owner", people=2)


def test_two_flows_on_the_same_people(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, publish=REPORTED)
    first = engine.run(flow)
    assert not any("earlier release" in warning for warning in first.warnings)
    other = flow.with_name("again.yaml")
    other.write_text(flow.read_text().replace("flow: test", "flow: again"))
    second = engine.run(other)
    assert any("people are in an earlier release" in warning for warning in second.warnings)


def test_a_table_beside_an_owners_folder_is_not_released_without_it(tmp_path: Path) -> None:
    frame = people(60)
    frame.to_csv(tmp_path / "people.csv", index=False)
    read = af.Table.read(tmp_path / "people.csv", NAMED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        af.anonymize(read, "mondrian", k=5).release(seed=2**127)  # no folder is there yet
        af.anonymize(read, "mondrian", k=5).release(seed=2**127, owner=tmp_path / "owner")
        af.anonymize(read, "mondrian", k=5).release(seed=2**127)  # the same release again
    with pytest.warns(ReleaseWarning, match=r"neither checked nor remembered there.*60 of 60 people are in"):
        af.anonymize(read, "mondrian", k=20).release(seed=2**127)
    strangers = tmp_path / "others.csv"
    frame.assign(name=lambda f: "x" + f["name"]).to_csv(strangers, index=False)
    with pytest.warns(ReleaseWarning, match="neither checked nor remembered there"):
        af.anonymize(af.Table.read(strangers, NAMED), "mondrian", k=5).release(seed=2**126)


@pytest.mark.slow
def test_the_shell_the_dashboards_and_python_know_of_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process of its own: a flow from the shell; here: a flow of another name, and the dashboards beside them."""
    flow = write_flow(tmp_path, publish=REPORTED)
    other = flow.with_name("again.yaml")
    other.write_text(flow.read_text().replace("flow: test", "flow: again"))
    finished = subprocess.run(
        [sys.executable, "-m", "anonflow", "run", str(flow), "--quiet"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "earlier release" not in finished.stderr
    status, _, text = shell(capsys, "run", other, "--quiet")
    assert status == 0
    assert "60 of 60 people are in an earlier release" in " ".join(text.split())
    pytest.importorskip("panel", reason="the dashboards are an extra")
    from anonflow.dashboards.publish.model import PublishModel
    from anonflow.dashboards.server.server_settings import ServerSettings
    from anonflow.dashboards.session.workspace import Workspace

    workspace = Workspace(owner=ServerSettings(start=flow).owner_of(""))
    try:
        workspace.opener.open_own_flow(flow)
        workspace.start()
        workspace.wait(300)
        model = PublishModel(workspace)
        model.draw()
        model.background.wait(300)
        assert model.publication is None
        assert "60 of 60 people are in 2 earlier releases" in model.earlier
    finally:
        workspace.close()


def test_each_user_has_a_memory_of_releases(tmp_path: Path) -> None:
    """A server with accounts keeps each user's releases apart: what one released is nobody else's to know."""
    pytest.importorskip("panel", reason="the dashboards are an extra")
    from anonflow.dashboards.server.server_settings import ServerSettings

    users, owner, table = tmp_path / "users", tmp_path / "owner", tmp_path / "data" / "people.csv"
    hosted = ServerSettings(users=users, owner=owner)
    assert hosted.owner_of("anna") == owner / "anna"
    assert hosted.owner_of("ben") == owner / "ben"
    assert ServerSettings(users=users, start=table).owner_of("anna") is None
    assert ServerSettings(start=table).owner_of("") == tmp_path / "data" / "owner"
    assert ServerSettings().owner_of("") is None


def keyed_folder(folder: Path) -> str:
    """The key of the folder in which a release was kept."""
    af.anonymize(af.Table(people(30), NAMED), "mondrian", k=5).release(seed=2**127, owner=folder)
    return (folder / ".releases" / "units.key").read_text(encoding="ascii").strip()


def blake2b(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8, key=key).digest()


def test_marks_under_a_key_of_an_older_version_stay_as_they_are() -> None:
    """Fault: a person whose mark is another one next year is nobody who was released before."""
    secret = bytes(range(16))
    frame = pd.DataFrame({"town": ["Paris", "Rome"], "age": [7, 31]})
    rows = [
        b"".join(blake2b(text.encode(), secret) for text in (f"3:age{age}", f"4:town{town}"))
        for town, age in (("Paris", 7), ("Rome", 31))
    ]
    expected = [int.from_bytes(blake2b(row, secret), "little") for row in rows]
    assert unit_marks(frame, ["town", "age"], secret.hex()).tolist() == expected


@pytest.mark.parametrize("half", [0, 1])
def test_marks_depend_on_both_halves_of_the_key(half: int) -> None:
    frame = pd.DataFrame({"town": ["Paris", "Rome"]})
    halves = ["0" * 32, "0" * 32]
    marks = unit_marks(frame, ["town"], "".join(halves))
    halves[half] = "1" * 32
    assert (unit_marks(frame, ["town"], "".join(halves)) != marks).all()


def test_marks_of_people_are_keyed_hashes_of_128_bits(tmp_path: Path) -> None:
    """Attack: of sums of hashes, three people's marks predict that of a fourth, without the key."""
    key = keyed_folder(tmp_path)
    assert len(bytes.fromhex(key)) == 32  # for cells, and for rows of them
    frame = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": ["u", "u", "v", "v"]})
    marks = unit_marks(frame, ["a", "b"], key)
    first, second, third, fourth = (int(mark) for mark in marks)
    assert (second + third - first) % 2**64 != fourth
    assert first ^ second ^ third != fourth
    assert len(set(marks.tolist())) == 4
    assert (marks == unit_marks(frame, ["b", "a"], key)).all()
    assert (unit_marks(frame.iloc[::-1], ["a", "b"], key)[::-1] == marks).all()
    assert (unit_marks(frame, ["a", "b"], "0" * 64) != marks).all()
    swapped = frame.rename(columns={"a": "b", "b": "a"})
    assert (unit_marks(swapped, ["a", "b"], key) != marks).all()
    numbers = pd.DataFrame({"a": [1, 2]})
    assert (unit_marks(numbers, ["a"], key) == unit_marks(numbers.astype(str), ["a"], key)).all()
    assert (unit_marks(numbers.astype(float), ["a"], key) == unit_marks(numbers, ["a"], key)).all()
    assert unit_marks(frame, [], key).tolist() == [0] * 4
    for number in range(4):  # no mark depends on the rows beside it
        assert unit_marks(frame.iloc[[number]], ["a", "b"], key).tolist() == [int(marks[number])]


def test_people_with_several_rows_are_counted_once(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"who": [f"p{at // 3}" for at in range(60)], "age": [20 + at // 3 for at in range(60)]}
    )
    columns = {"who": {"role": "unit"}, "age": {"role": "quasi-identifier", "kind": "numeric"}}
    first = af.Table(frame, columns)
    memory = Earlier(tmp_path)
    memory.keep(first, af.anonymize(first, "mondrian", k=4).release())
    overlap = memory.overlap(af.Table(frame.iloc[30:].reset_index(drop=True), columns))
    assert (overlap.people, overlap.again) == (10, 10)
    assert [(each.people, each.released) for each in memory.shared(first)] == [(20, 20)]


def test_an_older_key_and_its_marks_are_read(tmp_path: Path) -> None:
    """A folder of an earlier version has a key of 64 bits, and marks that are sums."""
    home = tmp_path / ".releases"
    home.mkdir(mode=0o700)
    (home / "units.key").write_text("0123456789abcdef", encoding="ascii")
    assert keyed_folder(tmp_path) == "0123456789abcdef"
    table = af.Table(people(30), NAMED)
    (file,) = home.glob("*.npz")
    with np.load(file) as arrays:
        marks = arrays["units"]
    assert (np.sort(unit_marks(table.units, table.unit_columns, "0123456789abcdef")) == marks).all()
    assert marks[:3].tolist() == [771241383025311077, 907825796875798102, 1122644319980928314]
    assert Earlier(tmp_path).overlap(table).again == 30
    (home / "units.key").write_text("0123", encoding="ascii")
    with pytest.raises(DataError, match="is no key"):
        Earlier(tmp_path).overlap(table)
    (home / "units.key").unlink()  # a new key would recognize nobody
    with pytest.raises(DataError, match="is missing; restore it"):
        Earlier(tmp_path).overlap(table)
    assert not (home / "units.key").exists()


def test_of_more_people_than_can_be_marked_none_are_and_the_owner_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of marks that is too large to be read would end every later run in this folder."""
    for module in ("anonflow.table.identification.earlier", "anonflow.engine.publish"):
        monkeypatch.setattr(f"{module}.MOST_PEOPLE", 50)
    report = engine.run(write_flow(tmp_path, n=60), seed=2**127)
    assert report.ok
    assert any("keeps no marks of the people in this release" in warning for warning in report.warnings)
    assert not list((tmp_path / "owner").rglob("[0-9]*.npz"))
