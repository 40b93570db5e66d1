"""The screen Data: open a table, and choose roles and kinds of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import panel as pn
import param
from markupsafe import Markup

from anonflow import datasets
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import (
    LightTable,
    button,
    card,
    download,
    facts,
    html,
    in_lines,
    items,
    notice,
    say,
    soft,
    stack,
    titled,
)
from anonflow.dashboards.components.markup import unique_bars
from anonflow.dashboards.components.option_field import option_field
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.data.advice import QUICK, BlankPrices, DataAdvice
from anonflow.dashboards.data.column_form import (
    ANSWERS,
    COLUMNS,
    NOT_PUBLISHED,
    ColumnChoice,
    about_datasets,
)
from anonflow.dashboards.session.files.hierarchy_files import MOST as HIERARCHY
from anonflow.dashboards.session.files.hierarchy_files import (
    Attached,
    attach,
    is_codebook,
    is_hierarchy_name,
    matched_column,
)
from anonflow.dashboards.session.files.paths import names_a_dataset, safe_name
from anonflow.dashboards.session.files.table_sources import read_settings
from anonflow.dashboards.session.files.waiting_files import WaitingFiles
from anonflow.dashboards.session.open_table import UNCODED
from anonflow.dashboards.session.opener import NOTHING_OPENED
from anonflow.dashboards.session.project import ENDING
from anonflow.dashboards.session.screen_words import CONFIRM, on_screen, roles_wait
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.screen_work import Background
from anonflow.dashboards.work.user_limits import MEGABYTE
from anonflow.errors import AnonflowError
from anonflow.hierarchy.wording import plural
from anonflow.table.files.parquet_metadata import is_parquet
from anonflow.table.schema import KINDS, MISSING_RULES, ROLES

RULES = {
    "refuse": "such a record prevents a run: choose another rule first",
    "value": "a missing value is a value of its own, and is published as an empty cell",
    "suppress": "such a record is published as * in this column, because only * covers a missing value",
    "drop": "such a record is left out of the release",
}
"""The treatment of a record without a value, by rule, in words."""

OWN = "Your own file"

BUILT_IN = "Built-in table"
PROJECT = "A flow or project"

SHOWN = {
    "column": ("Column", 132, ""),
    "values": ("Its values", 156, ""),
    "who": (
        "Who could know it ▾", 124,
        "everybody: it stands in a register, or is seen · acquaintances: neighbours, colleagues or family know it; anonflow "
        "protects from both, and counts what strangers find without it · nobody: it is to be protected. A question mark: this is a guess",
    ),
    "role": (
        "Role ▾", 140,
        "quasi-identifier: others may know it · sensitive: to be protected · insensitive: published "
        "as it is · identifier: never published · unit: the person of a row, where people have several rows · household: of the unit",
    ),
    "kind": ("Kind ▾", 96, "how a quasi-identifier may be generalized"),
    "no value": ("Without a value ▾", 92, " · ".join(f"{rule}: {words}" for rule, words in RULES.items())),
    "codes": ("Codes ✎", 68, "texts that stand in place of a number, such as N, R: of kind numeric"),
    "form": (
        "Form ✎", 96,
        'how its numbers or dates are written, such as decimal: "," or dates: d.m.y; with write: source the release has them so, too',
    ),
    "why": ("Why", 214, ""),
}  # fmt: skip
"""Title, width and tooltip of each column of the table of columns."""

GROWS = {"column": 1, "why": 3}
"""Columns that share the room which the others leave, and in which parts; they are as wide as above at least."""

CHOICES: dict[str, list[str]] = {
    "who": list(ANSWERS),
    "role": [*ROLES, NOT_PUBLISHED],
    "kind": list(KINDS),
    "no value": sorted({rule for all in MISSING_RULES.values() for rule in all}),
}
"""What is chosen in its cells."""

MANY = {
    "who": ("Who could know the ticked columns", 290),
    "role": ("Role of the ticked columns", 230),
    "kind": ("Kind of the ticked columns", 230),
}
"""What is chosen for several columns: label and width."""

CHOOSE = "choose…"
"""What a list says before something is chosen."""

FIRST = 100
"""Records that are listed as they are."""

_ROLES = {
    "quasi-identifier": "background-color: var(--af-accent-soft); font-weight: 600;",
    "sensitive": "background-color: var(--af-warn-soft); font-weight: 600;",
    "identifier": "background-color: var(--af-bad-soft);",
    "weight": "background-color: var(--af-good-soft);",
    "unit": "background-color: var(--af-bad-soft); font-weight: 600;",
    "household": "background-color: var(--af-bad-soft);",
    NOT_PUBLISHED: "color: var(--af-muted); font-style: italic;",
}

STEPS = """
<ol class="steps">
<li><b>Data</b>: open a table, and say which columns others may know of a person.
<div class="told">They are its quasi-identifiers; what is to be protected is sensitive.</div></li>
<li><b>Prepare</b>: recode the table before you anonymize it, as statistical offices do; often this is not necessary.</li>
<li><b>Risk</b>: see who stands alone, and by which columns.</li>
<li><b>Protect</b>: choose among how many records each one hides, and by which methods.</li>
<li><b>Compare</b>: run them, and see what each costs.</li>
<li><b>Explore</b>: look at a result, column by column and record by record.</li>
<li><b>Publish</b>: a release with its checks, its report, and the flow that repeats it.</li>
</ol>
"""
"""The steps of the work."""


class _ColumnTable(LightTable):
    """The table of columns, whose long texts take the room that is left.

    Panel has no least width of a column, and gives what a configuration says of one to its neighbour where rows have boxes to tick.
    """

    def _config_columns(self, column_objs: list[Any]) -> list[Any]:
        columns = super()._config_columns(column_objs)
        for column in columns:
            if (name := column.get("field")) in GROWS:
                column |= {"minWidth": SHOWN[name][1], "widthGrow": GROWS[name]}
        return columns


class DataScreen(pn.viewable.Viewer):
    """Open a table; see its first rows, types and missing values; choose roles and kinds of its columns."""

    workspace = param.ClassSelector(class_=Workspace)
    choice = param.ClassSelector(class_=ColumnChoice)
    advice = param.ClassSelector(class_=DataAdvice)
    title = "Data"

    def __init__(self, **params: Any) -> None:
        space = params["workspace"]
        super().__init__(choice=ColumnChoice(space), advice=DataAdvice(space), **params)
        self.reading = Background(self.workspace.turns, at_once=True)
        self._options: dict[str, Any] = {}
        self._waiting_files = WaitingFiles(space.place.path)
        self._attached = Attached()
        self._is_reading = False
        self._refused_file: tuple[str, Path] | None = None
        self._go_on: Callable[[], None] | None = None
        self._leave: Callable[[], None] | None = None
        self._opening()
        if self.workspace.opener.not_opened:
            self._refused_for(self.workspace.opener.not_opened)
        self._looking()
        self._show_frame()
        self._show_columns()
        self._show_bars()
        self._show_guessed()
        self._show_linked()
        self._show_rules()

    # ---------------------------------------------------------------------------------- a table in

    def _opening(self) -> None:
        self._descriptions = about_datasets()
        self.way = pn.widgets.RadioButtonGroup(
            label="Where the table comes from",
            options=[BUILT_IN, OWN, PROJECT],
            value=BUILT_IN,
            sizing_mode="stretch_width",
        )
        first = next(iter(self._descriptions))
        self.dataset = pn.widgets.Select(
            label=BUILT_IN, options=list(self._descriptions), value=first, sizing_mode="stretch_width"
        )
        self.description = html()
        self.option_fields = in_lines(end=True)
        self.hierarchies = pn.widgets.Checkbox(label="with the hierarchies that go with it", value=False)
        self.open = button("Open this table", self._open_dataset, color="primary")
        limits = self.workspace.limits
        kinds = "CSV, Parquet, Excel, SPSS, Stata or SAS" if limits.statistics else "CSV, Parquet or Excel"
        kinds += " file, alone or with its hierarchies, its codebooks and its flow"
        self.dropper = DiskDropper(self.workspace, self._open_file, self._refused, kinds, multiple=True)
        caps = [] if limits.upload_bytes is None else [f"{limits.upload_bytes / MEGABYTE:,.0f} MB"]
        caps += [] if limits.rows is None else [f"{limits.rows:,} records"]
        most = f"At most {' and '.join(caps)}. " if caps else ""
        self.about_upload = html(
            Markup(
                "<p class='soft'>{}{} <code>hierarchy_age.csv</code>. {} <code>value,label</code>. {}</p>"
            ).format(
                most,
                "The first line of a CSV file names the columns. Hierarchies and codebooks are matched with columns by their names, such as",
                "A codebook gives the label of each code of a column, and begins with the line",
                "Your file stays in a private folder and is deleted when its session ends.",
            )
        )
        self.delimiter = pn.widgets.Select(
            label="Delimiter",
            options={"found in the file": "", "comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"},
            value="",
            width=180,
        )
        self.encoding = pn.widgets.TextInput(label="Encoding", placeholder="found in the file", width=150)
        self.missing = pn.widgets.TextInput(
            label="Texts that stand for a missing value", placeholder="such as NA, ?", width=220
        )
        self.skip = pn.widgets.IntInput(label="Lines above the header", value=0, start=0, width=170)
        self.sheet = pn.widgets.TextInput(label="Sheet of a workbook", placeholder="the first one", width=180)
        self.codes = pn.widgets.Checkbox(
            label="Codes that an SPSS, Stata or SAS file declares missing are values",
            align="end",
            visible=limits.statistics,
        )
        self.again = button("Read the file again", self._read_again, align="end", visible=False)
        written = pn.Card(
            in_lines(
                self.delimiter, self.encoding, self.missing, self.skip, self.sheet, self.codes, self.again
            ),
            header=pn.pane.HTML("How the CSV file is written, and how others are read", margin=(4, 6)),
            collapsed=True,
            sizing_mode="stretch_width",
        )
        self.wrong, self.dropped, self.replaced = notice("af-bad"), notice("af-note"), html()
        self.replace = button("Open it, and give this work up", self._replace, color="danger")
        self.keep_open = button("Keep what is open", self._keep_open, color="primary")
        self._question = stack(
            self.replaced,
            in_lines(self.keep_open, self.replace),
            css_classes=["af-warn"],
            visible=False,
        )
        project = "Flow (.yaml) or project (.anonflow.zip)"
        self.projects = DiskDropper(self.workspace, self._open_project, self._refused, project)
        about_projects = html(
            Markup("<p class='soft'>{} <code>anonflow run</code> {}</p>").format(
                "A project is what Keep this work saves, on this screen below an open table. A flow is the file that",
                "takes. If the table is not in the file, open the table next.",
            )
        )
        self.waiting = notice("af-note")
        self.without = button("Open a table without it", self._forget_project, visible=False)
        ways = {
            BUILT_IN: stack(self.dataset, self.description, self.option_fields, self.hierarchies, self.open),
            OWN: stack(self.dropper, self.about_upload, written),
            PROJECT: stack(self.projects, about_projects),
        }
        pn.bind(self._about_dataset, self.dataset, watch=True)
        for way, part in ways.items():
            part.visible = self.way.rx() == way
        self._about_dataset()
        self._ways_in = stack(self.way, *ways.values(), visible=self.workspace.data.frame is None)
        self.unfold = button(
            "Open another table",
            lambda: self._ways_in.param.update(visible=not self._ways_in.visible),
            visible=False,
        )
        self._source = card(
            "Open a table", self._question, AtWork(self.reading), self.waiting, self.without, self.unfold,
            self._ways_in, self.dropped, self.wrong,
        )  # fmt: skip

    def _about_dataset(self, *names: str) -> None:
        name = self.dataset.value
        say(self.description, soft(self._descriptions[name]))
        self._options = {
            option.name: option_field(option, option.default, width=190)
            for option in datasets.declared(name).values()
        }
        self.option_fields.objects = list(self._options.values())
        self.hierarchies.visible = any(
            entry.get("kind") == "hierarchy" for entry in datasets.schema(name, hierarchies=True).values()
        )

    def _open_dataset(self) -> None:
        name = self.dataset.value
        options = {
            option: widget.value
            for option, widget in self._options.items()
            if widget.value != datasets.options(name)[option]
        }
        if self.hierarchies.visible and self.hierarchies.value:
            options["hierarchies"] = True
        described = datasets.describe().set_index("name").loc[name]
        n = self._options["n"].value if "n" in self._options else described["rows"]
        # one that must be fetched takes its time, however small it is
        self._ask(
            name,
            lambda: self._aside(
                f"Opening {name}.",
                lambda: self.workspace.opener.read_dataset(name, **options),
                n=int(n or 0) if described["available"] else None,
            ),
        )

    def _ask(self, name: str, go_on: Callable[[], None], leave: Callable[[], None] = lambda: None) -> None:
        """Open another table, after a question if work would be lost: then `go_on` or `leave` is called with the answer."""
        if not self.workspace.has_work:
            go_on()
            return
        if self._leave is not None:  # of the question before
            self._leave()
        self._go_on, self._leave = go_on, leave
        self._is_reading = True  # what was dropped with it waits
        runs = len(self.workspace.runs.finished)
        lost = f"its settings and {plural(runs, 'run')}" if runs else "its settings"
        self.replaced.object = str(
            Markup("<p role='alert'>{}</p>").format(
                f"Opening {name} closes {self.workspace.data.table_name}: {lost} are given up. To keep them, save the project below first, or open "
                f"{name} beside it: in another tab of this browser, or from the menu at the table's name."
            )
        )
        self._question.visible = True

    def _close_question(self) -> None:
        self._go_on = self._leave = None
        self._is_reading = self._question.visible = False

    def _replace(self) -> None:
        go_on = self._go_on
        self._close_question()
        self._waiting_files.wait_anew()
        if go_on is not None:
            go_on()

    def _keep_open(self) -> None:
        leave = self._leave
        self._close_question()
        for place in self._waiting_files.files().values():
            self._waiting_files.forget(place)
        self.dropped.visible = False
        if leave is not None:
            leave()

    def _written(self, name: str) -> dict[str, Any]:
        """Return how a file is read, as it is said here; nothing of a Parquet file."""
        form = {
            "delimiter": self.delimiter.value,
            "encoding": self.encoding.value.strip(),
            "missing": [text.strip() for text in self.missing.value.split(",") if text.strip()],
            "skip": self.skip.value,
            "sheet": self.sheet.value.strip(),
            "codes": "values" if self.codes.value else "",
        }
        return read_settings(name, form)

    def _open_file(self, name: str, path: Path) -> None:
        """Take a file that was dropped, alone or with others: a table, a hierarchy, a flow or a project."""
        workspace, waiting = self.workspace, self._waiting_files
        if name.lower().endswith(ENDING):
            self._open_project(name, path)
            return
        together, frame = waiting.arrive(), workspace.data.frame
        workspace.place.checked_files()
        if name.lower().endswith((".yaml", ".yml")):
            place = waiting.put(name, path, "flow")
            if frame is None and names_a_dataset(place, workspace.limits.flow_bytes):
                self._open_project(name, place)
                waiting.forget(place)
                return
            self._say_waiting()
            self._open_waiting()
            return
        columns = [] if frame is None else list(map(str, frame.columns))
        goes_with_it = matched_column(name, columns) is not None
        beside = together and not self._is_reading
        if is_hierarchy_name(name) or (goes_with_it and (beside or is_codebook(path))):
            waiting.put(name, path, "hierarchy")
            self._attach()
            return
        if path.stat().st_size <= HIERARCHY:  # it may be a hierarchy of the table that comes with it
            waiting.put(name, path, "perhaps a hierarchy", copied=True)
        self._forget_refused()
        aside = workspace.opener.set_aside(path)  # the upload's own place is emptied
        self._ask(name, lambda: self._read(name, aside), lambda: aside.unlink(missing_ok=True))

    def _attach(self) -> None:
        """Give the open table the hierarchies that came with it; before it is open, they wait."""
        workspace, waiting = self.workspace, self._waiting_files
        if workspace.data.frame is None or self._is_reading:
            self._say_waiting()
            return
        table = safe_name(workspace.data.table_name)
        columns = list(map(str, workspace.data.frame.columns))
        for name, place in waiting.files("perhaps a hierarchy").items():
            if waiting.is_old(place):
                waiting.forget(place)
            elif safe_name(name) != table and matched_column(name, columns) is not None:
                waiting.use_as(place, "hierarchy")
        files = waiting.files("hierarchy")
        if not files:
            self._open_waiting()
            return
        now = workspace.data.complete(lambda: attach(workspace, files))
        for name, place in files.items():
            # files that fit no column of this table may belong to the next table
            if waiting.is_old(place) or matched_column(name, columns) is not None:
                waiting.forget(place)
        both = dict.fromkeys([*self._attached.columns, *now.columns])  # what is attached twice is named once
        self._attached = Attached(
            tuple(both),
            (*self._attached.refusals, *now.refusals),
            (*self._attached.labelled, *now.labelled),
        )
        lines = [Markup("<p>{}.</p>").format(sentence) for sentence in self._attached.sentences()[:12]]
        say(self.dropped, Markup("").join(lines))
        self._open_waiting()

    def _say_waiting(self) -> None:
        names = self._waiting_files.files("hierarchy", "flow")
        waits = names and (self.workspace.data.frame is None or self._is_reading)
        say(self.dropped, f"Waiting for the table: {', '.join(names)}." if waits else "")

    def _open_waiting(self) -> None:
        """Open the flow that came along, once its table is there; without a file of its own, it waits for the next."""
        waiting = self._waiting_files
        flows = waiting.files("flow")
        if not flows or self._is_reading or self.workspace.data.frame is None:
            return
        name, place = next(iter(flows.items()))
        if waiting.is_old(place):
            waiting.forget(place)
            return
        self._aside(
            f"Reading {name}.",
            lambda: self.workspace.opener.read_project_file(place),
            opened=lambda: waiting.forget(place),
        )

    def _read(self, name: str, path: Path) -> None:
        """Read a file that was uploaded; where it cannot be read like this, it stays to be read again."""
        form, workspace = self._written(name), self.workspace
        self._refused("")

        def failed() -> None:
            if path.exists() and not is_parquet(name):
                self._refused_file = name, path
            else:
                path.unlink(missing_ok=True)
            self.again.visible = self._refused_file is not None

        self._aside(
            f"Reading {name}.",
            lambda: workspace.opener.read_file(name, path, tell=self.reading.tell, **form),
            failed,
        )

    def _read_again(self) -> None:
        if self._refused_file is not None:
            self._read(*self._refused_file)
        else:
            name = self.workspace.data.table_name
            form = self._written(name)
            self._ask(
                name,
                lambda: self._aside(
                    "Reading the file again.",
                    lambda: self.workspace.opener.reread(tell=self.reading.tell, **form),
                ),
            )

    def _open_project(self, name: str, path: Path) -> None:
        file = self.workspace.opener.set_aside(path)

        def read() -> Any:
            try:
                return self.workspace.opener.read_project_file(file)
            finally:
                file.unlink(missing_ok=True)

        self._ask(name, lambda: self._aside(f"Reading {name}.", read), lambda: file.unlink(missing_ok=True))

    def _aside(
        self,
        status: str,
        read: Any,
        failed: Any = lambda: None,
        opened: Any = lambda: None,
        n: int | None = None,
    ) -> None:
        """Read something in a thread, or at once if it has `n` records and these are few; what comes back opens it here."""
        workspace, before = self.workspace, self.workspace.starts.status
        self._refused("")
        workspace.starts.status = status
        self._ways_in.loading = self._is_reading = True

        def done(opening: Any) -> None:
            self._ways_in.loading = self._is_reading = False
            self._forget_refused()
            self._attached = Attached()
            self.dropped.visible = False
            if self._try(opening):  # what failed is tried again when another file comes
                self.skip.value, self.sheet.value = 0, ""  # of this file alone
                opened()
                self._attach()
            if workspace.opener.waits_for:
                self.way.value = OWN
            self._show_waiting()

        def refused(sentence: str) -> None:
            self._ways_in.loading = self._is_reading = False
            workspace.starts.status = before if workspace.data.frame is not None else NOTHING_OPENED
            self._refused(sentence)
            failed()

        def stopped() -> None:
            refused("")
            self._say_waiting()

        if n is None:
            self.reading.start(read, done, refused, status[:-1], stopped)
        else:
            self.reading.of_records(n, read, done, refused, status[:-1], stopped)

    @property
    def _is_read_in_ways(self) -> bool:
        """Whether the open table is a file that may be read in another way."""
        source = self.workspace.data.source
        return source.file is not None and source.parquet is None

    def _forget_project(self) -> None:
        self.workspace.opener.forget_project()
        self._show_waiting()

    def _show_waiting(self) -> None:
        name = self.workspace.opener.waits_for
        self.without.visible = bool(name)
        text = Markup("<p>A flow or project waits for its table: <b>{}</b>.</p>").format(name)
        say(self.waiting, text if name else "")

    def _forget_refused(self) -> None:
        """Forget the file that could not be read."""
        if self._refused_file is not None:
            self._refused_file[1].unlink(missing_ok=True)
            self._refused_file = None
        self.again.visible = self._is_read_in_ways

    def _try(self, opening: Any) -> bool:
        self._refused("")
        self.open.loading = True
        try:
            opening()
        except AnonflowError as error:
            self._refused_for(error.problems)
            return False
        finally:
            self.open.loading = False
        return True

    def _refused_for(self, problems: Sequence[str]) -> None:
        """Show the first problems of a file, a flow or a link that was not opened."""
        self._refused(" ".join(map(on_screen, problems[:3])))

    def _refused(self, sentence: str) -> None:
        open_still = self.workspace.data.table_name
        still = Markup(" <b>{}</b> is still open.").format(open_still) if open_still else ""
        text = Markup("<p role='alert'><b>Not opened.</b> {}{}</p>").format(sentence, still)
        say(self.wrong, text if sentence else "")

    # ------------------------------------------------------------------------------ what it is like

    def _looking(self) -> None:
        editors: dict[str, Any] = dict.fromkeys(COLUMNS)
        editors |= {name: {"type": "list", "values": values} for name, values in CHOICES.items()}
        editors["role"]["autocomplete"] = False
        # an editor empties a cell that it leaves if it does not know the value: it knows guesses, but does not offer them
        guesses = [
            {"label": f"{who}?", "value": f"{who}?", "elementAttributes": {"style": "display: none"}}
            for who in ANSWERS
        ]
        editors["who"]["values"] = [*CHOICES["who"], *guesses]
        editors |= {"codes": {"type": "input"}, "form": {"type": "input"}}
        titles = titled(SHOWN)
        titles["widths"] = {name: width for name, width in titles["widths"].items() if name not in GROWS}
        self.columns = _ColumnTable(
            pd.DataFrame(columns=list(COLUMNS)),
            show_index=False,
            editors=editors,
            layout="fit_columns",
            sortable=False,
            selectable="checkbox",
            hidden_columns=["type", "distinct", "missing"],
            formatters={"values": "html", "why": "textarea", "form": "textarea"},
            **titles,
            configuration={"columnDefaults": {"headerWordWrap": True}},
            sizing_mode="stretch_width",
            css_classes=["af-columns"],
        )
        self.columns.on_edit(self._edited)
        self.columns.style.map(lambda role: _ROLES.get(role, ""), subset=["role"])
        self.columns.style.map(
            lambda who: "color: var(--af-muted); font-style: italic;" if str(who).endswith("?") else "",
            subset=["who"],
        )
        self.refusal, self.trouble = notice("af-bad"), notice("af-warn")
        self._batch_fields = {
            name: pn.widgets.Select(
                label=label,
                options={CHOOSE: "", **dict(zip(CHOICES[name], CHOICES[name], strict=True))},
                width=width,
            )
            for name, (label, width) in MANY.items()
        }
        self.many_answers, self.many_roles, self.many_kinds = self._batch_fields.values()
        for field, widget in self._batch_fields.items():
            pn.bind(partial(self._chosen_for_many, field), widget, watch=True)
        self.confirm = button(CONFIRM, self.choice.confirm, color="primary")
        self.guessed, self.rules = notice("af-note"), html()
        self.price = button("What does each way cost?", self.advice.price)
        self.linked = notice("af-warn")
        self.guess = button("First guess again", self.choice.infer)
        self.code = button("Code the table", self.workspace.data.code_again, visible=False)
        self.sentence, self.bars, self.counts = html("", "af-unique"), html(), html()
        self.first = LightTable(
            pd.DataFrame(),
            show_index=False,
            disabled=True,
            pagination="local",
            page_size=10,
            layout="fit_data_fill",
            sortable=False,
            selectable=False,
            sizing_mode="stretch_width",
        )
        self._columns_card = card(
            "Columns",
            AtWork(self.choice.background),
            self.columns,
            self.refusal,
            self.trouble,
            self.code,
            in_lines(*self._batch_fields.values()),
            self.guessed,
            in_lines(self.confirm, self.guess),
            self.linked,
            lead=(
                "Of each column: who could know a person's value? The answer sets its role; only you know it. Click an answer, a role or a kind to change it. "
                "To change several columns at once, tick them and choose below the table. A column of numbers may have codes in place of some of them: type these "
                "codes, separated by commas."
            ),
        )
        self._blanks_card = card(
            "Cells without a value", self.rules, self.price, AtWork(self.advice.background),
            lead="Only you know whether a blank says something of its person. Choose a way in the table above, under Without a value.",
        )  # fmt: skip
        self._unique_card = card("Who stands alone", self.sentence, self.bars)
        self._first_card = card("First rows", self.counts, self.first)
        self.with_table = pn.widgets.Checkbox(
            label="with the table and the seeds of the runs: the file is then the owner's",
            value=False,
            sizing_mode="stretch_width",
            css_classes=["af-wraps"],
        )
        self.save = download(
            "Save the project", self._project_file, f"project{ENDING}", "af-save", color="primary", width=200
        )
        self._keep_card = card(
            "Keep this work",
            pn.Row(self.save, self.with_table),
            lead=(
                "One file with the flow, the hierarchies, and the runs with their measures and notes. It holds names of "
                "columns and labels of hierarchies, and no record. To open it later, use A flow or project, above."
            ),
        )
        self._steps_card = card("What happens here", html(Markup(STEPS)))
        self._above, self._below = stack(), stack(self._steps_card)
        self._page = pn.Column(self._above, self._source, self._below, sizing_mode="stretch_width")

    def _project_file(self) -> bytes:
        workspace = self.workspace
        self.save.filename = f"{workspace.draft.spec.flow}{ENDING}"
        return workspace.save_project(bool(self.with_table.value))

    def _chosen_for_many(self, field: str, value: str) -> None:
        if not value:
            return
        rows = self.choice.rows
        ticked = [] if rows is None else [str(rows["column"].iloc[at]) for at in self.columns.selection]
        if self.choice.choose_many(ticked, field, value):
            self.columns.selection = []
        self._batch_fields[field].value = ""

    def _edited(self, event: Any) -> None:
        rows = self.choice.rows
        if rows is None or not 0 <= event.row < len(rows):
            return
        self.choice.choose(str(rows["column"].iloc[event.row]), event.column, event.value)

    @param.depends("choice.rows", watch=True)
    def _show_columns(self) -> None:
        self._show_counts()
        rows = self.choice.rows
        frame = pd.DataFrame(columns=list(COLUMNS)) if rows is None else rows.copy()
        before = self.columns.value
        if len(before) == len(frame) and list(before["column"]) == list(frame["column"]):
            # only the cells that changed, so that the keyboard stays where it is
            changes = {
                name: [(at, new) for at, (old, new) in enumerate(zip(before[name], frame[name], strict=True))
                       if old != new]
                for name in COLUMNS
                if name != "column"
            }  # fmt: skip
            changes = {name: cells for name, cells in changes.items() if cells}
            if changes:
                self.columns.patch(changes)
        else:
            self.columns.value = frame
        self._say()

    @param.depends("choice.bars", "choice.counting", watch=True)
    def _show_bars(self) -> None:
        sentence = self.choice.sentence()
        self.sentence.object = f"<p><b>{escape(sentence)}</b></p>" if sentence else ""
        self.bars.object = unique_bars(self.choice.bars)

    @param.depends("choice.refusal", watch=True)
    def _say(self) -> None:
        say(self.refusal, self.choice.refusal)

    @param.depends("workspace.data.problems", "workspace.data.table", "workspace.data.frame", watch=True)
    def _show_trouble(self) -> None:
        """Show the problems of the column declarations; Protect shows the others."""
        opened = self.workspace.data
        wrong = opened.frame is not None and opened.table is None and not opened.coding
        self.code.visible = opened.problems == (UNCODED,)
        wrongly = "" if self.code.visible else Markup("<p><b>The columns cannot be used like this.</b></p>")
        say(self.trouble, wrongly + items(opened.problems[:6]) if wrong else "")

    @param.depends("workspace.data.frame", watch=True)
    def _show_frame(self) -> None:
        frame = self.workspace.data.frame
        self.unfold.visible = frame is not None
        self.open.color = "primary" if frame is None else "default"
        self.again.visible = self._is_read_in_ways or self._refused_file is not None
        self._show_waiting()
        if frame is None:
            self._ways_in.visible = True
            self._above.objects, self._below.objects = [], [self._steps_card]
            self.first.value = pd.DataFrame()
            return
        if self.workspace.data.source.dataset in self._descriptions:
            self.dataset.value = self.workspace.data.source.dataset
        self._show_counts()
        first = self.workspace.data.named.head(FIRST).reset_index(drop=True)
        # a title is markup to the table: names are anybody's
        self.first.titles = {str(name): escape(str(name)) for name in first.columns}
        self.first.value = first
        # a table that is not seen is not drawn right: it is put in place with its rows
        self._ways_in.visible = False
        self._above.objects = [self._columns_card, self._blanks_card, self._unique_card, self._first_card]
        self._below.objects = [self._keep_card]

    @param.depends("workspace.data.answers", "workspace.draft.spec", "workspace.data.frame", watch=True)
    def _show_guessed(self) -> None:
        """Say of which columns nobody has confirmed the role."""
        names = self.workspace.data.unconfirmed(self.workspace.draft.spec)
        self.confirm.visible = bool(names)
        say(self.guessed, roles_wait(names) if names else "")

    @param.depends("advice.warnings", watch=True)
    def _show_linked(self) -> None:
        """Name the columns that lead to quasi-identifiers, or to single people."""
        lines = [Markup("<p>{}.</p>").format(on_screen(text)) for text in self.advice.warnings]
        say(self.linked, Markup("").join(lines))

    @param.depends("advice.prices", "advice.busy", "advice.problem", "workspace.draft.spec", watch=True)
    def _show_rules(self) -> None:
        """Explain the ways with blanks, and show their prices once there are any."""
        advice = self.advice
        table = items(Markup("<b>{}</b>: {}.").format(*rule) for rule in RULES.items())
        if advice.prices:
            ways = list(dict.fromkeys(way for column_prices in advice.prices for way in column_prices.losses))
            rows = [
                (
                    Markup("<b>{}</b>").format(column_prices.column),
                    f"{column_prices.blanks:,}",
                    *(self._price(column_prices, way) for way in ways),
                )
                for column_prices in advice.prices
            ]
            records = min(QUICK, len(self.workspace.data.frame))
            table += Markup("<p>{}</p>{}").format(
                f"Information loss (GCP) of a quick run on {records:,} records, by the way with the blanks of each column:",
                facts(("column", "blanks", *ways), rows, range(1, 2 + len(ways))),
            )
        table += soft(advice.problem, "status")
        self.rules.object = str(table)
        self.price.disabled = advice.busy

    def _price(self, prices: BlankPrices, way: str) -> Markup | str:
        loss = prices.losses.get(way)
        if loss is None:
            return "–"
        text = f"{loss:.3f}" + (f", {plural(prices.blanks, 'record')} left out" if way == "drop" else "")
        chosen = self.choice.declared(prices.column)
        is_chosen = way == (chosen.missing or MISSING_RULES[str(chosen.kind)][0])
        return Markup("<b>{} ✓</b>").format(text) if is_chosen else text

    def _show_counts(self) -> None:
        frame, column_facts = self.workspace.data.frame, self.choice.about()
        if frame is None:
            return
        missing = sum(column.missing for column in column_facts.values())
        self._blanks_card.visible = bool(missing)
        without = f", {plural(missing, 'cell')} without a value" if column_facts else ""
        size = f"{plural(len(frame), 'record')}, {plural(frame.shape[1], 'column')}{without}."
        say(self.counts, soft(f"{size} These are your records as they are: nobody else sees them."))

    def __panel__(self) -> pn.viewable.Viewable:
        return self._page
