"""Packages of the index that make k-anonymous tables, beside this one: loss, seconds and memory, in environments of their own.

Each package gets a fresh environment, the same file of people and the same k, and says which rows it published alike. The loss of
everybody's result is computed here by one function, from the rows alone: a class costs what its records need at least, so nobody's
wider cells count against it. Packages that only check releases, such as pycanon, have no place in this table, nor has polarfrost 0.2.1,
which needs Spark.

``out/adult.svg``, the README's picture, has loss against seconds of those on Adult, and one system of an outside audit that no index has.

Folders of environments are kept where ``ANONFLOW_PEERS`` names one. ``--small`` installs nothing, and runs this package alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import anonflow as af
from anonflow.generalization import Generalization
from anonflow.loss import record_costs
from tests import ROOT
from tests.benchmarks.curves import Curve, draw
from tests.benchmarks.measuring import data_folder, row
from tests.cases.recoding import heart_levels
from tests.cases.tables import adult

K = 10
AUDITED = {"best other system (audit)": {23.0: 0.0496}}
"""Seconds and loss on Adult of the best of the other systems, in an outside audit and on its machine; we did not run it."""

LITTLE = 0.1
"""Losses below this have a panel of their own in the picture."""

LIMIT, MEMORY = 600, 8 << 30
"""Seconds and bytes that a package may take for one table."""

BEFORE = """
import json, resource, time
import numpy as np, pandas as pd
about = json.load(open("about.json"))
resource.setrlimit(resource.RLIMIT_AS, (about["memory"],) * 2)
k, names, numeric = about["k"], about["names"], about["numeric"]
categorical = [name for name in names if name not in numeric]
people = pd.read_csv("people.csv", dtype={name: str for name in categorical}, keep_default_na=False)
"""
AFTER = """
usage = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
if not isinstance(result, np.ndarray):
    result = result[["id", *names]].astype(str)
    alike = result.groupby(names, sort=False).ngroup().to_numpy()
    labels = np.full(len(people), -1)
    labels[result["id"].astype(int)] = alike
    result = labels
np.save("result.npy", result)
seconds = [end - begin for begin, end in zip(begin, (time.perf_counter(), time.process_time()))]
mib = max(each.ru_maxrss for each in usage) / 1024
json.dump({"seconds": clock, "processor": processor, "mib": mib}, open("taken.json", "w"))
"""


@dataclass(frozen=True)
class Peer:
    """A package that makes releases.

    Attributes
    ----------
    call : str
        Python that makes `result` of `people`, `names`, `numeric`, `categorical` and `k`: rows with their ``id`` and what is
        published, or an array of classes or matches.
    requires : tuple of str
        What is installed for it; nothing for this package.
    prepare : str
        Python that comes before the clock starts.
    """

    call: str
    requires: tuple[str, ...] = ()
    prepare: str = ""


CATEGORIES = "for name in categorical:\n    people[name] = people[name].astype('category')\n"
OURS = "import anonflow as af, anonflow.algorithms\ntable = af.Table(people.drop(columns='id'), about['schema'])\n"
LEVELS = """
from anjana.anonymity import k_anonymity
levels = {name: {0: people[name].to_numpy(), 1: np.full(len(people), "*")} for name in categorical}
for name in numeric:
    values = people[name].to_numpy()
    low, width = values.min(), np.ptp(values)
    steps = {1 + at: low + np.floor((values - low) / (width / parts)) * (width / parts) for at, parts in enumerate((16, 8, 4, 2))}
    levels[name] = {0: values, **{at: cells.astype(str) for at, cells in steps.items()}, 5: np.full(len(people), "*")}
