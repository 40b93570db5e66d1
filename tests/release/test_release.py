"""What is published: nothing but the release's own rows, and the owner's proof of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

from anonflow.criteria import verify
from anonflow.errors import DataError
from anonflow.release import ReleaseWarning, publish, write_release
from anonflow.release.rows import PlainColumn
from anonflow.table.forms.text_columns import text_type
from tests.cases.releases import people, released_like, with_positions
from tests.naive.draw import beside, ring
from tests.strategies import loop

CHANCE = 1e-6


@pytest.fixture
def telling() -> Any:
    """Columns that name the original warn; that is not what is tested here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        yield


# --------------------------------------------------------------------------------- the other columns


@pytest.mark.usefixtures("telling")
def test_other_columns_travel_together_along_the_matches() -> None:
    matches = beside(ring(9, 3), ring(11, 3))
    anon = with_positions(20, matches=matches)
    release = anon.release(seed=1)
    assert list(release.frame.columns) == ["ill", "age", "work", "cost"]
    assert (release.frame["ill"] == "p" + release.frame["cost"].astype(str)).all()
    assert sorted(release.frame["cost"]) == list(range(20))
    assert release.certificate is not None
    listed = [int(cost) in release.certificate.of(row) for row, cost in enumerate(release.frame["cost"])]
    assert all(listed)
    assert verify(anon.table, release, ["covers", "k-regular"], 3)
    assert verify(anon.table, release, ["covers", "k-regular"], 3, certificate=release.certificate)


@pytest.mark.usefixtures("telling")
@pytest.mark.parametrize("draws", [80, pytest.param(500, marks=pytest.mark.slow)])
def test_every_match_is_the_true_one_equally_often_and_nothing_tells_which(draws: int) -> None:
    """In a release, the true original is any of the certificate's k with probability 1/k."""
    anon = with_positions(12, k=4, matches=ring(12, 4))
    places = np.zeros(4, int)
    for seed in range(draws):
        release = publish(anon, seed, rehearsal=True)
        certificate = release.certificate
        assert certificate is not None
        lists = certificate.originals.reshape(12, 4)
        assert (np.diff(lists, axis=1) > 0).all()
        places += (lists == release.frame["cost"].to_numpy()[:, None]).sum(axis=0)
    assert stats.chisquare(places).pvalue > CHANCE


@pytest.mark.usefixtures("telling")
@pytest.mark.parametrize("draws", [80, pytest.param(400, marks=pytest.mark.slow)])
def test_homogeneous_methods_permute_inside_a_class(draws: int) -> None:
    classes = np.array([0, 1, 2] * 5)
    anon = with_positions(15, classes=classes)
    release = anon.release(seed=1)
    certificate = release.certificate
    assert certificate is not None
    for row, cost in enumerate(release.frame["cost"]):
        assert certificate.of(row).tolist() == np.flatnonzero(classes == classes[cost]).tolist()
    assert verify(anon.table, release, ["covers", "k-anonymity"], 3, certificate=certificate)
    # equal rows of a class are told apart by nothing; where they stand is the shuffle's
    first = [
        release.frame["cost"].tolist().index(0)
        for release in (publish(anon, seed, rehearsal=True) for seed in range(draws))
    ]
    assert stats.chisquare(np.bincount(first, minlength=15)).pvalue > CHANCE


@pytest.mark.usefixtures("telling")
def test_without_matches_or_classes_a_record_has_its_own() -> None:
    anon = with_positions(12)
    release = anon.release(seed=1)
    texts = anon.frame()
    for _, row in release.frame.iterrows():
        assert texts.iloc[row["cost"]].tolist() == [row["age"], row["work"]]
    assert release.certificate is not None
    assert not release.certificate.complete
    assert len(release.certificate.originals) == 0  # the record's own would be the assignment


