"""What a release is still good for: usefulness, classes, discernibility, query error, beside information loss."""

from anonflow.utility.measures import (
    Asked,
    asked,
    class_sums,
    combine,
    finalize,
    finish_sums,
    measure,
    measure_names,
    measures_by_class,
    partial,
)

__all__ = [
    "Asked",
    "asked",
    "class_sums",
    "combine",
    "finalize",
    "finish_sums",
    "measure",
    "measure_names",
    "measures_by_class",
    "partial",
]
