"""The slower freeform methods: hungarian and two-phase on Adult, two-phase on random tables, NH beside it.

What was tried to improve a k-regular graph on Adult (30,162 records, k = 10, GCP), from Hungarian in
lexicographic stretches of 1,000 (0.02996). Its 6.5 s of processor time are not in the seconds below; the machine
was shared, so these are of processor time, not of a clock:

- Slot re-assignment in blocks along random lexicographic orders: 0.0297 after 30 passes. Records of such a
  block are too far apart to have anything to exchange.
- Blocks of the nearest originals (cost of the join of two originals), 128 records: 0.02977, 0.02957 after 1 and
  3 passes. By the cost of the join of two generalized records: 0.02982, 0.02966.
- Blocks of the generalized records that grow least by covering a random original, 128 records: 0.02970,
  0.02944 after 1 and 3 passes, 0.02880 after 20. This is what is used.
- The same around the dearest match of records drawn by what that match costs: 0.02974, 0.02946. Slots drawn
  by what their match costs, five of nine in each pass: no more gain per second than every slot once a pass.
- Size of the blocks: 64 gives 0.02882 after 30 passes (22 s), 256 gives 0.02874 after 21 passes (23 s)
  and 0.02847 after 60 (62 s; k = 5: 0.01469), 512 gives 0.02878 after 15 passes (31 s).
- Processor time per pass of blocks of 128: 3.6 s at first. Covering the rest of each block QI by QI instead of
  match by match took 0.8 ms per block and slot down to 0.1 ms, and subtracting the least of each column before
  the assignment problem is solved took that from 1.3 ms to 0.2 ms (at 256: 4 to 7 ms down to 0.4 to 0.6).

On random_normal(100,000, 10, sd = 1), k = 10: 0.3802 from Hungarian in lexicographic stretches of 1,000, 0.3776
after 8 passes in blocks of 256 (72 s of processor time in all).

Sparse assignments over candidates, renewed for each (``start="sparse"``), on random_normal(10,000, 10), k = 3:
0.3099 where stretches of 1,000 give 0.3335, in 12 s of processor time against 0.8; 20,000 labels of the cycle
search took that to 0.3086 (111 cycles, 5 s). On 100,000 records at k = 3: 0.2007 (154 s of the clock, 237 s of
processor time, 0.67 GiB) where the dense start ends at 0.2125 after 60 passes (53 s) and 0.2073 after 200 (168 s).
Multiple sorting (``pairs="sorted"``) finds 35 near records of each of 1,000,000 at once in 38 s of processor time and 0.96 GiB, of each
of 100,000 in 3.3 s (`near_once` of ``tests/papers/low_information_loss.py``, on a busy machine): the assignments take the rest.
On Adult with 60 passes the sparse start ends at 0.02820 for k = 10 (64 s of the clock; dense 0.02847 in 37 s),
0.01463 for k = 5 (30 s; dense 0.01469 in 17 s) and 0.00769 for k = 3 (14 s; dense 0.00766 in 10 s), so ``auto``
takes it where k is at most 4 and stretches tear near records apart. The goal of 0.0270 in 5 s is not in sight.

Prices that see more than the true ones, in a sketch on Adult (k = 10, blocks of 128, from 0.02996): a value that m of the
k matches have costs (m/k)^a instead of 1, so that rare values are worth leaving before the last of them is gone. After
13 passes a = 0.1 gives 0.02887, where true prices give 0.02895; a = 0.5 for three passes, 0.3 for three, 0.15 for two ends
at 0.02948. Not carried further: about a tenth more gain, for sets and ranges alone.
"""

from __future__ import annotations

from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder, row, seconds
from tests.cases.tables import adult


def run(small: bool) -> list[dict[str, Any]]:
    """The figures of Two-phase."""
    rows = []
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        if small:
            table = af.Table(table.frame.iloc[:600], table.schema)
        for k, most in ((5, 0.0158), (10, 0.0302)):
            rows += measured("Adult", table, "hungarian", k, small, most, 12.0, partition_size=1_000)
            rows += measured(
                "Adult", table, "hungarian", k, small, None, None, partition_size=1_000, reciprocal=True
            )
        for k, most in ((5, 0.0152), (10, 0.0285)):
            rows += measured("Adult", table, "two-phase", k, small, most, 60.0, improve="reassign")
    n = 1_000 if small else 100_000
    frame = af.datasets.random_normal(n, 10, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    table = af.Table(frame, dict.fromkeys(frame.columns, qi))
    for k, most in ((3, 0.21), (10, 0.39)):
        rows += measured(
            f"random_normal of {n}", table, "two-phase", k, small, most, None, improve="reassign"
        )
        rows += measured(f"random_normal of {n}", table, "nh", k, small, None, None)
    return rows


def measured(
    name: str,
    table: af.Table,
    algorithm: str,
    k: int,
    small: bool,
    most: float | None,
    limit: float | None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Seconds and GCP of one run."""
    if small and algorithm == "two-phase":
        options["passes"] = 2
    if options.get("reciprocal"):
        name = f"reciprocal, {name}"
    options.setdefault("partition_size", None)
    af.anonymize(af.Table(table.frame.iloc[:100], table.schema), algorithm, k=k, seed=1, **options)
    results = []
    taken = seconds(lambda: results.append(af.anonymize(table, algorithm, k=k, seed=1, **options)), 1)
    return [
        row(f"{algorithm}, {name}, k = {k}", taken, "s", most=None if small else limit),
        row(f"{algorithm}, {name}, k = {k}: GCP", results[-1].loss("gcp"), "", most=None if small else most),
    ]
