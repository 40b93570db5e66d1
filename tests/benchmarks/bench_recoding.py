"""Full-domain generalization: the optimum on Adult with ARX's hierarchies and on the heart records, in processor time.

Processor time, because the search runs on one processor and other work on the machine shall not count.
"""

from __future__ import annotations

import time
from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder, row
from tests.cases.recoding import adult_levels, heart_levels

K = 10
LIMITS = (0.0, 0.01, 0.05)


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    folder = data_folder()
    if folder is None:
        return []
    rows: list[dict[str, Any]] = []
    adult = adult_levels(folder, 500 if small else None)
    heart = heart_levels(folder, 1_000 if small else None)
    af.anonymize(af.Table(adult.frame.iloc[:100], adult.schema), "full-domain", k=2)
    for name, table, goal in (("Adult", adult, 2), ("heart", heart, 60)):
        _ = table.records
        for limit in LIMITS:
            start = time.process_time()
            anon = af.anonymize(table, "full-domain", k=K, limit=limit)
            taken = time.process_time() - start
            text = f"full-domain, {name} {table.n:,} x {table.q}, limit {limit:g}"
            rows += [
                row(f"{text}: the optimum", taken, "s", most=None if small else goal),
                row(f"{text}: optimal", float(anon.facts["optimal"]), "yes 1, no 0", least=1),
                row(f"{text}: nodes", anon.facts["nodes"], "nodes"),
                row(f"{text}: checked", anon.facts["checked"], "nodes"),
                row(f"{text}: GCP", anon.loss("gcp"), ""),
                row(f"{text}: suppressed", float(anon.suppressed.sum()), "records"),
            ]
    return rows
