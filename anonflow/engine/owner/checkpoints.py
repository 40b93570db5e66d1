"""Checkpoints: results of partitions, stored in the owner's folder until their run is published.

A checkpoint's name is a keyed hash of everything that the result depends on, so a changed parameter, table or package
version has another name, and an unchanged one has the same name in every flow.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from anonflow import __version__
from anonflow.algorithms.diversity.within_partition import Request
from anonflow.algorithms.method import Outcome
from anonflow.engine.execution.tasks import Matched, TaskSettings
from anonflow.errors import AnonflowError
from anonflow.generalization import Generalization
from anonflow.hierarchy import Hierarchy
from anonflow.system import READING_HEADERS
from anonflow.table import Domain, Records
from anonflow.whole_file import write_whole

EVERY = 1.0
"""Seconds of work that may be lost: results are stored together, a file for each such period."""

MOST = 1000
"""The most files that are kept when a run is published, the newest."""

MOST_BYTES = 1 << 30
"""The most bytes of these files."""

_ARRAYS = ("lo", "hi", "bits", "matches", "classes", "suppressed")


@dataclass(frozen=True)
class ResultNames:
    """Gives results of partitions their names. It is sent to tasks, which have the records.

    Attributes
    ----------
    key : bytes
        The owner's secret: without it a name confirms no guess of what was hashed.
    domains : bytes
        :func:`domains_digest` of the table.
    """

    key: bytes = field(repr=False)
    domains: bytes

    def __call__(
        self,
        settings: TaskSettings,
        parts: Sequence[Records],
        first: int = 0,
        values: Sequence[np.ndarray] | None = None,
    ) -> list[tuple[str, ...]]:
        """Return the names of the result of each partition of a run, and of its diverse result if it must be diverse.

        Parameters
        ----------
        settings : TaskSettings
            Of the run.
        parts : sequence of Records
            The partitions in order; O(n q) time for all of them.
        first : int
            Number of the first.
        values : sequence of numpy.ndarray, optional
            The values of each partition that must be diverse.

        Returns
        -------
        list of tuple of str
            64 hexadecimal digits each.
        """
        text = json.dumps(
            [
                settings.algorithm, settings.k, settings.loss, settings.options, settings.criteria,
                settings.entropy, settings.boundaries,
            ],
            sort_keys=True, default=str,
        )  # fmt: skip
        start = hmac.new(self.key, b"partition 1", "sha256")
        for content in (__version__.encode(), self.domains, text.encode()):
            # digests are equally long: no two lists of contents run together into the same bytes
            start.update(hashlib.sha256(content).digest())
        diverse = start.copy()
        if values is not None and settings.diversity is not None:
            diverse.update(_request_digest(settings.diversity))
        names = []
        for at, records in enumerate(parts):
            place = (first + at).to_bytes(8, "big") + hashlib.sha256(records.codes.tobytes()).digest()
            ends = [(start, place)]
            if values is not None:
                ends.append((diverse, place + hashlib.sha256(values[at].tobytes()).digest()))
            names.append(tuple(_ended(digest, end) for digest, end in ends))
        return names


def _ended(digest: hmac.HMAC, content: bytes) -> str:
    whole = digest.copy()
    whole.update(content)
    return whole.hexdigest()


class Checkpoints:
    """The stored results of one owner's folder.

    Parameters
    ----------
    folder : pathlib.Path
        ``owner/<flow>/checkpoints``; made when the first result is stored.

    Notes
    -----
    Invariant: a file ``<name>.npz`` is written whole, by rename, and holds results of partitions one after the
    other: a header of plain JSON, and one flat array for each field. An array has the smallest integers that hold its values; the
    header says of what type they were. A file contains no code, and an unreadable one is ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: dict[str, Matched] = {}
        self._work = 0.0
        self._there: dict[str, Path] = {}

    def add(self, name: str, result: Matched) -> None:
        """Take a result that :meth:`flush` will write."""
        self._waiting[name] = result
        self._work += result.seconds

    @property
    def due(self) -> bool:
        """Whether the waiting results took long enough for a file."""
        return bool(self._waiting) and self._work >= EVERY

    def flush(self) -> None:
        """Write what waits.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self.write(self.folder / f"{next(iter(waiting))}.npz", waiting)
        self._work = 0.0

    def write(self, path: Path, results: Mapping[str, Matched]) -> None:
        """Write results to a file of the folder, which is made if it is not there.

        Raises
        ------
        AnonflowError
            If it cannot be written.
        """
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise AnonflowError(f"{self.folder}: cannot be made: {error.strerror}") from None
        write_whole(path, lambda part: _write_arrays(part, results), mode=0o600)

    def find(self) -> None:
        """Look for stored results: only their names are read."""
        for path in sorted(self.folder.glob("*.npz")) if self.folder.is_dir() else ():
            with suppress(Exception), _open(path) as file:  # each kind of damage has an error of its own
                self._there |= dict.fromkeys(_headers(file), path)

    @property
    def is_empty(self) -> bool:
        """Whether :meth:`find` has found nothing."""
        return not self._there

    def read(self, names: Sequence[str], domains: Sequence[Domain]) -> dict[str, Matched]:
        """Return the results with some names that :meth:`find` has found.

        Parameters
        ----------
        names : sequence of str
        domains : sequence of Domain
            That the generalized records are on.

        Returns
        -------
        dict
            Name -> result. Damaged results are left out: they are computed again.
        """
        results: dict[str, Matched] = {}
        for path in dict.fromkeys(self._there[name] for name in names if name in self._there):
            with suppress(Exception), _open(path) as file:
                results |= _read_results(file, names, domains)
        return results

    def tidy(self, seconds: float) -> None:
        """Delete results that are older than that, and the oldest where they are too many or too large."""
        if not self.folder.is_dir():
            return
        before = time.time() - seconds
        files = []
        for path in self.folder.glob("*.npz"):
            with suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = 0
        for number, (modified, size, path) in enumerate(sorted(files, reverse=True)):
            total += size
            if modified <= before or number >= MOST or total > MOST_BYTES:
                with suppress(OSError):
                    path.unlink()


def domains_digest(domains: Sequence[Domain]) -> bytes:
    """Return a hash of everything of a table that results depend on besides its records: values, hierarchies, weights, boundaries, limits."""
    whole = hashlib.sha256()
    for domain in domains:
        for attribute in fields(domain):
            value = getattr(domain, attribute.name)
            if isinstance(value, Hierarchy):
                whole.update(json.dumps(value.labels).encode())
                value = value.parent
            if isinstance(value, np.ndarray):
                whole.update(f"{attribute.name} {value.dtype} {value.shape}".encode())
                whole.update(value.tobytes())
            else:
                whole.update(json.dumps([attribute.name, value], default=str).encode())
    return whole.digest()


def _request_digest(request: Request) -> bytes:
    """Return a hash of everything that a diverse result depends on besides the method's settings, and the values."""
    texts = [request.n, request.way, request.risk, request.rows, repr(request.targets)]
    whole = hashlib.sha256(json.dumps(texts).encode())
    for target in request.targets.each:
        whole.update(target.overall.tobytes())
    return whole.digest()


