"""Every information loss by name. A new one needs its file and a line here."""

from __future__ import annotations

from anonflow.errors import ParameterError
from anonflow.loss.entropy import ENTROPY
from anonflow.loss.measure import Loss
from anonflow.loss.suppressions import SUPPRESSIONS
from anonflow.loss.widths import HEIGHT, LM, NCP
from anonflow.table.schema import did_you_mean

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (NCP, LM, ENTROPY, HEIGHT, SUPPRESSIONS)}

MEASURES = tuple(LOSSES)
"""The measures by their own names."""

MONOTONE = tuple(name for name, loss in LOSSES.items() if loss.monotone)
"""Those that never fall when a record covers more. Entropy may: pairwise bounds do not hold for it."""


def names() -> tuple[str, ...]:
    """Return every name of a measure, each one's own before its others."""
    return tuple(name for loss in LOSSES.values() for name in (loss.name, *loss.also))


def measure_named(name: str) -> str:
    """Return a measure's own name, from that or another (gcp, em, il).

    Raises
    ------
    ParameterError
        If there is no such measure, with the nearest one.
    """
    if isinstance(name, str):
        for loss in LOSSES.values():
            if name == loss.name or name in loss.also:
                return loss.name
    raise ParameterError(f"unknown information loss {name!r}{did_you_mean(name, names())}")
