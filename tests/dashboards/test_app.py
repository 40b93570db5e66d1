"""The page without a browser: steps, captions, undo, dark mode, a notebook's cell; and links without data."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn
from bokeh.document import Document
from bokeh.models import ImportedStyleSheet
from panel.io.state import set_curdoc

import anonflow as af
from anonflow import datasets
from anonflow.dashboards import Workspace
from anonflow.dashboards.app import SCREENS, STEPS, App, captions, extension, serve_styles
from anonflow.dashboards.session.share_link import configuration, link
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import FlowError, ParameterError
from tests.cases.drafts import put_at, value_at


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    item = Workspace()
    yield item
    item.close()


@pytest.fixture
def app(workspace: Workspace) -> Iterator[App]:
    extension()
    yield App(workspace=workspace)
    pn.state.reset()


# ---------------------------------------------------------------------------------------------- the page


def test_style_sheets_come_from_this_server_before_the_page_is_rendered(workspace: Workspace) -> None:
    """A component that a background task adds early would otherwise name another host."""
    document = Document()
    request = SimpleNamespace(arguments={}, headers={}, cookies={})
    context = SimpleNamespace(destroyed=False, request=request, id="one", session=None, logged_in=False)
    document._session_context = lambda: context  # type: ignore[assignment]
    with set_curdoc(document):
        serve_styles()
        root = App(workspace=workspace).__panel__().get_root(document)
    urls = {str(sheet.url) for sheet in root.select({"type": ImportedStyleSheet})}
    assert len(urls) > 2
    assert [url for url in urls if "://" in url] == []


def test_a_screen_is_made_when_it_is_first_shown_and_kept(app: App) -> None:
    assert STEPS == ("Data", "Prepare", "Risk", "Protect", "Compare", "Explore", "Publish")
    assert len(app._main) == 1
    app.bar.step = 1
    assert app.step == 1
    first = app._screens[1]
    assert [screen.visible for screen in app._main] == [False, True]
    app.step = 0
    app.step = 1
    assert app._screens[1] is first
    assert len(app._main) == 2
    app.bar.step = 2
    assert (app.step, app.back.label, app.next.label) == (2, "← Prepare", "Protect →")


def test_the_bar_tells_what_the_workspace_holds(app: App, workspace: Workspace) -> None:
    assert app.bar.captions[0] == "no table yet"
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    columns = f"{len(workspace.data.table.qi_columns)} columns known"
    assert app.bar.captions[:5] == [
        "60 records",
        "nothing to do before",
        columns,
        "greedy, k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}10",
        "0 runs",
    ]
    assert not app.bar.can_undo
    workspace.draft.set_ks([200])
    assert app.bar.can_undo
    assert app.bar.troubles == 1
    app.bar._handle_msg({"action": "undo"})
    assert workspace.data.ks == [10]
    assert app.bar.troubles == 0
    assert app.bar.can_redo
    app.bar._handle_msg({"action": "redo"})
    assert workspace.data.ks == [200]
    app.bar._handle_msg({"action": "drop table"})
    app.bar._handle_msg("undo")
    assert workspace.data.ks == [200]
    workspace.draft.undo()
    workspace.start()
    workspace.wait(300)
    assert captions(workspace)[4:] == ["1 run", "greedy k=10", "greedy k=10"]
    assert app.bar.status == workspace.starts.status


def test_no_part_of_a_screen_has_an_empty_class(app: App, workspace: Workspace) -> None:
    """A browser refuses one, and the page stands still."""
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    for step in range(len(STEPS)):
        app.step = step
    assert app._root.select(lambda part: "" in (getattr(part, "css_classes", None) or [])) == []


def test_an_edit_reaches_the_bar_of_a_page_once(app: App, workspace: Workspace) -> None:
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    workspace.draft.set_ks([3])
    before = app.bar.version
    workspace.draft.set_ks([4])
    assert app.bar.version == before + 1
    assert "k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}4" in app.bar.captions[3]
    workspace.data.set_column("Age", weight=2)  # nothing of it is in the bar
    assert app.bar.version == before + 1


def test_dark_mode_goes_both_ways(app: App, workspace: Workspace) -> None:
    app.bar.dark = True
    assert workspace.dark
    assert "af-dark" in app._root.css_classes
    workspace.dark = False
    assert not app.bar.dark
    assert app._root.css_classes == ["af-app"]


def test_a_notebook_shows_a_table_or_a_frame() -> None:
    frame = datasets.census_like(60, seed=1)
    tree = af.Hierarchy.from_nested({"any": ["Male", "Female"]})
    schema = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Gender": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree},
        "Salary-class": {"role": "sensitive"},
    }
    app = af.dashboard(af.Table(frame, schema), name="people")
    try:
        item = app.workspace
        assert not app.page
        assert item.data.problems == ()
        assert item.data.source == SourceSpec(parquet="people.parquet")
        assert item.data.table.qi_columns == ("Age", "Gender")
        item.start()
        item.wait(300)
        assert item.runs.finished[0].ok
    finally:
        app.workspace.close()
    app = af.dashboard(frame)
    assert len(app.workspace.data.frame) == 60
    page = app._repr_mimebundle_()[0]["text/html"]
    assert page.count(":host(.af-two)") == 1, "the style sheet is there once, not once for each component"
    app.workspace.close()
    with pytest.raises(ParameterError, match="DataFrame"):
        af.dashboard("people.csv")


# ------------------------------------------------------------------------------------------------- links


def texts_in(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set().union(*(texts_in(entry) for pair in value.items() for entry in pair)) if value else set()
    if isinstance(value, list):
        return set().union(*(texts_in(item) for item in value)) if value else set()
    return set()


def test_a_link_restores_a_built_in_table_and_what_was_chosen(workspace: Workspace) -> None:
    workspace.opener.open_dataset("nursery", hierarchies=True)
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    workspace.draft.set_ks([5, 10])
    workspace.data.set_column("finance", role="insensitive")
    workspace.data.set_column("health", kind="categorical")
    other = Workspace()
    try:
        other.opener.open_link(link(workspace.draft.spec))
        assert other.data.source == workspace.data.source
        assert other.draft.document == workspace.draft.document
        assert other.data.problems == ()
        assert len(other.data.frame) == 12_960
    finally:
        other.close()


def test_a_link_holds_nothing_of_an_uploaded_file(workspace: Workspace, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"patient": ["Ada", "Bo", "Cy", "Di"] * 10, "ward": ["Nord", "Süd"] * 20, "x": range(40)}
    )
    path = tmp_path / "clinic.csv"
    frame.to_csv(path, index=False)
    workspace.opener.open_file("clinic.csv", path)
    workspace.data.set_column(
        "ward", role="quasi-identifier", kind="hierarchy", hierarchy={"nested": {"all": ["Nord", "Süd"]}}
    )
    workspace.draft.set_algorithms(["greedy", "pattern-guided"])
    options = {"pattern-guided": {"patterns": {"never": ["ward"]}, "local_search": True}}
    put_at(workspace.draft, ("steps", "anonymize", "options"), options)
    put_at(workspace.draft, ("steps", "diversify"), {"criterion": "l-diversity", "column": "patient", "l": 2})
    kept = configuration(link(workspace.draft.spec))
    text = " ".join(texts_in(kept.model_dump()))
    for secret in ("clinic", "patient", "ward", "Nord", "Süd", "Ada"):
        assert secret not in text, secret
    assert kept.steps.anonymize.of_methods == {"pattern-guided": {"local_search": True}}
    other = Workspace()
    try:
        other.opener.open_link(link(workspace.draft.spec))
        assert other.data.frame is None
        assert "Open your table" in other.starts.status
        copy = tmp_path / "again.csv"
        frame.to_csv(copy, index=False)
        other.opener.open_file("again.csv", copy)
        assert other.data.algorithms == ["greedy", "pattern-guided"]
        assert value_at(other.draft, ("steps", "diversify", "l")) == 2
    finally:
        other.close()


@pytest.mark.parametrize(
    "text",
    ["", "c=", "c=!!!", "c=" + "A" * 9000, "c=" + base64.urlsafe_b64encode(b"[1]").decode(),
     "c=" + base64.urlsafe_b64encode(b'{"version": 1}').decode(), "?c=" + base64.urlsafe_b64encode(b"\xff").decode()],
)  # fmt: skip
def test_a_broken_link_is_refused(workspace: Workspace, text: str) -> None:
    with pytest.raises(ParameterError, match="holds no configuration"):
        workspace.opener.open_link(text)
    assert workspace.data.frame is None


def test_a_forged_link_gets_no_further_than_a_draft(workspace: Workspace) -> None:
    def forged(**result: Any) -> str:
        text = json.dumps({"version": 1, "steps": [], **result})
        return "c=" + base64.urlsafe_b64encode(text.encode()).decode()

    for source in (
        {"dataset": "/etc/passwd"},
        {"dataset": "nursery", "self": 1},
        {"dataset": "nursery", "csv": "/etc/passwd"},
    ):
        with pytest.raises(ParameterError):
            workspace.opener.open_link(forged(source=source))
    steps = [{"anonymize": {"algorithm": "greedy", "k": 2}}]
    register = {"attack": [{"journalist": {"population": "/etc/passwd"}}]}
    small = {"dataset": "census_like", "n": 30}
    with pytest.raises(FlowError):
        workspace.opener.open_link(forged(source=small, steps=[*steps, register]))
    assert workspace.data.frame is None
    tree = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": "/etc/passwd"}
    with pytest.raises(ParameterError):
        workspace.opener.open_link(forged(source=small, steps=steps, columns={"no": 3}))
    workspace.opener.open_link(forged(source=small, steps=steps, columns={"Gender": tree}))
    assert workspace.data.problems != ()
    assert "/etc/passwd" not in json.dumps(workspace.draft.document)
    with pytest.raises(FlowError):
        workspace.opener.open_link(forged(steps=[*steps, register]))


def test_every_text_of_a_link_is_known(workspace: Workspace) -> None:
    workspace.opener.open_dataset("location_example")
    workspace.data.set_column("Age", boundary={"width": 10})
    query = link(workspace.draft.spec)
    columns = configuration(query).columns
    assert columns is not None
    assert columns["Age"].boundary == {"width": 10}
    frame = workspace.data.frame
    cells = {str(cell) for name in ("Name", "SSN", "Diagnosis") for cell in frame[name]}
    assert not cells & texts_in(configuration(query).model_dump())


def test_a_notebook_page_that_missed_changes_is_drawn_anew() -> None:
    """Cells that run before the browser has drawn the first one: what they change does not reach it."""
    app = af.dashboard(datasets.census_like(60, seed=1))
    try:
        app.step = 4
        drawn = app.bar.version  # what the browser gets
        first, bar, watched = app._screens[4], app.bar, len(app._watchers)
        app.workspace.draft.set_ks([5])
        app.workspace.start()
        app.workspace.wait(300)
        app.bar._handle_msg({"action": "here", "version": drawn})
        assert app.bar is not bar
        assert app._root[0] is app.bar
        assert app._screens[4] is not first
        assert list(app._main) == [app._screens[4]]
        assert app.bar.captions[4] == "1 run"
        assert not app.bar.running
        assert len(app._watchers) < watched  # the old screens watch no longer: only the one that is shown
        # a browser that has drawn all there is keeps its page
        again = app.bar
        app.bar._handle_msg({"action": "here", "version": app.bar.version})
        assert app.bar is again
    finally:
        app.workspace.close()
    assert "run the cell again" in app.bar.status
    app.bar._handle_msg({"action": "here", "version": 0})
    assert "run the cell again" in app.bar.status
    assert len(app._main) == 1


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_shows_its_own_markup_as_text(screen: Any) -> None:
    """A text that is escaped twice, or by mistake, shows its tags."""
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=40, seed=1)
    shown = screen(workspace=workspace).__panel__()
    panes = shown.select(pn.pane.HTML)
    assert panes
    assert [pane.object for pane in panes if "&lt;" in str(pane.object)] == []
    workspace.close()


HOSTILE = {
    "one record": b"age,city\n30,Athens\n",
    "no quasi-identifier": b"name,id\n" + b"".join(b"Q%d,%d\n" % (i, i) for i in range(40)),
    "a column without a value": b"age,none\n" + b"".join(b"%d,\n" % (20 + i % 3) for i in range(12)),
    "names of ours": b"id,record,run,gcp,role,kind,index\n" + b"1,2,3,1,2,3,1\n" * 6,
    "scripts": b"<script>alert(1)</script>,<b>town</b>\n" + b"<script>alert(2)</script>,b\n" * 6,
    "300 columns": b",".join(b"c%d" % i for i in range(300)) + b"\n" + (b"1," * 299 + b"2\n") * 4,
}
"""Tables that a stranger may open."""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(data, id=name, marks=[] if name in ("one record", "scripts") else [pytest.mark.slow])
        for name, data in HOSTILE.items()
    ],
)
def test_every_screen_is_there_for_any_table(workspace: Workspace, tmp_path: Path, data: bytes) -> None:
    app = App(workspace=workspace)
    (tmp_path / "given").write_bytes(data)
    workspace.opener.open_file("people.csv", tmp_path / "given")
    for at in range(len(STEPS)):
        app.step = at
    for pane in app.__panel__().select(pn.pane.HTML):
        assert "<script" not in str(pane.object)
    for problem in workspace.data.problems:
        assert "\n" not in problem
    assert "1 records" not in workspace.starts.status


def test_a_step_changes_the_screens_in_one_message_and_never_shows_two(app: App) -> None:
    """A browser laid out both screens, and then one of them again: that took most of the time of a click."""
    document, at_once = Document(), []

    def see(*events: object) -> None:
        shown = [screen for screen in app._screens if screen is not None and screen.visible]
        at_once.append((len(shown) < 2, document.callbacks.hold_value))

    app.step, app.step = 1, 0
    for part in (*app._screens[:2], app.back, app.next):
        part.param.watch(see, "visible")
    with set_curdoc(document):
        app.step = 1
    assert at_once == [(True, "combine")] * len(at_once)
    assert [screen.visible for screen in app._screens[:2]] == [False, True]
    assert len(at_once) == 3, "the two screens, and the way back"


def _hidden_layouts(place: Any) -> Iterator[Any]:
    """Yield the models of a page that are hidden and hold others, from those that are shown; not the tabs that were seen."""
    for model in getattr(place, "children", []):
        if model.visible:
            yield from _hidden_layouts(model)
        elif getattr(model, "children", []):
            yield model
    for tab in getattr(place, "tabs", []):
        if tab.child.visible:
            yield from _hidden_layouts(tab.child)


def test_what_is_hidden_has_no_models(app: App, workspace: Workspace) -> None:
    """Each model of a page takes some milliseconds of the event loop that all users share, and is walked through with every later change."""
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    workspace.start()
    workspace.wait()
    document, unseen = Document(), []
    with set_curdoc(document):
        document.add_root(root := app.__panel__().get_root(document))
        for at, name in enumerate(STEPS):
            app.step = at
            shown, views = root.children[2].children[-1], [name]
            if name == "Protect":
                app._screens[at][1].clicks += 1
                tabs = app._screens[at].select(pn.Tabs)[0]
                views = list(range(len(tabs)))
            for view in views:
                if name == "Protect":
                    tabs.active = view
                # what is at work is shown, and then hidden again
                hidden = [
                    model
                    for model in _hidden_layouts(shown)
                    if "af-doing" not in model.children[0].css_classes
                ]
                unseen += [f"{name}, {view}: {model.children}" for model in hidden]
    assert unseen == []


def test_a_screen_that_cannot_be_shown_leaves_the_one_that_is(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page holds its screen for the old one, dim, until it hears that the step that it marks is shown."""

    def fail(**params: object) -> None:
        raise RuntimeError

    assert app.bar.screen == 0
    app.bar.step = 1
    assert app.bar.screen == 1
    monkeypatch.setattr("anonflow.dashboards.app.SCREENS", (*SCREENS[:2], fail, *SCREENS[3:]))
    with pytest.raises(RuntimeError):
        app.bar.step = 2
    assert (app.bar.step, app.bar.screen, app.step) == (1, 1, 1)
    assert [screen.visible for screen in app._main] == [False, True]
