"""The verifier checks every criterion from the data. It shares no computation with the algorithms."""

from anonflow.criteria.evidence import Evidence, collect, subject_of
from anonflow.criteria.matching.concealment import match_edges
from anonflow.criteria.matching.graph import Bipartite, consistency_graph
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.request import CriterionRequest
from anonflow.criteria.verification import Finding, Verification
from anonflow.criteria.verify import criteria_names, verify

__all__ = [
    "CRITERIA",
    "Bipartite",
    "CriterionRequest",
    "Evidence",
    "Finding",
    "Verification",
    "collect",
    "consistency_graph",
    "criteria_names",
    "match_edges",
    "subject_of",
    "verify",
]
