"""The texts of the screen Prepare."""

from __future__ import annotations

from collections.abc import Sequence

# The head of the screen

HEADING = "Prepare"
LEAD = (
    "Statistical offices recode a table before they anonymize it: ages above 90 become 90, incomes are "
    "rounded, a date of birth becomes a year."
)
NO_STEP = "Without a step, the table stays as it is."

# The form of a step

STEPS_CARD = "Prepare: steps before"
STEPS_LEAD = "These steps change the table before it is anonymized, in this order. The release is verified against the table after them."
STEP = "Step"
COLUMN = "Column"
ADD = "Add the step"
REMOVE = "Remove the last step"
VALUES = "value, value"
RECODED_VALUES = "old = new, old = new"
DAY = "2024-01-01"
NOT_ADDED = "Not added."


def fill_in(fields: Sequence[str]) -> str:
    """Return which fields of the form are still empty."""
    return f"Fill in {' and '.join(fields)}."


# The changes of the steps

COUNTING = "Counting what the steps change…"
CHANGES = ("step", "cells changed", "rows removed", "distinct before", "after")
"""The headings of the table of changes."""
