"""Value generalization hierarchies: trees whose leaves are the values of a quasi-identifier."""

from __future__ import annotations

from anonflow.hierarchy.sources import number_text
from anonflow.hierarchy.tree import Hierarchy

__all__ = ["Hierarchy", "number_text"]
