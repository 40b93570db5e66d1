"""What a notebook shows: every view escapes what it is given, says whose it is, and asks nothing of anybody."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.drawing import generalization_graph, plots, points_and_matches, tree
from anonflow.drawing.comparisons import pairs
from anonflow.drawing.levels import LatticeBox, lattice
from anonflow.drawing.trees import STILL_ROWS, TreeDrawing
from anonflow.engine.compare import compared
from anonflow.hierarchy import EMPTY
from tests import ROOT

EVIL = "<script>alert('x')</script>&\"<img src=x onerror=y>"
VOID = {"br", "img", "meta", "link", "hr", "input"}


class Page(HTMLParser):
    """The tags of a piece of HTML, all of which must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in VOID, f"{tag} is not ours"
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def shown(subject: Any) -> Page:
    """The view of an object, which must be safe and complete in itself."""
    text = subject if isinstance(subject, str) else subject._repr_html_()
    page = Page(text)
    assert set(page.tags).isdisjoint({"script", "iframe", "object", "link", "foreignobject"})
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    assert [value for name, value in page.attributes if name in ("src", "href", "xlink:href")] == []
    assert not re.search(r"url\(|@import|https?://", text)
    return page


@pytest.fixture(scope="module")
def table() -> af.Table:
    """People whose values, labels and columns are hostile."""
    rng = np.random.default_rng(1)
    city = np.array([EVIL, "b</td>", "{c|d}", "e&amp;"], object)[rng.integers(4, size=60)]
    frame = pd.DataFrame(
        {
            "<b>age</b>": rng.integers(20, 60, 60),
            "city": city,
            "trade": np.array(["x<y", "</svg>"], object)[rng.integers(2, size=60)],
            "ill": np.array([EVIL, "no"], object)[rng.integers(2, size=60)],
        },
        index=[f"<i>{row}" for row in range(60)],
    )
    trade = af.Hierarchy.from_nested({"*": {"</svg><script>": ["x<y", "</svg>"]}})
    return af.Table(
        frame,
        {
            "<b>age</b>": {"role": "quasi-identifier", "kind": "numeric"},
            "city": {"role": "quasi-identifier", "kind": "categorical", "max-set": 3, "weight": 2.5},
            "trade": {
                "role": "quasi-identifier", "kind": "hierarchy", "hierarchy": trade,
                "boundary": ["</svg><script>"],
            },
            "ill": {"role": "sensitive"},
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def anon(table: af.Table) -> Any:
    return af.anonymize(table, "greedy", k=3, boundaries=False)


def test_a_table_shows_its_columns_and_first_records(table: af.Table) -> None:
    page = shown(table)
    assert "owner’s view" in page.text
    assert "records 60" in re.sub(r"\s+", " ", page.text)
    for text in ("<b>age</b>", "quasi-identifier", "numeric", "boundary </svg><script>", "weight 2.5"):
        assert text in page.text
    assert page.tags.count("tr") == 1 + 4 + 1 + 5
    assert "<i>0" in page.text
    assert "<i>5" not in page.text


def test_a_schema_says_what_each_column_is(table: af.Table) -> None:
    page = shown(table.schema)
    assert "2 leaves, height 2; boundary </svg><script>" in page.text
    assert "at most 3 values" in page.text
    assert page.tags.count("tr") == 5


def test_a_hierarchy_is_a_drawn_tree(table: af.Table) -> None:
    hierarchy = table.domains[2].hierarchy
    assert hierarchy is not None
    page = shown(hierarchy)
    labels = [label for label in hierarchy.labels if not label.startswith(EMPTY)]
    assert page.tags.count("rect") == len(labels) == 4
    assert page.tags.count("path") == 3
    for label in labels:
        assert label in page.text
    assert EMPTY not in page.text
    # the second leaf of a node with one child only marks its level
    assert hierarchy.n_leaves > 2
    assert repr(hierarchy) == "<Hierarchy: 2 leaves, height 2>"
    assert "leaves 2" in re.sub(r"\s+", " ", page.text)
    assert "nodes 4" in re.sub(r"\s+", " ", page.text)


def test_values_are_counted_where_a_hierarchy_is_abbreviated() -> None:
    """Each of 500 nodes has one child, and a leaf beside it that no value has."""
    chains = af.Hierarchy.from_nested({"*": {f"n{node}": [f"v{node}"] for node in range(500)}})
    counted = re.findall(r"… .*?values\)|… .*? more", shown(chains).text)
    assert counted
    assert re.findall(r"… .*?values\)|… .*? more", shown(chains.spread()).text) == counted


def test_a_large_hierarchy_is_abbreviated_with_counts() -> None:
    wide = af.Hierarchy.from_intervals(range(10_000), step=10, levels=4, fanout=10)
    page = shown(wide)
    assert page.tags.count("text") <= STILL_ROWS + 20
    assert len(wide._repr_html_()) < 20_000
    assert "(1,000 values)" in page.text
    flat = af.Hierarchy.suppression([f"v{number}" for number in range(1_000)])
    assert "… 992 more" in shown(flat).text
    small = af.Hierarchy.suppression([f"v{number}" for number in range(12)])
    assert "more" not in shown(small).text


def test_what_is_abbreviated_adds_up() -> None:
    """Leaves that are shown, and those that are counted in their place, are all leaves."""
    for tree_of in (
        af.Hierarchy.from_intervals(range(997), step=3, levels=4, fanout=3),
        af.Hierarchy.from_nested(
            {"*": {"a": {"b": {"c": ["d"]}}, "e": [str(n) for n in range(70)], "f": None}}
        ),
    ):
        drawing = TreeDrawing(tree_of, clicked=False)
        ends = [node for node in drawing.at if node not in drawing.shown]
        leaves = sum(int(tree_of.last[node] - tree_of.first[node]) + 1 for node in ends)
        texts = re.findall(r"<text[^>]*>(.*?)</text>", drawing.svg())
        folded = [text for text in texts if re.search(r"^[^…].*\([\d,]+ values\)$", text)]
        assert len(folded) == sum(len(tree_of.children(node)) > 0 for node in ends)
        for text in texts:
            rest = re.fullmatch(r"… ([\d,]+) more(?: \(([\d,]+) values\))?", text)
            leaves += 0 if rest is None else int((rest[2] or rest[1]).replace(",", ""))
        assert leaves == tree_of.n_leaves
        assert drawing.rows <= STILL_ROWS


def test_a_boundary_is_marked_on_the_tree() -> None:
    hierarchy = af.Hierarchy.from_nested({"*": {"a": ["b", "c"], "d": ["e", "f"]}})
    plain, marked = str(tree(hierarchy)), str(tree(hierarchy, marked=["a", "d"]))
    assert plain.count("◆") == plain.count('class="node limit"') == 0
    assert marked.count("◆") == marked.count('class="node limit"') == 2


def test_an_anonymization_says_that_it_is_the_owners(anon: Any) -> None:
    page = shown(anon)
    assert "owner’s view: not to be published" in page.text
    assert "k-regular" in page.text
    assert "Each of the 60 records has 3." in page.text
    assert page.tags.count("svg") == 1
    assert page.tags.count("tr") == 5


def test_an_anonymization_by_classes_shows_their_sizes(table: af.Table) -> None:
    page = shown(af.anonymize(table, "mondrian", k=3, boundaries=False))
    assert "Class sizes" in page.text
    concealed = shown(af.anonymize(table, "k-concealment", k=3, boundaries=False))
    assert "neither matches nor classes" in concealed.text


def test_sizes_are_counted(table: af.Table) -> None:
    from anonflow.algorithms.view import sizes_of

    classes = af.anonymize(table, "mondrian", k=4, boundaries=False)
    naive: dict[int, int] = {}
    for label in classes.classes:
        size = sum(label == other for other in classes.classes)
        naive[size] = naive.get(size, 0) + 1
    assert dict(sizes_of(classes)) == naive


def test_a_release_shows_what_is_published(anon: Any, table: af.Table) -> None:
    release = anon.release(seed=7)
    page = shown(release)
    assert "stays with the owner" in page.text
    assert "owner’s view" not in page.text
    assert EVIL in page.text.replace("…", "")[:100_000] or EVIL[:30] in page.text
    assert page.tags.count("tr") == 6
    # what the owner knows besides is not in it: neither the index nor which original a row is
    assert "<i>" not in page.text
    assert "certificate" not in shown(type(release)(release.frame)).text


def test_a_verification_is_a_table_of_verdicts(anon: Any, table: af.Table) -> None:
    good = shown(af.verify(table, anon, ["covers", "k-regular"]))
    assert good.text.count("✓ holds") == 2
    assert ": all hold" in good.text
    bad = shown(af.verify(table, anon.frame().iloc[np.zeros(60, int)], ["covers", "k-anonymity"], k=3))
    assert "✗ fails" in bad.text
    assert "NOT all hold" in bad.text


def test_a_report_shows_runs_and_problems(table: af.Table) -> None:
    several = compared(table, ["greedy", "mondrian"], [3, 5], options={})
    page = shown(several)
    assert page.tags.count("tr") == 5
    assert page.tags.count("circle") == 4
    impossible = shown(compared(table, ["greedy"], [61]))
    assert "infeasible" in impossible.text
    assert "NOT all checks passed" in impossible.text


def test_numbers_in_pictures_are_where_they_belong() -> None:
    picture = str(plots.lines({"a": [(1, 0.5), (2, 0.25)], "b": [(1, 1.0)]}, "t", "k", "GCP"))
    marks = re.findall(r"translate\(([\d.]+) ([\d.]+)\)[^>]*><title>(\w): (\d), ([\d.]+)</title>", picture)
    assert [(name, x, y) for _, _, name, x, y in marks] == [
        ("a", "1", "0.5"),
        ("a", "2", "0.25"),
        ("b", "1", "1"),
    ]
    (ax, ay), (bx, by), (cx, cy) = ((float(x), float(y)) for x, y, *_ in marks)
    assert ax == cx < bx
    assert by - ay == pytest.approx((ay - cy) / 2, abs=0.2)  # 0.5 -> 0.25 is half of 1 -> 0.5, downwards
    shown(picture)


def test_points_and_matches_have_an_arrow_for_each_match() -> None:
    frame = af.datasets.freeform_example()
    matches = af.datasets.freeform_example_matches()
    labels = [EVIL, *list(frame.index)[1:]]
    picture = points_and_matches(labels, frame["Age"], frame["Salary"], matches, "Age", EVIL, boxes=[0])
    page = shown(str(picture))
    assert page.tags.count("polygon") == 8 * 2
    assert page.tags.count("circle") == 8
    graph = shown(str(generalization_graph(labels, labels, matches, [(0, 3)], assignment=range(8))))
    assert page.tags.count("rect") == 1
    assert graph.tags.count("line") == 8 * 3 + 1 + 8


@pytest.mark.parametrize("label", ["t0", "a much longer label"])
def test_no_text_of_a_graph_is_cut(label: str) -> None:
    picture = str(generalization_graph([label], [label], [[0]]))
    width = float(re.search(r'viewBox="0 0 ([\d.]+) ', picture)[1])  # type: ignore[index]
    texts = re.findall(r'<text x="([\d.]+)" y="\d+"( text-anchor="end")?[^>]*>([^<]+)<', picture)
    assert [text for *_, text in texts] == ["originals", "generalized records", label, label]
    for x, to_the_left, text in texts:
        long = 6.5 * len(text)
        assert (float(x) - long if to_the_left else width - float(x) - long) >= 0, text


def test_no_line_goes_through_the_text_above_a_node() -> None:
    drawn = lattice(
        [LatticeBox("0", "", 0, 0.0, True, "★ optimum"), LatticeBox("1", "", 1, 0.5, True)],
        [(0, 1)],
        "levels",
    )
    (line_ends,) = re.findall(r'class="edge" d="M\d+ (\d+)L', drawn)
    (text_at,) = re.findall(r'y="(\d+)"[^>]*>★ optimum', drawn)
    assert int(line_ends) <= int(text_at) - 12  # the height of its letters


@pytest.mark.slow
def test_views_need_the_base_install_only() -> None:
    """No screen library is loaded for a view."""
    code = (
        "import sys, anonflow as af\n"
        "frame = af.datasets.freeform_example()\n"
        "table = af.Table(frame, af.datasets.schema('freeform_example'))\n"
        "made = af.anonymize(table, 'greedy', k=2)\n"
        "for one in (table, table.schema, made, made.release(seed=1), af.verify(table, made)):\n"
        "    assert one._repr_html_().startswith('<style>')\n"
        "assert not {'panel', 'bokeh', 'ipywidgets', 'IPython', 'jinja2'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("draw", "room"),
    [
        (lambda names: plots.bars(names, [0.5, 0.2], "losses"), 40),
        (lambda names: plots.stacked(names, [(0.5, 0.3, 0.2)] * 2, "kinds"), 40),
        (lambda names: pairs(names, [0.5, 0.2], [0.4, 0.1], ("a", "b"), "losses"), 28),
    ],
)
def test_a_name_beside_a_bar_is_whole_or_has_a_tooltip(draw: Any, room: int) -> None:
    """Names of a survey's columns are questions: of many, the beginnings are the same."""
    fits, long = "q" * room, "Satisfaction with <the town> and its services, from 1 to 5"
    picture = str(draw([fits, long]))
    assert f">{fits}</text>" in picture
    whole, short = escape(long), escape(f"{long[: room - 1]}…")
    assert f"<title>{whole}</title>{short}</text>" in picture
    assert long not in picture
