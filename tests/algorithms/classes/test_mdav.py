"""MDAV: against the algorithm spelled out, its sums of squares, and published results where their data are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.classes.mdav import mdav_labels, squares, standardized
from anonflow.algorithms.classes.square_exchanges import exchange_for_squares
from tests.cases.plain_kernels import KERNELS, plainly
from tests.naive.mdav import cheapest_exchange, clusters, sum_of_squares
from tests.strategies import examples, loop

QI = {"role": "quasi-identifier"}


def table_of(numbers: np.ndarray, texts: list[str] | None = None, **more: Any) -> af.Table:
    columns: dict[str, Any] = {f"x{c}": numbers[:, c] for c in range(numbers.shape[1])}
    schema: dict[str, Any] = {name: {**QI, "kind": "numeric", **more} for name in columns}
    if texts is not None:
        columns["t"], schema["t"] = texts, {**QI, "kind": "categorical", "weight": 2.0}
    return af.Table(pd.DataFrame(columns), schema)


@examples(60)
@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 5), st.booleans(), st.booleans())
def test_clusters_as_spelled_out(seed: int, n: int, k: int, mixed: bool, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    # whole numbers have equal distances, powers of two keep them so whatever is standardized
    numbers = rng.integers(0, 4, (n, 2)).astype(float) if whole else rng.normal(size=(n, 2))
    texts = list(rng.choice(list("abc"), n)) if mixed else None
    table = table_of(numbers, texts)
    points, _, weight = standardized(table.records)
    rows = [[*row, *([texts[i]] if texts else [])] for i, row in enumerate(points.tolist())]
    for kernels in KERNELS:
        with kernels():
            labels, result = mdav_labels(table.records, min(k, n))
        expected = clusters(rows, min(k, n), [1.0, 1.0, *weight])
        assert result == len(expected)
        if not whole:  # sums in another order may break ties of equal distances
            assert [np.flatnonzero(labels == c).tolist() for c in range(result)] == expected
        sizes = np.bincount(labels)
        assert sizes.min() >= min(k, n)
        assert sizes.max() < 2 * k or n < 2 * k


@given(st.integers(0, 2**32), st.integers(4, 30))
def test_plain_and_compiled_kernels_agree(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(rng.integers(0, 3, (n, 2)).astype(float), list(rng.choice(list("abc"), n)))
    both = mdav_labels(table.records, 2), plainly(mdav_labels, table.records, 2)
    assert (both[0][0] == both[1][0]).all()
    assert both[0][1] == both[1][1]


def test_sums_of_squares() -> None:
    numbers = np.random.default_rng(3).normal(size=(25, 3)) * [1.0, 100.0, 1e200]
    table = table_of(numbers)
    anon = af.anonymize(table, "mdav", k=3)
    scaled = numbers / [1.0, 1.0, 1e200]
    z = (scaled - scaled.mean(axis=0)) / scaled.std(axis=0)
    within = sum(
        ((z[anon.classes == c] - z[anon.classes == c].mean(axis=0)) ** 2).sum() for c in set(anon.classes)
    )
    assert anon.facts["sse"] == pytest.approx(within)
    assert anon.facts["sst"] == pytest.approx(25 * 3)
    assert squares(table.records, np.zeros(25, np.int64))["sse"] == pytest.approx(25 * 3)
    # partitions add up to the whole table's
    cut = af.anonymize(table, "mdav", k=3, partition_size=8)
    assert cut.facts["sst"] == pytest.approx(25 * 3)
    assert cut.facts["sse"] > within


def test_a_missing_number_is_far_from_all() -> None:
    table = table_of(np.array([[0.0], [0.1], [5.0], [5.1], [np.nan], [np.nan]]), missing="suppress")
    anon = af.anonymize(table, "mdav", k=2)
    assert anon.classes is not None
    assert anon.classes[0] == anon.classes[1]
    assert anon.classes[4] == anon.classes[5]
    assert af.verify(table, anon, ["covers", "k-anonymity"], k=2)


def test_improved_classes_keep_k_and_lose_no_more() -> None:
    table = table_of(np.random.default_rng(4).normal(size=(40, 2)))
    plain, better = (af.anonymize(table, "mdav", k=3, seed=2**127, improve=how) for how in ("none", "chains"))
    assert better.loss("ncp") <= plain.loss("ncp")
    assert af.verify(table, better, ["covers", "k-anonymity"], k=3)


@examples(40)
@given(st.integers(0, 2**32), st.integers(2, 14), st.integers(2, 4), st.booleans())
def test_no_exchange_lowers_the_squares(seed: int, n: int, k: int, mixed: bool) -> None:
    """There are fewer classes than those near a record, so every exchange is tried."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 9, (n, 2)).astype(float)
    table = table_of(numbers, list(rng.choice(list("abc"), n)) if mixed else None)
    points, codes, weight = standardized(table.records)
    rows = [[*row, *code] for row, code in zip(points.tolist(), codes.tolist(), strict=True)]
    measure = 2, weight.tolist()
    before = mdav_labels(table.records, k)[0]
    after, facts = exchange_for_squares(points, codes, weight, before, k)
    lost = sum_of_squares(rows, after.tolist(), *measure)
    assert lost <= sum_of_squares(rows, before.tolist(), *measure) + 1e-9
    assert facts["found"] == len(set(after.tolist()))
    assert min(np.bincount(after)) >= min(k, n)
    assert max(np.bincount(after)) < 2 * k
    assert cheapest_exchange(rows, after.tolist(), k, *measure) >= lost - 1e-9


