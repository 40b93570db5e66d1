"""The screen Explore: the effect of a run on the records, in the owner's view."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import param
from markupsafe import Markup

from anonflow.algorithms.recoding.lattice_view import lattice_view
from anonflow.algorithms.view import sizes_of
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.html import (
    LightTable,
    badge,
    button,
    card,
    card_heading,
    empty,
    facts,
    html,
    items,
    notice,
    say,
    soft,
    stack,
    verdict_of,
)
from anonflow.dashboards.components.release_card import Remedies, card_lines, run_numbers
from anonflow.dashboards.components.run_select import RunSelect
from anonflow.dashboards.components.shown_part import Screen
from anonflow.dashboards.explore.association_card import AssociationCard
from anonflow.dashboards.explore.model import Attacks, ExploreModel, FoundRecords, called, in_plain_words
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.comparisons import heat, intervals
from anonflow.drawing.figures import overlay
from anonflow.drawing.neighbours import around_one
from anonflow.drawing.plots import columns
from anonflow.errors import AnonflowError
from anonflow.hierarchy.wording import plural, verb_of

ORIGINAL = "original"
ATTACK = "Let attackers try"
REPEAT = "Run again to explore"

PAGE = 15
MOST = 600
"""Records that are listed at once; others are found by searching."""
SEPARATOR = " · "


class ExploreScreen(Screen):
    """The screen of the chosen run."""

    title = "Explore"
    model = param.ClassSelector(class_=ExploreModel, constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, model=ExploreModel(workspace), **params)
        self._visible_run: Any = None
        self._make_loss()
        self._make_lattice()
        self._make_records()
        self._make_graph()
        self._make_attacks()
        self._of_runs: list[tuple[pn.Column, pn.pane.HTML, Markup]] = []
        self.inside = stack(
            self.chosen,
            self._of_run("This run", self.facts),
            card("Loss by attribute and run", self.losses, lead="0% is the value itself, 100% is published as *: lower is better. ▶ is the run that is shown."),
            self.levels,
            self._of_run("Before and after: one column", self.column, self.distance, self.overlay, lead=("Blue bars: the originals. Orange line with diamonds: what is published, each range spread evenly over its width, each set "
    "over its members.")),
            AssociationCard(workspace),
            self._of_run("Before and after: records", pn.Row(self.search, self.only_changed), self.matching, self.records),
            self._of_run("Who a record is hidden among", pn.Row(self.record, self.worst), self.graph),
            self._of_run("Class sizes and matches", self.sizes),
            self._of_run("Risk: what attackers achieve", self.attack, AtWork(self.model.background), self.attacked, self.remedies, lead="Each attacker has the release and the knowledge that is named beside it."),
            visible=self.model.run is not None,
        )  # fmt: skip
        warning = "Everything here shows values of the table. Do not publish pictures of this screen."
        self.lay_out(warning, self.nothing, self.repeat, self.inside, badge=badge(False, "Owner's view"))
        self.draw_after(workspace.runs, ["chosen", "finished"], self._show)
        self.draw_after(workspace.runs, "finished", self._offer_repeat)
        self.draw_after(workspace.starts, "running", self._offer_repeat)
        self.draw_after(self.model, "column", self._show_distribution)
        self.draw_after(self.model, "record", self._show_graph)
        self.draw_after(self.model, ["attacks", "busy", "problem"], self._show_attacks)
        self._show()
        self._offer_repeat()

    def _of_run(self, title: str, *inside: Any, lead: str = "") -> pn.Column:
        """Return a card that says of which run it is."""
        panel = card(title, *inside, lead=lead)
        self._of_runs.append((panel, panel[0], card_heading(title, lead)))
        return panel

    def _offer_repeat(self) -> None:
        """Offer to run again what came without its results, with a project."""
        without = self.workspace.runs.repeatable
        self.repeat.visible = bool(without)
        self.repeat.disabled = self.workspace.starts.running
        self.repeat.label = REPEAT if len(without) < 2 else f"{REPEAT}: {len(without):,} runs"

    def _show(self) -> None:
        run = self.model.run
        self.nothing.visible, self.inside.visible = run is None, run is not None
        names, runs, values = self.model.heat()
        self.losses.object = str(heat(names, runs, values))
        if run is None or run is self._visible_run:
            return
        self._visible_run = run
        self._name(f"Computing {run.name} (#{run.id})…", True)
        self.model.prepare(
            self._fill, lambda problem: self._name(f"This run cannot be shown: {problem}", True)
        )

    def _name(self, text: str, stale: bool) -> None:
        """Say on every panel which run it shows; grey what is still the run before."""
        for panel, of_run, heading in self._of_runs:
            of_run.object = str(heading + soft(text, "status"))
            panel.css_classes = ["af-card", *(["af-stale"] if stale else [])]

    def _fill(self) -> None:
        run = self.model.run
        if run is None:
            return
        self._name(f"Run: {run.name} (#{run.id})", False)
        text = run_numbers(run.result)
        view = self.model.view()
        lost = () if view is None else view.missing
        if lost:
            text += Markup("<h4>Records without a value</h4>{}").format(
                items(missing_loss.sentence() for missing_loss in lost)
            )
        self.facts.object = str(text)
        self.column.param.update(options=self.model.columns, value=self.model.column)
        self.record.param.update(end=run.result.records - 1, value=self.model.record)
        part = None if view is None else view.lattice
        self.levels.visible = part is not None
        say(self.levels_problem)
        if part is not None:
            self.lattice.html = str(Markup("<div>{}</div>").format(lattice_view(part, keys=True)))
        self._show_distribution()
        self._show_records()
        self._show_graph()
        self._show_sizes()
        self._show_attacks()

    # ------------------------------------------------------------------------- loss, distributions

    def _make_loss(self) -> None:
        self.nothing = empty("No run yet: go to Compare and press Run; then a tap on a run shows it here.")
        self.repeat = button(
            REPEAT, self.workspace.starts.repeat, css="af-repeat", color="primary", visible=False
        )
        self.chosen = RunSelect(self.workspace, "Run").select
        self.facts = html("")
        self.losses = html("", "af-heat")
        self.column = pn.widgets.Select(label="Column", options=[], width=260)
        self.column.link(self.model, value="column")
        self.distance = html("")
        self.overlay = html("", "af-overlay")

    def _show_distribution(self) -> None:
        if self.column.value != self.model.column and self.model.column in self.column.options:
            self.column.value = self.model.column
        distribution = self.model.distribution()
        if distribution is None:
            return
        self.overlay.object = str(Markup('<div class="scroll">{}</div>').format(overlay(distribution)))
        say(
            self.distance,
            f"{distribution.distance:.1%} of the records would have to move to make the two equal; lower is better.",
        )

    # -------------------------------------------------------------------------------------- lattice

    def _make_lattice(self) -> None:
        self.lattice = Clickable(on_click=self._node_clicked, sizing_mode="stretch_width")
        self.levels_problem = notice("af-bad")
        self.levels = card("Levels of the columns", self.levels_problem, self.lattice)
        self.levels.visible = False

    def _node_clicked(self, key: str) -> None:
        say(self.levels_problem)
        word, _, place = key.partition(":")
        if word != "node" or not place.isdecimal():
            return
        try:
            self.model.run_node(int(place))
        except AnonflowError as error:
            say(self.levels_problem, error.message)

    # -------------------------------------------------------------------------------------- records

    def _make_records(self) -> None:
        self.search = pn.widgets.TextInput(
            label="Search the records", placeholder="a value, before or after", width=280
        )
        self.only_changed = pn.widgets.Checkbox(label="Only records that changed", align="end")
        pn.bind(self._show_records, self.search, self.only_changed, watch=True)
        self.matching = html("")
        self.records = stack()
        self.table: LightTable | None = None

    def _show_records(self, *values: Any) -> None:
        say(self.matching, soft("Searching…", "status"))
        self.model.search(
            self.search.value,
            self.only_changed.value,
            self._list_records,
            lambda problem: say(self.matching, f"The search failed: {problem}"),
        )

    def _list_records(self, answer: FoundRecords) -> None:
        view = self.model.view()
        if view is None:
            return
        records = view.records
        at = answer.at[:MOST]
        names = list(records.before.columns)
        cells_of: dict[str, Any] = {"record": at}
        groups: dict[str, list[str]] = {}
        titles = {"record": "record"}
        for name in names:
            both = [f"{name}{SEPARATOR}original", f"{name}{SEPARATOR}published"]
            cells_of[both[0]] = records.before[name].iloc[at].to_numpy(object)
            cells_of[both[1]] = records.after[name].iloc[at].to_numpy(object)
            groups[escape(name)] = both  # Tabulator takes titles for markup
            titles |= dict(zip(both, (ORIGINAL, "published"), strict=True))
        frame = pd.DataFrame(cells_of)
        changed = records.changed[at]
        matching, cells = len(answer.at), len(answer.at) * len(names)
        first = f" The first {MOST:,} are listed: search for others." if matching > MOST else ""
        say(
            self.matching,
            soft(
                f"{matching:,} of {plural(len(records.before), 'record')}; {answer.changed_cells:,} of their {plural(cells, 'cell')} changed.{first} "
                "Changed cells are marked ✎ and shaded. A tap on a row shows the record's graph below."
            ),
        )
        for number, name in enumerate(names):
            after = frame[f"{name}{SEPARATOR}published"].to_numpy(object)
            frame[f"{name}{SEPARATOR}published"] = np.where(changed[:, number], "✎ " + after, after)
        if self.table is not None and list(self.table.value) == list(frame):
            self.table.param.update(value=frame, page=1)
            return
        self.table = _record_table(frame, groups, titles)
        self.table.on_click(self._row_clicked)
        self.records[:] = [self.table]

    def _row_clicked(self, event: Any) -> None:
        if self.table is not None and event.row is not None:
            self.model.record = int(self.table.value["record"].iloc[event.row])

    # ---------------------------------------------------------------------------------------- graph

    def _make_graph(self) -> None:
        self.record = pn.widgets.IntInput(label="Record", value=0, start=0, end=0, width=140)
        pn.bind(self._record_changed, self.record, watch=True)
        self.worst = button("The record that loses most", self._show_worst, width=200, align="end")
        self.graph = html("", "af-graph")
        self.sizes = html("", "af-sizes")

    def _show_worst(self) -> None:
        view = self.model.view()
        if view is not None:
            self.model.record = view.worst

    def _record_changed(self, number: int | None) -> None:
        run = self.model.run
        if run is not None and number is not None:
            self.model.record = max(0, min(number, run.result.records - 1))

    def _show_graph(self) -> None:
        around = self.model.neighbourhood()
        anonymization = self.model.anonymization
        if around is None or anonymization is None:
            return
        self.record.value = self.model.record
        before, after = around.texts(anonymization)
        left = [
            f"#{at}: {', '.join(row)}"
            for at, row in zip(around.originals.tolist(), before.to_numpy().tolist(), strict=True)
        ]
        right = [", ".join(row) for row in after.to_numpy().tolist()]
        drawn = around_one(left, right, map(tuple, around.edges.tolist()), solid=around.kind != "covers")
        sentence = _hidden_among(
            around.kind,
            around.originals_in_all,
            around.rows_in_all,
            not_drawn=around.originals_in_all - len(around.originals),
        )
        lists = facts(
            ["", *before.columns],
            [
                [Markup("<b>{}</b>").format(ORIGINAL), *before.iloc[0]],
                [Markup("<b>{}</b>").format("published as"), *after.iloc[0]],
            ],
        )
        self.graph.object = str(
            Markup('{}<p class="soft">{}</p><div class="scroll goes-on">{}</div>').format(
                lists, sentence, drawn
            )
        )

    def _show_sizes(self) -> None:
        anonymization = self.model.anonymization
        if anonymization is None:
            return
        counts = sizes_of(anonymization)
        regular = anonymization.matches is not None
        unit = "originals that a published row may stand for" if regular else "records in the class"
        if anonymization.matches is None and anonymization.classes is None:
            unit = "originals that a published row covers"
        if len(counts) == 1:
            size, number = counts[0]
            say(self.sizes, f"Each of the {number:,} published rows: {size:,} {unit}.")
        else:
            title = "Matches of each row" if regular else "Class sizes"
            say(self.sizes, soft(f"Across: {unit}. Up: number of rows.") + columns(counts, title, unit))

    # -------------------------------------------------------------------------------------- attackers

    def _make_attacks(self) -> None:
        self.attack = button(ATTACK, self.model.attack, css="af-attack", color="primary", width=180)
        self.attacked = html("", "af-attacks")
        self.remedies = Remedies(self.workspace, self.model.price)

    def _show_attacks(self) -> None:
        model = self.model
        self.remedies.show(
            None if model.attacks is None else model.attacks.card,
            None if model.run is None else model.run.id,
            model.busy,
        )
        self.attack.disabled = model.busy or model.run is None
        self.attack.label = "Attacking…" if model.busy else ATTACK
        if model.problem:
            self.attacked.object = str(Markup("<p>{}</p>").format(f"The attack failed: {model.problem}"))
        elif model.attacks is None:
            self.attacked.object = (
                ""
                if model.busy
                else "<p class='soft'>Nobody has attacked this run yet. anonflow draws a release for the attack and discards it.</p>"
            )
        else:
            k = model.run.result.k if model.run is not None else 0
            self.attacked.object = str(attacks_markup(model.attacks, k))


def _record_table(frame: Any, groups: dict[str, list[str]], titles: dict[str, str]) -> LightTable:
    table = LightTable(
        frame,
        show_index=False,
        disabled=True,
        pagination="remote",
        page_size=PAGE,
        selectable=False,
        groups=groups,
        titles=titles,
        frozen_columns=["record"],
        formatters={name: {"type": "plaintext"} for name in frame.columns},
        layout="fit_data",
        sizing_mode="stretch_width",
        css_classes=["af-records"],
        margin=(6, 0),
    )
    marked = "background-color: color-mix(in srgb, #d9731a 22%, transparent);"

    after = [both[1] for both in groups.values()]
    table.style.apply(
        lambda cells: [marked if str(cell).startswith("✎ ") else "" for cell in cells], subset=after
    )
    return table


def attacks_markup(attacks: Attacks, k: int) -> Markup:
    """Return the page of risks: verdicts, sentences, and rates with their intervals."""
    rows = []
    for row in attacks.rows:
        beaten = row["at_risk"] > 0
        people = plural(row["at_risk"], "person")
        rows.append(
            [
                Markup("<b>{}</b><br><span class='soft'>{}</span><br>{}").format(
                    called(row),
                    row["attacker"],
                    verdict_of(not beaten, "as promised", f"{people} more at risk than promised"),
                ),
                row["knows"],
                in_plain_words(row),
            ]
        )
    rates = [(called(row), row["success"], row["low"], row["high"], row["baseline"]) for row in attacks.rows]
    picture = intervals(rates, "Success of each attacker, with its interval")
    return Markup(
        "{}<div class='attackers'>{}</div><h4>{}</h4><p class='soft'>{}</p>{}<h4>{}</h4><p class='soft'>{}</p>{}"
    ).format(
        Markup("")
        if attacks.card is None
        else Markup("<h4>{}</h4><p><b>{}</b></p>{}<h4>{}</h4>").format(
            "Release card", attacks.card.headline(), card_lines(attacks.card), "Each attacker"
        ),
        facts(("attacker, verdict", "knows besides the release", "what it achieves"), rows),
        "How often each one wins",
        (
            "Dot: the share of people for whom it wins. Line: where a counted rate lies with confidence 95%. Orange bar: the most that the "
            f"release allows, such as one in k = {k} for a row, and nobody whose sensitive value is certain."
        ),
        picture,
        "Among how many rows each person is",
        "Across: rows that cover a person. Up: number of people.",
        columns(attacks.covering, "Rows that cover each person", "rows that cover a person"),
    )


def _hidden_among(kind: str, originals: int, rows: int, not_drawn: int) -> str:
    """Return what the graph of a record shows; `kind` is that of a neighbourhood."""
    remainder = f" {not_drawn:,} more {verb_of(not_drawn, 'are')} not drawn." if not_drawn > 0 else ""
    return {
        "matches": "Thick orange: the {rows} published rows that may be this person's; each is the true one with the same "
        "probability. Dashed blue: the {originals} people whose values this generalized record covers. Thin: matches "
        "among the others. Nobody can tell them apart by these columns.",
        "class": "This record is published in a class of {originals} equal rows: somebody who looks for one of these people finds "
        "all of them.",
        "covers": "Dotted orange: the {rows} published rows that cover this person. k-concealment promises that at least k of "
        "them are matches, not that each is equally likely.",
        "suppressed": "This record is suppressed: it is published as * in every column, and reveals nothing.",
    }[kind].format(originals=originals, rows=rows) + remainder
