"""Figures: `python -m tests.benchmarks` measures them all and prints one table.

Each `bench_<what>.py` has `run(small) -> list[dict]` with, for each figure, `name`, `figure` (a number),
`unit`, `goal` (text such as "<= 30", empty where there is none) and `met` (bool, or None without a goal).
A missing data set is no failure: such a module returns what it can measure without.
"""
