"""Seeds of runs and their steps, and random words for the draw and the shuffle: from the operating system, or a secret seed."""

from __future__ import annotations

import hashlib
import os
import re
import warnings

import numpy as np

from anonflow.errors import AnonflowWarning, ParameterError
from anonflow.option import check_whole

DRAW_STEP = 1
"""The step of a seed's streams that a draw uses where no flow says otherwise; algorithms use 0."""

_SECRET = 64
"""An integer of fewer bits is not a secret: an attacker can find it from the release by trying."""

GUESSABLE = (
    "a seed below 2^64 can be found by trying, and with it each person's row; leave the seed out, or give 128 random "
    "bits, such as secrets.token_bytes(16)"
)

_SHORTEST = 16  # 128 bits: too many to be tried
_HEX = re.compile(r"[0-9a-fA-F]{32,1024}")
_LABEL = b"anonflow draw 1"


class SeedWarning(AnonflowWarning):
    """A warning: the seed is small enough to be found by trying, and then reveals each person's row."""


class RandomWords:
    """A source of 64-bit words, each handed out as two 32-bit lanes, lower half first.

    It never uses a generator of numpy or numba: an attacker can compute their state from the release.

    Parameters
    ----------
    seed : int, bytes or str, optional
        A secret that makes the same words again: at least 16 bytes, at least 32 hexadecimal digits, or a non-negative
        integer, which text stands for. An integer is only as safe as it is hard to guess: what is published needs one
        of at least 128 random bits. Without a seed the words are the operating system's.
    step : int
        Separates the draws that share a seed, such as the steps of a flow.

    Raises
    ------
    ParameterError
        If the seed is none of these, has fewer than 16 bytes, or the step is negative.

    Notes
    -----
    With a seed, the stream of (step, purpose, key) is SHAKE-256 of the seed and these three, each in a field
    of its own length; lanes are little-endian. Streams do not depend on each other, nor on the order of the calls.
    """

    def __init__(self, seed: int | bytes | str | None = None, step: int = DRAW_STEP) -> None:
        step = check_whole(step, 0, "a step must be a whole number of at least 0")
        self._start = None if seed is None else hashlib.shake_256(_LABEL + _with_length(_seed_bytes(seed)))
        if self._start is not None:
            self._start.update(_with_length(step.to_bytes(8, "big")))

    def lanes(self, purpose: str, key: int, count: int, had: np.ndarray | None = None) -> np.ndarray:
        """Return the first lanes of one stream.

        Parameters
        ----------
        purpose : str
            What they are for.
        key : int
            Whose they are, such as the smallest table position of a component.
        count : int
            How many, rounded up to whole words.
        had : numpy.ndarray, shape (l,), uint32, optional
            Lanes of this stream handed out before: the result starts with them, and goes on.

        Returns
        -------
        numpy.ndarray, shape (count or count + 1,), uint32
        """
        count += count % 2
        if self._start is None:
            # the system gives no word twice: those that were handed out come back from the caller
            old = np.empty(0, np.uint32) if had is None else had
            fresh = np.frombuffer(os.urandom(4 * max(0, count - len(old))), "<u4").astype(np.uint32)
            return np.concatenate([old, fresh])
        stream = self._start.copy()
        stream.update(_with_length(purpose.encode()) + _with_length(int(key).to_bytes(8, "big")))
        return np.frombuffer(stream.digest(4 * count), "<u4").astype(np.uint32)


def _with_length(content: bytes) -> bytes:
    return len(content).to_bytes(8, "big") + content


def _seed_bytes(seed: int | bytes | str) -> bytes:
    seed = checked_secret(seed)
    if isinstance(seed, bytes):
        return b"b" + seed
    return b"i" + seed.to_bytes((seed.bit_length() + 7) // 8, "big")


def checked_secret(seed: int | bytes | str) -> int | bytes:
    """Return a seed as it is used: bytes as they are, hexadecimal text as the integer it stands for, as in a seed file.

    Raises
    ------
    ParameterError
        If it is shorter than 128 bits of bytes or text, or no whole number of at least 0.
    """
    if isinstance(seed, bytes | bytearray):
        if len(seed) < _SHORTEST:
            raise ParameterError(f"a seed of bytes needs at least {_SHORTEST} of them")
        return bytes(seed)
    if isinstance(seed, str):
        if not _HEX.fullmatch(seed.strip()):
            raise ParameterError(
                "a seed of text needs at least 32 hexadecimal digits; secrets.token_hex(16) makes one"
            )
        return int(seed, 16)
    words = (
        "a seed must be a whole number of at least 0, at least 16 bytes, or at least 32 hexadecimal digits"
    )
    return check_whole(seed, 0, words)


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
    # a number has no leading zeros, and bytes with and without them are different seeds
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


def seed_can_be_guessed(seed: int | bytes | str | None) -> bool:
    """Return whether a seed is an integer below 2^64."""
    return isinstance(seed, int | np.integer) and int(seed) < 1 << _SECRET


def warn_of_small_seed(seed: int | bytes | str | None, stacklevel: int = 2) -> None:
    """Warn if a seed of something that will be published can be guessed.

    Warns
    -----
    SeedWarning
        If it is an integer below 2^64.
    """
    if seed_can_be_guessed(seed):
        warnings.warn(GUESSABLE, SeedWarning, stacklevel=stacklevel + 1)


def seed_of_table(seed: int | bytes | str, content: bytes) -> bytes:
    """Return the seed of one table's draw: a hash of what the table holds, keyed with the seed.

    Otherwise the same seed would give two tables the same permutations, and the truth of one would reveal the other.

    Parameters
    ----------
    seed : int, bytes or str
    content : bytes
        Such as :meth:`anonflow.table.row_marks.Content.to_bytes`.

    Returns
    -------
    bytes
        32, a seed for :class:`RandomWords`.
    """
    return hashlib.shake_256(
        b"anonflow table 1" + _with_length(_seed_bytes(seed)) + _with_length(content)
    ).digest(32)
