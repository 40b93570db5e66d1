"""The texts of the screen Protect, but for those of its hierarchies."""

from __future__ import annotations

from collections.abc import Sequence

from anonflow.hierarchy.wording import plural

# k

K_CARD = "How many each record hides among"
K = "k: among how many records each one hides"
EXACT_K = "or type k"
MORE_KS = "Compare with these k, too"
COUNTING = "Counting the records at risk…"
OPEN_TABLE = "Open a table, and say which columns are quasi-identifiers."
LOWEST_SHARE, HIGHEST_SHARE = "below 0.1%", "above 99.9%"


def at_risk(risky: int, records: int, share: str, k: int) -> str:
    """Return how many records are at risk before anonymization."""
    return (
        f"{risky:,} of {plural(records, 'record')} ({share}) {'shares its' if risky == 1 else 'share their'} "
        f"quasi-identifiers with fewer than {plural(k - 1, 'other')}: without protection "
        f"{'it is' if risky == 1 else 'they are'} at risk."
    )


# The tabs

TABS_CARD = "How it is protected"
METHODS, TARGET, HIERARCHIES, PATTERNS, DIVERSITY = (
    "Methods",
    "Target",
    "Hierarchies",
    "Patterns",
    "Diversity",
)
LIMITS = "Limits and weights"

# Methods

HOW_IT_WORKS = "How it works"
CUT = "The method works on"
CUTS = {
    "whole table": "whole",
    "partitions of a size": "size",
    "largest that fit a time": "time",
    "best method for a time": "auto",
}
"""How the table is cut into partitions; with the last, what is done with it, too."""
SIZE = "Records in a partition"
SECONDS = "Seconds it may take"
GUARANTEE = "It guarantees"
ORDER = "Cut along"
LOSS = "Information loss to keep low"
BOUNDARIES = "Keep inside boundaries and limits of columns"
OPTIONS = "Options of the chosen methods"
NO_OPTIONS = "The chosen methods have no options."


def about_cut(cut: str, size: int, seconds: float) -> str:
    """Return what a way to cut the table means for time and loss."""
    sentences = {
        "whole": "The whole table at once: the least loss, the most time.",
        "size": f"Each {size:,} records on their own, side by side: faster, with a little more loss.",
        "time": f"anonflow times the method on a few partitions, and takes the largest that fit {seconds:g} s.",
        "auto": f"anonflow times methods on some of the records, and takes the one with the least loss in {seconds:g} s.",
    }
    return sentences[cut]


# The expected time and memory

BEFORE_RUN = "Before you run"
EXPECT = "Expect time and memory"
EXPECTING = "Running the methods on a few records…"
EXPECTED = ("run", "seconds expected", "MiB expected", "")
"""The headings of the expectations."""
WHAT_IT_TOOK = "What it took"
TOOK = ("run", "seconds expected", "seconds", "the expectation was")
"""The headings of finished runs, beside what was expected of them."""
EXPECTED_RIGHT = "right"


def measured_on(records: int) -> str:
    """Return what an expectation rests on."""
    return f"from up to {records:,} records"


def expected_wrong(error: float) -> str:
    """Return by how much an expectation was wrong."""
    return f"{abs(error):.0%} too {'long' if error > 0 else 'short'}"


# Target

TARGET_LEAD = (
    "An empty field sets no target. All other settings of this screen apply to each trial: boundaries, "
    "limits, diversity and the loss to keep low."
)
TARGET_LOSS = "Loss (GCP) at most"
TARGET_RISK = "Risk of being found, at most (%)"
TARGET_GUESSED = "Risk of a guessed sensitive value, at most (%)"
TARGET_SIGNS = "Regressions that keep their signs"
SIGNS_EXAMPLE = "income ~ age + education"
CHOSEN_METHODS_ONLY = "Only the methods that are chosen"
SEARCH = "Search"
STOP_SEARCH = "Stop the search"
TRIALS = ("trial", "loss", "risk", "guessed", "signs", "seconds", "expected", "")
"""The headings of the trials."""
PICKED, MEETS_TARGET, ON_FRONTIER = "picked", "meets the target", "on the frontier"
SIGNS = {True: "kept", False: "lost", None: ""}
"""Whether a trial keeps the signs of the regressions."""
CANNOT_RUN = "this cannot run"
WAITING = "waiting for a free processor"
NO_SEARCH_YET = "Set a target; anonflow then tries methods, k and partitions, the most promising first."


def no_search(problem: str) -> str:
    """Return why there is no search."""
    return f"This cannot be searched: {problem}"


def searching(doing: str, trials: int) -> str:
    """Return how far a search is."""
    return f"Searching ({doing}): {plural(trials, 'trial')} so far; each is a run on the screen Compare."


def searched(result: str, trials: int, seconds: float, ended: str) -> str:
    """Return the result of a search, and why it ended."""
    return f"{result} {plural(trials, 'trial')} in {seconds:.0f} s; {ended}."


# Patterns

FORMS = {
    "All patterns": "all",
    "Predicates": "predicates",
    "A list of my own": "list",
    "With levels, as in the flow": "levels",
}
"""How patterns are said."""
AT_MOST = "At most so many hidden"
ANY_NUMBER = "any number"
NEVER = "Never hidden"
FALLBACK = "A row that no pattern fits (fallback)"
FALLBACKS = {
    "is hidden completely, and counted": "none",
    "is hidden completely: this is one of the patterns": "all",
    "is not allowed: every row follows a pattern": "strict",
}
"""What becomes of a row that no pattern fits."""
RULE_COLUMNS = "Columns of a rule"
HIDE_TOGETHER = "Hide together"
AT_MOST_ONE = "At most one of them"
RULES = {"together": "hidden together: ", "at_most_one_of": "at most one hidden of: "}
"""What stands before the columns of a rule."""
REMOVE_RULE = "remove the rule"
RULE_NEEDS_TWO = "choose at least two columns that the rule is about"
WEIGHTED = "Cost of hiding a cell of"
WEIGHT = "counts as"
ADD_PATTERN = "Add a pattern"
START_AGAIN = "Start again: one column at a time"
HIDDEN, KEPT, COST = "hidden", "kept", "cost"
NO_PATTERN_METHOD = "No method that uses patterns is chosen: choose pattern-guided under Methods."

