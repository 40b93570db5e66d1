"""The description file beside a published table: CSVW for CSV, a data package for other files.

One description (:class:`anonflow.table.published.metadata.ReleaseMetadata`), two renderings. Facts without a term in the
standards have the same names in both: in CSVW as properties ``urn:anonflow:NAME``, in a data package under
``anonflow``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from anonflow import __version__
from anonflow.errors import AnonflowError, DataError
from anonflow.hierarchy import Hierarchy
from anonflow.table.files.parquet_metadata import FOLDER_ENDING, PARQUET_ENDINGS, is_parquet
from anonflow.table.files.statistics_writing import WRITTEN, is_written
from anonflow.table.published.metadata import (
    AGGREGATED,
    CODED,
    EXACT,
    NOTATIONS,
    TYPES,
    ColumnMetadata,
    ReleaseMetadata,
)
from anonflow.table.published.published_cells import WHOLE, Range
from anonflow.table.schema import ROLES, UNPUBLISHED, form_of, short_form
from anonflow.table.spreadsheets import guarded_text

ENDINGS = (".csv", *PARQUET_ENDINGS, *WRITTEN)
"""Endings of the files that a release is written to."""

KINDS = (ENDINGS[0], PARQUET_ENDINGS[0], FOLDER_ENDING, ".sav", ".dta")
"""One of these endings for each kind of file, and that of a folder of Parquet files; the others are spellings of a kind."""

FORMAT = 1
"""Version of the facts besides the standards."""

PACKAGE = "datapackage.json"
"""The name that a data package must have; it describes every release of its folder but CSV files."""

_SENTENCES = ("description", "http://purl.org/dc/terms/description")
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,2}((a|b|rc)\d{1,3})?(\.(dev|post)\d{1,4})?")
_CSVW = "http://www.w3.org/ns/csvw"
_OWN = "urn:anonflow:"
_LARGEST = 1 << 28
"""The most bytes of a description that is read."""

_TABLE = (
    "A table of people, anonymized: rows are in random order, and cells of generalized columns stand for several values. "
    "Each column says how."
)
_MEDIA_TYPES = {
    ".sav": "application/x-spss-sav",
    ".zsav": "application/x-spss-sav",
    ".dta": "application/x-stata-dta",
}
_ESCAPED = (
    " In this CSV file an apostrophe stands before texts that begin, after any apostrophes, with =, +, -, @, a tab or a "
    "return and are neither numbers nor ranges of numbers; take it away."
)


def metadata_path(path: str | PathLike[str]) -> Path | None:
    """Return the path of a published table's description; None if the name has another ending than a published table."""
    table = Path(path)
    if table.suffix.lower() == ".csv":
        return table.with_name(f"{table.name}-metadata.json")
    return table.with_name(PACKAGE) if is_parquet(table) or is_written(table) else None


# --------------------------------------------------------------------------------------------------- writing


def metadata_text(about: ReleaseMetadata, path: str | PathLike[str], beside: str | None = None) -> str:
    """Return the text of a published table's description.

    Parameters
    ----------
    about : ReleaseMetadata
    path : path
        Of the published table.
    beside : str, optional
        The present data package of the folder: other tables stay in it.

    Raises
    ------
    DataError
        If that is not of anonflow.
    """
    table = Path(path)
    if table.suffix.lower() == ".csv":
        return _json(_csvw(about, table.name))
    package = _package_without(beside, table)
    package["resources"].append(_resource(about, table.name, package["resources"]))
    package["resources"].sort(key=lambda resource: resource["path"])
    return _json(package)


def without_table(text: str, path: Path) -> str | None:
    """Return the entries of a data package for the other tables of its folder; None if there are none.

    Raises
    ------
    DataError
        If it is not of anonflow.
    """
    package = _package_without(text, path)
    return _json(package) if package["resources"] else None


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _package_without(text: str | None, table: Path) -> dict[str, Any]:
    """Return a data package with the resources of other tables that are still there."""
    package: dict[str, Any] = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "anonflow": {"format": FORMAT},
        "resources": [],
    }
    if text is None:
        return package
    place = table.with_name(PACKAGE)
    content = _parsed(text, place)
    if not isinstance(content.get("anonflow"), dict) or not isinstance(content.get("resources"), list):
        raise DataError(f"{place}: describes other data; publish to another folder, or move it away")
    for resource in content["resources"]:
        name = resource.get("path") if isinstance(resource, dict) else None
        if isinstance(name, str) and name != table.name and table.with_name(Path(name).name).exists():
            package["resources"].append(resource)
    return package


