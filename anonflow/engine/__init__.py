"""Flows: read strictly, run as a Dask graph, followed by events, reported."""

from anonflow.engine.background import Handle, start
from anonflow.engine.compare import compare, compared
from anonflow.engine.execution.events import Cancelled, Event, EventStream
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.loader import flow_from, load_flow
from anonflow.engine.owner.folder import OwnerFolder, read_seed_file
from anonflow.engine.run import run

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
    "compare",
    "compared",
    "flow_from",
    "load_flow",
    "read_seed_file",
    "run",
    "start",
]
