"""The papers' tables and figures, computed with anonflow: what `notebooks/papers` shows.

`python -m tests.papers` measures them at full size, stores the numbers with the machine's description in
`notebooks/papers/results`, and runs the workbooks anew. Each module has `PARTS`, a function for each table or
figure that yields what is computed for a run (small or full, built-in or real data), `claims`, what the paper
says about its figures, under its `READING` and others, and `why_not`, why a number cannot be compared with the printed one. What can be shared
with the benchmarks and the tests comes from there.
"""

from tests.papers.workbook import Workbook

__all__ = ["Workbook"]
