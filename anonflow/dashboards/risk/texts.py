"""The texts of the screen Risk."""

from __future__ import annotations

from anonflow.hierarchy.wording import plural

# The screen

TITLE = "Risk"
OWNERS_VIEW = "Owner's view"
LEAD = (
    "What a reviewer asks about the table before it is anonymized. This screen shows values of the table: do not publish "
    "pictures of it."
)
WRONG = "The columns cannot be used like this yet; the screen Data says why."
CODING = "The table is being coded under its columns: this takes some seconds."
NO_COLUMNS = "No column is a quasi-identifier yet: choose on the screen Data which columns others can know."
COMPUTING = "Computing…"


def not_computed(problem: str) -> str:
    """Return why there is no picture of the risk."""
    return f"This cannot be computed: {problem}"


# What others know

KNOWN = "What others know"
OTHERS_KNOW = "Others can know:"
MOST = "Look at every combination of"
FRACTION = "Sampling fraction, if it is a sample"
FRACTION_EXAMPLE = "such as 0.05"
WEIGHTED = "The column {column} says for how many people of the population each record stands."


def left_out(records: int) -> str:
    """Return that records of the file are not in the picture."""
    return f"{plural(records, 'record')} of the file {'is' if records == 1 else 'are'} left out, by the steps on the screen Prepare or for a missing value."


def combinations(columns: int, sets: int) -> str:
    """Return how many sets of up to so many columns there are."""
    return f"{'' if columns == 1 else 'up to '}{of_columns(columns)}: {plural(sets, 'set')}"


def of_columns(number: int) -> str:
    """Return such as ``1 column``, ``2 columns``."""
    return plural(number, "column")


# Who stands alone

ALONE = "Who stands alone"
RECORDS = "records"
UNIQUE_ON_ALL = "unique on all quasi-identifiers"
SMALLEST_CLASS = "records in the smallest class"
AVERAGE_RISK_OF_CLASSES = "average risk (1 / class size)"
UNIQUE_TO_WHO_KNOWS = "Unique for somebody who knows"
UNIQUE_TO_WHO_KNOWS_PICTURE = "Records that are unique for somebody who knows so many columns"
SPECIAL_UNIQUE = "A special unique is unique by few values: changes of the other columns do not hide it."


def special_uniques(columns: int) -> str:
    """Return what special uniques are counted on."""
    return f"special uniques: on {of_columns(columns)} or fewer"


def above(threshold: float) -> str:
    """Return which records are counted as at risk."""
    return f"records with a risk above {threshold:g}"


def any_columns(number: int) -> str:
    """Return that somebody knows any so many columns."""
    return f"any {of_columns(number)}"


def all_columns(number: int) -> str:
    """Return that somebody knows all columns."""
    return f"all {number} columns"


def none_unique(columns: int) -> str:
    """Return that no record is unique."""
    return f"No record is unique on {of_columns(columns)} or fewer."


# Every combination of columns

COMBINATIONS = "Every combination of columns"
ABOUT_COMBINATIONS = "Somebody who knows these columns of a person, and nothing else, finds the person's record if it is unique."
SIZE = "Sets of"
ALL_SIZES = "all sizes"
UNIQUE_ON_THESE = "unique on these columns and on no fewer of them (minimal sample uniques)"
UNIQUE_ON_FEWER = "unique on fewer of them already"
COLUMN_SETS = "Sets of columns"
SETS_HEADER = ("columns", "unique", "minimal uniques", "smallest class", "average risk")
BY_TWO = "By two columns"
ABOUT_BY_TWO = "The share of records that are unique on each pair; in the diagonal, on the column alone. The largest is shaded most."


def share_of_records(share: float, records: int) -> str:
    """Return the records that are unique on a set of columns."""
    return f"{share:.1%}, {plural(records, 'record')}"


def riskiest_sets(number: int) -> str:
    """Return what the picture of sets shows."""
    return f"The {'set' if number == 1 else f'{number} sets'} of columns on which most records are unique"


def as_table(listed: int, sets: int) -> str:
    """Return the heading of the table of sets."""
    return "The same as a table" + (f": the first {listed:,} of {sets:,}" if listed < sets else "")


def columns_left_out(number: int) -> str:
    """Return that columns are not in the table of pairs."""
    return f"{of_columns(number)} of the least risk {'is' if number == 1 else 'are'} left out."


# Columns and records

FROM_COLUMNS = "Which columns it comes from"
ABOUT_FROM_COLUMNS = "Of all minimal sample uniques, the share that contains each column."
FROM_COLUMNS_PICTURE = "Share of the minimal sample uniques that contain each column"
RISKIEST = "The riskiest records"
ABOUT_RISKIEST = "By SUDA's score: a high score means that many small sets of columns single the record out. Marked: one of the smallest sets. Records are counted from 0."
RISKIEST_HEADER = ("record", "score", "minimal uniques")

# People and households

OWNERS = "People and households"
PEOPLE = "people (the unit)"
HOUSEHOLDS = "households"
OWNERS_HEADER = (
    "",
    "how many",
    "largest number of rows",
    "with a unique row",
    "average risk",
    "highest risk",
)
ABOUT_OWNERS = (
    "Risk: the probability that somebody who knows all rows of a person names one of them correctly."
)

# In the population

POPULATION = "In the population"
UNSAMPLED = (
    "A person who is unique here need not be unique in the population. If the table is a sample, type the sampling fraction "
    "above, or give a column the role weight on the screen Data."
)
PEOPLE_IN_POPULATION = "people in the population"
LINKED_RIGHTLY = "records expected to be linked correctly"
AVERAGE_RISK = "average individual risk"
HIGHEST_RISK = "highest individual risk"
ESTIMATES_HEADER = (
    "model",
    "unique people of the population",
    "share",
    "with confidence 95 %, if the model holds",
    "",
)
PICKED = "picked by Dankar's rule"


def share_above(threshold: float) -> str:
    """Return of which records the share is shown."""
    return f"of the records above {threshold:g}"


def interval(low: float, high: float, why: str) -> str:
    """Return between which numbers an estimate lies."""
    return f"{low:,.1f} to {high:,.1f} {why}"


# A register of the population

REGISTER = "A register of the population"
ABOUT_REGISTER = (
    "A list of people that others may have, with every quasi-identifier under the table's names, such as a voters' list. The "
    "attackers journalist and presence try it on the release; the file stays in your session."
)
REGISTER_FILE = "A register of the population: CSV or Parquet file"
FORGET = "Remove the register"
COMPARING = "Comparing…"
PEOPLE_IN_REGISTER = "people in the register"
FIT_ONE = "records that fit exactly one of them"
FIT_NONE = "records that fit none of them"
CHANCE = "average chance of naming a record's person"
ABOUT_FIGURES = (
    "These figures describe the original records. Somebody who compares the table with this register names the person of each "
    "record that fits exactly one. The attackers try the register on a release, too: see its report."
)
NO_TABLE_FOR_REGISTER = "no table is open with these columns; open one first"


def register_refused(problem: str) -> str:
    """Return why a register is not used."""
    return f"This register cannot be used: {problem}"


# Why these columns

REASONS = "Why these columns"
ABOUT_REASONS = "These are guesses from names and values: only you know whether others can know a column. Change roles on the screen Data."
REASONS_HEADER = ("column", "its role", "the advisor's guess", "different values", "why")
NOT_PUBLISHED = "not published"
