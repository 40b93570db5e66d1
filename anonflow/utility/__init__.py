"""What a release is still good for: usefulness, classes, discernibility, query error, beside information loss."""

from anonflow.utility.measures import (
    Asked,
    asked,
    combine,
    finalize,
    measure,
    measure_names,
    partial,
)

__all__ = ["Asked", "asked", "combine", "finalize", "measure", "measure_names", "partial"]
