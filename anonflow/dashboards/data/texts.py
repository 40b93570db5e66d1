"""The texts of the screen Data."""

from __future__ import annotations

from collections.abc import Sequence

from anonflow.hierarchy.wording import plural

# What happens here

STEPS_CARD = "What happens here"
STEPS = {
    "Data": "open a table, and say which columns others may know of a person.",
    "Prepare": "recode the table before you anonymize it, as statistical offices do; often this is not necessary.",
    "Risk": "see who stands alone, and by which columns.",
    "Protect": "choose among how many records each one hides, and by which methods.",
    "Compare": "run them, and see what each costs.",
    "Explore": "look at a result, column by column and record by record.",
    "Publish": "a release with its checks, its report, and the flow that repeats it.",
}
"""Each step of the work, by its screen."""
QUASI_IDENTIFIERS = "They are its quasi-identifiers; what is to be protected is sensitive."

# Open a table

SOURCE_CARD = "Open a table"
WAY = "Where the table comes from"
BUILT_IN, OWN, PROJECT = "Built-in table", "Your own file", "A flow or project"
WITH_HIERARCHIES = "with the hierarchies that go with it"
OPEN = "Open this table"
NEEDS_DOWNLOAD = " · needs a download (or its file on disk)"
NOTHING_OPENED = "Nothing was opened."
NOT_OPENED = "Not opened."
STILL_OPEN = "is still open."


REPLACE, KEEP_OPEN = "Open it, and give this work up", "Keep what is open"


def replaces(new: str, open_now: str, runs: int) -> str:
    """Return what is lost if a table is opened."""
    lost = f"its settings and {plural(runs, 'run')}" if runs else "its settings"
    return (
        f"Opening {new} closes {open_now}: {lost} are given up. To keep them, save the project below first, or open "
        f"{new} in another tab of this browser."
    )


def about_dataset(rows: int, columns: int, origin: str, licence: str) -> str:
    """Return the line about a built-in table."""
    return f"{rows:,} records, {columns} columns · {origin} · {licence}"


def opening(name: str) -> str:
    """Return what is done while a built-in table is opened."""
    return f"Opening {name}."


# A file of one's own

