"""The texts of the screen Explore."""

from __future__ import annotations

from anonflow.hierarchy.wording import plural

# The screen

TITLE = "Explore"
OWNERS_VIEW = "Owner's view"
LEAD = "Everything here shows values of the table. Do not publish pictures of this screen."
NO_RUN = "No run yet: go to Compare and press Run; then a tap on a run shows it here."
RUN = "Run"


def of_run(name: str, id: int) -> str:
    """Return which run a part of the screen shows."""
    return f"Run: {name} (#{id})"


def computing(name: str, id: int) -> str:
    """Return which run is computed."""
    return f"Computing {name} (#{id})…"


def not_shown(problem: str) -> str:
    """Return why the run is not shown."""
    return f"This run cannot be shown: {problem}"


# This run, and losses

THIS_RUN = "This run"
RECORDS = "records"
K = "k"
LOSS = "information loss (GCP)"
SUPPRESSED = "suppressed"
GUARANTEE = "guarantee"
WITHOUT_A_VALUE = "Records without a value"
LOSSES = "Loss by attribute and run"
ABOUT_LOSSES = (
    "0 % is the value itself, 100 % is published as *: lower is better. ▶ is the run that is shown."
)
ALL_COLUMNS = "all (GCP)"
LEVELS = "Levels of the columns"
NO_NODE = "there is no such node; choose one of those that are drawn"


def missing_loss(column: str, cells: int, loss: float, others: float) -> str:
    """Return such as ``age: 12 records without a value lose 100.0 %, the others 8.1 %.``"""
    lose = "loses" if cells == 1 else "lose"
    return f"{column}: {plural(cells, 'record')} without a value {lose} {loss:.1%}, the others {others:.1%}."


# One column, before and after

ONE_COLUMN = "Before and after: one column"
ABOUT_ONE_COLUMN = (
    "Blue bars: the originals. Orange line with diamonds: what is published, each range spread evenly over its width, each set "
    "over its members."
)
COLUMN = "Column"


def distance(share: float) -> str:
    """Return how far the column before is from the column after."""
    return f"{share:.1%} of the records would have to move to make the two equal; lower is better."


# Associations

ASSOCIATIONS = "Associations of columns, before and after"
ABOUT_ASSOCIATIONS = (
    "Between 0 and 1: the correlation of two numbers, Cramer's V of two categories, the correlation ratio of a number and a "
    "category. After: the mean over plausible tables of what would be published, times the share of rows that are not suppressed."
)
COMPARE = "Compare the associations"
COMPARING = "Comparing…"
BEFORE_AND_AFTER = "Before and after"
ABOUT_BEFORE_AND_AFTER = "Below the diagonal: in the originals. Above it: in the release."
BEFORE_AND_AFTER_PICTURE = "Association of columns before and after"
DIFFERENCE = "The difference"
ABOUT_DIFFERENCE = "Blue: stronger than before. Orange: weaker."
DIFFERENCE_PICTURE = "Change of the association of columns"
CHANGED_MOST = "What changed most"


def not_compared(problem: str) -> str:
    """Return why the associations are not compared."""
    return f"This cannot be compared: {problem}"


def changed(first: str, second: str, before: float, after: float) -> str:
    """Return how the association of two columns changed."""
    return f"{first} and {second}: {before:.2f} before, {after:.2f} after"


# Records, before and after

BEFORE_AFTER_RECORDS = "Before and after: records"
SEARCH = "Search the records"
SEARCH_EXAMPLE = "a value, before or after"
ONLY_CHANGED = "Only records that changed"
SEARCHING = "Searching…"
RECORD_COLUMN = "record"
ORIGINAL = "original"
PUBLISHED = "published"


def not_searched(problem: str) -> str:
    """Return why the search failed."""
    return f"The search failed: {problem}"


