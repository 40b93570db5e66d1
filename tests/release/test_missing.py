"""Missing values and empty texts: the same in memory, in Parquet and in CSV, and in pieces."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.release import read_release, write_release

COLUMNS = {
    "job": {"role": "quasi-identifier", "kind": "categorical"},
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "note": {"role": "sensitive"},
    "kind": {"role": "insensitive"},
}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job": ["", "nurse", None, "cook"] * 8,
            "age": [1, 1, 1, 1, 2, 2, 2, 2] * 4,
            "note": ["", None, "x", "y", "x", "y", "", None] * 4,
            "kind": pd.Categorical(["", "a", "b", "a"] * 8),
        }
    )


def cells(frame: pd.DataFrame) -> list[tuple[str | None, ...]]:
    shown = frame[list(COLUMNS)].astype(object)
    rows = shown.where(shown.notna(), None)
    return sorted((tuple(row) for row in rows.to_numpy().tolist()), key=str)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_read_back_is_what_was_in_memory(tmp_path: Path, ending: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = af.anonymize(af.Table(people(), COLUMNS), "greedy", k=2, seed=1).release(seed=1)
    write_release(release, tmp_path / f"release{ending}")
    assert cells(read_release(tmp_path / f"release{ending}", COLUMNS).frame) == cells(release.frame)
    # a quasi-identifier tells the two apart, the other columns have missing values only
    assert {"", '""'} <= set(release.frame["job"])
    for name in ("note", "kind"):
        assert release.frame[name].isna().any()
        assert "" not in set(release.frame[name])


def test_a_table_leaves_the_frame_that_it_was_made_of() -> None:
    frame = people()
    table = af.Table(frame, COLUMNS)
    pd.testing.assert_frame_equal(frame, people())
    assert table.frame["note"].isna().sum() == 16
    assert table.frame["job"].isna().sum() == 8
    numbers = af.Table(frame.assign(note=1.5), COLUMNS)
    assert numbers.frame["note"].dtype == float


def test_pieces_have_the_same_rule(tmp_path: Path) -> None:
    people().astype({"kind": "str"}).to_parquet(tmp_path / "people.parquet", row_group_size=8)
    columns = "".join(
        f"    {name}: {{{', '.join(f'{key}: {value}' for key, value in entry.items())}}}\n"
        for name, entry in COLUMNS.items()
    )
    releases = []
    for pieces in ("false", "8", "3"):
        flow = tmp_path / f"flow-{pieces}.yaml"
        flow.write_text(
            f"flow: f{pieces}\nversion: 1\ntable:\n  source: {{parquet: people.parquet, pieces: {pieces}}}\n"
            f"  columns:\n{columns}partition: {{size: 8}}\nsteps:\n  - anonymize: {{algorithm: greedy, k: 2}}\n"
            f"publish: {{table: out/{pieces}.csv}}\n"
        )
        assert engine.run(flow, seed=0x1234567890ABCDEF1234567890ABCDEF).ok
        releases.append((tmp_path / "out" / f"{pieces}.csv").read_bytes())
    assert releases[0] == releases[1] == releases[2]
