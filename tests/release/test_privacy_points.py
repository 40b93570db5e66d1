"""What makes a release private, point by point; each check also catches the breach that it is there for."""

from __future__ import annotations

import ast
import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.engine import publish as engine_publishing
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.engine.report import attacks as flow_attacks
from anonflow.errors import AnonflowError, InfeasibleError
from anonflow.release import (
    Certificate,
    RandomWords,
    Release,
    ReleaseWarning,
    draw_assignment,
    publish,
    read_release,
    write_release,
)
from anonflow.release.columns import told_by_values
from anonflow.table.forms.text_columns import text_type
from anonflow.whole_file import write_whole
from tests import ROOT
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.cases.tables import mixed, sampled
from tests.strategies import loop, seeded

SEED = 0x1234567890ABCDEF1234567890ABCDEF
QUIET = pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")


def rounds(n: int, k: int) -> np.ndarray:
    """Matches of a ring: record j covers itself and the k - 1 that follow, in blocks of n."""
    return (np.arange(n)[:, None] + np.arange(k)[None, :]) % n


def few_suppressed() -> tuple[af.Table, Any]:
    """Two records out of eight have no company under the only pattern."""
    frame = pd.DataFrame(
        {"a": ["x"] * 6 + ["y", "z"], "b": ["u"] * 6 + ["v", "w"], "ill": [f"s{i}" for i in range(8)]}
    )
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    table = af.Table(frame, {"a": qi, "b": qi, "ill": {"role": "sensitive"}})
    return table, af.anonymize(table, "pattern-guided", k=3, patterns=["00"])


# ---------------------------------------------------------------------------- 1. suppressed records


@QUIET
def test_1_suppressed_records_say_nothing() -> None:
    table, anon = few_suppressed()
    assert anon.suppressed.sum() == 2
    release = anon.release(seed=SEED)
    stars = (release.frame[["a", "b"]] == "*").all(axis=1)
    assert stars.sum() == 2
    assert (release.frame.loc[stars, "ill"] == "*").all()
    assert af.verify(table, release, ["covers", "k-anonymity"], k=3)
    assert anon.loss("gcp") == pytest.approx(2 / 8)
    changed = release.frame.copy()
    left = sorted(set(table.frame["ill"]) - set(changed["ill"]))
    changed.loc[stars, "ill"] = left
    assert not af.verify(table, changed, ["covers", "k-anonymity"], k=3)


# ---------------------------------------------------------------------------------------- 2. the draw


def slots(matches: np.ndarray, draw: Any, draws: int) -> np.ndarray:
    """Which of its matches each record got, (draws, n)."""
    n = len(matches)
    values = np.empty((draws, n), np.int64)
    for at in range(draws):
        origin = draw(matches, at)
        values[at] = (matches == origin[:, None]).argmax(axis=1)
    return values


def is_fair(matches: np.ndarray, draw: Any, draws: int = 3000) -> bool:
    """Every match has its share, and records of different components do not know of each other."""
    got = slots(matches, draw, draws)
    k = matches.shape[1]
    shares = np.stack([(got == slot).mean(axis=0) for slot in range(k)])
    noise = 5 * np.sqrt((1 / k) * (1 - 1 / k) / draws)
    if np.abs(shares - 1 / k).max() > noise:
        return False
    half = len(matches) // 2
    together = np.mean(got[:, 0] == got[:, half])
    return bool(abs(together - 1 / k) <= noise)


def test_2_every_match_is_drawn_once_in_k_and_components_are_independent() -> None:
    ring = rounds(6, 3)
    matches = np.concatenate([ring, ring + 6]).astype(np.int32)

    def ours(graph: np.ndarray, at: int) -> np.ndarray:
        return draw_assignment(graph, RandomWords(SEED + at))

    def one_column(graph: np.ndarray, at: int) -> np.ndarray:
        return graph[:, np.random.default_rng(at).integers(graph.shape[1])]

    def always_itself(graph: np.ndarray, at: int) -> np.ndarray:
        return graph[:, 0]

    assert is_fair(matches, ours)
    assert not is_fair(matches, one_column)
    assert not is_fair(matches, always_itself)


