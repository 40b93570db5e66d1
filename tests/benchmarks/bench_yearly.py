"""A table that is published every year: how many people are held back, what is lost beside fresh releases, and how long it takes.

Synthetic census people with careers: each year they grow a year older, some move to another occupation, marry or earn otherwise, and some
leave and are replaced by newcomers. Two samples of Adult stand for two years of a public table. `agglomerative` makes classes of 15 or 30 or more, of which five or two people must be left; `greedy` matches of 5,
in partitions of 10 or 5 so that components are small. Each year is a release that goes on from all earlier ones, beside a fresh one of everybody.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow import datasets
from anonflow.release import Earlier
from tests.benchmarks.measuring import data_folder, row

WAYS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "classes of 15, people = 5": ("agglomerative", {"k": 15, "partition_size": 250}, {"people": 5}),
    "classes of 15, people = 2": ("agglomerative", {"k": 15, "partition_size": 250}, {"people": 2}),
    "classes of 30, people = 5": ("agglomerative", {"k": 30, "partition_size": 250}, {"people": 5}),
    "classes of 30, people = 2": ("agglomerative", {"k": 30, "partition_size": 250}, {"people": 2}),
    "matches of 5, partitions of 10": ("greedy", {"k": 5, "partition_size": 10}, {}),
    "matches of 5, partitions of 5": ("greedy", {"k": 5, "partition_size": 5}, {}),
}


def run(small: bool) -> list[dict[str, Any]]:
    """Rows of name, figure, unit, goal, met."""
    rows = []
    n, years = (120, 2) if small else (3_000, 10)
    for turnover in (0.05,) if small else (0.05, 0.1, 0.2):
        for way, (method, settings, more) in WAYS.items():
            rows += of_years(
                f"{way}, {turnover:.0%} a year", careers(n, years, turnover), method, settings, more
            )
    if data_folder() is not None:
        people = datasets.adult(complete=True).iloc[: 2 * n]
        people.insert(0, "row", np.arange(len(people)))
        for share in (0.9, 0.5):
            for way in (
                "classes of 15, people = 2",
                "matches of 5, partitions of 10",
                "matches of 5, partitions of 5",
            ):
                method, settings, more = WAYS[way]
                rows += of_years(
                    f"{way}, samples of {share:.0%} of Adult", samples(people, share), method, settings, more
                )
    return rows


def of_years(
    where: str, tables: Iterator[af.Table], method: str, settings: dict[str, Any], more: dict[str, Any]
) -> list[dict[str, Any]]:
    """Figures of a sequence of tables: of some years, and of all of them."""
    rows: list[dict[str, Any]] = []
    held, taken, fresh_taken = [], 0.0, 0.0
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folders = Path(place)
        for year, table in enumerate(tables):
            begin = time.perf_counter()
            fresh = af.anonymize(table, method, seed=year, **settings)
            fresh.release(seed=2**127 + year, owner=folders / ("other" if year else "owner"))
            middle = time.perf_counter()
            if not year:
                continue
            folder = folders / "owner"
            anon = af.anonymize(table, method, seed=year, earlier=folder, **settings, **more)
            anon.release(seed=2**126 + year, owner=folder)
            taken, fresh_taken = taken + time.perf_counter() - middle, fresh_taken + middle - begin
            held.append(anon.facts["held_back"] / table.n)
            if year in (1, 2, 5, 10):
                rows += [
                    row(f"{where}: held back in year {year}", held[-1], ""),
                    row(f"{where}: GCP of the published in year {year}", anon.loss(), ""),
                    row(f"{where}: GCP of a fresh release in year {year}", fresh.loss(), ""),
                ]
        left = int(Earlier(folders / "owner").history().people_left.min())
    rows.append(
        row(f"{where}: people left", left, "", least=min(settings["k"], more.get("people", settings["k"])))
    )
    rows.append(row(f"{where}: time beside fresh releases", taken / fresh_taken, "times", most=2))
    return rows


def samples(people: pd.DataFrame, share: float) -> Iterator[af.Table]:
    """Two samples of people of Adult, in the place of two years of a public table, which have no number of a person: the row is it."""
    schema = {"row": {"role": "identifier"}, **datasets.schema("adult")}
    rng = np.random.default_rng(1)
    for _ in range(2):
        chosen = np.sort(rng.choice(len(people), int(share * len(people)), replace=False))
        yield af.Table(people.iloc[chosen].reset_index(drop=True), schema)


def careers(n: int, years: int, turnover: float, seed: int = 1) -> Iterator[af.Table]:
    """The tables of a register: n people each year, with a number of their own."""
    schema = {"number": {"role": "identifier"}, **datasets.schema("census_like")}
    for frame in datasets.census_years(n, years + 1, turnover, seed):
        yield af.Table(frame, schema)
