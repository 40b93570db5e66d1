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
from anonflow.dashboards.components import figures
from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.direction import directed
from anonflow.dashboards.components.html import (
    badge,
    card,
    cards,
    empty,
    facts,
    figure_pane,
    html,
    sheet,
    verdict_of,
)
from anonflow.dashboards.components.release_card import Remedies, card_lines
from anonflow.dashboards.components.shown_part import Filling
from anonflow.dashboards.explore import texts
from anonflow.dashboards.explore.association_card import AssociationCard
from anonflow.dashboards.explore.model import Attacks, ExploreModel, FoundRecords, called, in_plain_words
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.comparisons import heat, intervals
from anonflow.drawing.neighbours import around_one
from anonflow.drawing.plots import columns
from anonflow.errors import AnonflowError

__all__ = ["ExploreScreen"]

PAGE = 15
MOST = 600
"""Records that are listed at once; others are found by searching."""
SEPARATOR = " · "


class ExploreScreen(pn.viewable.Viewer):
    """The screen of the chosen run.

    Parameters
    ----------
    workspace : Workspace
    """

    workspace = param.ClassSelector(class_=Workspace, constant=True)
    title = param.String(default=texts.TITLE, constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, **params)
        self.model = ExploreModel(workspace)
        self._filling = Filling()
        self._shown: Any = None
        self._make_loss()
        self._make_lattice()
        self._make_records()
        self._make_graph()
        self._make_attacks()
        self._names: list[Any] = []
        self._panels: list[Any] = []
        self.inside = pn.Column(
            pn.Row(self.chosen),
            self._of_run(texts.THIS_RUN, self.facts),
            card(texts.LOSSES, self.losses, lead=texts.ABOUT_LOSSES),
            self.levels,
            self._of_run(texts.ONE_COLUMN, pn.Row(self.column), self.distance, self.overlay, lead=texts.ABOUT_ONE_COLUMN),
            AssociationCard(workspace),
            self._of_run(texts.BEFORE_AFTER_RECORDS, pn.Row(self.search, self.only_changed), self.matching, self.records),
            self._of_run(texts.HIDDEN_AMONG, pn.Row(self.record, self.worst), self.graph),
            self._of_run(texts.SIZES, self.sizes),
            self._of_run(texts.ATTACKS, self.attack, self.attacked, self.remedies, lead=texts.ABOUT_ATTACKS),
            sizing_mode="stretch_width",
            margin=0,
            visible=self.model.run is not None,
        )  # fmt: skip
        workspace.param.watch(self._show, ["chosen", "runs"])
        workspace.param.watch(self._show_distribution, "dark")
        self.model.param.watch(self._show_distribution, "column")
        self.model.param.watch(self._show_graph, "record")
        self.model.param.watch(self._show_attacks, ["attacks", "attacking", "problem"])
        self._show()

    def _of_run(self, title: str, *inside: Any, lead: str = "") -> pn.Column:
        """Return a card that says of which run it is."""
        self._names.append(html(""))
        self._panels.append(card(title, self._names[-1], *inside, lead=lead))
        return self._panels[-1]

    def _show(self, *events: Any) -> None:
        run = self.model.run
        self.nothing.visible, self.inside.visible = run is None, run is not None
        options = {
            f"{candidate.name} (#{candidate.id})": candidate.id
            for candidate in self.workspace.runs
            if candidate.result.anonymization is not None
        }
        with self._filling:
            self.chosen.options = options
            if run is not None:
                self.chosen.value = run.id
        names, runs, values = self.model.heat()
        self.losses.object = str(heat(names, runs, values))
        if run is None or run is self._shown:
            return
        self._shown = run
        self._name(texts.computing(run.name, run.id), True)
        self.model.prepare(self._fill, self._not_filled)

    def _name(self, text: str, stale: bool) -> None:
        """Say on every panel which run it shows; grey what is still the run before."""
        for name in self._names:
            name.object = str(Markup('<p class="soft" role="status">{}</p>').format(text))
        for panel in self._panels:
            panel.css_classes = ["af-card", *(["af-stale"] if stale else [])]

    def _not_filled(self, problem: str) -> None:
        self._name(texts.not_shown(problem), True)

    def _fill(self) -> None:
        run = self.model.run
        if run is None:
            return
        self._name(texts.of_run(run.name, run.id), False)
        result = run.result
        self.facts.object = str(
            cards(
                [
                    (f"{result.records:,}", texts.RECORDS),
                    (str(result.k), texts.K),
                    (
                        f"{result.measures.get('gcp', float('nan')):.4f}",
                        directed(texts.LOSS, "gcp"),
                    ),
                    (f"{result.suppressed:,}", directed(texts.SUPPRESSED, "suppressed")),
                    (result.guarantee, texts.GUARANTEE),
                ]
            )
        )
        lost = self.model.missing_losses()
        if lost:
            self.facts.object += str(
                Markup("<h4>{}</h4><ul class='limits'>{}</ul>").format(
                    texts.WITHOUT_A_VALUE,
                    Markup("").join(Markup("<li>{}</li>").format(each.sentence()) for each in lost),
                )
            )
        with self._filling:
            self.column.options = self.model.columns
            self.column.value = self.model.column
            self.record.end = result.records - 1
            self.record.value = self.model.record
        self._show_lattice()
        self._show_distribution()
        self._show_records()
        self._show_graph()
        self._show_sizes()
        self._show_attacks()

    # ------------------------------------------------------------------------- loss, distributions

    def _make_loss(self) -> None:
        self.nothing = empty(texts.NO_RUN)
        self.chosen = pn.widgets.Select(label=texts.RUN, options={}, width=300)
        self.chosen.param.watch(self._run_changed, "value")
        self.facts = html("")
        self.losses = html("", "af-heat")
        self.column = pn.widgets.Select(label=texts.COLUMN, options=[], width=260)
        self.column.link(self.model, value="column")
        self.distance = html("")
        self.overlay = figure_pane(css_classes=["af-overlay"])

    def _run_changed(self, event: Any) -> None:
        if not self._filling and event.new is not None:
            self.workspace.choose(event.new)

    def _show_distribution(self, *events: Any) -> None:
        if self.column.value != self.model.column and self.model.column in self.column.options:
            self.column.value = self.model.column
        distribution = self.model.distribution()
        if distribution is None:
            return
        self.overlay.object = figures.overlay(distribution, figures.look(self.workspace.dark))
        self.distance.object = str(Markup("<p>{}</p>").format(texts.distance(distribution.distance)))

    # -------------------------------------------------------------------------------------- lattice

    def _make_lattice(self) -> None:
        self.lattice = Clickable(on_click=self._node_clicked, sizing_mode="stretch_width")
        self.levels_problem = html("", "af-bad")
        self.levels = card(texts.LEVELS, self.levels_problem, self.lattice)
        self._refuse_node("")
        self.levels.visible = False

    def _show_lattice(self) -> None:
        part = self.model.lattice()
        self.levels.visible = part is not None
        self._refuse_node("")
        if part is not None:
            self.lattice.html = str(Markup("<div>{}</div>").format(lattice_view(part, keys=True)))

    def _node_clicked(self, key: str) -> None:
        self._refuse_node("")
        word, _, place = key.partition(":")
        if word != "node" or not place.isdecimal():
            return
        try:
            self.model.run_node(int(place))
        except AnonflowError as error:
            self._refuse_node(error.message)

    def _refuse_node(self, sentence: str) -> None:
        self.levels_problem.object = str(Markup("<p>{}</p>").format(sentence)) if sentence else ""
        self.levels_problem.visible = bool(sentence)

    # -------------------------------------------------------------------------------------- records

    def _make_records(self) -> None:
        self.search = pn.widgets.TextInput(label=texts.SEARCH, placeholder=texts.SEARCH_EXAMPLE, width=280)
        self.only_changed = pn.widgets.Checkbox(label=texts.ONLY_CHANGED, align="end")
        self.search.param.watch(self._show_records, "value")
        self.only_changed.param.watch(self._show_records, "value")
        self.matching = html("")
        self.records = pn.Column(sizing_mode="stretch_width", margin=0)
        self.table: pn.widgets.Tabulator | None = None

    def _show_records(self, *events: Any) -> None:
        self.matching.object = f"<p class='soft' role='status'>{texts.SEARCHING}</p>"
        self.model.search(self.search.value, self.only_changed.value, self._list_records, self._not_searched)

    def _not_searched(self, problem: str) -> None:
        self.matching.object = str(Markup("<p>{}</p>").format(texts.not_searched(problem)))

    def _list_records(self, answer: FoundRecords) -> None:
        records = self.model.records()
        if records is None:
            return
        at = answer.at[:MOST]
        names = list(records.before.columns)
        shown: dict[str, Any] = {"record": at}
        groups: dict[str, list[str]] = {}
        titles = {"record": texts.RECORD_COLUMN}
        for name in names:
            both = [f"{name}{SEPARATOR}original", f"{name}{SEPARATOR}published"]
            shown[both[0]] = records.before[name].iloc[at].to_numpy(object)
            shown[both[1]] = records.after[name].iloc[at].to_numpy(object)
            groups[escape(name)] = both  # Tabulator takes titles for markup
            titles |= dict(zip(both, (texts.ORIGINAL, texts.PUBLISHED), strict=True))
        frame = pd.DataFrame(shown)
        changed = records.changed[at]
        self.matching.object = str(
            Markup('<p class="soft">{}</p>').format(
                texts.matching(len(answer.at), len(records.before), answer.changed_cells, len(answer.at) * len(names), MOST)
            )
        )  # fmt: skip
        for number, name in enumerate(names):
            after = frame[f"{name}{SEPARATOR}published"].to_numpy(object)
            frame[f"{name}{SEPARATOR}published"] = np.where(changed[:, number], "✎ " + after, after)
        self.table = _record_table(frame, groups, titles)
        self.table.on_click(self._row_clicked)
        self.records[:] = [self.table]

    def _row_clicked(self, event: Any) -> None:
        if self.table is not None and event.row is not None:
            self.model.record = int(self.table.value["record"].iloc[event.row])

    # ---------------------------------------------------------------------------------------- graph

    def _make_graph(self) -> None:
        self.record = pn.widgets.IntInput(label=texts.RECORD, value=0, start=0, end=0, width=140)
        self.record.param.watch(self._record_changed, "value")
        self.worst = pn.widgets.Button(label=texts.WORST, width=200, align="end")
        self.worst.on_click(lambda _: self.model.param.update(record=self.model.worst_record()))
        self.graph = html("", "af-graph")
        self.sizes = html("", "af-sizes")

    def _record_changed(self, event: Any) -> None:
        run = self.model.run
        if not self._filling and run is not None and event.new is not None:
            self.model.record = max(0, min(int(event.new), run.result.records - 1))

    def _show_graph(self, *events: Any) -> None:
        around = self.model.neighbourhood()
        anonymization = self.model.anonymization
        if around is None or anonymization is None:
            return
        with self._filling:
            self.record.value = self.model.record
        before, after = around.texts(anonymization)
        left = [
            f"#{at}: {', '.join(row)}"
            for at, row in zip(around.originals.tolist(), before.to_numpy().tolist(), strict=True)
        ]
        right = [", ".join(row) for row in after.to_numpy().tolist()]
        drawn = around_one(left, right, map(tuple, around.edges.tolist()), solid=around.kind != "covers")
        sentence = texts.hidden_among(
            around.kind,
            around.originals_in_all,
            around.rows_in_all,
            not_drawn=around.originals_in_all - len(around.originals),
        )
        lists = facts(
            ["", *before.columns],
            [
                [Markup("<b>{}</b>").format(texts.ORIGINAL), *before.iloc[0]],
                [Markup("<b>{}</b>").format(texts.PUBLISHED_AS), *after.iloc[0]],
            ],
        )
        self.graph.object = str(
            Markup('{}<p class="soft">{}</p><div class="scroll">{}</div>').format(lists, sentence, drawn)
        )

    def _show_sizes(self, *events: Any) -> None:
        anonymization = self.model.anonymization
        if anonymization is None:
            return
        counts = self.model.sizes()
        regular = anonymization.matches is not None
        unit = texts.MAY_STAND_FOR if regular else texts.IN_THE_CLASS
        if anonymization.matches is None and anonymization.classes is None:
            unit = texts.COVERED
        if len(counts) == 1:
            size, number = counts[0]
            text = Markup("<p>{}</p>").format(texts.each_row(number, size, unit))
        else:
            title = texts.MATCHES_PICTURE if regular else texts.CLASSES_PICTURE
            text = Markup("<p class='soft'>{}</p>{}").format(
                texts.axes_of_sizes(unit), columns(counts, title, unit)
            )
        self.sizes.object = str(text)

    # -------------------------------------------------------------------------------------- attackers

    def _make_attacks(self) -> None:
        self.attack = pn.widgets.Button(
            label=texts.ATTACK, color="primary", width=180, css_classes=["af-attack"]
        )
        self.attack.on_click(lambda _: self.model.attack())
        self.attacked = html("", "af-attacks")
        self.remedies = Remedies(self.workspace, self.model.price)

    def _show_attacks(self, *events: Any) -> None:
        model = self.model
        self.remedies.show(
            None if model.attacks is None else model.attacks.card,
            None if model.run is None else model.run.id,
            model.attacking,
        )
        self.attack.disabled = model.attacking or model.run is None
        self.attack.label = texts.ATTACKING if model.attacking else texts.ATTACK
        if model.problem:
            self.attacked.object = str(Markup("<p>{}</p>").format(texts.not_attacked(model.problem)))
        elif model.attacks is None:
            self.attacked.object = (
                f"<p class='soft' role='status'>{texts.AT_WORK}</p>"
                if model.attacking
                else f"<p class='soft'>{texts.NOT_ATTACKED}</p>"
            )
        else:
            k = model.run.result.k if model.run is not None else 0
            self.attacked.object = str(attacks_markup(model.attacks, k))

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            html(
                Markup("<h2>{}</h2><p>{} <span class='soft'>{}</span></p>").format(
                    texts.TITLE, badge(False, texts.OWNERS_VIEW), texts.LEAD
                )
            ),
            self.nothing,
            self.inside,
            sizing_mode="stretch_width",
        )


