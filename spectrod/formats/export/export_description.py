"""A recording's description as JSON, which every export contains."""

import dataclasses
import json

import msgspec

from spectrod.formats.description import (
    Description,
    StoredDescription,
    StoredVersion,
    spec_fields,
)
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.lib.text import reason_of

VERSION = 1


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
        version = msgspec.convert(document, StoredVersion).v
        if version != VERSION:
            raise StorageError(f"description of version {version}: must be {VERSION}")
        return msgspec.convert(document, StoredDescription).description()
    except (msgspec.ValidationError, RecursionError, ValueError) as error:
        raise StorageError(f"description: {reason_of(error)}") from error
