"""One paper's workbook: measure, put beside the printed numbers, say how near."""

from __future__ import annotations

import importlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from anonflow.hierarchy.wording import plural
from tests import ROOT
from tests.benchmarks.curves import drawing
from tests.benchmarks.measuring import data_folder
from tests.papers.bitmap import png
from tests.papers.figures import TIMES, Claim, Figure, Key, Numbers, Run, printed, verdict

FOLDER = ROOT / "notebooks" / "papers"
PAPERS = {
    1: ("freeform", "1-freeform-generalization"),
    2: ("low_information_loss", "2-low-information-loss"),
    3: ("constrained", "3-constrained-k-anonymity"),
    4: ("concealment", "4-k-concealment"),
    5: ("pattern_guided", "5-pattern-guided"),
}
PLACES = "places"
"""The key of a stored machine under which its places stand."""
NEAR = 1e-6
"""How far, relatively, a small run on real data may be from what is stored."""


class Shown:
    """Something to look at in a notebook: HTML, and its gist as text."""

    def __init__(self, html: str, text: str) -> None:
        self.html, self.text = html, text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


class Drawn:
    """A drawing in a notebook: SVG, PNG for where the notebook is not trusted, and its gist as text."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg, self.text = svg, text

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_png_(self) -> bytes:
        return png(self.svg)

    def __repr__(self) -> str:
        return self.text


class Workbook:
    """What a paper's notebook shows.

    `number` is the paper's: 1 freeform generalization, 2 low information loss, 3 constrained k-anonymity,
    4 k-concealment, 5 pattern-guided.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.paper: ModuleType = importlib.import_module(f"tests.papers.{PAPERS[number][0]}")
        self.name = PAPERS[number][1]
        self.printed = printed(FOLDER / "published" / f"{self.name}.csv")
        stored = self.stored()
        self.full = Numbers(map(Figure.from_json, stored.get("full", [])))
        self.machines = machines(stored)
        self.kept = Numbers(map(Figure.from_json, stored.get("small, real data", [])))
        self.small = Numbers([])

    @property
    def results(self) -> Path:
        """Where the full run's numbers are."""
        return FOLDER / "results" / f"{self.name}.json"

    def stored(self) -> dict[str, Any]:
        """What the last full run stored; nothing before the first."""
        return json.loads(self.results.read_text(encoding="utf-8")) if self.results.exists() else {}

    def measured(self, run: Run, only: Iterable[str] = ()) -> list[Figure]:
        """What is computed for a run, at all places or only at some."""
        wanted = set(only)
        return [
            figure
            for place, part in self.paper.PARTS.items()
            if not wanted or place in wanted
            for figure in part(run)
        ]

    # ------------------------------------------------------------------------- cells of the notebooks

    def machine(self) -> Shown:
        """What the stored numbers were computed on."""
        text = self._machines_in_words()
        return Shown(f"<p>Stored full run: {escape(text)}.</p>", text)

    def _machines_in_words(self) -> str:
        """What all machines have in common, then for each what it has alone, and its places."""
        parts = [{name: machine[name] for name in machine if name != PLACES} for machine in self.machines]
        shared = {
            name: value
            for name, value in (parts[0] if parts else {}).items()
            if all(part.get(name) == value for part in parts)
        }
        texts = [_joined(shared, "; ")]
        measured = Counter(place for machine in self.machines for place in machine[PLACES])
        for part, machine in zip(parts, self.machines, strict=True):
            own = {name: value for name, value in part.items() if name not in shared}
            places = [
                f"part of {place}" if measured[place] > 1 else place
                for place in self.paper.PARTS
                if place in machine[PLACES]
            ]
            if own:
                texts.append(f"{_joined(own, ', ')} for {', '.join(places)}")
        return "; ".join(text for text in texts if text)

    def measure(self) -> str:
        """The small run, on tables that anyone can make."""
        self.small = Numbers(self.measured(Run(full=False)))
        return f"{len(self.small)} numbers computed"

    def measure_real(self) -> str:
        """The small run on real data: it must give what is stored, to six digits."""
        if data_folder() is None:
            return "left out: the environment variable ANONFLOW_DATA names no folder with the data sets"
        numbers = Numbers(self.measured(Run(full=False, built_in=False, real=True)))
        different = [
            " ".join(map(str, key))
            for key in numbers.by_key.keys() | self.kept.by_key.keys()
            if key.quantity not in TIMES and not self._same(key, numbers)
        ]
        if different:
            raise AssertionError(
                f"{len(different)} numbers are not as stored: {'; '.join(sorted(different))}"
            )
        return f"{len(numbers)} numbers on real data are as stored"

    def _same(self, key: Key, figures: Numbers) -> bool:
        pair = [numbers.by_key.get(key) for numbers in (figures, self.kept)]
        return None not in pair and math.isclose(
            pair[0].value,  # type: ignore[union-attr]
            pair[1].value,  # type: ignore[union-attr]
            rel_tol=10 * NEAR,
            abs_tol=1e-9,
        )

    def rows(self, place: str, times: bool = False) -> list[tuple[str, ...]]:
        """case, at, method, quantity, printed, here, records, verdict, small: as text, for one place."""
        keys = [key for key in (*self.printed, *self.full.by_key, *self.small.by_key) if key.place == place]
        results: list[tuple[str, ...]] = []
        for key in dict.fromkeys(keys):
            if (key.quantity in TIMES) != times:
                continue
            number, figure = self.number_printed(key) or "", self.full.by_key.get(key)
            small = None if times else self.small.by_key.get(key)
            results.append(
                (
                    key.case,
                    f"{key.at:,.6g}" if key.at else "",
                    key.method,
                    key.quantity,
                    number,
                    shown(figure.value) if figure else "",
                    f"{figure.records:,}" if figure else "",
                    self.verdict(key),
                    f"{shown(small.value)} ({small.records:,})" if small else "",
                )
            )
        return results

    def number_printed(self, key: Key) -> str | None:
        """What the paper prints for a key; the same for each of our ways to run a method that it prints once."""
        name = self.paper.PRINTED_AS.get(key.method, key.method)
        return self.printed.get(key._replace(method=name))

    def verdict(self, key: Key) -> str:
        """How near the stored full run is to what is printed; what stands in the way where it is not."""
        number, figure = self.number_printed(key), self.full.by_key.get(key)
        if figure is None and number is None:
            return "of the small run alone"
        if figure is None:
            reason = self.paper.why_not(key, None)
            return f"not run: {reason}" if reason else "not run"
        if number is None:
            return "no number printed"
        if key.quantity in TIMES:
            return "not comparable: another machine, another language"
        result = verdict(number, figure.value, self.paper.why_not(key, figure.records))
        note = self.paper.note(key)
        return f"{result} ({note})" if note and result != "equal" and ":" not in result else result

    def table(self, place: str, times: bool = False) -> Shown:
        """The numbers of a table or figure beside the printed ones."""
        across = self.paper.ACROSS.get(place, "k")
        head = ("case", across, "method", "number", "printed", "here", "records", "verdict", "small run")
        rows = self.rows(place, times)
        # a column in which nothing stands is left out, and the verdict where nothing is printed or could not be
        printed = any(row[4] for row in rows) or not any(row[5] for row in rows)
        used = [at for at in range(len(head)) if any(row[at] for row in rows) and (printed or at != 7)]
        return _table([head[at] for at in used], [[row[at] for at in used] for row in rows], words=False)

    def plot(
        self, place: str, quantity: str = "GCP", across: str | None = None, logarithmic: bool = False
    ) -> Drawn:
        """The curves of a table or figure from the stored full run, dashed where the paper prints numbers."""
        panels = []
        for case in self.full.cases(place):
            curves: dict[str, dict[float, float]] = {}
            for method in self.full.methods(place, case):
                if curve := self.full.curve(place, case, method, quantity):
                    curves[method] = curve
                    theirs = {
                        key.at: float(number)
                        for key, number in self.printed.items()
                        if key == (place, case, key.at, method, quantity)
                    }
                    if theirs:
                        curves[f"{method} (printed)"] = theirs
            if curves:
                panels.append((case, curves))
        axis = across or self.paper.ACROSS.get(place, "k")
        return Drawn(
            drawing(panels, axis, logarithmic), f"{place}: {quantity} by {axis}, {len(panels)} panels"
        )

    def claimed(self) -> list[Claim]:
        """What the paper says, looked up in the stored full run."""
        claims: list[Claim] = self.paper.claims(self.full, self.printed)
        return claims

    def claims(self, *places: str) -> Shown:
        """What the paper says about tables or figures, and whether the stored full run says so, too."""
        return _claims(
            [claim for claim in self.claimed() if not claim.timing and (not places or claim.place in places)]
        )

    def times(self) -> Shown:
        """Seconds of the stored full run beside the printed ones, and what the paper says about time."""
        parts = [_claims([claim for claim in self.claimed() if claim.timing])]
        for place in self.paper.PARTS:
            if self.rows(place, times=True):
                parts.append(Shown(f"<h4>{escape(place)}</h4>", place))
                parts.append(self.table(place, times=True))
        return Shown("".join(part.html for part in parts), "\n".join(part.text for part in parts))

    def summary(self) -> Shown:
        """How many of the paper's claims hold, do not hold, were tried at a reduced size, or were not run, by reading; none of ours."""
        counts = self.counts()
        head = ["reading", *next(iter(counts.values()))]
        return _table(
            head, [[reading, *(f"{count:,}" for count in row.values())] for reading, row in counts.items()]
        )

    def counts(self) -> dict[str, dict[str, int]]:
        """The summary's numbers by reading; a claim at reduced size is also one that holds or does not hold."""
        by_reading: dict[str, list[Claim]] = {}
        for claim in self.claimed():
            if not claim.ours:
                by_reading.setdefault(claim.reading or self.paper.READING, []).append(claim)
        return {reading: self._counts(claims) for reading, claims in by_reading.items()}

    def _counts(self, claims: Sequence[Claim]) -> dict[str, int]:
        return {
            "claims": len(claims),
            "hold": sum(claim.holds is True for claim in claims),
            "do not hold": sum(claim.holds is False for claim in claims),
            "of these at reduced size": sum(
                claim.holds is not None and self.reduced(claim) for claim in claims
            ),
            "not run": sum(claim.holds is None for claim in claims),
        }

    def reduced(self, claim: Claim) -> bool:
        """Whether a claim rests on fewer records than the paper's.

        Where it does not say on how many, this is so if some method took fewer at its place.
        """
        if claim.records:
            return claim.reduced
        most: dict[str, int] = {}
        for figure in self.full.at_place(claim.place):
            most[figure.key.method] = max(most.get(figure.key.method, 0), figure.records)
        return any(records < self.paper.RECORDS.get(claim.place, 0) for records in most.values())

    def reach(self, place: str) -> Shown:
        """How far each method was run in the stored full run, and the seconds of the last of its runs."""
        across = self.paper.ACROSS.get(place, "k")
        timed = [figure for figure in self.full.at_place(place) if figure.key.quantity == "seconds"]
        longest = {
            (figure.key.case, figure.key.method): figure
            for figure in sorted(timed, key=lambda figure: figure.key.at)
        }
        rows = [
            [case, method, f"{figure.key.at:,.6g}", f"{figure.records:,}", shown(figure.value)]
            for (case, method), figure in longest.items()
        ]
        head = ["case", "method", f"{across} up to", "of records", "seconds of the last run"]
        return _table(head, rows, words=False)

    def effort(self) -> str:
        """What the stored full run took, in all and by place."""
        seconds = self.stored().get("processor seconds", {})
        parts = ", ".join(
            f"{place} {shown(seconds[place])} s" for place in self.paper.PARTS if place in seconds
        )
        return f"{_minutes(seconds)} of processor time: {parts}"

    def verdicts(self) -> Shown:
        """How many rows and claims of each verdict there are, per table or figure."""
        rows = []
        for place in self.paper.PARTS:
            counts = Counter(row[7].partition(":")[0].partition(" (")[0] for row in self.rows(place))
            claims = Counter(
                _word(claim)
                for claim in self.claimed()
                if claim.place == place and not claim.ours and not claim.reading
            )
            numbers = ", ".join(f"{count} {word}" for word, count in _near(counts).items())
            text = ", ".join(f"{count} {word}" for word, count in claims.items())
            rows.append([place, numbers or "none", text or "none"])
        return _table(["place", "printed numbers and ours", "what the paper says"], rows)


