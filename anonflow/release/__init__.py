"""Releases: the draw of the assignment, the shuffle, the published table and the owner's certificate."""

from anonflow.release.cells import ranges, shares
from anonflow.release.certificate import Certificate
from anonflow.release.draw import (
    assignments,
    decompose,
    draw_assignment,
    draw_permutation,
    draws_of_graph,
    permute_classes,
)
from anonflow.release.publish import publish, publish_once
from anonflow.release.published import Release, ReleaseWarning, read_release, write_release
from anonflow.release.published_column import PublishedColumn
from anonflow.release.randomness import RandomWords, SeedWarning
from anonflow.release.summary import ColumnSummary, ReleaseSummary
from anonflow.table.identification.earlier import Earlier

__all__ = [
    "Certificate",
    "ColumnSummary",
    "Earlier",
    "PublishedColumn",
    "RandomWords",
    "Release",
    "ReleaseSummary",
    "ReleaseWarning",
    "SeedWarning",
    "assignments",
    "decompose",
    "draw_assignment",
    "draw_permutation",
    "draws_of_graph",
    "permute_classes",
    "publish",
    "publish_once",
    "ranges",
    "read_release",
    "shares",
    "write_release",
]
