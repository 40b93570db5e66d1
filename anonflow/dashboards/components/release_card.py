"""The release card as screens show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from anonflow.dashboards.components.html import facts, verdict_of

if TYPE_CHECKING:
    from anonflow.engine.report.card import ReleaseCard

__all__ = ["card_lines"]


def card_lines(card: ReleaseCard) -> Markup:
    """Return a line for each thing to know of a release: its verdict, what was found, and what remedies cost."""
    signs = {"passed": verdict_of(True, "passed"), "failed": verdict_of(False, bad="failed")}
    rows = []
    for line in card.lines:
        remedies = Markup("").join(Markup("<li>{}</li>").format(each.sentence()) for each in line.remedies)
        finding = (
            Markup("{}<ul class='limits'>{}</ul>").format(line.says, remedies) if remedies else line.says
        )
        rows.append([line.name.capitalize(), signs.get(line.verdict, line.verdict), finding])
    return facts(["line", "verdict", "what was found, and what to do"], rows)
