"""A table whose names, values and labels are HTML that would run a script wherever it is not shown as text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd

from tests.cases.flow_files import flow_text

PAYLOADS = (
    "<script>window.owned=1</script>",
    '"><img src=x onerror=window.owned=2>',
    "'><svg onload=window.owned=3>",
    '</style></title></textarea><iframe srcdoc="<script>parent.owned=4</script>">',
    "<b title=owned>bold</b>",
    "{{7*7}}<a href=javascript:owned=5>x</a>",
)

AGE, TOWN, JOB, ILL, NOTE = (
    f"{name}{PAYLOADS[at]}" for at, name in enumerate(["age", "town", "job", "ill", "note"])
)

COLUMNS = {
    AGE: {"role": "quasi-identifier", "kind": "numeric"},
    TOWN: {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": "towns.csv"},
    JOB: {"role": "quasi-identifier", "kind": "categorical"},
    ILL: {"role": "sensitive"},
    NOTE: {"role": "insensitive"},
}


def hostile_frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            AGE: rng.integers(18, 80, n),
            TOWN: rng.choice([f"town {payload}" for payload in PAYLOADS], n),
            JOB: rng.choice([f"job {payload}" for payload in PAYLOADS], n),
            ILL: rng.choice(list(PAYLOADS), n),
            NOTE: [f"{i % 7} {PAYLOADS[i % 6]}" for i in range(n)],
        }
    )


def write_hostile_flow(folder: Path, methods: tuple[str, ...] = ("mondrian",)) -> Path:
    """A flow over such a table, with a hierarchy whose labels are hostile, too."""
    hostile_frame().to_csv(folder / "people.csv", index=False)
    towns = [[f"town {payload}", f"region {PAYLOADS[at // 3]}", "*"] for at, payload in enumerate(PAYLOADS)]
    pd.DataFrame(towns).to_csv(folder / "towns.csv", index=False, header=False, sep=";")
    columns = "".join(f"    {json.dumps(name)}: {json.dumps(column)}\n" for name, column in COLUMNS.items())
    path = folder / "hostile.yaml"
    path.write_text(
        flow_text("hostile", columns, "") + f"steps:\n  - anonymize: {{algorithm: {methods[0]}, k: 5}}\n  - draw: {{}}\n"
        "  - verify: [covers, guarantee]\n  - measure: [gcp, usefulness]\n"
        + ("  - attack: [linker, linkable-columns]\n" if len(methods) == 1 else "")
        + (f"matrix:\n  anonymize.algorithm: [{', '.join(methods)}]\n" if len(methods) > 1 else "")
        + "publish: {table: out/release.csv, report: out/report.html"
        + (f", run: {{anonymize.algorithm: {methods[0]}}}" if len(methods) > 1 else "") + "}\n",
        encoding="utf-8",
    )  # fmt: skip
    return path


class Elements(HTMLParser):
    """The elements and attributes of a page: what a browser makes of it, but for its repairs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update((name, value or "") for name, value in attrs)

    handle_startendtag = handle_starttag

    @property
    def dangers(self) -> list[str]:
        """What runs a script, or came out of a payload."""
        names = sorted(self.tags & {"script", "img", "iframe", "object", "embed", "base", "form"})
        names += [f"{name}={value}" for name, value in self.attributes if name.startswith("on")]
        names += [
            f"{name}={value}"
            for name, value in self.attributes
            if name in ("href", "src", "srcdoc") and "javascript" in value
        ]
        return names + [f"{name}={value}" for name, value in self.attributes if value == "owned"]
