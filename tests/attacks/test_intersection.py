"""Several draws of one table: intersect what each release allows.

Figures, 400 records, greedy, k = 5, a sensitive value with six values: named right for 0.45 to 0.46 of the people from one draw,
0.6 from five, 0.7 from eleven. It cannot be prevented once two are published: the attacker `intersection` must measure it, and what
the owner keeps to notice it must confirm no guess.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import AnonflowError, DataError
from anonflow.release import Earlier, ReleaseWarning
from tests.cases.released_twice import NAMED, SCHEMA, people

QUIET = pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")


@QUIET
def test_draws_add_up() -> None:
    table = af.Table(people(), SCHEMA)
    anonymization = af.anonymize(table, "greedy", k=5)
    first, *more = [anonymization.release(seed=2**127 + draw) for draw in range(11)]
    rates = [
        af.attack(table, first, "linker", k=5, earlier=more[:others]).set_index("attacker")["success"][
            "intersection"
        ]
        for others in (1, 4, 10)
    ]
    row = af.attack(table, first, "linker", k=5, earlier=more).iloc[-1]
    assert row["attacker"] == "intersection"
    assert row["baseline"] - 0.02 < rates[0] < rates[1] < rates[2]
    assert rates[2] > row["baseline"] + 0.12
    assert row["at_risk"] > 0
    assert "11 releases" in row["sentence"]


@QUIET
def test_nearly_unique_columns_link_rows_of_two_draws() -> None:
    frame = people().assign(code=np.random.default_rng(3).permutation(400))
    table = af.Table(frame, SCHEMA | {"code": {"role": "insensitive"}})
    anonymization = af.anonymize(table, "greedy", k=5)
    plain = af.anonymize(af.Table(frame, SCHEMA), "greedy", k=5)
    rates = [
        af.attack(
            each.table, each.release(seed=2**127), "linker", k=5,
            earlier=[each.release(seed=2**127 + draw) for draw in (1, 2, 3)],
        )["success"].iloc[-1]
        for each in (anonymization, plain)
    ]  # fmt: skip
    assert rates[0] > rates[1] + 0.05


def test_the_naive_posterior() -> None:
    """Two releases in classes, by hand: what both allow, weighed by the counts over the prior."""
    frame = pd.DataFrame({"age": range(4), "work": ["a"] * 4, "ill": ["u", "v", "u", "v"]})
    table = af.Table(frame, SCHEMA)
    low = pd.DataFrame({"age": ["0-1", "0-1", "2-3", "2-3"], "work": ["a"] * 4, "ill": ["u", "v", "u", "v"]})
    other = pd.DataFrame({"age": ["0-2", "0-2", "0-2", "3"], "work": ["a"] * 4, "ill": ["u", "v", "u", "v"]})
    row = af.attack(table, low, "linker", k=2, earlier=[other]).iloc[-1]
    # 0 and 2: u (right); 1: u (wrong); 3: v for certain
    assert row["success"] == pytest.approx(3 / 4)
    assert row["baseline"] == pytest.approx(1 / 2)
    assert row["at_risk"] == 1


def test_other_people_and_the_same_release_do_not_warn(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = af.Table(people(60), NAMED)
        for _ in range(2):  # made again with the same seed: the same release
            af.anonymize(table, "mondrian", k=5).release(seed=2**127, owner=tmp_path)
        other = people(60, 2).assign(name=[f"other {i}" for i in range(60)])
        af.anonymize(af.Table(other, NAMED), "mondrian", k=5).release(owner=tmp_path)
    assert len(list((tmp_path / ".releases").glob("*.npz"))) == 2
    with pytest.warns(ReleaseWarning, match="60 of 60 people"):
        af.anonymize(table, "mondrian", k=5).release(owner=tmp_path)


def test_what_is_kept_says_nothing_without_the_key(tmp_path: Path) -> None:
    table = af.Table(people(60), NAMED)
    release = af.anonymize(table, "mondrian", k=5).release(owner=tmp_path / "one")
    Earlier(tmp_path / "two").keep(table, release)
    files = [next((tmp_path / name / ".releases").glob("*.npz")) for name in ("one", "two")]
    marks = [set(np.load(file)["units"].tolist()) for file in files]
    assert not marks[0] & marks[1]
    assert b"person" not in files[0].read_bytes()
    for place in (files[0], files[0].parent / "units.key"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    files[0].write_bytes(b"PK broken")
    with pytest.raises(DataError, match="restore it"):
        Earlier(tmp_path / "one").overlap(table)


def test_a_key_that_could_not_be_written_is_made_by_the_next_who_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", full)
        patch.setattr(Path, "write_text", full)
        with pytest.raises(AnonflowError, match="make room"):
            Earlier(tmp_path).key()
    assert list((tmp_path / ".releases").iterdir()) == []
    key = Earlier(tmp_path).key()
    assert Earlier(tmp_path).key() == key
    assert [file.name for file in (tmp_path / ".releases").iterdir()] == ["units.key"]


def test_of_two_keys_at_a_time_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other: list[str] = []
    real = os.link

    def late(*args: Any, **more: Any) -> None:
        if not other:
            other.append("")  # the other process is not late itself
            other[0] = Earlier(tmp_path).key()
        real(*args, **more)

    monkeypatch.setattr(os, "link", late)
    assert Earlier(tmp_path).key() == other[0]
    assert [file.name for file in (tmp_path / ".releases").iterdir()] == ["units.key"]
