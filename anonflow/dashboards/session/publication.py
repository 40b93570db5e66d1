"""The publication of a finished run: the release, the report, the certificate, and the files that repeat it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anonflow import engine, strict_yaml
from anonflow.archive import zipped
from anonflow.criteria.verify import verify
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.files.memory import ReleaseMemory
from anonflow.engine.context import Session
from anonflow.engine.execution.events import Event, EventStream, StepStarted
from anonflow.engine.execution.totals import with_findings
from anonflow.engine.publish import attack, cards_of_result, release_of, with_answers
from anonflow.engine.report.card import ReleaseCard, judged_risk
from anonflow.engine.report.report import render
from anonflow.engine.report.reviewer import review
from anonflow.errors import AnonflowError, ParameterError
from anonflow.release import Release, publish, write_release
from anonflow.risk.attacker import THRESHOLD
from anonflow.table.files.metadata_file import KINDS
from anonflow.table.files.parquet_metadata import FOLDER_ENDING

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.criteria.verification import Finding
    from anonflow.table.identification.released_people import ReleasedPeople

FORGOTTEN = (
    "when this session ends, anonflow forgets who is in this release, and will not notice a second release of the same "
    "people; keep the file Earlier releases, and upload it next year, or start the dashboards with an owner's folder: --owner FOLDER, in a "
    "notebook af.dashboard(table, owner=FOLDER)"
)
"""The remark if marks of people are kept no longer than the session."""

DIGITS = 32
"""Hexadecimal digits of a seed file, at least."""


@dataclass(frozen=True, eq=False)
class Publication:
    """A release with all its files."""

    ok: bool
    """Whether every check passed; otherwise there is no release, and the bytes are empty."""
    findings: tuple[Finding, ...]
    """What was verified on the release."""
    tables: Mapping[str, bytes] = field(repr=False)
    """Ending of a file's name -> the release as such a file: what is published. A folder of Parquet files, packed, is
    ``.parquet/``."""
    report: bytes = field(repr=False)
    """An HTML page that may be published with it."""
    certificate: bytes = field(repr=False)
    """The owner's proof (.npz)."""
    flow: str = field(repr=False)
    """The flow file that repeats the run, given the seed."""
    seed: str = field(repr=False)
    """The text of the seed file: a secret, the owner's."""
    warnings: tuple[str, ...] = ()
    """What the owner should know before publishing."""
    attacks: pd.DataFrame | None = field(default=None, repr=False)
    """As :func:`anonflow.attack` gives it; the owner's."""
    release: Release | None = field(default=None, repr=False)
    card: ReleaseCard | None = None
    """Promise, measured risk, and remedies, which have no price until it is asked for (:func:`card_of_run`)."""
    review: bytes = field(default=b"", repr=False)
    """The page for a reviewer, with the threshold 0.09: it may be published, too."""
    again: str = ""
    """How many of its people are in an earlier release, and what that means; empty if none is known to be, or if it goes on from them."""
    unwritten: Mapping[str, str] = field(default_factory=dict)
    """Ending -> why there is no such file, a sentence."""
    people: ReleasedPeople | None = field(default=None, repr=False)
    """Of a release that goes on from earlier ones: whose each row may be, which the owner's folder keeps."""

    @property
    def table_csv(self) -> bytes:
        """The release as a CSV file; empty if there is none. Notebooks read it."""
        return self.tables.get(".csv", b"")


def card_of_run(
    seed: int,
    result: engine.RunResult,
    release: Release | None = None,
    attacks: pd.DataFrame | None = None,
    prices: bool = False,
) -> ReleaseCard | None:
    """Return the card of the release that a run's own seed draws; None without a result.

    With prices, remedies of lines that fail are tried, each a run of the method.
    """
    anonymization = result.anonymization
    if anonymization is None:
        return None
    release = release or publish(anonymization, seed=seed, rehearsal=True)
    promised = anonymization.guarantee if release.certificate is None else release.certificate.criterion
    findings = verify(
        anonymization.table, release, ["covers", promised], anonymization.k, certificate=release.certificate
    )
    checked = with_findings(result, findings.findings)
    return cards_of_result(checked, anonymization.table, release, attacks, (None,), seed, prices)[0]


