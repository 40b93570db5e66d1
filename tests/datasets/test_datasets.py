"""The tables to start with."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import datasets
from anonflow.datasets import census, files, generated
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.table.forms.text_columns import text_type
from tests import ROOT

AT_HAND = [name for name in datasets.names() if name not in ("adult", "cmc")]
GENERATED = ["census_like", "artificial", "random_normal"]


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No folder, an empty cache, and a repository that nobody serves."""
    monkeypatch.delenv(files.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "UCI", "http://127.0.0.1:9/")
    return tmp_path


# --------------------------------------------------------------------------------------- by name


@pytest.mark.parametrize("name", AT_HAND)
def test_named_tables_go_with_their_schemas(name: str, nowhere: Path) -> None:
    small = {"n": 500} if name in GENERATED else {}
    frame = datasets.load(name, **small)
    described = datasets.describe().set_index("name").loc[name]
    assert described["columns"] == frame.shape[1]
    assert small or described["rows"] == len(frame)
    assert described["available"]
    for hierarchies in (False, True):
        table = af.Table(frame, datasets.schema(name, hierarchies=hierarchies))
        assert table.n == len(frame)
        assert not table.unnamed


@pytest.mark.parametrize("name", AT_HAND)
def test_cells_are_plain(name: str, nowhere: Path) -> None:
    frame = datasets.load(name, **({"n": 50} if name in GENERATED else {}))
    assert isinstance(frame, pd.DataFrame)
    assert all(dtype in (text_type(), "int64") for dtype in frame.dtypes)
    assert not frame.isna().any(axis=None)
    assert frame.attrs == {}


def test_descriptions_say_what_is_not_at_hand(nowhere: Path) -> None:
    described = datasets.describe()
    assert tuple(described["name"]) == datasets.names()
    assert list(described.columns) == ["name", "rows", "columns", "origin", "licence", "available"]
    assert set(described.loc[~described["available"], "name"]) == {"adult", "cmc"}


def test_unknown_names_and_options() -> None:
    with pytest.raises(ParameterError, match="did you mean 'nursery'"):
        datasets.load("nursary")
    with pytest.raises(ParameterError, match="did you mean 'seed'"):
        datasets.load("census_like", sed=1)
    with pytest.raises(ParameterError, match="unknown data set"):
        datasets.schema("x")
    assert datasets.options("adult") == {"part": "train", "complete": False}


@pytest.mark.parametrize("name", GENERATED)
def test_a_seed_repeats_a_generated_table(name: str) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = datasets.load(name, n=300, seed=5)
    assert first.equals(datasets.load(name, n=300, seed=5))
    assert not first.equals(datasets.load(name, n=300, seed=6))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert len(datasets.load(name, n=1)) == 1
    for bad in (0, -1, 1.5, True, "10", None, 10**30):
        with pytest.raises(ParameterError, match="n must be"):
            datasets.load(name, n=bad)
    for bad in (-1, 0.5, None):
        with pytest.raises(ParameterError, match="seed must be"):
            datasets.load(name, n=3, seed=bad)


