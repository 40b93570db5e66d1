"""Flows: read strictly, run as a Dask graph, followed by events, reported."""

from anonflow.engine.compare import compare, compared
from anonflow.engine.events import Cancelled, Event, EventStream
from anonflow.engine.flow import Flow, Run
from anonflow.engine.handle import Handle, start
from anonflow.engine.loader import flow_from, load_flow
from anonflow.engine.owner import OwnerFolder, read_seed_file
from anonflow.engine.result import RunReport, RunResult
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