def measured_risk(seed: int, result: engine.RunResult) -> float:
    """Return the largest probability that an attacker who knows quasi-identifiers points at somebody's row, as the card has it."""
    assert result.anonymization is not None
    release = publish(result.anonymization, seed=seed, rehearsal=True)
    return judged_risk(result.anonymization, release, None, seed, by_keys=True)


STEPS = {
    "draw": "drawing one assignment, and shuffling the rows",
    "verify": "verifying the release against the table",
    "attack": "letting attackers try",
    "card": "judging the release",
    "hold out": "attacking people who are held out",
    "files": "writing the files",
}
"""What a draw does, one after the other, in words."""


def publication(
    spec: DraftSpec,
    seed: int,
    result: engine.RunResult,
    folder: Path,
    memory: ReleaseMemory,
    tell: Callable[[str, int, int], None] = lambda words, count, of: None,
) -> Publication:
    """Draw, verify, attack and report a finished run, by the flow that is this run alone, as :func:`anonflow.engine.run` would with the same seed.

    Parameters
    ----------
    tell : callable
        Called with each step in words, how many are done, and how many there are; what it raises ends the draw.

    Raises
    ------
    ParameterError
        If the run has no result.
    """
    anonymization = result.anonymization
    if anonymization is None:
        raise ParameterError(f"{result.name}: has no result to publish; choose another run")
    table = anonymization.table
    flow = spec.loaded(folder).going_on_from(memory.folder)
    events = EventStream()
    session = Session(flow, events, seed=seed)

    def begin(step: str) -> None:
        tell(STEPS[step], list(STEPS).index(step), len(STEPS))

    def heard(event: Event) -> None:
        if isinstance(event, StepStarted):
            begin(event.step)

    events.listen(heard)
    release, findings = release_of(session, table, replace(result, number=0))
    result = with_findings(replace(result, number=0), findings)
    text = strict_yaml.dumps(spec.document)
    secret = f"{seed:0{DIGITS}x}\n"
    if not result.ok:
        return Publication(False, result.findings, {}, b"", b"", text, secret, tuple(session.warnings))
    attacks = attack(session, table, release, result)
    form = flow.spec.publish.report
    limit = THRESHOLD if form is None or form.limit is None else form.limit  # as :func:`review` has it
    begin("card")
    cards = cards_of_result(result, table, release, attacks, (None, limit), seed, prices=False)
    report = engine.RunReport(
        flow.name, (result,), release, warnings=tuple(session.warnings), attacks=attacks, card=cards[0]
    )
    html = render(flow, table, report, result.seconds)
    begin("hold out")
    judged = with_answers(session, replace(report, card=cards[1]), result)
    page = review(flow, table, judged, result)
    assert release.certificate is not None
    begin("files")
    again, people, remark = "", None, ""
    if anonymization.earlier is None:
        overlap = memory.overlap(table, release)
        again = remark = overlap.sentence() if overlap else ""
    else:
        people, remark = memory.checked(anonymization, release)
    warnings = [
        *session.warnings,
        *filter(None, [remark]),
        *([] if memory.lasts else [FORGOTTEN]),
    ]
    with tempfile.TemporaryDirectory(prefix="anonflow-") as place:
        proof = Path(place) / "certificate.npz"
        release.certificate.save(proof)
        tables, unwritten = _tables(release, Path(place))
        contents = tables, html.encode(), proof.read_bytes()
    return Publication(
        True, result.findings, *contents, text, secret, tuple(warnings), attacks, release,
        cards[0], page.encode(), again, unwritten, people,
    )  # fmt: skip


def _tables(release: Release, folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the release as each kind of file, by ending, and why there is no file of some kinds."""
    tables, unwritten = {}, {}
    for number, ending in enumerate(KINDS):
        path = folder / f"{number}{ending.rstrip('/')}"
        try:
            write_release(release, f"{path}/" if ending == FOLDER_ENDING else path)
        except AnonflowError as error:
            unwritten[ending] = error.renamed(str(path), f"release{ending}").problems[0]
            continue
        if path.is_dir():
            tables[ending] = zipped({part.name: part.read_bytes() for part in sorted(path.iterdir())})
        else:
            tables[ending] = path.read_bytes()
    return tables, unwritten