def _write_arrays(path: Path, results: Mapping[str, Matched]) -> None:
    arrays: dict[str, list[np.ndarray]] = {array: [] for array in _ARRAYS}
    headers = {}
    for name, matched in results.items():
        outcome = matched.outcome
        generalization = outcome.generalization
        values_of = dict(
            zip(
                _ARRAYS,
                (
                    generalization.lo, generalization.hi, generalization.bits, outcome.matches, outcome.classes, outcome.suppressed,
                ),
                strict=True,
            )
        )  # fmt: skip
        headers[name] = {
            "shapes": {array: None if value is None else value.shape for array, value in values_of.items()},
            "types": {array: value.dtype.str for array, value in values_of.items() if value is not None},
            "facts": outcome.facts,
            "seconds": matched.seconds,
        }
        for array, value in values_of.items():
            if value is not None:
                arrays[array].append(value.ravel())
    flat = {array: _narrow(np.concatenate(values)) for array, values in arrays.items() if values}
    try:
        header = json.dumps(headers, default=_json_fact).encode()
    except TypeError as error:
        raise AnonflowError(f"{path}: a method's fact cannot be stored: {error}") from None
    np.savez(path, header=np.frombuffer(header, np.uint8), **flat)  # type: ignore[arg-type]


def _narrow(values: np.ndarray) -> np.ndarray:
    """Return integers in as few bytes as the least and the greatest of them need."""
    if values.dtype.kind != "i" or not len(values):
        return values
    least, greatest = int(values.min()), int(values.max())
    # numpy looks at one number: of both signs, at the one that needs more bits
    return values.astype(np.min_scalar_type(greatest if least >= 0 else min(least, -greatest - 1)))


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    with READING_HEADERS, path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        yield file


def _headers(file: Any) -> dict[str, Any]:
    return json.loads(bytes(file["header"]))


def _read_results(file: Any, names: Sequence[str], domains: Sequence[Domain]) -> dict[str, Matched]:
    results = {}
    chosen_names = set(names)
    flat = {array: file[array] for array in _ARRAYS if array in file}
    used = dict.fromkeys(_ARRAYS, 0)
    for name, header in _headers(file).items():
        arrays: dict[str, Any] = dict.fromkeys(_ARRAYS)
        for array, shape in header["shapes"].items():
            if shape is not None:
                start, size = used[array], int(np.prod(shape))
                # a copy: one result must not keep all the others
                arrays[array] = (
                    flat[array][start : start + size].reshape(shape).astype(header["types"][array])
                )
                used[array] = start + size
        if name not in chosen_names:
            continue
        outcome = Outcome(
            Generalization(tuple(domains), arrays["lo"], arrays["hi"], arrays["bits"]),
            matches=arrays["matches"],
            classes=arrays["classes"],
            suppressed=arrays["suppressed"],
            facts=header["facts"],
        )
        results[name] = Matched(outcome, header["seconds"])
    return results


def _json_fact(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(type(value).__name__)
