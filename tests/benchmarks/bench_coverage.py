"""How often the 95% intervals from plausible tables cover the truth: of the originals, and of the population.

Samples of a population are anonymized again and again. The population's truth is that of all its rows, the originals'
that of the sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.analysis import models
from tests.benchmarks.measuring import data_folder, row

K = 5
TABLES = 10
METHODS = ("greedy", "mondrian")
ROWS, REPEATS, POPULATION = 1_000, 100, 20_000
SMALL = 120, 1, 600

Answers = dict[str, tuple[float, float, float]]
"""What is estimated -> estimate, variance, degrees of freedom, of one complete table."""


def _answers(age: str, work: tuple[str, str], group: tuple[str, str]) -> Callable[[pd.DataFrame], Answers]:
    def of(frame: pd.DataFrame) -> Answers:
        own = frame.assign(female=(frame[group[0]] == group[1]).astype(float))
        middle, variance, df = models.quantiles(frame, age, [0.5])
        slope, spread, rest = models.Design(age, (("female",),), {}, "linear").fit(own)
        return {
            "mean": models.mean(frame, age),
            "median": (float(middle.iloc[0]), float(variance.iloc[0]), df),
            "share of a range": models.share(frame, {age: (30, 39)}),
            "share of a category": models.share(frame, dict([work])),
            "coefficient": (float(slope["female"]), float(spread["female"]), rest),
        }

    return of


def _populations(size: int) -> dict[str, tuple[pd.DataFrame, Any, Callable[[pd.DataFrame], Answers]]]:
    populations = {
        "census-like": (
            af.datasets.census_like(size, seed=11),
            af.datasets.schema("census_like"),
            _answers(
                "Age",
                ("Workclass", "State government"),
                ("Gender", "Female"),
            ),
        )
    }
    if data_folder() is not None:
        adult = af.datasets.adult(complete=True).reset_index(drop=True).iloc[:size]
        populations["Adult"] = (
            adult,
            af.datasets.schema("adult"),
            _answers(
                "age",
                ("workclass", "State-gov"),
                ("sex", "Female"),
            ),
        )
    return populations


def coverage(rows: int, repeats: int, size: int) -> pd.DataFrame:
    """A row for each table, method, estimate and target: the share of intervals that cover, and their mean missing."""
    lines = []
    for name, (population, schema, answers) in _populations(size).items():
        names = [column for column in population.columns if column in af.Schema.of(schema)]
        truth = answers(population[names])
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, rows])
            at = rng.choice(len(population), rows, replace=False)
            sample = population[names].iloc[at].reset_index(drop=True)
            table = af.Table(sample, schema)
            own = answers(sample)
            for method in METHODS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", af.errors.AnonflowWarning)
                    anon = af.anonymize(table, method, k=K, partition_size=250, seed=(1 << 100) + repeat)
                    release = anon.release(seed=(1 << 100) + repeat)
                drawn = [answers(entry) for entry in af.plausible(release, m=TABLES, seed=repeat)]
                for target, true in (("originals", own), ("population", truth)):
                    for estimate in own:
                        (result,) = af.combine([item[estimate] for item in drawn], target=target).itertuples()  # type: ignore[arg-type]
                        value = true[estimate][0]
                        slack = 1e-9 * max(1.0, abs(value))
                        lines.append(
                            (
                                name,
                                method,
                                estimate,
                                target,
                                result.low - slack <= value <= result.high + slack,
                                result.missing,
                            )
                        )
    frame = pd.DataFrame(lines, columns=["table", "method", "estimate", "target", "covered", "missing"])
    return frame.groupby(["table", "method", "estimate", "target"], sort=False).mean().reset_index()


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    rows, repeats, size = SMALL if small else (ROWS, REPEATS, POPULATION)
    table = coverage(rows, repeats, size)
    figures = []
    for line in table.itertuples():
        title = f"{line.table} {rows:,} rows x {repeats}, {line.method} k = {K}"
        figures.append(
            row(
                f"coverage, {title}, {line.target}: {line.estimate}",
                100.0 * float(line.covered),
                "% of 95% intervals",
            )
        )
        if line.target == "population":  # the same for both
            figures.append(
                row(f"missing information, {title}: {line.estimate}", float(line.missing), "fraction")
            )
    return figures
