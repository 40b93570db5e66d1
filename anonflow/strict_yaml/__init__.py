"""The one YAML reader, for schemas and flows: places kept, nothing coerced, duplicates refused.

What a plain (unquoted) scalar means:

- ``true``, ``false``, ``null`` in lower case, and nothing at all (null);
- a number, where JSON would read one: ``5``, ``-2``, ``1.50``, ``1e3``;
- text in every other case: ``NO``, ``yes``, ``True``, ``~``, ``01234``, ``-0``, ``+1``, ``0x1F``,
  ``1_000``, ``2020-01-31``, ``.inf``.

Keys of mappings are text as written, always. Anchors, aliases, tags, several documents, directives but
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
