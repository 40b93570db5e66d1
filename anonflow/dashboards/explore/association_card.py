"""The card of the screen Explore with the associations of columns before and after a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import button, card, html, items, say, soft
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.heat_map import difference_map, heat_map
from anonflow.utility.analyses.association import Associations, associations_of

COMPARE = "Compare the associations"
BEFORE_AND_AFTER = "Before and after"
DIFFERENCE = "The difference"


class AssociationCard(ScreenModel, pn.viewable.Viewer):
    """The associations of all pairs of published columns, of the chosen run."""

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self.start = button(COMPARE, self.compare, css="af-associate", color="primary", width=220)
        self.which = html("")
        self.picture = html("", "af-association")
        self._card = card(
            "Associations of columns, before and after",
            self.which,
            self.start,
            AtWork(self.background),
            self.picture,
            lead=(
                "Between 0 and 1: the correlation of two numbers, Cramer's V of two categories, the correlation ratio of a number and a "
                "category. After: the mean over plausible tables of what would be published, times the share of rows that are not suppressed."
            ),
        )
        self._show()

    def compare(self) -> None:
        """Compute those of the chosen run, aside."""
        run = self.run
        if run is None or run.result.anonymization is None or self.busy:
            return
        anonymization = run.result.anonymization

        def done(result: Associations) -> None:
            if any(past_run.id == run.id for past_run in self.workspace.runs.finished):
                self.noted.associations[run.id] = result

        self.compute(
            lambda: associations_of(anonymization.table, anonymization),
            done,
            "comparing all pairs of columns with plausible tables",
        )

    @param.depends("workspace.runs.chosen", "workspace.runs.finished", "busy", "problem", watch=True)
    def _show(self) -> None:
        run = self.run
        associations: Associations | None = None if run is None else self.noted.associations.get(run.id)
        self.start.disabled = self.busy or run is None
        self.start.visible = associations is None
        self.start.label = "Comparing…" if self.busy else COMPARE
        if run is not None:
            say(self.which, soft(f"Run: {run.name} (#{run.id})", "status"))
        drawn = "" if associations is None else associations_markup(associations)
        say(self.picture, f"This cannot be compared: {self.problem}" if self.problem else drawn)

    def __panel__(self) -> pn.viewable.Viewable:
        return self._card


def associations_markup(associations: Associations) -> Markup:
    """Return the two pictures, and the pairs that changed most in words."""
    change = np.asarray(associations.after) - np.asarray(associations.before)
    below = np.tril_indices(len(associations.columns), -1)
    order = np.argsort(-np.abs(change[below]), kind="stable")[:5]
    worst = items(
        f"{associations.columns[below[0][at]]} and {associations.columns[below[1][at]]}: "
        f"{float(associations.before[below][at]):.2f} before, {float(associations.after[below][at]):.2f} after"
        for at in order.tolist()
    )
    scroll = Markup("<div class='scroll' tabindex='0' role='group' aria-label='{}'>{}</div>")
    return Markup(
        "<div class='abreast'><div><h4>{}</h4><p class='soft'>{}</p>{}</div>"
        "<div><h4>{}</h4><p class='soft'>{}</p>{}</div></div>"
        "<h4>{}</h4>{}"
    ).format(
        BEFORE_AND_AFTER,
        "Below the diagonal: in the originals. Above it: in the release.",
        scroll.format(
            BEFORE_AND_AFTER,
            heat_map(
                associations.columns,
                associations.before,
                associations.after,
                "Association of columns before and after",
            ),
        ),
        DIFFERENCE,
        "Blue: stronger than before. Orange: weaker.",
        scroll.format(
            DIFFERENCE,
            difference_map(associations.columns, change, "Change of the association of columns"),
        ),
        "What changed most",
        worst,
    )