DROP_TABLE = "CSV, Parquet or Excel file, alone or with its hierarchies and its flow"
CSV_CARD = "How the CSV file is written"
DELIMITER = "Delimiter"
DELIMITERS = {"found in the file": "", "comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
"""What stands between cells, in words."""
ENCODING = "Encoding"
MISSING = "Texts that stand for a missing value"
MISSING_EXAMPLE = "such as NA, ?"
READ_AGAIN = "Read the file again"
READING_AGAIN = "Reading the file again."


def megabytes(number: float) -> str:
    """Return the largest size of an upload."""
    return f"{number:,.0f} MB"


def records(number: int) -> str:
    """Return the largest number of records."""
    return f"{number:,} records"


def about_upload(caps: Sequence[str], example: str) -> str:
    """Return what a file must be, and what becomes of it.

    Parameters
    ----------
    caps : sequence of str
        The largest size, and the largest number of records; empty without a limit.
    example : str
        Markup of a file's name.
    """
    most = f"At most {' and '.join(caps)}. " if caps else ""
    return (
        f"{most}The first line of a CSV file names the columns. Hierarchies are matched with columns by their names, such "
        f"as {example}. Your file stays in a private folder and is deleted when its session ends."
    )


def reading(name: str) -> str:
    """Return what is done while a file is read."""
    return f"Reading {name}."


def hierarchies_wait(files: int) -> str:
    """Return that hierarchies came before their table."""
    return f"{plural(files, 'file')} with a hierarchy: waiting for the table."


def waiting(names: str) -> str:
    """Return which files wait for the table."""
    return f"Waiting for the table: {names}."


# A flow or project

DROP_PROJECT = "Flow (.yaml) or project (.anonflow.zip)"
WAITS_FOR_TABLE = "A flow or project waits for its table:"
WITHOUT_IT = "Open a table without it"
RUN_FLOW = "anonflow run"


def about_projects(command: str) -> str:
    """Return what a project and a flow are; `command` is markup."""
    return (
        f"A project is saved below, under Keep this work. A flow is the file that {command} takes. If the "
        "table is not in the file, open the table next."
    )


# The columns

COLUMNS_CARD = "Columns"
COLUMNS_LEAD = (
    "Click a role or a kind to change it. To change several columns at once, tick them and choose below the table. A column of numbers may have codes "
    "in place of some of them: type these codes, separated by commas. Only you know what others may know of a person."
)
TITLES = {
    "column": "Column",
    "type": "Type",
    "distinct": "Distinct",
    "missing": "Missing",
    "role": "Role ▾",
    "kind": "Kind ▾",
    "no value": "Without a value ▾",
    "codes": "Codes ✎",
    "form": "Form ✎",
}
"""The heading of each column of the table of columns."""
RULES = {
    "refuse": "such a record prevents a run: choose another rule first",
    "value": "a missing value is a value of its own, and is published as an empty cell",
    "suppress": "such a record is published as * in this column, because only * covers a missing value",
    "drop": "such a record is left out of the release",
}
"""The treatment of a record without a value, by rule, in words."""
TOOLTIPS = {
    "role": "quasi-identifier: others may know it · sensitive: to be protected · insensitive: published "
    "as it is · identifier: never published · unit: the person of a row, where people have several rows · household: of the unit",
    "kind": "how a quasi-identifier may be generalized",
    "no value": " · ".join(f"{rule}: {words}" for rule, words in RULES.items()),
    "codes": "texts that stand in place of a number, such as N, R: of kind numeric",
    "form": 'how its numbers or dates are written, such as decimal: "," or dates: d.m.y; with write: source the release has them so, too',
}
"""What a heading says under the pointer."""
EMPTY, NUMBER, DATE, TRUTH_VALUE, TEXT = "empty", "number", "date", "truth value", "text"
NOT_PUBLISHED = "not published"
"""The role of a column that the draft does not name."""
WITHOUT_VALUE = "Without a value:"
MANY_ROLES = "Role of the ticked columns"
MANY_KINDS = "Kind of the ticked columns"
FIRST_GUESS = "First guess again"
CANNOT_BE_USED = "The columns cannot be used like this."

# Choices that are refused

NO_SUCH_FIELD = "only role, kind, codes, form and the rule for missing values are chosen here"
TICK_FIRST = "choose some columns first: tick them in the table"
RULE_NEEDS_QUASI_IDENTIFIER = "a rule for missing values is for quasi-identifiers only"
NO_SUCH_FORM = "the form of cells has the words decimal, thousands, percent, dates, pivot and write"
FORM_NEEDS_PUBLISHED = "a form is for columns that are published: choose another role first"
CODES_NEED_NUMBERS = "codes stand in place of numbers: choose the kind numeric first, then type them"


def form_text(keys: str, in_release: bool) -> str:
    """Return the form of a column as it is typed."""
    return keys + ", write: source" * in_release


def form_file(typed: object) -> str:
    """Return what was typed for a form as a line of YAML."""
    return f"form: {{{typed or ''}}}"


def no_such_role(roles: Sequence[str]) -> str:
    """Return which roles there are."""
    return f"a role is one of {', '.join(roles)}"


def no_such_kind(kinds: Sequence[str]) -> str:
    """Return which kinds there are."""
    return f"a kind is one of {', '.join(kinds)}"


def no_such_rule(kind: str, rules: Sequence[str]) -> str:
    """Return which rules for missing values a kind has."""
    return f"without a value, kind {kind} can {', '.join(rules)}"


# Who stands alone

UNIQUE_CARD = "Who stands alone"
COUNTING = "Counting the records that are unique…"
NO_QUASI_IDENTIFIER = "No column is a quasi-identifier yet: choose at least one."


def unique(alone: int, share: str) -> str:
    """Return how many records are unique on the quasi-identifiers."""
    return f"{plural(alone, 'record')} ({share}) {'is' if alone == 1 else 'are'} unique on these quasi-identifiers."


# First rows

FIRST_ROWS_CARD = "First rows"


def size_of_table(rows: int, columns: int, missing: int | None) -> str:
    """Return how large the open table is; `missing` is None while its cells without a value are counted."""
    without = "" if missing is None else f", {plural(missing, 'cell')} without a value"
    return (
        f"{plural(rows, 'record')}, {plural(columns, 'column')}{without}. "
        "These are your records as they are: nobody else sees them."
    )


# Keep this work

KEEP_CARD = "Keep this work"
KEEP_LEAD = (
    "One file with the flow, the hierarchies, and the runs with their measures and notes. It holds names of "
    "columns and labels of hierarchies, and no record. To open it later, use A flow or project, above."
)
SAVE = "Save the project"
WITH_TABLE = "with the table and the seeds of the runs: the file is then the owner's"
