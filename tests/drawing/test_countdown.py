"""What takes over ten seconds says how long; what is short says nothing."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from anonflow.drawing.countdown import Countdown, notebook_cell


def texts(parts: int, seconds: float) -> list[str]:
    """What is shown of so many parts, each of which takes so many seconds."""
    now, shown = [0.0], []
    countdown = Countdown("greedy, k = 5", parts, clock=lambda: now[0], show=shown.append)
    for _ in range(parts):
        now[0] += seconds
        countdown.step()
    return shown


def test_a_long_call_says_how_long_and_a_short_one_nothing() -> None:
    assert texts(18, 0.5) == []
    shown = texts(100, 0.5)
    assert shown[0] == "greedy, k = 5: 5 of 100 partitions, about 48 of 50 s are left"
    assert shown[-1] == "greedy, k = 5: 50 s"
    assert 40 <= len(shown) <= 51  # once a second


def test_a_whole_table_says_that_it_is_at_work() -> None:
    now, shown = [0.0], []
    countdown = Countdown(
        "k-member, k = 5", 1, clock=lambda: now[0], show=shown.append, hint=" on 900 records at once"
    )
    for _ in range(12):
        now[0] += 1.0
        countdown.wait()
    countdown.step()
    assert shown == [
        "k-member, k = 5: at work for 10 s on 900 records at once",
        "k-member, k = 5: at work for 11 s on 900 records at once",
        "k-member, k = 5: at work for 12 s on 900 records at once",
        "k-member, k = 5: 12 s",
    ]


def test_a_whole_table_says_how_long_it_is_expected_to_take() -> None:
    """The expectation takes time itself: it is asked for once, where somebody waits for long; a wrong one is not repeated."""
    now, shown, calls = [0.0], [], []

    def expect() -> float:
        calls.append(now[0])
        now[0] += 1.0
        return 13.3

    countdown = Countdown(
        "k-member, k = 5", 1, clock=lambda: now[0], show=shown.append, hint=" on 900 records", expect=expect
    )
    for _ in range(13):
        now[0] += 1.0
        countdown.wait()
    assert calls == [10.0]
    assert shown == [
        "k-member, k = 5: at work for 11 of about 13 s on 900 records",
        "k-member, k = 5: at work for 12 of about 13 s on 900 records",
        "k-member, k = 5: at work for 13 s on 900 records",
        "k-member, k = 5: at work for 14 s on 900 records",
    ]


def test_a_call_that_ends_soon_expects_nothing() -> None:
    now, calls = [0.0], []
    countdown = Countdown(
        "greedy, k = 5", 1, clock=lambda: now[0], show=calls.append, expect=lambda: calls.append("") or 1.0
    )
    for _ in range(9):
        now[0] += 1.0
        countdown.wait()
    countdown.step()
    assert calls == []


def test_a_terminal_has_a_line_each_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    now = [0.0]
    countdown = Countdown("greedy, k = 5", 100, clock=lambda: now[0])
    for _ in range(99):
        now[0] += 0.5
        countdown.step()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "anonflow: greedy, k = 5: 5 of 100 partitions, about 48 of 50 s are left"
    assert 4 <= len(lines) <= 6


def test_a_notebook_shows_each_text_over_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            shown.append(("again", content["text/plain"], raw))

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append((display_id, content["text/plain"], raw))
        return Handle()

    shell = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True))
    notebook = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    show = notebook_cell()
    assert show is not None
    show("a")
    show("b")
    assert shown == [(True, "a", True), ("again", "b", True)]
    shell.kernel._allow_stdin = False  # a program runs the notebook
    assert notebook_cell() is None
    monkeypatch.delattr(shell, "kernel")  # a terminal
    assert notebook_cell() is None


def test_where_nobody_reads_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    countdown = Countdown("greedy, k = 5", 3)
    assert countdown.show is None
    countdown.step()
    assert countdown.done == 1