def _own_table(metadata: ReleaseMetadata) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": metadata.version,
        **({} if metadata.guarantee is None else {"guarantee": metadata.guarantee}),
        **({} if metadata.k is None else {"k": metadata.k}),
        **({} if metadata.rows is None else {"rows": metadata.rows}),
    }


def _own_column(column: ColumnMetadata) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": column.role, "notation": column.notation}
    if column.type is not None:
        entry["type"] = column.type
    if column.form is not None:
        entry["form"] = column.form.to_mapping()
    if not column.is_generalized:
        return entry | ({"withheld": True} if column.withheld else {})
    entry["domain"] = "published" if column.has_domain else "not published"
    if column.missing:
        entry["missing"] = True
    if column.bounds is not None:
        entry |= dict(zip(("lowest", "highest"), column.bounds, strict=True))
    if column.values is not None:
        entry["values"] = [value for value in column.values if value is not None]
        if None in column.values:
            entry["missing"] = True
    if column.tree is not None:
        entry["nodes"] = list(column.tree.labels)
        entry["parents"] = column.tree.parent.tolist()
    return entry


def _csvw(metadata: ReleaseMetadata, name: str) -> dict[str, Any]:
    return {
        "@context": _CSVW,
        "url": quote(name),
        "dialect": {
            "encoding": "utf-8",
            "header": True,
            "delimiter": ",",
            "quoteChar": '"',
            "doubleQuote": True,
        },
        "http://purl.org/dc/terms/description": _TABLE + _ESCAPED,
        **{_OWN + key: value for key, value in _own_table(metadata).items()},
        "tableSchema": {"columns": [_csvw_column(column) for column in metadata.columns]},
    }


def _csvw_column(column: ColumnMetadata) -> dict[str, Any]:
    pattern = column.pattern
    base = {"boolean": "boolean", "integer": "integer", "number": "double"}.get(column.type or "", "string")
    datatype: Any = base if column.notation == EXACT else "string"
    if datatype == "boolean":
        datatype = {"base": "boolean", "format": "True|False"}
    if column.form is not None:
        datatype = "string"
    if pattern is not None:
        datatype = {"base": "string", "format": pattern}
    return {
        "name": _variable(column.name),
        "titles": guarded_text(column.name),
        "datatype": datatype,
        "null": ["", WHOLE] if column.withheld else "",
        "http://purl.org/dc/terms/description": column.sentences,
        **{_OWN + key: value for key, value in _own_column(column).items()},
    }


def _variable(name: str) -> str:
    """Return a column's name as the standard wants it: letters, digits, and all else percent-encoded."""
    encoded = quote(name, safe="").replace("-", "%2D").replace("~", "%7E").replace(".", "%2E")
    return f"%5F{encoded[1:]}" if encoded.startswith("_") else encoded


def _resource(metadata: ReleaseMetadata, name: str, others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": _resource_name(name, {str(other.get("name")) for other in others}),
        "type": "table",
        "path": name,
        "format": "parquet" if is_parquet(name) else Path(name).suffix[1:].lower(),
        "mediatype": _MEDIA_TYPES.get(Path(name).suffix.lower(), "application/vnd.apache.parquet"),
        "description": _TABLE,
        "anonflow": _own_table(metadata),
        "schema": {"fields": [_field_entry(column) for column in metadata.columns], "missingValues": [""]},
    }


def _resource_name(file: str, other_names: set[str]) -> str:
    """Return a unique name in the package, in the standard's form."""
    name = re.sub(r"[^a-z0-9._-]+", "-", Path(file).stem.lower()).strip("-.") or "release"
    number = 2
    unique = name
    while unique in other_names:
        unique, number = f"{name}-{number}", number + 1
    return unique


def _field_entry(column: ColumnMetadata) -> dict[str, Any]:
    types = {"boolean": "boolean", "integer": "integer", "number": "number"}
    pattern = column.pattern
    return {
        "name": column.name,
        "type": types.get(column.type or "", "string")
        if column.notation == EXACT and column.form is None
        else "string",
        "description": column.sentences,
        **({"missingValues": ["", WHOLE]} if column.withheld else {}),
        **({} if pattern is None else {"constraints": {"pattern": pattern}}),
        "anonflow": _own_column(column),
    }


# --------------------------------------------------------------------------------------------------- reading


