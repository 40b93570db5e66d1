"""`python -m tests.benchmarks.compare_attackers [--python ENV/bin/python] [--small]`: another project's attackers beside ours.

anonymeter (Giomi, Boenisch, Wehmeyer and Tasnadi, 2023) attacks tables of plain values. Half of the people are released, and a
plausible table (`af.plausible`) of each release is attacked; the other half are its controls, as they are ours. It runs in an
environment of its own, which is no dependency of this project:

    python -m venv ENV && ENV/bin/pip install anonymeter

Without `--python`, and on releases with a column that is `*` throughout, ours alone are tried.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.risk.three_questions import QUESTIONS, three_questions

RECODING = ("full-domain", "local-recoding")
"""Methods of the whole table, whose intervals and levels are fixed beforehand."""

METHODS = (
    ("greedy", 5), ("two-phase", 5), ("k-concealment", 5), ("full-domain", 5), ("local-recoding", 20), ("mondrian", 5),
    ("mondrian", 20),
)  # fmt: skip
SECRET = "Salary-class"
HEADER = (
    "| release | question | theirs: excess (95%) | theirs: success, control, baseline | ours: excess (95%) | "
    "ours: success, control, baseline |\n|---|---|---|---|---|---|"
)

THEIRS = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
folder, attacks, secret = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ori, syn, control = (pd.read_csv(f"{folder}/{name}.csv") for name in ("ori", "syn", "control"))
known = [name for name in ori.columns if name != secret]
half = len(known) // 2
evaluators = {
    "singling out": SinglingOutEvaluator(ori, syn, n_attacks=attacks, n_cols=3, control=control, max_attempts=100_000, seed=1),
    "linkability": LinkabilityEvaluator(ori, syn, (known[:half], known[half:]), n_attacks=attacks, control=control),
    "inference": InferenceEvaluator(ori, syn, known, secret, n_attacks=attacks, control=control),
}
answers = {}
for question, evaluator in evaluators.items():
    try:
        evaluator.evaluate(**({"mode": "multivariate"} if question == "singling out" else {"n_jobs": 1}))
        risk, results = evaluator.risk(), evaluator.results()
        answers[question] = [float(risk.value), *map(float, risk.ci), float(results.attack_rate.value),
                             float(results.control_rate.value), float(results.baseline_rate.value)]
    except Exception as error:
        answers[question] = type(error).__name__
print(json.dumps(answers))
"""
"""What runs in the other environment: its public classes only."""


def theirs(python: str, frames: dict[str, pd.DataFrame], attacks: int) -> dict[str, Any]:
    """What anonymeter answers in its environment.

    Raises
    ------
    subprocess.CalledProcessError
        If it cannot run there.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in frames.items():
            frame.to_csv(Path(folder) / f"{name}.csv", index=False)
        command = [python, "-c", THEIRS, folder, str(attacks), SECRET]
        process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    answers: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answers


def schema_of(method: str) -> dict[str, Any]:
    """The columns of `census_like`; for methods that recode, categories are published or hidden."""
    columns = af.datasets.schema("census_like")
    if method not in RECODING:
        return columns
    return {
        name: {**column, "kind": "suppression"} if column.get("kind") == "categorical" else column
        for name, column in columns.items()
    }


def lines(python: str | None, n: int, attacks: int, method: str, k: int) -> list[str]:
    """The rows of one release."""
    people = af.Table(af.datasets.census_like(2 * n, 1), schema_of(method))
    half = np.random.default_rng(1).permutation(people.n)
    inside, outside = people.take(np.sort(half[:n])), people.take(np.sort(half[n:]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        size = None if method in RECODING else min(n, 500)
        anonymization = af.anonymize(inside, method, k=k, seed=2**127, partition_size=size)
        release = anonymization.release(seed=2**127)
    rng = np.random.default_rng(1)
    answers: dict[str, Any] = dict.fromkeys(QUESTIONS, "not run")
    if python is not None and all((release.frame[name] != "*").any() for name in inside.qi_columns):
        frames = {
            "ori": inside.frame,
            "syn": af.plausible(release, m=1, seed=1)[0][list(inside.frame.columns)],
            "control": outside.frame,
        }
        answers = theirs(python, frames, attacks)
    ours = {answer.question: answer for answer in three_questions(inside, release.frame, outside, rng)}
    rows = []
    for question in QUESTIONS:
        figures, own = answers[question], ours[question]
        excess = rates = str(figures)
        if not isinstance(figures, str):
            excess = f"{figures[0]:.3f} ({figures[1]:.3f} to {figures[2]:.3f})"
            rates = ", ".join(f"{rate:.3f}" for rate in figures[3:])
        low, high = own.interval
        rows.append(
            f"| {method}, k = {k}, GCP {anonymization.loss():.3f} | {question} | {excess} | {rates} | "
            f"{own.excess:.3f} ({low:.3f} to {high:.3f}) | {own.success:.3f}, {own.control:.3f}, {own.baseline:.3f} |"
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both attackers' figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compare_attackers")
    parser.add_argument(
        "--python",
        help="the interpreter of an environment that has anonymeter; without it ours alone are tried",
    )
    parser.add_argument("--small", action="store_true", help="100 people, one method: shows that it runs")
    wanted = parser.parse_args(arguments)
    n, attacks = (100, 50) if wanted.small else (1_000, 500)
    print(HEADER)
    for method, k in METHODS[-1:] if wanted.small else METHODS:
        try:
            print("\n".join(lines(wanted.python, n, attacks, method, k)), flush=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
            print(f"anonymeter does not run there: {' '.join(reason)}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
