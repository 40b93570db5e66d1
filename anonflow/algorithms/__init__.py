"""The published methods: each has its file, one registry lists them, and one function runs them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from anonflow.algorithms.anonymize import Anonymization, anonymize
from anonflow.algorithms.diversity.diversify import diversify
from anonflow.algorithms.diversity.minimality import minimality_excess, minimality_shares
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.patterns.language import pattern_grid
from anonflow.algorithms.recoding.minimal_levels import minimal_levels
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
    "minimal_levels",
    "minimality_excess",
    "minimality_shares",
    "pattern_grid",
]


class _CallableModule(ModuleType):
    """A callable module: `anonflow.algorithms` is this package and also the public function that lists the methods."""

    def __call__(self) -> pd.DataFrame:
        return algorithms()


sys.modules[__name__].__class__ = _CallableModule
