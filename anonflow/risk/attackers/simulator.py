"""An attacker who runs a random method again with other seeds, and counts which originals usually get each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy

from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import Option
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk

_PAIRS = 25_000_000
"""Pairs of a person and a row that are weighed; larger tables are attacked in part."""

_FAINT = 1e-3
"""Weight of rows that resemble those of the replays against rows that are equal to them."""


@dataclass(frozen=True, eq=False)
class Simulator(
    AttackerKind,
    name="simulator",
    does="tries other seeds",
    call="is for Python: af.attack(table, release, risk.Simulator(anonymization=...))",
    needs_truth=True,
    knows="everybody's quasi-identifiers and the method, which it runs with other seeds",
):
    """Knows everybody's quasi-identifiers and the method, not its seed: runs it many times with seeds of its own.

    It takes the frequency with which a person's generalized record equals a published row as the likelihood that the row
    is the person's. It gives each person a different row, so that the product of these likelihoods is largest. If no run
    produced a row again, it compares rows that agree in most quasi-identifiers.

    Parameters
    ----------
    replays : int
        Runs of the method; each takes as long as the release did.
    anonymization : Anonymization, optional
        The released anonymization, for its method and parameters; by default the context's.
    seed : int
        Seed of the replays; any number, because the attacker does not know the owner's seed.

    Notes
    -----
    The attack is on methods whose rows carry their own record (k-concealment). Simulation is polynomial, as is approximate counting of
    perfect matchings (Jerrum, Sinclair, Vigoda, 2004): neither needs the permanent.
    """

    replays: Annotated[int, Option("Replays", least=1)] = 100
    anonymization: Any = None
    seed: int = 2**100

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(replays) runs of the method, and O(n^3) for the likeliest assignment.

        Raises
        ------
        ParameterError
            If there is no anonymization whose method could be run again, the truth is not known, or the table is too
            large.
        """
        anonymization = self.anonymization if self.anonymization is not None else context.anonymization
        if anonymization is None or context.truth is None:
            raise ParameterError("simulator: give the anonymization, and the release as it was made from it")
        n = context.n
        if n * n > _PAIRS:
            raise ParameterError(
                f"simulator: {n:,} records are too many to weigh all pairs; attack a table of at most "
                f"{int(_PAIRS**0.5):,}"
            )
        likelihood = self._likelihood(context, anonymization)
        person, row = scipy.optimize.linear_sum_assignment(likelihood, maximize=True)
        right = np.zeros(n)
        right[person] = context.truth[row] == person
        risk = PeopleAtRisk.of(context.table, right)
        return risk.success(
            1 / context.k,
            f"An attacker who runs the method {plural(self.replays, 'time')} with other seeds names the right row for {percent(risk.mean)} of the "
            f"people; 1/k is {percent(1 / context.k)}.",
            worst=risk.mean, at_risk=risk.above(0.0) if right.mean() > 1 / context.k + 0.05 else 0, counted=True,
        )  # fmt: skip

    def _likelihood(self, context: AttackContext, anonymization: Any) -> np.ndarray:
        """Return the log likelihood of each person for each row, (n, n)."""
        published = context.evidence.published.numbers()
        equal = np.zeros((context.n, context.n))
        part = np.zeros((len(published), context.n, context.n), np.int32)
        for replay in range(self.replays):
            again = anonymization.again(self.seed + replay).generalization.numbers()
            same = again[:, :, None] == published[:, None, :]
            part += same
            equal += same.all(axis=0)
        resembling = np.log((part + 0.5) / (self.replays + 1)).sum(axis=0)
        resembling -= resembling.max(axis=0)
        likelihood: np.ndarray = np.log(
            equal / self.replays + _FAINT * np.exp(np.maximum(resembling, -50.0)) + 1e-12
        )
        graph = context.graph
        covers = np.zeros((graph.originals.size, graph.published.size), bool)
        covers[graph.end, graph.box] = True
        possible = covers[graph.originals.label][:, graph.published.label]
        return np.where(possible, likelihood, -1e6)
