"""The log as lines of JSON: what machines read, and nothing of a table."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
from collections.abc import Iterator

import pytest

from anonflow.cli import main
from anonflow.dashboards.server.json_log import log_as_json


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    loggers = [logging.root, *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    stream = io.StringIO()
    gc.collect()  # what tests before left says so now, and not in this log
    log_as_json(stream)
    yield stream
    for logger, handlers, level, propagate in before:
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_a_record_is_a_line(written: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    logging.getLogger("anonflow.dashboards").info("a session begins", extra={"sessions": 3})
    logging.getLogger("anonflow.dashboards").debug("not said")
    try:
        raise ValueError("Jane Doe")
    except ValueError:
        logging.getLogger("bokeh").exception("could not draw %r", "Jane Doe")
    monkeypatch.setattr(logging.getLogger("bokeh"), "level", logging.INFO)
    logging.getLogger("bokeh").info("not said")
    first, second = (json.loads(line) for line in written.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "anonflow.dashboards",
        "message": "a session begins",
        "sessions": 3,
    }
    assert (second["level"], second["error"]) == ("error", "ValueError")
    assert "Jane Doe" not in written.getvalue()


def test_a_task_that_failed_says_nothing_of_its_exception(written: io.StringIO) -> None:
    """Nobody looks at its result: asyncio shows the task, and with it what the exception says."""

    async def fail() -> None:
        raise ValueError("could not convert string to float: 'Jane Doe'")

    async def begin() -> None:
        task = asyncio.create_task(fail())
        await asyncio.wait([task])

    asyncio.run(begin())
    gc.collect()
    line = json.loads(written.getvalue())
    assert (line["logger"], line["message"], line["error"]) == (
        "asyncio",
        "Task exception was never retrieved",
        "ValueError",
    )
    assert "Jane Doe" not in written.getvalue()


def test_another_format_is_refused(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["anonflow", "dashboard", "--log-format", "xml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capfd.readouterr().err == "anonflow: --log-format is text or json\n"
