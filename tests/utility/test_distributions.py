"""Distributions before and after, and the records around one record, against the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.utility.distributions import MISSING, MOST, distribution
from anonflow.utility.neighbourhood import neighbourhood
from tests.naive import distributions as naive
from tests.strategies import labels, loop, tables


@given(st.data())
def test_every_cell_is_spread_evenly_over_its_members(data: st.DataObject) -> None:
    table = data.draw(tables(min_n=2))
    boxes = Generalization.join_by_class(table.records, data.draw(labels(table.n)))
    layout = boxes.layout
    for a, domain in enumerate(table.domains):
        if domain.shape == "set":
            t = layout.sets.tolist().index(a)
            words = boxes.bits[layout.offset[t] : layout.offset[t + 1]]
            cells = [
                [code for code in range(domain.size) if int(words[code >> 6, j]) >> (code & 63) & 1]
                for j in range(boxes.n)
            ]
        else:
            t = layout.ranges.tolist().index(a)
            cells = [list(range(boxes.lo[t, j], boxes.hi[t, j] + 1)) for j in range(boxes.n)]
        result = distribution(table.records, boxes, domain.name)
        codes = table.codes[:, a]
        words = {"": MISSING, "{}": "(number)" if domain.kind == "codes" else "{}"}
        assert result.labels[: domain.size] == tuple(words.get(label, label) for label in domain.labels)
        assert result.edges is None
        np.testing.assert_allclose(result.published[: domain.size], naive.over_members(cells, domain.size))
        own = [int((codes == code).sum()) / table.n for code in range(domain.size)]
        np.testing.assert_allclose(result.original[: domain.size], own)
        assert result.labels[domain.size :] == ((result.beside,) if (codes < 0).any() else ())
        assert result.beside == MISSING or domain.has_codes
        assert result.original.sum() == pytest.approx(1)
        assert result.published.sum() == pytest.approx(1)
        assert 0 <= result.distance <= 1


def test_numbers_are_spread_over_the_width_of_their_range() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"income": np.round(rng.exponential(1000, 300), 2)})
    table = af.Table(frame, {"income": {"role": "quasi-identifier", "kind": "numeric"}})
    anon = af.anonymize(table, "mondrian", 7)
    result = distribution(table.records, anon.generalization, "income")
    assert result.edges is not None
    points = table.domains[0].points
    cells = list(zip(points[anon.generalization.lo[0]], points[anon.generalization.hi[0]], strict=True))
    np.testing.assert_allclose(result.published, naive.over_widths(cells, result.edges.tolist()))
    own = points[table.codes[:, 0]]
    singles = list(zip(own, own, strict=True))
    np.testing.assert_allclose(result.original, naive.over_widths(singles, result.edges.tolist()))
    assert len(result.labels) == len(result.published) == len(result.edges) - 1


def test_dates_are_named_as_dates() -> None:
    days = pd.date_range("2020-01-01", periods=80, freq="D").astype("str")
    entry = {"role": "quasi-identifier", "kind": "numeric"}
    table = af.Table(pd.DataFrame({"day": pd.to_datetime(days)}), {"day": entry})
    result = distribution(table.records, Generalization.of(table.records), "day")
    assert result.labels[0].startswith("2020-01-01/")
    assert result.distance == pytest.approx(0)


def test_codes_beside_numbers_have_their_names() -> None:
    cells = ["10", "20", "N", "30", "N", "R", None, "40"]
    entry = {"role": "quasi-identifier", "kind": "numeric", "codes": ["N", "R"], "missing": "value"}
    table = af.Table(pd.DataFrame({"income": cells}), {"income": entry})
    shares = distribution(table.records, af.anonymize(table, "k-member", k=2).generalization, "income")
    assert shares.labels[-1] == shares.beside
    assert set(shares.beside.split(", ")) == {"N", "R", MISSING}
    assert shares.original[-1] == 4 / 8
    codes = distribution(
        table.records, af.anonymize(table, "k-member", k=2).generalization, table.domains[1].name
    )
    assert dict(zip(codes.labels, codes.original, strict=True)) == {
        "(number)": 4 / 8,
        MISSING: 1 / 8,
        "N": 2 / 8,
        "R": 1 / 8,
    }


def test_rare_categories_are_summed_up() -> None:
    frame = pd.DataFrame({"job": [f"job {at}" for at in range(60)] + ["job 1"] * 9})
    table = af.Table(frame, {"job": {"role": "quasi-identifier", "kind": "categorical"}})
    result = distribution(table.records, Generalization.of(table.records), "job")
    assert len(result.labels) == MOST
    assert result.labels[-1] == f"{60 - MOST + 1} other values"
    assert result.original.sum() == pytest.approx(1)
    assert result.original[result.labels.index("job 1")] == pytest.approx(10 / 69)


def test_a_column_that_is_none_is_refused() -> None:
    table = af.Table(af.datasets.freeform_example(), af.datasets.schema("freeform_example"))
    with pytest.raises(ParameterError, match="unknown quasi-identifier"):
        distribution(table.records, Generalization.of(table.records), "agee")


# ------------------------------------------------------------------------------- around one record


@pytest.fixture(scope="module")
def table() -> af.Table:
    frame = af.datasets.census_like(120, seed=3)
    return af.Table(frame, af.datasets.schema("census_like"))


@pytest.mark.parametrize("algorithm", ["greedy", "nh"])
def test_matches_of_a_record(table: af.Table, algorithm: str) -> None:
    anon = af.anonymize(table, algorithm, 4, partition_size=40, seed=1)
    assert anon.matches is not None
    for i in (0, 17, 119):
        around = neighbourhood(anon, i)
        assert around.kind == "matches"
        assert around.record == i
        assert around.originals[0] == i
        assert around.rows[0] == i
        assert set(around.originals.tolist()) == set(anon.matches[i].tolist())
        assert set(around.rows.tolist()) == {j for j in range(anon.n) if i in anon.matches[j]}
        assert around.originals_in_all == around.rows_in_all == 4
        expected = {
            (left, right)
            for left, original in enumerate(around.originals.tolist())
            for right, row in enumerate(around.rows.tolist())
            if original in anon.matches[row]
        }
        assert set(map(tuple, around.edges.tolist())) == expected
        own, published = around.texts(anon)
        assert published.iloc[0].tolist() == anon.frame().iloc[i].tolist()
        assert len(own) == 4
        assert own.columns.tolist() == published.columns.tolist()


def test_the_class_of_a_record(table: af.Table) -> None:
    anon = af.anonymize(table, "mondrian", 5)
    assert anon.classes is not None
    around = neighbourhood(anon, 9, most=6)
    members = np.flatnonzero(anon.classes == anon.classes[9])
    assert around.kind == "class"
    assert around.originals_in_all == len(members) >= 5
    assert len(around.originals) == min(6, len(members))
    assert around.originals[0] == 9
    assert around.rows.tolist() == [9]
    assert around.edges[:, 1].max() == 0


def test_covers_of_a_record_without_a_listed_graph(table: af.Table) -> None:
    anon = af.anonymize(table, "k-concealment", 4)
    assert anon.matches is None
    assert anon.classes is None
    around = neighbourhood(anon, 30, most=200)
    originals = Generalization.of(table.records)

    def holds(j: int, i: int) -> bool:
        return bool(anon.generalization.take(np.array([j])).covers(originals.take(np.array([i])))[0])

    assert around.kind == "covers"
    assert sorted(around.rows.tolist()) == [j for j in range(anon.n) if holds(j, 30)]
    assert sorted(around.originals.tolist()) == [i for i in range(anon.n) if holds(30, i)]
    assert len(around.rows) >= 4
    for left, right in around.edges[:20].tolist():
        assert holds(int(around.rows[right]), int(around.originals[left]))


def test_a_suppressed_record_is_alone() -> None:
    anon = af.anonymize(af.Table(*_patterns()), "pattern-guided", 3, patterns=[["a"]])
    hidden = np.flatnonzero(anon.suppressed)
    assert len(hidden)
    around = neighbourhood(anon, int(hidden[0]))
    assert around.kind == "suppressed"
    assert around.edges.tolist() == [[0, 0]]
    _, published = around.texts(anon)
    assert set(published.iloc[0]) == {"*"}


def _patterns() -> tuple[pd.DataFrame, dict[str, dict[str, str]]]:
    frame = pd.DataFrame({"a": [*"xxxxxy"], "b": [*"pppppq"]})
    return frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in "ab"}


@loop("record", [-1, 120, True, 1.5])
def test_a_record_that_is_none_is_refused(table: af.Table, record: object) -> None:
    anon = af.anonymize(table, "mondrian", 5)
    with pytest.raises(ParameterError, match="no record at this position"):
        neighbourhood(anon, record)  # type: ignore[arg-type]
