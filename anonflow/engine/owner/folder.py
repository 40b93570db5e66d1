"""The owner's folder: certificate, seed and run record of a flow, readable by nobody else; one run at a time holds its lock."""

from __future__ import annotations

import csv
import errno
import filecmp
import hmac
import json
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from anonflow.errors import AnonflowError, FlowError
from anonflow.release import Certificate
from anonflow.system import NO_FOLLOW, is_running, open_descriptor, started, take_lock
from anonflow.whole_file import OWNER_ONLY, as_path, missing_folders, remove_drafts, remove_empty, write_whole

LOCK = "lock"

_UNKNOWN = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""The error codes of file systems without locks."""


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    Attributes
    ----------
    process : int
    started : str
        When the process began (:func:`anonflow.system.started`): a number is given to another process later. Empty where it cannot be known.
    boot : str
        Of the machine: after another one all processes are others. Empty where it cannot be known.
    machine : str
    """

    process: int
    started: str
    boot: str
    machine: str

    @classmethod
    def this(cls) -> Holder:
        """Return this process."""
        return cls(os.getpid(), started(os.getpid()), _boot(), machine())

    @classmethod
    def read(cls, text: str) -> Holder | None:
        """Parse the result of :meth:`text`; return None for anything else."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def text(self) -> str:
        """For the lock's file."""
        return json.dumps(asdict(self)) + "\n"

    @property
    def is_here(self) -> bool:
        """Whether it ran on this machine, since it was switched on or before."""
        return self.machine == machine() or bool(self.boot and self.boot == _boot())

    @property
    def is_running(self) -> bool:
        """Whether a process of this machine is still there."""
        if self.boot != _boot() or not is_running(self.process):
            return False
        return not self.started or self.started == started(self.process)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an owner's folder that exists.

    Parameters
    ----------
    folder : pathlib.Path

    Raises
    ------
    AnonflowError
        If another run holds it, or it cannot be written.
    FlowError
        If the folder may not be written to.

    Notes
    -----
    The system's lock on the file (:func:`anonflow.system.take_lock`) decides wherever it is the same kernel: it ends with its process, however that
    ends. The file's content decides if the file system has no such locks, or if another machine wrote it.
    """
    file = folder / LOCK
    try:
        descriptor = _taken(file)
    except OSError as error:
        why = error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise AnonflowError(f"{folder}: cannot be written to: {why}; make room and run again") from None
        raise FlowError(
            f"{folder}: cannot be written to: {why}; move the flow to a folder where you may write"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # later processes see that no process holds it
            file.unlink()
        # the lock goes with it, and the file has to be gone before: else the next run would lock one that is deleted
        os.close(descriptor)


def _taken(file: Path) -> int:
    """Return the lock's file, open and locked, with this process in it."""
    while True:
        descriptor = open_descriptor(file, os.O_RDWR | os.O_CREAT | NO_FOLLOW)
        try:
            has_locks = _lock(descriptor, file)
            try:
                if os.fstat(descriptor).st_ino != os.stat(file).st_ino:
                    raise FileNotFoundError
            except FileNotFoundError:  # the previous holder has just deleted it
                os.close(descriptor)
                continue
            holder = _holder(descriptor)
            if holder is not None and not (holder.is_here and (has_locks or not holder.is_running)):
                raise _refusal(file, holder)
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, Holder.this().text().encode())
        except (
            BaseException
        ):  # an interruption, too: the descriptor is closed, and whatever came is raised again
            with suppress(OSError):
                os.close(descriptor)
            raise
        return descriptor


def _lock(descriptor: int, file: Path) -> bool:
    """Lock a file; False where the file system has no locks."""
    try:
        take_lock(descriptor)
    except BlockingIOError:
        raise _refusal(file, _holder(descriptor)) from None
    except OSError as error:
        if error.errno in _UNKNOWN:
            return False
        raise
    return True


