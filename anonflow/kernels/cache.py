"""Compiled kernels on disk, so that what one process compiles others load.

numba's own cache confuses functions in two ways, without an error:

- numba numbers the functions that a process compiles 1, 2, 3, ..., and tells closures of one name and one type by
  this number alone. Two processes give the same number to different closures, and a third process that loads
  both calls the first for both. Here every number is 128 random bits. A hash of the code would not be enough: closures
  of equal code can differ.
- numba's index of a function names its data files 1, 2, 3, .... Two processes that compile it for two signatures
  at once write one file, and the index then names it for both. This cache has no index: each file is named by a hash of
  its key, contains the key, and is replaced as a whole.

A kernel inlines the functions that it calls, also those of other files. So the folder's name depends on everything that
can change its code.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from anonflow import __version__
from anonflow.errors import AnonflowWarning
from anonflow.system import is_owners_alone, open_descriptor, release_lock, take_lock, user_tag

SUFFIX = ".kernel"

LONGEST = 60.0
"""Seconds that a process waits for another one to compile a kernel; the largest takes 30 on a busy machine."""

_BITS = 128

_SHORT = re.compile(r"B([1-9]|1[0-9])v[0-9]")
"""A number of fewer than 19 digits in a symbol's name, which writes it as ``B<length of v and digits>v<digits>``."""

_config: Any = numba.config

_SHA = hashlib.sha256().digest_size


class KernelCacheWarning(AnonflowWarning, RuntimeWarning):
    """Warning: compiled kernels are not kept on disk, or not in the preferred folder."""


