"""JSON from outside, of which every defect is a ValueError."""

from typing import TypeVar

import msgspec

from spectrod.lib.text import reason_of

_T = TypeVar("_T")


def decode_json(content: bytes | str, kind: type[_T]) -> _T:
    """Decode JSON, and check that it is of a kind.

    Parameters
    ----------
    content : bytes or str
        The text; bytes are UTF-8.
    kind : type
        What it must be, as for ``msgspec.json.decode``; ``object`` for anything.

    Raises
    ------
    ValueError
        If it is no JSON, not UTF-8, nested too deeply, or not of the kind. All of them are
        subclasses, but for the nesting, for which msgspec raises RecursionError.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError as error:
        raise ValueError(reason_of(error)) from None