def matching(records: int, of: int, changed_cells: int, cells: int, listed: int) -> str:
    """Return how many records match a search, how many of their cells changed, and what the table shows."""
    first = f" The first {listed:,} are listed: search for others." if records > listed else ""
    return (
        f"{records:,} of {of:,} records; {changed_cells:,} of their {cells:,} cells changed.{first} Changed cells are marked ✎ "
        "and shaded. A tap on a row shows the record's graph below."
    )


# Who a record is hidden among

HIDDEN_AMONG = "Who a record is hidden among"
RECORD = "Record"
WORST = "The record that loses most"
PUBLISHED_AS = "published as"

_KINDS = {
    "matches": "Thick orange: the {rows} published rows that may be this person's; each is the true one with the same "
    "probability. Dashed blue: the {originals} people whose values this generalized record covers. Thin: matches "
    "among the others. Nobody can tell them apart by these columns.",
    "class": "This record is published in a class of {originals} equal rows: somebody who looks for one of these people finds "
    "all of them.",
    "covers": "Dotted orange: the {rows} published rows that cover this person. k-concealment promises that at least k of "
    "them are matches, not that each is equally likely.",
    "suppressed": "This record is suppressed: it is published as * in every column, and reveals nothing.",
}


def hidden_among(kind: str, originals: int, rows: int, not_drawn: int) -> str:
    """Return what the graph of a record shows; `kind` is that of a neighbourhood."""
    more = f" {not_drawn:,} more {'is' if not_drawn == 1 else 'are'} not drawn." if not_drawn > 0 else ""
    return _KINDS[kind].format(originals=originals, rows=rows) + more


# Class sizes and matches

SIZES = "Class sizes and matches"
MAY_STAND_FOR = "originals that a published row may stand for"
IN_THE_CLASS = "records in the class"
COVERED = "originals that a published row covers"
MATCHES_PICTURE = "Matches of each row"
CLASSES_PICTURE = "Class sizes"


def each_row(rows: int, size: int, unit: str) -> str:
    """Return the size that all rows have."""
    return f"Each of the {rows:,} published rows: {size:,} {unit}."


def axes_of_sizes(unit: str) -> str:
    """Return what the axes of the picture of sizes are."""
    return f"Across: {unit}. Up: number of rows."


# Attackers

ATTACKS = "Risk: what attackers achieve"
ABOUT_ATTACKS = "Each attacker has the release and the knowledge that is named beside it."
ATTACK = "Let attackers try"
ATTACKING = "Attacking…"
AT_WORK = "Attackers are at work; this takes some seconds."
NOT_ATTACKED = "Nobody has attacked this run yet. anonflow draws a release for the attack and discards it."
RELEASE_CARD = "Release card"
EACH_ATTACKER = "Each attacker"
ATTACKS_HEADER = ("attacker, verdict", "knows besides the release", "what it achieves")
AS_PROMISED = "as promised"
HOW_OFTEN = "How often each one wins"
HOW_OFTEN_PICTURE = "Success of each attacker, with its interval"
AMONG = "Among how many rows each person is"
ABOUT_AMONG = "Across: rows that cover a person. Up: number of people."
AMONG_PICTURE = "Rows that cover each person"
AMONG_UNIT = "rows that cover a person"


def not_attacked(problem: str) -> str:
    """Return why the attack failed."""
    return f"The attack failed: {problem}"


def more_at_risk(people: int) -> str:
    """Return how many people an attacker finds beyond the promise."""
    return f"{'1 person' if people == 1 else f'{people:,} people'} more at risk than promised"


def about_how_often(k: int) -> str:
    """Return what the picture of the attackers' rates shows."""
    return (
        "Dot: the rate. Line: where a counted rate lies with confidence 95 %. Orange bar: what the release promises, one in k = "
        f"{k}, or what can be guessed without it."
    )


def with_interval(sentence: str, low: float, high: float) -> str:
    """Return an attacker's result with the confidence interval of its rate, between 0 and 1."""
    return f"{sentence} For people like these the rate lies between {100 * low:.1f} % and {100 * high:.1f} %, with confidence 95 %."
