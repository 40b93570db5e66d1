"""How long the verifier takes: from published files alone, and from the owner's certificate.

The releases are made here, without any of the algorithms: k assignments of least added cost in blocks of
neighbours, one after the other.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from anonflow.criteria import verify
from anonflow.generalization import Generalization
from anonflow.partition import lexicographic_order
from anonflow.table import Domain, Records, Table
from tests.benchmarks import measuring

K = 10
CENSUS = (79, 2, 17, 6, 9, 10, 83, 51)
ADULT = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
MIB = 1 << 20


def census(n: int, seed: int = 7) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Skewed, correlated people with the CENSUS cardinalities; the first QI is numeric."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    columns: dict[str, Any] = {}
    for a, size in enumerate(CENSUS):
        level = 0.6 * hidden + 0.8 * rng.normal(size=n)
        skewed = np.clip((np.exp(level * 0.8) - 0.1) / 6, 0, 0.999)
        codes = (skewed * size).astype(int)
        columns[f"q{a}"] = codes + 17 if a == 0 else np.char.add("v", codes.astype(str))
    columns["salary"] = np.char.add("s", (rng.random(n) ** 2 * 50).astype(int).astype(str))
    schema: dict[str, Any] = {f"q{a}": {"role": "quasi-identifier", "kind": "categorical"} for a in range(8)}
    schema["q0"]["kind"] = "numeric"
    schema["salary"] = {"role": "sensitive"}
    return pd.DataFrame(columns), schema


def adult(folder: Path, hierarchies: bool) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The 30,162 complete rows; nominal columns as sets, or by ARX's hierarchies."""
    frame = pd.read_csv(folder / "arx" / "adult.csv.gz", sep=";", dtype="str")
    frame = frame[[*ADULT, "salary-class"]]
    schema: dict[str, Any] = {"age": {"role": "quasi-identifier", "kind": "numeric"}}
    for name in ADULT[1:]:
        schema[name] = {"role": "quasi-identifier", "kind": "categorical"}
        if hierarchies:
            file = folder / "hierarchies" / "adult" / f"adult_hierarchy_{name}.csv"
            schema[name].update(kind="hierarchy", hierarchy=str(file))
    schema["salary-class"] = {"role": "sensitive"}
    return frame, schema


def matches_in_blocks(records: Records, k: int, size: int = 250) -> np.ndarray:
    """A k-regular graph of low cost: in blocks of neighbours, k - 1 assignments of least added cost."""
    n = records.n
    matches = np.empty((n, k), np.int32)
    matches[:, 0] = np.arange(n)
    width = [max(domain.size - 1, 1) for domain in records.domains]
    for block in np.array_split(lexicographic_order(records), max(1, n // size)):
        codes = records.codes[block]
        members = [codes[:, a][:, None] == np.arange(w + 1) for a, w in enumerate(width)]
        taken = np.eye(len(block), dtype=bool)
        for t in range(1, k):
            cost = sum((~members[a][:, codes[:, a]]) / w for a, w in enumerate(width))
            cost[taken] = 1e6
            row, chosen = linear_sum_assignment(cost)
            taken[row, chosen] = True
            matches[block[row], t] = block[chosen]
            for a in range(len(width)):
                members[a][row, codes[chosen, a]] = True
    return matches


def publish(frame: pd.DataFrame, schema: dict[str, Any], k: int, path: Path) -> None:
    """A release file: row order, and who carries whose other columns, are random."""
    table = Table(frame, schema)
    rng = np.random.default_rng(1)
    matches = matches_in_blocks(table.records, k)
    boxes = Generalization.join_of(table.records, matches)
    shown = boxes.decode()
    column = np.zeros(table.n, np.int64)  # one column of the matches will do for a benchmark
    column[:] = k // 2
    for name in table.other_columns:
        shown[name] = frame[name].to_numpy()[matches[np.arange(table.n), column]]
    shown.iloc[rng.permutation(table.n)].to_csv(path, index=False)


def verify_files(original: str, release: str, schema: dict[str, Any], k: int) -> tuple[float, float, bool]:
    """Seconds and peak MiB for reading both files and checking covers and k-regularity; whether they hold."""
    start = time.perf_counter()
    table = Table.read(original, schema)
    check = verify(table, release, ["covers", "k-regular"], k=k)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB, bool(check)


def from_files(name: str, frame: pd.DataFrame, schema: dict[str, Any], most: float, mib: float) -> list[dict]:
    """Measure in a process of its own, so that the peak of memory is the verifier's."""
    with tempfile.TemporaryDirectory() as folder:
        original, release = Path(folder) / "original.csv", Path(folder) / "release.csv"
        frame.to_csv(original, index=False)
        publish(frame, schema, K, release)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            seconds, peak, holds = pool.submit(verify_files, str(original), str(release), schema, K).result()
    assert holds
    return [
        measuring.row(f"verify {name}, k={K}, from the files alone", seconds, "s", most=most),
        measuring.row(f"verify {name}, k={K}, peak memory", peak, "MiB", most=mib),
    ]


def coded(n: int, seed: int = 3) -> Records:
    """Census-like records, without a frame."""
    rng = np.random.default_rng(seed)
    domains, columns = [], []
    for a, size in enumerate(CENSUS):
        column = np.minimum((rng.random(n) ** 2 * size).astype(np.int32), size - 1)
        labels = tuple(str(v) for v in range(size))
        counts = np.bincount(column, minlength=size).astype(np.int64)
        kind = "numeric" if a == 0 else "categorical"
        domains.append(Domain(f"q{a}", kind, labels, np.arange(size, dtype=np.float64), counts))
        columns.append(column)
    return Records(tuple(domains), np.ascontiguousarray(np.stack(columns, axis=1)))


def from_certificate(n: int, most: float) -> list[dict]:
    """The listing of 1,000,000 x k originals: covered, distinct, k-regular."""
    from anonflow.candidate_lists import Candidates

    records = coded(n)
    place = np.arange(n)
    matches = np.stack([(place + t) % n for t in range(K)], axis=1)
    matches = np.sort(lexicographic_order(records)[matches], axis=1).astype(np.int32)
    boxes = Generalization.join_of(records, matches)

    def check() -> None:
        from anonflow.criteria.evidence import Evidence
        from anonflow.criteria.matching.regular import regular_by_listing

        none = np.zeros(n, bool)
        listing = Candidates.of_claim(matches)
        evidence = Evidence(None, records, boxes, False, None, none, listing, True, K)  # type: ignore[arg-type]
        assert regular_by_listing(evidence, listing).holds

    seconds = measuring.seconds(check)
    return [measuring.row(f"certificate of {n:,} records, k={K}", seconds, "s", most=most)]


def run(small: bool) -> list[dict]:
    """All figures; small inputs have no goals worth the name."""
    rows = from_files(*("census-like 500",), *census(500), 60, 4096) if small else []
    if not small:
        folder = measuring.data_folder()
        if folder is not None:
            rows += from_files("Adult (30,162, sets)", *adult(folder, False), 6, 1024)
            rows += from_files("Adult (30,162, hierarchies)", *adult(folder, True), 6, 1024)
        rows += from_files("census-like 100,000", *census(100_000), 60, 4096)
    return rows + from_certificate(2_000 if small else 1_000_000, 2)
