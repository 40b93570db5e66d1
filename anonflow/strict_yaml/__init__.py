"""The YAML reader of schemas and flows: it keeps places, coerces no value and refuses duplicate keys.

A plain (unquoted) scalar means:

- ``true``, ``false``, ``null`` in lower case, and an empty value (null);
- a number, if JSON reads it as a number: ``5``, ``-2``, ``1.50``, ``1e3``;
- text in every other case: ``NO``, ``yes``, ``True``, ``~``, ``01234``, ``-0``, ``+1``, ``0x1F``,
  ``1_000``, ``2020-01-31``, ``.inf``.

Keys of mappings are always text, as written. Anchors, aliases, tags, several documents, directives other than
``%YAML 1.2``, tabs in the indentation and duplicate keys are errors.
"""

from anonflow.strict_yaml.names import shorten, suggest, unknown
from anonflow.strict_yaml.reading import MAX_BYTES, MAX_DEPTH, Document, Problems, loads, read
from anonflow.strict_yaml.writing import dumps

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "Document",
    "Problems",
    "dumps",
    "loads",
    "read",
    "shorten",
    "suggest",
    "unknown",
]
