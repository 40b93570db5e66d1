"""User accounts: names and salted hashes in a file, and waiting times that grow with every wrong password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import argon2

from anonflow.errors import AnonflowError, ParameterError
from anonflow.system import is_open_to_others
from anonflow.whole_file import OWNER_ONLY, write_whole

LOG = logging.getLogger("anonflow.dashboards")

_ARGON2 = argon2.PasswordHasher(time_cost=3, memory_cost=1 << 16, parallelism=1)
"""Argon2id with 64 MiB and about a tenth of a second for each guess (RFC 9106, section 4, with one lane)."""

_LARGEST = argon2.Parameters(
    type=argon2.Type.ID,
    version=19,
    salt_len=64,
    hash_len=64,
    time_cost=10,
    memory_cost=1 << 18,
    parallelism=8,
)
"""The largest cost that a line of the file may have."""

# of files that were made before argon2 was: 32 MB for each guess
_N = 1 << 15
_MEMORY = 64 * 1024 * 1024  # scrypt refuses to use more; n = 2^15 and r = 8 take half of it
_LENGTH = 32  # bytes of a hash
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

SHORTEST, LONGEST = 8, 1024
"""Characters of a password, at least and at most."""


def hashed(password: str) -> str:
    """Return a password as it is kept: an encoded hash of Argon2id, ``$argon2id$v=19$...``."""
    return _ARGON2.hash(password)


def add_account(path: Path, name: str, password: str) -> None:
    """Add a user to a file of accounts, or change their password; the file is its owner's alone (0600).

    Raises
    ------
    ParameterError
        If the name or the password cannot be used, or the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise ParameterError("a user's name has up to 64 letters, digits, '.', '_', '@' and '-'")
    if not SHORTEST <= len(password) <= LONGEST or not password.isprintable():
        raise ParameterError(
            f"a password has {SHORTEST} to {LONGEST} characters that can be typed; choose another one"
        )
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        other_lines = [line for line in lines if line.partition(":")[0] != name]
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}; name another file") from None
    text = "\n".join([*other_lines, f"{name}:{hashed(password)}"]) + "\n"
    try:
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8", newline="\n"), OWNER_ONLY)
    except AnonflowError as error:
        raise ParameterError(error.message) from None


