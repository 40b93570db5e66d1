"""Analyses of a release, from the release alone: plausible tables, counts with bounds, pooled estimates."""

from anonflow.analysis.counts import Count, count
from anonflow.analysis.plausible_tables import PlausibleTables, plausible
from anonflow.analysis.pooling import combine

__all__ = ["Count", "PlausibleTables", "combine", "count", "plausible"]
