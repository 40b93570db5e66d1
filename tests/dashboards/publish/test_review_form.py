"""The reviewer's report with what people fill in: kept with the project, shown in the page, printed anew when it changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.publish import review_form
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.publish.review_form import NO_BROWSER, ReviewForm
from anonflow.dashboards.session.files.folders import SessionFolders
from anonflow.dashboards.session.review import LONGEST_FIELD
from anonflow.dashboards.session.workspace import Workspace
from anonflow.engine.report.reviewer import FIELDS, filled_in
from anonflow.errors import DataError, FlowError, ParameterError

WAIT = 300.0


@pytest.fixture(scope="module")
def form() -> Iterator[ReviewForm]:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([12])
    workspace.start()
    workspace.wait(WAIT)
    yield ReviewForm(PublishModel(workspace))
    workspace.close()


def test_every_field_is_once_in_the_page_and_what_was_written_is_escaped() -> None:
    page = "".join(f'<td data-field="{key}">&nbsp;</td>' for key in FIELDS)
    texts = {key: f"<b>{key}</b>\n& more" for key in FIELDS} | {"unknown": "x"}
    filled = filled_in(page, texts)
    for key in FIELDS:
        assert f'data-field="{key}">&lt;b&gt;{key}&lt;/b&gt;<br>&amp; more</td>' in filled
    assert "&nbsp;" not in filled
    assert filled_in(page, {"purpose": "  "}) == page
    # a text that looks like a field is none
    trap = 'data-field="remarks">&nbsp;<'
    assert filled_in(page, {"purpose": trap}).count(trap) == 1


def test_the_page_has_what_was_filled_in(form: ReviewForm, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = form.workspace
    assert form.page() == ""
    form.fields["purpose"].value = "research on <wages>"
    form.fields["reviewer-name"].value = "Ada"
    assert workspace.review.fields == {"purpose": "research on <wages>", "reviewer-name": "Ada"}
    form.model.draw()
    form.model.background.wait(WAIT)
    assert form.model.publication.ok
    page = form.page()
    for key in FIELDS:
        assert page.count(f'data-field="{key}"') == 1, key
    assert 'data-field="purpose">research on &lt;wages&gt;</td>' in page
    assert 'data-field="reviewer-name">Ada</td>' in page
    assert 'data-field="remarks">&nbsp;</td>' in page
    assert form.page_file.filename.endswith("review.html")
    assert form.page_file.callback().read().decode() == page
    # the PDF is of the page as it is now
    monkeypatch.setattr(review_form, "browser", lambda: "a browser")
    monkeypatch.setattr(review_form, "printed", lambda text: b"%PDF " + text.encode())
    form._show()
    form.print.clicks += 1
    form.background.wait(WAIT)
    assert form.pdf == b"%PDF " + page.encode()
    assert form.pdf_file.visible
    assert form.pdf_file.filename.endswith("review.pdf")
    form.fields["remarks"].value = "none"
    assert form.pdf == b""
    assert not form.pdf_file.visible
    form.fields["remarks"].value = ""
    assert "remarks" not in workspace.review.fields

    def fails(text: str) -> bytes:
        raise DataError("the browser printed nothing")

    monkeypatch.setattr(review_form, "printed", fails)
    form.print.clicks += 1
    form.background.wait(WAIT)
    assert "printed nothing" in form.status.object

    def none() -> str:
        raise FlowError("no browser")

    monkeypatch.setattr(review_form, "browser", none)
    form.problem = ""
    assert form.print.disabled
    assert NO_BROWSER in form.status.object


def test_what_was_filled_in_is_in_the_project_and_not_in_another_table(
    form: ReviewForm, tmp_path: Path
) -> None:
    form.fields["source"].value = "survey of 2025"
    path = tmp_path / "saved.anonflow.zip"
    path.write_bytes(form.workspace.save_project())
    other = Workspace()
    try:
        other.opener.read_project_file(path)()
        assert other.review.fields["source"] == "survey of 2025"
        again = ReviewForm(PublishModel(other))
        assert again.fields["source"].value == "survey of 2025"
        other.opener.open_dataset("census_like", n=60, seed=3)
        assert other.review.fields == {}
        assert again.fields["source"].value == ""
        with pytest.raises(ParameterError, match="no such field"):
            other.review.fill_in("evil", "x")
        with pytest.raises(ParameterError, match="at most"):
            other.review.fill_in("purpose", "x" * (LONGEST_FIELD + 1))
    finally:
        other.close()


def test_a_server_that_was_lost_left_it(tmp_path: Path) -> None:
    home = tmp_path / "sessions"
    folders = SessionFolders(home=home)
    place = folders.begin("key")
    workspace = Workspace(place=place)
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    workspace.review.fill_in("purpose", "research")
    os.close(place._lock)  # as if the process were gone
    other = Workspace(place=SessionFolders(home=home).begin("key"))
    assert other.opener.is_resumed
    other.opener.resume()
    assert other.review.fields == {"purpose": "research"}
    other.close()
