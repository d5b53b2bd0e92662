"""Writes JSON Schemas of all headers: ``python -m spectrod.wire.jsonschema docs/schema``."""

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from spectrod.wire import headers

_HEADERS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "spectrum": headers.SpectrumHeader,
    "bands": headers.BandsHeader,
    **headers.MEASUREMENTS,
    "meta": headers.MetaHeader,
    "heartbeat": headers.HeartbeatHeader,
    "event": headers.EventHeader,
}


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema (2020-12) of each header, by the last word of its ``schema``."""
    return {name: _schema(header) for name, header in _HEADERS.items()}


def write(folder: Path) -> None:
    """Write each schema as NAME.json; raises OSError if a file cannot be written."""
    for name, schema in schemas().items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n")


def _schema(header: type[msgspec.Struct]) -> dict[str, Any]:
    definitions: dict[str, dict[str, Any]] = msgspec.json.schema(header)["$defs"]
    for name, part in definitions.items():
        _describe(part, getattr(headers, name))
    defined = definitions.pop(header.__name__)
    if definitions:
        defined["$defs"] = definitions
    for name in ("v", "schema"):  # the encoder always writes them, and readers depend on them
        defined["required"].insert(0, name)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **defined}


def _describe(defined: dict[str, Any], struct: type[msgspec.Struct]) -> None:
    """Add the texts of its fields to the schema of a struct."""
    # Python 3.13 removes the indentation of docstrings, earlier ones keep it.
    defined["description"] = inspect.cleandoc(defined["description"])
    texts = _field_texts(headers.SpectrumHeader) | _field_texts(struct)
    for name, prop in defined["properties"].items():
        if name in texts:
            prop["description"] = texts[name]


def _field_texts(header: type[msgspec.Struct]) -> dict[str, str]:
    """Read the docstring of each field, which Python does not keep, from the source."""
    texts: dict[str, str] = {}
    for base in reversed(header.__mro__):
        if base.__module__ != headers.__name__:
            continue
        (definition,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(definition, ast.ClassDef)
        for statement, following in zip(definition.body, definition.body[1:], strict=False):
            match statement, following:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.replace("``", "").split())
    return texts


if __name__ == "__main__":
    write(Path(sys.argv[1]))
