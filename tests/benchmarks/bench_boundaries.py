"""Miller 2008's Adult experiment: 10,000 seeded records, eight QIs, one and two of them with boundaries.

`k-member` without boundaries against `greedy-cka` within them: violations (Table 1), suppressed records (Table 2),
seconds, and information loss by height, the mean per record and QI. The trees are like Figures 6 and 7.
"""

from __future__ import annotations

from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder, row, seconds
from tests.cases.boundaries import adult_table


def run(small: bool) -> list[dict[str, Any]]:
    """Rows of name, figure, unit, goal, met."""
    if data_folder() is None:
        return []
    rows = []
    for bounded in (("native-country",), ("native-country", "age")):
        table = adult_table(bounded)
        if small:
            table = af.Table(table.frame.iloc[:300], table.schema)
        af.anonymize(af.Table(table.frame.iloc[:60], table.schema), "k-member", k=2, loss="height", seed=1)
        for k in (4,) if small else (2, 4, 6, 8, 10):
            anonymizations: list[af.algorithms.Anonymization] = []
            settings: dict[str, Any] = {
                "k": k,
                "loss": "height",
                "seed": 1,
                "workers": 1,
                "partition_size": None,
            }
            free = seconds(
                lambda settings=settings, anonymizations=anonymizations, table=table: anonymizations.append(
                    af.anonymize(table, "k-member", boundaries=False, **settings)
                ),
                1,
            )
            within = seconds(
                lambda settings=settings, anonymizations=anonymizations, table=table: anonymizations.append(
                    af.anonymize(table, "greedy-cka", **settings)
                ),
                1,
            )
            limit = None if small else 20.0
            name = f"Adult {table.n} x 8, boundaries on {len(bounded)}, k = {k}"
            violations = [af.measure(table, item, "violations")["violations"] for item in anonymizations]
            hidden = int(anonymizations[1].suppressed.sum())
            rows += [
                row(f"{name}: k-member", free, "s", most=limit),
                row(f"{name}: greedy-cka", within, "s", most=limit),
                row(f"{name}: violations of k-member", violations[0], "cells", least=1),
                row(f"{name}: violations of greedy-cka", violations[1], "cells", most=0),
                row(
                    f"{name}: suppressed by greedy-cka",
                    hidden,
                    "records",
                    most=None if small else 0 if len(bounded) == 1 else 500,
                ),
                row(f"{name}: IL by height, k-member", anonymizations[0].loss("height"), ""),
                row(f"{name}: IL by height, greedy-cka", anonymizations[1].loss("height"), ""),
            ]
    return rows
