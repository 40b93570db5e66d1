"""Seeds of a run's steps: each is derived from the run's seed and reveals neither this nor another step's seed."""

from __future__ import annotations

import hashlib
import os

from anonflow.release.randomness import checked_secret


def checked_seed(seed: int | bytes | str | None) -> int:
    """Return a run's seed as a number; 128 bits of the operating system's without one.

    Parameters
    ----------
    seed : int, bytes or str, optional
        At least 16 bytes, at least 32 hexadecimal digits, or a whole number.

    Raises
    ------
    ParameterError
        If it is not one of these, or too short.
    """
    if seed is None:
        return int.from_bytes(os.urandom(16), "big")
    secret = checked_secret(seed)
    return int.from_bytes(b"\x01" + secret, "big") if isinstance(secret, bytes) else secret


def derived_seed(seed: int, step: str) -> int:
    """Return the 128-bit seed of a step's generator: SHAKE-256 of the step's name and the run's seed.

    An attacker can search the states of numpy's generators: what a step reveals must not lead back to the draw, which
    has the same seed.

    Parameters
    ----------
    seed : int
        The run's, a secret.
    step : str
        Such as ``algorithms``: the same step of the same run gets the same seed.
    """
    secret = seed.to_bytes(max(16, (seed.bit_length() + 7) // 8), "big")
    return int.from_bytes(hashlib.shake_256(f"anonflow {step} 1".encode() + secret).digest(16), "big")
