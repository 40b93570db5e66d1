"""The model of the screen Explore: the owner's view of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import param

from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.recoding.lattice_part import LatticePart, lattice_part
from anonflow.dashboards.components.release_card import TRYING
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.publication import STEPS, card_of_run
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.screen_work import Background
from anonflow.engine.report.card import ReleaseCard, insiders_draw
from anonflow.errors import ParameterError
from anonflow.loss import record_costs
from anonflow.release import publish
from anonflow.release.randomness import derived_seed
from anonflow.risk import ATTACKERS, AttackContext, usual
from anonflow.risk.attack import frame_of, row_of
from anonflow.risk.attackers.by_keys import ByKeys
from anonflow.utility.before_after import BeforeAfter
from anonflow.utility.distributions import Distribution, distribution
from anonflow.utility.missing_loss import MissingLoss, missing_losses
from anonflow.utility.neighbourhood import Neighbourhood, neighbourhood

HEAT = 30
"""Runs in the table of losses; the latest, and the chosen one."""


@dataclass(frozen=True, eq=False)
class RunView:
    """The parts of a run's view that are slow to compute; they are kept while it is shown."""

    records: BeforeAfter
    missing: tuple[MissingLoss, ...]
    """A line for each column in which originals have no value."""
    worst: int
    """The first of the records that lose most."""
    lattice: LatticePart | None
    """The levels beside those of the run; None for methods without levels."""

    @classmethod
    def of(cls, anonymization: Anonymization) -> RunView:
        """Return that of what a run made of its table; O(n q)."""
        worst = int(np.argmax(record_costs(anonymization.generalization)))
        before_after, missing = BeforeAfter.of(anonymization), missing_losses(anonymization)
        return cls(before_after, missing, worst, lattice_part(anonymization))


@dataclass(frozen=True, eq=False)
class FoundRecords:
    """The answer of a search."""

    at: np.ndarray
    """Positions of the records."""
    changed_cells: int
    """How many of their cells changed."""


@dataclass(frozen=True, eq=False)
class Attacks:
    """The attackers' results for a run."""

    rows: list[dict[str, Any]]
    """As :func:`anonflow.attack` gives them, and ``column``: the sensitive column that is guessed, or who attacks, or None."""
    covering: tuple[tuple[int, int], ...]
    """How many people (second) are covered by how many rows (first)."""
    card: ReleaseCard | None = None
    """That of the release that this run's own seed draws."""


