"""The second year of a register in a real browser: who was released before, and a run that goes on from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anonflow import engine
from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import CUT, press, run_all, seen, step
from tests.cases.released_twice import FLOW, people


def test_the_second_year_goes_on_from_the_first(page: Any, serve: Any, tmp_path: Path) -> None:
    flow = tmp_path / "register.yaml"
    flow.write_text(FLOW, encoding="utf-8")
    people(330).iloc[:300].to_csv(tmp_path / "people.csv", index=False)
    assert engine.run(flow).ok
    later = people(330).iloc[12:].assign(age=lambda frame: frame["age"] + 1)
    later.to_csv(tmp_path / "people.csv", index=False)
    page.goto(serve(str(flow)).url)
    ready(page)
    step(page, "Risk")
    seen(page, "Released before").wait_for()
    seen(page, "288 of 318").wait_for()
    step(page, "Compare")
    run_all(page, "Done: 1 run")
    step(page, "Publish")
    seen(page, "A plain second release can be compared").wait_for()
    page.get_by_label("People that all releases leave everybody").fill("4")
    page.keyboard.press("Enter")
    ready(page)
    shot(page, "next-year-before", full_page=True)
    press(page, ".af-go-on", lambda: seen(page, "held back").wait_for(timeout=60_000))
    seen(page, "without earlier releases").wait_for()
    assert page.evaluate(CUT) == []
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=60_000))
    shot(page, "next-year", full_page=True)
    assert page.errors == []
    assert outside(page.requested) == []
