"""A log for machines: one JSON object in each line, without data of a table."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

OWN = "anonflow"

_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest was given with it."""


class JsonLog(logging.Formatter):
    """``{"time", "level", "logger", "message"}`` and the fields that were given with the record.

    Messages of other packages may contain a cell: the log keeps the first line of their records, without the filled-in
    values, and the type of an exception. (The lines after the first show objects: asyncio's a task with the words of
    its exception.)
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        is_own_record = _is_own(record)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage() if is_own_record else str(record.msg).partition("\n")[0],
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        if is_own_record:
            line |= {name: value for name, value in vars(record).items() if name not in _FIELDS}
        return json.dumps(line, default=str)


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == OWN


def log_as_json(stream: TextIO | None = None) -> None:
    """Write this process's log as lines of JSON, to the standard error without `stream`: ours from info on, warnings of others."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLog())
    # packages give their loggers levels of their own
    handler.addFilter(lambda record: _is_own(record) or record.levelno >= logging.WARNING)
    logging.root.handlers[:] = [handler]
    for name in list(logging.root.manager.loggerDict):  # Bokeh's writes by itself
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = [], True
    logging.root.setLevel(logging.WARNING)
    logging.getLogger(OWN).setLevel(logging.INFO)