class Accounts:
    """The users of a file: a line ``name:$argon2id$...`` for each; empty lines and ``#`` comments are skipped.

    Lines ``name:scrypt$N$r$p$salt$hash``, which earlier versions wrote, are read as well. A file that has changed is read again
    (:meth:`renew`).

    Raises
    ------
    ParameterError
        If the file cannot be read, others may read it, it has no users, or a line is not a user.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, ...] | None = None
        self._read()

    def renew(self) -> frozenset[str]:
        """Read the file again if it is another than before, and return who was removed, or has another password; one that cannot be used changes nothing, and is logged."""
        if _file_state(self._path) == self._mark:
            return frozenset()
        before = self._hashes
        try:
            self._read()
        except ParameterError as error:
            # not read, and not logged, again before it changes
            self._mark = _file_state(self._path)
            LOG.error("%s; the users stay those that they were", error.message)
        return frozenset(name for name, entry in before.items() if self._hashes.get(name) != entry)

    def _read(self) -> None:
        path, mark = self._path, _file_state(self._path)
        try:
            text = path.read_text(encoding="utf-8")
            is_open = is_open_to_others(path.stat())
        except (OSError, UnicodeDecodeError):
            raise ParameterError(
                f"{path}: the file of users cannot be read; add one with --add-user"
            ) from None
        if is_open:
            raise ParameterError(f"{path}: others may read or write this file; run 'chmod 600' on it")
        hashes: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, password_hash = line.strip().partition(":")
            if not _NAME.fullmatch(name) or not (
                _parameters(password_hash) is not None or _Scrypt.read(password_hash) is not None
            ):
                raise ParameterError(
                    f"{path}: line {number} is no 'name:$argon2id$...'; make it with --add-user, never by hand"
                )
            hashes[name] = password_hash
        if not hashes:
            raise ParameterError(f"{path}: has no users; add one with --add-user")
        # what an unknown name is compared with, so that it takes as long as a known one: as most of the hashes do
        costs = Counter(entry.rpartition("$")[0].rpartition("$")[0] for entry in hashes.values())
        common = costs.most_common(1)[0][0]
        like = next(entry for entry in hashes.values() if entry.startswith(f"{common}$"))
        self._hashes, self._nobody, self._mark = hashes, _with_another_salt(like), mark

    def __len__(self) -> int:
        return len(self._hashes)

    def allow(self, name: str, password: str) -> bool:
        """Return whether this is the password of that user; takes as long if there is no such user."""
        # cut, so that a text without end costs no more than a password
        right = _matches(self._hashes.get(name, self._nobody), password[:LONGEST])
        return right and name in self._hashes


class SignedIn:
    """Signed-in users: sessions with ids that end by themselves, or when they are revoked.

    An id has 256 random bits and is created when a user signs in; an id from the browser is never used.
    Only its hash is kept. At most `MOST` are remembered; the oldest end first.

    Parameters
    ----------
    lasts : float
        Seconds.
    """

    MOST = 10_000

    def __init__(self, lasts: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts = lasts
        self._clock = clock
        self._lock = threading.Lock()
        self._users: dict[bytes, tuple[str, float]] = {}

    def begin(self, name: str) -> str:
        """Return the id of a new session."""
        number = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            while self._users:
                # all last equally long, and a dict keeps their order: the first one ends first
                oldest, (_, end) = next(iter(self._users.items()))
                if end > now and len(self._users) < self.MOST:
                    break
                del self._users[oldest]
            self._users[_hash(number)] = name, now + self._lasts
        return number

    def user(self, number: str) -> str | None:
        """Return the user of a session id; None if it has ended, or never existed."""
        with self._lock:
            name, end = self._users.get(_hash(number), (None, 0.0))
            return name if end > self._clock() else None

    def end(self, number: str) -> None:
        """Revoke a session."""
        with self._lock:
            self._users.pop(_hash(number), None)

    def end_of(self, names: Collection[str]) -> None:
        """Revoke the sessions of some users."""
        with self._lock:
            self._users = {key: entry for key, entry in self._users.items() if entry[0] not in names}


def _file_state(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from what it was before."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _hash(number: str) -> bytes:
    return hashlib.sha256(number.encode("utf-8", "replace")).digest()


def network_of(address: str) -> str:
    """Return the unit that attempts from an address count for: the address, or for IPv6 the 64-bit network of one user."""
    try:
        network = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if network.version == 4:
        return str(network)
    if network.ipv4_mapped is not None:
        return str(network.ipv4_mapped)
    return str(ipaddress.ip_network((network, 64), strict=False))


class LoginThrottle:
    """After wrong passwords, the next attempt must wait: twice as long each time, by name and by address.

    At most `MOST` names and addresses are remembered; the oldest are forgotten first. A correct password is refused
    while its name or address waits; otherwise guessing would cost nothing.

    Parameters
    ----------
    free : int
        Wrong guesses that cost nothing.
    longest : float
        Seconds that one waits at most.
    """

    MOST = 10_000

    def __init__(
        self, free: int = 5, longest: float = 300.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = free
        self._longest = longest
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: dict[str, tuple[int, float]] = {}

    def wait(self, *keys: str) -> float:
        """Return seconds until one of these may guess again; 0 if all may."""
        now = self._clock()
        with self._lock:
            return max(0.0, *(self._wrong.get(key, (0, now))[1] - now for key in keys))

    def failed(self, *keys: str) -> None:
        """Count a wrong guess."""
        now = self._clock()
        with self._lock:
            for key in keys:
                count = self._wrong.pop(key, (0, 0.0))[0] + 1
                over = count - self._free
                # the exponent is bounded, too: a float has no 2^1024
                pause = 0.0 if over <= 0 else min(self._longest, float(2 ** min(over, 20)))
                self._wrong[key] = (count, now + pause)
            while len(self._wrong) > self.MOST:
                self._wrong.pop(next(iter(self._wrong)))

    def passed(self, *keys: str) -> None:
        """Delete the wrong attempts after a correct one."""
        with self._lock:
            for key in keys:
                self._wrong.pop(key, None)


class _Scrypt(NamedTuple):
    """A line of an earlier version."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @classmethod
    def read(cls, line: str) -> _Scrypt | None:
        fields = line.split("$")
        if len(fields) != 6 or fields[0] != "scrypt":
            return None
        try:
            n, r, p = (int(field) for field in fields[1:4])
            salt, digest = (base64.urlsafe_b64decode(field) for field in fields[4:])
        except ValueError:
            return None
        sound = 1 < n <= _N * 2 and n & (n - 1) == 0 and 1 <= r <= 16 and 1 <= p <= 4
        return cls(n, r, p, salt, digest) if sound and len(salt) >= 8 and len(digest) == _LENGTH else None

    def matches(self, password: str) -> bool:
        digest = hashlib.scrypt(
            password.encode(), salt=self.salt, n=self.n, r=self.r, p=self.p, maxmem=_MEMORY, dklen=_LENGTH
        )
        return hmac.compare_digest(digest, self.digest)


def _parameters(password_hash: str) -> argon2.Parameters | None:
    """Return the cost of an encoded hash of Argon2id; None if the text is no such hash, or would cost the server too much."""
    try:
        parameters = argon2.extract_parameters(password_hash)
    except (argon2.exceptions.InvalidHashError, ValueError):
        return None
    bounds = ("time_cost", "memory_cost", "parallelism", "salt_len", "hash_len")
    small = all(0 < getattr(parameters, name) <= getattr(_LARGEST, name) for name in bounds)
    return parameters if parameters.type is argon2.Type.ID and small and parameters.hash_len >= 16 else None


def _with_another_salt(password_hash: str) -> str:
    """Return the hash of a password that nobody has, which takes as long to be compared with."""
    earlier = _Scrypt.read(password_hash)
    if earlier is None:
        parameters = _parameters(password_hash)
        assert parameters is not None
        return argon2.PasswordHasher.from_parameters(parameters).hash(secrets.token_hex(16))
    salt, digest = (
        base64.urlsafe_b64encode(secrets.token_bytes(size)).decode() for size in (len(earlier.salt), _LENGTH)
    )
    return "$".join([*password_hash.split("$")[:4], salt, digest])


def _matches(password_hash: str, password: str) -> bool:
    earlier = _Scrypt.read(password_hash)
    if earlier is not None:
        return earlier.matches(password)
    try:
        return _ARGON2.verify(password_hash, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
