"""The app: the screens in the order of the user's work, over one workspace."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import panel as pn
import param
from panel.io.resources import get_dist_path

from anonflow.dashboards.compare.screen import CompareScreen
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import empty, stack
from anonflow.dashboards.components.theme import Bar, Theme
from anonflow.dashboards.data.screen import DataScreen
from anonflow.dashboards.explore.screen import ExploreScreen
from anonflow.dashboards.prepare.screen import PrepareScreen
from anonflow.dashboards.protect.screen import ProtectScreen
from anonflow.dashboards.protect.settings import Protection
from anonflow.dashboards.publish.screen import PublishScreen
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.user_limits import local_limits
from anonflow.drawing.fragments import or_dash
from anonflow.errors import ParameterError, unforeseen
from anonflow.hierarchy.wording import plural
from anonflow.table import Table

LOG = logging.getLogger("anonflow.dashboards")

PAGE = Path(__file__).parent / "components" / "style" / "page.html"
"""What stands on a page until the screens are drawn, over Panel's own template; without what draws with WebGL, and previews of pictures that are dropped."""

SCREENS = (DataScreen, PrepareScreen, RiskScreen, ProtectScreen, CompareScreen, ExploreScreen, PublishScreen)

OVER = "This session is over: run the cell again."

UNREACHABLE = "The server cannot be reached."

STEPS = tuple(screen.title for screen in SCREENS)


def extension(inline: bool = False) -> None:
    """Load the parts of Panel that the screens need, as part of a notebook's cell where no server of ours provides them; every file comes from this host."""
    # notifications need a script that only a server provides
    pn.extension(
        "tabulator", "filedropper", notifications=not inline, exception_handler=_log_error, inline=inline,
        **({} if inline else {"disconnect_notification": UNREACHABLE}),
    )  # fmt: skip


def _log_error(error: Exception) -> None:
    """Log type and place of an unexpected error: its own message may contain a value."""
    LOG.error(unforeseen(error))
    if pn.state.notifications is not None:
        pn.state.notifications.error("Something went wrong here; this is a bug in anonflow.", duration=8000)


def scheduler() -> Callable[[Callable[[], None]], None]:
    """Return a function that schedules changes on the session's event loop; any thread may call it."""
    document = pn.state.curdoc
    if document is None or document.session_context is None:
        return lambda change: change()
    main = threading.get_ident()

    def schedule(change: Callable[[], None]) -> None:
        if document.session_context is None or document.session_context.destroyed:
            return
        from panel.io.state import set_curdoc

        def now() -> None:
            with set_curdoc(document):
                change()

        def later() -> None:
            try:
                now()
            except Exception as error:  # the event loop would log its message
                with set_curdoc(document):
                    _log_error(error)

        if threading.get_ident() == main:
            now()
        else:
            document.add_next_tick_callback(later)

    return schedule


def serve_styles() -> None:
    """Make this server the source of the session's style sheets, from its first component on, and of a page that shows where the screens will be.

    Panel does so when it renders the page. A component that a background task adds before that would name another host. Panel's own page is blank
    until all scripts are there.
    """
    document = pn.state.curdoc
    if document is not None and document.session_context is not None:
        document.template_variables.setdefault("dist_url", get_dist_path(cdn=False))
        document.template = PAGE.read_text(encoding="utf-8")


def step_of(arguments: Mapping[str, Sequence[bytes]] | None) -> int:
    """Return the number of the screen that an address names; the first if it names none."""
    name = ((arguments or {}).get("screen") or [b""])[0].decode("ascii", "replace")
    return next((at for at, step in enumerate(STEPS) if step.lower() == name), 0)


def captions(workspace: Workspace) -> list[str]:
    """Return a few words on each screen, for the bar."""
    opened, runs, draft = workspace.data, workspace.runs, workspace.draft
    methods = opened.algorithms
    data = "no table yet" if opened.frame is None else plural(len(opened.frame), "record")
    steps = len(draft.spec.table.prepare)
    prepare = plural(steps, "step") if steps else "nothing to do before"
    ks = ", ".join(str(k) for k in opened.ks[:3]) + (", ..." if len(opened.ks) > 3 else "")
    # no-break spaces: a narrow bar breaks before the k, never after it
    several = str(methods[0]) if len(methods) == 1 else plural(len(methods), "method")
    protect = (
        "methods and k" if opened.frame is None else f"{several}, k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{ks}"
    )
    compare = plural(len(runs.finished), "run") + (", running" if workspace.starts.running else "")
    chosen = "no run chosen" if runs.selection is None else runs.selection.name
    columns = 0 if opened.table is None else len(opened.table.qi_columns)
    risk = f"{plural(columns, 'column')} known" if columns else "as it is now"
    return [data, prepare, risk, protect, compare, chosen, chosen]


