"""The people of a table who were released before, as screens show them, and uploads of earlier releases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.algorithms.cohorts import Outlook
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import button, card, facts, html, refused, say, soft
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.session.files.memory import KnownReleases
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.screen_work import Background
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.release import Release
from anonflow.table import Table
from anonflow.table.identification.earlier import SharedPeople

MOST = 12
"""Releases that are listed."""


class ReleasesModel(ScreenModel):
    """The earlier releases of a table's people."""

    known = param.ClassSelector(
        class_=KnownReleases, default=KnownReleases(), doc="Of the table that was counted."
    )

    AT_ONCE = True

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self.counting = Background(workspace.turns, at_once=True)
        self._counted: tuple[Any, ...] | None = None

    def count(self, table: Table | None, release: Release | None = None) -> None:
        """Count a table's people in earlier releases, aside if there are many; a release of this table does not count."""
        memory = self.workspace.memory
        if table is None:
            self.counting.forget()
            self._counted, self.known = None, KnownReleases()
            return
        counts, last = memory.kept, self._counted
        if last is not None and last[0] is table and last[1] is release and last[2] == counts:
            return
        self._counted = table, release, counts
        self.counting.of_records(
            table.n,
            lambda: memory.known(table, release),
            lambda releases: self.param.update(known=releases),
            lambda problem: self.param.update(known=KnownReleases(), problem=problem),
            "counting who was released before",
        )

    def take(self, name: str, path: Path) -> None:
        """Take a packed owner's folder that was uploaded, aside."""
        place, memory = self.workspace.opener.set_aside(path), self.workspace.memory

        def work() -> None:
            try:
                memory.take(name, place, self.background.tell)
            finally:
                place.unlink(missing_ok=True)

        def done(_: None) -> None:
            self.workspace.uploads += 1

        self.compute(work, done, f"reading the releases in {name}")

    def forget(self) -> None:
        """Delete the releases that were uploaded."""
        self.workspace.memory.forget()
        self.problem = ""
        self.workspace.uploads += 1


class ReleasedCard(pn.viewable.Viewer):
    """The card with a table's people in earlier releases, and where packed owner's folders are uploaded."""

    model = param.ClassSelector(class_=ReleasesModel, constant=True)

    def __init__(self, model: ReleasesModel, *inside: Any, lead: str = "") -> None:
        super().__init__(model=model)
        self.dropper = DiskDropper(
            model.workspace,
            model.take,
            lambda sentence: model.param.update(problem=sentence),
            "An owner's folder with earlier releases, packed as a .zip; several one after the other",
        )
        self.forget = button("Remove the uploaded releases", model.forget)
        self.people, self.state = html(), html()
        self.card = card(
            "Released before", AtWork(model.counting), self.people, *inside, self.state, AtWork(model.background),
            self.dropper, self.forget, lead=lead,
        )  # fmt: skip
        self._show()

    @param.depends("model.workspace.uploads", watch=True)
    def _releases_uploaded(self) -> None:
        self._show()

    @param.depends("model.known", "model.problem", watch=True)
    def _show(self) -> None:
        """Show what became of the last upload."""
        model, memory = self.model, self.model.workspace.memory
        self.forget.visible = memory.uploads
        text = Markup("")
        if model.problem:
            text = refused(model.problem)
        elif memory.uploads:
            text = soft(
                f"{plural(memory.kept[0], 'release')} with the uploaded key. A release that you draw is kept beside: download it on the "
                "screen Publish, because uploads end with this session."
            )
        say(self.state, text)

    def show(self, n: int, beside: Markup | None = None) -> None:
        """Show the releases that have some of a table's n people; with it what stands `beside` them, else what another one gives away."""
        releases = self.model.known
        if beside is None and not releases.has_people:
            say(
                self.people,
                soft(
                    "Nobody of this table is in a release that this session knows. If there are earlier releases of the same people, upload the owner's folder of each."
                ),
            )
        else:
            say(
                self.people,
                releases_with_them(releases.shared, n) + (outlook_of(releases) if beside is None else beside),
            )

    def __panel__(self) -> pn.viewable.Viewable:
        return self.card


def releases_with_them(shared: Sequence[SharedPeople], n: int) -> Markup:
    """Return a table of the earlier releases that have some of a table's n people, the latest first."""
    releases = [release for release in reversed(shared) if release.people]
    rows = [
        [
            release.when[:16].replace("T", " ") or "of an older version",
            f"{release.released:,}",
            f"{release.people:,} of {n:,}",
        ]
        for release in releases[:MOST]
    ]
    remainder = soft(f"and {len(releases) - MOST:,} more") if len(releases) > MOST else ""
    return facts(("release of (UTC)", "people in it", "people of this table in it"), rows, [1, 2]) + remainder


def outlook_of(releases: KnownReleases) -> Markup:
    """Return what another release would give away, and what it costs to go on; nothing where nobody was released before."""
    if releases.problem:
        return Markup("<p class='af-warn'>{}</p>").format(
            f"These releases cannot be counted together, so no run can go on from them: {releases.problem}"
        )
    if releases.outlook is None:
        return Markup("")
    outlook = releases.outlook
    cost = facts(
        ("people that all releases leave everybody", "people held back, at least"),
        [[f"{people:,}", f"{held:,}"] for people, held in outlook.held_back.items()],
        [0, 1],
    )
    new = (
        f"{plural(outlook.newcomers, 'person')} of this table {verb_of(outlook.newcomers, 'are')} in no earlier release; if they are fewer than "
        "k, they are held back as well."
        if outlook.newcomers
        else ""
    )
    return Markup("<p>{}</p><p>{}</p>{}<p class='soft'>{}</p>").format(
        _given_away(outlook), "What it costs to go on from these releases:", cost, new
    )


def _given_away(outlook: Outlook) -> str:
    """Return what any plain second release gives away, whatever its method."""
    if not outlook.few:
        return (
            "Who left and who stayed gives away nobody. But a plain second release puts people together with others, and whoever compares the releases "
            "has fewer people left for many of them."
        )
    return (
        f"A plain second release of this table, whatever its method, leaves at least {plural(outlook.few, 'person')} with fewer than k = {outlook.k} people whose "
        f"rows may be theirs, and at least {outlook.alone:,} with nobody else: whoever compares the releases sees who left."
    )
