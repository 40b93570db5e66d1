"""Tables of people and anonymizations of them, for the tests of releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.registry import algorithm_named
from anonflow.generalization import Generalization
from anonflow.table import Table
from tests.naive.draw import ring

SCHEMA = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "name": {"role": "identifier"},
    "work": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
    "cost": {"role": "insensitive"},
}


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Columns `ill` and `cost` tell of each other; few values each, in no order."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(4, size=n)
    return pd.DataFrame(
        {
            "ill": np.array(["flu", "cold", "gout", "scurvy"], object)[ill],
            "name": [f"secret{i}" for i in range(n)],
            "age": rng.integers(18, 70, size=n),
            "work": rng.choice(["Private", "State", "Self"], size=n),
            "cost": ill * 10,
        }
    )


def released_like(
    frame: pd.DataFrame,
    k: int = 3,
    *,
    matches: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    suppressed: np.ndarray | None = None,
    schema: Any = None,
) -> Anonymization:
    """An anonymization with the matches or classes asked for; with neither, every record is its own."""
    table = Table(frame, SCHEMA if schema is None else schema)
    hidden = np.zeros(table.n, bool) if suppressed is None else suppressed
    if matches is not None:
        general = Generalization.join_of(table.records, matches)
    elif classes is not None:
        general = Generalization.join_by_class(table.records, classes)
    else:
        general = Generalization.join_of(table.records, ring(table.n, k))
    return Anonymization(
        table,
        algorithm_named("greedy" if classes is None else "mondrian"),
        k,
        general.with_suppressed(hidden),
        matches=matches,
        classes=classes,
        suppressed=hidden,
        facts={},
        parameters={},
    )


def with_positions(n: int, **how: Any) -> Anonymization:
    """Other columns that name the original: only a test may publish these."""
    frame = people(n)
    frame["age"] = 18 + np.arange(n)
    frame["cost"] = np.arange(n)
    frame["ill"] = [f"p{i}" for i in range(n)]
    return released_like(frame, **how)