# ------------------------------------------------------------------------------------ 3. other columns


def pairs_kept(table: af.Table, frame: pd.DataFrame, columns: list[str]) -> bool:
    original = sorted(map(tuple, table.frame[columns].astype(str).to_numpy()))
    return sorted(map(tuple, frame[columns].astype(str).to_numpy())) == original


@QUIET
def test_3_other_columns_travel_together() -> None:
    frame = sampled("nursery", 60).frame
    frame = frame.assign(one=[f"a{i}" for i in range(60)], two=[f"b{i}" for i in range(60)])
    schema = {
        c: {"role": "quasi-identifier", "kind": "categorical"}
        for c in frame.columns
        if c not in ("one", "two")
    }
    table = af.Table(frame, {**schema, "one": {"role": "sensitive"}, "two": {"role": "insensitive"}})
    anon = af.anonymize(table, "greedy", k=4, seed=1)
    release = anon.release(seed=SEED)
    assert pairs_kept(table, release.frame, ["one", "two"])
    apart = release.frame.assign(two=np.roll(release.frame["two"], 1))
    assert not pairs_kept(table, apart, ["one", "two"])
    assert not af.verify(table, apart, ["covers"], k=4)


@loop(
    ("cells", "says"),
    [
        ([f"p{i}" for i in range(60)], "'note' is nearly unique: 60 records"),
        ([i // 20 for i in range(60)], "'note' is monotone"),
    ],
)
def test_3_a_telling_column_is_warned_of(cells: list[Any], says: str) -> None:
    frame = sampled("nursery", 60).frame.assign(note=cells)
    schema = {c: {"role": "quasi-identifier", "kind": "categorical"} for c in frame.columns if c != "note"}
    table = af.Table(frame, {**schema, "note": {"role": "insensitive"}})
    with pytest.warns(ReleaseWarning, match=says):
        af.anonymize(table, "mondrian", k=4).release(seed=SEED)


@pytest.mark.parametrize("alone", [11, 12])
def test_3_a_fifth_of_values_that_nobody_else_has_are_too_many(alone: int) -> None:
    cells = np.random.default_rng(2).permutation(
        [*range(alone), *([-1] * ((60 - alone) // 2)), *([-2] * (60 - alone - (60 - alone) // 2))]
    )
    table = af.Table(
        pd.DataFrame({"age": [20, 30] * 30, "note": cells}),
        {"age": {"role": "quasi-identifier", "kind": "numeric"}, "note": {"role": "insensitive"}},
    )
    assert told_by_values(table) == (
        [
            "column 'note' is nearly unique: 12 records have a value that nobody else has, which undoes the shuffle; leave it out or make it coarser"
        ]
        if alone == 12
        else []
    )


@pytest.mark.parametrize("alone", [28, 30])
def test_3_half_of_combinations_that_nobody_else_has_are_too_many(alone: int) -> None:
    """Each value of a column is twice there; of so many records the pair is there once."""
    first = np.repeat(np.arange(30), 2)
    second = np.concatenate([np.roll(first[:alone], 1), first[alone:]])
    order = np.random.default_rng(2).permutation(60)
    frame = pd.DataFrame({"age": [20, 30] * 30, "first": first[order], "second": second[order]})
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "first": {"role": "insensitive"},
        "second": {"role": "insensitive"},
    }
    assert [
        f"{alone} of 60 records have a combination" in sentence
        for sentence in told_by_values(af.Table(frame, columns))
    ] == [True] * (alone >= 30)


# --------------------------------------------------------------------------------- 4. shuffled and plain


def is_plain(frame: pd.DataFrame) -> bool:
    """Nothing is in a frame but its cells."""
    fresh = isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0 and frame.index.name is None
    types = all(
        cells.map(lambda cell: cell is None or type(cell) is str).all()  # texts before pandas' third version
        if cells.dtype == object and text_type() is object
        else not isinstance(cells.dtype, pd.CategoricalDtype) and cells.dtype != object
        for _, cells in frame.items()
    )
    return fresh and types and not frame.attrs and frame.columns.name is None


@QUIET
def test_4_the_frame_is_plain() -> None:
    frame = mixed(40).frame.copy()
    frame["pay"] = pd.Categorical(frame["pay"], categories=["low", "high", "secret"])
    frame.index = pd.Index([f"person {i}" for i in range(40)], name="who")
    frame.attrs["source"] = "the clinic"
    frame.columns.name = "fields"
    assert not is_plain(frame)
    table = af.Table(frame, mixed(40).schema)
    for algorithm in ("greedy", "mondrian"):
        release = af.anonymize(table, algorithm, k=4, seed=1).release(seed=SEED)
        assert is_plain(release.frame)
        assert "secret" not in str(release.frame["pay"].dtype)
    for breach in (
        release.frame.assign(pay=pd.Categorical(release.frame["pay"], categories=["low", "high", "secret"])),
        release.frame.set_index(pd.Index(range(1, 41))),
        release.frame.set_index(pd.RangeIndex(40, name="who")),
    ):
        assert not is_plain(breach)


def says_only_cells(path: Path) -> bool:
    """A Parquet file has no statistics, no notes, no dictionary of values that no cell has."""
    import pyarrow.parquet as pq

    about = pq.ParquetFile(path).metadata
    groups = [about.row_group(g) for g in range(about.num_row_groups)]
    return not about.metadata and not any(
        g.column(c).is_stats_set for g in groups for c in range(g.num_columns)
    )


@QUIET
def test_4_the_file_is_plain(tmp_path: Path) -> None:
    anon = af.anonymize(mixed(40), "greedy", k=4, seed=1)
    release = anon.release(seed=SEED)
    release.write(tmp_path / "ours.parquet")
    release.frame.to_parquet(tmp_path / "theirs.parquet")
    assert says_only_cells(tmp_path / "ours.parquet")
    assert not says_only_cells(tmp_path / "theirs.parquet")
    back = read_release(tmp_path / "ours.parquet", anon.table.schema)
    assert is_plain(back.frame)


def order_says_nothing(truths: list[np.ndarray]) -> bool:
    """Positions of rows and of originals are unrelated, over many draws: rank correlation and fixed points."""
    n = len(truths[0])
    ranks = [np.corrcoef(np.arange(n), truth)[0, 1] for truth in truths]
    fixed = [np.mean(truth == np.arange(n)) for truth in truths]
    spread = 5 / np.sqrt((n - 1) * len(truths))
    return bool(
        abs(np.mean(ranks)) < spread
        and np.mean(fixed) < 1 / n + 5 * np.sqrt(1 / n / n / len(truths)) * n**0.5
    )


@QUIET
@seeded(200, 40)
def test_4_row_order_says_nothing(seeds: range) -> None:
    table = sampled("nursery", 60)
    anon = af.anonymize(table, "greedy", k=4, partition_size=20, seed=1)
    truths = [publish(anon, SEED + at, rehearsal=True).truth for at in seeds]
    assert order_says_nothing([t for t in truths if t is not None])
    assert not order_says_nothing([np.arange(60)] * len(seeds))
    # a sorted part file: each of three parts holds its partition's rows, shuffled inside
    rng = np.random.default_rng(0)
    parts = [np.concatenate([rng.permutation(20) + 20 * p for p in range(3)]) for _ in seeds]
    assert not order_says_nothing(parts)


def test_4_set_members_are_sorted_by_text() -> None:
    table = af.Table(
        pd.DataFrame({"job": ["pear", "apple", "fig", "apple", "pear", "fig"]}),
        {"job": {"role": "quasi-identifier", "kind": "categorical"}},
    )
    cells = set(af.anonymize(table, "mondrian", k=6).release(seed=SEED).frame["job"])
    assert cells == {"*"}
    cells = set(af.anonymize(table, "greedy", k=3, seed=1).release(seed=SEED).frame["job"])
    for cell in cells - {"*"}:
        members = cell.strip("{}").split("|")
        assert members == sorted(members)


# ------------------------------------------------------------------------------------ 5. random words


def uses_generators(tree: ast.AST) -> bool:
    """Whether code names numpy's generators or the module random."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in (
            "random",
            "default_rng",
            "Generator",
            "RandomState",
        ):
            return True
        if isinstance(node, ast.Import) and any(name.name.split(".")[0] == "random" for name in node.names):
            return True
    return False


def test_5_the_draw_uses_no_generator_whose_state_can_be_searched() -> None:
    files = [
        *(ROOT / "anonflow" / "release").glob("*.py"),
        ROOT / "anonflow" / "kernels" / "draw.py",
    ]
    assert len(files) > 5
    for file in files:
        assert not uses_generators(ast.parse(file.read_text())), file.name
    assert uses_generators(ast.parse("import numpy as np\nnp.random.default_rng(0)"))
    assert uses_generators(ast.parse("import random"))


@QUIET
def test_5_without_a_seed_two_releases_differ_and_with_one_they_do_not() -> None:
    anon = af.anonymize(sampled("nursery", 60), "greedy", k=4, seed=1)
    own = [publish(anon, rehearsal=True).frame for _ in range(3)]
    assert not own[0].equals(own[1])
    assert not own[1].equals(own[2])
    assert publish(anon, SEED).frame.equals(publish(anon, SEED, rehearsal=True).frame)
    # streams are apart: another step, another draw
    assert not publish(anon, SEED, rehearsal=True).frame.equals(
        publish(anon, SEED, step=2, rehearsal=True).frame
    )


# ------------------------------------------------------------------------------------ 6. owner's folder


def is_keyed(digest: str, content: bytes) -> bool:
    """Whether a hash cannot be confirmed by who guesses the content."""
    plain = {
        hashlib.new(name, content).hexdigest() for name in ("md5", "sha1", "sha256", "sha512", "blake2b")
    }
    return digest not in plain and digest != hashlib.sha256(hashlib.sha256(content).digest()).hexdigest()


def test_6_the_owners_folder_is_the_owners(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, publish=REPORTED)
    engine.run(flow, seed=SEED)
    home = tmp_path / "owner" / "test"
    for path in (home.parent, home):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    record = json.loads((home / "record.json").read_text())
    for name, file in (("flow", flow), ("source", tmp_path / "people.csv")):
        assert is_keyed(record["hashes"][name], file.read_bytes())
        assert not is_keyed(hashlib.sha256(file.read_bytes()).hexdigest(), file.read_bytes())
    elsewhere = OwnerFolder(tmp_path / "other")
    elsewhere.make()
    assert elsewhere.keyed(hashlib.sha256(flow.read_bytes()).digest()) != record["hashes"]["flow"]
    assert f"{SEED:032x}" not in (home / "record.json").read_text()
    assert f"{SEED:032x}".encode() not in (home / "certificate.npz").read_bytes()


def lists_are_silent(certificate: Certificate, truth: np.ndarray) -> bool:
    """Where the true original stands in a row's list says nothing: lists are sorted."""
    places = []
    for row in range(certificate.n):
        result = certificate.of(row)
        if (np.diff(result) <= 0).any():
            return False
        places.append(int(np.searchsorted(result, truth[row])))
    counts = np.bincount(places, minlength=certificate.k)
    expected = certificate.n / certificate.k
    return bool(((counts - expected) ** 2 / expected).sum() < 30)


@QUIET
def test_6_the_certificate_does_not_hold_the_assignment() -> None:
    anon = af.anonymize(sampled("nursery", 240), "greedy", k=4, seed=1)
    release = publish(anon, SEED)
    certificate, truth = release.certificate, release.truth
    assert certificate is not None
    assert truth is not None
    assert lists_are_silent(certificate, truth)
    assert set(certificate.__dict__) <= {
        "k", "criterion", "algorithm", "row_list", "list_offsets", "list_originals", "versions", "extra_covers", "offsets",
        "originals", "row_marks", "key",
    }  # fmt: skip
    rows = [np.concatenate([[truth[r]], np.setdiff1d(certificate.of(r), [truth[r]])]) for r in range(240)]
    first = Certificate(
        4,
        "k-regular",
        "greedy",
        np.arange(240, dtype=np.int32),
        np.arange(241) * 4,
        np.concatenate(rows).astype(np.int32),
    )
    assert not lists_are_silent(first, truth)


def test_6_the_owners_folder_is_never_where_something_is_published(tmp_path: Path) -> None:
    for target in ("owner/test/r.csv", "r.csv"):
        flow = write_flow(tmp_path, publish=f"{{table: {target}}}")
        with pytest.raises(AnonflowError, match="owner's folder"):
            engine.load_flow(flow)


# ---------------------------------------------------------------- 7. is tests/release/test_leaks.py; 8. all or nothing


def test_8_what_is_infeasible_publishes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError, match="use a k of at most 60"):
        engine.run(
            write_flow(tmp_path, partition="{}", anonymize="{algorithm: greedy, k: 61}", publish=REPORTED)
        )
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


def test_8_files_appear_whole(tmp_path: Path) -> None:
    target = tmp_path / "r.csv"
    target.write_text("the last one")

    def half(path: Path) -> None:
        path.write_text("half of")
        raise OSError(28, "No space left on device")

    with pytest.raises(AnonflowError, match="cannot be written"):
        write_whole(target, half)
    assert target.read_text() == "the last one"
    assert everything_in(tmp_path) == {"r.csv"}


def test_8_a_failed_check_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine_publishing.publish

    def swapped(anonymization: Any, **more: Any) -> Release:
        release = real(anonymization, **more)
        frame = release.frame.copy()
        ages = anonymization.table.frame["age"].astype(int)
        frame.loc[0, "age"] = str(ages.min())
        frame.loc[1, "age"] = str(ages.max())
        return Release(frame, release.certificate, release.truth)

    monkeypatch.setattr(engine_publishing, "publish", swapped)
    report = engine.run(write_flow(tmp_path, publish=REPORTED), seed=SEED)
    assert not report.ok
    assert report.release is None
    assert not (tmp_path / "out").exists()


# ----------------------------------------------------------------------------------------- 9. one draw


@QUIET
def test_9_one_draw_is_made_and_a_failure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = engine_publishing.publish

    def counting(*args: Any, **more: Any) -> Release:
        drawn.append(1)
        return real(*args, **more)

    monkeypatch.setattr(engine_publishing, "publish", counting)
    monkeypatch.setattr(flow_attacks, "MOST", 0)
    steps = "  - draw: {}\n  - verify: [covers, {l-diversity: {l: 40, column: income}}]\n"
    report = engine.run(write_flow(tmp_path, steps=steps, publish=REPORTED), seed=SEED)
    assert not report.ok
    assert len(drawn) == 1
    assert not (tmp_path / "out").exists()
    engine.run(write_flow(tmp_path, publish=REPORTED), seed=SEED)
    assert len(drawn) == 2


def test_9_a_second_draw_warns() -> None:
    anon = af.anonymize(sampled("nursery", 60), "greedy", k=4, seed=1)
    anon.release(seed=SEED)
    with pytest.warns(ReleaseWarning, match="drawn before"):
        anon.release(seed=SEED + 1)


# ----------------------------------------------------------------------------------- 10. limits are said

LIMITS = (
    "k-anonymity alone does not hide it",
    "One row is taken to be one person",
    "two draws of one table, can be intersected",
    "An attacker who knows for certain which rows belong to some people",
)


def test_10_limits_are_said_where_the_user_reads(tmp_path: Path) -> None:
    engine.run(write_flow(tmp_path, publish=REPORTED))
    page = (tmp_path / "out" / "report.html").read_text().replace("&#39;", "'")
    for limit in LIMITS:
        assert limit in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    for words in ("one person", "intersect", "k-concealment"):
        assert words in readme


def test_4_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    table, anon = few_suppressed()
    release = publish(anon, SEED, rehearsal=True)
    write_release(release, tmp_path / "r.csv")
    write_release(release, tmp_path / "r.parquet")
    item, two = (
        read_release(tmp_path / name, table.schema).frame.astype(str) for name in ("r.csv", "r.parquet")
    )
    pd.testing.assert_frame_equal(item, two)
