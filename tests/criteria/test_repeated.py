"""The criterion repeated: people and values that all releases together leave."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.release import Earlier, Release, write_release
from tests.cases.released_twice import NAMED, people

K = 4


def released(frame: pd.DataFrame, folder: Path, seed: int = 1, **schema: Any) -> tuple[af.Table, Release]:
    table = af.Table(frame, NAMED | schema)
    release = af.anonymize(table, "mondrian", k=K).release(seed=2**127 + seed)
    Earlier(folder).keep(table, release)
    return table, release


def finding(table: af.Table, release: Any, folder: Any, **options: Any) -> Any:
    (answer,) = af.verify(table, release, [{"repeated": {"earlier": folder, **options}}], k=K).findings
    return answer


def test_a_single_release_leaves_the_people_of_each_class(tmp_path: Path) -> None:
    table, release = released(people(60), tmp_path)
    classes = release.frame.groupby(["age", "work"])
    smallest, values = int(classes.size().min()), int(classes["ill"].nunique().min())
    assert finding(table, release, tmp_path).holds
    assert finding(table, release, tmp_path, people=smallest).holds
    assert not finding(table, release, tmp_path, people=smallest + 1).holds
    assert finding(table, release, tmp_path, values=values).holds or values == 1
    assert not finding(table, release, tmp_path, values=values + 1).holds


def test_a_plain_second_release_fails_and_a_file_that_was_kept_can_be_checked(tmp_path: Path) -> None:
    folder = tmp_path / "owner"
    released(people(60), folder)
    later = people(60).iloc[10:].assign(age=lambda frame: frame["age"][::-1].to_numpy())
    table, release = released(later, folder, seed=2)
    result = finding(table, release, folder)
    assert not result.holds
    assert result.side == "original"
    assert "2 releases leave each of 60 people at least 1 person whose rows may be theirs, " in result.detail
    assert "10 people with fewer are in earlier releases only" in result.detail
    write_release(release, tmp_path / "later.csv")
    assert finding(table, tmp_path / "later.csv", folder).detail == result.detail
    changed = release.frame.iloc[::-1].reset_index(drop=True)
    assert finding(table, changed, folder).holds is None


def test_wrong_input_is_named(tmp_path: Path) -> None:
    folder, other = tmp_path / "owner", tmp_path / "other"
    table, release = released(people(60), folder)
    for wrong, options, words in (
        (tmp_path / "nothing", {}, "has no earlier release"),
        ([], {}, "names no owner's folder"),
        (5, {}, "named by its path, not by a int"),
        (folder, {"values": 7, "column": "ill"}, "has 6 values, so no release can leave 7"),
        (folder, {"values": 2, "column": "age"}, "is not a sensitive column"),
    ):
        with pytest.raises(AnonflowError, match=words):
            finding(table, release, wrong, **options)
    released(people(60).assign(name=lambda frame: "x" + frame["name"]), other)
    with pytest.raises(DataError, match="nobody of this table is in an earlier release"):
        finding(table, release, other)
    with pytest.raises(DataError, match="has another key"):
        finding(table, release, [folder, other])
    plain = {key: NAMED[key] for key in ("age", "work", "ill")}
    renamed = af.Table(people(60).rename(columns={"name": "id"}), plain | {"id": {"role": "identifier"}})
    with pytest.raises(DataError, match="recognized by 'name', those of this table by 'id'"):
        finding(renamed, af.anonymize(renamed, "mondrian", k=K).release(), folder)
    nameless = af.Table(people(60).drop(columns="name"), plain)
    with pytest.raises(ParameterError, match="need a column that identifies people"):
        finding(nameless, af.anonymize(nameless, "mondrian", k=K).release(), folder)
    twins = af.Table(
        people(60).assign(name=lambda frame: frame["name"].replace("person 1", "person 0")), NAMED
    )
    with pytest.raises(DataError, match="two rows have the same 'name'"):
        finding(twins, af.anonymize(twins, "mondrian", k=K).release(), folder)
    numbered = people(60).assign(name=["007", "7", *map(str, range(100, 158))])
    numbers = af.Table(numbered, NAMED)
    with pytest.raises(DataError, match="two rows have texts in 'name' that read as the same number"):
        finding(numbers, af.anonymize(numbers, "mondrian", k=K).release(), folder)
    part = table.take(np.arange(50))
    for subject in (af.anonymize(part, "mondrian", k=K).release(), release):
        with pytest.raises(ParameterError, match="needs earlier, the owner's folder of the earlier releases"):
            af.verify(part, subject, ["repeated"], k=K)


def test_whoever_has_no_number_is_nobody_of_another_year(tmp_path: Path) -> None:
    """Two missing numbers are not one person's."""
    unnamed = people(60)
    unnamed.loc[7, "name"] = None
    table, release = released(people(60), tmp_path / "owner")
    with pytest.raises(DataError, match="1 row has no 'name'; each person needs a number of their own"):
        finding(af.Table(unnamed, NAMED), release, tmp_path / "owner")
    released(unnamed, tmp_path / "unnamed")
    with pytest.raises(DataError, match="or its people have no number of their own"):
        finding(table, release, tmp_path / "unnamed")


def test_releases_in_a_wrong_order_or_without_a_certificate_are_refused(tmp_path: Path) -> None:
    table, release = released(people(60), tmp_path / "owner")
    shutil.copytree(tmp_path / "owner", tmp_path / "later")
    for file in (tmp_path / "later" / ".releases").glob("*.npz"):
        file.unlink()
    released(people(60), tmp_path / "later", seed=2)
    assert finding(table, release, [tmp_path / "owner", tmp_path / "later"]).holds  # the same classes
    with pytest.raises(DataError, match="not in the order of their dates"):
        finding(table, release, [tmp_path / "later", tmp_path / "owner"])
    shown = Release(release.frame.iloc[::-1].reset_index(drop=True))
    Earlier(tmp_path / "owner").keep(table, shown)
    with pytest.raises(DataError, match="does not say whose its rows may be"):
        finding(table, release, tmp_path / "owner")


def test_of_large_releases_marks_alone_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.table.identification.earlier.MOST_LISTED", 59)
    table, release = released(people(60), tmp_path)
    assert Earlier(tmp_path).overlap(table).again == 60
    with pytest.raises(DataError, match="is too large"):
        finding(table, release, tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    table, release = released(people(60), tmp_path)
    (file,) = (tmp_path / ".releases").glob("*.npz")
    with np.load(file) as arrays:
        parts = dict(arrays)
    for name, wrong in (
        ("originals", parts["originals"] + 60),
        ("row_list", parts["row_list"][:-1]),
        ("values-0", parts["units"][1:]),
    ):
        np.savez(file, **parts | {name: wrong})
        with pytest.raises(DataError, match="cannot be read"):
            finding(table, release, tmp_path)
