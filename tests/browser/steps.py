"""Steps that several tests take on the screens: a screen, a button, a run, an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from anonflow.dashboards.publish.screen import AGREE
from anonflow.dashboards.session.screen_words import CONFIRM
from tests.browser.conftest import ready, shot

STEPS = ["Data", "Prepare", "Risk", "Protect", "Compare", "Explore", "Publish"]

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""Of axe."""

COLOURS = ["color-contrast", "link-in-text-block"]
"""What may differ between a light page and the same in the dark."""

ALL = """
  const all = (root) => [...root.querySelectorAll("*")].flatMap((node) => [node, ...(node.shadowRoot ? all(node.shadowRoot) : [])]);
"""
"""Every part of a page, those below shadow roots too."""

CUT = (
    "() => {"
    + ALL
    + """
  const seen = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility !== "hidden";
  const cut = [];
  for (const node of all(document)) {
    if (!seen(node)) continue;
    if (node.tagName === "text" && node.ownerSVGElement && node.ownerSVGElement.getAttribute("role") === "img") {
      const own = node.getBoundingClientRect(), whole = node.ownerSVGElement.getBoundingClientRect();
      if (own.left < whole.left - 2 || own.right > whole.right + 2 || own.top < whole.top - 2 || own.bottom > whole.bottom + 2)
        cut.push("picture: " + node.textContent);
    }
    if (node.matches(".tabulator-cell[tabulator-field=column]") && node.scrollWidth > node.clientWidth + 1)
      cut.push("cell: " + node.textContent);
    if (node.tagName === "LABEL" && node.textContent.trim() && node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0)
      cut.push("label: " + node.textContent);
    if (node.matches("table.facts td") && node.textContent.length > 40 && node.getBoundingClientRect().width < 150)
      cut.push("narrow: " + node.textContent);
    if (node.matches(".bars .track") && node.getBoundingClientRect().width < 60) cut.push("a bar without length");
  }
  const words = all(document).filter((node) => node.tagName === "LABEL" && seen(node) && node.textContent.trim()).map((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [node, range.getBoundingClientRect()];
  });
  for (const [left, a] of words)
    for (const [right, b] of words)
      if (left !== right && a.left < b.left && a.right > b.left + 1 && a.bottom > b.top + 3 && b.bottom > a.top + 3)
        cut.push("labels run into each other: " + left.textContent + ", " + right.textContent);
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 2) cut.push("the page is wider than its window");
  return [...new Set(cut)];
}"""
)
"""What of the page is cut off, or has no room."""

SCROLLED = (
    "() => {"
    + ALL
    + """
  const named = (node) => node.hasAttribute("aria-label") && !node.dataset.wider;
  return all(document).filter((node) => node.matches(".scroll") && node.getClientRects().length > 0 && !named(node))
    .map((node) => [node.scrollWidth > node.clientWidth, node.tabIndex === 0]);
}"""
)
"""Of each part that may be scrolled and has no name of its own: whether it is wider than its place, and whether keys stop at it."""


def step(page: Any, name: str) -> None:
    """Choose a screen, Protect with all its settings and Publish with the roles confirmed: the page marks it at once, and the server draws it and then the buttons below it."""
    page.locator("nav li button", has_text=name).click()
    page.locator("nav li button[aria-current=step]", has_text=name).wait_for()
    below = STEPS.index(name) + 1
    if below < len(STEPS):
        page.locator(".af-next button", has_text=STEPS[below]).wait_for()
    else:
        page.locator(".af-back button", has_text=STEPS[-2]).wait_for()
    ready(page)
    confirm = page.get_by_role("button", name=CONFIRM).filter(visible=True)
    if name == "Publish" and confirm.count():
        confirm.first.click()
        confirm.wait_for(state="detached")
        ready(page)
    if name == "Protect" and not page.get_by_text("How it is protected").is_visible():
        page.locator(".af-unfold button").click()
        page.get_by_text("How it is protected").wait_for()
        ready(page)


SERVED_IN = """theme => document.documentElement.dataset.theme === theme && (theme === "dark") ===
  [...Bokeh.documents[0].all_models].some(model => model.css_classes && model.css_classes.includes("af-dark"))"""
"""The page is light or dark, and so is what the server has drawn anew, such as figures and the buttons beside them."""


def turn(page: Any, scheme: str) -> None:
    """Make a dark page light, or a light page dark, by its own button."""
    page.get_by_role("button", name="Dark mode").click()
    page.wait_for_function(SERVED_IN, arg=scheme)
    ready(page)


def in_light_and_dark(page: Any) -> Iterator[str]:
    """The page as it is, light or dark, then the same in the other colours, by its own button; it keeps them."""
    scheme = page.evaluate("document.documentElement.dataset.theme")
    yield scheme
    other = "light" if scheme == "dark" else "dark"
    turn(page, other)
    yield other


def fits(page: Any, name: str) -> None:
    """The screen is neither wider than a tablet nor than a window; a picture of it is kept."""
    for width, height in ((820, 1180), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        ready(page)
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 1, (name, width, wider)
    shot(page, name, full_page=True)


def seen(page: Any, text: str) -> Any:
    """Return the first place where a text can be seen: screens that were left may have it, too, and are hidden."""
    return page.get_by_text(text).filter(visible=True).first


def question(page: Any) -> str:
    """Return what the page asks before it goes on: the text of a dialog, or of an agreement that is not ticked; else nothing."""
    dialogs = page.locator("[role=dialog], [role=alertdialog], dialog[open]")
    agreement = page.get_by_role("checkbox", name=AGREE, checked=False)
    if dialogs.filter(visible=True).count():
        return str(dialogs.filter(visible=True).first.inner_text())
    return AGREE if agreement.filter(visible=True).count() else ""


def press(page: Any, css: str, until: Callable[[], Any]) -> None:
    """Click a button until it was heard: one that comes while the layout moves may be lost. Fail where the page asks something."""
    for _ in range(5):
        try:
            page.locator(f"{css} button").first.click(timeout=10_000)
        except Exception:  # one that was heard late is disabled by now
            text = question(page)
            assert not text, f"{css}: the page asks: {text}"
        try:
            until()
        except Exception:
            continue
        return
    until()


def run_all(page: Any, text: str) -> None:
    """Press Run, and wait for the end."""
    heard = page.locator(".af-progress progress").or_(page.get_by_text(text)).first
    press(page, ".af-run", lambda: heard.wait_for(timeout=10_000))
    seen(page, text).wait_for()


def wait_in_page(page: Any, milliseconds: int) -> None:
    """Wait by the page's own clock, for what the page does now and then: a page that stands still does nothing."""
    page.evaluate("wait => new Promise(done => setTimeout(done, wait))", milliseconds)


def audit(page: Any, axe: str, where: str, *, colours: bool = False) -> list[str]:
    """What axe finds on a page; of a page that was audited in other colours, in its colours alone."""
    if not colours:
        wait_in_page(page, 600)  # names are given while the page is idle, four times a second
    if page.evaluate("window.axe === undefined"):
        page.evaluate(axe)
    rules = {"type": "rule", "values": COLOURS} if colours else {"type": "tag", "values": RULES}
    # of what axe hands back, the rules that hold are megabytes; of what it loads before, only a rule that is not among them reads the styles
    violations = page.evaluate(
        "async rules => (await axe.run(document, { runOnly: rules, preload: { assets: ['media'] } })).violations",
        rules,
    )
    return [
        f"{where}: {item['id']}: {node['html'][:160]}: {node['failureSummary']}"
        for item in violations
        for node in item["nodes"][:3]
    ]
