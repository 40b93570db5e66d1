"""The people of a table who were released before, as screens show them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from anonflow.dashboards.components.html import facts
from anonflow.table.identification.earlier import SharedPeople

MOST = 12
"""Releases that are listed."""


def releases_with_them(shared: Sequence[SharedPeople], n: int) -> Markup:
    """Return a table of the earlier releases that have some of a table's people, the latest first.

    Parameters
    ----------
    shared : sequence of SharedPeople
    n : int
        Records of the table.
    """
    some = [each for each in reversed(shared) if each.people]
    rows = [
        [
            each.when[:16].replace("T", " ") or "of an older version",
            f"{each.released:,}",
            f"{each.people:,} of {n:,}",
        ]
        for each in some[:MOST]
    ]
    more = (
        Markup("<p class='soft'>{}</p>").format(f"and {len(some) - MOST:,} more") if len(some) > MOST else ""
    )
    return facts(("release of (UTC)", "people in it", "people of this table in it"), rows, [1, 2]) + more
