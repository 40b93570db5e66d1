"""The texts of the screen Compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anonflow.hierarchy.wording import plural

# The screen

TITLE = "Compare"
LEAD = (
    "Every chosen method with every chosen k, side by side: what it loses, how useful the result is, how long it takes, and how "
    "well it protects."
)
NO_RUN = "No run yet: choose methods and a k above, then press Run. Results appear here one by one."
OPEN_A_TABLE = "No table is open: open one on the screen Data first."


def is_better(better: str) -> str:
    """Return which of two numbers is better."""
    return f"{better} is better"


# To run

RUN = "Run"
METHODS = "Methods"
KS = "k, one or several"
KS_EXAMPLE = "5, 10, 25"
WRONG_KS = "k is a whole number of at least 2, or several with commas, such as 5, 10, 25."
FIVE = "The five of the papers"
CANCEL = "Cancel"
WAITING = "waiting"


def run_button(possible: int, missing: int) -> str:
    """Return what the button Run says: how many runs there are, and how many of them are missing."""
    if 0 < missing < possible:
        return f"Run the {missing} missing"
    return f"{RUN} {possible}" if possible > 1 else RUN


def cannot_run(problems: Iterable[str]) -> str:
    """Return why nothing can run."""
    return "This cannot run yet: " + "; ".join(problems)


def cannot_all_run(impossible: Iterable[tuple[str, str]]) -> str:
    """Return which runs cannot be: their names, and why."""
    return (
        "The others can run. These cannot: " + "; ".join(f"{names}: {why}" for names, why in impossible) + "."
    )


def progress_of(run: str) -> str:
    """Return what the progress bar of a run shows."""
    return f"{run}: share of partitions done"


# The table of runs

RUNS = "Runs"
ABOUT_RUNS = "↓ lower is better, ↑ higher is better. A tap on a row, or on a mark in a figure, loads that run into Explore and Publish."
RUN_COLUMN = "run"
PARTITION_COLUMN = "partition"
GCP = "GCP"
USEFULNESS = "usefulness"
SUPPRESSED = "suppressed"
SECONDS = "seconds"
ABOUT_SECONDS = "of the method alone, added up over partitions, without compiling; lower is better"
CHECKS = "checks"
FRONTIER_COLUMN = "frontier"
LOSS_BY_COLUMN = "loss by column"
ABOUT_LOSS_BY_COLUMN = "what each column loses; lower is better"
RECORDS_BY_LOSS = "records by loss"
BEST = "● best"
WHOLE_TABLE = "whole table"
NO_RESULT = "✗ no result"
RECORDS_PICTURE = "records by their loss, from 0 % left to 100 % right"


def losses_picture(losses: Iterable[tuple[str, float]]) -> str:
    """Return the losses of a run's columns, each between 0 and 1."""
    words = ", ".join(f"{name} {100 * loss:.0f} %" for name, loss in losses)
    return f"{LOSS_BY_COLUMN}: {words}"


def checks_hold(ok: bool, passed: int, checks: int) -> str:
    """Return how many checks of a run hold."""
    return f"{'✓' if ok else '✗'} {passed} of {checks} hold"


# The chosen run

SHOWN = "Run on the screens Explore and Publish"
TAKE_UP = "Use its settings"
FILTER = "Show only runs with"
FILTER_EXAMPLE = "a method, k, a name or a note"
RUN_NAME = "Its name"
RUN_NAME_EXAMPLE = "a name of your own"
NOTE = "A note"
NOTE_EXAMPLE = "a note on it"
PIN = "Pinned: listed first, and kept"
DELETE = "Delete this run"

# The figures

