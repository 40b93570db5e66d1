"""Settings of a table that sentences of several modules name, in the words of flow files."""

from __future__ import annotations

from anonflow.errors import Sentence, setting


def say_missing(rules: str, where: str = "") -> Sentence:
    """Return the advice to choose one of these rules for records without a value; a flow file's reader is told where."""
    return setting("say-missing", f"say missing: {rules}{where}", rules)


LEVELS = setting("levels", "under `hierarchy:`, or declare `kind: suppression`")
MISSING_VALUE = setting("missing", "missing: value", "value")
NAME_MISSING = setting("missing-texts", "name them under 'missing' of the source")
UNDER_PREPARE = setting("prepare", "under prepare")
WITHOUT_CODES = (
    UNDER_PREPARE
    + ", "
    + say_missing("suppress")
    + " if only its blanks are no numbers, or use another method"
)

NO_ROW_KEPT = "every record has a missing value that the schema drops; " + say_missing("value or suppress")
NO_ROW_PREPARED = (
    "the steps " + setting("prepare", "under `prepare`") + " leave no row; let the filter keep more"
)
