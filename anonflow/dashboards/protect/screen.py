"""The screen Protect: k, methods, hierarchies, patterns, diversity and limits, with the problems of the draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.html import card, html, in_lines, items, labelled, say, soft, stack
from anonflow.dashboards.components.markup import methods_list, risk
from anonflow.dashboards.components.option_field import (
    explained,
    field_value,
    option_field,
    option_value,
    param_field,
)
from anonflow.dashboards.components.shown_part import LatePart
from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.hierarchies.form import HierarchyChoice
from anonflow.dashboards.protect.column_limits import LimitTable
from anonflow.dashboards.protect.diversity import DiversityChoice, DiversityForm
from anonflow.dashboards.protect.expected_card import ExpectedCard
from anonflow.dashboards.protect.pattern_grid import PatternBoard
from anonflow.dashboards.protect.patterns import PatternChoice
from anonflow.dashboards.protect.settings import CUTS, Protection, share
from anonflow.dashboards.protect.target_search import TargetCard, TargetChoice
from anonflow.dashboards.protect.two_questions import TwoQuestions
from anonflow.dashboards.session.workspace import Workspace
from anonflow.hierarchy.wording import plural
from anonflow.loss import LOSSES
from anonflow.option import Option

KS = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100]


class ProtectScreen(pn.viewable.Viewer):
    """Choose how the table is protected, and see the consequences before a run."""

    workspace = param.ClassSelector(class_=Workspace)
    protection = param.ClassSelector(class_=Protection)
    diversity = param.ClassSelector(class_=DiversityChoice)
    title = "Protect"

    def __init__(self, **params: Any) -> None:
        space = params["workspace"]
        super().__init__(
            protection=Protection(space),
            diversity=DiversityChoice(space),
            **params,
        )
        self.questions = TwoQuestions(self.protection)
        self.unfold = pn.widgets.Button(label="Choose k and methods myself", css_classes=["af-unfold"])
        self.expected = ExpectedCard(self.workspace)
        self._fields: dict[tuple[str, str], Any] = {}
        self._k_part()
        self._method_part()
        self.verdict = html()
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
        self.risk = html("", "af-risk")
        # the count follows the slider; the draft follows when it is let go: one step of the history
        pn.bind(self._count, self.k, watch=True)
        pn.bind(self._set_k, self.k.param.value_throttled, watch=True)
        pn.bind(self._set_k, self.exact, watch=True)
        pn.bind(self._set_more, self.more, watch=True)
        self._show_k()

    def _count(self, k: int) -> None:
        count, n = self.protection.at_risk(k)
        self.risk.object = risk(count, n, share(count, n), self.protection.sentence(k))

    def _set_k(self, k: int | None) -> None:
        if k is not None and k >= 2:
            self.protection.k = k

    def _set_more(self, ks: list[int]) -> None:
        further_ks = sorted(int(k) for k in ks if int(k) != self.protection.k)
        if further_ks != sorted(self.protection.more):
            self.protection.more = further_ks

    @param.depends(
        "protection.k", "protection.more", "protection.uniqueness", "workspace.data.frame", "workspace.data.table", watch=True
    )  # fmt: skip
    def _show_k(self) -> None:
        choice = self.protection
        self.k.param.update(end=choice.largest, value=choice.k)
        self.exact.value = choice.k
        possible = [k for k in KS if k <= choice.largest]
        self.more.param.update(options=sorted({*possible, *choice.more}), value=list(choice.more))
        self._count(choice.k)

    # --------------------------------------------------------------------------------------- methods

    def _method_part(self) -> None:
        choice = self.protection
        self.methods = Clickable(on_click=self._toggle, sizing_mode="stretch_width")
        self.options = in_lines()
        of = choice.param
        self.cut = param_field(of.cut, "The method works on", 220, options=CUTS)
        self.size = param_field(of.size, "Records in a partition", 220)
        self.seconds = param_field(of.seconds, "Seconds it may take", 150, step=1.0)
        self.guarantee = param_field(of.guarantee, "It guarantees", 160)
        self.order = param_field(of.order, "Cut along", 160)
        words = {loss.label: name for name, loss in LOSSES.items()}
        self.loss = param_field(of.loss, "Information loss to keep low", 380, options=words)
        self.boundaries = param_field(of.boundaries, "Keep inside boundaries and limits of columns")
        self.about_cut = html()
        self._show_methods()
        self._show_cut()

    def _toggle(self, name: str) -> None:
        chosen = self.protection.algorithms
        self.protection.algorithms = [pick for pick in chosen if pick != name] + [name] * (name not in chosen)

    @param.depends("protection.algorithms", "protection.options", watch=True)
    def _show_methods(self) -> None:
        self.methods.html = methods_list(self.protection.algorithms)
        chosen = self.protection.asked_options()
        field_keys = [(method, option.name) for method, options in chosen.items() for option in options]
        if list(self._fields) != field_keys:
            self._fields = {}
            groups = []
            for method, options in chosen.items():
                fields = [self._field(method, option) for option in options]
                groups.append(pn.Column(html(Markup("<b>{}</b>").format(method)), *fields, width=300))
            self.options.objects = groups or [html(soft("The chosen methods have no options."))]
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
        return explained(widget, option)

    @param.depends("protection.cut", "protection.size", "protection.seconds", watch=True)
    def _show_cut(self) -> None:
        choice = self.protection
        self.size.visible = choice.cut == "size"
        self.seconds.visible = choice.cut in ("time", "auto")
        self.guarantee.visible = choice.cut == "auto"
        self.order.visible = choice.cut != "auto"
        sentences = {
            "whole": "The whole table at once: the least loss, the most time.",
            "size": f"Each {choice.size:,} records on their own, side by side: faster, with a little more loss.",
            "time": f"anonflow times the method on a few partitions, and takes the largest that fit {choice.seconds:g} s.",
            "auto": f"anonflow times methods on some of the records, and takes the one with the least loss in {choice.seconds:g} s.",
        }
        say(self.about_cut, soft(sentences[choice.cut]))

    # --------------------------------------------------------------------------------------- verdict

    @param.depends(
        "workspace.data.problems", "workspace.data.impossible", "workspace.data.frame", "workspace.data.table",
        "workspace.data.algorithms", "workspace.data.ks", "diversity.problem", watch=True,
    )  # fmt: skip
    def _judge(self) -> None:
        opened = self.workspace.data
        problems = list(dict.fromkeys(opened.problems))
        if opened.frame is None:
            kind, text = "af-note", Markup("<p>No table is open: begin with the screen Data.</p>")
        elif opened.coding:
            kind = "af-note"
            text = Markup("<p role='status'>The table is being coded under its columns…</p>")
        elif problems:
            remainder = [f"and {len(problems) - 8:,} more"] if len(problems) > 8 else []
            kind = "af-bad"
            text = Markup("<p><b>This cannot run yet.</b></p>") + items([*problems[:8], *remainder])
        else:
            methods, ks = plural(len(opened.algorithms), "method"), plural(len(opened.ks), "value")
            possible = plural(self.workspace.starts.possible, "run")
            wrong = list(opened.impossible.items())[:8]
            kind = "af-warn" if wrong else "af-good"
            text = Markup("<p><b>Ready to run.</b> {}</p>").format(
                f"{methods} × {ks} of k: {possible}, on the screen Compare."
            )
            if wrong:
                text += items(Markup("<b>{}</b> cannot run: {}").format(*pair) for pair in wrong)
        self.verdict.param.update(css_classes=[kind], object=str(text))

    # ------------------------------------------------------------------------------------ the pages

    def _methods_page(self) -> pn.viewable.Viewable:
        return stack(
            self.methods,
            html(Markup("<h3>How it works</h3>")),
            in_lines(self.cut, self.size, self.seconds, self.guarantee, self.order),
            self.about_cut,
            in_lines(self.loss),
            self.boundaries,
            html(Markup("<h3>Before you run</h3>")),
            self.expected,
            html(Markup("<h3>Options of the chosen methods</h3>")),
            self.options,
        )

    def _late(self, name: str, build: Callable[[], Any]) -> LatePart:
        """Return a tab that is built when it is first shown, and is then the attribute `name`."""

        def kept() -> Any:
            setattr(self, name, build())
            return getattr(self, name)

        return LatePart(kept)

    def __panel__(self) -> pn.viewable.Viewable:
        space = self.workspace
        late = {
            "Target": self._late("target", lambda: TargetCard(choice=TargetChoice(space))),
            "Hierarchies": self._late("tree", lambda: HierarchyBuilder(choice=HierarchyChoice(space))),
            "Patterns": self._late("board", lambda: PatternBoard(choice=PatternChoice(space))),
            "Diversity": self._late("diverse", lambda: DiversityForm(self.diversity)),
            "Limits and weights": self._late("limit_table", lambda: LimitTable(space)),
        }
        tabs = pn.Tabs(("Methods", self._methods_page()), *late.items(), sizing_mode="stretch_width")
        details = stack(
            card(
                "How many each record hides among",
                self.risk,
                in_lines(self.k, self.exact),
                labelled(self.more),
            ),
            self.verdict,
            card(
                "How it is protected",
                tabs,
                lead=(
                    "Methods: how records are made alike. Target: a search for a loss or a risk. Hierarchies: how values become coarser. Patterns: which "
                    "columns may be hidden together. Diversity: a sensitive value stays uncertain. Limits and weights: how far a column may be generalized."
                ),
            ),
            visible=False,
        )
        self.unfold.on_click(lambda event: details.param.update(visible=not details.visible))
        page = pn.Column(self.questions, self.unfold, details, sizing_mode="stretch_width")

        def turned(*events: Any) -> None:
            with pn.io.hold():  # in one message, which a browser lays out once
                for at, place in enumerate(tabs):
                    place.visible = tabs.active == at  # Bokeh gives all tabs the height of the highest
                for at, part in enumerate(late.values(), start=1):
                    part.shown = page.visible and details.visible and tabs.active == at

        turned()
        pn.bind(turned, tabs.param.active, page.param.visible, details.param.visible, watch=True)
        return page
