"""Hierarchies that are built on the page, their drawing, and boundaries that are clicked on it; no browser."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import HierarchyError
from anonflow.hierarchy import Hierarchy

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.hierarchies.form import HierarchyChoice
from anonflow.dashboards.protect.diversity import DiversityChoice
from anonflow.dashboards.session.files.hierarchy_files import attach
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.trees import ROWS, TreeDrawing
from anonflow.hierarchy.grouping import Grouping
from anonflow.table.identification.suggested_hierarchy import suggested_hierarchy
from tests.cases.drafts import value_at

COUNTRIES = ["France", "Spain", "India", "Japan", "Peru", "<i>x</i>"]
PEOPLE = pd.DataFrame(
    {
        "age": [str(20 + i % 40) for i in range(240)],
        "country": [COUNTRIES[i % 6] for i in range(240)],
        "zip": [f"104{i % 3}{i % 4}" for i in range(240)],
        "illness": ["flu", "cough"] * 120,
    }
)
WORLD = {"*": {"Europe": ["France", "Spain"], "Asia": ["India", "Japan"], "Peru": None}}


@pytest.fixture
def workspace() -> Workspace:
    item = Workspace()
    path = item.folder / "given.csv"
    PEOPLE.to_csv(path, index=False)
    item.opener.open_file("people.csv", path)
    for name, kind in (("age", "numeric"), ("country", "categorical"), ("zip", "categorical")):
        item.data.set_column(name, role="quasi-identifier", kind=kind)
    item.data.set_column("illness", role="sensitive")
    assert item.data.problems == ()
    return item


def key_of(choice: HierarchyChoice, label: str) -> str:
    return f"node:{choice.tree.node(label)}"


# ------------------------------------------------------------------------------------------ drawing


def svg_of(drawing: TreeDrawing) -> ElementTree.Element:
    text = drawing.svg()
    return ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.S)[0])  # type: ignore[index]


@pytest.mark.parametrize("leaves", [2, 5, 100])
def test_small_trees_are_drawn_whole(leaves: int) -> None:
    tree = (
        Hierarchy.from_intervals(range(leaves), 5, levels=3)
        if leaves > 2
        else Hierarchy.suppression(["a", "b"])
    )
    drawing = TreeDrawing(tree, counts=[1] * tree.n_leaves)
    assert drawing.whole
    assert drawing.rows == leaves
    svg = svg_of(drawing)
    nodes = [item.get("data-key") for item in svg.iter() if (item.get("data-key") or "").startswith("node:")]
    assert sorted(nodes) == sorted(f"node:{node}" for node in range(tree.n_nodes))
    # an edge goes from the right end of a node to the left end of each child; all are inside
    parts = {
        item.get("data-key"): item.find("rect")
        for item in svg.iter()
        if "node" in (item.get("class") or "").split()
    }
    left, top, wide, high = (
        {int(key[5:]): float(part.get(name)) for key, part in parts.items()}
        for name in ("x", "y", "width", "height")
    )
    middle = {node: top[node] + high[node] / 2 for node in top}
    edges = [element for element in svg.iter() if (element.get("class") or "").startswith("edge")]
    ends = [[float(number) for number in re.findall(r"[\d.]+", edge.get("d"))] for edge in edges]
    drawn = sorted([*numbers[:2], *numbers[-2:]] for numbers in ends)
    expected = sorted(
        [left[up] + wide[up], middle[up], left[node], middle[node]]
        for node, up in enumerate(tree.parent.tolist())
        if up >= 0
    )
    for edge, place in zip(drawn, expected, strict=True):
        assert edge == pytest.approx(place, abs=0.11)
    for node in left:
        assert left[node] + wide[node] <= float(svg.get("width"))
        assert top[node] + high[node] <= float(svg.get("height"))


@pytest.mark.parametrize(
    "tree",
    [
        Hierarchy.suppression([f"v{i}" for i in range(5000)]),
        Hierarchy.from_positions([f"{i:05d}" for i in range(0, 20_000, 3)]),
        Hierarchy.from_intervals(range(3000), 1, levels=12),
    ],
    ids=["flat", "codes", "deep"],
)
def test_large_trees_are_drawn_as_far_as_it_helps_and_opened(tree: Hierarchy) -> None:
    drawing = TreeDrawing(tree)
    assert not drawing.whole
    assert drawing.rows <= ROWS + 1
    svg = svg_of(drawing)
    keys = [element.get("data-key") for element in svg.iter()]
    opens = [key for key in keys if key and key.startswith("open:")]
    assert opens
    letter = 0.5 * float(svg.find("g").get("font-size"))  # on the average
    for part in svg.iter("g"):
        if part.get("class"):  # a node, or what stands for more of them
            box, text = part[-2], part[-1].text
            assert 10 + letter * len(text) <= float(box.get("width")) or text == "+"
    node = int(opens[0].partition(":")[2])
    more = TreeDrawing(tree, opened=[node])
    assert len(more.at) > len(drawing.at)
    assert more.rows < ROWS + 500


def test_no_two_nodes_are_drawn_over_each_other() -> None:
    tree = Hierarchy.from_intervals(range(60), 4, levels=4)
    drawing = TreeDrawing(tree)
    boxes = [
        tuple(float(box.get(name)) for name in ("x", "y", "width", "height"))
        for box in svg_of(drawing).iter("rect")
    ]
    assert len(boxes) == tree.n_nodes
    for (x, y, wide, high), (u, v, _, _) in itertools.permutations(boxes, 2):
        assert not (x <= u < x + wide and y <= v < y + high)


def test_limits_are_told_from_what_is_beyond() -> None:
    tree = Hierarchy.from_nested(WORLD)
    drawing = TreeDrawing(tree, ["Europe"], counts=[3, 4, 5, 6, 7])
    texts = {label: drawing.status(tree.node(label)) for label in tree.labels}
    assert texts == {
        "*": "beyond", "Europe": "limit", "France": "allowed", "Spain": "allowed",
        "Asia": "allowed", "India": "allowed", "Japan": "allowed", "Peru": "allowed",
    }  # fmt: skip
    assert drawing.description_of(tree.node("Europe")).startswith("Europe: 2 values, 7 records; limit")
    result = drawing.svg()
    assert "◆ Europe" in result  # text besides colour
    assert result.count('aria-pressed="true"') == 1
    with pytest.raises(HierarchyError):
        TreeDrawing(tree, ["Atlantis"])


@given(st.sets(st.sampled_from(["*", "Europe", "Asia", "France", "India", "Peru"])))
def test_a_node_is_allowed_exactly_if_each_of_its_leaves_may_be_it(limits: set[str]) -> None:
    tree = Hierarchy.from_nested(WORLD)
    drawing = TreeDrawing(tree, sorted(limits))
    for node in range(tree.n_nodes):
        allowed = True
        for leaf in range(int(tree.first[node]), int(tree.last[node]) + 1):
            path = [tree.labels[ancestor] for ancestor in tree.ancestors(leaf).tolist()]
            stop = next((label for label in path if label in limits), "*")
            allowed &= path.index(stop) >= path.index(tree.labels[node])
        says = drawing.status(node)
        assert (says != "beyond") == (allowed or tree.labels[node] in limits)


def test_labels_are_escaped_and_cut() -> None:
    tree = Hierarchy.from_nested({"*": {'"><script>alert(1)</script>': ["a" * 100, ""], "b&b": ["c"]}})
    drawing = TreeDrawing(tree).svg()
    assert "<script" not in drawing
    assert "a" * 30 + "<" not in drawing  # cut on the picture
    assert "a" * 100 in drawing  # whole in the tooltip
    assert "(missing)" in drawing
    assert "data-key" not in TreeDrawing(tree, clicked=False).svg()


# ----------------------------------------------------------------------------------------- grouping


def test_groups_are_made_renamed_and_dissolved() -> None:
    flat = Grouping.flat(["a", "b", "c", "d"])
    grouped = flat.group(["b", "d"], "bd")
    assert grouped.spec() == {"nested": {"*": ["a", {"bd": ["b", "d"]}, "c"]}}
    two = grouped.group(["a", "bd"], "left").rename("bd", "pair")
    assert two.spec() == {"nested": {"*": [{"left": ["a", {"pair": ["b", "d"]}]}, "c"]}}
    assert two.dissolve("left").dissolve("pair").children["*"] == ["a", "b", "d", "c"]
    assert flat.children == {"*": ["a", "b", "c", "d"]}  # an edit changes nothing of what was


@pytest.mark.parametrize(
    ("labels", "name"),
    [([], "x"), (["a"], ""), (["a"], "*"), (["a"], "b"), (["a", "x"], "y"), (["a", "b", "c", "d"], "all")],
)
def test_groups_that_are_none(labels: list[str], name: str) -> None:
    with pytest.raises(HierarchyError):
        Grouping.flat(["a", "b", "c", "d"]).group(labels, name)


def test_what_is_not_side_by_side_is_not_grouped() -> None:
    tree = Grouping.flat(["a", "b", "c", "d"]).group(["a", "b"], "ab")
    with pytest.raises(HierarchyError, match="same group"):
        tree.group(["a", "c"], "ac")
    for wrong in ("a", "*", "nobody"):
        with pytest.raises(HierarchyError):
            tree.dissolve(wrong)
        with pytest.raises(HierarchyError):
            tree.rename(wrong, "new")
    with pytest.raises(HierarchyError):
        tree.rename("ab", "c")


@given(st.data())
def test_any_edits_leave_a_tree_over_the_same_values(data: st.DataObject) -> None:
    values = [f"v{i}" for i in range(8)]
    tree = Grouping.flat(values)
    for step in range(data.draw(st.integers(0, 6))):
        up = data.draw(st.sampled_from(sorted(tree.children)))
        some = data.draw(st.lists(st.sampled_from(tree.children[up]), unique=True, min_size=1))
        try:
            tree = tree.dissolve(up) if data.draw(st.booleans()) else tree.group(some, f"g{step}")
        except HierarchyError:
            continue
    built = Hierarchy.from_mapping(tree.spec())
    assert sorted(built.leaves) == sorted(values)
    assert Grouping.of(built).spec() == tree.spec()


def test_hierarchies_are_suggested_from_the_values() -> None:
    assert suggested_hierarchy([str(i) for i in range(17, 91)]) == {"intervals": {"step": 5, "levels": 4}}
    assert suggested_hierarchy(["A10", "A20", "B10"]) == {"positions": {"hide": "right"}}
    assert suggested_hierarchy(["00345", "01200"]) == {"positions": {"hide": "right"}}
    assert suggested_hierarchy(["62.01", "01"], "nace") == {"prefixes": {"lengths": "nace"}}
    assert suggested_hierarchy(["007", "12", "4567"]) == {"prefixes": {"lengths": [1, 2]}}
    assert suggested_hierarchy(["no", "maybe"]) == {"nested": {"*": ["no", "maybe"]}}
    with pytest.raises(HierarchyError, match="too many"):
        suggested_hierarchy([f"v{i}" * (1 + i % 2) for i in range(6000)])


# ------------------------------------------------------------------------------------- on the draft


def test_intervals_are_previewed_and_used_as_one_step(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    assert (choice.column, choice.way) == ("age", "intervals")
    assert choice.tree.n_leaves == 40
    before = workspace.draft.spec
    choice.param.update(step=10.0, levels=2)
    assert "20-29" in choice.tree
    assert workspace.draft.spec is before  # a preview
    assert not choice.used
    choice.use()
    assert choice.used
    assert value_at(workspace.draft, ("table", "columns", "age")) == {
        "role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"intervals": {"step": 10, "levels": 2}},
    }  # fmt: skip
    assert workspace.data.problems == ()
    assert len(workspace.draft.past) == len(set(map(str, workspace.draft.past)))
    workspace.draft.undo()
    assert workspace.draft.spec == before
    assert not choice.used


def test_prefixes_are_previewed_and_used(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.column, choice.way = "country", "prefixes"
    choice.lengths = "1"
    assert {"F*", "S*", "I*", "J*"} <= set(choice.tree.labels)
    choice.lengths = "nace"
    assert "no code of nace" in choice.problem
    choice.lengths = "1, 2"
    choice.use()
    assert value_at(workspace.draft, ("table", "columns", "country", "hierarchy")) == {
        "prefixes": {"lengths": [1, 2]}
    }
    assert workspace.data.problems == ()


def test_boundaries_are_clicked_and_taken_away(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.param.update(step=10.0, levels=2)
    steps = len(workspace.draft.past)
    choice.click(key_of(choice, "20-39"))  # uses the tree, and says the limit, in one step
    assert len(workspace.draft.past) == steps + 1
    assert value_at(workspace.draft, ("table", "columns", "age", "boundary")) == ["20-39"]
    assert choice.used
    choice.click(key_of(choice, "40-49"))
    assert choice.boundary == ["20-39", "40-49"]
    bound = workspace.data.table.domains[0].bound
    assert bound is not None
    assert tuple(bound[0]) == (0, 19)
    assert "◆ 20-39" in choice.drawing().svg()
    choice.click(key_of(choice, "20-39"))
    assert choice.boundary == ["40-49"]
    choice.click(key_of(choice, "*"))
    assert choice.boundary == []
    assert value_at(workspace.draft, ("table", "columns", "age", "boundary")) is None
    workspace.draft.undo()
    assert choice.boundary == ["40-49"]
    for key in ("node:9999", "node:x", "node:\u00b2", "nonsense", "open:", ""):
        choice.click(key)
    assert choice.boundary == ["40-49"]


def test_limits_that_a_new_tree_still_has_are_kept(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.param.update(step=10.0, levels=2)
    choice.click(key_of(choice, "20-29"))
    choice.click(key_of(choice, "40-59"))
    choice.way = "intervals"
    choice.levels = 1
    assert not choice.used
    choice.use()
    assert choice.boundary == ["20-29"]
    assert workspace.data.problems == ()


def test_groups_by_clicks(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.column = "country"
    choice.way = "groups"
    for label in ("France", "Spain"):
        choice.click(key_of(choice, label))
    assert choice.picked == ["France", "Spain"]
    choice.group("Europe")
    assert choice.problem == ""
    assert choice.picked == []
    choice.click(key_of(choice, "India"))
    choice.click(key_of(choice, "India"))
    assert choice.picked == []
    choice.group("none")
    assert "choose the values" in choice.problem
    choice.use()
    wanted = {"nested": {"*": ["<i>x</i>", {"Europe": ["France", "Spain"]}, "India", "Japan", "Peru"]}}
    assert value_at(workspace.draft, ("table", "columns", "country", "hierarchy")) == wanted
    assert workspace.data.problems == ()
    choice.pick("Europe")
    choice.rename("West")
    assert not choice.used  # until it is used again
    choice.pick("West")
    choice.dissolve()
    assert set(choice.tree.leaves) == set(COUNTRIES)
    assert choice.tree.height[0] == 1
    choice.clicks = "boundary"
    choice.click(key_of(choice, "Peru"))
    assert value_at(workspace.draft, ("table", "columns", "country", "boundary")) == ["Peru"]
    assert workspace.data.problems == ()


def test_intervals_are_a_start_for_groups(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.param.update(step=10.0, levels=1)
    choice.way = "groups"
    assert "30-39" in choice.tree
    choice.pick("20-29")
    choice.pick("30-39")
    choice.group("young")
    choice.use()
    assert workspace.data.problems == ()
    assert "young" in workspace.data.table.domains[0].hierarchy


def test_positions_are_hidden_from_the_chosen_side(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.column = "zip"
    choice.way = "positions"
    choice.hide = "left"
    assert "*" + PEOPLE["zip"][0][1:] in choice.tree
    choice.use()
    assert value_at(workspace.draft, ("table", "columns", "zip", "hierarchy")) == {
        "positions": {"hide": "left"}
    }
    assert workspace.data.problems == ()


def test_a_file_without_some_values_is_a_problem(workspace: Workspace, tmp_path: Path) -> None:
    choice = HierarchyChoice(workspace)
    choice.column = "country"
    path = tmp_path / "tree.csv"
    rows = ["France;Europe;*", "Spain;Europe;*", "India;Asia;*", "Japan;Asia;*", "Peru;Peru;*"]
    path.write_text("\n".join(rows))
    choice.take_file(path)
    assert choice.tree is None
    assert "with no leaf in its hierarchy" in choice.problem
    assert "<i>" not in choice.problem
    path.write_text("\n".join([*rows, "<i>x</i>;<i>x</i>;*"]))
    choice.take_file(path)
    assert choice.problem == ""
    choice.use()
    assert workspace.data.problems == ()
    assert "nested" in value_at(
        workspace.draft, ("table", "columns", "country", "hierarchy")
    )  # the flow needs no file
    for junk in (b"", b"\x00\xff" * 100, b"one column\n", b"a;b;*\na;c;*\n"):
        path.write_bytes(junk)
        choice.take_file(path)
        assert choice.tree is None
        assert choice.problem
        assert str(tmp_path) not in choice.problem
    assert workspace.data.problems == ()  # the draft keeps what it has


def test_ways_are_those_that_make_sense(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    assert list(choice.ways.values()) == ["intervals", "groups", "file", "positions", "prefixes"]
    choice.column = "country"
    assert "intervals" not in choice.ways.values()
    choice.use()
    assert next(iter(choice.ways.values())) == "used"
    choice.drop()
    assert value_at(workspace.draft, ("table", "columns", "country")) == {
        "role": "quasi-identifier", "kind": "categorical",
    }  # fmt: skip


def test_another_table_is_another_choice(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    choice.param.update(step=10.0, levels=2)
    workspace.opener.open_dataset("patients_example")
    assert choice.column == "age"
    assert choice.tree.n_leaves == workspace.data.frame["age"].nunique()
    choice.column = "zipcode"
    assert choice.way == "used"
    assert choice.used
    workspace.data.set_column("zipcode", kind="categorical")
    assert choice.way != "used"
    assert "given" in choice.ways.values()


def test_the_builder_shows_what_is_chosen(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    view = HierarchyBuilder(choice=choice)
    view.__panel__()
    assert "<svg" in view.tree.html
    assert view.of_way["intervals"].visible
    assert not view.of_way["groups"].visible
    assert "Not used yet" in view.state.object
    view.use.clicks += 1
    assert choice.used
    assert view.use.disabled
    view.column.value = "country"
    view.way.value = "groups"
    assert view.of_way["groups"].visible
    view.tree._handle_msg({"key": key_of(choice, "Peru")})
    view.label.value = "Andes"
    view.group.clicks += 1
    assert "Andes" in choice.tree
    assert view.label.value == ""
    view.label.value = "Andes"
    view.group.clicks += 1
    assert view.problem.visible
    view.dropper._on_refused("too large")
    assert "too large" in view.problem.object


def test_messages_of_a_browser_are_not_believed() -> None:
    heard: list[str] = []
    part = Clickable(html="<div></div>", on_click=heard.append)
    for message in ({"key": "a"}, {"key": 3}, {}, None, [], "a", {"key": None}):
        part._handle_msg(message)
    assert heard == ["a"]


def test_a_sensitive_column_has_a_hierarchy_for_t_closeness(workspace: Workspace, tmp_path: Path) -> None:
    choice = HierarchyChoice(workspace)
    builder = HierarchyBuilder(choice=choice)
    assert "illness" in builder.column.options
    choice.column = "illness"
    assert "this column is sensitive" in builder.state.object
    tree = tmp_path / "illness.csv"
    tree.write_text("flu;lung;any\ncough;lung;any\n", encoding="utf-8")
    choice.take_file(tree)
    choice.bound("lung")
    assert "has no limit" in choice.problem
    choice.use()
    entry = value_at(workspace.draft, ("table", "columns", "illness"))
    assert entry == {"role": "sensitive", "hierarchy": {"nested": {"any": [{"lung": ["flu", "cough"]}]}}}
    assert workspace.data.problems == ()
    assert choice.used
    assert "t-closeness measures along" in builder.state.object
    diversity = DiversityChoice(workspace)
    diversity.param.update(criterion="t-closeness", column="illness", t=0.2)
    assert "below one node" in diversity.distance
    assert diversity.problem == ""
    # it goes with the flow, and is taken away as it came
    assert workspace.data.problems == ()
    choice.drop()
    assert value_at(workspace.draft, ("table", "columns", "illness")) == {"role": "sensitive"}
    assert "equally far" in diversity.distance
    choice.copy_to("country")
    assert "country" in choice.problem  # other values


def test_a_hierarchy_file_named_for_a_sensitive_column_is_attached(
    workspace: Workspace, tmp_path: Path
) -> None:
    tree = tmp_path / "hierarchy_illness.csv"
    tree.write_text("flu;lung;any\ncough;lung;any\n", encoding="utf-8")
    assert attach(workspace, {tree.name: tree}).sentences() == ["1 hierarchy was attached: illness"]
    assert value_at(workspace.draft, ("table", "columns", "illness")) == {
        "role": "sensitive",
        "hierarchy": tree.name,
    }
    assert workspace.data.problems == ()
    short = tmp_path / "illness.csv"
    short.write_text("flu;any\n", encoding="utf-8")
    assert "illness" in attach(workspace, {short.name: short}).refusals[0]


# ------------------------------------------------------------------------------------------ dates


def dates(cells: list[str], **entry: object) -> Workspace:
    item = Workspace()
    path = item.folder / "dates.csv"
    pd.DataFrame({"hired": cells, "sex": ["f", "m"] * (len(cells) // 2)}).to_csv(path, index=False)
    item.opener.open_file("dates.csv", path)
    item.data.set_column("sex", role="quasi-identifier", kind="categorical")
    item.data.set_column("hired", role="quasi-identifier", kind="categorical", **entry)
    return item


def test_periods_of_dates_are_chosen_previewed_and_used() -> None:
    item = dates(["2021-02-15", "2021-03-01", "2022-12-31", "1984-07", "2021-02-15", "1984"])
    choice = HierarchyChoice(item)
    choice.column = "hired"
    assert next(iter(choice.ways.values())) == choice.way == "calendar"
    assert {"2021-02", "2021-Q1", "2021", "1984-07-??", "1984-??-??"} <= set(choice.tree.labels)
    assert sum(choice.counts()) == 6
    choice.periods = ["year", "month"]  # in whatever order they were clicked
    choice.use()
    assert choice.used
    assert value_at(item.draft, ("table", "columns", "hired")) == {
        "role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"calendar": ["month", "year"]},
    }  # fmt: skip
    assert item.data.problems == ()
    again = HierarchyChoice(item)
    again.column = "hired"
    again.way = "calendar"
    assert again.periods == ["month", "year"]
    assert again.used
    choice.periods = []
    assert choice.problem.startswith("choose the periods")
    choice.periods = ["week", "month"]
    assert choice.tree is None
    assert "week" in choice.problem


def test_dates_in_the_form_of_their_source_have_periods() -> None:
    item = dates(["15.02.2021", "01.03.2021", "31.12.2022", "15.2.2021"], dates="d.m.y")
    choice = HierarchyChoice(item)
    choice.column = "hired"
    assert choice.way == "calendar"
    assert choice.values()[0] == ["2021-02-15", "2021-03-01", "2022-12-31"]
    assert choice.counts() == [2, 1, 1]
    choice.use()
    assert item.data.problems == ()
    assert value_at(item.draft, ("table", "columns", "hired", "dates")) == "d.m.y"


def test_what_is_no_date_has_no_periods(workspace: Workspace) -> None:
    choice = HierarchyChoice(workspace)
    for name in choice.columns:
        choice.column = name
        assert "calendar" not in choice.ways.values()


def test_the_editor_shows_the_periods_of_dates_alone() -> None:
    builder = HierarchyBuilder(choice=HierarchyChoice(dates(["2021-02-15", "2021-03-01"])))
    builder.choice.column = "hired"
    builder._show()
    assert builder.of_way["calendar"].visible
    assert builder.periods.value == ["month", "quarter", "year"]
    builder.choice.way = "groups"
    builder._show()
    assert not builder.of_way["calendar"].visible