def read_metadata(path: str | PathLike[str], *, ignore_others: bool = False) -> ReleaseMetadata | None:
    """Return the description in the file beside a published table; None if there is no such file.

    Parameters
    ----------
    path : path
        Of the published table.
    ignore_others : bool
        Whether a description that is not anonflow's is ignored.

    Raises
    ------
    DataError
        If the file cannot be read, is not such a description, or has an unknown notation.
    """
    place = metadata_path(path)
    if place is None or not place.exists():
        return None
    try:
        if place.stat().st_size > _LARGEST:
            raise DataError(f"{place}: is too large for a description; is it one?")
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8"
        raise DataError(f"{place}: cannot be read ({why}); ask for it again") from None
    document = _parsed(text, place)
    try:
        if place.name != PACKAGE or "tableSchema" in document:
            return _of_csvw(document)
        return _of_package(document, Path(path).name)
    except _WrongError as error:
        if ignore_others and isinstance(error, _OthersError):
            return None
        raise DataError(f"{place}: {error}") from None


def has_other_sentences(about: ReleaseMetadata) -> bool:
    """Return whether the sentences of a description are those of another version, which cannot be compared."""
    return about.version != __version__


def additions(path: str | PathLike[str], about: ReleaseMetadata) -> list[str]:
    """Return where a published table's files say what their writer would not have written.

    Parameters
    ----------
    path : path
        Of the published table.
    about : ReleaseMetadata
        The description beside it, as :func:`read_metadata` reads it.

    Returns
    -------
    list of str
        ``the table``, ``the name, which is not the file's``, or ``column 'NAME'``.
    """
    table, place = Path(path), metadata_path(path)
    assert place is not None
    document = _parsed(place.read_text(encoding="utf-8"), place)
    places = []
    if place.name == PACKAGE and "tableSchema" not in document:
        package = _package_without(None, table)
        resource = next(entry for entry in document["resources"] if entry.get("path") == table.name)
        fields = resource["schema"]["fields"]
        expected = _resource(about, table.name, [])
        name = str(resource.get("name"))
        if re.fullmatch(rf"{re.escape(expected['name'])}(-\d{{1,6}})?", name):
            expected["name"] = name  # another table of the folder may have the plain one
        expected_fields = expected["schema"]["fields"]
        pairs = [
            ({**document, "resources": []}, package),
            (
                {**resource, "schema": {**resource["schema"], "fields": []}},
                {**expected, "schema": {**expected["schema"], "fields": []}},
            ),
        ]
    else:
        fields, expected = document["tableSchema"]["columns"], _csvw(about, table.name)
        if document.get("url") != expected["url"]:
            places.append("the name, which is not the file's")
            expected.pop("url")
            document.pop("url", None)
        expected_fields = expected["tableSchema"]["columns"]
        pairs = [
            (
                {**document, "tableSchema": {**document["tableSchema"], "columns": []}},
                {**expected, "tableSchema": {"columns": []}},
            )
        ]
    loose = has_other_sentences(about)
    if any(_differ(part, written, loose) for part, written in pairs) or not _VERSION.fullmatch(about.version):
        places.append("the table")
    for column, field, written in zip(about.columns, fields, expected_fields, strict=True):
        if _differ(field, written, loose):
            places.append(f"column {column.name!r}")
    return places


def _differ(document: Mapping[str, Any], expected: Mapping[str, Any], loose: bool) -> bool:
    """Return whether two parts of a description differ, also by the type of a number; loosely but for their sentences."""
    texts = []
    for part in (document, expected):
        plain = {key: "" if loose and key in _SENTENCES else value for key, value in part.items()}
        texts.append(json.dumps(plain, sort_keys=True))
    return texts[0] != texts[1]


class _WrongError(Exception):
    """The error of a wrong description."""


class _OthersError(_WrongError):
    """The error of a description that is not anonflow's."""


def _parsed(text: str, place: Path) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_without_repetition)
    # from :func:`_without_repetition`
    except KeyError:
        raise DataError(f"{place}: has a key twice; ask for it again, or move it away") from None
    # json recurses: brackets a thousand deep end in a RecursionError
    except (ValueError, RecursionError):
        raise DataError(f"{place}: is not JSON; ask for it again, or move it away") from None
    if not isinstance(document, dict):
        raise DataError(f"{place}: describes no table; ask for it again, or move it away")
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise KeyError
    return entries