def test_importing_loads_no_pandas() -> None:
    code = (
        "import sys\nfrom anonflow import datasets\n"
        "assert not {'pandas', 'scipy', 'numba', 'pooch', 'requests', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# -------------------------------------------------------------------------------------- generated


@pytest.mark.parametrize("seed", range(6))
def test_census_like_has_every_value(seed: int) -> None:
    frame = datasets.census_like(20_000, seed)
    assert list(census.CARDINALITIES.values()) == [79, 2, 17, 6, 9, 10, 83, 51]
    assert {name: frame[name].nunique() for name in census.CARDINALITIES} == census.CARDINALITIES
    assert list(frame.columns) == [*census.CARDINALITIES, "Salary-class"]
    assert (frame["Age"].min(), frame["Age"].max()) == (17, 95)


def test_census_like_is_skewed_and_correlated() -> None:
    frame = datasets.census_like(50_000, 1)
    shares = frame["Country"].value_counts(normalize=True)
    assert shares.iloc[0] > 0.7
    assert shares.iloc[-1] < 0.002
    age = frame.groupby("Marital")["Age"].mean()
    assert age["Never married"] + 25 < age["Widowed"]
    high = frame["Salary-class"].isin(["80K to 100K", "100K to 150K", "over 150K"])
    assert frame.loc[high, "Education"].mean() > frame.loc[~high, "Education"].mean() + 1.5
    women = (frame["Gender"] == "Female").groupby(frame["Occupation"]).mean()
    assert women["Secretaries"] > 0.8
    assert women["Construction workers"] < 0.2
    # far fewer different people than independent columns would give
    alone = np.random.default_rng(0)
    mixed = {name: alone.permutation(frame[name].to_numpy()) for name in census.CARDINALITIES}
    together = len(frame[list(census.CARDINALITIES)].drop_duplicates())
    assert together < 0.95 * len(pd.DataFrame(mixed).drop_duplicates())


def test_a_register_has_the_same_people_every_year_besides_leavers_and_newcomers() -> None:
    years = datasets.census_years(2_000, 3, turnover=0.1, seed=2)
    assert [len(year) for year in years] == [2_000] * 3
    gone: set[int] = set()
    for before, after in itertools.pairwise(year.set_index("number") for year in years):
        both = before.index.intersection(after.index)
        assert 0.87 < len(both) / 2_000 < 0.93
        assert (after.loc[both, "Age"] == before.loc[both, "Age"] + 1).all()
        same = (after.loc[both] == before.loc[both]).mean()
        assert same[["Gender", "Race", "Country", "Education"]].min() == 1
        assert 0.75 < same["Salary-class"] < same["Occupation"] < same["Marital"] < 1
        gone |= set(before.index) - set(after.index)
        assert not gone & set(after.index), "nobody comes back"
    pd.testing.assert_frame_equal(datasets.census_years(2_000, 3, seed=2)[2], years[2])
    for wrong in ({"years": 0}, {"turnover": 1.5}, {"n": 0}):
        with pytest.raises(ParameterError, match="must be"):
            datasets.census_years(**wrong)


def test_absent_values_are_planted() -> None:
    codes = np.array([0, 0, 0, 2, 2])
    census._plant_absent(np.random.default_rng(0), codes, 5)
    assert sorted(set(codes.tolist())) == [0, 1, 2, 3, 4]


def test_artificial_follows_the_paper() -> None:
    n = 50_000
    frame = datasets.artificial(n, seed=2)
    for name, weights in zip(frame, generated._ARTIFICIAL, strict=True):
        assert sum(weights) == pytest.approx(1)
        counts = frame[name].value_counts()
        expected = np.array(weights) * n
        seen = np.array([counts[f"a{value}"] for value in range(1, len(weights) + 1)])
        chi = ((seen - expected) ** 2 / expected).sum()
        assert chi < len(weights) + 6 * (2 * len(weights)) ** 0.5
    assert len(datasets.artificial()) == 5_000


def test_artificial_hierarchies() -> None:
    trees = {name: Hierarchy.from_nested(tree) for name, tree in datasets.artificial_hierarchies().items()}
    assert [tree.n_leaves for tree in trees.values()] == [2, 4, 4, 25, 10, 5]
    assert [int(tree.height[0]) for tree in trees.values()] == [1, 2, 2, 3, 3, 3]
    six = trees["A6"]
    depth = {leaf: int(six.depth[six.node(leaf)]) for leaf in six.leaves}
    assert depth == {"a1": 2, "a2": 2, "a3": 2, "a4": 3, "a5": 3}


def test_random_normal() -> None:
    frame = datasets.random_normal(40_000, 3, sd=1.5, seed=1)
    assert list(frame.columns) == ["q1", "q2", "q3"]
    values = frame.to_numpy()
    assert values.dtype == np.int64
    assert np.abs(values.mean(axis=0)).max() < 0.04
    # rounding adds the variance of a uniform number
    assert values.var(axis=0) == pytest.approx(1.5**2 + 1 / 12, rel=0.03)
    for bad in ({"q": 0}, {"q": 2.0}, {"sd": 0}, {"sd": float("nan")}, {"sd": "1"}):
        with pytest.raises(ParameterError):
            datasets.random_normal(10, **bad)


def test_draw_keeps_to_the_contexts() -> None:
    weights = np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]])
    context = np.arange(40_000) % 2
    codes = generated.draw(np.random.default_rng(0), weights, context)
    assert set(codes[context == 1].tolist()) == {1}
    assert set(codes[context == 0].tolist()) == {0, 2}
    assert (codes[context == 0] == 2).mean() == pytest.approx(0.75, abs=0.02)
    with pytest.raises(IndexError):
        generated.draw(np.random.default_rng(0), weights, np.array([2]))


