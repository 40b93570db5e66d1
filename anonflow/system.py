"""What systems do in their own ways: locks, owners of files, memory, signals. No other module asks which system it is on.

POSIX: ``flock``, permission bits, ``getrusage``. Windows: ``msvcrt`` locks, and files whose access rights are inherited from
their folder, which in a user's own folders are that user's alone.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

fcntl: Any
msvcrt: Any
resource: Any
try:
    import fcntl
except ImportError:
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None
try:
    import resource
except ImportError:
    resource = None

Result = TypeVar("Result")

NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""A flag of :func:`open_descriptor`: a link is no file. Where there is no such flag, making links needs a right of its own."""

READING_HEADERS = threading.Lock()
"""To be held while numpy reads headers of arrays: it parses them as Python, and the parser of Python 3.11 sometimes fails where two
threads use it at once."""

RENAMES_OPEN = hasattr(os, "fchmod")
"""Whether a folder can be renamed while a file in it is open."""

_LOCKED_BYTE = 1 << 30
"""What is locked on Windows, where nobody could read a byte that is: one behind the end of every file of ours."""


def open_descriptor(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Return a file's descriptor, whose bytes are handed on as they are.

    Parameters
    ----------
    path : path
    flags : int
        Of :func:`os.open`.
    mode : int
        Permission bits of a new file, the owner's alone without it.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    return os.open(path, flags | getattr(os, "O_BINARY", 0), mode)


def take_lock(descriptor: int) -> None:
    """Lock an open file, for as long as it is open or its process lives.

    Raises
    ------
    BlockingIOError
        If somebody else holds it.
    OSError
        If the file system, or the system, has no locks.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    if msvcrt is None:
        raise OSError(errno.ENOSYS, "this system has no locks")
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(errno.EWOULDBLOCK, "somebody else holds it") from error
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)


def release_lock(descriptor: int) -> None:
    """Close a file that may be locked: the lock ends, also where a child process has the file open."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError:  # a file system without locks
        pass
    finally:
        os.close(descriptor)


def wait_for_folder(folder: str | os.PathLike[str]) -> int:
    """Wait until nobody else holds a folder, and hold it until what is handed back is closed.

    Returns
    -------
    int
        A descriptor: of the folder, or, where folders cannot be opened, of a file of the user's that is named after it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    OSError
        If it cannot be opened.
    """
    if fcntl is not None:
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    descriptor = open_descriptor(_lock_of(folder), os.O_RDWR | os.O_CREAT)
    while True:
        try:
            take_lock(descriptor)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return descriptor


def _lock_of(path: str | os.PathLike[str]) -> Path:
    """Return the file of the user's, among the temporary ones, that is locked in the place of a path."""
    name = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Path(tempfile.gettempdir(), f"anonflow-{user_tag()}-{name}.lock")


@contextmanager
def held_alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Around what this user does once at a time with a path, on this machine; leaves nothing, also where its process is killed.

    Nothing is held where the system or the folder of temporary files has no locks.

    Raises
    ------
    BlockingIOError
        If somebody else holds it.
    """
    place = _lock_of(path)
    descriptor = None
    try:
        while descriptor is None:
            descriptor = open_descriptor(place, os.O_RDWR | os.O_CREAT | NO_FOLLOW)
            take_lock(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(place)):
                    break
            os.close(descriptor)  # whoever held it has just removed it
            descriptor = None
    except BlockingIOError:
        assert descriptor is not None
        os.close(descriptor)
        raise
    except OSError:
        pass
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                place.unlink()
            release_lock(descriptor)


def take_space(descriptor: int, size: int) -> None:
    """Take the disk space of a file's first bytes, where the system and the file system can; what is written stays.

    Raises
    ------
    OSError
        If there is no room for them.
    """
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def set_mode(descriptor: int, path: str | os.PathLike[str], mode: int) -> None:
    """Give an open file its permission bits; on Windows they say only whether it may be written to."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)
    else:
        os.chmod(path, mode)


def user_tag() -> str:
    """Return what tells this user's files in a shared folder from another's."""
    if hasattr(os, "getuid"):
        return str(os.getuid())
    return "".join(letter if letter.isalnum() else "_" for letter in getpass.getuser())


def is_owners_alone(status: os.stat_result) -> bool:
    """Return whether a folder is this user's, and closed to all others; on Windows, whether it is a folder: its rights are inherited."""
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)


def is_open_to_others(status: os.stat_result) -> bool:
    """Return whether other users may read or write a file; never on Windows, where its bits say nothing: its rights are inherited."""
    return hasattr(os, "getuid") and bool(status.st_mode & 0o077)


def is_root() -> bool:
    """Return whether this process may do everything; never on Windows."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def total_memory() -> int:
    """Return bytes of memory that this machine has."""
    if hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    import psutil

    return int(psutil.virtual_memory().total)


def peak_memory() -> int:
    """Return the most bytes that this process has used so far."""
    if resource is not None:
        # macOS says bytes
        kibibytes = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return kibibytes * (1 if sys.platform == "darwin" else 1024)
    import psutil

    usage = psutil.Process().memory_info()
    return int(getattr(usage, "peak_wset", usage.rss))


def release_memory() -> None:
    """Give freed memory back to the system: Arrow and the C library keep it for later."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    pa.system_memory_pool().release_unused()


def with_peak(work: Callable[[], Result], pause: float = 0.001) -> tuple[Result, int]:
    """Call something, and return what it returned beside the bytes that this process held at the most beyond those before.

    Parameters
    ----------
    work : callable
    pause : float
        Seconds between two looks. What other threads take meanwhile is counted, too.
    """
    import psutil

    process, over = psutil.Process(), threading.Event()
    before = most = process.memory_info().rss

    def look() -> None:
        nonlocal most
        while not over.wait(pause):
            most = max(most, process.memory_info().rss)

    watcher = threading.Thread(target=look, name="anonflow-memory", daemon=True)
    watcher.start()
    try:
        result = work()
        most = max(most, process.memory_info().rss)
    finally:
        over.set()
        watcher.join()
    return result, int(most - before)


def is_running(process: int) -> bool:
    """Return whether a process of that number is there."""
    if not hasattr(os, "getuid"):  # a signal 0 would be Ctrl-C there
        import psutil

        return process > 0 and psutil.pid_exists(process)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


def started(process: int) -> str:
    """When a process began; empty where that cannot be known."""
    if not hasattr(os, "getuid"):
        import psutil

        try:
            return f"{psutil.Process(process).create_time():.3f}"
        except (psutil.Error, ValueError):
            return ""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # field 22; the name before it, in brackets, may have brackets and spaces itself
    return text.rpartition(")")[2].split()[19]


def start_resource_tracker() -> None:
    """Start the process that cleans up after others, where this system has one."""
    if resource is not None:
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()


def block_interrupt() -> None:
    """Leave Ctrl-C to other threads, and to none of the processes that this one starts; on Windows they get it, too."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
