"""Hierarchies out of hostile labels, files, nestings and options."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import HierarchyError
from anonflow.hierarchy import Hierarchy
from tests.checks import calls_of
from tests.strategies import loop

LABELS = st.text(st.characters(exclude_categories=("Cs",)), max_size=4) | st.text(
    "a;\"\r\n' \ufeff", max_size=4
)


@given(st.lists(LABELS.filter(lambda label: label != "*" and "\0" not in label), min_size=1, unique=True))
def test_any_label_is_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str]
) -> None:
    tree = Hierarchy.suppression(labels)
    path = tmp_path_factory.mktemp("h") / "tree.csv"
    tree.to_csv(path)
    assert Hierarchy.from_csv(path) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for label in ("\0", "\ud800"):
        with pytest.raises(HierarchyError, match="cannot be written"):
            Hierarchy.suppression([label]).to_csv(tmp_path / "t.csv")
    for delimiter in ("", ";;", "\n", '"'):
        with pytest.raises(HierarchyError, match="delimiter"):
            Hierarchy.suppression(["a"]).to_csv(tmp_path / "t.csv", delimiter=delimiter)
    with pytest.raises(HierarchyError, match="a folder that you may write to"):
        Hierarchy.suppression(["a"]).to_csv(tmp_path / "no" / "t.csv")
    assert not list(tmp_path.iterdir())


SECRET = "SECRET"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{SECRET};x;*\nb;x\nc;*\n", "lines 2, 3: another number of columns than line 1"),
        (f"{SECRET};x;*\n{SECRET};x;*\n", "line 2: a value that an earlier line has; leave"),
        (f"{SECRET};x;*\n{SECRET};y;*\n", "line 2: a value that an earlier line has under another parent"),
        (f"{SECRET};x;*\nb;y;+\n", "line 2: another root"),
        (f"{SECRET};x;{SECRET};*\n", "line 1: a label again"),
        (f"a;x;p;*\n{SECRET};x;q;*\n", "line 2: an inner node that an earlier line has under another parent"),
        (f"{SECRET};x;*\nb;{SECRET};*\n", "line 2: a label that is a value in one line and an inner node"),
        (f"a;{SECRET};*\n{SECRET};x;*\n", "line 2: a label that is a value in one line and an inner node"),
        (f"{SECRET};;*\n", "line 1: a blank label above the value"),
        ("*;x;y\n", "line 1: `\\*` below the root"),
        (f"{SECRET},x,*\n", "the delimiter may be ','"),
        (f"{SECRET}\n", "line 1: no node above"),
        (f'"{SECRET};x;*\n', "no valid CSV"),
        (f"{SECRET}{'x' * 200_000};*\n", "no valid CSV"),
        (f"{SECRET}\0;*\n", "not a text file"),
        ("\n\n", "no rows"),
    ],
)
def test_bad_rows_are_named_and_values_are_not(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(HierarchyError, match=says) as caught:
        Hierarchy.from_csv(path)
    assert SECRET not in str(caught.value)
    assert all(problem.startswith("t.csv: ") for problem in caught.value.problems)


def test_all_bad_rows_at_once_and_only_a_few_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;x;*\n" + "b;*\n" * 500 + "a;x;*\nc;x;+\n", encoding="utf-8")
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_csv(path)
    assert len(caught.value.problems) == 3
    assert "and 495 more" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("content", "encoding", "says"),
    [
        ("Zürich;*\nGenf;*\n".encode("latin-1"), "utf-8", "line 1: not utf-8"),
        (b"a;*\nZ\xfcrich;*\n", "utf-8", "line 2: not utf-8"),
        ("Zürich;*\n".encode("utf-16"), "utf-8", "not utf-8"),
        (b"a;*\n", "klingon", "unknown encoding"),
        (b"a;*\n", "hex", "unknown encoding"),
        (b"a;*\n", "a\0b", "not a"),
        (b"\x1f\x8b\x08\x00", "latin-1", "not a text file"),
    ],
)
def test_encodings_that_do_not_fit(tmp_path: Path, content: bytes, encoding: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(HierarchyError, match=says):
        Hierarchy.from_csv(path, encoding=encoding)


def test_encodings_that_fit(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffZürich;*\r\n\r\nGenf;*\r\n".encode())
    assert Hierarchy.from_csv(path).leaves == ("Zürich", "Genf")
    path.write_bytes("Zürich;*\n".encode("utf-16"))
    assert Hierarchy.from_csv(path, encoding="utf-16").leaves == ("Zürich",)


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, "/dev/zero", tmp_path / ("x" * 5000), "a\0b"):
        with pytest.raises(HierarchyError):
            Hierarchy.from_csv(path)


@loop(
    ("tree", "says"),
    [
        ({"*": ["a", True]}, "true or false"),
        ({"*": ["a", None]}, "is empty, not text"),
        ({"*": [["a"]]}, "a list"),
        ({"*": ["a", "a"]}, "listed twice"),
        ({"*": {"x": ["a"], "y": ["a"]}}, "below 'y': a value is also below 'x'"),
        ({"*": {"x": ["y"], "y": ["a"]}}, "a value and an inner node"),
        ({"*": {"x": {"x": ["a"]}}}, "below itself"),
        ({"x": ["*"]}, "only be the root"),
        ({"*": {"": ["a"]}}, "blank label"),
        ({"*": {"x": ["a", 1.5], "y": [2.5]}}, "2 problems"),
    ],
)
def test_nested_problems_say_where(tree: Any, says: str) -> None:
    with pytest.raises(HierarchyError, match=says):
        Hierarchy.from_nested(tree)


def test_nested_forms_of_one_tree_are_equal() -> None:
    want = Hierarchy(["*", "x", "1", "2", "y"], [-1, 0, 1, 1, 0])
    for tree in (
        {"*": {"x": ["1", "2"], "y": None}},
        {"*": [{"x": [1, 2]}, "y"]},
        {"*": ({"x": {"1": {}, "2": []}}, "y")},
    ):
        assert Hierarchy.from_nested(tree) == want
    assert Hierarchy.from_nested({"x": [1, 2], "y": None}, root="*") == want


def test_shared_parts_do_not_multiply() -> None:
    part: Any = {"x": ["y"]}
    for _ in range(100):
        part = {"a": [part] * 10, "b": part}

    def refused() -> None:
        with pytest.raises(HierarchyError):
            Hierarchy.from_nested({"*": part})

    assert calls_of(refused) < 3_000


@loop(
    ("labels", "above", "says"),
    [
        ([], [], "no values"),
        (["*"], [-1], "no values"),
        (["*", "a"], [-1], "as many parents"),
        (["*", "a", "b"], [-1, 2, 1], "cycle: 2 nodes"),
        (["a", "b"], [1, 0], "no node without a parent"),
        (["*", "+", "a"], [-1, -1, 0], "2 roots"),
        (["*", "a", "a"], [-1, 0, 0], "more than once"),
        (["*", "a"], [-1, 7], "does not exist"),
        (["*", 5], [-1, 0], "not text"),
        (["+", "*"], [-1, 0], "below the root"),
    ],
)
def test_nodes_that_are_no_tree(labels: list, above: list, says: str) -> None:
    with pytest.raises(HierarchyError, match=says):
        Hierarchy(labels, above)


def test_intervals_of_negative_numbers_blanks_and_other_fanouts() -> None:
    tree = Hierarchy.from_intervals([-5, -1, 0, 8, 9, 26, 8], step=3, levels=2, fanout=3)
    assert tree.leaves == ("-5", "-1", "0", "8", "9", "26")
    assert [tree.labels[n] for n in tree.ancestors(1)] == ["-1", "-3--1", "-9--1", "*"]
    assert [tree.labels[n] for n in tree.ancestors(4)] == ["9", "9-11", "9-17", "*"]
    with_blank = Hierarchy.from_intervals(["7", "", "12"], step=5)
    assert with_blank.leaves == ("7", "12", "")
    assert with_blank.depth[with_blank.node("")] == 1
    units = Hierarchy.from_intervals([1, 2], step=1, levels=2)
    assert [units.labels[n] for n in units.ancestors(0)] == ["1", "0-1", "*"]
    shifted = Hierarchy.from_intervals([1, 9], step=10, origin=-5)
    assert [shifted.labels[n] for n in shifted.ancestors(0)] == ["1", "-5-4", "*"]


@given(st.lists(st.decimals(-1000, 1000, places=2), min_size=1), st.sampled_from([0.1, 0.25, 2, 7]))
def test_every_number_lies_in_its_intervals(numbers: list, step: float) -> None:
    tree = Hierarchy.from_intervals([float(number) for number in numbers], step=step, levels=3, fanout=3)
    for leaf, text in enumerate(tree.leaves):
        for node in tree.ancestors(leaf)[1:-1]:
            label = tree.labels[node]
            if label.startswith("["):
                low, high = label.strip("[)").split(", ")
                assert float(low) <= float(text) < float(high)


@loop(
    ("values", "options"),
    [
        *(([1, float("nan")], {}), ([1, float("inf")], {}), ([True], {}), ([None], {}), ([], {}), ([""], {})),
        *((["1_000"], {}), (["\u0661"], {}), (["1e9999"], {}), ([1], {"step": "5"}), ([1], {"step": -1})),
        *(([1], {"levels": 65}), ([1], {"levels": True}), ([1], {"levels": 1.5}), ([1], {"fanout": 10**400})),
        *(([1], {"origin": None}), ([1.5], {"step": 1e308, "levels": 64}), ([1], {"root": 5})),
    ],
)
def test_intervals_that_cannot_be(values: list, options: dict) -> None:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_intervals(values, **{"step": 10, **options})
    assert "\n" not in str(caught.value)


@loop(
    ("codes", "options"),
    [
        *(([], {}), ([""], {}), (["1", "22"], {}), ([1], {}), (["1*"], {}), (["12"], {"hide": "middle"})),
        *((["12"], {"mask": "**"}), (["12"], {"mask": 5}), (["1x"], {"mask": "x"}), (["12"], {"root": "12"})),
    ],
)
def test_positions_that_cannot_be(codes: list, options: dict) -> None:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_positions(codes, **options)
    assert "\n" not in str(caught.value)


def test_unknown_keys_and_labels_get_a_hint() -> None:
    with pytest.raises(HierarchyError, match="unknown key 'stepp'; did you mean 'step'"):
        Hierarchy.from_mapping({"intervals": {"stepp": 5}}, values=[1])
    with pytest.raises(HierarchyError, match=r"unknown key 'delimiter'$"):
        Hierarchy.from_mapping({"positions": "right", "delimiter": ";"}, values=["12"])
    tree = Hierarchy.from_nested({"*": {"Europe": ["Spain"], "Asia": ["Japan"]}})
    with pytest.raises(HierarchyError, match="'Europ' is no node of the hierarchy; did you mean 'Europe'"):
        tree.bounds(["Europ"])
    with pytest.raises(HierarchyError) as caught:
        tree.bounds(["Japn"])
    assert "Japan" not in str(caught.value)
    with pytest.raises(HierarchyError):
        tree.bounds("Europe")
    names = [f"Europ{i}" for i in range(50_000)]

    def refused() -> None:
        with pytest.raises(HierarchyError, match="and 49,990 more"):
            tree.bounds(names)

    assert calls_of(refused) < 20 * len(names)  # what is like a name is sought for few of them


def test_boundaries_of_a_paper() -> None:
    """Miller 2008, Figure 2."""
    tree = Hierarchy.from_nested(
        {
            "United States": {
                "West Coast": {"California": ["San Diego", "Los Angeles"]},
                "Midwest": {"Kansas": ["Wichita", "Kansas City"], "Nebraska": ["Lincoln"]},
            }
        }
    )
    runs = tree.bounds(["California", "Midwest", "Kansas"])
    assert runs.dtype == np.int32
    assert runs.tolist() == [[0, 1], [0, 1], [2, 3], [2, 3], [2, 4]]


def test_values_that_only_need_a_hint() -> None:
    tree = Hierarchy.from_nested({"*": {"Europe": ["Spain"]}})
    with pytest.raises(HierarchyError, match="spaces"):
        tree.check_values([" Spain", "Spain"], "country")
    with pytest.raises(HierarchyError, match="generalized already"):
        tree.check_values(np.array(["Europe", "Spain"], dtype=object), "country")
    with pytest.raises(HierarchyError, match=r"3 cells"):
        tree.check_values([None, 5, float("nan")], "country")


def test_arrays_cannot_be_changed() -> None:
    tree = pickle.loads(pickle.dumps(Hierarchy.suppression(["a", "b"])))
    for array in (tree.parent, tree.first, tree.last, tree.height, tree.depth, tree.leaf_node):
        assert array.dtype == np.int32
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "leaves", "height"),
    [("age", 100, 4), ("education", 16, 3), ("native-country", 41, 2), ("occupation", 14, 2), ("sex", 2, 1)],
)
def test_hierarchies_of_arx(data_folder: Path, tmp_path: Path, name: str, leaves: int, height: int) -> None:
    tree = Hierarchy.from_csv(data_folder / "hierarchies" / "adult" / f"adult_hierarchy_{name}.csv")
    assert (tree.n_leaves, tree.height[0], tree.labels[0]) == (leaves, height, "*")
    tree.to_csv(tmp_path / "t.csv")
    assert Hierarchy.from_csv(tmp_path / "t.csv") == tree