def _of_csvw(document: Mapping[str, Any]) -> ReleaseMetadata:
    schema = document.get("tableSchema")
    entries = schema.get("columns") if isinstance(schema, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _WrongError("has no columns; it does not describe a release")
    columns = []
    for entry in entries:
        name = entry.get("name")
        columns.append((unquote(name) if isinstance(name, str) else None, _unprefixed(entry)))
    return _release_metadata(_unprefixed(document), columns)


def _unprefixed(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(_OWN): value for key, value in entry.items() if key.startswith(_OWN)}


def _of_package(document: Mapping[str, Any], file: str) -> ReleaseMetadata | None:
    resources = document.get("resources")
    if not isinstance(resources, list):
        raise _WrongError("has no resources; it describes no release")
    for resource in resources:
        if isinstance(resource, dict) and resource.get("path") == file:
            schema = resource.get("schema")
            fields = schema.get("fields") if isinstance(schema, dict) else None
            if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
                raise _WrongError(f"{file} has no fields; it does not describe a release")
            table_entry = resource.get("anonflow")
            return _release_metadata(
                table_entry, [(field.get("name"), field.get("anonflow")) for field in fields]
            )
    return None


def _release_metadata(table_entry: Any, columns: Sequence[tuple[Any, Any]]) -> ReleaseMetadata:
    if not isinstance(table_entry, dict) or "format" not in table_entry:
        raise _OthersError("says nothing of generalized cells; is it the description of a release?")
    if table_entry["format"] != FORMAT:
        raise _WrongError(
            f"is of format {short_form(table_entry['format'])}, this program knows {FORMAT}; use a newer one"
        )
    k, rows = table_entry.get("k"), table_entry.get("rows")
    if any(number is not None and (not isinstance(number, int) or number < 0) for number in (k, rows)):
        raise _WrongError("k and rows must be whole numbers")
    guarantee, version = table_entry.get("guarantee"), table_entry.get("version", "")
    if not isinstance(version, str) or not (guarantee is None or isinstance(guarantee, str)):
        raise _WrongError("guarantee and version must be texts")
    described = tuple(_column_of_entry(name, entry) for name, entry in columns)
    names = {column.name for column in described}
    if len(names) < len(described):
        raise _WrongError("describes a column twice")
    return ReleaseMetadata(described, guarantee, k, version, rows)


def _column_of_entry(name: Any, entry: Any) -> ColumnMetadata:
    if not isinstance(name, str) or not name:
        raise _WrongError("a column has no name")
    if not isinstance(entry, dict):
        raise _WrongError(f"column {name!r}: its cells are not described")
    notation, role, kind = entry.get("notation"), entry.get("role"), entry.get("type")
    notations = (*NOTATIONS.values(), CODED, *AGGREGATED, EXACT)
    if notation not in notations:
        raise _WrongError(
            f"column {name!r}: unknown notation {short_form(notation)}; this program knows {', '.join(notations)}"
        )
    if role not in ROLES or role in UNPUBLISHED or (role == "quasi-identifier") != (notation != EXACT):
        raise _WrongError(f"column {name!r}: a role that does not go with the notation {notation!r}")
    if kind is not None and kind not in TYPES:
        raise _WrongError(
            f"column {name!r}: unknown type {short_form(kind)}; this program knows {', '.join(TYPES)}"
        )
    missing, withheld = entry.get("missing") is True, entry.get("withheld") is True
    if withheld and notation != EXACT:
        raise _WrongError(f"column {name!r}: withheld does not go with the notation {notation!r}")
    bounds: tuple[str, str] | None = None
    values = tree = None
    if notation in ("range", *AGGREGATED) and "lowest" in entry:
        low, high = entry.get("lowest"), entry.get("highest")
        if not isinstance(low, str) or not isinstance(high, str) or Range.between(low, high) is None:
            raise _WrongError(
                f"column {name!r}: lowest and highest must be numbers or dates, as texts, in order"
            )
        bounds = low, high
    elif notation == "node" and "nodes" in entry:
        tree = _published_tree(name, entry)
    elif "values" in entry and notation not in ("range", "node", *AGGREGATED, EXACT):
        listed = entry["values"]
        if not isinstance(listed, list) or not listed or not all(isinstance(value, str) for value in listed):
            raise _WrongError(f"column {name!r}: values must be a list of texts")
        values = (*([None] if missing else []), *listed)
        missing = False
    form = form_of(entry["form"]) if "form" in entry else None
    if isinstance(form, str) or (form is None and "form" in entry):
        raise _WrongError(f"column {name!r}: this program does not know its form; use a newer one")
    return ColumnMetadata(name, role, notation, kind, missing, bounds, values, tree, withheld, form)


def _published_tree(name: str, entry: Mapping[str, Any]) -> Hierarchy:
    nodes, parents = entry.get("nodes"), entry.get("parents")
    if (
        not isinstance(nodes, list)
        or not isinstance(parents, list)
        or len(nodes) != len(parents)
        or not all(isinstance(parent, int) for parent in parents)
    ):
        raise _WrongError(f"column {name!r}: nodes and parents must be lists of one length")
    try:
        return Hierarchy(nodes, parents)
    except AnonflowError as error:
        raise _WrongError(f"column {name!r}: its nodes are no tree: {error.message}") from None