def machines(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines of stored results, each with the places whose numbers, all or some, were measured on it.

    Older files name one machine for all places.
    """
    if "machine" not in stored:
        return list(stored.get("machines", []))
    places = dict.fromkeys(figure["place"] for figure in stored["full"])
    return [stored["machine"] | {PLACES: list(places)}]


def _joined(parts: dict[str, Any], mark: str) -> str:
    return mark.join(f"{name} {value}" for name, value in parts.items())


def _near(counts: Counter[str]) -> dict[str, int]:
    """`within 3 %` and `within 7 %` counted as one, by the wider."""
    result: dict[str, int] = {}
    within = [int(word.split()[1]) for word in counts if word.startswith("within")]
    for word, count in counts.items():
        name = f"within {max(within)} %" if word.startswith("within") else word
        result[name] = result.get(name, 0) + count
    return dict(sorted(result.items()))


def _word(claim: Claim) -> str:
    return "not measured" if claim.holds is None else "holds" if claim.holds else "does not hold"


def _claims(claims: Sequence[Claim]) -> Shown:
    """Claims as a table, other readings beside the paper's; the records only where a claim states them."""
    beside = {(claim.place, claim.says, claim.reading): claim for claim in claims if claim.reading}
    others = list(dict.fromkeys(claim.reading for claim in beside.values()))
    rows = []
    for claim in claims:
        if claim.reading:
            continue
        says = f"{claim.says} (ours, not the paper's)" if claim.ours else claim.says
        text = _word(claim) + (f": {claim.why}" if claim.why and claim.holds is not True else "")
        twins = [beside.get((claim.place, claim.says, reading)) for reading in others]
        rows.append(
            [
                claim.place,
                says,
                claim.measured,
                claim.size,
                text,
                *(f"{_word(twin)}: {twin.measured}" if twin else "" for twin in twins),
            ]
        )
    head = ["place", "the paper says", "here", "records", "verdict", *others]
    used = [at for at, name in enumerate(head) if name != "records" or any(claim.records for claim in claims)]
    return _table([head[at] for at in used], [[row[at] for at in used] for row in rows])


def efforts() -> str:
    """How much processor time the stored full run of each paper took."""
    texts = [
        f"{_minutes(json.loads(path.read_text(encoding='utf-8'))['processor seconds'])} for {number}"
        for number, (_, name) in PAPERS.items()
        if (path := FOLDER / "results" / f"{name}.json").exists()
    ]
    return ", ".join(texts)


def _minutes(seconds: dict[str, float]) -> str:
    return plural(math.ceil(sum(seconds.values()) / 60), "minute")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], words: bool = True) -> Shown:
    """A table as HTML, with `words` aligned at the left; as text, the same cells between bars."""
    style = " style='text-align:left;vertical-align:top'" if words else ""
    lines = [f"<tr>{''.join(f'<th{style}>{escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td{style}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    text = "\n".join(" | ".join(row) for row in [head, *rows])
    return Shown(f"<table>{''.join(lines)}</table>", text)


def shown(value: float) -> str:
    """A number in four digits at most, whole ones in full."""
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 1 else f"{value:.4g}"
