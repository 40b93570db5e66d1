"""Hierarchies of codes below their prefixes: against the definition, of classifications, and bad input."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError, HierarchyError
from tests.strategies import loop

CODES = st.lists(st.text("ab1.", min_size=1, max_size=6).filter(lambda code: code.strip(".")), min_size=2)


def above(tree: af.Hierarchy, leaf: str) -> list[str]:
    """The labels of the nodes above a leaf but the root, the nearest first."""
    node, labels = tree.node(leaf), []
    while tree.parent[node] > 0:
        node = int(tree.parent[node])
        labels.append(tree.labels[node])
    return labels


@given(CODES, st.sets(st.integers(1, 4), min_size=1))
def test_above_a_code_are_its_prefixes(codes: list[str], lengths: set[int]) -> None:
    length = {code: len(code.replace(".", "")) for code in codes}
    used = [level for level in sorted(lengths, reverse=True) if level < max(length.values())]
    if not used:
        with pytest.raises(HierarchyError, match="give a smaller length"):
            af.Hierarchy.from_prefixes(codes, sorted(lengths))
        return
    tree = af.Hierarchy.from_prefixes(codes, sorted(lengths))
    assert set(tree.leaves) == set(codes)
    for code in codes:
        expected = []
        for level in used:
            if length[code] >= level:
                letters = list(re.finditer("[ab1]", code))
                expected.append(code[: letters[level - 1].end()] + "*")
        assert above(tree, code) == expected


@loop(
    ("name", "codes", "expected"),
    [
        ("icd-10", ["E11.65", "E119", "J45", "A00"], ["E11.6*", "E11*", "E1*", "E*"]),
        ("nace", ["62.01", "62.0", "01"], ["62.0*", "62*"]),
        ("nace", ["J62.01", "A01.1"], ["J62.0*", "J62*", "J*"]),
        ("naics", ["541511", "54", "5415"], ["54151*", "5415*", "541*", "54*"]),
        ("isco", ["2512", "25", "0110"], ["251*", "25*", "2*"]),
        ("zip", ["37218-1234", "37218", "01230"], ["37218*", "372*", "3*"]),
        ("nuts", ["DE111", "DE1", "FR101"], ["DE11*", "DE1*", "DE*"]),
    ],
)
def test_levels_of_classifications(name: str, codes: list[str], expected: list[str]) -> None:
    tree = af.Hierarchy.from_prefixes(codes, name)
    assert above(tree, codes[0]) == expected
    assert af.Hierarchy.from_mapping({"prefixes": name}, values=codes) == tree
    assert af.Hierarchy.from_mapping({"prefixes": {"lengths": name}}, values=codes) == tree


@loop(
    ("codes", "lengths", "words"),
    [
        ([], [1], "no codes"),
        ([7], [1], "1 code not text"),
        (["a*", "b"], [1], "1 code with"),
        (["ab", "c"], [2, 1], "must be ascending whole numbers"),
        (["ab", "c"], [0], "must be ascending whole numbers"),
        (["ab", "c"], [True], "must be ascending whole numbers"),
        (["ab", "c"], "nice", "must be one of icd-10, isco"),
        (["62.01", "secret"], "nace", "1 value of 2 is no code of nace"),
        (["ab", "c"], [2, 3], "at most 2 characters, none more than 2"),
    ],
)
def test_bad_codes_and_lengths_are_a_sentence(codes: list[Any], lengths: Any, words: str) -> None:
    with pytest.raises(HierarchyError, match=words) as refused:
        af.Hierarchy.from_prefixes(codes, lengths)
    assert "secret" not in str(refused.value)


@loop(("spec", "words"), [({}, "need lengths"), (3, "must be a mapping"), ({"length": [1]}, "unknown key")])
def test_bad_specifications_are_a_sentence(spec: Any, words: str) -> None:
    with pytest.raises(HierarchyError, match=words):
        af.Hierarchy.from_mapping({"prefixes": spec}, values=["ab"])


def test_a_table_is_published_by_prefixes() -> None:
    qi = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"prefixes": "nace"}}
    frame = pd.DataFrame({"nace": ["62.01", "62.02", "62.1", "01.1", "01.2", None], "x": [1] * 6})
    table = af.Table(frame.iloc[:5], {"nace": qi})
    release = af.anonymize(table, "full-domain", k=2, limit=0).release(seed=1 << 100)
    assert set(release.frame["nace"]) == {"62*", "01*"}
    assert af.verify(table, release, ["covers", "k-anonymity"], k=2)
    blank = af.Table(frame, {"nace": qi})
    assert "" in blank.domains[0].labels


def test_codes_of_several_lengths_are_told_what_to_do() -> None:
    frame = pd.DataFrame({"zip": ["37218", "37218-1234"]})
    with pytest.raises(DataError, match="cut them with a step `prefix`"):
        af.Table(frame, {"zip": {"role": "quasi-identifier", "kind": "positions"}})