def four_numbers(
    workspace: Workspace, at_risk: Callable[[int], tuple[int, int]]
) -> list[tuple[str, str, str]]:
    """Return people (or records) at risk, loss, failing lines and time of the chosen run: number, label, and what it means; `at_risk` is :meth:`Protection.at_risk`."""
    if workspace.data.frame is None:
        return []
    run = workspace.runs.selection
    if run is not None and run.result.problem is not None:
        run = None
    k = min(workspace.data.ks, default=2) if run is None else run.result.k
    before, n = at_risk(k)
    people, loss, failing, seconds = f"{before:,}" if n else "–", "–", "–", "–"
    meaning = (
        f"Records that share their quasi-identifiers with fewer than {k - 1:,} others, before anonymization"
    )
    # a person may have several records
    table = workspace.data.table
    unit = "people" if table is None or table.unit is None else "records"
    lines = "Lines of the release card that fail; before the draw or an attack, checks of the run"
    if run is not None:
        result, noted = run.result, workspace.runs.noted
        judged = noted.publications.get(run.id) or noted.attacks.get(run.id)
        people = f"{people} → {result.at_risk(before):,}" if n else "–"
        meaning += "; and of the chosen run, by its checks"
        loss = or_dash(result.measures.get("gcp"), ".3f")
        of_card = None if judged is None else judged.card
        failing = str(result.failing if of_card is None else len(of_card.failing))
        seconds = f"{result.seconds:.1f} s"
    return [
        (people, f"{unit} at risk", meaning),
        (loss, "loss (GCP)", "Information loss of the chosen run: 0 is none, 1 is all"),
        (failing, "failing lines", lines),
        (seconds, "time", "Seconds that the chosen run took"),
    ]


class App(pn.viewable.Viewer):
    """The screens over one workspace, and the bar above them. A screen is built when it is first shown, and kept with its choices."""

    workspace = param.ClassSelector(class_=Workspace)
    step = param.Integer(default=0, bounds=(0, len(STEPS) - 1))
    protection = param.ClassSelector(class_=Protection)
    page = param.Boolean(default=True)
    user = param.String(default="")
    kept = param.Number(default=0.0)
    tables = param.Callable(default=None)

    def __init__(self, **params: Any) -> None:
        super().__init__(protection=Protection(params["workspace"]), **params)
        self.bar = self._made_bar()
        # the bar hears their clicks in the page, and dims the old screen at once
        self.back = pn.widgets.Button(css_classes=["af-back"])
        self.next = pn.widgets.Button(css_classes=["af-next"], color="primary")
        self._screens: list[Any] = [None] * len(STEPS)
        self._watchers: list[tuple[param.Parameterized, Any]] = []
        self._main = stack(css_classes=["af-main"])
        self._ways = pn.Row(
            self.back, self.next, css_classes=["af-ways"], sizing_mode="stretch_width", margin=0
        )
        self.at_work = AtWork(self.workspace.data.coder)
        self.at_work.line.css_classes = ["af-soon"]
        self._root = stack(
            self.bar, self.at_work, self._main, self._ways, css_classes=self._classes(), design=Theme
        )
        self._refresh()
        self._show()

    def __panel__(self) -> pn.viewable.Viewable:
        return self._root

    def _made_bar(self) -> Bar:
        bar = Bar(
            steps=list(STEPS),
            captions=captions(self.workspace),
            step=self.step,
            screen=self.step,
            dark=self.workspace.dark,
            page=self.page,
            user=self.user,
            several=self.tables is not None,
            sizing_mode="stretch_width",
            margin=0,
        )
        bar.listen(self._act)
        bar.link(self, step="step")
        bar.link(self.workspace, dark="dark")
        return bar

    def _draw_again(self) -> None:
        """Draw everything again, if a browser has drawn only a part."""
        for owner, watcher in self._watchers:
            owner.param.unwatch(watcher)
        self._watchers = []
        self._screens = [None] * len(STEPS)
        self._main.objects = []
        self.bar = self._made_bar()
        # complete before it is shown: a browser that draws it has drawn everything
        if self.workspace.closed:
            self.give_up(OVER)
        else:
            self._refresh()
            self._show()
        self._root[0] = self.bar

    def _classes(self) -> list[str]:
        return ["af-app", *(["af-dark"] if self.workspace.dark else [])]

    @param.depends("workspace.dark", watch=True)
    def _darken(self) -> None:
        self.bar.dark = self.workspace.dark
        self._root.css_classes = self._classes()

    def _act(self, action: str) -> None:
        if action == "undo":
            self.workspace.draft.undo()
        elif action == "redo":
            self.workspace.draft.redo()
        elif action == "tables" and self.tables is not None:
            self.bar.tables = self.tables()
        elif action == "here" and not self.page and self.bar.drawn != self.bar.version:
            self._draw_again()

    def give_up(
        self, why: str = "This session is open in another tab. Reload this page to continue here."
    ) -> None:
        """Release the workspace: this page must not show stale content."""
        self._main.objects = [empty(why)]
        self._ways.visible = False
        self.bar.param.update(
            version=self.bar.version + 1, status=why, running=False, unsaved=False, table="", numbers=[],
            captions=["" for _ in STEPS], can_undo=False, can_redo=False, troubles=0,
        )  # fmt: skip

    @param.depends("workspace.closed", watch=True)
    def _close(self) -> None:
        if not self.page:
            self.give_up(OVER)

    @param.depends(
        "workspace.data.frame", "workspace.data.coding", "workspace.runs.finished", "workspace.runs.chosen", "workspace.starts.running",
        "workspace.starts.status", "workspace.starts.progress", "workspace.data.problems", "workspace.data.algorithms", "workspace.data.ks",
        "workspace.draft.spec", "protection.uniqueness", watch=True,
    )  # fmt: skip
    def _refresh(self) -> None:
        opened, starts = self.workspace.data, self.workspace.starts
        shares = list(starts.progress.values())
        bar_params = {
            "captions": captions(self.workspace),
            "can_undo": self.workspace.draft.can_undo,
            "can_redo": self.workspace.draft.can_redo,
            "status": starts.status,
            "running": starts.running,
            "share": sum(shares) / len(shares) if shares else 0.0,
            "troubles": len(opened.problems) if opened.frame is not None and not opened.coding else 0,
            "table": opened.table_name,
            "numbers": four_numbers(self.workspace, self.protection.at_risk),
            "unsaved": opened.frame is not None and not self.kept,
        }
        # one edit comes as several changes; a notebook's browser is told of each: what it has drawn is counted by them
        if not self.page or any(getattr(self.bar, name) != value for name, value in bar_params.items()):
            self.bar.param.update(version=self.bar.version + 1, **bar_params)

    @param.depends("workspace.drawings", watch=True)
    def _release_drawn(self) -> None:
        self._refresh()

    @param.depends("step", watch=True)
    def _show(self) -> None:
        """Show the screen of the step; build it at the first time."""
        at = self.step
        if self._screens[at] is None:
            before = _watchers_of(self.workspace)
            try:
                with pn.config.set(design=Theme):
                    self._screens[at] = pn.panel(SCREENS[at](workspace=self.workspace))
            except Exception:
                self.step = self.bar.step = self.bar.screen  # the screen that stays is the one that is marked
                raise
            earlier_ids = {id(watcher) for _, watcher in before}
            self._watchers += [
                watched for watched in _watchers_of(self.workspace) if id(watched[1]) not in earlier_ids
            ]
        # in one message: a browser that shows two screens for a moment lays out both
        with pn.io.hold():
            for number, screen in enumerate(self._screens):
                if screen is not None and number != at:
                    screen.visible = False
            if self._screens[at] not in self._main.objects:
                self._main.append(self._screens[at])
            self._screens[at].visible = True
            self.bar.param.update(step=at, screen=at)
            self.back.param.update(visible=at > 0, label=f"← {STEPS[at - 1]}" if at else "")
            last = at == len(STEPS) - 1
            self.next.param.update(visible=not last, label="" if last else f"{STEPS[at + 1]} →")


