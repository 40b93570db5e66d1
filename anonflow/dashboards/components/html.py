"""Small parts of screens with results: escaped HTML, notes, figures in a pane."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import panel as pn
import param
from markupsafe import Markup, escape
from panel.layout.base import ListLike, ListPanel

WIDE = 7
"""Columns of a table beyond which it may be wider than the page: each is as wide as its text, and a shadow says that it goes on."""


class _NoLayout(ListLike):
    """What stands in place of the row that Panel makes for each pane, for panes that stand in no layout."""

    def __init__(self, *panes: Any, **params: Any) -> None:
        """Keep nothing: not even what every parameterized object has."""


class _LightPane(pn.pane.HTML):
    """A pane of markup inside a layout: it has no row that is told of each of its changes."""

    default_layout = _NoLayout

    def _sync_layoutable(self, *events: Any) -> None:
        """Tell nobody."""


def html(text: str | Markup = "", *classes: str, **params: Any) -> pn.pane.HTML:
    """Return a pane of markup; plain text is escaped."""
    return _LightPane(
        str(escape(text)),
        css_classes=list(classes),
        sizing_mode="stretch_width",
        **{"margin": (4, 0), **params},
    )


def notice(*classes: str) -> pn.pane.HTML:
    """Return a pane that is hidden until :func:`say` gives it a text."""
    return html("", *classes, visible=False)


def say(pane: pn.pane.HTML, text: str | Markup = "") -> None:
    """Show plain text as a paragraph of a pane, and markup as it is; hide the pane where there is none."""
    markup = text if isinstance(text, Markup) else Markup("<p>{}</p>").format(text)
    pane.param.update(object=str(markup) if text else "", visible=bool(text))


def soft(text: str, role: str = "") -> Markup:
    """Return a paragraph of lesser text; with the role ``status``, screen readers read it when it changes."""
    of_role = Markup(' role="{}"').format(role) if role else ""
    return Markup('<p class="soft"{}>{}</p>').format(of_role, text)


def refused(sentence: str) -> Markup:
    """Return why something cannot be done; screen readers read it at once."""
    return Markup("<p class='af-bad' role='alert'>{}</p>").format(sentence)


def items(lines: Iterable[str | Markup], kind: str = "limits") -> Markup:
    """Return a list."""
    listed = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<ul class='{}'>{}</ul>").format(kind, listed)


class _Late(ListPanel):
    """Parts of which a page has models from their first showing on.

    Every model takes some milliseconds of the event loop that all users share, and is walked through with each later
    change of the page. Nothing beside the parts is placed anew: their place is there before.
    """

    def _get_objects(self, model: Any, *of_page: Any) -> tuple[list[Any], list[Any]]:
        return super()._get_objects(model, *of_page) if self.visible or model.children else ([], [])

    @param.depends("visible", watch=True)
    def _show_parts(self) -> None:
        if self.visible and any(len(self) > len(model.children) for model, _ in self._models.values()):
            self.param.trigger("objects")


class _Stack(_Late, pn.Column):
    """Parts below each other."""


def stack(*inside: Any, **params: Any) -> pn.Column:
    """Return parts below each other, over the whole width; while it is hidden at first, a page has no models of them."""
    return _Stack(*inside, **{"sizing_mode": "stretch_width", "margin": 0, **params})


class _Lines(_Late, pn.Row):
    """Parts in lines: as wide as the widest at least, where a row is as wide as all of them."""

    _direction: ClassVar[str] = "vertical"


def in_lines(*inside: Any, end: bool = False) -> pn.Row:
    """Return parts beside each other, in as many lines as they need, set to the top or to the end of their line."""
    classes = ["af-lines", "af-end"] if end else ["af-lines"]
    return _Lines(*inside, css_classes=classes, sizing_mode="stretch_width", margin=0)


def head(title: str, lead: str, badge: Markup | None = None) -> pn.pane.HTML:
    """Return the head of a screen."""
    lead_of = (
        soft(lead) if badge is None else Markup("<p>{} <span class='soft'>{}</span></p>").format(badge, lead)
    )
    return html(Markup("<h2>{}</h2>{}").format(title, lead_of))


def empty(text: str) -> pn.pane.HTML:
    """Return the placeholder of an empty part, which says how to fill it."""
    return html(Markup("<p>{}</p>").format(text), "af-note")


def card_heading(title: str, lead: str = "") -> Markup:
    """Return the heading of a part of a screen."""
    return Markup("<h3>{}</h3>{}").format(title, soft(lead) if lead else "")


def card(title: str, *inside: Any, lead: str = "", classes: Sequence[str] = ()) -> pn.Column:
    """Return a part of a screen with its title."""
    return stack(html(card_heading(title, lead)), *inside, css_classes=["af-card", *classes], margin=(8, 0))


def button(label: str, act: Callable[[], Any], css: str = "", **params: Any) -> pn.widgets.Button:
    """Return a button that calls `act`; the page finds it by its class."""
    return pn.widgets.Button(
        label=label, on_click=lambda event: act(), css_classes=[css] if css else [], **params
    )


def download(
    label: str, content: Callable[[], bytes], name: str | None = None, css: str = "", **params: Any
) -> pn.widgets.FileDownload:
    """Return a button that hands out a file of this name and content; the page finds it by its class."""
    return pn.widgets.FileDownload(
        callback=lambda: io.BytesIO(content()),
        filename=name,
        label=label,
        css_classes=[css] if css else [],  # a browser refuses an empty class
        **params,
    )


class LightTable(pn.widgets.Tabulator):
    """A table whose columns share the editors and formatters that are alike.

    Panel gives each column two models of its own, and each change of the page walks over all of them.
    """

    def _get_column_definitions(self, *names_and_frame: Any) -> list[Any]:
        columns = super()._get_column_definitions(*names_and_frame)
        alike: dict[tuple[Any, ...], Any] = {}
        for column in columns:
            for part in ("editor", "formatter"):
                model = getattr(column, part)
                # what Bokeh says of them in public takes longer than to make them
                settings = map(repr, sorted(model._property_values.items()))
                first = alike.setdefault((type(model), *settings), model)
                if first is not model:
                    setattr(column, part, first)
        return columns


def titled(columns: Mapping[str, tuple[str, int, str]]) -> dict[str, Any]:
    """Return how a table of Tabulator shows columns, from the title, the width and the tooltip of each."""
    return {
        "titles": {name: title for name, (title, _, _) in columns.items()},
        "widths": {name: width for name, (_, width, _) in columns.items()},
        "header_tooltips": {name: tip for name, (_, _, tip) in columns.items() if tip},
    }


def labelled(widget: Any, **params: Any) -> pn.Column:
    """Return a group of boxes below its label, which Panel gives to screen readers alone."""
    label = html(Markup('<span class="label" aria-hidden="true">{}</span>').format(widget.label))
    return _Stack(label, widget, margin=0, **params)


def facts(header: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[int] = ()) -> Markup:
    """Return a table over the whole width, with some columns of numbers set to the right; markup stands as it is."""
    right = set(numbers)

    def cell(tag: str, at: int, value: Any) -> Markup:
        extra = Markup(' class="n"') if at in right else Markup("")
        if tag == "th" and not value:
            tag = "td"  # a header of nothing is none
        elif tag == "th":
            extra += Markup(' scope="col"')
        return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), extra, value)

    header_cells = Markup("").join(cell("th", at, name) for at, name in enumerate(header))
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(cell("td", at, content) for at, content in enumerate(row))
        )
        for row in rows
    )
    return Markup('<div class="scroll{}"><table class="facts"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>').format(
        " goes-on wide" if len(header) > WIDE else "", header_cells, body
    )  # fmt: skip


def progress(lines: Iterable[tuple[str, float | None, str]], role: str = "") -> Markup:
    """Return a bar for each of what is at work: what it is, its finished share where that is known, and what it is at; nothing without any. With the role ``status``, screen readers read what it is when it changes."""
    rows = Markup("").join(
        Markup(
            '<span{3}>{0}</span><progress max="1"{1} aria-label="{0}: share that is done"></progress><span class="n">{2}</span>'
        ).format(
            words,
            Markup("") if share is None else Markup(' value="{:.3f}"').format(share),
            beside,
            Markup(' role="{}"').format(role) if role else "",
        )
        for words, share, beside in lines
    )
    return Markup('<div class="progress">{}</div>').format(rows) if rows else rows


def cards(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Return numbers with their labels below."""
    numbers = Markup("").join(
        Markup("<div><b>{}</b><span>{}</span></div>").format(n, label) for n, label in pairs
    )
    return Markup('<div class="cards">{}</div>').format(numbers)


def verdict_of(holds: bool, good: str = "holds", bad: str = "fails") -> Markup:
    """Return a verdict in text, symbol and colour."""
    if holds:
        return Markup('<span class="verdict good"><span aria-hidden="true">✓</span>{}</span>').format(good)
    return Markup('<span class="verdict bad"><span aria-hidden="true">✗</span>{}</span>').format(bad)


_OPEN = Markup(
    '<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">'
    '<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18"/></svg>'
)
_LOCK = Markup(
    '<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">'
    '<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/></svg>'
)


def badge(public: bool, text: str) -> Markup:
    """Return the badge for who may see the following part: a globe for everybody, a lock for the owner."""
    kind, sign = ("public", _OPEN) if public else ("owner", _LOCK)
    return Markup('<span class="badge {}">{}{}</span>').format(Markup(kind), sign, text)
