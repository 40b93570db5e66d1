"""Tables in pieces: the same bits as in memory, whatever the pieces, units and shelves."""

from __future__ import annotations

import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine.large import units
from anonflow.release import Certificate, draw, read_release
from tests.flow_files import write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF

COLUMNS = """\
    age: {role: quasi-identifier, kind: numeric, missing: suppress}
    city: {role: quasi-identifier, kind: categorical}
    zip: {role: quasi-identifier, kind: positions}
    job: {role: quasi-identifier, kind: hierarchy, hierarchy: {nested: {"*": {office: [clerk, boss], field: [farmer, hunter]}}}}
    name: {role: identifier}
    income: {role: sensitive}
    visits: {role: insensitive}
    score: {role: insensitive}
"""


def people(n: int, seed: int = 11) -> pd.DataFrame:
    rng = random.Random(seed)
    return pd.DataFrame(
        {
            "income": [rng.choice(["poor", "modest", None, "rich, \"very\"\nrich"]) for _ in range(n)],
            "age": [rng.choice([None, *range(20, 40)]) for _ in range(n)],
            "name": [f"n{i}" for i in range(n)],
            "zip": [f"{rng.randint(10, 13)}" for _ in range(n)],
            "city": [rng.choice(["Athens", "Volos", "{x|y}"]) for _ in range(n)],
            "job": [rng.choice(["clerk", "boss", "farmer", "hunter"]) for _ in range(n)],
            "visits": [rng.randint(0, 5) for _ in range(n)],
            "score": [rng.choice([None, 0.5, 2.0]) for _ in range(n)],
        }
    )  # fmt: skip


def written(folder: Path, n: int = 500, form: str = "parquet", **settings: Any) -> tuple[Path, Path]:
    """Two flows over the same table: one in memory, one in pieces."""
    frame = people(n)
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    elif form == "parquet":
        frame.to_parquet(folder / "t.parquet", index=False, row_group_size=37)
    else:
        (folder / "t.folder").mkdir()
        for part, start in enumerate(range(0, n, 61)):
            frame[start : start + 61].to_parquet(
                folder / "t.folder" / f"{part:03}.parquet", index=False, row_group_size=200
            )
        form = "parquet"
    (path,) = folder.glob("t.*")
    flows = []
    for name, pieces in (("memory", "false"), ("pieces", "60")):
        (folder / name).mkdir()
        settings.setdefault("columns", COLUMNS)
        flow = write_flow(folder / name, source=f"{{{form}: ../{path.name}, pieces: {pieces}}}", **settings)
        flows.append(flow)
    return flows[0], flows[1]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of a few partitions, and several shelves."""
    monkeypatch.setattr(units, "ROWS", 90)
    monkeypatch.setattr(draw, "SHELF", 100)


def compared(memory: Path, pieces: Path, table: str = "release.parquet", **settings: Any) -> Any:
    """Run both; the releases, certificates and numbers must be the same."""
    one = engine.run(memory, seed=SEED)
    two = engine.run(pieces, seed=SEED, **settings)
    assert one.ok
    assert two.ok
    frames = [read_release(path.parent / "out" / table, one.results[0].anonymization.table.schema).frame
              for path in (memory, pieces)]  # fmt: skip
    pd.testing.assert_frame_equal(*frames)
    owners = [path.parent / "owner" / "test" for path in (memory, pieces)]
    proofs = [Certificate.load(owner / "certificate.npz") for owner in owners]
    for name in ("row_list", "list_offsets", "list_originals", "row_marks"):
        np.testing.assert_array_equal(getattr(proofs[0], name), getattr(proofs[1], name), name)
    assert (proofs[0].k, proofs[0].criterion, proofs[0].key) == (
        proofs[1].k,
        proofs[1].criterion,
        proofs[1].key,
    )
    a, b = one.results[0], two.results[0]
    assert a.measures["gcp"] == pytest.approx(b.measures["gcp"], abs=1e-12)
    assert (a.suppressed, a.sizes, a.spread, a.records) == (b.suppressed, b.sizes, b.spread, b.records)
    for left, right in zip(a.columns, b.columns, strict=True):
        assert left.column == right.column
        assert (left.loss, left.exact, left.whole) == pytest.approx((right.loss, right.exact, right.whole))
    assert one.warnings == two.warnings
    assert not list(owners[1].glob("pieces-*"))
    assert stat.S_IMODE(owners[1].stat().st_mode) == 0o700
    return two


PARQUET = "{table: out/release.parquet, report: out/report.html}"


@pytest.mark.parametrize("form", ["parquet", "csv", "folder"])
def test_pieces_give_the_same_bits(tmp_path: Path, form: str) -> None:
    compared(*written(tmp_path, form=form, publish=PARQUET))


@pytest.mark.parametrize(
    "algorithm", ["mondrian", "k-concealment", "nh", "pattern-guided", "two-phase", "k-member"]
)
def test_every_kind_of_method(tmp_path: Path, algorithm: str) -> None:
    compared(*written(tmp_path, anonymize=f"{{algorithm: {algorithm}, k: 3}}", publish=PARQUET))
