"""Data and Protect in a real browser: upload, roles in the table, k by keyboard, trees and patterns clicked."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="browsers are for developers")
from playwright.sync_api import Error, expect

from tests.browser.conftest import outside, ready, shot, upload
from tests.browser.steps import fits, in_light_and_dark, step

CITIES = ["Athens", "Volos", "Patras", "Chania", "<img src=x onerror=document.title='owned'>"]


def people(path: Path, rows: int = 600) -> Path:
    rng = random.Random(5)
    lines = ['id,age,city,"<b>zip</b>",income']
    lines += [
        f"{i},{rng.randint(18, 77)},{rng.choice(CITIES)},{rng.randint(10400, 10440)},"
        f"{('poor', 'modest', 'rich')[i % 3]}"
        for i in range(rows)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def open_people(page: Any, serve: Callable[..., Any], folder: Path) -> None:
    page.goto(serve().url)
    ready(page)
    upload(page, people(folder / "people.csv"))
    page.get_by_text("are unique on these quasi-identifiers").wait_for()


def cell(page: Any, table: str, row: int, field: str) -> Any:
    return page.locator(f"{table} .tabulator-row").nth(row).locator(f"[tabulator-field='{field}']")


def choose(page: Any, row: int, field: str, word: str) -> None:
    """Click a cell of the table of columns, and a word of the list that opens."""
    at = cell(page, ".af-columns", row, field)
    for last in (False, False, True):  # the table may be drawn anew in between
        try:
            at.scroll_into_view_if_needed(timeout=10_000)
            at.click(timeout=10_000)
            page.locator(".tabulator-edit-list-item", has_text=word).first.click(timeout=10_000)
            break
        except Error:
            if last:
                raise
    ready(page)


def test_a_file_is_uploaded_and_its_roles_are_chosen_in_the_table(
    page: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    open_people(page, serve, tmp_path)
    ready(page)
    assert cell(page, ".af-columns", 1, "kind").inner_text() == "numeric"
    assert cell(page, ".af-columns", 4, "role").inner_text() == "sensitive"
    unique = page.get_by_text("are unique on these quasi-identifiers")
    before = unique.inner_text()
    choose(page, 3, "role", "insensitive")
    assert cell(page, ".af-columns", 3, "role").inner_text() == "insensitive"
    expect(unique).not_to_have_text(before)
    page.get_by_role("button", name="Undo").click()
    expect(cell(page, ".af-columns", 3, "role")).to_have_text("quasi-identifier")
    expect(unique).to_have_text(before)
    # names and values of the file are text, whatever they look like
    assert page.title() != "owned"
    assert page.get_by_text("<b>zip</b>", exact=True).count() >= 2
    shot(page, "data-light", full_page=True)
    assert not page.errors, page.errors
    assert outside(page.requested) == []


def test_uploads_that_are_no_table_are_refused_in_words(
    page: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    page.goto(serve("--max-upload-mb", "1").url)
    ready(page)
    page.get_by_text("Your own file", exact=True).click()
    files = {
        "broken.parquet": b"PAR1" + b"x" * 400,
        "binary.csv": bytes(range(256)) * 8,
        "bomb.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 400_000),
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        page.locator("input[type=file]").first.set_input_files(path)
        text = page.locator(".af-bad p", has_text="Not opened").filter(
            has_text=name.partition(".")[0] if name != "bomb.csv.gz" else "at most"
        )
        text.first.wait_for()
    large = people(tmp_path / "large.csv", rows=60_000)
    page.locator("input[type=file]").first.set_input_files(large)
    page.get_by_text("File is too large", exact=True).wait_for()
    shot(page, "data-oversize")
    assert page.get_by_text("no table yet").count() == 1
    path = people(tmp_path / "small.csv")
    page.locator("input[type=file]").first.set_input_files(path)
    page.get_by_text("are unique on these quasi-identifiers").wait_for()


def test_rows_that_come_before_a_table_is_built_are_shown(page: Any, serve: Callable[..., Any]) -> None:
    page.goto(serve().url)
    ready(page)
    shown = page.evaluate("""() => new Promise((done) => {
      const place = document.createElement("div");
      document.body.append(place);
      const table = new Tabulator(place, { columns: [{ field: "before" }], data: [{ before: "old" }] });
      // as Panel does, before the task in which the table is built
      table.setColumns([{ field: "after" }]);
      table.setData([{ after: "new" }]).then(() => {
        const text = place.querySelector(".tabulator-table").textContent;
        place.remove();
        done(text);
      });
      table.redraw(true);
    })""")
    assert shown.strip() == "new"
    assert page.errors == []


def test_protect_by_mouse_and_keyboard(page: Any, serve: Callable[..., Any], tmp_path: Path) -> None:
    open_people(page, serve, tmp_path)
    step(page, "Protect")
    page.get_by_text("Ready to run").wait_for()
    ready(page)

    # k by keyboard, with its count
    handle = page.locator(".af-k .noUi-handle")
    handle.focus()
    for _ in range(3):
        handle.press("ArrowRight")
    page.get_by_text("fewer than 12 others").wait_for()
    page.locator("nav li button", has_text="k = 13").wait_for()

    # nothing sticks out of a method's box
    assert (
        page.locator("[data-key=greedy]").evaluate(
            """one => [...one.getRootNode().querySelectorAll(".method")].filter(
               box => box.scrollWidth > box.clientWidth + 1).map(box => box.dataset.key)"""
        )
        == []
    )

    # methods by mouse and by keyboard
    page.locator("[data-key=mondrian]").click()
    page.locator("nav li button", has_text="2 methods").wait_for()
    page.locator("[data-key=mondrian]").press("ArrowDown")
    page.keyboard.press("Space")
    page.locator("nav li button", has_text="3 methods").wait_for()

    # a tree, and a boundary on it
    page.get_by_text("Hierarchies", exact=True).click()
    page.locator(".tree svg").wait_for()
    ready(page)
    page.locator(".tree .node:not(.leaf)").nth(1).click()
    page.locator(".tree .node.limit").wait_for()
    page.get_by_text("Limits:").wait_for()
    # white words: their box is not as pale as in a notebook, which has no style sheet
    box = page.locator(".tree .node.limit rect")
    assert box.evaluate("box => getComputedStyle(box).fillOpacity") == "1"
    shot(page, "protect-tree-light", full_page=True)
    page.locator(".tree .node.limit").press("Enter")
    page.locator(".tree .node.limit").wait_for(state="detached")

    # the pattern grid
    page.get_by_text("Patterns", exact=True).click()
    page.get_by_text("A list of my own", exact=True).click()
    page.locator(".grid .cell").first.wait_for()
    ready(page)
    first = page.locator(".grid .cell").first
    was = first.get_attribute("aria-pressed")
    first.click()
    other = {"true": "false", "false": "true"}[was]
    expect(first).to_have_attribute("aria-pressed", other)

    # diversity that the table does not have
    page.get_by_text("Diversity", exact=True).click()
    page.locator("select").filter(has_text="recursive-l-diversity").select_option("p-sensitivity")
    field = page.get_by_label("p: distinct values")
    field.fill("9")
    field.press("Enter")
    page.get_by_text("the largest feasible p is 3").first.wait_for()
    page.get_by_text("This cannot run yet").wait_for()
    shot(page, "protect-diversity-light", full_page=True)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Ready to run").wait_for()

    # nothing is wider than a tablet or a window, in the light or the dark
    for scheme in in_light_and_dark(page):
        for tab in ("Methods", "Hierarchies", "Patterns", "Diversity", "Limits and weights"):
            page.get_by_text(tab, exact=True).click()
            fits(page, f"protect-{tab.split()[0].lower()}-{scheme}")
    assert not page.errors, page.errors
    assert outside(page.requested) == []


def test_an_open_editor_outlives_rows_that_change(
    page: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    page.goto(serve().url)
    ready(page)
    upload(page, people(tmp_path / "people.csv"))
    unique = page.get_by_text("are unique on these quasi-identifiers")
    before = unique.inner_text()
    choose(page, 3, "role", "insensitive")
    expect(unique).not_to_have_text(before)
    cell(page, ".af-columns", 1, "codes").click()
    page.keyboard.type("NA, ref")
    # what a slow answer to the choice before would do: rows and their colours change while somebody types
    page.get_by_role("button", name="Undo").evaluate("button => button.click()")
    expect(unique).to_have_text(before)
    ready(page)
    editor = cell(page, ".af-columns", 1, "codes").locator("input")
    expect(editor).to_have_value("NA, ref")
    expect(editor).to_be_focused()
    page.keyboard.type("used")
    page.keyboard.press("Enter")
    expect(cell(page, ".af-columns", 1, "codes")).to_have_text("NA, refused")
    expect(cell(page, ".af-columns", 3, "role")).to_have_text("quasi-identifier")
    assert not page.errors, page.errors