def _record_table(frame: Any, groups: dict[str, list[str]], titles: dict[str, str]) -> pn.widgets.Tabulator:
    table = pn.widgets.Tabulator(
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
        stylesheets=[sheet()],
        css_classes=["af-records"],
        margin=(6, 0),
    )
    marked = "background-color: color-mix(in srgb, #d9731a 22%, transparent); font-weight: 600;"

    def shade(cells: Any) -> list[str]:
        return [marked if str(cell).startswith("✎ ") else "" for cell in cells]

    after = [both[1] for both in groups.values()]
    table.style.apply(shade, subset=after)
    return table


def attacks_markup(attacks: Attacks, k: int) -> Markup:
    """Return the page of risks: verdicts, sentences, and rates with their intervals."""
    rows = []
    for row in attacks.rows:
        beaten = row["at_risk"] > 0
        more = texts.more_at_risk(row["at_risk"])
        rows.append(
            [
                Markup("<b>{}</b><br><span class='soft'>{}</span><br>{}").format(
                    called(row), row["attacker"], verdict_of(not beaten, texts.AS_PROMISED, more)
                ),
                row["knows"],
                in_plain_words(row),
            ]
        )
    shown = [(called(row), row["success"], row["low"], row["high"], row["baseline"]) for row in attacks.rows]
    picture = intervals(shown, texts.HOW_OFTEN_PICTURE)
    return Markup(
        "{}<div class='attackers'>{}</div><h4>{}</h4><p class='soft'>{}</p>{}<h4>{}</h4><p class='soft'>{}</p>{}"
    ).format(
        Markup("")
        if attacks.card is None
        else Markup("<h4>{}</h4><p><b>{}</b></p>{}<h4>{}</h4>").format(
            texts.RELEASE_CARD, attacks.card.headline(), card_lines(attacks.card), texts.EACH_ATTACKER
        ),
        facts(texts.ATTACKS_HEADER, rows),
        texts.HOW_OFTEN,
        texts.about_how_often(k),
        picture,
        texts.AMONG,
        texts.ABOUT_AMONG,
        columns(attacks.covering, texts.AMONG_PICTURE, texts.AMONG_UNIT),
    )