def test_squares_keep_k_and_the_sums() -> None:
    table = table_of(np.random.default_rng(5).normal(size=(60, 2)))
    plain, better = (af.anonymize(table, "mdav", k=3, improve=how) for how in ("none", "squares"))
    assert better.classes is not None
    assert better.facts["exchanges"] > 0
    assert better.facts["sse"] < plain.facts["sse"]
    assert better.facts["sse"] == pytest.approx(squares(table.records, better.classes)["sse"])
    assert better.facts["sst"] == plain.facts["sst"]
    assert af.verify(table, better, ["covers", "k-anonymity"], k=3)


PUBLISHED = {
    "tarragona": {3: 16.9326, 4: 19.5459, 5: 22.4617, 10: 33.1929},
    "census": {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559},
    "eia": {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397},
}
"""Information loss in percent, 100 sse / sst, that papers on microaggregation give for MDAV on the reference data of the project CASC.

Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz and Sebe (VLDB Journal 15, 2006), Laszlo and Mukherjee (IEEE TKDE 17, 2005); the data are
``casc/tarragona.csv``, ``census.csv`` and ``eia.csv`` of the data folder, numbers with a header.
"""


def reference(name: str, folder: Path) -> af.Table:
    path = folder / "casc" / f"{name}.csv"
    if not path.exists():
        pytest.skip("the reference data sets of CASC are not in the data folder")
    return table_of(pd.read_csv(path).to_numpy(float))


def percent(table: af.Table, k: int, improve: str) -> float:
    facts = af.anonymize(table, "mdav", k=k, improve=improve).facts
    return float(100 * facts["sse"] / facts["sst"])


@pytest.mark.data
@loop("name", list(PUBLISHED))
def test_published_information_loss(name: str, data_folder: Path) -> None:
    table = reference(name, data_folder)
    for k, published in PUBLISHED[name].items():
        assert percent(table, k, "none") == pytest.approx(published, abs=0.001)


@pytest.mark.data
@pytest.mark.slow
@loop("name", list(PUBLISHED))
def test_exchanges_lose_less_than_published(name: str, data_folder: Path) -> None:
    table = reference(name, data_folder)
    for k, published in PUBLISHED[name].items():
        assert percent(table, k, "squares") < 0.935 * published
