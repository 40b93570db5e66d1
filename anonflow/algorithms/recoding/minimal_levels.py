"""All minimal full-domain generalizations: the nodes of a lattice that are anonymous, and no node below them is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymize import check_k
from anonflow.algorithms.recoding.full_domain import FULL_DOMAIN, most_suppressed
from anonflow.algorithms.recoding.lattice import Lattice, column_levels
from anonflow.errors import ParameterError
from anonflow.loss import measure_named
from anonflow.partition import bounded, limited
from anonflow.table import Table


def minimal_levels(
    table: Table, k: int, *, limit: float = 0.0, widths: Any = None, loss: str = "ncp"
) -> pd.DataFrame:
    """Return every combination of levels that is k-anonymous and of which no column can be published at a lower level.

    Parameters
    ----------
    table : Table
        n records, without boundaries, limits of columns and units.
    k : int
        At least 2, at most n.
    limit : float
        Share of the records that may be suppressed: those in classes of fewer than k.
    widths : mapping, optional
        As ``full-domain`` takes them.
    loss : str
        The information loss by which the rows are ordered.

    Returns
    -------
    pandas.DataFrame
        A row for each combination, least loss first: the level of each column, as ``full-domain`` takes ``levels``; then how many
        records it suppresses, ``suppressed``, and the mean loss of a record, ``loss``. Empty if no combination is anonymous.

    Raises
    ------
    ParameterError
        If k, `limit` or `loss` is outside its domain, or the table has boundaries, limits or units, columns without levels, or
        more combinations than ``full-domain`` takes.
    InfeasibleError
        If k is greater than n.

    Notes
    -----
    The global recoding that Murakami 2018 describes enumerates them, too. Combinations come by their numbers of steps above the lowest
    one. One that suppresses few enough is minimal, if it is not above another; all above it suppress no more records than it does, and
    are not counted. O(t q) time for each combination that is counted, and t distinct records.
    """
    records = table.records
    FULL_DOMAIN.check_options({"limit": limit})
    if bounded(records) or limited(records) or records.units is not None:
        raise ParameterError(
            "a table with boundaries, limits of columns or units is not published at one level for each column; "
            "leave them out of the schema",
            subject="minimal_levels",
        )
    k, most = check_k(k, table.n), most_suppressed(records, limit)
    lattice = Lattice(records.at_floor(), column_levels(records.at_floor(), widths), measure_named(loss))
    nodes = np.indices(lattice.shape).reshape(len(lattice.shape), -1).T
    above = np.zeros(lattice.shape, bool)
    rows = []
    for node in nodes[np.argsort(nodes.sum(axis=1), kind="stable")]:
        if above[tuple(node)]:
            continue
        groups = lattice.groups(node, k)
        if groups.suppressed <= most:
            above[tuple(slice(level, None) for level in node)] = True
            rows.append([*lattice.level_labels(node).values(), groups.suppressed, groups.loss / table.n])
    columns = [*(levels.column for levels in lattice.columns), "suppressed", "loss"]
    minimal = pd.DataFrame(rows, columns=columns)
    return minimal.iloc[np.argsort(minimal.iloc[:, -1], kind="stable")].reset_index(drop=True)
