"""A register of the population, uploaded on the screen Risk: whom of it the records fit, and the attackers who have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import param

from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.files.paths import safe_name
from anonflow.dashboards.session.files.table_sources import take_upload
from anonflow.dashboards.session.workspace import Workspace
from anonflow.engine.flows.registers import register_holders
from anonflow.errors import AnonflowError
from anonflow.generalization import Generalization
from anonflow.risk import ATTACKERS, WITH_REGISTER
from anonflow.risk.register import RegisterCounts, RegisterFits
from anonflow.table import Table
from anonflow.table.files.read import read_frame

COMPARING = "comparing the records with the people of the register"

BESIDE = tuple(name for name, kind in ATTACKERS.items() if kind.beside_register)
"""Attackers who are tried beside those with the register, in a draft that names none."""


def register_figures(table: Table, register: Any) -> RegisterFits:
    """Return how many people of a register the records of a table fit, as they are."""
    cells = Generalization.of(table.records).decode()
    counts = RegisterCounts.of(cells, table.schema, register, table)
    return RegisterFits(counts.people, counts.of_row)  # without the graph, which is large


class RegisterModel(ScreenModel):
    """The register that the draft's attackers have.

    The file lies in the session's own folder, and the draft names it: a run that is published is attacked with it, and a project
    that is saved keeps it. ``figures`` is of the file and the table that it was computed for.
    """

    figures = param.Parameter(None, doc="RegisterFits, or None.")

    AT_ONCE = True

    def __init__(self, workspace: Workspace, **settings: Any) -> None:
        super().__init__(workspace, **settings)
        self._computed: tuple[Any, str] | None = None

    @property
    def file(self) -> str | None:
        """The register that the draft names, None without one."""
        for _, settings, _ in register_holders(self.workspace.draft.spec.steps.attack):
            if isinstance(settings, dict) and isinstance(settings.get("population"), str):
                return str(settings["population"])
        return None

    def take(self, name: str, path: Path) -> None:
        """Take a file that was uploaded, aside; the draft names it once it can be used."""
        table = self.workspace.data.table
        if table is None:
            self.problem = "no table is open with these columns; open one first"
            return
        try:
            # under a name of its own: the table's file may be called the same
            place = take_upload(
                f"register-{safe_name(name)}", path, self.workspace.folder, self.workspace.limits
            )
        except AnonflowError as error:
            self.problem = error.problems[0]
            return

        def work() -> RegisterFits:
            try:
                return register_figures(table, self._read(place))
            except Exception:  # whatever is wrong with it: a file that cannot be used does not stay
                if place.name != self.file:
                    place.unlink(missing_ok=True)
                raise

        def done(figures: RegisterFits) -> dict[str, Any]:
            self._computed = table, place.name
            beside = self._without_register() or BESIDE
            self._attack(*beside, *({name: {"population": place.name}} for name in WITH_REGISTER))
            return {"figures": figures}

        self.compute(work, done, COMPARING)

    def forget(self) -> None:
        """Take the register away from the draft."""
        attackers = self._without_register()
        self.background.forget()
        self._computed = None
        self.param.update(figures=None, busy=False, problem="")
        self._attack(*(() if attackers == BESIDE else attackers))

    def count(self) -> None:
        """Compute the figures of the draft's register aside, if those of the table are not there."""
        table, file = self.workspace.data.table, self.file
        if table is None or file is None:
            self._computed = None
            if self.figures is not None:
                self.figures = None
            return
        if self._computed == (table, file) or self.busy:
            return
        self._computed = table, file
        place = self.workspace.folder / file
        self.compute(
            lambda: register_figures(table, self._read(place)),
            lambda figures: {"figures": figures},
            COMPARING,
            figures=None,
        )

    def _read(self, place: Path) -> Any:
        """Return the register, read as a run reads it."""
        frame = read_frame(place, **self.workspace.data.source.csv_form)
        self.workspace.limits.check_rows(len(frame))
        return frame

    def _without_register(self) -> tuple[Any, ...]:
        """Return the draft's attackers who have no register."""
        attackers = self.workspace.draft.spec.steps.attack
        return tuple(
            entry for entry in attackers if isinstance(entry, str) or not set(entry) & set(WITH_REGISTER)
        )

    def _attack(self, *attackers: Any) -> None:
        self.workspace.draft.put(self.workspace.draft.spec.with_steps(attack=attackers))