"""
PEERS = {
    "anonypy 0.2.1, Mondrian": Peer(
        "result = pd.DataFrame(Preserver(people, names, 'id').anonymize_k_anonymity(k=k))",
        ("anonypy==0.2.1", "pandas"),
        "from anonypy import Preserver\n" + CATEGORIES,
    ),
    **{
        f"anonypyx 0.2.11, {algorithm}": Peer(
            f"result = Anonymiser(people, k=k, algorithm='{algorithm}', feature_columns=names, "
            "generalisation_strategy='human-readable').anonymise()",
            ("anonypyx==0.2.11", "pandas<3"),
            "from anonypyx import Anonymiser\n"
            + CATEGORIES
            + "people[numeric] = people[numeric].astype(float)\n",
        )
        for algorithm in ("Mondrian", "MDAV-generic")
    },
    "anonymity-api 1.0.4, Mondrian": Peer(
        "result = k_anonymity(people, names, k)",
        ("anonymity-api==1.0.4", "pandas"),
        "from anonymity_api.anonymity import k_anonymity\n",
    ),
    "umbra-k 0.1.0, Mondrian": Peer(
        "result = MondrianAnonymizer(k=k, quasi_id=names).fit_transform(people)",
        ("umbra-k==0.1.0",),
        "from umbra_k import MondrianAnonymizer\n",
    ),
    "lighthouse 1.0.0, Core Mondrian": Peer(
        "result = k_anonymize(logging.getLogger(), people, names, k, trees, 'id', parallelism=None)[0]",
        ("project-lighthouse-anonymize==1.0.0",),
        "import logging\nfrom project_lighthouse_anonymize.gtrees import make_flat_default_gtree\n"
        "from project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize\n"
        "trees = {name: make_flat_default_gtree(set(people[name])) for name in categorical}\n",
    ),
    "anjana 1.2.3, 5% suppressed": Peer(
        "result = k_anonymity(people, [], names, k, 5, levels)", ("anjana==1.2.3",), LEVELS
    ),
    "anonflow, greedy in 250s": Peer(
        "result = af.anonymize(table, 'greedy', k, partition_size=250).matches", (), OURS
    ),
    "anonflow, mondrian": Peer("result = af.anonymize(table, 'mondrian', k).classes", (), OURS),
    "anonflow, k-member, chains": Peer(
        "result = af.anonymize(table, 'k-member', k, improve='chains', partition_size=5_000, seed=1).classes",
        (),
        OURS,
    ),
    "anonflow, two-phase": Peer(
        "result = af.anonymize(table, 'two-phase', k, kicks=0, seed=1).matches", (), OURS
    ),
    "anonflow, two-phase, 10 kicks": Peer(
        "result = af.anonymize(table, 'two-phase', k, kicks=10, seed=1).matches", (), OURS
    ),
}


def tables(small: bool) -> Iterator[tuple[str, af.Table]]:
    """Adult, answers to a health survey and generated people; categories have no trees, for most packages take none."""
    folder = data_folder()
    n = 300 if small else 10_000
    if folder is not None:
        whole = adult(folder)
        yield "Adult", af.Table(whole.frame.iloc[:n], whole.schema) if small else whole
        heart = heart_levels(folder, 2 * n).frame
        kinds = {name: "numeric" if heart[name].dtype == float else "categorical" for name in heart}
        yield (
            f"heart, {2 * n:,}",
            af.Table(
                heart, {name: {"role": "quasi-identifier", "kind": kind} for name, kind in kinds.items()}
            ),
        )
    yield (
        f"people, {n:,}",
        af.Table(af.datasets.census_like(n, seed=1), af.datasets.schema("census_like")),
    )


def python_of(peer: Peer, home: Path) -> Path:
    """Return the interpreter of a package's environment, which is made where it is not there yet."""
    if not peer.requires:
        return Path(sys.executable)
    folder = home / peer.requires[0].replace("=", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *peer.requires], check=True)
        (folder / "complete").touch()
    return python