def test_theorem_4s_family_has_one_unique_value_in_each_further_row() -> None:
    frame = datasets.theorem4(4)
    assert frame.shape == (16, 4)
    assert (frame.iloc[:4] == "1").all(axis=None)
    assert (frame.iloc[4:] != "1").sum(axis=1).eq(1).all()
    unique = frame.to_numpy()[frame.to_numpy() != "1"]
    assert len(set(unique)) == len(unique) == 12
    assert datasets.theorem4_patterns(2) == [("c1",), ("c2",), (), ("c1", "c2")]
    with pytest.raises(ParameterError):
        datasets.theorem4(1)
    with pytest.raises(ParameterError):
        datasets.theorem4_patterns(1)


def test_nursery_is_the_full_product(nowhere: Path) -> None:
    frame = datasets.nursery()
    assert frame.shape == (12_960, 8)
    rows = list(frame.itertuples(index=False, name=None))
    assert rows == list(itertools.product(*files.NURSERY.values()))
    with pytest.raises(DataError, match="ANONFLOW_DATA"):
        datasets.nursery(classification=True)
    with pytest.raises(ParameterError):
        datasets.nursery(classification="yes")


# ---------------------------------------------------------------------------------------- fetched


@pytest.mark.data
def test_nursery_is_that_of_uci(data_folder: Path) -> None:
    frame = datasets.nursery()
    file = pd.read_csv(data_folder / "uci" / "nursery.csv.gz", dtype="str")
    assert frame.equals(file)
    assert list(datasets.nursery(classification=False).columns) == list(files.NURSERY)


@pytest.mark.slow
@pytest.mark.data
def test_adult_has_the_published_rows(data_folder: Path) -> None:
    train, test = datasets.adult(), datasets.adult("test")
    assert train.shape == (32_561, 15)
    assert test.shape == (16_281, 15)
    assert len(datasets.adult(complete=True)) == 30_162
    assert len(datasets.adult("all", complete=True)) == 45_222
    assert datasets.adult("all").equals(pd.concat([train, test], ignore_index=True))
    assert set(train["salary-class"]) == set(test["salary-class"]) == {"<=50K", ">50K"}
    assert (train == "?").any(axis=1).sum() == 2_399
    assert train.drop(columns="fnlwgt").drop_duplicates().shape == (29_096, 14)
    assert [train[name].dtype for name in ("age", "workclass")] == ["int64", text_type()]
    described = datasets.describe().set_index("name").loc["adult"]
    assert described["available"]
    assert (described["rows"], described["columns"]) == train.shape
    with pytest.raises(ParameterError, match="part"):
        datasets.adult("dev")
    with pytest.raises(ParameterError, match="complete"):
        datasets.adult(complete="yes")  # type: ignore[arg-type]


@pytest.mark.data
def test_adult_with_its_hierarchies(data_folder: Path) -> None:
    frame = datasets.adult(complete=True)
    table = af.Table(frame, datasets.schema("adult", hierarchies=True))
    assert [domain.kind for domain in table.domains] == ["numeric", *["hierarchy"] * 7]
    assert len(datasets.adult_hierarchies()) == 9
    plain = af.Table(datasets.adult(), datasets.schema("adult"))
    assert plain.qi_columns == table.qi_columns
    assert plain.sensitive == ("salary-class",)


def test_no_hierarchies_without_the_folder(nowhere: Path) -> None:
    assert datasets.adult_hierarchies() == {}
    assert datasets.schema("adult", hierarchies=True) == datasets.schema("adult")


