"""HTML injection: names of columns, values and labels of hierarchies that are markup, in reports and in owners' views.

Figure: of 6 payloads (scripts, images with `onerror`, frames, attributes that are closed early) in every name, value and label, 0 may become
an element or an attribute of a page. The browser tests open the dashboards and the report with the same table in a real
Chromium: no script of it may run there, through Tabulator, drawings or tooltips.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import anonflow as af
from anonflow import engine
from tests.cases.hostile_table import AGE, COLUMNS, JOB, PAYLOADS, Elements, hostile_frame, write_hostile_flow


def test_the_check_finds_what_it_looks_for() -> None:
    for payload in PAYLOADS:
        assert Elements(f"<p>{payload}</p>").dangers, payload
    assert Elements("<p title='&lt;script&gt;'>&lt;script&gt;</p>").dangers == []


def pages_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "out").glob("*.html"))}


@pytest.mark.parametrize("methods", [("mondrian",), ("mondrian", "greedy")])
def test_reports_escape_hostile_names(tmp_path: Path, methods: tuple[str, ...]) -> None:
    report = engine.run(write_hostile_flow(tmp_path, methods))
    assert report.ok
    pages = {**pages_of(tmp_path), "view": report._repr_html_()}
    assert len(pages) >= 2
    for name, page in pages.items():
        assert Elements(page).dangers == [], name
    # the names are there, as text
    assert "&lt;script&gt;window.owned=1" in pages["report.html"]


def test_choices_that_take_their_labels_for_markup(tmp_path: Path) -> None:
    """A column's name ran as a script on the page of patterns: the widget there shows its options as HTML."""
    pytest.importorskip("panel", reason="the dashboards are an extra")
    import panel as pn

    from anonflow.dashboards.protect.pattern_grid import PatternBoard
    from anonflow.dashboards.protect.patterns import PatternChoice
    from anonflow.dashboards.session.workspace import Workspace

    workspace = Workspace()
    try:
        workspace.opener.open_own_flow(write_hostile_flow(tmp_path))
        choice = PatternChoice(workspace)
        board = PatternBoard(choice=choice)
        choice.param.update(form="predicates", never=[AGE])
        # a MultiChoice takes its options for markup, boxes take theirs for text: the browser test sees them
        assert list(board.__panel__().select(pn.widgets.MultiChoice)) == []
        boxes = list(board.__panel__().select(pn.widgets.CheckBoxGroup))
        assert [AGE in box.options for box in boxes] == [True, True]
        assert board.never.value == [AGE]
        board.never.value = [AGE, JOB]
        assert choice.never == [AGE, JOB]
    finally:
        workspace.close()


def test_titles_of_the_screens_tables(tmp_path: Path) -> None:
    """A column's name ran as a script over the table of records: Tabulator takes titles, of groups too, for markup."""
    pytest.importorskip("panel", reason="the dashboards are an extra")
    import panel as pn

    from anonflow.dashboards.app import SCREENS
    from anonflow.dashboards.session.workspace import Workspace

    workspace = Workspace()
    try:
        workspace.opener.open_own_flow(write_hostile_flow(tmp_path))
        workspace.start()
        workspace.wait(300)
        assert len(workspace.runs.finished) == 1
        seen = 0
        for make in SCREENS:
            for table in make(workspace=workspace).__panel__().select(pn.widgets.Tabulator):
                titles = [*table.groups, *(table.titles.get(name, name) for name in table.value.columns)]
                for title in titles:
                    assert Elements(str(title)).dangers == [], (make.__name__, title)
                seen += any("owned" in str(title) for title in titles)
        assert seen >= 2  # the first rows, and the records before and after
    finally:
        workspace.close()


def test_views_in_a_notebook(tmp_path: Path) -> None:
    write_hostile_flow(tmp_path)
    columns = {
        name: {**column, "hierarchy": str(tmp_path / "towns.csv")} if "hierarchy" in column else column
        for name, column in COLUMNS.items()
    }
    table = af.Table(hostile_frame(), columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anonymization = af.anonymize(table, "greedy", k=5)
        release = anonymization.release()
    hierarchies = [domain.hierarchy for domain in table.domains if domain.hierarchy is not None]
    assert hierarchies
    checked = af.verify(table, release)
    broken = af.verify(table, anonymization, ["k-anonymity"], k=40)
    assert not broken
    for shown in (table, table.schema, anonymization, release, checked, broken, *hierarchies):
        page = shown._repr_html_()
        assert page
        assert Elements(page).dangers == [], type(shown).__name__
