"""Pictures and tables for notebooks and reports: functions take plain values and return escaped HTML and inline SVG."""

from anonflow.drawing.fragments import Fragment, facts, grid, heading, note, or_dash, share, view
from anonflow.drawing.graphs import generalization_graph, points_and_matches
from anonflow.drawing.trees import tree

__all__ = [
    "Fragment",
    "facts",
    "generalization_graph",
    "grid",
    "heading",
    "note",
    "or_dash",
    "points_and_matches",
    "share",
    "tree",
    "view",
]
