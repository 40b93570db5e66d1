"""Generalized records: what is covered, joined, published and read back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import generalization
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.table import Table
from anonflow.table.published.notation import readers_of
from tests.strategies import labels, loop, regular_matches, tables


def same(a: Generalization, b: Generalization) -> bool:
    return bool((a.lo == b.lo).all() and (a.hi == b.hi).all() and (a.bits == b.bits).all())


@given(tables(), st.data())
def test_a_generalized_record_covers_its_matches_and_is_the_least_to_do_so(
    table: Table, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, table.n))
    matches = data.draw(regular_matches(table.n, k))
    joined = Generalization.join_of(table.records, matches)
    step = Generalization.of(table.records)
    for d in range(k):
        originals = Generalization.of(table.records.take(matches[:, d]))
        assert joined.covers(originals).all()
        step = step.join(originals)
    assert same(joined, step)


@given(tables(), st.data())
def test_places_without_an_original_join_nothing(table: Table, data: st.DataObject) -> None:
    """In blocks of three rows, as in one."""
    matches = data.draw(regular_matches(table.n, data.draw(st.integers(1, table.n))))
    gaps = np.array(data.draw(st.lists(st.booleans(), min_size=matches.size, max_size=matches.size)))
    left = np.where(gaps.reshape(matches.shape), -1, matches)
    left[(left < 0).all(axis=1), 0] = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(generalization, "_BLOCK", 3)
        joined = Generalization.join_of(table.records, left)
    for row, originals in enumerate(left):
        alone = Generalization.join_of(table.records, originals[originals >= 0][None, :])
        assert same(joined.take(np.array([row])), alone)


@given(tables(), st.data())
def test_published_text_reads_back(table: Table, data: st.DataObject) -> None:
    matches = data.draw(regular_matches(table.n, data.draw(st.integers(1, table.n))))
    joined = Generalization.join_of(table.records, matches)
    back = Generalization.parse(joined.decode(), table.domains)
    assert same(joined, back)


@given(tables(), st.data())
def test_a_class_is_one_generalized_record(table: Table, data: st.DataObject) -> None:
    member = data.draw(labels(table.n))
    joined = Generalization.join_by_class(table.records, member)
    assert joined.covers(Generalization.of(table.records)).all()
    for label in np.unique(member):
        inside = np.flatnonzero(member == label)
        width = len(inside)
        expected = Generalization.join_of(table.records, np.tile(inside, (width, 1)))
        assert same(joined.take(inside), expected)
        assert len(np.unique(joined.take(inside).classes())) == 1


@given(tables())
def test_suppressed_records_are_stars_and_cover_everything(table: Table) -> None:
    everyone = np.ones(table.n, bool)
    hidden = Generalization.of(table.records).with_suppressed(everyone)
    assert hidden.suppressed_rows().all()
    assert (hidden.decode(suppressed=everyone) == "*").all().all()
    for row in range(table.n):
        assert hidden.covers(Generalization.of(table.records.take(np.full(table.n, row)))).all()
    assert same(Generalization.parse(hidden.decode(suppressed=everyone), table.domains), hidden)


@given(tables())
def test_parts_put_together_are_the_whole(table: Table) -> None:
    own = Generalization.of(table.records)
    order = np.random.default_rng(1).permutation(table.n)
    parts = [part for part in np.array_split(order, 3) if len(part)]
    assert same(Generalization.gathered([own.take(part) for part in parts], parts, table.n), own)


@given(tables())
def test_equal_records_have_equal_labels(table: Table) -> None:
    codes = [tuple(row) for row in table.codes.tolist()]
    classes = table.records.classes()
    for i in range(table.n):
        for j in range(table.n):
            assert (classes[i] == classes[j]) == (codes[i] == codes[j])


def published(kind: str, cells: list[object], **entry: object) -> Table:
    return Table(pd.DataFrame({"a": cells}), {"a": {"role": "quasi-identifier", "kind": kind, **entry}})


def text(table: Table, *rows: int) -> str:
    joined = Generalization.join_of(table.records, np.array([rows]))
    return str(joined.decode()["a"][0])


@loop(
    ("kind", "cells", "rows", "expected"),
    [
        ("numeric", [53, 59, 70], (0, 1), "53-59"),
        ("numeric", [1.5, 2.0, 3.0], (0, 1), "1.5-2"),
        ("numeric", [-500, -20, 7], (0, 1), "-500--20"),
        ("numeric", [53, 59, 70], (0,), "53"),
        ("numeric", [53, 59, 70], (0, 2), "*"),
        ("numeric", [0.1, 1e-7, 5.0], (0, 1), "1e-07-0.1"),
        ("numeric", [2**60, 2**60 + 1, 0], (0, 1), f"{2**60}-{2**60 + 1}"),
        ("numeric", ["2020-03-31", "2020-01-01", "2021-01-01"], (0, 1), "2020-01-01/2020-03-31"),
        ("categorical", ["Private", "State-gov", "x"], (1, 0), "{Private|State-gov}"),
        ("categorical", ["Private", "State-gov", "x"], (0,), "Private"),
        ("categorical", [None, "a", "x"], (0, 1), "{|a}"),
        ("categorical", [None, "a", "x"], (0,), ""),
        ("categorical", ["", "*", "a|b"], (0,), '""'),
        ("categorical", ["", "*", "a|b", "z"], (0, 1, 2), '{""|"*"|"a|b"}'),
        ("suppression", ["a", "b"], (0, 1), "*"),
        ("suppression", ["a", "*"], (1,), '"*"'),
        ("positions", ["9412", "9413", "8000"], (0, 1), "941*"),
        ("positions", ["9412", "9413", "8000"], (0, 2), "*"),
        ("positions", ["9112", "9212", "8000"], (0, 1), "9*12"),
    ],
)
def test_cells_are_written_in_the_notation_of_their_kind(
    kind: str, cells: list[object], rows: tuple[int, ...], expected: str
) -> None:
    assert text(published(kind, cells), *rows) == expected


def test_a_domain_of_one_value_is_published_as_that_value() -> None:
    assert text(published("categorical", ["a", "a"]), 0, 1) == "a"
    assert text(published("numeric", [7, 7]), 0, 1) == "7"


def test_only_the_star_covers_a_missing_number() -> None:
    table = published("numeric", [7.0, None], missing="suppress")
    assert text(table, 1) == "*"
    table = published("numeric", [7.0, 8.0, 9.0, None], missing="suppress")
    assert text(table, 0, 1) == "7-8"
    assert text(table, 0, 3) == "*"


def test_a_range_between_two_values_covers_nobody() -> None:
    table = published("numeric", [1, 5, 9])
    nobody = Generalization.parse(pd.DataFrame({"a": ["2-4", "2-4", "2-4"]}), table.domains)
    assert not nobody.covers(Generalization.of(table.records)).any()


def test_cells_that_are_no_generalization_are_counted_not_shown() -> None:
    table = published("categorical", ["Private", "State-gov"])
    with pytest.raises(DataError, match=r"column 'a': 2 cells") as caught:
        Generalization.parse(pd.DataFrame({"a": ["SECRETX", "{Private|SECRETX}"]}), table.domains)
    assert "SECRETX" not in str(caught.value)
    with pytest.raises(DataError, match="missing"):
        Generalization.parse(pd.DataFrame({"b": ["x"]}), table.domains)


def test_sets_of_a_thousand_values_and_no_records() -> None:
    table = published("categorical", [f"v{i:04}" for i in range(1000)])
    joined = Generalization.join_of(table.records, np.array([[0, 64, 999]]))
    assert joined.counts().tolist() == [[3]]
    assert joined.decode()["a"][0] == "{v0000|v0064|v0999}"
    nothing = Generalization.of(table.records.take(np.zeros(0, np.int64)))
    assert nothing.n == 0
    assert nothing.decode().shape == (0, 1)


def test_sets_are_read_at_once_as_one_by_one() -> None:
    values = ["", "*", "a", "b|c", '"d', "{e}", " f", *(f"v{i}" for i in range(70))]
    table = Table(
        pd.DataFrame({"job": pd.array(values, dtype="str")}),
        {"job": {"role": "quasi-identifier", "kind": "categorical"}},
    )
    domain = table.domains[0]
    rng = np.random.default_rng(4)
    drawn = [rng.choice(domain.size, int(rng.integers(1, 12)), False).tolist() for _ in range(200)]
    drawn += [[a] for a in range(domain.size)] + [list(range(domain.size))]
    bits = np.zeros((domain.words, len(drawn)), np.uint64)
    for u, codes in enumerate(drawn):
        for code in codes:
            bits[code >> 6, u] |= np.uint64(1 << (code & 63))
    sets = domain.set_texts(bits).tolist()
    assert sets[200:] == [*domain.labels, "*"]
    assert [domain.read_set(text) for text in sets] == [sorted(codes) for codes in drawn]
    wrong = ["{", "{}", "{a", "a}", "{a|zz}", '{a|"b|c"}', '{a|"b|c}', "zz", "{a|a}", "{|a}", '"d', "{zz|zy}"]
    wrong += ["}{", "{a|b", "b|c", "{{e}|a}", "{ a|a}", "{*|a}"]
    (reader,) = readers_of(table.domains, None)
    for broken in ([], ["{a|\udc80}", "\udc80"]):  # with a part of a character they are read one by one
        texts = [*sets, *wrong, *domain.labels, "*", "", *broken]
        read = reader.read(texts, [1] * len(texts))
        for u, text in enumerate(texts):
            codes = domain.read_set(text)
            assert read.bad[u] == (codes is None), text
            bits = [a for a in range(domain.size) if int(read.bits[a >> 6, u]) >> (a & 63) & 1]
            assert bits == sorted(set(codes or ())), text
        assert read.bad[len(sets) : len(sets) + len(wrong)].any()
        assert not read.bad[: len(sets)].any()
