"""Check before the computation that the flow's target files can be written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath

from anonflow.engine.flows.addresses import is_address, overwriting, place_of, shown_address
from anonflow.errors import AnonflowError, FlowError
from anonflow.system import held_alone, open_descriptor
from anonflow.table.files.parquet_metadata import in_folder, is_part
from anonflow.whole_file import missing_folders, remove_empty


def check_targets(targets: Sequence[str | Path], read: Mapping[Path, str]) -> None:
    """Check that files can be written, each in a place of its own; no file remains.

    Parameters
    ----------
    targets : sequence of str or pathlib.Path
        A text that ends with a slash is a folder of files.
    read : mapping
        File that is read -> what it is: none of them is written over.

    Raises
    ------
    FlowError
        If one cannot be written, or is another one of them.
    """
    roles: dict[PurePath, str] = {place_of(str(path), Path()): role for path, role in read.items()}
    for target in targets:
        place = place_of(str(target), Path())
        problem = overwriting(place, roles)
        if problem is not None:
            raise FlowError(f"{target}: {problem}; name another file")
        roles[place] = "another result"
        check_target(target)


@contextmanager
def held_targets(targets: Sequence[str | Path]) -> Iterator[None]:
    """Around a run: two runs with one target would remove each other's drafts, and mix a table with another's report.

    Raises
    ------
    AnonflowError
        If another run of this user holds one of them.
    """
    with ExitStack() as locks:
        for target in targets:
            # two flows in different folders name one address, which is a file of no folder here
            place = Path("/", place_of(str(target), Path()))
            try:
                locks.enter_context(held_alone(place))
            except BlockingIOError:
                name = shown_address(str(target)) if is_address(target) else target
                raise AnonflowError(
                    f"{name}: another run is at work and writes this file; wait until it is over, or publish to another file"
                ) from None
        yield


def check_target(named: str | Path) -> None:
    """See that a file can be published where it is asked for; leaves nothing behind.

    Parameters
    ----------
    named : str or pathlib.Path
        A text that ends with a slash is a folder of files.

    Raises
    ------
    FlowError
        If it cannot.
    """
    target = Path(named)
    folders = missing_folders(target.parent)
    try:
        if in_folder(named):
            if target.exists() and not (target.is_dir() and all(map(is_part, target.iterdir()))):
                raise FlowError(f"{target}: has files that anonflow did not write; name another folder")
        elif target.is_dir():
            raise FlowError(f"{target}: is a folder; name a file to publish to")
        elif target.exists() and not target.is_file():
            raise FlowError(
                f"{target}: is not a file but a device, a pipe or the like; name a file to publish to"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        probe = target.parent / f".probe-{secrets.token_hex(4)}"
        os.close(open_descriptor(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        probe.unlink()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise FlowError(f"{target}: cannot be written: {why}; publish to another folder") from None
    finally:
        for folder in folders:
            remove_empty(folder)
