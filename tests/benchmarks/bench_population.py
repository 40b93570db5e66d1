"""How near the models of a population come to the number of unique people, on generated populations that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonflow.table.identification.population import pitman, slide_negative_binomial, zayatz
from tests.benchmarks.measuring import row

PEOPLE, FEW = 200_000, 5_000
MODELS = {"zayatz": zayatz, "pitman": pitman, "snb": slide_negative_binomial}


def populations(people: int) -> dict[str, np.ndarray]:
    """The cell of each person: frequencies by Zipf's law, and by a gamma distribution over ten people a cell."""
    rng = np.random.default_rng(20)
    rank = np.arange(1, people + 1)
    zipf = rng.choice(people, people, p=(1 / rank) / (1 / rank).sum())
    weight = rng.gamma(0.5, size=people // 10)
    return {"zipf": zipf, "gamma": rng.choice(people // 10, people, p=weight / weight.sum())}


def run(small: bool) -> list[dict[str, Any]]:
    """Unique people, and what each model says from samples of 2% and 50%."""
    figures = []
    for name, cells in populations(FEW if small else PEOPLE).items():
        unique = int((np.bincount(cells) == 1).sum())
        figures.append(row(f"population {name}: unique people", unique, "people"))
        for fraction in (0.02, 0.5):
            rng = np.random.default_rng(21)
            sizes = np.bincount(rng.permutation(cells)[: round(len(cells) * fraction)])
            for model, estimator in MODELS.items():
                estimate = estimator(sizes[sizes > 0], fraction)
                if estimate.is_there:
                    figures.append(
                        row(
                            f"population {name}: {model} from {fraction:.0%}",
                            float(estimate.uniques),
                            "people",
                        )
                    )
    return figures
