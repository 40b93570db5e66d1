"""The second year of a register in a real browser: who was released before, and a run that goes on from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from anonflow import engine
from anonflow.release import Earlier
from anonflow.table.identification.packed_releases import unpack
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


def test_last_years_releases_are_uploaded(page: Any, serve: Any, tmp_path: Path) -> None:
    """Neither the server nor the session knows them: an owner's folder that its owner packed, and a file that is none."""
    last = tmp_path / "last"
    last.mkdir()
    flow = last / "register.yaml"
    flow.write_text(FLOW, encoding="utf-8")
    people(330).iloc[:300].to_csv(last / "people.csv", index=False)
    assert engine.run(flow).ok
    shutil.make_archive(str(tmp_path / "register"), "zip", last, "owner")
    (tmp_path / "notes.zip").write_text("no archive")
    later = people(330).iloc[12:].assign(age=lambda frame: frame["age"] + 1)
    later.to_csv(tmp_path / "people.csv", index=False)
    this = tmp_path / "register.yaml"
    this.write_text(FLOW, encoding="utf-8")
    page.goto(serve(str(this)).url)
    ready(page)
    step(page, "Risk")
    seen(page, "Nobody of this table is in a release").wait_for()
    card = page.locator(".af-card", has_text="Released before").locator("input[type=file]")
    card.set_input_files(tmp_path / "notes.zip")
    seen(page, "notes.zip: is damaged, or no ZIP file").wait_for()
    card.set_input_files(tmp_path / "register.zip")
    seen(page, "288 of 318").wait_for()
    seen(page, "whoever compares the releases sees who left").wait_for()
    assert page.evaluate(CUT) == []
    shot(page, "next-year-upload-risk", full_page=True)
    step(page, "Compare")
    run_all(page, "Done: 1 run")
    step(page, "Publish")
    seen(page, "288 of 318").wait_for()
    shot(page, "next-year-upload", full_page=True)
    press(page, ".af-go-on", lambda: seen(page, "without earlier releases").wait_for(timeout=60_000))
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=60_000))
    with page.expect_download() as download:
        page.locator(".af-file-releases a, .af-file-releases button").first.click()
    unpack(download.value.path(), "releases.zip", Earlier(tmp_path / "next"))
    assert len(Earlier(tmp_path / "next").history().releases) == 2
    assert page.evaluate(CUT) == []
    assert page.errors == []
    assert outside(page.requested) == []
