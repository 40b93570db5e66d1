"""Information loss: how much a generalized record hides, from 0 (nothing) to 1 (everything), or in bits.

Each measure is a cost of a run or of a set of values of one quasi-identifier (QI). A record's loss is the
weighted mean over its QIs, a release's the mean over its records.

=============  ======================  ===================================  ============================
measure        numeric run             hierarchy node                       set
=============  ======================  ===================================  ============================
ncp (gcp)      width / domain width    (leaves - 1) / (all leaves - 1)      (count - 1) / (domain - 1)
lm             (values - 1) /          as ncp                               as ncp
               (domain - 1)
height (il)    width / domain width    height(node) / height(tree)          0 if one value, else 1
suppressions   1 if published ``*``    1 if published ``*``                 1 if the whole domain
entropy (em)   H(values in it), bits   same                                 same
=============  ======================  ===================================  ============================

A domain of one value costs 0. A missing number is covered by the whole domain only, and costs what that does.
"""

from anonflow.loss.costs import (
    cell_costs,
    height_total,
    information_loss,
    plan,
    record_costs,
    suppressed_cells,
)
from anonflow.loss.registry import LOSSES, MEASURES, MONOTONE, measure_named, names

__all__ = [
    "LOSSES",
    "MEASURES",
    "MONOTONE",
    "cell_costs",
    "height_total",
    "information_loss",
    "measure_named",
    "names",
    "plan",
    "record_costs",
    "suppressed_cells",
]
