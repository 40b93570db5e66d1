"""Pieces of HTML for a notebook's cell: text is escaped, markup is kept.

Colours are shades of the page's own colour (``currentColor``), so that light and dark pages are both readable; accents
have a middle brightness, which is readable on either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

LONGEST = 60
"""Characters of a cell that are shown."""

_STYLE = Markup(
    "<style>"
    ".anonflow-view{font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;max-width:64rem}"
    ".anonflow-view .title{font-weight:600;font-size:1.05em}"
    ".anonflow-view .part{font-weight:600;margin:.9em 0 .2em}"
    ".anonflow-view .facts span{display:inline-block;margin-right:1.4em}"
    ".anonflow-view .facts b{font-variant-numeric:tabular-nums;font-weight:600}"
    ".anonflow-view .note{opacity:.75;margin:.2em 0}"
    ".anonflow-view .owner{display:inline-block;border:1px solid currentColor;border-radius:1em;padding:0 .7em;"
    "margin-left:.8em;font-weight:400;font-size:.85em;opacity:.85}"
    ".anonflow-view .scroll{overflow-x:auto}"
    ".anonflow-view table{border-collapse:collapse;margin:.3em 0;font-size:.95em;font-variant-numeric:tabular-nums}"
    ".anonflow-view table th,.anonflow-view table td{text-align:left !important;padding:.15em 1.1em .15em 0;"
    "vertical-align:top;background:none;border:0;border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}"
    ".anonflow-view th{font-weight:600;white-space:nowrap}"
    ".anonflow-view table .n{text-align:right !important}"
    ".anonflow-view i{display:block;font-style:normal;opacity:.7}"
    ".anonflow-view svg{max-width:100%;height:auto;display:block;margin:.3em 0}"
    "</style>"
)


class Fragment(Markup):
    """HTML that a notebook shows without escaping: an SVG, or a whole view."""

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<Fragment: {len(self):,} characters of HTML>"


def shortened(value: Any, longest: int = LONGEST) -> str:
    """Return a value as text, cut at the length of a cell."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def or_dash(number: float | None, form: str = ".4f") -> str:
    """Return a number in a format, and a dash where there is none."""
    return "–" if number is None or number != number else format(number, form)


def share(part: int, whole: int) -> str:
    """Return a share in percent; 0% only of nothing, and 100% only of all."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f}%" if part in (0, whole) or 1 <= percent <= 99 else f"{percent:.1f}%"


def view(title: str, *parts: str, owner: bool = False) -> Fragment:
    """Return the view of an object: its title and its parts.

    Parameters
    ----------
    title : str
        Plain text.
    *parts : Markup or str
        Markup is kept; other text is escaped.
    owner : bool
        Whether the view is for the owner only; then the title says so.
    """
    badge = Markup('<span class="owner">owner’s view: not to be published</span>') if owner else ""
    head = Markup('<div class="title">{}{}</div>').format(title, badge)
    body = Markup("").join(escape(part) for part in parts)
    return Fragment(Markup('{}<div class="anonflow-view">{}{}</div>').format(_STYLE, head, body))


def heading(text: str) -> Markup:
    """Return the title of a part of a view."""
    return Markup('<div class="part">{}</div>').format(text)


def note(text: str) -> Markup:
    """Return a paragraph of a view."""
    return Markup('<p class="note">{}</p>').format(text)


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Return names and numbers in a line.

    Parameters
    ----------
    pairs : iterable of (str, value)
    """
    # the space separates the words if a page removes the styles
    spans = Markup(" ").join(
        Markup("<span>{} <b>{}</b></span>").format(name, shortened(value)) for name, value in pairs
    )
    return Markup('<div class="facts">{}</div>').format(spans)


def grid(header: Sequence[Any], rows: Iterable[Sequence[Any]], numbers: Iterable[int] = ()) -> Markup:
    """Return a table.

    Parameters
    ----------
    header : sequence, length c
    rows : iterable of sequences, each of length c
        Cells are shown as text of at most ``LONGEST`` characters; markup is kept.
    numbers : iterable of int
        Columns that are aligned to the right.
    """
    right = set(numbers)

    def row(tag: str, cells: Sequence[Any]) -> Markup:
        drawn = [
            Markup("<{}{}>{}</{}>").format(
                Markup(tag),
                Markup(' class="n"') if at in right else "",
                cell if isinstance(cell, Markup) else shortened(cell),
                Markup(tag),
            )
            for at, cell in enumerate(cells)
        ]
        return Markup("<tr>{}</tr>").format(Markup("").join(drawn))

    body = Markup("").join(row("td", cells) for cells in rows)
    return Markup('<div class="scroll"><table><thead>{}</thead><tbody>{}</tbody></table></div>').format(
        row("th", header), body
    )
