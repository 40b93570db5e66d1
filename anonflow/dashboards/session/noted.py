"""Results of screens about runs. They belong to the workspace, because a page may be loaded again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from anonflow.dashboards.session.publication import Publication


@dataclass(eq=False)
class Noted:
    """Notes about the runs of a workspace, by their ids."""

    attacks: dict[int, Any] = field(default_factory=dict)
    """The attackers' results, in the form of the screen Explore."""
    risks: dict[int, float] = field(default_factory=dict)
    """Measured risk, between 0 and 1."""
    publications: dict[int, Publication] = field(default_factory=dict)
    """Releases that were drawn."""
    drawn: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Of each table, the ids and names of its runs that were drawn: known as long as the session, also of runs that
    are gone."""
    uniqueness: tuple[Any, tuple[str, ...], Any] | None = None
    """A table, its quasi-identifiers, and the sizes of the classes of equal records on them."""
    earlier: dict[int, str] = field(default_factory=dict)
    """The message about people who are in an earlier release."""
    utility: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    """The losses of analyses: a request's title -> the numbers; they belong to the owner."""
    associations: dict[int, Any] = field(default_factory=dict)
    """How strongly columns go together, before and after; the owner's."""

    def keep(self, ids: Collection[int]) -> None:
        """Delete the notes about all runs but these; keep which runs were drawn."""
        for known in (
            self.attacks, self.risks, self.publications, self.earlier, self.utility, self.associations
        ):  # fmt: skip
            for id in [id for id in known if id not in ids]:
                del known[id]
