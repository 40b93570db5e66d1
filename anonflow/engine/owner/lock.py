"""One run of a flow at a time: a lock in the owner's folder for the length of a run."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from anonflow.errors import AnonflowError, FlowError
from anonflow.system import NO_FOLLOW, is_running, open_descriptor, started, take_lock

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