class _RandomNumbers:
    """A source of random function numbers for numba: no two processes use the same number."""

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        # the highest bit is set, so that no number is a short one
        return int.from_bytes(os.urandom(_BITS // 8), "little") | 1 << (_BITS - 1)


def numbered_at_random() -> bool:
    """Make numba number functions at random from now on; return whether this worked."""
    identity: Any = FunctionIdentity
    try:
        identity._unique_ids = _RandomNumbers()
        number = identity.from_function(numbered_at_random).unique_id
        return isinstance(number, int) and number.bit_length() == _BITS
    except Exception:  # another version of numba may number functions differently and raise any exception
        return False


_AT_RANDOM = numbered_at_random()


class KernelCache:
    """The cache files of one kernel, one for each signature, with the interface of numba's caches.

    Parameters
    ----------
    function : function
        The plain function.
    options : sequence of str
        The compiler's options.

    Notes
    -----
    Any number of processes may load and save at once. If two compile the same kernel, both files are right, and a reader
    sees one of them completely; :meth:`by_one_process` saves the time of the second.
    """

    def __init__(self, function: FunctionType, options: tuple[str, ...]) -> None:
        self._function = function
        self._options = options
        self._is_enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder of all kernels; None if no folder is writable."""
        return folder()

    def enable(self) -> None:
        """Load and save."""
        self._is_enabled = True

    def disable(self) -> None:
        """Neither load nor save."""
        self._is_enabled = False

    def flush(self) -> None:
        """Delete the files of this kernel.

        Raises
        ------
        OSError
            If one cannot be deleted.
        """
        home = folder()
        for path in Path(home).glob(f"{self._function.__qualname__}-*{SUFFIX}") if home else ():
            path.unlink(missing_ok=True)

    @contextmanager
    def by_one_process(self, sig: Any) -> Iterator[None]:
        """Let one process at a time compile the kernel for a signature; another one waits, and reads its file then.

        A kernel waits for those that it calls, and these never for it. Where locks do not work, or one is held for longer
        than any kernel takes, nobody waits.
        """
        home = folder()
        path = None if home is None or not self._is_enabled else self._path(home, self._key(sig))
        descriptor = None
        if path is not None and not os.path.exists(path):
            with suppress(OSError):
                descriptor = open_descriptor(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
        if path is None or descriptor is None:
            yield
            return
        try:
            until = time.monotonic() + LONGEST
            # the lock is tried again and again: a call that waits would miss both the file and the end of the time
            while time.monotonic() < until and not os.path.exists(path):
                try:
                    take_lock(descriptor)
                    break
                except BlockingIOError:
                    time.sleep(0.02)
                except OSError:
                    break
            yield
        finally:
            release_lock(descriptor)
            with suppress(OSError):
                path.with_suffix(".lock").unlink()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for a signature, or None if no file has it."""
        home = folder()
        if home is None or not self._is_enabled:
            return None
        target_context.refresh()
        key = self._key(sig)
        try:
            content = self._path(home, key).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content[_SHA:]).digest() != content[:_SHA]:
            return None  # the file is incomplete: the disk was full, or the machine stopped
        stored_key, payload = pickle.loads(content[_SHA:])
        # the file's name is a hash of the key's text: only the key itself decides
        if stored_key != key:
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(payload))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel to its file, if other processes can use it."""
        home = folder()
        if home is None or not self._is_enabled or data.library.has_dynamic_globals:
            return
        if _has_short_numbers(data.library):
            _warn(
                "some compiled kernels are not kept on disk, for other code was compiled by numba before anonflow was "
                "there; import anonflow.kernels.jit first"
            )
            return
        key = self._key(sig)
        content = dumps((key, dumps(data._reduce())))
        path = self._path(home, key)
        fresh = path.with_suffix(f".{os.urandom(8).hex()}")
        try:
            fresh.write_bytes(hashlib.sha256(content).digest() + content)
            # renamed when it is complete: a reader meets a whole file or none
            fresh.replace(path)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            _warn(f"compiled kernels cannot be kept in {home}: {error.strerror}")

    def _key(self, sig: Any) -> tuple[Any, ...]:
        function = self._function
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        return (
            sig,
            self._source,
            # bytecode has no constants: two functions of a file may share it, and their lines tell them apart
            function.__code__.co_firstlineno,
            self._options,
            dumps((function.__defaults__, cells)),
        )

    @functools.cached_property
    def _source(self) -> tuple[str, bytes, bytes]:
        """Return the file of the function and its source.

        A file of this folder is named by its place here: copies of the package, and other ways to write its path, share kernels.
        """
        code, home = self._function.__code__, Path(__file__).resolve().parent
        named = Path(code.co_filename)
        path = named.resolve()
        place = path.relative_to(home) if path.is_relative_to(home) else path
        # read by the path that the process has: another way to the file may be closed to its user
        return place.as_posix(), hashlib.sha256(named.read_bytes()).digest(), code.co_code

    def _path(self, home: str, key: tuple[Any, ...]) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return Path(home, f"{self._function.__qualname__}-{name}{SUFFIX}")


def is_empty() -> bool:
    """Return whether the folder has no compiled kernel, so that the first run compiles."""
    home = folder()
    return home is None or not any(True for _ in Path(home).glob(f"*{SUFFIX}"))


@functools.cache
def folder() -> str | None:
    """Return the folder of compiled kernels, created at the first use; None if no folder is writable.

    It is the first writable one of these: the folder of NUMBA_CACHE_DIR; this package's ``__pycache__``; the user's
    cache; a temporary folder, with a warning.
    """
    if not _AT_RANDOM:
        _warn("compiled kernels are not kept on disk: anonflow does not know this version of numba")
        return None
    stamp = _stamp()
    for place in _places():
        home = place / stamp
        try:
            home.mkdir(parents=True, exist_ok=True)
            # an existing folder is no proof that it can be written to
            tempfile.TemporaryFile(dir=home).close()
        except OSError:
            continue
        return str(home)
    try:
        home = _temporary() / stamp
        home.mkdir(exist_ok=True)
    except OSError:
        _warn(
            "compiled kernels are not kept on disk: no folder can be written to; set NUMBA_CACHE_DIR to one"
        )
        return None
    _warn(
        f"compiled kernels are kept in {home}, no other folder can be written to; set NUMBA_CACHE_DIR to one"
    )
    return str(home)


def _places() -> Iterator[Path]:
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR)
    yield Path(__file__).parent / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if user.is_absolute():  # otherwise there is no home folder
        yield user / "anonflow"


def _temporary() -> Path:
    """Return a folder below the temporary one that belongs to this user alone, because loaded files are executed."""
    path = Path(tempfile.gettempdir(), f"anonflow-{user_tag()}")
    path.mkdir(mode=0o700, exist_ok=True)
    if is_owners_alone(path.lstat()):
        return path
    return Path(tempfile.mkdtemp(prefix="anonflow-"))


def _stamp() -> str:
    """Return everything that a compiled kernel depends on besides its function: versions, processor, all kernel files."""
    versions = (
        __version__,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.implementation.cache_tag,
    )
    digest = hashlib.sha256(repr((versions, cpu_target.target_context.codegen().magic_tuple())).encode())
    # a compiled kernel contains those that it calls, so a change to any file renews all
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"kernels-{digest.hexdigest()[:32]}"


def _has_short_numbers(library: Any) -> bool:
    """Return whether a part of a library was compiled before numbers were random."""
    module = library._final_module
    return any(
        _SHORT.search(part.name) for parts in (module.functions, module.global_variables) for part in parts
    )


@functools.cache
def _warn(message: str) -> None:
    """Warn once per process."""
    warnings.warn(message, KernelCacheWarning, stacklevel=3)