def taken(peer: Peer, python: Path, table: af.Table, folder: Path) -> dict[str, float] | str:
    """Run a package on a table; return its loss, seconds and MiB, or why there are none."""
    domains = table.records.domains
    names = list(table.qi_columns)
    numeric = [domain.column for domain in domains if domain.kind == "numeric"]
    frame = table.frame[names].reset_index(drop=True).assign(id=range(table.n))
    frame.to_csv(folder / "people.csv", index=False)
    schema = {name: table.schema.to_mapping()[name] for name in names}
    about = {"k": K, "memory": MEMORY, "names": names, "numeric": numeric, "schema": schema}
    (folder / "about.json").write_text(json.dumps(about))
    clock = "begin = time.perf_counter(), time.process_time()\n"
    ends = "\nclock, processor = time.perf_counter() - begin[0], time.process_time() - begin[1]\n"
    (folder / "run.py").write_text(BEFORE + peer.prepare + clock + peer.call + ends + AFTER)
    environment = {**os.environ, "PYTHONPATH": "" if peer.requires else str(ROOT)}
    try:
        run = subprocess.run(
            [python, "run.py"],
            cwd=folder,
            env=environment,
            timeout=LIMIT,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done in {LIMIT} s"
    if run.returncode:
        return run.stderr.strip().splitlines()[-1][:100]
    loss = loss_of(table, np.load(folder / "result.npy"))
    if isinstance(loss, str):
        return loss
    return {"loss": loss, **json.loads((folder / "taken.json").read_text())}


def loss_of(table: af.Table, result: np.ndarray) -> float | str:
    """Return the normalized certainty penalty of classes, -1 for a suppressed record, or of matches; or what is wrong with them."""
    records = table.records
    if result.ndim == 2:
        return float(record_costs(Generalization.join_of(records, result), "ncp").mean())
    smallest = int(np.bincount(result[result >= 0]).min(initial=K)) if (result >= 0).any() else K
    if smallest < K:
        return f"a class of {smallest} records, and k = {K}"
    cells = Generalization.join_by_class(records, result).with_suppressed(result < 0)
    return float(record_costs(cells, "ncp").mean())


def run(small: bool = False) -> list[dict[str, Any]]:
    """Loss, seconds and memory of each package on each table, in its own environment and process."""
    rows = []
    curves: dict[str, Curve] = {}
    with tempfile.TemporaryDirectory() as place:
        home = Path(os.environ.get("ANONFLOW_PEERS") or Path(place, "environments"))
        titled = list(tables(small))
        for number, (title, table) in enumerate(titled):
            peers = {name: peer for name, peer in PEERS.items() if not (small and peer.requires)}
            if small:  # each call runs on one table, and a call on each
                peers = dict(list(peers.items())[number :: len(titled)])
            for name, peer in peers.items():
                folder = Path(tempfile.mkdtemp(dir=place))
                figures = taken(peer, python_of(peer, home), table, folder)
                if isinstance(figures, str):
                    rows.append(row(f"{title}: {name}: {figures}", float("nan"), "loss"))
                    continue
                rows.append(row(f"{title}: {name}", figures["loss"], "loss"))
                if title == "Adult":
                    label = name.removesuffix(", 10 kicks")
                    curves.setdefault(label, {})[max(figures["seconds"], 0.01)] = figures["loss"]
                rows.append(row(f"{title}: {name}", figures["seconds"], "s"))
                rows.append(row(f"{title}: {name}", figures["processor"], "s of processor"))
                rows.append(row(f"{title}: {name}", figures["mib"], "MiB at most"))
    if curves:
        draw_adult(curves, small)
    return rows


def draw_adult(curves: dict[str, Curve], small: bool) -> None:
    """Draw all curves, and beside them those that lose little, on a scale of their own."""
    low = {label: curve for label, curve in curves.items() if max(curve.values()) < LITTLE}
    draw(
        "adult",
        [
            (f"Adult, k = {K}: GCP below {LITTLE}", {**low, **AUDITED}),
            ("all packages", {**curves, **AUDITED}),
        ],
        "seconds",
        small,
    )
