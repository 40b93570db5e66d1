"""Diversity of freeform releases: what it costs, as classes and blind, in one partition and in many.

Adult's complete rows, `greedy`, k = 5: the information loss before and after, how
many people's values are known before, and the bound of the refusal rate. The
sensitive column is the salary class (75% have one value; eight quasi-identifiers), or the occupation (14 values; seven).
Beside it `greedy-cka`, whose classes are united afterwards or take different values first.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import anonflow as af
from anonflow import datasets
from anonflow.errors import InfeasibleError
from tests.benchmarks.measuring import data_folder, row, seconds

REQUESTS: dict[str, list[tuple[str, dict[str, float]]]] = {
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
    rows = first(small)
    if data_folder() is None:
        return rows
    for column, request in REQUESTS.items():
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
                for criterion, parameters in request[:1] if small else request if n < 30_000 else request[:2]:
                    rows += both(f"{where}, {criterion}", anon, criterion, column, parameters)
    return rows


def first(small: bool) -> list[dict[str, Any]]:
    """GCP of greedy-cka that takes different sensitive values first, and of uniting its classes afterwards, on generated people."""
    rows = []
    for n, k, p in ((100, 4, 3),) if small else product((300, 1_000), (5, 10), (3, 5)):
        people = af.Table(datasets.census_like(n, seed=1), datasets.schema("census_like"))
        for name, option in (("classes united afterwards", False), ("different values first", True)):
            anon = af.anonymize(people, "greedy-cka", k, partition_size=None, distinct_first=option, seed=1)
            diverse = af.diversify(anon, "p-sensitivity", column="Salary-class", p=p, seed=1)
            rows.append(
                row(f"census-like {n:,}, greedy-cka, k = {k}, p = {p}: GCP, {name}", diverse.loss(), "")
            )
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
    result = af.attack(anon.table, release, {"homogeneity": {"column": column}}).iloc[0]
    return float(result["success"])


def both(
    where: str, anon: Any, criterion: str, column: str, parameters: dict[str, float]
) -> list[dict[str, Any]]:
    """Figures of both ways."""
    rows, result = [], []

    def ask(way: str) -> None:
        result.append(af.diversify(anon, criterion, column=column, seed=1, way=way, **parameters))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken = seconds(lambda: ask("classes"), 1)
        closed = result[-1]
        rows += [
            row(f"{where}: GCP, classes", closed.loss(), ""),
            row(f"{where}: classes", taken, "s"),
        ]
        try:
            taken = seconds(lambda: ask("blind"), 1)
        except InfeasibleError:
            rows.append(row(f"{where}: blind, refused", 1, ""))
        else:
            blind = result[-1]
            rows += [
                row(f"{where}: GCP, blind", blind.loss(), ""),
                row(f"{where}: blind, rows for everybody", int((blind.matches[0] >= 0).sum()), "rows"),
                row(f"{where}: blind, refusals at most", blind.facts["refusal"], ""),
                row(f"{where}: blind", taken, "s"),
            ]
    return rows
