"""How often the 95% intervals of cross tables cover the originals' shares, and how wide they are beside certain bounds.

Every pair of categories of a table is a cross table. Counted are its cells whose bounds leave something open.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.analysis.models import texts
from tests.benchmarks.measuring import data_folder, row

RELEASES = (("two-phase", 10), ("greedy", 5), ("mondrian", 5))
FREEFORM = ("two-phase", "greedy")
TABLES = 10
ROWS, SMALL = 3_000, 80


def originals(rows: int) -> dict[str, tuple[pd.DataFrame, Any]]:
    """Tables of people, and their schemas."""
    tables = {"census-like": (af.datasets.census_like(rows, seed=5), af.datasets.schema("census_like"))}
    if data_folder() is not None:
        adult = af.datasets.adult(complete=True).sample(rows, random_state=3).reset_index(drop=True)
        tables["Adult"] = (adult, af.datasets.schema("adult"))
    return tables


def released(frame: pd.DataFrame, schema: Any, method: str, k: int) -> tuple[af.Table, Any]:
    """The table of a frame, and one draw of it."""
    names = [name for name in frame.columns if name in af.Schema.of(schema)]
    table = af.Table(frame[names], schema)
    seed = 1 << 100
    anon = af.anonymize(table, method, k=k, partition_size=min(250, table.n), seed=seed)
    return table, anon.release(seed=seed)


def cells(table: af.Table, release: Any, number: int = TABLES) -> pd.DataFrame:
    """A row for each cell of all cross tables of categories: estimate, interval, bounds, and the originals' share."""
    categories = [name for name in table.qi_columns if table.schema[name].kind != "numeric"]
    tables = af.plausible(release, m=number, seed=1)
    results = []
    for first, second in itertools.combinations(categories, 2):
        shares = tables.crosstab(first, second)
        columns = [texts(table.frame[name]) for name in (first, second)]
        truth = pd.crosstab(*columns, normalize="all").stack()
        results.append(shares.assign(truth=truth.reindex(shares.index).fillna(0.0)).reset_index(drop=True))
    return pd.concat(results, ignore_index=True)


def covered(shares: pd.DataFrame) -> np.ndarray:
    """Whether each cell whose bounds leave something open is covered by its interval."""
    some = shares[shares["most"] - shares["least"] > 1e-9]
    return some["truth"].between(some["low"] - 1e-9, some["high"] + 1e-9).to_numpy()


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    rows = SMALL if small else ROWS
    figures = []
    for name, (frame, schema) in originals(rows).items():
        for method, k in RELEASES:
            shares = cells(*released(frame, schema, method, k), 3 if small else TABLES)
            inside = covered(shares)
            title = f"{name} {rows:,} rows, {method} k = {k}"
            goal = 90.0 if method in FREEFORM and not small else None
            figures.append(
                row(
                    f"cross tables, {title}: {len(inside):,} cells",
                    100.0 * float(inside.mean()),
                    "% of 95% intervals",
                    least=goal,
                )
            )
            wide = (shares["high"] - shares["low"]).sum() / (shares["most"] - shares["least"]).sum()
            figures.append(row(f"their width, {title}", 100.0 * float(wide), "% of the certain bounds'"))
    return figures
