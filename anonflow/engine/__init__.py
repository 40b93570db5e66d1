"""Flows: they are read strictly and run as a Dask graph; events show their progress, reports their results."""

from anonflow.engine.background import Handle, start
from anonflow.engine.compare import compare, compared
from anonflow.engine.execution.events import Cancelled, Event, EventStream
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.loader import flow_from, load_flow
from anonflow.engine.owner.folder import OwnerFolder, read_seed_file
from anonflow.engine.run import run
from anonflow.engine.search.document import picked_document
from anonflow.engine.search.search import TargetSearch, search, search_flow
from anonflow.engine.search.trials import SearchReport, SearchTarget

__all__ = [
    "Cancelled",
    "Event",
    "EventStream",
    "Flow",
    "Handle",
    "OwnerFolder",
    "Run",
    "RunReport",
    "RunResult",
    "SearchReport",
    "SearchTarget",
    "TargetSearch",
    "compare",
    "compared",
    "flow_from",
    "load_flow",
    "picked_document",
    "read_seed_file",
    "run",
    "search",
    "search_flow",
    "start",
]
