"""Hierarchies against walking up the tree, and every way of building one."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import HierarchyError, ParameterError
from anonflow.hierarchy import Hierarchy
from tests.checks import calls_of
from tests.naive import hierarchy as naive
from tests.strategies import TREE, loop


@st.composite
def parents(draw: st.DrawFn) -> dict[str, str | None]:
    """A random tree, a parent for each label; insertion order is any order with parents first."""
    size = draw(st.integers(2, 25))
    parent: dict[str, str | None] = {"n0": None}
    for node in range(1, size):
        parent[f"n{node}"] = f"n{draw(st.integers(0, node - 1))}"
    return parent


def built(parent: dict[str, str | None]) -> Hierarchy:
    labels = list(parent)
    return Hierarchy(labels, [-1 if up is None else labels.index(up) for up in parent.values()])


@given(parents(), st.data())
def test_runs_heights_and_lowest_nodes(parent: dict[str, str | None], data: st.DataObject) -> None:
    tree = built(parent)
    assert set(tree.leaves) == set(naive.leaves(parent))
    for node, label in enumerate(tree.labels):
        run = tree.leaves[tree.first[node] : tree.last[node] + 1]
        assert set(run) == naive.below(parent, label)
        assert tree.height[node] == naive.height(parent, label)
        assert tree.depth[node] == len(naive.ancestors(parent, label)) - 1
        assert tree.node(label) == node
        up = parent[label]
        assert tree.parent[node] == (-1 if up is None else tree.node(up))
        assert {tree.labels[child] for child in tree.children(node)} == {
            c for c, u in parent.items() if u == label
        }
    lo = np.array([data.draw(st.integers(0, tree.n_leaves - 1)) for _ in range(6)])
    hi = np.array([data.draw(st.integers(int(low), tree.n_leaves - 1)) for low in lo])
    nodes = tree.lca(lo, hi)
    first, last = tree.closure(lo, hi)
    for at in range(6):
        inside = list(tree.leaves[lo[at] : hi[at] + 1])
        label = naive.lowest(parent, inside)
        assert tree.labels[nodes[at]] == label
        assert set(tree.leaves[first[at] : last[at] + 1]) == naive.below(parent, label)
    for leaf in range(tree.n_leaves):
        above = [tree.labels[node] for node in tree.ancestors(leaf)]
        assert above == naive.ancestors(parent, tree.leaves[leaf])
        column = [tree.labels[node] for node in tree.paths()[:, leaf]]
        assert column == above + [above[-1]] * (len(column) - len(above))


@given(parents())
def test_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, parent: dict[str, str | None]
) -> None:
    tree = built(parent)
    path = tmp_path_factory.mktemp("h") / "tree.csv"
    tree.to_csv(path)
    back = Hierarchy.from_csv(path)
    assert back == tree
    assert sorted(file.name for file in path.parent.iterdir()) == ["tree.csv"]


@given(parents(), st.data())
def test_bounds_are_the_first_boundary_node_on_the_way_up(
    parent: dict[str, str | None], data: st.DataObject
) -> None:
    tree = built(parent)
    chosen = data.draw(st.lists(st.sampled_from(list(parent)), max_size=4))
    runs = tree.bounds(chosen)
    for leaf, (lo, hi) in enumerate(runs.tolist()):
        above = naive.ancestors(parent, tree.leaves[leaf])
        limit = next((label for label in above if label in chosen), above[-1])
        assert set(tree.leaves[lo : hi + 1]) == naive.below(parent, limit)


@given(parents(), st.data())
def test_fewer_and_more_leaves(parent: dict[str, str | None], data: st.DataObject) -> None:
    tree = built(parent)
    kept = data.draw(st.lists(st.sampled_from(tree.leaves), min_size=1, unique=True))
    part = tree.restricted(kept)
    assert list(part.leaves) == [leaf for leaf in tree.leaves if leaf in kept]
    for leaf in kept:
        assert [part.labels[n] for n in part.ancestors(part.leaf_index(leaf))] == naive.ancestors(
            parent, leaf
        )
    more = tree.extended("")
    assert more.leaves == (*tree.leaves, "")
    assert more.parent[more.node("")] == 0
    assert more.extended("") is more


def test_the_tree_of_a_paper_with_nodes_of_one_child() -> None:
    tree = Hierarchy.from_nested(
        {"United States": {"Midwest": {"Kansas": ["Wichita", "Kansas City"], "Nebraska": ["Lincoln"]}}}
    )
    assert tree.leaves == ("Wichita", "Kansas City", "Lincoln")
    lincoln = tree.leaf_index("Lincoln")
    assert tree.labels[tree.lca([lincoln], [lincoln])[0]] == "Lincoln"
    assert tree.height[tree.node("Nebraska")] == 1
    assert tree.labels[tree.lca([0], [2])[0]] == "Midwest"
    assert "height <b>3</b>" in tree._repr_html_()


def test_csv_with_leaves_of_different_depth(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "Lincoln;Lincoln;Midwest;*\nWichita;Kansas;Midwest;*\nRome;Rome;Rome;*\n", encoding="utf-8"
    )
    tree = Hierarchy.from_csv(path)
    assert tree.height[tree.node("Midwest")] == 2
    assert tree.depth[tree.node("Rome")] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a;x;*\nb;x\n", "length|columns|cells"),
        ("a;x;*\na;y;*\n", "a|parent|twice"),
        ("a;x;*\nb;y;+\n", "root"),
        ("a;x;*\nx;a;*\n", "cycle|inner|leaf"),
        ("a;x;*\nb;a;*\n", "inner|leaf|parent"),
        ("", "no rows"),
        ("*\n", "value|root|below"),
    ],
)
def test_files_that_are_no_hierarchy(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(HierarchyError, match=words):
        Hierarchy.from_csv(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"no\.csv"):
        Hierarchy.from_csv(tmp_path / "no.csv")
    (tmp_path / "l.csv").write_bytes(b"\xff\xfe;*\n")
    with pytest.raises(HierarchyError, match=r"utf-8|UTF-8"):
        Hierarchy.from_csv(tmp_path / "l.csv")


def test_what_the_system_says_of_a_file_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "t.csv").write_text("a;*\n", encoding="utf-8")
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(
        HierarchyError, match=r"^t\.csv: the hierarchy file cannot be read: Input/output error$"
    ):
        Hierarchy.from_csv(tmp_path / "t.csv")


def test_the_largest_tree_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many nodes and cells as the limits say are taken, a single one less is refused where it is read."""
    Hierarchy.from_nested(TREE).to_csv(tmp_path / "t.csv")
    codes = ["".join(code) for code in itertools.product("01", repeat=8)]  # many cells a node
    whole = Hierarchy.from_positions(codes)
    cases: list[tuple[str, int, str, Callable[[], Any]]] = [
        (
            "MAX_NODES",
            Hierarchy.from_nested(TREE).n_nodes,
            "t.csv",
            lambda: Hierarchy.from_csv(tmp_path / "t.csv"),
        ),
        (
            "MAX_NODES",
            Hierarchy.from_nested(TREE).n_nodes,
            "nested hierarchy",
            lambda: Hierarchy.from_nested(TREE),
        ),
        ("MAX_NODES", 8 * len(codes) // 4, "positions", lambda: Hierarchy.from_positions(codes)),
        ("MAX_CELLS", 9 * len(codes), "hierarchy", lambda: whole.to_csv(tmp_path / "codes.csv")),
    ]
    for limit, size, where, read in cases:
        module = "sources" if limit == "MAX_NODES" else "hierarchy"
        monkeypatch.setattr(f"anonflow.hierarchy.{module}.{limit}", size)
        read()
        monkeypatch.setattr(f"anonflow.hierarchy.{module}.{limit}", size - 1)
        with pytest.raises(HierarchyError, match=rf"^{where}: .*(too much|too many|more than)"):
            read()


@loop(
    "tree",
    [
        {"a": {"x": None}, "b": {"y": None}},
        {"*": {"a": ["x"], "b": ["x"]}},
        {"*": {}},
        {"*": [1.5]},
        [],
        "x",
    ],
)
def test_nested_things_that_are_no_hierarchy(tree: Any) -> None:
    with pytest.raises(HierarchyError):
        Hierarchy.from_nested(tree)


def test_a_mapping_inside_itself_is_a_cycle() -> None:
    tree: dict[str, Any] = {"*": {}}
    tree["*"]["a"] = tree["*"]
    with pytest.raises(HierarchyError, match="cycle"):
        Hierarchy.from_nested(tree)


def test_a_very_deep_tree_is_no_recursion() -> None:
    tree: dict[str, Any] = {"leaf": None, "other": None}
    for level in range(10_000):
        tree = {f"n{level}": tree}
    deep = Hierarchy.from_nested(tree)
    assert deep.height[0] == 10_000
    assert deep.lca([0], [1])[0] == 9_999


def test_intervals_nest_by_their_step() -> None:
    tree = Hierarchy.from_intervals([20, 25, 31, 47], step=10, levels=2)
    assert [tree.labels[n] for n in tree.ancestors(tree.leaf_index("25"))] == ["25", "20-29", "20-39", "*"]
    assert tree.leaves == ("20", "25", "31", "47")
    halves = Hierarchy.from_intervals(["0.3", "0.25"], step=0.1)
    assert [halves.labels[n] for n in halves.ancestors(halves.leaf_index("0.3"))][1] == "[0.3, 0.4)"
    for wrong in ({"step": 0}, {"step": 1, "levels": 0}, {"step": 1, "fanout": 1}, {"step": float("nan")}):
        with pytest.raises(HierarchyError):
            Hierarchy.from_intervals([1, 2], **wrong)  # type: ignore[arg-type]
    with pytest.raises(HierarchyError):
        Hierarchy.from_intervals(["x"], step=1)


@given(st.lists(st.text("0129", min_size=3, max_size=3), min_size=1, max_size=12))
def test_positions_are_hidden_one_after_another(codes: list[str]) -> None:
    for hide in ("right", "left"):
        tree = Hierarchy.from_positions(codes, hide=hide)
        order = sorted(set(codes), key=lambda code: code if hide == "right" else code[::-1])
        assert list(tree.leaves) == order
        for code in codes:
            a, b, c = code
            above = [f"{a}{b}*", f"{a}**"] if hide == "right" else [f"*{b}{c}", f"**{c}"]
            assert [tree.labels[n] for n in tree.ancestors(tree.leaf_index(code))] == [code, *above, "*"]
    with pytest.raises(HierarchyError, match=r"codes of 2 lengths \(3 to 40\)"):
        Hierarchy.from_positions([*codes, "1" * 40])


def test_what_a_schema_may_write(tmp_path: Path) -> None:
    Hierarchy.from_nested(TREE).to_csv(tmp_path / "t.csv")
    for spec in ("t.csv", {"csv": "t.csv"}, {"nested": TREE}):
        assert Hierarchy.from_mapping(spec, folder=tmp_path) == Hierarchy.from_nested(TREE)
    assert Hierarchy.from_mapping({"positions": "left"}, values=["12", "13"]).height[0] == 2
    for wrong in (
        7,
        {},
        {"csv": ""},
        {"cvs": "t.csv"},
        {"intervals": {"levels": 2}},
        {"csv": "t.csv", "nested": {}},
    ):
        with pytest.raises(HierarchyError):
            Hierarchy.from_mapping(wrong, folder=tmp_path, values=[1])


def test_values_that_are_no_leaf_are_counted_not_shown() -> None:
    tree = Hierarchy.from_nested(TREE)
    with pytest.raises(HierarchyError, match=r"column 'city': 5 cells \(2 distinct") as caught:
        tree.check_values(["Lincoln", "SECRET1", "SECRET2"], "city", [9, 2, 3])
    assert "SECRET" not in str(caught.value)
    tree.check_values(["Lincoln"], "city")


def test_runs_that_do_not_exist() -> None:
    tree = Hierarchy.from_nested(TREE)
    for lo, hi in ((1, 0), (-1, 0), (0, tree.n_leaves)):
        with pytest.raises(ParameterError):
            tree.lca([lo], [hi])
    with pytest.raises(HierarchyError):
        tree.node("Mars")


@pytest.mark.slow
def test_a_hundred_thousand_leaves() -> None:
    n = 100_000
    labels = ["*", *(f"g{g}" for g in range(n // 100)), *(f"v{v}" for v in range(n))]
    above = [-1, *[0] * (n // 100), *(1 + v // 100 for v in range(n))]
    tree = Hierarchy(labels, above)
    rng = np.random.default_rng(0)
    lo = rng.integers(0, n - 1, 200_000)
    hi = np.minimum(lo + rng.integers(0, 150, len(lo)), n - 1)
    tree.lca(lo[:2], hi[:2])
    nodes = tree.lca(lo, hi)
    few = slice(2_000)  # as many lengths of runs as there are in all
    assert calls_of(lambda: tree.lca(lo, hi)) == calls_of(lambda: tree.lca(lo[few], hi[few]))
    same = lo // 100 == hi // 100
    assert (nodes[~same] == 0).all()
    inside = same & (lo < hi)
    assert (tree.first[nodes[inside]] == lo[inside] // 100 * 100).all()
    assert (nodes[lo == hi] == tree.leaf_node[lo[lo == hi]]).all()
