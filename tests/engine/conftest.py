"""Workers that a test owns, and a cluster of real ones, for tests of the engine."""

from tests.cases.cluster import cluster
from tests.cases.workers import workers

__all__ = ["cluster", "workers"]
