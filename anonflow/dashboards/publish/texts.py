"""The texts of the screen Publish."""

from __future__ import annotations

from collections.abc import Sequence

# The screen

TITLE = "Publish"
LEAD = "One run becomes one release. The files in green may be published; the files in red stay with the owner of the table."
NO_RUN = "No run yet: go to Compare and press Run, choose a run there, then come back to publish it."
RUN = "Run"

# What is published

WHAT_IS_PUBLISHED = "What is published"
METHOD = "method"
K = "k"
RECORDS = "records"
LOSS = "information loss (GCP)"
SUPPRESSED = "suppressed"
ONLY_ONE = "Somebody who has two releases about the same people can compare them and learn more. Publish only one, or none of the earlier ones."
AGREE = "Draw another release: I will publish only one of them"
DRAW = "Draw the release"
DRAWING = "Drawing…"
ALREADY_DRAWN = "Already drawn"


def promise_of_rows(guarantee: str) -> str:
    """Return the promise of a guarantee that has no sentence of its own."""
    return f"Every row: {guarantee}."


def drawn_before(runs: Sequence[str]) -> str:
    """Return that other runs of the table were drawn already, by name."""
    return f"A release of this table was drawn already: {', '.join(runs)}."


# The checks

NO_RELEASE = "no release"
AT_WORK = "Drawing one assignment, shuffling the rows, verifying, attacking."
NOTHING_DRAWN = (
    "Nothing is drawn yet. The draw gives every row one of its possible originals at random, then an independent verifier "
    "checks the result against the table."
)
RELEASE_CARD = "Release card"
VERIFIED = "What was verified"
CHECKS = ("verdict", "criterion", "records failing", "how")
NOT_CHECKED = "not checked"
FAILS = "fails"
FROM_THE_DATA = "from the data"
BEFORE_YOU_PUBLISH = "Before you publish"
FAILED_CHECK = "A check failed: there is nothing to download."
PASSED = "Every check passed: this release may be published."
LIMITS = "What it does not protect against"


def attacked(headline: str) -> str:
    """Return the verdict on a release whose card has lines that fail."""
    return (
        f"{headline} Every check passed, so the release keeps what its method promises; these lines say what that does not "
        "prevent here."
    )


# Files to publish

PUBLIC = "Public"
MAY_BE_PUBLISHED = "Public: may be published"
LINES_FAIL = "For the public, but lines of the card fail: settle them, or accept them, before you publish"
ONE_FILE = "All of this, one file"
ABOUT_PUBLIC = "All files of this card together: you may publish all of them."
TABLES = {
    ".csv": ("Release, CSV", "The published table."),
    ".parquet": ("Release, Parquet", "The same table in a smaller file."),
    ".parquet/": (
        "Release, Parquet folder",
        "The same rows, a million in each file of a folder; unpack it under its name.",
    ),
    ".sav": ("Release, SPSS", "The same table for SPSS: texts are codes with value labels."),
    ".dta": ("Release, Stata", "The same table for Stata: texts are codes with value labels."),
}
"""Ending of the file's name -> title, description."""

CSV_METADATA = "Description of the CSV"
ABOUT_CSV_METADATA = "What its cells mean, for programs (CSVW); keep it beside the CSV file."
PACKAGE = "Description of the others"
ABOUT_PACKAGE = "What the cells of the Parquet, SPSS and Stata files mean, for programs (a data package); keep it beside them."
REPORT = "Report, HTML"
ABOUT_REPORT = "What was done and checked; column names and counts, never a value."
REVIEW = "Reviewer's report"
ABOUT_REVIEW = (
    "Modelled on EMA's anonymization report, with the threshold 0.09, controls held out, and fields to sign; print it as a "
    "PDF from any browser."
)
FIGURES = "Figures, SVG"
ABOUT_FIGURES = "The report's pictures as files: loss by column, cells, sizes of classes."

# Files that stay with the owner

OWNERS = "The owner's files"
OWNER_ONLY = "Owner only: keep these to yourself"
ABOUT_OWNERS = "Certificate, flow and script together, without the seed. Nobody else may have it."
CERTIFICATE = "Certificate"
ABOUT_CERTIFICATE = (
    "The proof: which originals each row may stand for. It makes a later verification fast. Keep it secret: with it, "
    "everybody in the release is easier to find."
)
FLOW = "Flow file, YAML"
ABOUT_FLOW = "Repeats this run, with the seed: anonflow run FLOW. It holds column names, and the labels of hierarchies."
SCRIPT = "The same as a script"
ABOUT_SCRIPT = "Python that runs the flow file beside it and, with the seed, gives this release."
SEED = "Seed"
ABOUT_SEED = "The secret that repeats the draw. Whoever has it and the table knows which row is whose."
TO_REPEAT = (
    "To repeat the run: put the flow beside the table, save the seed to a file that only you can read, then"
)
TO_REPEAT_COMMAND = "anonflow run FLOW --seed-file SEED"
THE_SEED = "The seed"
SEED_IS_APART = (
    "is not among the files. With it and the table anybody can repeat the draw and learn whose row is whose. Never put it "
    "beside the release."
)
SHOW_SEED = "I know that the seed reveals whose row is whose: offer it for download"

# The reviewer's report

FILLED_IN = "The reviewer's report, filled in"
ABOUT_FILLED_IN = "Its measured part is drawn with the release. What you fill in is kept with the project. Signatures are by hand."
PUBLIC_WITH_FIELDS = "Public: may be published, with what you write here"
REPORT_HTML = "The report, HTML"
REPORT_PDF = "The report, PDF"
PRINT = "Make the PDF"
PRINTING = "Printing…"
DRAW_FIRST = "Draw the release first: then the report can be downloaded."
NO_BROWSER = (
    "There is no browser on the server that could print a PDF: open the HTML page, and print it from yours."
)

# The link

LINK = "A link to this configuration"
ABOUT_LINK = "It contains methods, k, settings and the name of a built-in table. It never contains data."
COPY = "Copy"
COPIED = "Copied"
OPEN_A_TABLE = "Open a table first."
NOTHING_OF_YOUR_FILE = (
    "It contains nothing of your file, not even column names: whoever opens it uploads a file first."
)
MOST_LISTED = 8
"""Settings that are named beside the link, at most."""


def not_in_link(settings: Sequence[str]) -> str:
    """Return which settings the link does not bring back."""
    listed = ", ".join(settings[:MOST_LISTED]) + (", ..." if len(settings) > MOST_LISTED else "")
    return f"Not in the link, because it may reveal something about the data: {listed}. The flow file has it."