def _holder(descriptor: int) -> Holder | None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return Holder.read(os.read(descriptor, 4096).decode(errors="replace"))


def _refusal(file: Path, holder: Holder | None) -> AnonflowError:
    why = f"{file.parent}: another run of this flow is at work, and two would write the same files"
    if holder is None:
        return AnonflowError(f"{why}; wait until it is over")
    if holder.machine == machine():
        return AnonflowError(
            f"{why}; wait until process {holder.process} is over, or stop it with 'kill {holder.process}'"
        )
    return AnonflowError(
        f"{why}; wait until process {holder.process} on the machine {holder.machine} is over; "
        f"if it is not there any more, delete {file}"
    )


def machine() -> str:
    """Return the name of this machine, in letters, digits and underscores."""
    return "".join(c if c.isalnum() else "_" for c in socket.gethostname())


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


BITS = 128  # of a seed: too many to be tried
CERTIFICATE = "certificate.npz"
SEED = "seed"
RECORD = "record.json"
KEY = "key"
KEY_BYTES = 32  # of the key that hashes are made with
EARLIER = "earlier"
LABELS = "labels.csv"
UNFINISHED = "unfinished.json"
CHECKPOINTS = "checkpoints"
START_OVER = "start over with --fresh in the shell, fresh=True in Python"