def _watchers_of(workspace: Workspace) -> list[tuple[param.Parameterized, Any]]:
    """Return everything that watches a workspace."""
    watched: dict[int, tuple[param.Parameterized, Any]] = {}
    for owner in workspace.watched:
        for of_param in owner.param.watchers.values():
            for watchers in of_param.values():
                watched |= {id(watcher): (owner, watcher) for watcher in watchers}
    return list(watched.values())


def application() -> App:
    """Return the app for the session that is being made; its workspace ends with it."""
    serve_styles()
    workspace = Workspace(schedule=scheduler(), aside=True)
    pn.state.on_session_destroyed(lambda context: workspace.close())
    return App(workspace=workspace)


def dashboard(
    table: Table | pd.DataFrame | None = None,
    *,
    name: str = "table",
    owner: str | PathLike[str] | None = None,
) -> App:
    """Return the dashboards in a notebook's cell.

    Runs go on threads of the notebook's own process. Uploads and the table itself are written to a temporary folder of
    the notebook's user, which is gone when the app is; what a notebook that was killed left is deleted an hour later, when
    the dashboards are used again.

    Parameters
    ----------
    table : Table or pandas.DataFrame, optional
        The table to begin with: n records, with its schema; for a frame the schema is guessed, to be edited on the screen.
    name : str
        What the table is called in flow files.
    owner : path, optional
        An owner's folder with marks of released people, so that a second release of the same people warns.

    Returns
    -------
    App
        Shown by being a cell's last value; ``app.workspace`` has the draft, the runs, and ``publish(id)``.

    Raises
    ------
    DataError
        If the frame has columns without a name, or values that are no plain ones.
    ParameterError
        If `table` is something else.
    """
    extension(inline=True)
    with pn.config.set(design=Theme):
        lock = threading.RLock()

        def one_by_one(change: Callable[[], None]) -> None:
            with lock:  # several runs end at once, each in its thread
                change()

        workspace = Workspace(
            owner=None if owner is None else Path(owner), schedule=one_by_one, limits=local_limits()
        )
        if isinstance(table, Table):
            workspace.opener.open_table(table, name)
        elif isinstance(table, pd.DataFrame):
            workspace.opener.open_frame(table, name=name)
        elif table is not None:
            raise ParameterError("dashboard takes an anonflow.Table or a pandas DataFrame")
        return App(workspace=workspace, page=False)
