"""Which method loses least for real work: measures of analyses, freeform and classes, beside GCP and usefulness.

``python -m tests.benchmarks.bench_analyses docs/images`` draws the pictures of the documentation.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.drawing import plots
from anonflow.drawing.heat_map import heat_map
from anonflow.utility.analyses import association
from anonflow.utility.analyses.comparison import comparison_of
from anonflow.utility.subject import part_of
from tests.benchmarks.measuring import data_folder, row
from tests.cases.recoding import heart_levels

K = 10
ROWS = 1_500
METHODS = {"greedy": "freeform", "k-member": "classes", "mondrian": "classes"}
PLAIN = ("gcp", "usefulness", "usefulness-of-all-rows", "k-marginals", "k-marginals-3", "association")
LEARNED = ("propensity", "classification")
SHOWN = {
    "gcp": "GCP", "usefulness": "usefulness", "k-marginals": "k-marginals", "k-marginals-3": "k-marginals-3",
    "association": "association", "propensity": "pMSE", "propensity-null": "pMSE, null",
    "classification": "classifier", "classification-originals": "classifier, originals",
    "classification-majority": "majority", "regression": "overlap", "regression-coverage": "coverage",
}  # fmt: skip


def _tables(n: int) -> dict[str, tuple[af.Table, str | None, str | None]]:
    """Table, formula of a regression, column to be predicted, by name; what needs the data folder only where it is."""
    rng = np.random.default_rng(5)

    def some(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.iloc[np.sort(rng.choice(len(frame), min(n, len(frame)), replace=False))].reset_index(
            drop=True
        )

    census = some(af.datasets.census_like(4 * n, seed=11))
    nursery = some(af.datasets.nursery())
    classified = "classification" if "classification" in nursery else None
    schema = dict(af.datasets.schema("nursery"))
    if classified is not None:
        schema[classified] = {"role": "sensitive"}
    results = {
        "census-like": (
            af.Table(census, af.datasets.schema("census_like")), "Education ~ Age + Gender", "Salary-class",
        ),
        "Nursery": (af.Table(nursery, schema), "finance ~ housing + children", classified),
    }  # fmt: skip
    folder = data_folder()
    if folder is not None:
        adult = some(af.datasets.adult(complete=True))
        cmc = some(af.datasets.cmc())
        heart = heart_levels(folder, 20 * n)
        own = heart.frame.iloc[:: max(1, heart.n // n)][:n].reset_index(drop=True)
        results |= {
            "Adult": (af.Table(adult, af.datasets.schema("adult")), "salary-class ~ age + sex", "salary-class"),
            "CMC": (
                af.Table(cmc, af.datasets.schema("cmc")), "children_born ~ wife_age + media_exposure",
                "contraceptive_method_use",
            ),
            "heart": (
                af.Table(own, heart.schema), "HeartDisease ~ BMI + Sex + Smoking", "HeartDisease",
            ),
        }  # fmt: skip
    return results


def compared(n: int, k: int = K, tables: int = 5, most: int | None = None) -> pd.DataFrame:
    """A row for each table, at most so many, and method, a column for each number."""
    lines = []
    for name, (table, formula, target) in list(_tables(n).items())[:most]:
        for method, shape in METHODS.items():
            anon = af.anonymize(table, method, k=k, partition_size=250, seed=1 << 100)
            requests: list[Any] = list(PLAIN)
            if importlib.util.find_spec("sklearn") is not None:
                requests += [item for item in LEARNED if item != "classification"]
                requests += [{"classification": {"target": target}}] if target is not None else []
            if formula is not None:
                requests.append({"regression": {"formula": formula}})
            numbers = af.measure(table, anon, requests, tables=tables)
            lines.append({"table": name, "rows": table.n, "method": method, "shape": shape, **numbers})
    return pd.DataFrame(lines)


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    result = compared(120, 4, 2, most=2) if small else compared(ROWS)
    return [
        row(
            f"{item['table']}, {item['rows']:,} rows, {item['method']} ({item['shape']}): {label}",
            float(item[key]),
            "",
        )
        for _, item in result.iterrows()
        for key, label in SHOWN.items()
        if key in item and not pd.isna(item[key])
    ]


def pictures(folder: str | Path, frame: pd.DataFrame) -> None:
    """Write the pictures of the documentation: marginals by method, and associations before and after."""
    drawn = {}
    for key, label in (
        ("k-marginals", "Tables of two columns that agree"),
        ("k-marginals-3", "of three columns"),
    ):
        labels = [f"{item['table']}, {item['method']}" for _, item in frame.iterrows()]
        drawn[key] = plots.bars(labels, [value / 1000 for value in frame[key]], label)
    table, _, _ = _tables(ROWS)["census-like"]
    anon = af.anonymize(table, "greedy", k=K, partition_size=250, seed=1 << 100)
    part = replace(part_of(table, anon), table=table, subject=anon)
    names, before, after = association.matrices(comparison_of(part, 5, 0))
    drawn["association"] = heat_map(names, before, after, "Association of columns before and after")
    for name, picture in drawn.items():
        # a file of its own: it names its language, and lies on white
        alone = str(picture).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        alone = alone.replace("</title>", '</title><rect width="100%" height="100%" fill="white"/>', 1)
        Path(folder, f"{name}.svg").write_text(f"{alone}\n", encoding="utf-8")


if __name__ == "__main__":
    figures = compared(ROWS)
    print(figures.T.to_string())
    pictures(sys.argv[1], figures)
