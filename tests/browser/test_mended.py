"""What hurt once: the keyboard alone, files dropped together, the dark, a page that is left, a project in another session."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("playwright", reason="browsers are for developers")
from playwright.sync_api import TimeoutError

from anonflow.dashboards.session.screen_words import CONFIRM
from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import press, run_all, seen, step

ACTIVE = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  if (!at) return { tag: "", text: "", css: "" };
  const text = at.innerText || at.textContent || at.value || "";
  return { tag: at.tagName, text: text.trim().replace(/\\s+/g, " "), css: String(at.className && at.className.baseVal === undefined ? at.className : "") };
}"""
"""What has the keyboard, through all shadow roots."""


def people(path: Path, rows: int = 80) -> Path:
    rng = random.Random(5)
    lines = ["age,city,income"]
    lines += [
        f"{rng.randint(20, 49)},{rng.choice(['Athens', 'Volos', 'Patras'])},{('low', 'high')[i % 2]}"
        for i in range(rows)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class NeverReached(AssertionError):
    """The keyboard never came to something."""


def tab_to(page: Any, wanted: str, most: int = 200) -> None:
    """Press the tabulator key until what has the keyboard says `wanted`, or has it as a class."""
    for _ in range(most):
        page.keyboard.press("Tab")
        at = page.evaluate(ACTIVE)
        if wanted in at["text"][:80] or wanted in at["css"].split():
            return
    raise NeverReached(wanted)


def enter(page: Any, wanted: str, until: Callable[[], Any], button: bool = False) -> None:
    """Tab to something and press Enter until it was heard: a key that comes while the layout moves may be lost, and what is wanted may come late."""
    for left in (2, 1, 0):
        ready(page)
        try:
            tab_to(page, wanted)
            while button and (page.evaluate(ACTIVE)["tag"], page.evaluate(ACTIVE)["text"]) != (
                "BUTTON",
                wanted,
            ):
                tab_to(page, wanted)
            until()
        except (TimeoutError, NeverReached):
            assert left, f"no key is heard by {wanted!r}"
            page.wait_for_timeout(1_000)
            continue
        return


def test_from_file_to_release_by_keyboard_alone(page: Any, serve: Callable[..., Any], tmp_path: Path) -> None:
    def appears(locator: Any, seconds: int = 60) -> Callable[[], None]:
        def until() -> None:
            page.keyboard.press("Enter")
            locator.wait_for(timeout=1000 * seconds)

        return until

    def chosen() -> None:
        with page.expect_file_chooser(timeout=30_000) as waiting:
            page.keyboard.press("Enter")
        waiting.value.set_files(people(tmp_path / "people.csv"))

    def saved() -> None:
        with page.expect_download(timeout=60_000) as got:
            page.keyboard.press("Enter")
        got.value.save_as(tmp_path / "release.csv")

    def step_named(name: str) -> Any:
        return page.locator("nav li button[aria-current=step]", has_text=name)

    page.goto(serve().url)
    enter(page, "Your own file", appears(page.get_by_text("The first line of a CSV file")))
    enter(page, "filepond--label-action", chosen)
    page.get_by_text("are unique on these quasi-identifiers").wait_for()
    confirm = page.get_by_role("button", name=CONFIRM).filter(visible=True)
    confirm.first.wait_for()  # it may come after the words, and no key reaches it before

    def confirmed() -> None:
        page.keyboard.press("Enter")
        confirm.first.wait_for(state="hidden", timeout=60_000)

    ready(page)
    # an editor that is left edits nothing: else the table would be drawn anew, and the keyboard never get out of it
    tab_to(page, CONFIRM, 60)
    assert page.locator(".af-columns .tabulator-row").first.inner_text().split("\n")[2] == "everybody?"
    enter(page, CONFIRM, confirmed)
    enter(page, "Compare", appears(step_named("Compare")))
    enter(page, "Run", appears(page.get_by_text("Done: 1 run").first), button=True)
    enter(page, "Publish", appears(step_named("Publish")))
    page.get_by_role("button", name="Draw the release", disabled=False).wait_for()
    enter(page, "Draw the release", appears(seen(page, "Every check passed"), 90))
    enter(page, "Release, CSV", saved)
    assert len(pd.read_csv(tmp_path / "release.csv", dtype=str)) == 80
    assert not page.errors, page.errors
    assert outside(page.requested) == []


LIGHT = """css => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const found = all(document).find((one) => one.matches(css));
  const parts = getComputedStyle(found).backgroundColor.match(/[\\d.]+/g).map(Number);
  return (parts[0] + parts[1] + parts[2]) / 3;
}"""
"""How light the background of something is, 0 to 255."""


def test_files_together_the_dark_and_what_is_left(
    new_page: Callable[..., Any], serve: Callable[..., Any], tmp_path: Path
) -> None:
    page = new_page(viewport={"width": 1000, "height": 700}, color_scheme="dark",
                    permissions=["clipboard-read", "clipboard-write"])  # fmt: skip
    page.goto(serve().url)
    ready(page)
    flashes = page.evaluate("""() => {
      window.flashes = [];
      const text = (root) => [...root.childNodes].map((one) => one.nodeType === 3 ? one.data : text(one.shadowRoot || one)).join(" ");
      const look = () => {
        const shown = text(document.body);
        for (const bad of ["0 methods"]) if (shown.includes(bad)) window.flashes.push(bad);
        requestAnimationFrame(look);
      };
      look();
    }""")
    assert flashes is None
    # the table and a hierarchy of it, in one go
    tree = tmp_path / "hierarchy_city.csv"
    tree.write_text("Athens;South;*\nPatras;South;*\nVolos;North;*\n", encoding="utf-8")
    table = people(tmp_path / "people.csv")
    page.get_by_text("Your own file", exact=True).click()
    page.locator("input[type=file]").first.set_input_files([tree, table])
    page.get_by_text("1 hierarchy was attached: city").wait_for()
    ready(page)
    # a file that is none: red, and what is still open
    wrong = tmp_path / "picture.csv"
    wrong.write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 200)
    page.locator("input[type=file]").first.set_input_files(wrong)
    red = page.locator(".af-bad p", has_text="a picture (PNG)")
    red.wait_for()
    assert "people.csv is still open" in red.inner_text()
    assert page.locator(".said .table").inner_text() == "people.csv"
    # read as something else, it is read again without being sent again
    page.get_by_role("button", name="Open another table").click()
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"age,town\n" + b"".join(f"{i},Gen\xe8ve\n".encode("latin-1") for i in range(20, 60)))
    page.get_by_role("button", name="How the CSV file is written").click()
    page.get_by_label("Encoding").fill("utf-8")
    page.get_by_label("Encoding").press("Enter")
    page.locator("input[type=file]").first.set_input_files(latin)
    page.locator(".af-bad p", has_text="latin.csv").wait_for()
    page.get_by_label("Encoding").fill("latin-1")
    page.get_by_label("Encoding").press("Enter")
    page.get_by_role("button", name="Read the file again").click()
    page.get_by_text("40 records, 2 columns").first.wait_for()
    page.locator("input[type=file]").first.set_input_files([table])
    page.get_by_text("80 records, 3 columns").first.wait_for()
    assert page.evaluate("window.flashes") == []
    ready(page)  # until then the rows of the second file may take the place of the first file's
    # in the dark, the list that a cell opens is dark, too
    cell = page.locator(".af-columns .tabulator-row").nth(1).locator("[tabulator-field='role']")
    cell.scroll_into_view_if_needed()
    cell.click()
    page.locator(".tabulator-edit-list-item").first.wait_for()
    shot(page, "popup-dark")
    assert page.evaluate(LIGHT, ".tabulator-edit-list") < 100
    page.keyboard.press("Escape")
    # several columns at once
    for row in (0, 1):
        page.locator(".af-columns .tabulator-row").nth(row).locator("input[type=checkbox]").click()
    page.locator("select").filter(has_text="not published").last.select_option("insensitive")
    page.get_by_text("No column is a quasi-identifier yet").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("are unique on these quasi-identifiers").wait_for()
    step(page, "Compare")
    run_all(page, "Done: 1 run")
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=60_000))
    press(page, ".af-link", lambda: page.get_by_role("button", name="Copied").wait_for(timeout=5_000))
    assert page.evaluate("navigator.clipboard.readText()").startswith(served_address(page))
    # the project goes on in another session
    step(page, "Data")
    with page.expect_download() as got:
        page.locator(".af-save a, .af-save button").first.click()
    project = tmp_path / got.value.suggested_filename
    got.value.save_as(project)
    other = new_page()
    other.goto(serve().url)
    ready(other)
    other.get_by_text("A flow or project", exact=True).click()
    other.locator("input[type=file]").first.set_input_files(project)
    other.get_by_text("waits for its table").wait_for()
    other.get_by_text("Your own file", exact=True).click()
    other.locator("input[type=file]").first.set_input_files(table)
    other.locator("nav li button", has_text="Compare").get_by_text("1 run").wait_for()
    assert page.errors == []
    assert other.errors == []


