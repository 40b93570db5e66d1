"""Seeds of a run's steps: each is made of the run's own, and leads back neither to it nor to another step's."""

from __future__ import annotations

import hashlib
import os

import numpy as np

from anonflow.errors import ParameterError

__all__ = ["checked_seed", "derived_seed"]


def checked_seed(seed: int | None) -> int:
    """A run's seed as a number; 128 bits of the operating system's without one.

    Raises
    ------
    ParameterError
        If it is no whole number of at least 0.
    """
    if seed is None:
        return int.from_bytes(os.urandom(16), "big")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError("a seed must be a whole number of at least 0")
    return int(seed)


def derived_seed(seed: int, step: str) -> int:
    """The 128-bit seed of a step's generator: SHAKE-256 of the step's name and the run's seed.

    Numpy's generators can be searched: what a step gives away must not lead back to the draw, which has the same
    seed.

    Parameters
    ----------
    seed : int
        The run's, a secret.
    step : str
        Such as ``algorithms``: the same step of the same run gets the same seed.
    """
    secret = seed.to_bytes(max(16, (seed.bit_length() + 7) // 8), "big")
    return int.from_bytes(hashlib.shake_256(f"anonflow {step} 1".encode() + secret).digest(16), "big")