COSTS = "What each method costs"
DRAWN = "Drawn against k"
FIGURES = "Figures, SVG"
RISK_AND_UTILITY = "Risk and utility"
ABOUT_RISK_AND_UTILITY = "Down and to the left is better. No run beats those on the dashed line in both. Tap a mark to load the run."
RISK = "Risk"
PROMISED = "promised: one in k"
MEASURED = "measured: for the most exposed person"
PROMISED_AXIS = "risk promised: probability 1/k of finding a record"
MEASURED_AXIS = "risk measured: the largest probability that an attacker points at a person's row"
MEASURED_ON_A_DRAW = "As the release card has it, on a draw that is not published."


def promise_none(names: Sequence[str]) -> str:
    """Return which runs are not drawn, because they promise no probability."""
    return f"Not drawn: {', '.join(names)}. What they guarantee is no probability; see the measured risk."


def risk_not_measured(problem: str) -> str:
    """Return why the risk was not measured."""
    return f"The risk could not be measured: {problem}"


def measuring_risk(left: int, runs: int) -> str:
    """Return how many runs were not attacked yet."""
    return f"Measuring: {left} of {plural(runs, 'run')} left."


# Two of the runs

PAIR = "Two runs side by side"
FIRST_RUN = "First run"
SECOND_RUN = "Second run"
CHOOSE_TWO = "Choose two different runs."
NO_DIFFERENCE = "The two do not differ."
DIFFERENCES = "What differs (↓ lower is better)"
LOSSES_OF_BOTH_PICTURE = "Loss by column of two runs"
LOSS = "information loss (GCP)"
SUPPRESSED_RECORDS = "suppressed records"
GUARANTEE = "guarantee"

# History

HISTORY = "History"
ABOUT_HISTORY = (
    "Edits of the flow, the latest first. Undo takes back an edit, never a run: the table of runs stays."
)
UNDO = "Undo"
REDO = "Redo"
NO_EDITS = "Nothing was changed since the table was opened."


def edits_before(number: int) -> str:
    """Return how many edits are not listed."""
    return f"and {plural(number, 'earlier edit')}"


# What analyses lose

UTILITY = "What analyses lose"
ABOUT_UTILITY = (
    "Computed from the originals and from plausible tables of what each run would publish; a suppressed row counts as lost. "
    "These numbers reveal something about the originals: do not publish them."
)
OWNERS_VIEW = "Owner's view"
MEASURE = "Measure"
EVERYTHING = "all analyses that need no settings"
"""The choice that stands for several measures."""
MEASURE_EVERY_RUN = "Measure every run"
STOP = "Stop"
CLEAR = "Clear"
AGAINST_K = "Against k"
STOPPED = "Stopped: what was measured is kept."


def about_measure(sentence: str, better: str, cost: str, extra: str) -> str:
    """Return a measure's description, its better direction, its cost, and the extra that it needs, if any."""
    parts = [sentence]
    if better:
        parts.append(f"{is_better(better).capitalize()}.")
    parts.append(f"Cost: {cost}.")
    if extra:
        parts.append(f"Needs {extra}.")
    return " ".join(parts)


def range_of(column: str, low: object, high: object) -> str:
    """Return a range of numbers in a column, such as ``Age 30 to 39``; None where it has no end."""
    if high is None:
        return f"{column} from {low}"
    return f"{column} up to {high}" if low is None else f"{column} {low} to {high}"


def all_of(conditions: Sequence[str]) -> str:
    """Return conditions that hold together."""
    return " and ".join(conditions)


def measuring(measure: str, run: str, place: int, number: int) -> str:
    """Return what is measured now."""
    return f"Measuring {measure} of {run}: {place} of {number}."


def measured_all(number: int) -> str:
    """Return that everything was measured."""
    return f"Measured: {number} of {number}."


# The settings of a measure

EVERYBODY = "everybody"
FROM = "from"
TO = "to"
IS_ONE_OF = "is one of"
VALUES_EXAMPLE = "value, value"
FORMULA_EXAMPLE = "income ~ age + education"


def column_of(condition: str) -> str:
    """Return the label of the column of a condition."""
    return f"{condition}: column"
