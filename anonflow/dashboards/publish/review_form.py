"""The reviewer's report with the fields that people fill in, on the screen Publish."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import badge, button, card, download, html, in_lines, refused, soft
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.session.review import LONGEST_FIELD
from anonflow.engine.report.pdf import browser, printed
from anonflow.engine.report.reviewer import FIELDS, SECTIONS, filled_in
from anonflow.errors import AnonflowError

NO_BROWSER = (
    "There is no browser on the server that could print a PDF: open the HTML page, and print it from yours."
)


class ReviewForm(ScreenModel, pn.viewable.Viewer):
    """The fields of the report, and the report with them as HTML and as PDF.

    What is filled in belongs to the workspace: it is in the project's file, and it is there again after the page is loaded
    anew. The page is public once it is handed out, and so is what was written into it.
    """

    model = param.ClassSelector(class_=PublishModel, constant=True)
    pdf = param.Bytes(
        default=b"", doc="The printed page; empty until it was asked for, and when a field has changed."
    )

    def __init__(self, model: PublishModel, **params: Any) -> None:
        super().__init__(model.workspace, model=model, **params)
        self.fields = {key: self._field(key, label) for key, (_, label) in FIELDS.items()}
        self.page_file, self.pdf_file = (
            download(label, content, css=f"af-review-{kind}", color="primary", width=200)
            for kind, label, content in (
                ("html", "The report, HTML", lambda: self.page().encode()),
                ("pdf", "The report, PDF", lambda: self.pdf),
            )
        )
        self.print = button("Make the PDF", self.print_page, css="af-print", width=160)
        self.status = html("")
        sections: dict[int, list[Any]] = {}
        for key, (section, _) in FIELDS.items():
            sections.setdefault(section, []).append(self.fields[key])
        self._card = card(
            "The reviewer's report, filled in",
            html(badge(True, "Public: may be published, with what you write here")),
            *(
                part
                for section, fields in sections.items()
                for part in (
                    html(Markup("<h4>{}. {}</h4>").format(section, SECTIONS[section - 1])),
                    in_lines(*fields),
                )
            ),
            in_lines(self.page_file, self.print, self.pdf_file),
            AtWork(self.background),
            self.status,
            lead="Its measured part is drawn with the release. What you fill in is kept with the project. Signatures are by hand.",
        )
        self._review_changed()

    def page(self) -> str:
        """Return the report with its fields; empty before the draw, or after a failed check."""
        return filled_in(self.model.content("review").decode(), self.workspace.review.fields)

    def print_page(self) -> None:
        """Print the page, aside; ``pdf`` has it then."""
        page = self.page()
        if self.busy or not page:
            return
        # not what was printed before a field changed
        self.compute(
            lambda: printed(page),
            lambda content: {"pdf": content if page == self.page() else b""},
            "printing",
        )

    # --------------------------------------------------------------------------------------- inside

    def _field(self, key: str, label: str) -> Any:
        if key.endswith(("-name", "-date")):
            field = pn.widgets.TextInput(label=label, width=260, max_length=200)
        else:
            field = pn.widgets.TextAreaInput(
                label=label, width=520, rows=2, auto_grow=True, max_rows=12, max_length=LONGEST_FIELD
            )

        def changed(text: str | None) -> None:
            if (text or "") == self.workspace.review.fields.get(key, ""):
                return
            try:
                self.workspace.review.fill_in(key, text or "")
            except AnonflowError as error:
                self.problem = error.message

        pn.bind(changed, field, watch=True)
        return field

    @param.depends("model.workspace.review.fields", watch=True)
    def _review_changed(self) -> None:
        for key, field in self.fields.items():
            field.value = self.workspace.review.fields.get(key, "")
        self._page_changed()

    @param.depends("model.publication", watch=True)
    def _page_changed(self) -> None:
        self.param.update(pdf=b"", problem="")
        self._show()

    @param.depends("pdf", "busy", "problem", watch=True)
    def _show(self) -> None:
        name = self.model.file_name("review").removesuffix(".html")
        self.page_file.filename, self.pdf_file.filename = f"{name}.html", f"{name}.pdf"
        self.print.disabled = self.busy or not _can_print()
        self.print.visible = not self.pdf
        self.pdf_file.visible = bool(self.pdf)
        if self.problem:
            text = refused(self.problem)
        elif not _can_print():
            text = soft(NO_BROWSER)
        else:
            text = Markup("")
        self.status.object = str(text)

    def __panel__(self) -> pn.viewable.Viewable:
        return self._card


def _can_print() -> bool:
    try:
        browser()
    except AnonflowError:
        return False
    return True
