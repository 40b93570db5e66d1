"""The screen Protect: k, methods, hierarchies, patterns, diversity and limits, with the problems of the draft."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn
import param

from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.html import card, labelled
from anonflow.dashboards.components.markup import methods_list, risk
from anonflow.dashboards.components.option_field import field_value, option_field, option_value
from anonflow.dashboards.components.shown_part import LatePart
from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.hierarchies.form import HierarchyChoice
from anonflow.dashboards.protect.column_limits import LimitChoice
from anonflow.dashboards.protect.diversity import DiversityChoice
from anonflow.dashboards.protect.diversity_form import DiversityForm
from anonflow.dashboards.protect.expected_card import ExpectedCard, ExpectedRuns
from anonflow.dashboards.protect.limit_table import LimitTable
from anonflow.dashboards.protect.pattern_grid import PatternBoard
from anonflow.dashboards.protect.patterns import PatternChoice
from anonflow.dashboards.protect.settings import CUTS, Protection, share
from anonflow.dashboards.protect.target_card import TargetCard
from anonflow.dashboards.protect.target_search import TargetChoice
from anonflow.dashboards.protect.two_questions import TwoQuestions
from anonflow.dashboards.session.workspace import Workspace
from anonflow.hierarchy.wording import plural
from anonflow.loss import LOSSES
from anonflow.option import Option

__all__ = ["ProtectScreen"]

UNFOLD = "Choose k and methods myself"

ABOUT_TABS = (
    "Methods: how records are made alike. Target: a search for a loss or a risk. Hierarchies: how values become coarser. Patterns: which "
    "columns may be hidden together. Diversity: a sensitive value stays uncertain. Limits and weights: how far a column may be generalized."
)
"""What each tab is for."""

KS = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100]


class ProtectScreen(pn.viewable.Viewer):
    """Choose how the table is protected, and see the consequences before a run."""

    workspace = param.ClassSelector(class_=Workspace)
    protection = param.ClassSelector(class_=Protection)
    diversity = param.ClassSelector(class_=DiversityChoice)
    limits = param.ClassSelector(class_=LimitChoice)
    title = "Protect"

    def __init__(self, **params: Any) -> None:
        space = params["workspace"]
        super().__init__(
            protection=Protection(space),
            diversity=DiversityChoice(space),
            limits=LimitChoice(space),
            **params,
        )
        self.questions = TwoQuestions(self.protection)
        self.unfold = pn.widgets.Button(label=UNFOLD, css_classes=["af-unfold"])
        self.expected = ExpectedCard(model=ExpectedRuns(self.workspace))
        self._fields: dict[tuple[str, str], Any] = {}
        self._k_part()
        self._method_part()
        self.verdict = pn.pane.HTML("", sizing_mode="stretch_width")
        self._judge()

    # ---------------------------------------------------------------------------------------------- k

    def _k_part(self) -> None:
        choice = self.protection
        self.k = pn.widgets.IntSlider(
            label="k: among how many records each one hides", start=2, end=choice.largest, value=choice.k,
            sizing_mode="stretch_width", css_classes=["af-k"],

        )  # fmt: skip
        self.exact = pn.widgets.IntInput(label="or type k", value=choice.k, start=2, width=110)
        # boxes, not a list of choices: from that one the tabulator key does not lead on
        self.more = pn.widgets.CheckBoxGroup(
            label="Compare with these k, too", options=KS, value=[k for k in choice.more if k in KS],
            inline=True, sizing_mode="stretch_width", css_classes=["af-boxes"],
        )  # fmt: skip
        self.risk = pn.pane.HTML("", sizing_mode="stretch_width", css_classes=["af-risk"])
        # the count follows the slider; the draft follows when it is let go: one step of the history
        pn.bind(self._count, self.k, watch=True)
        pn.bind(self._set_k, self.k.param.value_throttled, watch=True)
        pn.bind(self._set_k, self.exact, watch=True)
        pn.bind(self._set_more, self.more, watch=True)
        self._show_k()

    def _count(self, k: int) -> None:
        many, n = self.protection.at_risk(k)
        self.risk.object = risk(many, n, share(many, n), self.protection.sentence(k))

    def _set_k(self, k: int | None) -> None:
        if k is not None and k >= 2:
            self.protection.k = k

    def _set_more(self, ks: list[int]) -> None:
        more = sorted(int(k) for k in ks if int(k) != self.protection.k)
        if more != sorted(self.protection.more):
            self.protection.more = more

    @param.depends(
        "protection.k", "protection.more", "protection.uniqueness", "workspace.frame", "workspace.table", watch=True
    )  # fmt: skip
    def _show_k(self) -> None:
        choice = self.protection
        self.k.param.update(end=choice.largest, value=choice.k)
        self.exact.value = choice.k
        self.more.param.update(options=sorted({*KS, *choice.more}), value=list(choice.more))
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
        self._show_methods()
        self._show_cut()

    def _toggle(self, name: str) -> None:
        chosen = list(self.protection.algorithms)
        if name in chosen:
            chosen.remove(name)
        else:
            chosen.append(name)
        self.protection.algorithms = chosen

    @param.depends("protection.algorithms", "protection.options", watch=True)
    def _show_methods(self) -> None:
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
        for method, options in chosen.items():
            for option in options:
                self._fields[method, option.name].value = self._shown(method, option)

    def _shown(self, method: str, option: Option) -> Any:
        value = self.protection.value_of(method, option)
        return field_value(option, option.default if option.problem(value) else value)

    def _field(self, method: str, option: Option) -> Any:
        widget = option_field(option, self._shown(method, option), width=260)
        self._fields[method, option.name] = widget

        def changed(value: Any) -> None:
            if value != self._shown(method, option) and (value is not None or option.default is None):
                self.protection.set_option(method, option.name, option_value(option, value))

        pn.bind(changed, widget, watch=True)
        hint = pn.pane.HTML(
            f"<small>{escape(option.sentence)}</small>", css_classes=["af-muted"], width=290, margin=(0, 10)
        )
        return pn.Column(widget, hint, margin=0)

    @param.depends("protection.cut", "protection.size", "protection.seconds", watch=True)
    def _show_cut(self) -> None:
        choice = self.protection
        self.size.visible = choice.cut == "size"
        self.seconds.visible = choice.cut in ("time", "auto")
        self.guarantee.visible = choice.cut == "auto"
        self.order.visible = choice.cut != "auto"
        self.about_cut.object = f"<p>{_about_cut(choice.cut, choice.size, choice.seconds)}</p>"

    # --------------------------------------------------------------------------------------- verdict

    @param.depends(
        "workspace.problems", "workspace.impossible", "workspace.frame", "workspace.table",
        "workspace.algorithms", "workspace.ks", "diversity.problem", watch=True,
    )  # fmt: skip
    def _judge(self) -> None:
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

    def _diversity_page(self) -> DiversityForm:
        self.diverse = DiversityForm(self.diversity)
        return self.diverse

    def _limits_page(self) -> LimitTable:
        self.limit_table = LimitTable(self.limits)
        return self.limit_table

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
        details = pn.Column(
            card(
                "How many each record hides among", self.risk, pn.Row(self.k, self.exact), labelled(self.more)
            ),
            self.verdict,
            card("How it is protected", tabs, lead=ABOUT_TABS),
            sizing_mode="stretch_width",
            margin=0,
            visible=False,
        )
        self.unfold.on_click(lambda event: details.param.update(visible=not details.visible))
        page = pn.Column(self.questions, self.unfold, details, sizing_mode="stretch_width")

        def turned(*events: Any) -> None:
            for at, part in enumerate((target, tree, board, diversity, limits), start=1):
                part.shown = page.visible and details.visible and tabs.active == at

        pn.bind(turned, tabs.param.active, page.param.visible, details.param.visible, watch=True)
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


def _more_problems(number: int) -> str:
    """Return how many problems are not shown."""
    return f"and {number:,} more"


def _runs(methods: int, ks: int, runs: int) -> str:
    """Return how many runs there will be."""
    return f"{plural(methods, 'method')} × {plural(ks, 'value')} of k: {plural(runs, 'run')}, on the screen Compare."
