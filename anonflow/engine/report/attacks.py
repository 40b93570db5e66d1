"""The attackers of a flow: those it names, and otherwise those whose success may be published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anonflow import risk
from anonflow.algorithms.seeds import derived_seed
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.errors import DataError, ParameterError
from anonflow.release import Release
from anonflow.table import Table
from anonflow.table.read import read_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST", "attacked", "publishable"]

MOST = 50_000
"""A larger table is attacked only if the flow says so."""


def attacked(
    flow: Flow, fingerprint: Fingerprint, table: Table, release: Release, k: int, seed: int
) -> pd.DataFrame | None:
    """Try the release of a flow against its attackers.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of the files that it names.
    table : Table
    release : Release
    k : int
    seed : int
        The flow's: whom an attacker attacks is derived from it.

    Returns
    -------
    pandas.DataFrame or None
        As :func:`anonflow.attack` gives it; None where nobody was asked to attack, and it would take long.

    Raises
    ------
    ParameterError, DataError
        If the flow names attackers, and the release cannot be attacked by them, or their file has changed.
    """
    own = derived_seed(seed, "attackers")
    asked = flow.spec.steps.attack
    if asked:
        with fingerprint.others_read():
            chosen = [_with_register(flow, one) for one in asked]
        return risk.attack(table, release, chosen, k=k, seed=own)
    if table.n > MOST:
        return None
    try:
        context = risk.AttackContext.of(table, release, k, seed=own)
        return risk.attack(table, release, risk.usual(context, publishable=True), k=k, seed=own)
    except (DataError, ParameterError):
        return None


def publishable(attacks: pd.DataFrame | None) -> list[dict[str, Any]]:
    """The rows that may stand in a report: rates that were not counted against the truth."""
    if attacks is None:
        return []
    known = risk.ATTACKERS
    return [
        {str(key): value for key, value in row.items()}
        for row in attacks.to_dict("records")
        if row["attacker"] in known and not known[row["attacker"]].needs_truth
    ]


def _with_register(flow: Flow, asked: Any) -> Any:
    """A journalist's register is a file beside the flow."""
    if isinstance(asked, Mapping) and set(asked) == {"journalist"}:
        source = flow.spec.table.source
        file = flow.folder / asked["journalist"]["population"]
        return risk.Journalist(read_frame(file, delimiter=source.delimiter, encoding=source.encoding))
    return asked
