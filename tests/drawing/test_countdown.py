"""What takes over ten seconds says how long; what is short says nothing."""

from __future__ import annotations

from anonflow.drawing.countdown import Countdown


def texts(parts: int, seconds: float) -> list[str]:
    """What is shown of so many parts, each of which takes so many seconds."""
    now, shown = [0.0], []
    with Countdown("greedy, k = 5", parts, clock=lambda: now[0], show=shown.append) as countdown:
        for _ in range(parts):
            now[0] += seconds
            countdown.step()
    return shown


def test_a_long_call_says_how_long_and_a_short_one_nothing() -> None:
    assert texts(18, 0.5) == []
    shown = texts(100, 0.5)
    assert shown[0] == "greedy, k = 5: 4 of 100 partitions, about 48 of 50 s are left"
    assert shown[-1] == "greedy, k = 5: 50 s"
    assert 40 <= len(shown) <= 51  # once a second


def test_outside_a_notebook_nothing_is_shown() -> None:
    countdown = Countdown("greedy, k = 5", 3)
    assert countdown.show is None
    countdown.step()
    assert countdown.done == 1
