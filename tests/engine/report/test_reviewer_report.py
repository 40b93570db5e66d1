"""`report: {template: ema}`: its sections, its verdicts, its files, and what is wrong with it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import jinja2
import pytest

from anonflow import engine
from anonflow.engine.report import pdf, report
from anonflow.engine.report.reviewer import SECTIONS, SIGNERS
from anonflow.errors import FlowError
from tests.cases.flow_files import REPORTED, people, write_flow
from tests.cases.runs import shell

SEED = 0x1234567890ABCDEF1234567890ABCDEF
EMA = "{table: out/release.csv, report: {template: ema, file: out/report.html}}"


def reviewed(folder: Path, publish: str = EMA, **options: object) -> str:
    report = engine.run(write_flow(folder, n=120, publish=publish, **options), seed=SEED)
    assert report.ok
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


def test_the_sections_the_questions_and_the_fields(tmp_path: Path) -> None:
    page = reviewed(tmp_path, anonymize="{algorithm: mondrian, k: 12}", partition="{}")
    titles = re.findall(r'<h2 id="section-(\d+)">\d+\. ([^<]*)</h2>', page)
    assert titles == [(str(number), title) for number, title in enumerate(SECTIONS, 1)]
    assert all(signer in page for signer in SIGNERS)
    assert "Release card" in page
    assert page.index("Release card") < page.index(SECTIONS[0])
    for question in ("singling out", "linkability", "inference"):
        assert question in page
    assert "No agency has" in page
    assert "smaller (k = 11 gives 0.0909 and is not below it" in " ".join(page.split())


def test_a_template_is_compiled_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = jinja2.Environment.compile

    def counted(environment: jinja2.Environment, source: str, name: str, *rest: object) -> object:
        compiled.append(name)
        return real(environment, source, name, *rest)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    for _ in range(2):
        for name in ("report.html.j2", "reviewer.html.j2"):
            report.template_named(name).environment.get_template("style.html.j2")
    assert len(compiled) == len(set(compiled))


def test_no_value_is_in_it(tmp_path: Path) -> None:
    page = reviewed(tmp_path)
    for line in people(120)[1:]:
        _, city, zip_code, income = line.split(",")
        assert city not in page
        assert zip_code not in page
        assert f">{income}<" not in page


def test_rows_that_are_left_out_are_said(tmp_path: Path) -> None:
    """In both forms of the report, whatever left them out."""
    for publish in (EMA, "{table: out/release.csv, report: out/report.html}"):
        flow = write_flow(tmp_path, n=120, publish=publish)
        text = flow.read_text(encoding="utf-8")
        step = "  prepare: [{filter: {column: age, at-least: 30}}]\n  columns:"
        flow.write_text(text.replace("  columns:", step, 1), encoding="utf-8")
        report = engine.run(flow, seed=SEED)
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert report.ok
        assert re.search(r"\d+ rows were left out by a filter before\.", page)


@pytest.mark.parametrize(("k", "sign"), [(11, "not below the threshold"), (12, "below the threshold")])
def test_the_default_threshold_is_strict(tmp_path: Path, k: int, sign: str) -> None:
    columns = "    age: {role: quasi-identifier, kind: numeric}\n    city: {role: quasi-identifier, kind: categorical}\n"
    page = reviewed(
        tmp_path, columns=columns, anonymize=f"{{algorithm: greedy, k: {k}}}", partition="{size: 60}"
    )
    assert ("✓ " if k == 12 else "✗ ") + sign in page


def test_the_signer_may_set_another_threshold(tmp_path: Path) -> None:
    columns = "    age: {role: quasi-identifier, kind: numeric}\n    city: {role: quasi-identifier, kind: categorical}\n"
    page = reviewed(
        tmp_path, "{report: {template: ema, threshold: 0.0910, file: out/report.html}}",
        columns=columns, anonymize="{algorithm: greedy, k: 11}", steps="  - draw: {}\n",
    )  # fmt: skip
    assert "✓ below the threshold" in page
    assert "The threshold is 0.091" in page


COPY = "    age: {role: quasi-identifier, kind: numeric}\n    city: {role: quasi-identifier, kind: categorical}\n"


@pytest.mark.parametrize(
    ("columns", "line"),
    [(COPY, "measured"), (f"{COPY}    zip: {{role: insensitive}}\n", "linkable columns")],
)
def test_a_threshold_that_is_missed_publishes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, line: str
) -> None:
    """By the attackers who point at a row, and by columns that follow from the quasi-identifiers."""
    k, limit = (10, 0.09) if line == "measured" else (12, 0.09)
    rows = [f"{age},{city},{age}{city}" for age in range(20, 50) for city in ("Ulm", "Bonn", "Ulm")]
    path = write_flow(
        tmp_path,
        columns=columns,
        data="\n".join(["age,city,zip", *rows]).encode(),
        anonymize=f"{{algorithm: greedy, k: {k}}}",
        partition="{}",
        publish=f"{{table: out/release.csv, report: {{file: out/report.html, threshold: {limit}}}}}",
    )
    status, _, err = shell(capsys, "run", path)
    assert status == 1
    assert "threshold: fails (" in err
    assert "of this flow without its k and with target: {risk: 0.09}" in err
    assert "nothing was published" in err
    assert not (tmp_path / "out").exists()
    report = engine.run(path, seed=SEED)
    assert (report.ok, report.release, report.published) == (False, None, ())
    assert line in [each.name for each in report.card.failing]
    (problem,) = report.problems
    assert "below 9% is allowed" in problem or "right for" in problem
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("threshold: 0.09", "threshold: 1.0"), encoding="utf-8")
    assert engine.run(path, seed=SEED).ok
    path.write_text(text.replace(", threshold: 0.09", ""), encoding="utf-8")
    assert engine.run(path, seed=SEED).ok


def test_a_threshold_that_is_met_is_a_check(tmp_path: Path) -> None:
    report = engine.run(
        write_flow(
            tmp_path,
            columns=COPY,
            anonymize="{algorithm: greedy, k: 12}",
            partition="{}",
            publish="{table: out/release.csv, report: {file: out/report.html, threshold: 0.09}}",
        ),
        seed=SEED,
    )
    assert report.ok
    assert [finding.criterion for finding in report.results[0].findings][-1] == "threshold"
    assert "threshold" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_threshold_that_cannot_be_measured_is_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large table some attackers are not tried."""
    monkeypatch.setattr("anonflow.engine.publish.MOST", 30)
    flow = write_flow(
        tmp_path,
        anonymize="{algorithm: greedy, k: 12}",
        partition="{size: 30}",
        steps="  - draw: {}\n  - attack: [linker]\n",
        publish="{table: out/release.csv, report: {file: out/report.html, threshold: 0.09}}",
    )
    report = engine.run(flow, seed=SEED)
    assert not report.ok
    assert "The attacker linkable-columns was not tried" in report.problems[0]