@pytest.mark.data
def test_cmc_has_the_published_rows(data_folder: Path) -> None:
    frame = datasets.cmc()
    assert frame.shape == (1_473, 10)
    assert frame["contraceptive_method_use"].value_counts().to_dict() == {"1": 629, "2": 333, "3": 511}
    assert [name for name in frame if frame[name].dtype == np.int64] == ["wife_age", "children_born"]
    assert af.Table(frame, datasets.schema("cmc")).q == 9


SMALL = "16,2,3,0,1,1,2,3,0,1\n45,1,3,10,1,1,3,4,0,2\n"
SECRET = "person-4711"


def small_cmc(monkeypatch: pytest.MonkeyPatch) -> None:
    """CMC with two records, known by their checksum."""
    digest = hashlib.sha256(SMALL.strip().encode()).hexdigest()
    monkeypatch.setattr(files, "_CMC", dataclasses.replace(files._CMC, sha256=digest))


@pytest.fixture
def repository(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a real server on this machine serves in place of UCI."""
    folder = nowhere / "served"
    (folder / "cmc").mkdir(parents=True)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(files, "UCI", f"http://127.0.0.1:{server.server_address[1]}/")
    yield folder
    server.shutdown()
    server.server_close()


def test_fetched_once_and_checked(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cmc(monkeypatch)
    served = repository / "cmc" / "cmc.data"
    served.write_text("\n" + SMALL + "\n\n")  # the repository's files end in empty lines
    assert datasets.cmc()["wife_age"].tolist() == [16, 45]
    served.unlink()
    assert len(datasets.cmc()) == 2


def test_another_file_is_refused_and_not_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cmc(monkeypatch)
    served = repository / "cmc" / "cmc.data"
    served.write_text(SMALL.replace("45", SECRET))
    with pytest.raises(DataError, match="checksum differs") as caught:
        datasets.cmc()
    assert SECRET not in str(caught.value)
    served.write_text(SMALL)
    assert len(datasets.cmc()) == 2


def test_nothing_to_be_had(nowhere: Path) -> None:
    for load in (datasets.adult, datasets.cmc):
        with pytest.raises(DataError, match=r"cannot be fetched.*ANONFLOW_DATA") as caught:
            load()
        assert "\n" not in str(caught.value)
        assert caught.value.exit_status == 2


@pytest.mark.parametrize("name", ["uci/cmc.csv", "cmc.data", "cmc/cmc.data", "cmc.csv.gz"])
def test_layouts_of_the_folder(name: str, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cmc(monkeypatch)
    path = nowhere / "data" / name
    path.parent.mkdir(parents=True)
    header = ",".join(files._CMC_COLUMNS) + "\n"
    data = (header + SMALL).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    monkeypatch.setenv(files.FOLDER, str(nowhere / "data"))
    assert datasets.cmc()["children_born"].tolist() == [0, 10]


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\xfe\x00", SMALL.replace("16", SECRET).encode()], ids=["empty", "bytes", "other"]
)
def test_damaged_files_are_refused_without_their_content(
    damage: bytes, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(files.FOLDER, str(nowhere))
    (nowhere / "cmc.csv").write_bytes(damage)
    with pytest.raises(DataError, match=r"cmc\.csv: .*remove") as caught:
        datasets.cmc()
    assert SECRET not in str(caught.value)
    (nowhere / "cmc.csv").unlink()
    (nowhere / "cmc.csv.gz").write_bytes(gzip.compress(SMALL.encode())[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        datasets.cmc()


def test_hierarchies_of_our_own_fit_their_tables() -> None:
    """Every value is a leaf, and no leaf is none; the trees are those of the schema."""
    for trees in (datasets.nursery_hierarchies(), datasets.cmc_hierarchies()):
        for tree in trees.values():
            assert Hierarchy.from_nested(tree).leaves
    frame = datasets.nursery()
    for name, tree in datasets.nursery_hierarchies().items():
        assert set(Hierarchy.from_nested(tree).leaves) == set(frame[name].astype(str))
    schema = datasets.schema("nursery", hierarchies=True)
    assert all(schema[name]["kind"] == "hierarchy" for name in datasets.nursery_hierarchies())
    assert datasets.schema("cmc", hierarchies=True)["wife_age"]["kind"] == "numeric"
