"""A recording's description as JSON, which every export holds to be read back whole."""

import dataclasses
import json
from typing import Any

from spectrod.errors import ConfigError, StorageError
from spectrod.record.recording import Description
from spectrod.types import SpectrumSpec

VERSION = 1


def encode_description(description: Description) -> str:
    """Write a description as one line of JSON, in ASCII.

    Raises
    ------
    ConfigError
        If the settings hold what JSON has no form for.
    """
    document = {"v": VERSION, **_fields(description), "spec": _fields(description.spec)}
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
        If it is of a later version, or not what ``encode_description`` makes.
    """
    try:
        document = json.loads(text)
        version = document.pop("v")
        if version != VERSION:
            raise StorageError(f"description of version {version}: must be {VERSION}")
        document["spec"] = SpectrumSpec(**document["spec"])
        document["signals"] = tuple(document["signals"])
        return Description(**document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # the spec's own among them
        raise StorageError(f"description: {error}") from error


def _fields(structure: Any) -> dict[str, Any]:
    """Fields as they are given to the constructor."""
    return {
        one.name: getattr(structure, one.name) for one in dataclasses.fields(structure) if one.init
    }
