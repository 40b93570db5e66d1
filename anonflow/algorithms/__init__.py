"""The published methods: one file each, one registry, one way to run them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from anonflow.algorithms.anonymize import Anonymization, anonymize
from anonflow.algorithms.diversity.diversify import diversify
from anonflow.algorithms.diversity.minimality import minimality_excess
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.language import pattern_grid
from anonflow.algorithms.registry import REGISTRY, algorithms

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "REGISTRY",
    "Algorithm",
    "Anonymization",
    "Outcome",
    "Partition",
    "algorithms",
    "anonymize",
    "diversify",
    "minimality_excess",
    "pattern_grid",
]


class _CallableModule(ModuleType):
    """This module, callable: `anonflow.algorithms` is this room and the public function that lists it."""

    def __call__(self) -> pd.DataFrame:
        return algorithms()


sys.modules[__name__].__class__ = _CallableModule
