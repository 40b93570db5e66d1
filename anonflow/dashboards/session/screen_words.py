"""The words of the screens for the settings that errors name, and sentences that several screens show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonflow.errors import Sentence
from anonflow.hierarchy.wording import plural

BEGIN = "Open a table to begin."
CONFIRM = "These roles are right"
NO_TABLE = "No table yet: go to Data and open one."
OPEN_FIRST = "no table is open; open one first"
WAITING = "waiting for a free processor"

WORDS = {
    "calendar": ", with kind hierarchy",
    "comment": "remove the lines that begin with {}",
    "delimiter": "check the delimiter, under How the CSV file is written",
    "diversify": "diversity",
    "earlier": "or run again and go on from the earlier one, under Released before",
    "encoding": "type its encoding under How the CSV file is written, such as latin-1, and read the file again",
    "exact": "do not ask for the best start of all",
    "footer": "remove that row",
    "form": "type {} under Form, on the screen Data",
    "header": "add a line with the names of the columns",
    "index": "name it in the file, or remove it",
    "levels": "on the screen Protect, under Hierarchies, or choose the kind suppression on the screen Data",
    "missing": "{} under Without a value",
    "missing-texts": "name them under Texts that stand for a missing value, on the screen Data",
    "others": "type them under Texts that stay",
    "partition-below-k": "partitions of {0} records are smaller than k = {1}; choose partitions of at least {1} records, "
    "or the whole table",
    "partition-size": "partitions of {} records",
    "prepare": "on the screen Prepare",
    "say-missing": "choose {} under Without a value, on the screen Data",
    "shares": "choose another kind of it, on the screen Data",
    "sheet": "type its name under How the CSV file is written, and how others are read, and read the file again",
    "skip": "type {} as Lines above the header under How the CSV file is written, and read the file again",
    "time-limit": "its time limit",
}
"""What the screens call each setting that an error names (:class:`anonflow.errors.Setting`), with its values."""


WITHOUT_CSV = WORDS | {
    "missing-texts": "add a step recode, such as NA =, with nothing behind the sign, on the screen Prepare"
}
"""The same for a table that is no CSV file, of which no texts are read as missing."""


def on_screen(text: str, words: Mapping[str, str] = WORDS) -> str:
    """Return a text of one of our errors, with its settings in the words of the screens."""
    return text.in_words(words) if isinstance(text, Sentence) else text


def listed(names: Sequence[str], most: int) -> str:
    """Return names with commas; of more than `most` the first, and how many more there are."""
    remainder = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + remainder


def roles_wait(columns: Sequence[str]) -> str:
    """Return of which columns nobody has confirmed the role, so that nothing is published."""
    number = plural(len(columns), "column")
    return f"Nobody has confirmed the guess at the role of {number}: {listed(columns, 5)}. Nothing is published before."