class ExploreModel(ScreenModel):
    """The chosen run of a workspace.

    ``column`` is one of the run's coded QIs, and ``record`` a position of its table, whenever there is a run.
    """

    column = param.String(default="", doc="The quasi-identifier whose distribution is shown.")
    record = param.Integer(default=0, bounds=(0, None), doc="Position of the record whose graph is shown.")
    attacks = param.Parameter(None, doc="Attacks of the chosen run, or None.")

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self.aside = Background(workspace.turns, at_once=True)
        self.searching = Background(workspace.turns, at_once=True)
        self._view: tuple[int, RunView] | None = None
        self._chosen_changed()

    @property
    def anonymization(self) -> Anonymization | None:
        """The anonymization of the chosen run, for the owner only."""
        return None if self.run is None else self.run.result.anonymization

    @property
    def columns(self) -> list[str]:
        """Names of the run's coded quasi-identifiers."""
        anonymization = self.anonymization
        return [] if anonymization is None else [domain.name for domain in anonymization.table.domains]

    def heat(self) -> tuple[list[str], list[str], list[list[float | None]]]:
        """Return loss by attribute and run: columns, runs, and the losses between 0 and 1."""
        runs = [run for run in self.workspace.runs.finished if run.result.anonymization is not None]
        visible_runs = runs[-HEAT:]
        if self.run is not None and self.run not in visible_runs:
            visible_runs = [self.run, *visible_runs[1:]]
        losses = [run.losses for run in visible_runs]
        columns = list(dict.fromkeys(name for losses_of_run in losses for name in losses_of_run))
        names = [f"{'▶ ' if run is self.run else ''}{run.name} (#{run.id})" for run in visible_runs]
        values = [
            [*(losses_of_run.get(name) for name in columns), run.result.measures.get("gcp")]
            for losses_of_run, run in zip(losses, visible_runs, strict=True)
        ]
        return [*columns, "all (GCP)"], names, values

    def distribution(self) -> Distribution | None:
        """Return the chosen column before and after."""
        anonymization = self.anonymization
        if anonymization is None or self.column not in self.columns:
            return None
        return distribution(anonymization.table.records, anonymization.generalization, self.column)

    def view(self) -> RunView | None:
        """Return what was computed of the chosen run; kept for the run that is shown."""
        run, anonymization = self.run, self.anonymization
        if run is None or anonymization is None:
            return None
        if self._view is None or self._view[0] != run.id:
            self._view = run.id, RunView.of(anonymization)
        return self._view[1]

    def search(
        self,
        text: str,
        only_changed: bool,
        take_result: Callable[[FoundRecords], None],
        failed: Callable[[str], None],
    ) -> None:
        """Look a text up in the records, and call `take_result` with those that have it; at once where there are few records."""
        view = self.view()
        if view is None:
            self.searching.forget()
            return
        records = view.records

        def work() -> FoundRecords:
            at = records.containing(text, only_changed)
            return FoundRecords(at, int(records.changed[at].sum()))

        self.searching.of_records(len(records.before), work, take_result, failed)

    def prepare(self, callback: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Compute what takes its time of the chosen run, and call `callback`; at once where there are few records."""
        run, anonymization = self.run, self.anonymization
        if run is None or anonymization is None:
            self.aside.forget()
            return
        if self._view is not None and self._view[0] == run.id:
            self.aside.forget()
            callback()
            return

        def keep(view: RunView) -> None:
            self._view = run.id, view
            callback()

        self.aside.of_records(anonymization.n, lambda: RunView.of(anonymization), keep, failed)

    def neighbourhood(self) -> Neighbourhood | None:
        """Return the chosen record and those it is hidden among."""
        anonymization = self.anonymization
        return None if anonymization is None else neighbourhood(anonymization, self.record)

    def run_node(self, at: int) -> None:
        """Run the chosen run again at another node that is shown of its lattice, with the limit that it needs; the new run is chosen when it is there.

        Raises
        ------
        ParameterError
            If there is no such node.
        """
        view, run = self.view(), self.run
        part = None if view is None else view.lattice
        if part is None or run is None or not 0 <= at < len(part.nodes):
            raise ParameterError("there is no such node; choose one of those that are drawn")
        node = part.nodes[at]
        needed = math.ceil(1e4 * node.suppressed / run.result.records) / 1e4
        self.workspace.starts.run_again(
            run.id, levels=part.named(node), limit=max(part.limit, min(1.0, needed))
        )

    # ------------------------------------------------------------------------------------ attackers

    def attack(self) -> None:
        """Run the attackers on the run, in the background; ``attacks`` has the results."""
        run, anonymization = self.run, self.anonymization
        if run is None or anonymization is None or self.busy:
            return
        strangers = self.workspace.data.known_to_strangers(anonymization.table.qi_columns)
        published = self.noted.publications.get(run.id)
        drawn = None if published is None else published.release

        def work() -> Attacks:
            # the draw of the run's own seed, which Publish makes: card and attackers say the same of it
            release = drawn or publish(anonymization, seed=run.seed, rehearsal=True)
            context = AttackContext.of(
                anonymization.table, release, anonymization.k, seed=derived_seed(run.seed, "attackers")
            )
            context = replace(context, anonymization=anonymization)
            rows = []
            attackers = usual(context)
            # as the card has it: one figure on one screen
            fresh = insiders_draw(context, run.seed) or context
            for at, attacker in enumerate(attackers):
                labels = {"attacker": attacker.name, "column": getattr(attacker, "column", None)}
                words = f"attacker {at + 1} of {len(attackers)}: {called(labels)}"
                self.background.tell(words, at, len(attackers))
                success = attacker.attack(fresh if ATTACKERS[attacker.name].of_fresh_draw else context)
                rows.append(row_of(attacker, success) | labels)
            self.background.tell(STEPS["card"])
            values, counts = np.unique(context.covering()[context.people], return_counts=True)
            covering = tuple(zip(values.tolist(), counts.tolist(), strict=True))
            card = card_of_run(run.seed, run.result, release, frame_of(rows))
            if strangers:  # who know less: the card is about those who know most
                rows += [
                    row_of(stranger, stranger.attack(context)) | {"column": "a stranger"}
                    for stranger in (
                        ByKeys(kind(), strangers) for kind in ATTACKERS.values() if kind.of_strangers
                    )
                ]
            return Attacks(rows, covering, card)

        def done(attacks: Attacks) -> dict[str, Any]:
            self.noted.attacks[run.id] = attacks
            self.workspace.drawings += 1
            return {"attacks": None if self.run is None else self.noted.attacks.get(self.run.id)}

        self.compute(work, done, "drawing a release for the attack")

    def price(self) -> None:
        """Try the remedies of the card's lines that fail, in the background; ``attacks`` has the card with their prices."""
        run, attacks = self.run, self.attacks
        if run is None or attacks is None or self.busy:
            return

        def done(card: ReleaseCard | None) -> dict[str, Any]:
            priced = self.noted.attacks[run.id] = replace(attacks, card=card)
            return {"attacks": priced} if self.run is not None and self.run.id == run.id else {}

        self.compute(
            lambda: card_of_run(run.seed, run.result, None, frame_of(attacks.rows), prices=True), done, TRYING
        )

    # --------------------------------------------------------------------------------------- inside

    @param.depends("workspace.runs.chosen", "workspace.runs.finished", watch=True)
    def _chosen_changed(self) -> None:
        run, anonymization = self.run, self.anonymization
        if self._view is not None and self._view[0] not in {past_run.id for past_run in self.workspace.runs}:
            self._view = None
        if run is None or anonymization is None:
            self.background.forget()
            self.param.update(column="", record=0, attacks=None, busy=False, problem="")
            return
        columns = self.columns
        self.param.update(
            column=self.column if self.column in columns else columns[0],
            record=min(self.record, anonymization.n - 1),
            attacks=self.noted.attacks.get(run.id),
            problem="",
        )


def called(row: dict[str, Any]) -> str:
    """Return what an attacker does, in a few words; of several sensitive columns, which one."""
    column = row.get("column")
    kind = ATTACKERS.get(row["attacker"])
    return (row["attacker"] if kind is None else kind.does) + (f": {column}" if column else "")


def in_plain_words(row: dict[str, Any]) -> str:
    """Return an attacker's result in plain words; for a counted rate, with its confidence interval."""
    sentence, low, high = str(row["sentence"]), row["low"], row["high"]
    return (
        sentence
        if low == high
        else f"{sentence} For people like these the rate lies between {100 * low:.1f}% and {100 * high:.1f}%, with confidence 95%."
    )