class OwnerFolder:
    """The folder of one flow, ``owner/<flow>/`` beside its file.

    Parameters
    ----------
    path : path
        It need not exist yet.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = as_path(path)
        self._new_key: bytes | None = None

    @property
    def has_release(self) -> bool:
        """Whether there is a release of this flow."""
        # an attempt that failed at its address has set the earlier one aside
        return self.has_record or any((self.path / EARLIER).glob(f"*/{RECORD}"))

    @property
    def has_record(self) -> bool:
        """Whether the last publication came to its end."""
        return (self.path / RECORD).exists()

    def has_interrupted(self, resumed: bool) -> bool:
        """Return whether a publication was interrupted, so that some of its files may be out; the last one does not count where it is resumed."""
        folders = [*(self.path / EARLIER).glob("[0-9]*"), *([] if resumed else [self.path])]
        return any((folder / SEED).exists() and not OwnerFolder(folder).has_record for folder in folders)

    def remove_drafts(self) -> None:
        """Remove what a killed run left of the files of this folder, which must be locked."""
        for name in (CERTIFICATE, SEED, RECORD, KEY, LABELS, UNFINISHED):
            remove_drafts(self.path / name)

    def make(self) -> None:
        """Make the folder, 0700, and the key that hashes in the record are made with.

        Raises
        ------
        FlowError
            If it cannot be made, is a link, or belongs to somebody else.
        """
        for folder in (self.path.parent, self.path):
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                if folder.is_symlink():
                    raise FlowError(f"{folder}: the owner's folder is a link; put a folder there")
                if stat.S_IMODE(folder.stat().st_mode) & 0o077:
                    folder.chmod(0o700)
            except OSError as error:
                raise FlowError(
                    f"{folder}: the owner's folder cannot be made: {error.strerror}; "
                    "move the flow to a folder where you may write"
                ) from None

    def check(self) -> None:
        """See that the folder can be made and written to; leaves nothing behind.

        Raises
        ------
        FlowError
            If it cannot.
        """
        new_folders = missing_folders(self.path)
        try:
            self.make()
            probe = self.path / f".probe-{secrets.token_hex(4)}"
            try:
                os.close(open_descriptor(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                probe.unlink()
            except OSError as error:
                raise FlowError(f"{self.path}: cannot be written to: {error.strerror}") from None
        finally:
            for folder in new_folders:
                remove_empty(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it for a run; remove folders that are empty afterwards.

        Raises
        ------
        FlowError
            As :meth:`make`.
        AnonflowError
            If another run holds it.
        """
        new_folders = missing_folders(self.path)
        try:
            self.make()
            with locked(self.path):
                yield
        finally:
            for folder in new_folders:
                remove_empty(folder)

    def earlier(self) -> tuple[int, int]:
        """Return how many earlier releases have files here, and the bytes of these: a proof is never deleted."""
        files = list((self.path / EARLIER).glob("*/*"))
        return len({file.parent for file in files}), sum(file.stat().st_size for file in files)

    def records(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the folder and the record of each release, the last one first; without those that cannot be read."""
        folders = [self.path, *sorted((self.path / EARLIER).glob("[0-9]*"), reverse=True)]
        readable = []
        for folder in folders:
            with suppress(FlowError):
                readable.append((folder, OwnerFolder(folder).record()))
        return readable

    def has_seed(self, seed: int) -> bool:
        """Return whether the last release was made with a seed."""
        try:
            return self.seed() == seed
        except FlowError:
            return False

    def set_earlier_aside(self) -> None:
        """Move the files of an earlier release aside: each release needs its own certificate.

        They stay together also where this was interrupted between two of them: the record, which every release has, goes last.

        Raises
        ------
        AnonflowError
            If it cannot be moved.
        """
        present = [name for name in (CERTIFICATE, SEED, RECORD) if (self.path / name).exists()]
        if not present:
            return
        home = self.path / EARLIER
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            number = max((int(p.name) for p in home.iterdir() if p.name.isdecimal()), default=0)
            last = home / f"{number:04d}"
            is_resumed = (
                RECORD in present and number > 0 and not any((last / name).exists() for name in present)
            )
            place = last if is_resumed else home / f"{number + 1:04d}"
            place.mkdir(mode=0o700, exist_ok=is_resumed)
            for name in present:
                os.replace(self.path / name, place / name)
        except OSError as error:
            raise AnonflowError(f"{self.path}: cannot be written to: {error.strerror}") from None

    def write_seed(self, seed: int) -> None:
        """Keep the seed.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        self._write(
            SEED, lambda path: path.write_text(f"{seed:0{BITS // 4}x}\n", encoding="ascii", newline="\n")
        )

    def write_record(self, record: dict[str, Any]) -> None:
        """Keep the run record.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        self._write(RECORD, lambda path: path.write_text(text, encoding="utf-8", newline="\n"))
        (self.path / LABELS).unlink(missing_ok=True)  # of an attempt before

    def write_labels(self, labels: Mapping[str, Mapping[str, int]]) -> Path:
        """Write which labels of the table its hierarchies lack, and how many cells have each.

        Parameters
        ----------
        labels : mapping
            Of an error (:class:`anonflow.errors.AnonflowError`).

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        rows = [
            (column, label, cells) for column, counts in labels.items() for label, cells in counts.items()
        ]

        def write(path: Path) -> None:
            with path.open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows([("column", "label", "cells"), *rows])

        self._write(LABELS, write)
        return self.path / LABELS

    def write_certificate(self, certificate: Certificate, ready: Callable[[bool], Any]) -> None:
        """Keep the certificate of a release.

        Parameters
        ----------
        certificate : Certificate
        ready : callable
            Called before the file gets its name, as by :func:`anonflow.whole_file.write_whole`, with whether the same certificate is there.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        file, same = self.path / CERTIFICATE, [False]

        def save(draft: Path) -> None:
            certificate.save(draft)
            same[0] = file.is_file() and filecmp.cmp(draft, file, shallow=False)

        write_whole(file, save, mode=OWNER_ONLY, ready=lambda: ready(same[0]))

    def seed(self) -> int:
        """Return the seed of the last run.

        Raises
        ------
        FlowError
            If there is none.
        """
        return read_seed_file(self.path / SEED)

    def record(self) -> dict[str, Any]:
        """Return the record of the last run.

        Raises
        ------
        FlowError
            If there is none, or it cannot be read.
        """
        path = self.path / RECORD
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise FlowError(
                f"{path}: no readable run record; name the owner's folder of an earlier run"
            ) from None
        if not isinstance(record, dict):
            raise FlowError(f"{path}: no run record; name the owner's folder of an earlier run")
        return record

    def keyed(self, digest: bytes | None) -> str | None:
        """Return a keyed hash of some content, 64 hexadecimal digits: without the owner's secret it confirms no guess.

        Parameters
        ----------
        digest : bytes or None
            The plain hash, which is never written down; None gives None.

        Raises
        ------
        AnonflowError
            If the secret cannot be read or kept.
        """
        if digest is None:
            return None
        key = self.key()
        self.keep_key()
        return hmac.new(key, digest, "sha256").hexdigest()

    def key(self) -> bytes:
        """Return the secret that hashes are keyed with; a new one is only kept by :meth:`keep_key`.

        Raises
        ------
        FlowError
            If it cannot be read.
        """
        place = self._home / KEY
        try:
            key = bytes.fromhex(place.read_text(encoding="ascii").strip())
            if len(key) != KEY_BYTES:
                raise ValueError
            return key
        except FileNotFoundError:
            self._new_key = self._new_key or secrets.token_bytes(KEY_BYTES)
            return self._new_key
        except (OSError, ValueError):
            raise FlowError(
                f"{place}: is not a complete key; restore it from a copy, or delete it and {START_OVER}"
            ) from None

    @property
    def _home(self) -> Path:
        """The owner's folder of a flow, also of the folder of an earlier release in it, which has no key of its own."""
        return self.path.parent.parent if self.path.parent.name == EARLIER else self.path

    def keep_key(self) -> None:
        """Write a new key down.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        place = self._home / KEY
        if self._new_key is not None and not place.exists():
            text = self._new_key.hex() + "\n"
            write_whole(
                place, lambda path: path.write_text(text, encoding="ascii", newline="\n"), mode=OWNER_ONLY
            )

    def write_unfinished(self, facts: dict[str, Any]) -> None:
        """Store the data with which a run can be resumed, its seed among them.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        self.make()
        self.keep_key()
        self._write(
            UNFINISHED, lambda path: path.write_text(json.dumps(facts) + "\n", encoding="ascii", newline="\n")
        )

    def unfinished(self) -> dict[str, Any] | None:
        """Return what :meth:`write_unfinished` kept, None if there is nothing; an empty dict if it cannot be read.

        A run that was ended after its record was written, and before it deleted this file, is finished.
        """
        try:
            unfinished = json.loads((self.path / UNFINISHED).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return {}
        if not isinstance(unfinished, dict):
            return {}
        with suppress(LookupError, TypeError, ValueError):  # of a seed that cannot be read
            if (
                unfinished.get("publishing")
                and self.has_record
                and self.has_seed(int(unfinished["seed"], 16))
            ):
                return None
        return unfinished

    def forget_unfinished(self) -> None:
        """There is nothing left to pick up.

        Raises
        ------
        AnonflowError
            If the file cannot be deleted.
        """
        try:
            (self.path / UNFINISHED).unlink(missing_ok=True)
        except OSError as error:
            raise AnonflowError(f"{self.path / UNFINISHED}: cannot be deleted: {error.strerror}") from None

    def _write(self, name: str, write: Callable[[Path], Any]) -> None:
        write_whole(self.path / name, write, mode=OWNER_ONLY)


def read_seed_file(path: str | PathLike[str]) -> int:
    """Read a secret seed: at least 32 hexadecimal digits.

    Raises
    ------
    FlowError
        If there is no such file, or it has another content.
    """
    place = Path(path)
    try:
        with place.open("rb") as stream:  # a device has no end
            text = stream.read(4096).strip()
    except OSError as error:
        raise FlowError(f"{place}: the seed cannot be read: {error.strerror}") from None
    if not re.fullmatch(rb"[0-9a-fA-F]{32,1024}", text):
        raise FlowError(
            f"{place}: a seed file holds at least 32 hexadecimal digits; make one with 'openssl rand -hex 16'"
        )
    return int(text, 16)
