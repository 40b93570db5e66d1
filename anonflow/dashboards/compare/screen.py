"""The screen Compare: run, cancel, and see what each method costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import panel as pn
import param
from bokeh.models.widgets.tables import NumberFormatter
from markupsafe import Markup

from anonflow.algorithms.budget import AUTO
from anonflow.algorithms.registry import REGISTRY, look_of
from anonflow.archive import zipped
from anonflow.dashboards.compare.model import LABELS, RISKS, CompareModel
from anonflow.dashboards.compare.utility_card import UtilityCard
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.direction import arrow, directed, sentence
from anonflow.dashboards.components.figure_files import figures_of_runs
from anonflow.dashboards.components.html import (
    LightTable,
    button,
    card,
    download,
    empty,
    facts,
    html,
    in_lines,
    items,
    labelled,
    notice,
    progress,
    say,
    soft,
    stack,
    titled,
)
from anonflow.dashboards.components.run_select import RunSelect, names_of_runs
from anonflow.dashboards.components.shown_part import Screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import over_budget
from anonflow.drawing.comparisons import pairs
from anonflow.drawing.figures import against_k
from anonflow.drawing.frontier import risk_and_loss
from anonflow.errors import AnonflowError
from anonflow.hierarchy.wording import plural

RUN = "Run"

FIVE = ["greedy", "hungarian", "nh", "k-member", "mondrian"]
"""Methods of the papers whose promises are alike: nobody is likelier than 1/k. Good classes are among them, not cuts alone."""

DRAWN = 3
"""Measures that are drawn before others are ticked: as many as stand in a row."""

SECONDS = "of the method alone, added up over partitions, without compiling; lower is better"

_COLUMNS = {
    "mark": ("", 36, ""),
    "run": ("run", 190, ""),
    "partition": ("partition", 95, ""),
    "gcp": (arrow("GCP", "gcp"), 80, sentence("gcp")),
    "usefulness": (arrow("usefulness", "usefulness"), 112, sentence("usefulness")),
    "suppressed": (arrow("suppressed", "suppressed"), 124, ""),
    "seconds": (arrow("seconds", "seconds"), 85, SECONDS),
    "checks": ("checks", 110, ""),
    "best": ("frontier", 85, "best: no run has less of both risk and loss"),
    "columns": (arrow("loss by column", "gcp"), 120, "what each column loses; lower is better"),
    "records": ("records by loss", 120, "how many records lose how much, from nothing to everything"),
}
"""Title, width and tooltip of each column of the table of runs."""

HIDDEN = ["id", "problem"]
"""Its columns that nobody sees."""

_NUMBERS = {"gcp": "0.0000", "usefulness": "0.0000", "suppressed": "0,0", "seconds": "0.00"}
"""Its numbers, and how they are written."""


class CompareScreen(Screen):
    """Runs side by side."""

    title = "Compare"
    model = param.ClassSelector(class_=CompareModel, constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, model=CompareModel(workspace), **params)
        self._make_controls()
        self._make_results()
        self._make_pair()
        self._make_history()
        controls = (
            labelled(self.methods),
            in_lines(self.ks, self.five, end=True),
            self.notice,
            pn.Row(self.run, self.cancel),
        )
        self.lay_out(
            "Every chosen method with every chosen k, side by side: what it loses, how useful the result is, how long it takes, and how "
            "well it protects.",
            card(RUN, *controls, self.progress), self.nothing, self.results, self.pair, self.history,
        )  # fmt: skip
        self._show_controls()
        self._show_progress()
        self._show_results()
        self._show_history()
        self.draw_after(workspace.runs, "finished", self._show_results)
        self.draw_after(workspace.runs, "chosen", self._show_chosen)
        self.draw_after(self.model, ["risk", "measured", "busy", "problem"], self._show_frontier)
        self.draw_after(self.model, ["first", "second"], self._show_pair)
        self.draw_after(workspace.draft, "spec", self._show_history)

    # ------------------------------------------------------------------------------------- controls

    def _make_controls(self) -> None:
        self.methods = pn.widgets.CheckBoxGroup(
            options=list(REGISTRY), inline=True, label="Methods", css_classes=["af-methods"]
        )
        self.ks = pn.widgets.TextInput(label="k, one or several", placeholder="5, 10, 25", width=220)
        self.five = button(
            f"The papers' five: {', '.join(FIVE)}",
            lambda: self.workspace.draft.set_algorithms(FIVE) if self.workspace.data.table else None,
            align="end",
        )
        self.run = button(RUN, self._start, css="af-run", color="primary", width=170)
        self.cancel = button(
            "Cancel", self.workspace.starts.cancel, css="af-cancel", color="danger", width=120
        )
        self.notice = notice("af-said")
        self.progress = html("", "af-progress")
        pn.bind(self._methods_changed, self.methods, watch=True)
        pn.bind(self._ks_changed, self.ks, watch=True)

    def _methods_changed(self, names: list[str]) -> None:
        if not names or self.workspace.data.frame is None:
            # the last one stays: a flow without a method is none
            self._show_controls()
        elif set(names) != set(self.workspace.data.algorithms):
            self.workspace.draft.set_algorithms([name for name in REGISTRY if name in names])

    def _ks_changed(self, text: str) -> None:
        if self.workspace.data.frame is None:
            return
        try:
            ks = [int(number) for number in text.replace(";", ",").split(",") if number.strip()]
            if not ks or min(ks) < 2:
                raise ValueError
        except ValueError:
            self._say("k is a whole number of at least 2, or several with commas, such as 5, 10, 25.")
            return
        self.workspace.draft.set_ks(ks)

    def _start(self) -> None:
        try:
            self.workspace.start()
        except AnonflowError as error:
            self._say(error.message)

    def _say(self, text: str, kind: str = "af-bad") -> None:
        self.notice.css_classes = ["af-said", kind]
        say(self.notice, text)

    @param.depends(
        "workspace.data.algorithms", "workspace.data.ks", "workspace.starts.running", "workspace.data.problems",
        "workspace.data.impossible", "workspace.data.table", watch=True,
    )  # fmt: skip
    def _show_controls(self) -> None:
        opened, starts = self.workspace.data, self.workspace.starts
        # the method that a time chooses stands alone: it is there as long as the draft has it
        names = [*REGISTRY, *(name for name in opened.algorithms if name == AUTO)]
        self.methods.param.update(options=names, value=[name for name in names if name in opened.algorithms])
        self.ks.value = ", ".join(map(str, opened.ks))
        has_table = opened.frame is not None
        can = has_table and not starts.running and not opened.problems
        number, missing = starts.possible, starts.missing
        self.run.disabled = not can
        several = f"{RUN} {number}" if number > 1 else RUN
        self.run.label = f"Run the {missing} missing" if 0 < missing < number else several
        self.cancel.disabled = not starts.running
        self.methods.disabled = self.five.disabled = self.ks.disabled = not has_table or starts.running
        if starts.running or not has_table:
            self._say("" if has_table else "No table is open: open one on the screen Data first.", "af-note")
        elif opened.problems:
            self._say(("This cannot run yet: " + "; ".join(opened.problems[:5])), "af-warn")
        elif opened.impossible:
            listed = "; ".join(f"{names}: {why}" for names, why in list(opened.impossible.items())[:5])
            self._say(f"The others can run. These cannot: {listed}.", "af-warn")
        else:
            self._say("", "af-note")

    @param.depends(
        "workspace.starts.progress", "workspace.starts.doing", "workspace.starts.status", watch=True
    )
    def _show_progress(self) -> None:
        starts = self.workspace.starts
        lines = [(name, share, starts.doing.get(name, "waiting")) for name, share in starts.progress.items()]
        self.progress.object = str(soft(starts.status, "status") + progress(lines))

    # -------------------------------------------------------------------------------------- results

    def _make_results(self) -> None:
        numbers = {name: NumberFormatter(format=form, text_align="right") for name, form in _NUMBERS.items()}
        self.table = LightTable(
            self.model.rows(),
            show_index=False,
            disabled=True,
            selectable=1,
            layout="fit_columns",
            sizing_mode="stretch_width",
            **titled(_COLUMNS),
            formatters={**numbers, **{name: {"type": "html"} for name in ("mark", "columns", "records")}},
            hidden_columns=HIDDEN,
            text_align={"partition": "right"},
            css_classes=["af-runs"],
            configuration={"columnDefaults": {"headerWordWrap": True}},
            margin=(6, 0),
        )
        pn.bind(self._row_chosen, self.table.param.selection, watch=True)
        self.chosen = RunSelect(self.workspace, "Run on the screens Explore and Publish", 320).select
        self.svg = download("Figures, SVG", self._pictures, "figures.zip", width=150)
        self.take_up = button("Use its settings", self._take_up, width=180, align="end")
        self.run_name = pn.widgets.TextInput(label="Its name", width=200, placeholder="a name of your own")
        self.note = pn.widgets.TextInput(label="A note", width=340, placeholder="a note on it")
        self.pin = pn.widgets.Checkbox(label="Pinned: listed first, and kept", align="end")
        self.delete = button("Delete this run", self._delete, color="danger", width=140, align="end")
        self.filter = pn.widgets.TextInput(
            label="Show only runs with", placeholder="a method, k, a name or a note", width=240
        )
        for widget, field in ((self.run_name, "label"), (self.note, "note"), (self.pin, "pinned")):
            pn.bind(partial(self._said_of_run, field), widget, watch=True)
        pn.bind(self._show_rows, self.filter, watch=True)
        self.failures, self.blanks, self.late = notice("af-bad"), notice("af-warn"), notice("af-warn")
        self.compiled = notice()
        self.legend = html("")
        self.figures: dict[str, Clickable] = {}
        self.figure_row = pn.Row(css_classes=["af-figures"], sizing_mode="stretch_width")
        self.drawn = pn.widgets.CheckBoxGroup(
            label="Drawn against k", options={}, inline=True, css_classes=["af-boxes"]
        )
        self.drawn_box = labelled(self.drawn, visible=False)
        pn.bind(self._draw_figures, self.drawn, watch=True)
        self.risk = pn.widgets.RadioButtonGroup(
            label="Risk", options={text: name for name, text in RISKS.items()}, value=self.model.risk
        )
        self.risk.link(self.model, value="risk", bidirectional=True)
        self.risk_said = notice()
        self.frontier = self._clickable("frontier")
        self.nothing = empty(
            "No run yet: choose methods and a k above, then press Run. Results appear here one by one."
        )
        self.utility = UtilityCard(self.workspace)
        self.results = stack(
            card(
                "Runs",
                self.failures,
                self.blanks,
                self.late,
                self.compiled,
                self.table,
                in_lines(self.chosen, self.take_up, self.filter, end=True),
                in_lines(self.run_name, self.note, self.pin, self.delete, end=True),
                lead="↓ lower is better, ↑ higher is better. A tap on a row, or on a mark in a figure, loads that run into Explore and Publish.",
            ),
            card("What each method costs", self.drawn_box, self.legend, self.figure_row),
            card(
                "Risk and utility",
                self.risk,
                self.risk_said,
                AtWork(self.model.background, lambda: self.model.param.update(risk="promised")),
                self.frontier,
                self.svg,
                lead="Down and to the left is better. No run beats those on the dashed line in both. Tap a mark to load the run.",
            ),
            self.utility,
        )  # fmt: skip

    def _pictures(self) -> bytes:
        return zipped(figures_of_runs([run.result for run in self.workspace.runs]))

    def _said_of_run(self, field: str, value: Any) -> None:
        run = self.workspace.runs.selection
        limit = {"label": 80, "note": 2_000}.get(field)
        value = value if limit is None else str(value).strip()[:limit]
        if run is not None and getattr(run, field) != value:
            self.workspace.runs.edit(run.id, **{field: value})

    def _delete(self) -> None:
        if self.workspace.runs.chosen is not None:
            self.workspace.runs.delete(self.workspace.runs.chosen)

    def _show_rows(self, words: str) -> None:
        """Show the runs that the filter leaves."""
        self.table.selection = []
        self.table.value = self.model.rows(words)
        self._show_chosen()

    def _row_chosen(self, selection: list[int]) -> None:
        value = self.table.value
        if selection and selection[0] < len(value):
            self._choose(int(value["id"].iloc[selection[0]]))

    def _choose(self, id: int) -> None:
        if id == self.workspace.runs.chosen:
            return
        if any(run.id == id for run in self.model.results):
            self.workspace.runs.choose(id)
        else:
            self._show_chosen()  # a run without a result cannot be shown

    def _take_up(self) -> None:
        if self.workspace.runs.chosen is not None:
            self.model.take_up(self.workspace.runs.chosen)

    def _show_results(self) -> None:
        runs = self.workspace.runs.finished
        self.nothing.visible, self.results.visible = not runs, bool(runs)
        self.pair.visible = len(self.model.results) > 1
        self.table.hidden_columns = [*HIDDEN, *self.model.hidden]
        self._show_rows(self.filter.value)
        failed = [run for run in runs if run.result.problem is not None]
        paragraphs = [Markup("<p>{}: {}</p>").format(run.name, run.result.problem) for run in failed]
        say(self.failures, Markup("").join(paragraphs))
        say(self.blanks, self.model.blanks())
        late = over_budget(runs)
        say(self.late, items(late) if late else "")
        batch = self.workspace.starts.batch
        say(self.compiled, soft(batch.compiled) if batch is not None and batch.compiled else "")
        methods = dict.fromkeys(run.result.algorithm for run in self.model.results)
        marks = [Markup("<span>{}{}</span>").format(look_of(method).svg(16), method) for method in methods]
        self.legend.object = str(Markup('<div class="legend">{}</div>').format(Markup("").join(marks)))
        self._show_pair()

    def _show_chosen(self) -> None:
        """Mark the chosen run: a ring in the figures, a row in the table."""
        chosen, run = self.workspace.runs.chosen, self.workspace.runs.selection
        for widget in (self.run_name, self.note, self.pin, self.delete):
            widget.disabled = run is None
        if run is not None:
            self.run_name.value, self.note.value, self.pin.value = run.label, run.note, run.pinned
            self.run_name.placeholder = run.result.name
        value = self.table.value
        self.table.selection = [at for at, id in enumerate(value["id"]) if id == chosen] if len(value) else []
        self._offer_measures()
        self._draw_figures()
        self._show_frontier()

    def _offer_measures(self) -> None:
        """Offer the measures that the runs have; those that were ticked stay so."""
        labels = self.model.measures()
        options = {name: name for name in labels}
        if self.drawn.options == options:
            return
        names = [name for name in self.drawn.value if name in labels]
        first = [name for name in labels if name != "seconds"][: DRAWN - 1]
        # labels stand at the axes; here the names are enough
        self.drawn.param.update(options=options, value=names if len(names) >= DRAWN else [*first, "seconds"])
        self.drawn_box.visible = len(labels) > DRAWN

    def _draw_figures(self, *names: Any) -> None:
        """Draw the ticked measures of all runs against k, the chosen run with a ring."""
        if not self.model.results:
            return
        labels = self.model.measures()
        selection = [name for name in labels if name in self.drawn.value]
        self.figures = {name: self.figures.get(name) or self._clickable(name) for name in selection}
        for name, figure in self.figures.items():
            figure.html = against_k(
                self.model.points(name),
                labels[name],
                look_of,
                chosen=self.workspace.runs.chosen,
                number=".2f" if name == "seconds" else ".4f",
            )
        if list(self.figure_row.objects) != list(self.figures.values()):
            self.figure_row.objects = list(self.figures.values())

    def _show_frontier(self) -> None:
        model = self.model
        points, best = model.frontier_points(), model.best()
        across = (
            "risk promised: probability 1/k of finding a record"
            if model.risk == "promised"
            else "risk measured: the largest probability that an attacker points at a person's row"
        )
        unmeasured = len(model.results) - len(points)
        text = ""
        if model.problem:
            text = f"The risk could not be measured: {model.problem}"
        elif model.risk == "promised":
            drawn = {point.id for point in points}
            others = [run.name for run in model.results if run.id not in drawn]
            if others:
                text = f"Not drawn: {', '.join(others)}. What they guarantee is no probability; see the measured risk."
        elif unmeasured:
            text = f"{unmeasured} of {plural(len(model.results), 'run')} left to measure."
        else:
            text = "As the release card has it, on a draw that is not published."
        say(self.risk_said, soft(text) if text else "")
        ids = [point.id for point in points]
        self.frontier.html = risk_and_loss(
            [(point.algorithm, point.name, point.x, point.y) for point in points],
            [ids.index(id) for id in best],
            across,
            directed(LABELS["gcp"], "gcp"),
            {point.algorithm: look_of(point.algorithm) for point in points},
            [point.key for point in points],
            ids.index(self.workspace.runs.chosen) if self.workspace.runs.chosen in ids else None,
        )

    def _clickable(self, name: str) -> Clickable:
        """Return a figure whose marks choose their runs."""
        return Clickable(
            on_click=lambda key: self._choose(int(key.partition(":")[2])),
            css_classes=[f"af-{name}"],
            sizing_mode="stretch_width",
        )

    # --------------------------------------------------------------------------------- two of them

    def _make_pair(self) -> None:
        self.first_run = pn.widgets.Select(label="First run", options={}, width=280)
        self.second_run = pn.widgets.Select(label="Second run", options={}, width=280)
        self.first_run.link(self.model, value="first")
        self.second_run.link(self.model, value="second")
        self.differing = html("")
        self.losses = html("")
        self.pair = card(
            "Two runs side by side",
            in_lines(self.first_run, self.second_run),
            pn.Row(self.differing, self.losses, css_classes=["af-two"], sizing_mode="stretch_width"),
        )

    def _show_pair(self) -> None:
        model, options = self.model, names_of_runs(self.workspace)
        self.first_run.param.update(options=options, value=model.first)
        self.second_run.param.update(options=options, value=model.second)
        both = model.pair()
        if both is None:
            self.differing.object = "<p>Choose two different runs.</p>"
            self.losses.object = ""
            return
        a, b = both
        rows = model.what_differs()
        table = facts(["", a.name, b.name], rows) if rows else Markup("<p>The two do not differ.</p>")
        self.differing.object = str(Markup("<h4>What differs (↓ lower is better)</h4>{}").format(table))
        both_names = f"{a.name} (#{a.id})", f"{b.name} (#{b.id})"
        names = list(dict.fromkeys([*a.losses, *b.losses]))
        first, second = ([run.losses.get(name, 0.0) for name in names] for run in both)
        picture = pairs(names, first, second, both_names, "Loss by column of two runs")
        self.losses.object = str(
            Markup("<h4>{}</h4>{}").format("Information loss by column, lower is better", picture)
        )

    # -------------------------------------------------------------------------------------- history

    def _make_history(self) -> None:
        self.undo = button("Undo", self.workspace.draft.undo, width=100)
        self.redo = button("Redo", self.workspace.draft.redo, width=100)
        self.edits = html("")
        self.history = card(
            "History",
            pn.Row(self.undo, self.redo),
            self.edits,
            lead="Edits of the flow, the latest first. Undo takes back an edit, never a run: the table of runs stays.",
        )

    def _show_history(self) -> None:
        draft = self.workspace.draft
        self.undo.disabled, self.redo.disabled = not draft.can_undo, not draft.can_redo
        entries = self.model.history()
        lines = Markup("").join(Markup("<li>{}</li>").format(entry) for entry in entries[:12])
        remainder = soft(f"and {plural((len(entries) - 12), 'earlier edit')}") if len(entries) > 12 else ""
        self.edits.object = (
            str(Markup('<ol class="history">{}</ol>{}').format(lines, remainder))
            if entries
            else "<p class='soft'>Nothing was changed since the table was opened.</p>"
        )
