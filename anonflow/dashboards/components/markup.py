"""Small pieces of markup: bars, counts, lists of methods. Every text of the user's table is escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.registry import promise_of

SMALL = '<span class="chip">small tables</span>'

FAMILIES = {
    "freeform": "Freeform: every row its own generalization, the least loss",
    "k-concealment": "k-concealment: at least k matches for each record, not each equally likely",
    "clustering": "Clustering: classes of equal rows",
    "recoding": "Recoding: classes of equal rows, the classical way",
    "pattern": "Patterns: values stay exact or are hidden",
}


def unique_bars(bars: Sequence[tuple[str, int, str, float]]) -> str:
    """Return how many records are unique as quasi-identifiers are added, a bar for each: column, number, share in words, and from 0 to 1."""
    rows = []
    for at, (name, count, words, part) in enumerate(bars):
        escaped_name = escape(name)
        rows.append(
            f'<div class="name" title="{escaped_name}">{"+ " if at else ""}{escaped_name}</div>'
            f'<div class="track" aria-hidden="true"><div class="fill" style="width:{100 * part:.2f}%"></div></div>'
            f'<div class="number">{count:,} · {words}</div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


def risk(count: int, n: int, words: str, sentence: str) -> str:
    """Return the count of records at risk, large, with a bar, their share in words, and a sentence."""
    if not n:
        return f'<div class="risk"><div class="told">{escape(sentence)}</div></div>'
    return (
        f'<div class="risk" role="status"><div><span class="big">{count:,}</span> record{"" if count == 1 else "s"} at risk ({words})</div>'
        f'<div class="told">{escape(sentence)}</div>'
        f'<div class="track" aria-hidden="true"><div class="fill" style="width:{100 * count / n:.2f}%"></div></div></div>'
    )


def methods_list(chosen: Collection[str]) -> str:
    """Return every method of the registry to choose from, by family, with its guidance and what it guarantees; the chosen ones are marked."""
    parts = []
    families = dict.fromkeys([*FAMILIES, *(method.family for method in REGISTRY.values())])
    for family in families:
        methods = [method for method in REGISTRY.values() if method.family == family]
        if not methods:
            continue
        cells = []
        for method in methods:
            on = method.name in chosen
            cells.append(
                f'<div class="method{" on" if on else ""}" data-key="{method.name}" role="checkbox" tabindex="-1" '
                f'aria-checked="{"true" if on else "false"}" title="{escape(method.paper, quote=True)}">'
                f'<span class="box" aria-hidden="true">{"✓" if on else ""}</span>'
                f'<span><span class="name">{method.name}</span><span class="chip">{escape(method.guarantee)}</span>'
                f"{SMALL if method.small else ''}</span>"
                f'<span class="told">{escape(method.summary[:1].upper() + method.summary[1:])}.</span></div>'
            )
        parts.append(
            f'<h4>{escape(FAMILIES.get(family, family))}</h4><div class="family">{"".join(cells)}</div>'
        )
    guarantees = dict.fromkeys(REGISTRY[name].guarantee for name in chosen if name in REGISTRY)
    promises = "".join(
        f"<p><b>{escape(guarantee)}</b> guarantees: {escape(promise_of(guarantee))}</p>"
        for guarantee in guarantees
        if promise_of(guarantee)
    )
    return f'<div class="methods">{"".join(parts)}<div class="promises">{promises}</div></div>'
