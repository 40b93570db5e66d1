"""Diversity of freeform releases: what it costs, closed into classes and blind, in one partition and in many.

Adult's complete rows, `greedy`, k = 5: the information loss before and after, beside that of diverse `k-member`, how
many people's values are known before, how many records become classes, and the bound of the refusal rate. The
sensitive column is the salary class (75% have one value; eight quasi-identifiers), or the occupation (14 values; seven).
"""

from __future__ import annotations

import warnings
from typing import Any

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.diversity.within_partition import components
from anonflow.errors import InfeasibleError
from tests.benchmarks.measuring import data_folder, row, seconds

ASKED: dict[str, list[tuple[str, dict[str, float]]]] = {
    "salary-class": [
        ("p-sensitivity", {"p": 2}),
        ("entropy-l-diversity", {"l": 1.5}),
        ("t-closeness", {"t": 0.15}),
    ],
    "occupation": [("p-sensitivity", {"p": 2}), ("l-diversity", {"l": 2}), ("t-closeness", {"t": 0.3})],
}
"""Criteria of each sensitive column. t-closeness of texts is by equal distance, so even small t ask for large classes."""


def run(small: bool) -> list[dict[str, Any]]:
    """Rows of name, figure, unit, goal, met."""
    if data_folder() is None:
        return []
    rows = []
    for column, asked in ASKED.items():
        for n, sizes in (
            ((200, (100,)),) if small else ((600, (None,)), (2_000, (None, 250)), (30_162, (250,)))
        ):
            table = adult(column, n)
            for size in sizes:
                where = (
                    f"Adult {n:,}, {column}, {'one partition' if size is None else f'partitions of {size}'}"
                )
                anon = af.anonymize(table, "greedy", 5, partition_size=size)
                rows += [
                    row(f"{where}: GCP before", anon.loss(), ""),
                    row(f"{where}: known", known(anon, column), ""),
                ]
                for criterion, parameters in asked[:1] if small else asked if n < 30_000 else asked[:2]:
                    rows += both(f"{where}, {criterion}", anon, criterion, column, parameters)
    return rows


def adult(column: str, n: int) -> af.Table:
    """The first complete rows, of which one column is sensitive."""
    frame = datasets.adult(complete=True).iloc[:n].reset_index(drop=True)
    columns = {**datasets.schema("adult"), column: {"role": "sensitive"}}
    if column != "salary-class":
        columns.pop("salary-class")
    return af.Table(frame, columns)


def known(anon: Any, column: str) -> float:
    """Share of people whose value is known from a release for sure, since all rows that list them show it."""
    release = af.release.publish(anon, 2**127, rehearsal=True)
    found = af.attack(anon.table, release, {"homogeneity": {"column": column}}).iloc[0]
    return float(found["success"])


def both(
    where: str, anon: Any, criterion: str, column: str, parameters: dict[str, float]
) -> list[dict[str, Any]]:
    """Figures of both ways."""
    rows, made = [], []

    def ask(way: str) -> None:
        made.append(af.diversify(anon, criterion, column=column, seed=1, way=way, **parameters))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken = seconds(lambda: ask("classes"), 1)
        closed = made[-1]
        matches = closed.matches
        label, complete = components(matches)
        rows += [
            row(f"{where}: GCP, classes where a draw may fail", closed.loss(), ""),
            row(f"{where}: GCP of diverse k-member", closed.facts["k_member_gcp"], ""),
            row(f"{where}: records in classes", int(complete[label].sum()), "records"),
            row(f"{where}: refusals at most", closed.facts["refusal"], "", most=0.01),
            row(f"{where}: classes", taken, "s"),
        ]
        try:
            taken = seconds(lambda: ask("blind"), 1)
        except InfeasibleError:
            rows.append(row(f"{where}: blind, refused", 1, ""))
        else:
            blind = made[-1]
            rows += [
                row(f"{where}: GCP, blind", blind.loss(), ""),
                row(f"{where}: blind, rows for everybody", int((blind.matches[0] >= 0).sum()), "rows"),
                row(f"{where}: blind, refusals at most", blind.facts["refusal"], ""),
                row(f"{where}: blind", taken, "s"),
            ]
    return rows
