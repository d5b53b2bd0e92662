"""A recording's description as JSON, which every export contains."""

import dataclasses
import json
from typing import Any

import msgspec

from spectrod.errors import ConfigError, StorageError
from spectrod.formats.description import Description, spec_fields, stored_spec

VERSION = 1


class _Versioned(msgspec.Struct, frozen=True):
    """The field that descriptions of all versions have."""

    v: int


class _Document(msgspec.Struct, frozen=True):
    """The fields of a description that are read back."""

    spec: dict[str, Any]
    source: str
    signals: tuple[str, ...]
    software: str
    cal_id: str = ""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


def encode_description(description: Description) -> str:
    """Encode a description as one line of ASCII JSON.

    Raises
    ------
    ConfigError
        If the settings contain a value that JSON cannot represent.
    """
    held = {one.name: getattr(description, one.name) for one in dataclasses.fields(description)}
    document = {"v": VERSION, **held, "spec": spec_fields(description.spec)}
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"settings of {description.source!r}: must fit in JSON: {error}"
        ) from error


def decode_description(text: str) -> Description:
    """Read a description back.

    Raises
    ------
    StorageError
        If it is of another version, or is not valid.
    """
    try:
        # Python's decoder accepts lone surrogates, which stand for non-UTF-8 bytes in names.
        document = json.loads(text)
        version = msgspec.convert(document, _Versioned).v
        if version != VERSION:
            raise StorageError(f"description of version {version}: must be {VERSION}")
        read = msgspec.convert(document, _Document)
        spec = stored_spec(read.spec)
    except (msgspec.ValidationError, RecursionError, ValueError) as error:
        raise StorageError(f"description: {error}") from error
    if len(read.signals) != spec.n_signals:
        n = len(read.signals)
        raise StorageError(f"description: names of {n} signals: must be {spec.n_signals}")
    return Description(**{**msgspec.structs.asdict(read), "spec": spec})
