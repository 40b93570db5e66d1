"""The model of the screen Publish: a release of the chosen run, drawn once."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import param

from anonflow.archive import zipped
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.registry import promise_of
from anonflow.dashboards.components.figure_files import figures_of_run
from anonflow.dashboards.components.release_card import TRYING
from anonflow.dashboards.components.released_before import ReleasesModel
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session import share_link
from anonflow.dashboards.session.diff import differences
from anonflow.dashboards.session.draft_spec import columns_of, written
from anonflow.dashboards.session.files.table_sources import first_columns
from anonflow.dashboards.session.publication import Publication, card_of_run
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.screen_work import Background
from anonflow.engine.report.card import ReleaseCard
from anonflow.engine.report.report import limits_of
from anonflow.errors import AnonflowError
from anonflow.table.files.metadata_file import KINDS, PACKAGE, metadata_text
from anonflow.table.files.parquet_metadata import FOLDER_ENDING
from anonflow.table.infer import entries_of

ONE_FILE = "All of this, one file"
TABLE_FILES = {
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

TABLES = {ending.strip(".").replace("/", "-folder"): ending for ending in KINDS}
"""The files that have the published table -> the ending of the name that the shell writes them to."""

PUBLIC = {
    "public": (ONE_FILE, "public.zip", "All files of this card together."),
    **{
        file: (
            TABLE_FILES[ending][0],
            f"release{ending}".replace(FOLDER_ENDING, "-parts.parquet.zip"),
            TABLE_FILES[ending][1],
        )
        for file, ending in TABLES.items()
    },
    "csv-metadata": (
        "Description of the CSV",
        "release.csv-metadata.json",
        "What its cells mean, for programs (CSVW); keep it beside the CSV file.",
    ),
    "package": (
        "Description of the others",
        PACKAGE,
        "What the cells of the Parquet, SPSS and Stata files mean, for programs (a data package); keep it beside them.",
    ),
    "report": (
        "Report, HTML",
        "report.html",
        "What was done and checked; column names and counts, never a value.",
    ),
    "review": (
        "Reviewer's report",
        "review.html",
        (
            "Modelled on EMA's anonymization report, with the threshold 0.09, controls held out, and fields to sign; print it as a "
            "PDF from any browser."
        ),
    ),
    "figures": (
        "Figures, SVG",
        "figures.zip",
        "The report's pictures as files: loss by column, cells, sizes of classes.",
    ),
}
"""The files that may be published: title, ending of the file's name, description."""

OWNER = {
    "owner": (
        ONE_FILE,
        "owner.zip",
        "Certificate, flow and script together, without the seed. Nobody else may have it.",
    ),
    "releases": (
        "Earlier releases",
        "releases.zip",
        (
            "Who is in which release of this session, and whose each row may be, with a secret key: upload it here next year, or unpack it beside "
            "a flow. Whoever has it can undo the releases."
        ),
    ),
    "certificate": (
        "Certificate",
        "certificate.npz",
        (
            "The proof: which originals each row may stand for. It makes a later verification fast. Keep it secret: with it, "
            "everybody in the release is easier to find."
        ),
    ),
    "flow": (
        "Flow file, YAML",
        "flow.yaml",
        "Repeats this run, with the seed: anonflow run FLOW. It holds column names, and the labels of hierarchies.",
    ),
    "script": (
        "The same as a script",
        "script.py",
        "Python that runs the flow file beside it and, with the seed, gives this release.",
    ),
    "seed": (
        "Seed",
        "seed.txt",
        "The secret that repeats the draw. Whoever has it and the table knows which row is whose.",
    ),
}
"""The files that stay with the owner."""

