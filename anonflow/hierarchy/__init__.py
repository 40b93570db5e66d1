"""Value generalization hierarchies: trees whose leaves are the values of a quasi-identifier."""

from __future__ import annotations

from anonflow.hierarchy.hierarchy import EMPTY, Hierarchy
from anonflow.hierarchy.wording import number_text

__all__ = ["EMPTY", "Hierarchy", "number_text"]