CHANGED_IN_FLOW = "patterns with levels are changed in the flow; choose another form to click patterns"
COLUMNS_NOT_VALID = "The columns are not valid yet: see the screen Data."
NO_LEVELS = 'The flow has no patterns with levels; write {levels: {column: "level 1"}} under patterns there.'


def cell(pattern: int, column: str, state: str) -> str:
    """Return what a cell of the grid shows."""
    return f"pattern {pattern}, {column}: {state}"


def remove_pattern(pattern: int) -> str:
    """Return what the cross of a pattern does."""
    return f"remove pattern {pattern}"


def patterns(number: int, shown: int, methods: Sequence[str]) -> str:
    """Return how many patterns there are, in which order they are tried, and by which methods."""
    more = f" The first {shown} are shown." if number > shown else ""
    whom = f"Used by {' and '.join(methods)}." if methods else NO_PATTERN_METHOD
    return (
        f"{number:,} pattern{'' if number == 1 else 's'}, tried in the order of their cost, and of the list where costs are equal; "
        f"click a cell to hide or keep a column.{more} {whom}"
    )


def too_many_to_click(number: int) -> str:
    """Return what to do where patterns are too many to be clicked."""
    return f"{number:,} patterns are too many to click: narrow them with predicates, or begin a list"


def too_many_to_show(quasi_identifiers: int) -> str:
    """Return what to do where all patterns are too many to be shown."""
    return (
        f"All patterns of {quasi_identifiers} quasi-identifiers are 2^{quasi_identifiers}: too many to show. "
        "Choose predicates, or list patterns."
    )


# Diversity

CRITERION = "Diversity of the sensitive value"
NO_DIVERSITY = "No diversity is required."
SENSITIVE = "Sensitive column"
CHANCE = "Chance that the draw is refused"
WAY = "Against a draw that fails"
WAYS = {"make classes": "classes", "more rows for all (blind)": "blind"}
"""What is done so that no draw fails."""
CANNOT_WORK = "This cannot work."
WITHOUT_DIVERSITY = "Without diversity, the k records that may belong to a person can all have the same sensitive value: then everybody knows this value."
DISTANCE_OF_HIERARCHY = "Values below one node of the column's hierarchy are closer than others."
DISTANCE_OF_VALUES = (
    "Numbers are compared in their order, other values are all equally far from each other: "
    "with a hierarchy of the column (under Hierarchies), those below one node are closer."
)


def feasible(largest: str) -> str:
    """Return how much diversity the table allows."""
    return f"The whole table allows this; the largest feasible {largest}."


# Limits and weights

LIMITS_LEAD = "Click a number to change it; empty the field to remove it."
LIMIT_TITLES = {
    "column": "Column",
    "kind": "Kind",
    "weight": "Weight ✎",
    "interval": "Intervals ✎",
    "max-width": "Max width ✎",
    "max-set": "Max set ✎",
    "at-least": "At least ✎",
    "boundary": "Boundary",
}
"""The heading of each column of the table of limits."""
LIMIT_TOOLTIPS = {
    "weight": "how many times the column counts in the information loss",
    "interval": "numeric: no value leaves its interval of this width",
    "max-width": "numeric: no published range is wider",
    "max-set": "categorical: no published set has more values",
    "at-least": "hierarchy: nothing below this level is published; 1 for the parents of its leaves",
    "boundary": "hierarchy: click them on the tree, under Hierarchies",
}
"""What a heading says under the pointer."""
DOMAINS = {
    "weight": "above 0",
    "interval": "above 0",
    "max-width": "0 or more",
    "max-set": "1 or more",
    "at-least": "1 or more",
}
"""The numbers that each limit takes."""
ONLY_QUASI_IDENTIFIERS = "weights and limits are those of quasi-identifiers"
NOT_A_NUMBER = "a limit is a number; empty is no limit"
NOT_FINITE = "a limit is a finite number; empty is no limit"


def other_kind(column: str, limit: str, home: str, kind: str) -> str:
    """Return why a limit does not go with a column; `home` is the kind that it goes with."""
    sentence = "boundaries of a hierarchy are clicked on its tree" if kind == "hierarchy" else f"it is {kind}"
    return f"column {column!r}: {limit} goes with kind {home}; {sentence}"


def outside_domain(column: str, limit: str) -> str:
    """Return which numbers a limit takes."""
    return f"column {column!r}: {limit} is a number {DOMAINS[limit]}"


# Whether it can run

NO_TABLE = "No table is open: begin with the screen Data."
CODING = "The table is being coded under its columns…"
CANNOT_RUN_YET = "This cannot run yet."
READY = "Ready to run."
METHOD_CANNOT_RUN = "cannot run:"


def more_problems(number: int) -> str:
    """Return how many problems are not shown."""
    return f"and {number:,} more"


def runs(methods: int, ks: int, runs: int) -> str:
    """Return how many runs there will be."""
    return f"{plural(methods, 'method')} × {plural(ks, 'value')} of k: {plural(runs, 'run')}, on the screen Compare."