_SCRIPT = '''"""The run {name} as a script; it gives the release that the screen gave.

Put it beside the flow file {flow} and the table that the flow names, and save the seed where only you can read it:

    python {script} SEED_FILE
"""

import sys
from pathlib import Path

import anonflow as af

here = Path(__file__).parent
seed = int(Path(sys.argv[1]).read_text().strip(), 16)
report = af.run(here / {flow!r}, seed=seed, again=True)  # with the seed, the same draw
if not report.ok:
    sys.exit("a check failed: nothing was published")
result = report.results[0]      # result.anonymization is the owner's
release = report.release        # release.frame is what is published, and lies in the folder out
'''
"""The script that repeats a run."""


class PublishModel(ScreenModel):
    """The release of the chosen run.

    A run is drawn when it is asked for, with the run's own seed, so that asking again gives the same release.
    ``drawn`` names the runs of the open table that were drawn before, ``earlier`` says that people of it were released
    before, by whatever process: a second release can be intersected with the first, so it needs ``agreed``.
    """

    publication = param.Parameter(None, doc="Publication of the chosen run, or None before it is drawn.")
    agreed = param.Boolean(default=False, doc="Whether the user wants a second draw of the same table.")
    people = param.Integer(
        default=2,
        bounds=(2, None),
        doc="How many people all releases together leave everybody, of a run that goes on from earlier ones.",
    )
    guess = param.Dict(
        default=None,
        allow_None=True,
        doc="Columns that the open file begins with; None while they are guessed.",
    )

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self.guessing = Background(workspace.turns, at_once=True)
        self.releases = ReleasesModel(workspace)
        self._guessed: Any = None
        self._changed()

    @property
    def drawn(self) -> list[str]:
        """Other runs of this table that were drawn in this session, by name."""
        run = self.run
        return [
            f"{name} (#{id})"
            for id, name in self.noted.drawn.get(self._table(), [])
            if run is None or id != run.id
        ]

    @property
    def was_drawn(self) -> bool:
        """Whether the chosen run was drawn before the session was interrupted, and not since: its seed gives the same release again."""
        run = self.run
        if run is None or self.publication is not None:
            return False
        return any(id == run.id for id, _ in self.noted.drawn.get(self._table(), []))

    @property
    def needs_agreement(self) -> bool:
        """Whether drawing would be the second release of these people, and that was not agreed to."""
        return (
            self.run is not None
            and bool(self.drawn or self.earlier)
            and not self.agreed
            and self.run.id not in self.noted.publications
        )

    @property
    def unconfirmed(self) -> list[str]:
        """Columns of the chosen run that are published though nobody confirmed their roles."""
        return [] if self.run is None else self.workspace.data.unconfirmed(self.run.spec)

    def confirm(self) -> None:
        """Confirm the roles that the columns have in the chosen run."""
        self.workspace.data.confirm(dict.fromkeys(self.unconfirmed, ""))

    @property
    def earlier(self) -> str:
        """How many people of the chosen run are in an earlier release, once it was tried; empty if none is known to be."""
        run = self.run
        return "" if run is None else self.noted.earlier.get(run.id, "")

    def draw(self) -> None:
        """Draw, verify, attack and report the chosen run in the background; ``publication`` has the result."""
        run = self.run
        if run is None or self.busy or self.needs_agreement or self.unconfirmed:
            return
        if run.id in self.noted.publications:
            self.publication = self.noted.publications[run.id]
            return
        table, agreed = self._table(), self.agreed

        def done(publication: Publication) -> None:
            if publication.again and not agreed:
                self.noted.earlier[run.id] = publication.again
                self._changed()
                return
            self.noted.publications[run.id] = publication
            self.workspace.drawings += 1
            if publication.ok:
                self.workspace.runs.note_drawn(table, run)
            self._changed()

        tell = self.background.tell
        self.compute(
            lambda: self.workspace.publish(run.id, agreed, tell),
            done,
            "drawing the release",
            publication=None,
        )

    @property
    def goes_on(self) -> bool:
        """Whether the chosen run goes on from earlier releases."""
        return self.run is not None and self.run.spec.earlier is not None

    @property
    def divides(self) -> bool:
        """Whether the chosen run makes classes, which can be divided when somebody left; components cannot."""
        return self.run is not None and promises_classes(self.run.result.guarantee)

    @property
    def obstacle_to_going_on(self) -> str:
        """Why the chosen run cannot go on from earlier releases, a sentence; empty if it can."""
        run = self.run
        if run is None or run.result.anonymization is None:
            return ""
        if run.spec.steps.diversify is not None:
            return "This run makes classes diverse, which would unite the people of earlier releases with others: run it without diversity."
        table = run.result.anonymization.table
        if not set(table.unit_columns) - set(table.qi_columns):
            return "It needs a column that identifies people in every year: give one the role identifier on the screen Data."
        return ""

    @property
    def plain(self) -> FinishedRun | None:
        """The run with the settings of the chosen one, but without earlier releases; the latest of several."""
        run = self.run
        if run is None:
            return None
        settings = self.workspace.runs.settings_of(run.id).changed([(("earlier",), None)])
        for other in reversed(self.workspace.runs.finished):
            if other.spec.earlier is None and self.workspace.runs.settings_of(other.id) == settings:
                return other
        return None

    def go_on(self, goes_on: bool = True) -> None:
        """Take up the settings of the chosen run, with the earlier releases or without them, and run them; the new run is chosen when it is done."""
        run = self.run
        if run is None:
            return
        people = min(self.people, run.result.k)
        earlier = ({"people": people} if self.divides else {}) if goes_on else None
        try:
            self.workspace.starts.apply(run.id, [(("earlier",), earlier)])
        except AnonflowError as error:
            self.problem = on_screen(error.message)

    def price(self) -> None:
        """Try the remedies of the card's lines that fail, in the background; the publication's card has their prices then."""
        run, publication = self.run, self.publication
        if run is None or publication is None or self.busy:
            return

        def done(card: ReleaseCard | None) -> None:
            self.noted.publications[run.id] = replace(publication, card=card)
            self._changed()

        self.compute(
            lambda: card_of_run(run.seed, run.result, publication.release, publication.attacks, prices=True),
            done,
            TRYING,
        )

    def content(self, file: str) -> bytes:
        """Return one of the files of ``PUBLIC`` or ``OWNER``; empty before the draw, or after a failed check.

        Raises
        ------
        KeyError
            If there is no such file.
        """
        if file not in PUBLIC and file not in OWNER:
            raise KeyError(file)
        publication = self.publication
        if publication is None or not publication.ok:
            return b""
        if file in ("public", "owner"):
            files = PUBLIC if file == "public" else OWNER
            parts = [part for part in files if part not in ("public", "owner", "releases", "seed")]
            return zipped({self.file_name(part): self.content(part) for part in parts if self.content(part)})
        if file == "figures":
            return zipped({} if self.run is None else figures_of_run(self.run.result))
        if file == "script":
            return _script(
                "" if self.run is None else self.run.result.name,
                self.file_name("flow"),
                self.file_name("script"),
            ).encode()
        if file == "releases":
            return self.workspace.memory.packed()
        if file == "csv-metadata":
            return self._description(["csv"])
        if file == "package":
            return self._description([form for form in TABLES if form != "csv" and self.content(form)])
        if file in TABLES:
            return self._content_of_table(file)
        value = getattr(publication, file)
        return value.encode() if isinstance(value, str) else bytes(value)

    def _content_of_table(self, file: str) -> bytes:
        content = self.publication.tables.get(TABLES[file], b"")
        if not content or not TABLES[file].endswith("/"):
            return bytes(content)
        folder = self.file_name(file).removesuffix(".zip")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return zipped({f"{folder}/{name}": archive.read(name) for name in archive.namelist()})

    def _description(self, files: list[str]) -> bytes:
        """Return the description of some of the tables, as they are named; empty without one."""
        release = self.publication.release
        if release is None or release.about is None:
            return b""
        text: str | None = None
        with tempfile.TemporaryDirectory(prefix="anonflow-") as folder:
            for file in files:
                table = Path(folder, self.file_name(file).removesuffix(".zip"))
                table.touch()  # a data package keeps what it says of tables that are there
                text = metadata_text(release.about, table, text)
        return (text or "").encode()

    def obstacle(self, file: str) -> str:
        """Return why the chosen run's release has no such file, a sentence; empty where it has one."""
        publication = self.publication
        return "" if publication is None else publication.unwritten.get(TABLES.get(file, ""), "")

    def file_name(self, file: str) -> str:
        """Return the name of a downloaded file: flow, method and k, and nothing of the table."""
        _, ending, _ = (PUBLIC | OWNER)[file]
        run = self.run
        if run is None or ending == PACKAGE:
            return ending
        name = f"{run.spec.flow}-{run.result.algorithm}-k{run.result.k}"
        return f"{re.sub('[^A-Za-z0-9._-]+', '-', name)}-{ending}"

    # ----------------------------------------------------------------------------------------- words

    def limits(self) -> list[str]:
        """Return the attacks that the release does not prevent, a sentence each."""
        run = self.run
        return limits_of() if run is None else limits_of(run.result.guarantee)

    def promise(self) -> str:
        """Return the promise of the release, a sentence, and one more of diversity; empty without a run."""
        run = self.run
        if run is None:
            return ""
        main_promise = promise_of(run.result.guarantee, run.result.k) or f"Every row: {run.result.guarantee}."
        return " ".join([main_promise, *(f"{sentence}." for sentence in run.result.promises)])

    def link(self) -> str:
        """Return the query that restores the draft's configuration: names and parameters, never data."""
        return "" if self.workspace.data.frame is None else share_link.link(self.workspace.draft.spec)

    def not_in_the_link(self) -> list[str]:
        """Return settings of the draft that the link does not bring back, by name; none while they are looked for."""
        spec, columns = self.workspace.draft.spec, self._first_columns()
        if self.workspace.data.frame is None or columns is None:
            return []
        first = spec.with_table(columns=columns_of(columns))
        back = share_link.merged(first, share_link.configuration(self.link()))
        return list(dict.fromkeys(place for place, _, _ in differences(back, spec)))

    # ---------------------------------------------------------------------------------------- inside

    def _first_columns(self) -> dict[str, Any] | None:
        """Return the columns that opening the draft's table begins with; None while they are guessed, off the event loop."""
        frame, source = self.workspace.data.frame, self.workspace.data.source
        if frame is None:
            return {}
        if source.dataset is not None:
            return first_columns(source.dataset, frame, False)
        if self._guessed is not frame:
            self._guessed = frame
            self.guess = None
            self.guessing.of_records(
                len(frame),
                lambda: entries_of(self.workspace.data.advice(frame, self.guessing.tell)),
                lambda columns: self.param.update(guess=columns),
                lambda problem: None,
            )
        return self.guess

    def _table(self) -> str:
        return json.dumps(written(self.workspace.data.source), sort_keys=True, default=str)

    @param.depends("workspace.runs.chosen", "workspace.runs.finished", watch=True)
    def _changed(self) -> None:
        run = self.run
        self.param.update(
            publication=None if run is None else self.noted.publications.get(run.id),
            problem="",
            agreed=False,
        )
        self._count()

    @param.depends("workspace.uploads", watch=True)
    def _count(self) -> None:
        """Count the chosen run's people who are in earlier releases."""
        run = self.run
        table = None if run is None or run.result.anonymization is None else run.result.anonymization.table
        self.releases.count(table, None if self.publication is None else self.publication.release)


def _script(name: str, flow: str, script: str) -> str:
    """Return the script of a run, by its name, and the names of the files of its flow and of itself."""
    plain = "".join(letter for letter in name if letter.isprintable() and letter not in '"\\\\')
    return _SCRIPT.format(name=plain, flow=flow, script=script)
