"""Guessed seeds: repeat the draw with each of many seeds, and know the right one by the published order.

Figure: ``release(seed=12345)`` was accepted in silence and found again in 2.2 s; everybody's row is known then. It is still
found, so it must be said, once for each call and in the run record; 128 bits cannot be tried. The same seed must not
give two tables the same permutation, else the truth of one is that of the other.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine, risk
from anonflow.algorithms.solve import partition_rng
from anonflow.errors import ParameterError
from anonflow.release import RandomWords, SeedWarning
from anonflow.release.randomness import seed_of_table
from anonflow.table.row_marks import Content
from tests.cases.flow_files import REPORTED, write_flow

SMALL = pytest.mark.filterwarnings("always:a seed below:UserWarning")
SCHEMA = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}


def table(seed: int = 1, n: int = 120) -> af.Table:
    rng = np.random.default_rng(seed)
    return af.Table(
        pd.DataFrame({"age": rng.integers(18, 80, n), "ill": rng.choice(list("abcd"), n)}), SCHEMA
    )


@SMALL
def test_a_small_seed_is_found_again_and_warned_of() -> None:
    people = table()
    anonymization = af.anonymize(people, "greedy", k=4)
    with pytest.warns(SeedWarning, match="can be found by trying") as caught:
        release = anonymization.release(seed=123)
    assert len([warning for warning in caught if warning.category is SeedWarning]) == 1
    replay = risk.Replayer(range(200), anonymization)
    assert af.attack(people, release, replay)["success"][0] == 1.0


@SMALL
@pytest.mark.parametrize("seed", [2**64, 2**127 + 5, bytes(range(16)), "0123456789abcdef" * 2])
def test_a_secret_is_not_warned_of(seed: int | bytes | str) -> None:
    people = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = af.anonymize(people, "greedy", k=4, seed=seed).release(seed=seed)
        two = af.anonymize(people, "greedy", k=4, seed=seed).release(seed=seed)
    pd.testing.assert_frame_equal(release.frame, two.frame)
    assert (
        af.attack(people, release, risk.Replayer(range(50), af.anonymize(people, "greedy", k=4)))["success"][
            0
        ]
        < 0.5
    )


def test_text_is_the_number_that_it_writes() -> None:
    text = "00c0ffee" * 5
    np.testing.assert_array_equal(
        RandomWords(text).lanes("class", 1, 8), RandomWords(int(text, 16)).lanes("class", 1, 8)
    )


@pytest.mark.parametrize("seed", ["12345", "g" * 32, b"short", -1, True, 1.5])
def test_what_is_no_secret_is_refused(seed: object) -> None:
    anonymization = af.anonymize(table(), "mondrian", k=4)
    with pytest.raises(ParameterError, match="a seed"):
        anonymization.release(seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a seed"):
        af.anonymize(table(), "mondrian", k=4, seed=seed)  # type: ignore[arg-type]


@SMALL
def test_the_seed_of_a_method_that_rests_on_it() -> None:
    people = table(n=40)
    with pytest.warns(SeedWarning):
        af.anonymize(people, "k-concealment", k=3, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        af.anonymize(people, "k-concealment", k=3, seed=2**100)
        af.anonymize(people, "greedy", k=3, seed=5)


@SMALL
def test_the_run_record_says_so(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, publish=REPORTED)
    report = engine.run(flow, seed=7)
    assert sum("below 2^64" in warning for warning in report.warnings) == 1
    record = json.loads((tmp_path / "owner" / "test" / "record.json").read_text())
    assert record["seed-can-be-guessed"] is True
    report = engine.run(flow, seed="5" * 32, again=True)
    assert not any("below 2^64" in warning for warning in report.warnings)
    record = json.loads((tmp_path / "owner" / "test" / "record.json").read_text())
    assert record["seed-can-be-guessed"] is False


def test_two_tables_share_no_permutation() -> None:
    item, two = table(1), table(2)
    seed = 2**127 + 9
    first, second = (af.anonymize(each, "mondrian", k=4).release(seed=seed) for each in (item, two))
    assert first.truth is not None
    assert second.truth is not None
    assert (first.truth == second.truth).mean() < 0.1
    again = af.anonymize(table(1), "mondrian", k=4).release(seed=seed)
    pd.testing.assert_frame_equal(first.frame, again.frame)


def test_the_content_of_a_table_in_any_pieces() -> None:
    frame = table().frame
    names = list(frame.columns)
    whole = Content.of(frame, names)
    for cuts in ([1], [50], [10, 11, 90]):
        parts = np.split(np.arange(len(frame)), cuts)
        total = Content(0, 0)
        for part in parts:
            total = total.then(Content.of(frame.iloc[part], names))
        assert total == whole
    swapped = frame.iloc[[1, 0, *range(2, len(frame))]]
    assert Content.of(swapped, names) != whole
    assert Content.of(frame.astype(str), names) == whole
    assert seed_of_table(2**100, whole.to_bytes()) != seed_of_table(2**100 + 1, whole.to_bytes())


def test_the_records_are_mixed_into_the_streams_of_the_methods() -> None:
    """With one seed, what is random for a table says nothing of another one."""
    item, two = table(1).records, table(2).records
    draws = [partition_rng(2**100, 0, records).random() for records in (item, two, item)]
    assert draws[0] == draws[2] != draws[1]
    assert item.fingerprint() == table(1).records.fingerprint() != two.fingerprint()
    assert item.fingerprint() != item.take(np.arange(item.n)[::-1]).fingerprint()
    other = af.Table(table(1).frame.assign(age=lambda frame: frame["age"] + 1), SCHEMA)
    assert np.array_equal(other.records.codes, item.codes)
    assert other.records.fingerprint() != item.fingerprint()


def test_no_page_shows_a_seed_for_a_release() -> None:
    root = Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "notebooks").glob("*.ipynb")]
    with_seed = {
        page.name: page
        for page in pages
        if re.search(r"release\([^)\n]*seed *=", page.read_text(encoding="utf-8"))
    }
    # the attack on a seed that can be guessed is shown with one
    attack = with_seed.pop("07-verifying-and-attacking.ipynb")
    assert "weak = " in attack.read_text(encoding="utf-8")
    # pages whose printed figures a student compares say on the spot that theirs is for the page alone
    assert all(name.startswith(("10-", "12-", "14-")) for name in with_seed), sorted(with_seed)
    for page in with_seed.values():
        assert "a real release takes none" in page.read_text(encoding="utf-8"), page.name
