"""The README's picture of a table and a release of it: ``python -m tests.docs.before_and_after`` draws it anew."""

from __future__ import annotations

from html import escape

import pandas as pd

import anonflow as af
from anonflow.drawing.plots import BLUE, svg
from tests import ROOT

PICTURE = ROOT / "docs" / "images" / "before-and-after.svg"

PEOPLE = pd.DataFrame(
    {
        "age": [27, 31, 34, 38, 45, 52, 58, 63],
        "sex": ["f", "m", "f", "m", "f", "f", "m", "m"],
        "district": ["North", "North", "East", "East", "South", "East", "South", "South"],
        "illness": ["asthma", "none", "diabetes", "none", "asthma", "cancer", "none", "diabetes"],
    }
)
"""Nobody: invented."""

_WIDTHS = (70, 50, 130, 90)
_ROW, _TOP, _GAP = 28, 64, 60


def released() -> pd.DataFrame:
    """The published rows for k = 2. The seed is in a public place: such a release is for a picture alone."""
    kinds = {"age": "numeric", "sex": "categorical", "district": "categorical"}
    schema = {name: {"role": "quasi-identifier", "kind": kind} for name, kind in kinds.items()}
    table = af.Table(PEOPLE, {**schema, "illness": {"role": "sensitive"}})
    anon = af.anonymize(table, "two-phase", k=2, seed=1)
    af.verify(table, anon, ["covers", "k-regular"]).raise_if_failed()
    return anon.release(seed=b"the picture of the README").frame


def drawing() -> str:
    """Both tables side by side, what was generalized on a blue ground."""
    after = released()
    width = 2 * sum(_WIDTHS) + _GAP + 40
    height = _TOP + _ROW * len(PEOPLE) + 16
    inside = [f'<rect fill="#fff" width="{width}" height="{height}" rx="8"/>', '<g fill="#1b2733">']
    for left, title, frame in (
        (20, "The table: its owner alone sees it", PEOPLE),
        (20 + sum(_WIDTHS) + _GAP, "A release for k = 2", after),
    ):
        inside.append(f'<text x="{left}" y="24" font-weight="bold">{title}</text>')
        x = left
        for name, wide in zip(frame.columns, _WIDTHS, strict=True):
            inside.append(f'<text x="{x}" y="{_TOP - 14}" fill="#5a6872">{name}</text>')
            for at, cell in enumerate(frame[name].astype(str)):
                y = _TOP + _ROW * at
                if frame is after and name != "illness" and cell not in set(PEOPLE[name].astype(str)):
                    inside.append(
                        f'<rect x="{x - 5}" y="{y - 2}" width="{wide - 4}" height="{_ROW - 4}" rx="4" fill="{BLUE}" fill-opacity=".14"/>'
                    )
                inside.append(f'<text x="{x}" y="{y + 15}">{escape(cell)}</text>')
            x += wide
    arrow = 20 + sum(_WIDTHS) + _GAP / 2 - 10
    middle = _TOP + _ROW * len(PEOPLE) / 2
    inside.append(
        f'<path d="M{arrow - 14} {middle}h22m-7 -7l7 7l-7 7" fill="none" stroke="#5a6872" stroke-width="2"/></g>'
    )
    title = "Eight people with age, sex, district and illness, and a release in which ages are ranges and districts are sets"
    text = str(svg(width, height, title, inside)).replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1
    )
    return f"{text}\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
