"""A few people, and a flow whose source and targets lie wherever a test says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def people(n: int = 48) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "city": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "pay": rng.choice(["low", "high"], n),
        }
    )


def write_flow(
    folder: Path, source: str, table: str = "out/people.csv", report: str = "out/people.html"
) -> Path:
    file = folder / "flow.yaml"
    file.write_text(
        f"flow: elsewhere\nversion: 1\ntable:\n  source: {source}\n"
        "  columns: {age: {role: quasi-identifier, kind: numeric}, city: {role: quasi-identifier, kind: categorical}, pay: {role: sensitive}}\n"
        "partition: {size: 16}\n"
        "steps: [{anonymize: {algorithm: mondrian, k: 3}}]\n"
        f"publish: {{table: '{table}', report: '{report}'}}\n",
        encoding="utf-8",
    )
    return file
