"""The library's messages about flow files in the words of the screens, and sentences that several screens show."""

from __future__ import annotations

import re

__all__ = ["BEGIN", "NO_TABLE", "OPEN_FIRST", "on_screen"]

BEGIN = "Open a table to begin."
NO_TABLE = "No table yet: go to Data and open one."
OPEN_FIRST = "no table is open; open one first"

RULE = r"(?:value|suppress|drop|refuse)"

_WORDS: tuple[tuple[str, str], ...] = (
    (rf"say missing: ({RULE}(?:(?:, | or ){RULE})*)(?: in the schema)?", r"choose \1 under Without a value, on the screen Data"),
    (rf"\bmissing: ({RULE})", r"\1 under Without a value"),
    (r"name them under 'missing' of the source", "name them under Texts that stand for a missing value, on the screen Data"),
    (
        "name its encoding in the source",
        "type its encoding under How the CSV file is written, such as latin-1, and read the file again",
    ),
    ("check the delimiter and quotes", "check the delimiter, under How the CSV file is written"),
    (r"say notation: right-open in the schema", "recode them on the screen Prepare"),
    (
        r"give each one under `hierarchy:`, or declare `kind: suppression`, which",
        "give each one on the screen Protect, under Hierarchies, or choose the kind suppression on the screen Data, which",
    ),
    (r"recode it under prepare", "recode it on the screen Prepare"),
    (r"use a partition_size of (\d[\d,]*) at most", r"use partitions of \1 records at most"),
    (r"partitions of (\d+) are smaller than k = (\d+); use at least (\d+)",
     r"partitions of \1 records are smaller than k = \2; choose partitions of at least \3 records, or the whole table"),
    (r"or exact=False", "or do not ask for the best start of all"),
    (r"raise time_limit", "raise its time limit"),
    (r"in the schema", "among the columns, on the screen Data"),
    (r"^diversify: ", "diversity: "),
)  # fmt: skip
"""A phrase that names keys of a flow file, and what the screens call it."""


def on_screen(text: str) -> str:
    """Return a sentence that says what to do in a flow file, as one that says what to do on the screens.

    Parameters
    ----------
    text : str
        Of one of our errors. What names no key of a file stays as it is.
    """
    for phrase, words in _WORDS:
        text = re.sub(phrase, words, text)
    return text
