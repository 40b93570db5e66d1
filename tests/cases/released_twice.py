"""People whose sensitive value is wanted by who has several releases of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "work": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}

NAMED: dict[str, Any] = SCHEMA | {"name": {"role": "identifier"}}

FLOW = """
flow: people
version: 1
table:
  source: {csv: people.csv}
  columns:
    name: {role: identifier}
    age: {role: quasi-identifier, kind: numeric}
    work: {role: quasi-identifier, kind: categorical}
    ill: {role: sensitive}
steps:
  - anonymize: {algorithm: k-member, k: 10}
  - draw: {}
  - verify: [covers, guarantee]
publish: {table: out/people.csv, report: out/people.html}
"""
"""A flow of named people."""


def people(n: int = 400, seed: int = 1) -> pd.DataFrame:
    """A name, two quasi-identifiers and one of six illnesses for each of n people."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "work": rng.choice(list("abcd"), n),
            "ill": rng.choice(list("uvwxyz"), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]),
        }
    )
