"""Value generalization hierarchies: trees whose leaves are the values of a quasi-identifier."""

from __future__ import annotations

from anonflow.hierarchy.hierarchy import Hierarchy
from anonflow.hierarchy.wording import number_text

__all__ = ["Hierarchy", "number_text"]
