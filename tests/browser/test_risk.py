"""Risk and utility in a real browser: who stands alone, the user's own question, and the reviewer's report filled in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from anonflow import datasets
from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import press, run_all, seen, step

WEIGHTED = """
flow: people
version: 1
table:
  source: {csv: people.csv}
  columns:
    Age: {role: quasi-identifier, kind: numeric}
    Gender: {role: quasi-identifier, kind: categorical}
    weight: {role: weight}
steps:
  - anonymize: {algorithm: mondrian, k: 3}
"""


def test_a_reviewer_sees_who_stands_alone_before_anything_is_done(
    page: Any, serve: Any, flow: Callable[..., str], tmp_path: Path
) -> None:
    served = serve(flow())
    page.goto(served.url)
    ready(page)
    step(page, "Risk")
    assert page.url.endswith("?screen=risk")
    page.get_by_text("Unique for somebody who knows").first.wait_for()
    page.get_by_text("The riskiest records").first.wait_for()
    assert page.locator(".af-risk-riskiest mark").count() > 0
    # other sizes of sets, and larger ones
    page.get_by_role("button", name="1 column", exact=True).click()
    page.wait_for_function(
        """() => { const seen = []; const walk = (root) => { for (const node of root.querySelectorAll('*')) {
        if (node.matches('g title')) seen.push(node.textContent); if (node.shadowRoot) walk(node.shadowRoot); } };
        walk(document); return seen.length === 4; }"""
    )
    page.get_by_label("Look at every combination of").select_option(label="up to 4 columns: 15 sets")
    page.get_by_role("button", name="4 columns", exact=True).wait_for()
    # the population, once the sampling fraction is there
    page.get_by_label("Sampling fraction, if it is a sample").fill("0.05")
    page.keyboard.press("Enter")
    page.get_by_text("people in the population").first.wait_for()
    page.get_by_text("if the model holds").first.wait_for()
    # a register of the population, which the attackers of a release have, too
    register = tmp_path / "voters.csv"
    people = datasets.census_like(600, seed=3)[["Age", "Gender", "Education", "Marital"]]
    people.to_csv(register, index=False)
    page.locator("input[type=file]").last.set_input_files(register)
    page.get_by_text("people in the register").first.wait_for()
    page.get_by_role("button", name="Remove the register").wait_for()
    shot(page, "risk-light", full_page=True)
    # a page that is loaded anew shows the same screen
    page.reload()
    ready(page)
    page.get_by_text("Unique for somebody who knows").first.wait_for()
    assert page.errors == []
    assert outside(page.requested) == []


def test_a_question_of_ones_own_and_the_report_with_its_fields(
    page: Any, serve: Any, flow: Callable[..., str], tmp_path: Path
) -> None:
    served = serve(flow())
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    run_all(page, "Done: 4 runs")
    page.get_by_label("Measure", exact=True).select_option(label="question")
    page.get_by_label("Condition: column").wait_for()
    for end, age in (("from", "30"), ("to", "39")):
        page.get_by_label(end, exact=True).first.fill(age)
        page.keyboard.press("Enter")
    press(page, ".af-measure", lambda: page.get_by_text("Measured: 4 of 4").first.wait_for(timeout=60_000))
    page.get_by_text("question: where Age 30 to 39").first.wait_for()
    page.get_by_text("truth").first.wait_for()
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=60_000))
    page.get_by_label("Why the data are released").fill("research on wages")
    page.keyboard.press("Tab")
    ready(page)
    with page.expect_download() as waiting:
        page.locator(".af-review-html a, .af-review-html button").first.click()
    target = tmp_path / "review.html"
    waiting.value.save_as(target)
    assert "research on wages</td>" in target.read_text(encoding="utf-8")
    press(page, ".af-print", lambda: page.locator(".af-review-pdf").first.wait_for(timeout=60_000))
    with page.expect_download() as waiting:
        page.locator(".af-review-pdf a, .af-review-pdf button").first.click()
    printed = tmp_path / "review.pdf"
    waiting.value.save_as(printed)
    assert printed.read_bytes().startswith(b"%PDF")
    shot(page, "review-light", full_page=True)
    assert page.errors == []
    assert outside(page.requested) == []


def test_weights_that_cannot_be_used_are_a_red_sentence_with_what_to_do(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    people = datasets.census_like(60, seed=3)[["Age", "Gender"]]
    people.assign(weight=0.5).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.yaml").write_text(WEIGHTED, encoding="utf-8")
    page.goto(serve().url)
    ready(page)
    page.get_by_text("Your own file", exact=True).click()
    page.locator("input[type=file]").first.set_input_files(
        [tmp_path / "people.yaml", tmp_path / "people.csv"]
    )
    page.get_by_text("60 records").first.wait_for()
    ready(page)
    step(page, "Risk")
    alert = page.get_by_role("alert").filter(has_text="60 weights are below 1", visible=True)
    alert.wait_for()
    assert "the number of people that the record stands for" in alert.inner_text()
    assert alert.evaluate("node => getComputedStyle(node).backgroundColor") != "rgba(0, 0, 0, 0)"
