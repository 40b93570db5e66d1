"""The screen Protect: k, methods, hierarchies, patterns, diversity and limits, with the problems of the draft."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import pandas as pd
import panel as pn
import param

from anonflow.algorithms.diversity.target import PARAMETERS, PRICE
from anonflow.dashboards.components.clickable import PARTS, Clickable
from anonflow.dashboards.components.html import card, labelled
from anonflow.dashboards.components.markup import methods_list, risk
from anonflow.dashboards.components.option_field import field_value, option_field, option_value
from anonflow.dashboards.components.shown_part import LatePart
from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.hierarchies.form import HierarchyChoice
from anonflow.dashboards.protect.column_limits import FIELDS, LimitChoice
from anonflow.dashboards.protect.diversity import CRITERIA, NONE, DiversityChoice
from anonflow.dashboards.protect.expected_card import ExpectedCard, ExpectedRuns
from anonflow.dashboards.protect.pattern_grid import PatternBoard
from anonflow.dashboards.protect.patterns import PatternChoice
from anonflow.dashboards.protect.settings import CUTS, Protection, share
from anonflow.dashboards.protect.target_card import TargetCard
from anonflow.dashboards.protect.target_search import TargetChoice
from anonflow.dashboards.session.workspace import Workspace
from anonflow.hierarchy.wording import plural
from anonflow.loss import LOSSES
from anonflow.option import Option

__all__ = ["ProtectScreen"]

KS = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100]


class ProtectScreen(pn.viewable.Viewer):
    """Choose how the table is protected, and see the consequences before a run.

    Parameters
    ----------
    workspace : Workspace
    """

    workspace = param.ClassSelector(class_=Workspace)
    title = "Protect"

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.protection = Protection(self.workspace)
        self.diversity = DiversityChoice(self.workspace)
        self.limits = LimitChoice(self.workspace)
        self.expected = ExpectedCard(model=ExpectedRuns(self.workspace))
        self._busy = False
        self._fields: dict[tuple[str, str], Any] = {}
        self._k_part()
        self._method_part()
        self.verdict = pn.pane.HTML("", sizing_mode="stretch_width", stylesheets=[PARTS])
        self.workspace.param.watch(
            self._judge, ["problems", "impossible", "frame", "table", "algorithms", "ks"]
        )
        self.diversity.param.watch(self._judge, "problem")
        self._judge()

    # ---------------------------------------------------------------------------------------------- k

    def _k_part(self) -> None:
        choice = self.protection
        self.k = pn.widgets.IntSlider(
            label="k: among how many records each one hides", start=2, end=choice.largest, value=choice.k,
            sizing_mode="stretch_width", css_classes=["af-k"],
            stylesheets=[PARTS],
        )  # fmt: skip
        self.exact = pn.widgets.IntInput(label="or type k", value=choice.k, start=2, width=110)
        # boxes, not a list of choices: from that one the tabulator key does not lead on
        self.more = pn.widgets.CheckBoxGroup(
            label="Compare with these k, too", options=KS, value=[k for k in choice.more if k in KS],
            inline=True, sizing_mode="stretch_width", css_classes=["af-boxes"], stylesheets=[PARTS],
        )  # fmt: skip
        self.risk = pn.pane.HTML(
            "", stylesheets=[PARTS], sizing_mode="stretch_width", css_classes=["af-risk"]
        )
        # the count follows the slider; the draft follows when it is let go: one step of the history
        self.k.param.watch(self._slid, "value")
        self.k.param.watch(lambda event: self._set_k(event.new), "value_throttled")
        self.exact.param.watch(lambda event: self._set_k(event.new), "value")
        self.more.param.watch(self._set_more, "value")
        choice.param.watch(self._show_k, ["k", "more", "uniqueness"])
        self.workspace.param.watch(self._show_k, ["frame", "table"])
        self._show_k()

    def _slid(self, event: Any) -> None:
        if not self._busy:
            self._count(event.new)

    def _count(self, k: int) -> None:
        many, n = self.protection.at_risk(k)
        self.risk.object = risk(many, n, share(many, n), self.protection.sentence(k))

    def _set_k(self, k: Any) -> None:
        if not self._busy and isinstance(k, int) and k >= 2:
            self.protection.k = k

    def _set_more(self, event: Any) -> None:
        if not self._busy:
            self.protection.more = sorted(int(k) for k in event.new if int(k) != self.protection.k)

    def _show_k(self, *events: Any) -> None:
        choice = self.protection
        self._busy = True
        self.k.end = choice.largest
        self.k.value = choice.k
        self.exact.value = choice.k
        options = sorted({*KS, *choice.more})
        if self.more.options != options:
            self.more.options = options
        self.more.value = list(choice.more)
        self._busy = False
        self._count(choice.k)

    # --------------------------------------------------------------------------------------- methods

    def _method_part(self) -> None:
        choice = self.protection
        self.methods = Clickable(on_click=self._toggle, sizing_mode="stretch_width")
        self.options = pn.FlexBox(sizing_mode="stretch_width", gap="16px")
        self.cut = pn.widgets.Select.from_param(
            choice.param.cut, label="The method works on", options=CUTS, width=220
        )
        self.size = pn.widgets.IntInput.from_param(
            choice.param.size, label="Records in a partition", width=170
        )
        self.seconds = pn.widgets.FloatInput.from_param(
            choice.param.seconds, label="Seconds it may take", width=150, step=1.0
        )
        self.guarantee = pn.widgets.Select.from_param(
            choice.param.guarantee, label="It guarantees", width=160
        )
        self.order = pn.widgets.Select.from_param(choice.param.order, label="Cut along", width=160)
        words = {loss.label: name for name, loss in LOSSES.items()}
        self.loss = pn.widgets.Select.from_param(
            choice.param.loss, label="Information loss to keep low", options=words, width=380
        )
        self.boundaries = pn.widgets.Checkbox.from_param(
            choice.param.boundaries, label="Keep inside boundaries and limits of columns"
        )
        self.about_cut = pn.pane.HTML("", sizing_mode="stretch_width", css_classes=["af-muted"])
        choice.param.watch(self._show_methods, ["algorithms", "options"])
        choice.param.watch(self._show_cut, ["cut", "size", "seconds"])
        self._show_methods()
        self._show_cut()

    def _toggle(self, name: str) -> None:
        chosen = list(self.protection.algorithms)
        if name in chosen:
            chosen.remove(name)
        else:
            chosen.append(name)
        self.protection.algorithms = chosen

    def _show_methods(self, *events: Any) -> None:
        self.methods.html = methods_list(self.protection.algorithms)
        chosen = self.protection.asked_options()
        wanted = [(method, option.name) for method, options in chosen.items() for option in options]
        if list(self._fields) != wanted:
            self._fields = {}
            groups = []
            for method, options in chosen.items():
                fields = [self._field(method, option) for option in options]
                groups.append(pn.Column(pn.pane.HTML(f"<b>{escape(method)}</b>"), *fields, width=300))
            self.options.objects = groups or [
                pn.pane.HTML("<p>The chosen methods have no options.</p>", css_classes=["af-muted"])
            ]
            return
        self._busy = True
        for method, options in chosen.items():
            for option in options:
                self._fields[method, option.name].value = field_value(option, self._shown(method, option))
        self._busy = False

    def _shown(self, method: str, option: Option) -> Any:
        value = self.protection.value_of(method, option)
        return option.default if option.problem(value) else value

    def _field(self, method: str, option: Option) -> Any:
        widget = option_field(option, self._shown(method, option), width=260)
        self._fields[method, option.name] = widget

        def changed(event: Any, option: Option = option) -> None:
            if not self._busy and (event.new is not None or option.default is None):
                self.protection.set_option(method, option.name, option_value(option, event.new))

        widget.param.watch(changed, "value")
        hint = pn.pane.HTML(
            f"<small>{escape(option.sentence)}</small>", css_classes=["af-muted"], width=290, margin=(0, 10)
        )
        return pn.Column(widget, hint, margin=0)

    def _show_cut(self, *events: Any) -> None:
        choice = self.protection
        self.size.visible = choice.cut == "size"
        self.seconds.visible = choice.cut in ("time", "auto")
        self.guarantee.visible = choice.cut == "auto"
        self.order.visible = choice.cut != "auto"
        self.about_cut.object = f"<p>{_about_cut(choice.cut, choice.size, choice.seconds)}</p>"

    # ------------------------------------------------------------------------------------- diversity

    def _diversity_part(self) -> None:
        choice = self.diversity
        words = {"none": NONE} | {name: name for name in CRITERIA if name != NONE}
        self.criterion = pn.widgets.Select.from_param(
            choice.param.criterion, label="Diversity of the sensitive value", options=words, width=260
        )
        self.sensitive = pn.widgets.Select(label="Sensitive column", options=[], width=220)
        self.numbers = {
            name: (pn.widgets.IntInput if option.whole else pn.widgets.FloatInput).from_param(
                choice.param[name],
                label=option.label,
                step=1 if option.whole else option.step,
                width=max(110, 9 * len(option.label)),
            )
            for name, option in PARAMETERS.items()
        }
        self.chance = pn.widgets.FloatInput.from_param(
            choice.param.risk, label="Chance that the draw is refused", step=0.01, width=275
        )
        self.way = pn.widgets.Select.from_param(
            choice.param.way,
            label="Against a draw that fails",
            options={"make classes": "classes", "more rows for all (blind)": "blind"},
            width=240,
        )
        self.meaning = pn.pane.HTML("", sizing_mode="stretch_width")
        self.feasible = pn.pane.HTML("", sizing_mode="stretch_width")
        self.sensitive.param.watch(self._set_sensitive, "value")
        choice.param.watch(self._show_diversity, ["criterion", "column", *PARAMETERS, "problem", "feasible"])
        self.workspace.draft.param.watch(self._show_diversity, "spec")
        self._show_diversity()

    def _set_sensitive(self, event: Any) -> None:
        if not self._busy:
            self.diversity.column = event.new

    def _show_diversity(self, *events: Any) -> None:
        choice = self.diversity
        self._busy = True
        columns = choice.columns
        if self.sensitive.options != columns:
            self.sensitive.options = columns
        self.sensitive.value = choice.column if choice.column in columns else None
        self._busy = False
        is_diverse = choice.criterion != NONE
        for name, widget in self.numbers.items():
            widget.visible = name in choice.needed
        for widget in (self.sensitive, self.chance, self.way):
            widget.visible = is_diverse
        price = PRICE if is_diverse else ""
        self.meaning.object = f"<p>{escape(CRITERIA[choice.criterion])} {escape(choice.distance)} {price}</p>"
        if choice.problem:
            self.feasible.css_classes = ["af-bad"]
            self.feasible.object = f"<p><b>This cannot work.</b> {escape(choice.problem)}</p>"
        elif is_diverse and choice.feasible:
            self.feasible.css_classes = ["af-good"]
            self.feasible.object = f"<p>{escape(_feasible(choice.feasible))}</p>"
        else:
            self.feasible.css_classes = ["af-muted"]
            self.feasible.object = (
                ""
                if is_diverse
                else "<p>Without diversity, the k records that may belong to a person can all have the same sensitive value: then everybody knows this value.</p>"
            )

    # ---------------------------------------------------------------------------------------- limits

    def _limit_part(self) -> None:
        number = {"type": "number"}
        names = ["column", "kind", *FIELDS, "boundary"]
        self.table = pn.widgets.Tabulator(
            pd.DataFrame(columns=names),
            show_index=False,
            sortable=False,
            selectable=False,
            editors={name: number if name in FIELDS else None for name in names},
            titles={
    "column": "Column",
    "kind": "Kind",
    "weight": "Weight ✎",
    "interval": "Intervals ✎",
    "max-width": "Max width ✎",
    "max-set": "Max set ✎",
    "at-least": "At least ✎",
    "boundary": "Boundary",
},
            header_tooltips={
    "weight": "how many times the column counts in the information loss",
    "interval": "numeric: no value leaves its interval of this width",
    "max-width": "numeric: no published range is wider",
    "max-set": "categorical: no published set has more values",
    "at-least": "hierarchy: nothing below this level is published; 1 for the parents of its leaves",
    "boundary": "hierarchy: click them on the tree, under Hierarchies",
},
            layout="fit_columns",
            widths={"column": 185, "kind": 94, "weight": 84, "interval": 104, "max-width": 112, "max-set": 98, "at-least": 96},
            sizing_mode="stretch_width",
            stylesheets=[PARTS],
        )  # fmt: skip
        self.table.on_edit(self._limited)
        self.limited = pn.pane.HTML("", css_classes=["af-bad"], visible=False, sizing_mode="stretch_width")
        self.limits.param.watch(self._show_limits, ["rows", "refusal"])
        self._show_limits()

    def _limited(self, event: Any) -> None:
        rows = self.limits.rows
        if rows is not None and 0 <= event.row < len(rows):
            self.limits.choose(str(rows["column"].iloc[event.row]), event.column, event.value)

    def _show_limits(self, *events: Any) -> None:
        rows = self.limits.rows
        if rows is not None:
            shown = rows.copy()
            for name in FIELDS:
                shown[name] = [None if math.isnan(number) else number for number in shown[name]]
            shown = shown.astype(dict.fromkeys(FIELDS, object))
            if not shown.equals(self.table.value):
                self.table.value = shown
        self.limited.object = f"<p>{escape(self.limits.refusal)}</p>"
        self.limited.visible = bool(self.limits.refusal)

    # --------------------------------------------------------------------------------------- verdict

    def _judge(self, *events: Any) -> None:
        workspace = self.workspace
        if workspace.frame is None:
            self.verdict.css_classes = ["af-note"]
            self.verdict.object = "<p>No table is open: begin with the screen Data.</p>"
            return
        if workspace.coding:
            self.verdict.css_classes = ["af-note"]
            self.verdict.object = "<p role='status'>The table is being coded under its columns…</p>"
            return
        problems = list(dict.fromkeys(workspace.problems))
        if problems:
            self.verdict.css_classes = ["af-bad"]
            items = "".join(f"<li>{escape(text)}</li>" for text in problems[:8])
            more = f"<li>{_more_problems(len(problems) - 8)}</li>" if len(problems) > 8 else ""
            self.verdict.object = f"<p><b>This cannot run yet.</b></p><ul>{items}{more}</ul>"
            return
        runs = workspace.possible
        self.verdict.css_classes = ["af-warn"] if workspace.impossible else ["af-good"]
        wrong = "".join(
            f"<li><b>{escape(names)}</b> cannot run: {escape(why)}</li>"
            for names, why in list(workspace.impossible.items())[:8]
        )
        self.verdict.object = (
            f"<p><b>Ready to run.</b> {_runs(len(workspace.algorithms), len(workspace.ks), runs)}</p>"
            + (f"<ul>{wrong}</ul>" if wrong else "")
        )

    # ------------------------------------------------------------------------------------ the pages

    def _methods_page(self) -> pn.viewable.Viewable:
        return pn.Column(
            self.methods,
            pn.pane.HTML("<h3>How it works</h3>"),
            pn.FlexBox(self.cut, self.size, self.seconds, self.guarantee, self.order, gap="8px"),
            self.about_cut,
            pn.FlexBox(self.loss, gap="8px"),
            self.boundaries,
            pn.pane.HTML("<h3>Before you run</h3>"),
            self.expected,
            pn.pane.HTML("<h3>Options of the chosen methods</h3>"),
            self.options,
            sizing_mode="stretch_width",
        )

    def _target_page(self) -> TargetCard:
        self.target = TargetCard(choice=TargetChoice(self.workspace))
        return self.target

    def _hierarchy_page(self) -> HierarchyBuilder:
        self.tree = HierarchyBuilder(choice=HierarchyChoice(self.workspace))
        return self.tree

    def _pattern_page(self) -> PatternBoard:
        self.board = PatternBoard(choice=PatternChoice(self.workspace))
        return self.board

    def _diversity_page(self) -> pn.viewable.Viewable:
        self._diversity_part()
        return pn.Column(
            pn.FlexBox(self.criterion, self.sensitive, *self.numbers.values(), gap="8px"),
            self.meaning,
            self.feasible,
            pn.FlexBox(self.chance, self.way, gap="8px"),
            sizing_mode="stretch_width",
        )

    def _limits_page(self) -> pn.viewable.Viewable:
        self._limit_part()
        return pn.Column(
            pn.pane.HTML(
                "<p>Click a number to change it; empty the field to remove it.</p>", css_classes=["af-muted"]
            ),
            self.table,
            self.limited,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> pn.viewable.Viewable:
        target, tree, board = (
            LatePart(build) for build in (self._target_page, self._hierarchy_page, self._pattern_page)
        )
        diversity, limits = LatePart(self._diversity_page), LatePart(self._limits_page)
        tabs = pn.Tabs(
            ("Methods", self._methods_page()),
            ("Target", target),
            ("Hierarchies", tree),
            ("Patterns", board),
            ("Diversity", diversity),
            ("Limits and weights", limits),
            dynamic=True,
            sizing_mode="stretch_width",
        )
        page = pn.Column(
            card(
                "How many each record hides among", self.risk, pn.Row(self.k, self.exact), labelled(self.more)
            ),
            self.verdict,
            card("How it is protected", tabs),
            sizing_mode="stretch_width",
        )

        def turned(*events: Any) -> None:
            for at, part in enumerate((target, tree, board, diversity, limits), start=1):
                part.shown = page.visible and tabs.active == at

        tabs.param.watch(turned, "active")
        page.param.watch(turned, "visible")
        return page


def _about_cut(cut: str, size: int, seconds: float) -> str:
    """Return what a way to cut the table means for time and loss."""
    sentences = {
        "whole": "The whole table at once: the least loss, the most time.",
        "size": f"Each {size:,} records on their own, side by side: faster, with a little more loss.",
        "time": f"anonflow times the method on a few partitions, and takes the largest that fit {seconds:g} s.",
        "auto": f"anonflow times methods on some of the records, and takes the one with the least loss in {seconds:g} s.",
    }
    return sentences[cut]


def _feasible(largest: str) -> str:
    """Return how much diversity the table allows."""
    return f"The whole table allows this; the largest feasible {largest}."


def _more_problems(number: int) -> str:
    """Return how many problems are not shown."""
    return f"and {number:,} more"


def _runs(methods: int, ks: int, runs: int) -> str:
    """Return how many runs there will be."""
    return f"{plural(methods, 'method')} × {plural(ks, 'value')} of k: {plural(runs, 'run')}, on the screen Compare."
