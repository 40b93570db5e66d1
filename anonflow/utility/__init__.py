"""The utility of a release: usefulness, classes, discernibility and query error, besides information loss."""

from anonflow.utility.measures import (
    MEASURES,
    Measure,
    MeasureRequest,
    asked,
    class_sums,
    classes_of_bucket,
    combine,
    finalize,
    finish_sums,
    measure,
    measure_names,
    measures_by_class,
    measures_by_record,
    measures_of_analyses,
    numbers_of_measure,
    partial,
)

__all__ = [
    "MEASURES",
    "Measure",
    "MeasureRequest",
    "asked",
    "class_sums",
    "classes_of_bucket",
    "combine",
    "finalize",
    "finish_sums",
    "measure",
    "measure_names",
    "measures_by_class",
    "measures_by_record",
    "measures_of_analyses",
    "numbers_of_measure",
    "partial",
]
