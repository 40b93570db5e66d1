"""What people fill in into the reviewer's report."""

from __future__ import annotations

from collections.abc import Mapping

import param

from anonflow.dashboards.session.files.folders import SessionFolder
from anonflow.engine.report.reviewer import FIELDS
from anonflow.errors import ParameterError

LONGEST_FIELD = 4_000
"""Characters of a field of the reviewer's report, at most."""


class Review(param.Parameterized):
    """What people filled in into the reviewer's report; it is kept in the session's folder."""

    fields = param.Dict(default={}, doc="Field -> its text.")

    def __init__(self, place: SessionFolder) -> None:
        super().__init__()
        self._place = place

    def __repr__(self) -> str:
        return f"Review({len(self.fields)} fields)"

    def fill_in(self, field: str, text: str) -> None:
        """Fill in a field of the reviewer's report; an empty text takes it away.

        Raises
        ------
        ParameterError
            If there is no such field, or the text is too long.
        """
        if field not in FIELDS:
            raise ParameterError("the reviewer's report has no such field")
        if len(text) > LONGEST_FIELD:
            raise ParameterError(
                f"a field of the report holds at most {LONGEST_FIELD:,} characters; write less, or refer to a document"
            )
        others = {key: value for key, value in self.fields.items() if key != field}
        self.put({**others, **({field: text} if text.strip() else {})})

    def put(self, review: Mapping[str, str]) -> None:
        """Replace what people filled in into the reviewer's report, by field."""
        self.fields = dict(review)
        self._place.keep_review(self.fields)