def test_checks_never_stand_alone_beside_a_failing_line(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, n=60, publish=REPORTED), seed=SEED)
    assert report.card is not None
    assert report.ok
    assert not report.card.ok
    assert "all checks passed, but" in repr(report)
    assert all(line.sentence() in repr(report) for line in report.card.failing)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.index("Release card") < page.index("What was checked")


@pytest.mark.parametrize("pieces", ["false", "60"])
def test_the_card_of_a_large_table_says_what_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: str
) -> None:
    monkeypatch.setattr("anonflow.engine.publish.MOST", 30)
    source = f"{{csv: people.csv, pieces: {pieces}}}"
    assert "not measured" in reviewed(tmp_path, source=source, partition="{size: 30}")


def test_the_same_seed_gives_the_same_page(tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pages.append(reviewed(tmp_path / name))
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        ("{template: emma}", "'template' must be one of plain or ema"),
        ("{template: ema, threshold: 0}", "'threshold' must be a number greater than 0"),
        ("{template: ema, threshold: 1.5}", "'threshold' must be a number of at most 1"),
        ("{template: ema, treshold: 0.1}", "did you mean 'threshold'"),
        ("{file: out/report.txt}", "'report' is a file that ends in .html"),
        ("{pdf: out/report.html}", "'pdf' is a file that ends in .pdf"),
        ("{file: owner/test/report.html}", "inside the owner's folder"),
        ("[out/report.html]", "must be the name of an .html file, or a mapping"),
        ("5", "must be the name of an .html file, or a mapping"),
    ],
)
def test_reports_that_cannot_be_written(tmp_path: Path, report: str, problem: str) -> None:
    path = write_flow(tmp_path, publish=f"{{report: {report}}}")
    with pytest.raises(FlowError) as caught:
        engine.load_flow(path)
    assert problem in str(caught.value)
    assert len(caught.value.problems) == 1


def test_without_a_browser_a_pdf_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    path = write_flow(
        tmp_path, publish="{report: {template: ema, pdf: out/report.pdf}}", steps="  - draw: {}\n"
    )
    with pytest.raises(FlowError, match="leave pdf out"):
        engine.run(path, seed=SEED)
    assert not (tmp_path / "out").exists()


def test_a_browser_that_prints_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from anonflow.errors import DataError

    program = shutil.which("true")
    if program is None:
        pytest.skip("there is no program that does nothing")
    monkeypatch.setattr(pdf, "BROWSERS", ("true",))
    with pytest.raises(DataError, match="could not be printed"):
        pdf.printed("<p>nothing</p>")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.machine
def test_the_page_is_printed(tmp_path: Path) -> None:
    if not any(shutil.which(name) for name in pdf.BROWSERS):
        pytest.skip("no browser that prints")
    reviewed(
        tmp_path,
        "{report: {template: ema, file: out/report.html, pdf: out/report.pdf}}",
        steps="  - draw: {}\n",
    )
    content = (tmp_path / "out" / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