@loop("how", ["matches", "classes", "neither"])
def test_columns_are_compared_over_all_who_may_be_a_rows_person(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whom a row lists, or, where its own record alone would be listed, all whom it covers."""
    n = 12
    relations = {"matches": ring(n, 3), "classes": np.arange(n) // 3}
    anon = with_positions(n, **{name: relation for name, relation in relations.items() if name == how})
    looked_at: list[Any] = []
    monkeypatch.setitem(
        publish.__globals__, "told_by_columns", lambda *arguments: looked_at.append(arguments) or ()
    )
    anon.release(seed=1)
    ((table, origin, candidates, _),) = looked_at
    row, original = candidates.pairs()
    lists = [set(original[row == at].tolist()) for at in range(n)]
    for person, members in zip(origin.tolist(), lists, strict=True):
        covered = {
            other for other in range(n) if anon.generalization.covers_records(person, table.records)[other]
        }
        assert len(members) >= 3
        assert person in members
        if how == "classes":
            assert members == {other for other in range(n) if other // 3 == person // 3}
        elif how == "neither":
            assert members == covered


@pytest.mark.usefixtures("telling")
@loop("how", ["matches", "classes", "neither"])
def test_suppressed_records_are_a_class_of_their_own(how: str) -> None:
    suppressed = np.arange(15) >= 9
    graph: dict[str, Any] = {}
    if how == "matches":
        graph["matches"] = beside(ring(9, 3), *[ring(1, 1)] * 6)
    elif how == "classes":
        graph["classes"] = np.r_[np.zeros(9, int), np.ones(6, int)]
    anon = with_positions(15, suppressed=suppressed, **graph)
    seen = set()
    for seed in range(30):
        release = anon.release(seed=seed)
        assert release.certificate is not None
        stars = (release.frame["age"] == "*").to_numpy()
        assert stars.sum() == 6
        assert sorted(release.frame["cost"][stars]) == list(range(9, 15))
        seen.add(tuple(release.frame["cost"][stars]))
        assert all(
            release.certificate.of(row).tolist() == list(range(9, 15)) for row in np.flatnonzero(stars)
        )
    assert len(seen) > 20


@pytest.mark.usefixtures("telling")
@loop("how", ["matches", "classes"])
def test_fewer_than_k_suppressed_records_hide_their_other_columns(how: str) -> None:
    suppressed = np.arange(11) >= 9
    graph: dict[str, Any] = {"classes": np.r_[np.zeros(9, int), np.ones(2, int)]}
    if how == "matches":
        graph = {"matches": beside(ring(9, 3), ring(1, 1), ring(1, 1))}
    anon = with_positions(11, suppressed=suppressed, **graph)
    release = anon.release(seed=1)
    stars = (release.frame["age"] == "*").to_numpy()
    assert (release.frame[stars] == "*").all(axis=None)
    assert sorted(release.frame["cost"][~stars]) == sorted(str(i) for i in range(9))  # text, all of it
    assert verify(anon.table, release, k=3)


# ------------------------------------------------------------------------------------------- shuffle


@pytest.mark.usefixtures("telling")
@pytest.mark.parametrize("draws", [80, pytest.param(400, marks=pytest.mark.slow)])
def test_where_a_row_stands_says_nothing_of_its_original(draws: int) -> None:
    anon = with_positions(30, matches=ring(30, 3))
    counts = np.zeros((6, 6), int)
    for seed in range(draws):
        cost = publish(anon, seed, rehearsal=True).frame["cost"].to_numpy()
        np.add.at(counts, (np.arange(30) // 5, cost // 5), 1)
    assert stats.chisquare(counts.ravel()).pvalue > CHANCE
    release = with_positions(5000, matches=ring(5000, 3)).release(seed=1)
    assert stats.spearmanr(release.frame["cost"], np.arange(5000)).pvalue > CHANCE


def test_the_same_seed_is_the_same_release_and_no_seed_never_is() -> None:
    anon = released_like(people(40), matches=ring(40, 3))
    first = anon.release(seed=12345)
    pd.testing.assert_frame_equal(first.frame, anon.release(seed=12345).frame)
    with pytest.warns(ReleaseWarning, match="drawn before"):
        other = anon.release()
    assert not first.frame.equals(other.frame)


def test_a_second_draw_warns() -> None:
    anon = released_like(people(40), matches=ring(40, 3))
    anon.release()
    with pytest.warns(ReleaseWarning, match="intersected"):
        anon.release()
    released_like(people(40), matches=ring(40, 3)).release(seed=1)  # another anonymization does not


# -------------------------------------------------------------------------------------- plain values


def owners_frame(n: int) -> pd.DataFrame:
    """Everything a frame can carry besides its values."""
    frame = people(n)
    frame["ill"] = pd.Categorical(frame["ill"], categories=["UNUSED", "scurvy", "gout", "cold", "flu"])
    frame["work"] = pd.Categorical(frame["work"], categories=["UNUSED", "Private", "Self", "State"])
    frame.index = pd.Index([f"row{i}" for i in range(n)], name="OWNER")
    frame.attrs["OWNER"] = "OWNER"
    frame.columns.name = "OWNER"
    return frame


def test_nothing_of_the_owners_frame_comes_along(tmp_path: Path) -> None:
    release = released_like(owners_frame(30), matches=ring(30, 3)).release(seed=1)
    frame = release.frame
    assert type(frame.index) is pd.RangeIndex
    assert frame.index.equals(pd.RangeIndex(30))
    assert frame.index.name is None
    assert frame.columns.name is None
    assert not frame.attrs
    assert not any(isinstance(dtype, pd.CategoricalDtype) for dtype in frame.dtypes)
    assert frame.dtypes["cost"] == np.int64
    for name in ("a.csv", "a.parquet", "a.pkl"):
        path = tmp_path / name
        frame.to_pickle(path) if name == "a.pkl" else write_release(release, path)
        content = path.read_bytes()
        for word in (b"UNUSED", b"OWNER", b"row1", b"secret", b"pandas", b"ARROW"):
            if not (word == b"pandas" and name == "a.pkl"):
                assert word not in content


def test_parquet_files_tell_no_more_than_their_rows(tmp_path: Path) -> None:
    release = released_like(people(500), matches=ring(500, 3)).release(seed=1)
    write_release(release, tmp_path / "r.parquet")
    file = pq.ParquetFile(tmp_path / "r.parquet")
    assert file.metadata.metadata is None
    assert file.schema_arrow.metadata is None
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    assert not any(g.column(c).is_stats_set for g in groups for c in range(g.num_columns))
    cost = pd.read_parquet(tmp_path / "r.parquet")["cost"]
    assert not cost.is_monotonic_increasing
    assert cost.tolist() == release.frame["cost"].tolist()


@loop(
    ("cells", "dtype", "values"),
    [
        (pd.Series([3, 1, 3]), "int64", [3, 1, 3]),
        (pd.Series([3, 1, 3], dtype="uint8"), "int64", [3, 1, 3]),
        (pd.Series([2**64 - 1, 1, 2], dtype="uint64"), "str", [str(2**64 - 1), "1", "2"]),
        (pd.Series([1.5, 2.0, np.nan]), "float64", [1.5, 2.0, None]),
        (pd.Series([True, False, True]), "bool", [True, False, True]),
        (pd.Series([True, None, False], dtype="boolean"), "str", ["True", None, "False"]),
        (pd.Series([1, None, 3], dtype="Int64"), "float64", [1.0, None, 3.0]),
        (pd.Series([2**60 + 1, None, 3], dtype="Int64"), "str", [str(2**60 + 1), None, "3"]),
        (pd.Series([1, 2, 3], dtype="int64[pyarrow]"), "int64", [1, 2, 3]),
        (pd.Series(["a", None, ""], dtype="string[pyarrow]"), "str", ["a", None, ""]),
        (pd.Series(["a", None, "*"], dtype="category"), "str", ["a", None, "*"]),
        (pd.Series([1, 1, 2], dtype="category"), "int64", [1, 1, 2]),
        (pd.Series(["x", 2.0, None], dtype=object), "str", ["x", "2", None]),
        (
            pd.to_datetime(pd.Series(["2020-01-02", None, "2021-03-04"])),
            "str",
            ["2020-01-02", None, "2021-03-04"],
        ),
        (pd.Series([None, None, None], dtype=object), "str", [None, None, None]),
    ],
)
def test_values_are_rebuilt_plainly(cells: pd.Series, dtype: str, values: list[Any]) -> None:
    order = np.array([2, 0, 1])
    plain = pd.Series(PlainColumn.of(cells, "x", False).at(order, None))
    assert plain.dtype == (text_type() if dtype == "str" else dtype)
    assert [None if pd.isna(cell) else cell for cell in plain] == [values[i] for i in order]
    hidden = pd.Series(PlainColumn.of(cells, "x", True).at(order, np.array([False, True, False])))
    assert hidden.dtype == text_type()
    assert hidden[1] == "*"


def test_lists_are_no_values() -> None:
    with pytest.raises(DataError, match="column 'x'"):
        PlainColumn.of(pd.Series([[1], [2]]), "x", False)


def test_bytes_are_no_values() -> None:
    with pytest.raises(DataError, match="column 'x': holds bytes; decode them to text"):
        PlainColumn.of(pd.Series([b"\xff", None]), "x", False)


# ------------------------------------------------------------------------------------------ warnings


def test_a_nearly_unique_column_warns() -> None:
    frame = people(40)
    frame["cost"] = np.r_[np.random.default_rng(0).permutation(36), [0, 1, 2, 3]]
    with pytest.warns(ReleaseWarning, match=r"'cost' is nearly unique: 32 records") as caught_warnings:
        released_like(frame, matches=ring(40, 3)).release(seed=2**127)
    assert len(caught_warnings) == 1


@loop("down", [False, True])
def test_a_monotone_column_warns(down: bool) -> None:
    frame = people(40)
    frame["ill"] = np.sort(frame["ill"].to_numpy())[:: -1 if down else 1]
    with pytest.warns(ReleaseWarning, match="'ill' is monotone: its 4 values") as caught_warnings:
        released_like(frame, matches=ring(40, 3)).release(seed=2**127)
    assert len(caught_warnings) == 1
    assert not any(word in str(caught_warnings[0].message) for word in ("flu", "gout", "scurvy"))


def test_ordinary_and_constant_columns_do_not_warn() -> None:
    frame = people(40)
    frame["ill"] = "same"
    released_like(frame, matches=ring(40, 3)).release(seed=1)
    few = people(6)
    few["ill"] = ["a", "a", "a", "b", "b", "b"]  # six rows are in order by chance often enough
    few["cost"] = [1, 2, 1, 2, 1, 2]
    released_like(few, matches=ring(6, 3)).release(seed=1)
