"""k-concealment, agglomerative and forest on the tables of Tassa 2012: Figures 5 to 10 as a table and as plots.

`ANONFLOW_CONCEALMENT=cmc,nursery` measures some of the tables only: Adult takes half an hour. Plots are written to
`out/`, one SVG file for each table.
"""

from __future__ import annotations

import os
import resource
import time

import numpy as np

import anonflow as af
from anonflow import datasets
from anonflow.algorithms import Anonymization
from anonflow.table import Table
from tests import ROOT
from tests.benchmarks.curves import Curve, drawing
from tests.benchmarks.measuring import data_folder, row

OUT = ROOT / "out"
KS = (10, 25, 50, 100)
MEASURES = {"lm": "LM", "entropy": "EM"}
METHODS = {
    "k-concealment": ("k-concealment", {"randomized": False}),
    "agglomerative": ("agglomerative", {}),
    "forest": ("forest", {}),
}
DIVERSE = {"adult": ("salary-class", 1.1), "nursery": ("classification", 2.0)}
NAMES = ("artificial", "cmc", "nursery", "adult")


def tables(name: str) -> Table:
    """A table of Tassa 2012, section 9, with its hierarchies."""
    schema = datasets.schema(name, hierarchies=True)
    if name == "adult":
        frame = datasets.adult("all", complete=True)
        age = datasets.adult_hierarchies()["age"]
        schema["age"] = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": age}
        frame["age"] = frame["age"].astype(str)
    else:
        frame = datasets.load(name)
    if "classification" in frame.columns:
        schema["classification"] = {"role": "sensitive"}
    return Table(frame, schema)


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    if small:
        names: tuple[str, ...] = ("artificial",)
    elif data_folder() is None:
        names = ("artificial",)
    else:
        names = tuple(os.environ.get("ANONFLOW_CONCEALMENT", ",".join(NAMES)).split(","))
    chain = chained(small)
    for name in names:
        table = tables(name)
        if small:
            table = table.take(np.arange(150))
        chain += _figures(name, table, (5, 10) if small else KS, plot=not small)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    chain.append(row(f"memory, {', '.join(names)}", peak, "GiB", most=None if small else 4.0))
    return chain


def chained(small: bool) -> list[dict[str, object]]:
    """What chains on the graph of the even start save, beside two-phase, whose promise is stronger.

    Adult, 200 records and 1,000, seed 1, GCP with greedy's graph, with chains, and of two-phase:
    k = 5: 0.0933, 0.0887, 0.0827 and 0.0544, 0.0520, 0.0477; k = 10: 0.1667, 0.1591, 0.1547 and 0.0975, 0.0898, 0.0886;
    k = 20: 0.2734, 0.2614, 0.2551 and 0.1559, 0.1459, 0.1446.
    """
    if data_folder() is None or small:
        frame, schema = datasets.census_like(1_000, seed=1), datasets.schema("census_like")
    else:
        frame, schema = datasets.adult("all", complete=True), datasets.schema("adult")
    rows: list[dict[str, object]] = []
    for n in (80,) if small else (200, 1_000):
        table = Table(frame.sample(n, random_state=1).reset_index(drop=True), schema)
        for k in (5,) if small else (5, 10, 20):
            for algorithm, options in (
                ("k-concealment", {}),
                ("k-concealment", {"improve": "chains"}),
                ("two-phase", {}),
            ):
                begin = time.process_time()
                anon = af.anonymize(table, algorithm, k, seed=(1 << 100) + 1, **options)
                seconds = time.process_time() - begin
                label = " ".join([algorithm, *(f"{key}: {value}" for key, value in options.items())])
                rows.append(row(f"{n} records, k = {k}, {label}: processor time", seconds, "s"))
                rows.append(row(f"{n} records, k = {k}, {label}: GCP", anon.loss("gcp"), ""))
    return rows


def _figures(name: str, table: Table, ks: tuple[int, ...], plot: bool) -> list[dict[str, object]]:
    """Figures 5 to 8 for one table, 9 for Adult, 10 for Adult and Nursery."""
    rows: list[dict[str, object]] = []
    panels: list[tuple[str, dict[str, Curve]]] = []
    kept: dict[tuple[str, int], Anonymization] = {}
    for measure, title in MEASURES.items():
        curves: dict[str, Curve] = {method: {} for method in METHODS}
        if name == "adult":
            curves["randomized"] = {}
        for k in ks:
            for label, (algorithm, options) in METHODS.items():
                begin = time.perf_counter()
                anon = af.anonymize(table, algorithm, k, partition_size=None, loss=measure, seed=1, **options)
                seconds = time.perf_counter() - begin
                curves[label][k] = anon.loss(measure)
                if measure == "lm" and label != "forest":
                    kept[label, k] = anon
                rows.append(row(f"{name}, {title}, k = {k}, {label}: time", seconds, "s"))
            if "randomized" in curves:
                anon = af.anonymize(
                    table, "k-concealment", k, partition_size=None, loss=measure, seed=1, start="expansion"
                )
                curves["randomized"][k] = anon.loss(measure)
            rows += _compared(f"{name}, {title}, k = {k}", {m: curve[k] for m, curve in curves.items()}, plot)
        panels.append((f"{name}, {title}", curves))
    if name in DIVERSE and plot and DIVERSE[name][0] in table.frame.columns:
        more, curves = _diverse(name, table, kept)
        rows += more
        panels.append((f"{name}, LM, l = {DIVERSE[name][1]:g}", curves))
    if plot:
        OUT.mkdir(exist_ok=True)
        (OUT / f"concealment-{name}.svg").write_text(drawing(panels), encoding="utf-8")
    return rows


def _compared(where: str, losses: dict[str, float], full: bool) -> list[dict[str, object]]:
    rows = []
    for label, loss in losses.items():
        bound = {
            "k-concealment": "agglomerative",
            "randomized": "agglomerative",
            "agglomerative": "forest",
        }.get(label)
        rows.append(row(f"{where}, {label}", loss, "loss", most=losses[bound] if bound and full else None))
    return rows


def _diverse(
    name: str, table: Table, kept: dict[tuple[str, int], Anonymization]
) -> tuple[list[dict[str, object]], dict[str, Curve]]:
    column, l = DIVERSE[name]
    rows: list[dict[str, object]] = []
    curves: dict[str, Curve] = {"k-concealment": {}, "agglomerative": {}}
    for k in sorted({k for _, k in kept}):
        for label, curve in curves.items():
            begin = time.perf_counter()
            diverse = af.diversify(kept[label, k], "l-diversity", l=l, column=column, seed=1)
            seconds = time.perf_counter() - begin
            curve[k] = diverse.loss("lm")
            check = af.verify(table, diverse, ["covers", f"l-diversity(l={l}, column={column})"], k=k)
            where = f"{name}, LM, k = {k}, l = {l:g}, {label}"
            rows.append(row(f"{where}: time of the step", seconds, "s"))
            rows.append(row(f"{where}: verified", float(bool(check)), "of 1", least=1))
        most = curves["agglomerative"][k]
        rows.append(
            row(
                f"{name}, LM, k = {k}, l = {l:g}, k-concealment",
                curves["k-concealment"][k],
                "loss",
                most=most,
            )
        )
        rows.append(row(f"{name}, LM, k = {k}, l = {l:g}, agglomerative", most, "loss"))
    return rows, curves