def served_address(page: Any) -> str:
    return str(page.url).split("?")[0]


def test_a_page_that_would_lose_something_says_so(
    new_page: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    page = new_page()
    page.goto(serve("--keep", "0").url)
    ready(page)
    messages: list[str] = []
    page.on("dialog", lambda dialog: (messages.append(dialog.type), dialog.accept()))
    page.reload()  # nothing is open: nothing is lost
    ready(page)
    assert messages == []
    page.get_by_role("button", name="Open this table").click()
    page.get_by_text("are unique on these quasi-identifiers").wait_for()
    ready(page)
    page.reload()
    ready(page)
    assert messages == ["beforeunload"]


EARLY = """async () => {
  const get = (name) => Bokeh.Models.get(name), make = (name, set = {}) => new (get(name))(set), parent = [...Bokeh.index.roots][0];
  const source = () => make("ColumnDataSource", { data: { x: [1] } });
  const kinds = {
    "panel.models.layout.Column": { children: [make("Div")] }, "panel.models.layout.Card": { children: [make("Div"), make("Div")] },
    "Row": { children: [make("Div")] }, "panel.models.tabs.Tabs": { tabs: [make("TabPanel", { title: "first", child: make("Div") })] },
    "panel.models.widgets.Button": {}, "panel.models.widgets.CustomSelect": { options: ["a", "b"], value: "a" }, "Select": { options: ["a"] },
    "panel.models.widgets.TextInput": {}, "TextAreaInput": {}, "PasswordInput": {}, "Checkbox": {}, "CheckboxGroup": { labels: ["a"] },
    "panel.models.widgets.RadioButtonGroup": { labels: ["a"] }, "RadioGroup": { labels: ["a"] }, "MultiChoice": { options: ["a"] },
    "Slider": { start: 0, end: 2, value: 1 }, "RangeSlider": { start: 0, end: 2, value: [0, 1] }, "Spinner": {}, "AutocompleteInput": {},
    "FileInput": {}, "panel.models.file_dropper.FileDropper": {}, "panel.models.widgets.FileDownload": {}, "panel.models.markup.HTML": {},
    "panel.models.widgets.Progress": {}, "Progress": {}, "Switch": {}, "Toggle": {}, "DatePicker": {}, "Figure": {},
    "panel.models.tabulator.DataTabulator": { source: source(), columns: [make("TableColumn", { field: "x" })] },
  };
  const errors = [];
  for (const [name, set] of Object.entries(kinds)) {
    const model = make(name, set), view = new model.default_view({ model, parent });
    let heard = 0;
    const change = (when) => {
      for (const property of model) {
        if (property.attr === "download" || property.attr.startsWith("_")) continue;  // files for the person
        try { property.change.emit(); } catch (error) { errors.push(`${name}, ${property.attr} ${when}: ${error.message}`); }
      }
    };
    view.initialize();
    await view.lazy_initialize();
    view.connect_signals();
    view.on_change(model.properties.name, () => { heard += 1; });
    change("before it is drawn");
    change("once more");
    if (heard !== 0) errors.push(`${name} hears before it is drawn`);
    view.render();
    view.r_after_render();
    do await new Promise((done) => setTimeout(done)); while (view.unheard || view.tabulator?.initialized === false);
    await null;
    if (heard !== 2) errors.push(`${name} heard ${heard} of 2 changes when it was drawn`);
    change("when it is drawn");
    if (heard !== 3) errors.push(`${name} does not hear at once when it is drawn`);
    view.remove();
  }
  return errors;
}"""
"""Make a view of each kind as Bokeh does, tell it of changes before it is drawn, and draw it: what went wrong."""


def test_no_part_hears_of_a_change_before_it_is_drawn(page: Any, serve: Callable[..., Any]) -> None:
    """Views listen before they are drawn: where parts beside them came late, a change failed in them, and the page stood still."""
    page.goto(serve().url)
    ready(page)
    assert page.evaluate(EARLY) == []
    assert page.errors == []


LATE_PART = """async () => {
  const make = (name, set = {}) => new (Bokeh.Models.get(name))(set), parent = [...Bokeh.index.roots][0];
  const views = [], model = make("panel.models.layout.Column"), column = new model.default_view({ model, parent });
  const idle = async () => { for (let task = 0; task < 5; task += 1) await new Promise((done) => setTimeout(done)); };
  let goOn;
  const late = new Promise((done) => { goOn = done; });
  const part = (until) => {
    const input = make("panel.models.widgets.TextInput"), shown = input.default_view;
    input.default_view = class extends shown {
      async lazy_initialize() { await super.lazy_initialize(); views.push(this); await until; }
    };
    return input;
  };
  column.initialize();
  await column.lazy_initialize();
  column.connect_signals();
  column.render();
  column.r_after_render();
  const [gone, first, second, third] = [part(), part(late), part(), part()];
  model.children = [gone, first, second];
  await idle();
  model.children = [first, second, third];
  model.children = [third, second, first];
  await idle();
  second.disabled = true;
  goOn();
  await idle();
  const order = [...column.shadow_el.children], places = column.child_views.map((view) => order.indexOf(view.el));
  const seen = [views.length, views.filter((view) => !view.is_destroyed).length, places, column.child_views.map((view) => view.model.disabled)];
  column.remove();
  return seen;
}"""
"""Change the parts of a column while a part is made: the views made, those that listen at the end, where they stand, and which are disabled."""


def test_parts_that_change_while_one_is_made_have_one_view_each(page: Any, serve: Callable[..., Any]) -> None:
    """Changes that overlapped made a view each of the same part; those that were never drawn listened for ever."""
    page.goto(serve().url)
    ready(page)
    views, listening, places, disabled = page.evaluate(LATE_PART)
    assert (views, listening) == (4, 3)
    assert places == sorted(places)
    assert -1 not in places
    assert disabled == [False, True, False]
    assert page.errors == []
