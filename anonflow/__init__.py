"""Anonymize tables of people with published methods, and prove the result from the data alone.

Importing this package is cheap: every public name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in anonflow.cli: nothing is loaded yet
if TYPE_CHECKING:
    from typing import Any

    from anonflow import datasets, errors, risk
    from anonflow.algorithms.anonymize import anonymize
    from anonflow.algorithms.diversity.diversify import diversify
    from anonflow.algorithms.patterns.language import pattern_grid
    from anonflow.algorithms.registry import algorithms
    from anonflow.analysis import combine, count, plausible
    from anonflow.criteria.verify import verify
    from anonflow.dashboards.app import dashboard
    from anonflow.engine.compare import compare
    from anonflow.engine.report.card import release_card
    from anonflow.engine.run import run
    from anonflow.engine.search.search import search
    from anonflow.hierarchy import Hierarchy
    from anonflow.release import ranges, read_release, shares
    from anonflow.risk.attack import attack
    from anonflow.risk.describe import describe
    from anonflow.table import Schema, Table
    from anonflow.table.per_unit import capped_rows, one_row_per_unit
    from anonflow.utility import measure
    from anonflow.widgets.explorer import explorer

__all__ = [
    "Hierarchy",
    "Schema",
    "Table",
    "__version__",
    "algorithms",
    "anonymize",
    "attack",
    "capped_rows",
    "combine",
    "compare",
    "count",
    "dashboard",
    "datasets",
    "describe",
    "diversify",
    "errors",
    "explorer",
    "measure",
    "one_row_per_unit",
    "pattern_grid",
    "plausible",
    "ranges",
    "read_release",
    "release_card",
    "risk",
    "run",
    "search",
    "shares",
    "verify",
]

__version__ = "0.2.0"

# Public name -> the module that has it, or None where the name is itself a module of this package.
# `algorithms` is both: the room, and a call on it (the room's module is callable).
_HOMES = {
    "Hierarchy": "anonflow.hierarchy",
    "Schema": "anonflow.table",
    "Table": "anonflow.table",
    "algorithms": None,
    "anonymize": "anonflow.algorithms",
    "attack": "anonflow.risk",
    "capped_rows": "anonflow.table.per_unit",
    "combine": "anonflow.analysis",
    "compare": "anonflow.engine",
    "count": "anonflow.analysis",
    "dashboard": "anonflow.dashboards.app",
    "datasets": None,
    "describe": "anonflow.risk",
    "diversify": "anonflow.algorithms",
    "errors": None,
    "explorer": "anonflow.widgets",
    "measure": "anonflow.utility",
    "one_row_per_unit": "anonflow.table.per_unit",
    "pattern_grid": "anonflow.algorithms",
    "plausible": "anonflow.analysis",
    "ranges": "anonflow.release",
    "read_release": "anonflow.release",
    "release_card": "anonflow.engine.report.card",
    "risk": None,
    "run": "anonflow.engine",
    "search": "anonflow.engine",
    "shares": "anonflow.release",
    "verify": "anonflow.criteria",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anonflow' has no attribute {name!r}")
    import importlib

    home = _HOMES[name]
    if home is None:
        return importlib.import_module(f"anonflow.{name}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
