"""The texts of the part Hierarchies of the screen Protect."""

from __future__ import annotations

from collections.abc import Sequence

# Where a hierarchy comes from

COLUMN = "Column"
WAY = "Hierarchy from"
AS_IT_IS, INTERVALS, GROUPS, POSITIONS = "as it is", "intervals", "groups", "positions"
PREFIXES, CALENDAR = "prefixes", "periods of the calendar"
CSV_FILE, GIVEN = "CSV file", "comes with the table"

# Intervals, positions, prefixes and periods

STEP = "Narrowest width"
LEVELS = "Levels"
FANOUT = "Intervals joined at each level"
ORIGIN = "An interval begins at"
HIDE = "Positions are hidden from the"
LENGTHS = "Characters of the prefixes, or a classification"
LENGTHS_EXAMPLE = "such as 1, 3 or nace"
PERIODS = "Periods that a date is generalized to"
NO_PERIODS = "choose the periods that a date is generalized to, such as month and year"

# Groups

CLICKS = "Clicks on the tree"
CLICKS_GROUP, CLICKS_LIMIT = "Clicks choose values to group", "Clicks set boundaries"
GROUP_NAME = "Name of the group"
GROUP_EXAMPLE = "such as Europe"
GROUP = "Put together"
RENAME = "Rename"
DISSOLVE = "Dissolve"
CLICK_VALUES = "Click values on the tree, then name their group."

CHOOSE_VALUES = "choose the values or groups to put together"
CHOOSE_GROUP_TO_DISSOLVE = "choose a group to dissolve"
CHOOSE_GROUP_TO_RENAME = "choose a group to rename: a value keeps its name from the table"
RENAME_ONE = "choose the one group that is to be renamed"
NO_NAME = "a group needs a name of its own"
NO_NEW_NAME = "give the group a name that no value and no other group has"
NAME_TAKEN = "this name is taken by a value or a group: choose another"
NOT_SIDE_BY_SIDE = "what is put together must be below the same group; dissolve a group first"
EVERY_VALUE = "this group would contain every value: leave some out"


def chosen(labels: Sequence[str], shown: int = 6) -> str:
    """Return which labels are about to be grouped, the first of them by name."""
    more = f" and {len(labels) - shown:,} more" if len(labels) > shown else ""
    return f"Chosen: {', '.join(labels[:shown])}{more}"


def too_deep(levels: int) -> str:
    """Return how many levels a tree may have."""
    return f"a tree has at most {levels} levels"


def too_deep_for_flow(levels: int) -> str:
    """Return what to do with a tree that a flow cannot hold."""
    return f"the tree has more than {levels} levels: save it as a file, and name the file in the flow"


def too_many_to_group(values: int) -> str:
    """Return what to do with a column of too many values."""
    return f"{values:,} values are too many to group by hand; upload a CSV file instead"


def too_many_for_tree(values: int) -> str:
    """Return what to do with a column that should get a hierarchy, on another screen."""
    return (
        f"{values:,} values are too many for a tree by hand; keep the kind, or upload a hierarchy on Protect"
    )


# A file

DELIMITER = "Delimiter"
DELIMITERS = {"semicolon": ";", "comma": ",", "tab": "\t", "bar": "|"}
"""What stands between columns, in words."""
DROP_FILE = "CSV file: no header, a row for each value, from the value to the root"


def too_many_nodes(nodes: int, most: int) -> str:
    """Return what to do with a file whose tree is too large."""
    return f"the tree has {nodes:,} nodes, and this screen takes {most:,}; name the file in the flow instead"


# What is done with it

USE = "Use this hierarchy"
DROP = "No hierarchy"
SAVE = "Save as CSV"
COPY_TO = "Copy it to the column"
COPY = "Copy"
NOTHING_TO_EXPORT = "there is no hierarchy to export; choose a column that has one"
NOTHING_TO_COPY = "there is no hierarchy to copy; choose a column that has one"

# Whether it is used

OPEN_TABLE = "Open a table, and say which columns are quasi-identifiers or sensitive."
USED = "Used."
USED_FOR_DISTANCE = "t-closeness measures along this hierarchy; the column is published as it is."
SENSITIVE_UNUSED = (
    "Not used yet: this column is sensitive. If it has a hierarchy, values below the same node are closer for "
    "t-closeness than others; the column is published as it is."
)
SENSITIVE_HAS_NO_LIMIT = "a sensitive column has no limit: it is published as it is, and its hierarchy is the distance of t-closeness"
CLICK_TO_LIMIT = "Click a node of the tree, and nothing is generalized beyond it."


def limits(labels: Sequence[str]) -> str:
    """Return the limits of the column, and how to remove them."""
    return f"Limits: {', '.join(labels)}. Click the root to remove them."


def kind_now(kind: str) -> str:
    """Return the kind of a column that has no hierarchy."""
    return f"This column is {kind} now."


def unused(kind: str) -> str:
    """Return how to use the hierarchy that is drawn."""
    return (
        f"Not used yet: this column is {kind} now. Use this hierarchy, "
        "or click a node to use it with that limit."
    )


# The drawing

LIMIT_MARK, BEYOND_MARK, FOLDED_MARK = "◆", "dashed", "▸ n +"
LIMIT_LEGEND = "limit: nothing is generalized beyond"
BEYOND_LEGEND = "beyond a limit: never published"
FOLDED_LEGEND = "opens what is below"
MISSING = "(missing)"
STATUS = {
    "limit": "; limit: its values are published as this at the widest",
    "beyond": f"; {BEYOND_LEGEND}",
    "allowed": "",
}
"""What a limit means for a node, by its status."""


def hierarchy_of(values: int) -> str:
    """Return what the drawing shows."""
    return f"hierarchy of {values:,} values"


def node(label: str, values: int, records: int | None, status: str) -> str:
    """Return what a node is; `records` is None where they are not counted."""
    below = "a value" if values == 1 else f"{values:,} values"
    counted = "" if records is None else f", {records:,} records"
    return f"{label}: {below}{counted}{STATUS[status]}"


def show_below(label: str) -> str:
    """Return what a click on a folded node does."""
    return f"show what is below {label}"


def more(nodes: int) -> str:
    """Return how many nodes are not drawn."""
    return f"{nodes:,} more"
