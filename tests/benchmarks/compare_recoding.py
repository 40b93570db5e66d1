"""`python -m tests.benchmarks.compare_recoding [--small] [NAME ...]`: the methods of recoding beside the others, as Markdown.

The table of each of the data sets `adult` and `heart`: what each method loses, how useful its release is, the processor time
on one thread, and how the first record is published.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder
from tests.cases.recoding import adult_levels, heart_levels

K = 10
METHODS: tuple[tuple[str, int | None, dict[str, Any]], ...] = (
    ("full-domain", None, {"limit": 0.0}),
    ("full-domain", None, {"limit": 0.01}),
    ("full-domain", None, {"limit": 0.05}),
    ("local-recoding", None, {}),
    ("mondrian", None, {}),
    ("k-member", 5000, {}),
    ("greedy", 250, {}),
    ("two-phase", 250, {}),
)
TABLES = {"adult": adult_levels, "heart": heart_levels}
HEADER = (
    "| method | loss (GCP) | usefulness | error of queries | suppressed | seconds | the first record |\n"
    "|---|---|---|---|---|---|---|"
)


def line(table: af.Table, method: str, size: int | None, options: dict[str, Any]) -> str:
    """One method's row of the table."""
    start = time.process_time()
    anon = af.anonymize(table, method, k=K, partition_size=size, seed=1, workers=1, **options)
    taken = time.process_time() - start
    figures = af.measure(table, anon, ["gcp", "usefulness", "query-error"])
    text = ", ".join([f"`{method}`", *(f"`{name}: {value:g}`" for name, value in options.items())])
    text += f", in partitions of {size:,}" if size else ""
    cells = " · ".join(str(cell) for cell in anon.frame().iloc[0])
    return (
        f"| {text} | {figures['gcp']:.3f} | {figures['usefulness']:.3f} | {figures['query-error']:.3f} | "
        f"{int(anon.suppressed.sum()):,} | {taken:.2g} | {cells} |"
    )


def main() -> int:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compare_recoding")
    parser.add_argument("names", nargs="*", choices=[*TABLES, []], help="adult, heart; both if none")
    parser.add_argument("--small", action="store_true", help="1,000 records: shows that it runs")
    wanted = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("the data folder is not there: name it in ANONFLOW_DATA", file=sys.stderr)
        return 2
    for name in wanted.names or TABLES:
        table = TABLES[name](folder, 1_000 if wanted.small else None)
        warm = table.take(range(200))
        print(f"{name}: {table.n:,} records, {len(table.qi_columns)} quasi-identifiers, k = {K}\n\n{HEADER}")
        for method, size, options in METHODS:
            af.anonymize(warm, method, k=2, seed=1, **options)
            print(line(table, method, size, options), flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
