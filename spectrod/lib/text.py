"""Text from files, devices, peers and paths, escaped for terminals, logs and messages."""

import os
from collections.abc import Mapping
from typing import Any

TEXT_MAX_CHARS = 2000
"""Default bound on the length of ``printable`` texts [characters]."""

_ELLIPSIS = "..."
_CHAR_MAX_BYTES = 4
_DEPTH_MAX = 32
_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""Surrogates for the bytes 0x80 to 0xff of invalid UTF-8 (PEP 383)."""
_LATIN_1 = range(0x80, 0x100)
"""Code points that ``ascii`` would escape like bytes: with two hexadecimal digits."""


def reason_of(error: Exception) -> str:
    """Return the text of a decoder's error; of too deep nesting Python's differs by version."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def printable(text: str | bytes | os.PathLike[str], max_chars: int = TEXT_MAX_CHARS) -> str:
    r"""Return text as one line that any terminal, log and message accepts.

    Parameters
    ----------
    text : str, bytes or os.PathLike
        Text of any origin: any bytes, any code points, any length. Bytes are decoded as UTF-8.
    max_chars : int
        Upper bound on the length of the result; at least 3 [characters].

    Returns
    -------
    str
        The text with escapes: invalid UTF-8 bytes as ``\xe9``, control characters as ``\n`` or
        ``\x1b``, and all other characters that Unicode classifies as not printable (C1 controls,
        characters that change the direction of writing, invisible and unassigned ones, spaces other
        than U+0020) as ``\u202e``. In a text that is too long, ``...`` replaces the middle.
        ``str.isprintable`` is true for the result and UTF-8 can encode it.

    Notes
    -----
    The result is for people: a backslash is not escaped, so the original cannot be recovered, but a
    second call changes nothing. Use the original as a path or as an identity. Time and memory are
    O(max_chars).

    References
    ----------
    .. [1] PEP 383, representation of undecodable bytes in ``str``.
    .. [2] Unicode Technical Report 36, on characters that deceive.
    """
    if max_chars < len(_ELLIPSIS):
        raise ValueError(f"{max_chars=}: must be at least {len(_ELLIPSIS)}")
    if isinstance(text, str) and len(text) <= max_chars and text.isprintable():
        return text  # nearly all are: files have a hundred thousand of them, heartbeats hundreds
    text = os.fspath(text)
    # This many bytes hold at least max_chars characters, even if the cut splits one.
    limit = _CHAR_MAX_BYTES * (max_chars + 1)
    if len(text) <= limit:
        whole = _decode(text)
        if len(whole) <= max_chars and whole.isprintable():
            return whole
        escaped = "".join(map(_escape, whole))
        if len(escaped) <= max_chars:
            return escaped
    # Keep both ends: the start names the subject, the end distinguishes file names.
    kept = max_chars - len(_ELLIPSIS)
    head = _take(_decode(text[:limit]), kept - kept // 2)
    tail = _take(_decode(text[-limit:])[::-1], kept // 2)
    return "".join([*head, _ELLIPSIS, *reversed(tail)])


def printable_all(value: Any) -> Any:
    """Return a value of JSON's types with every text in it ``printable``.

    Mappings become ``dict``, other containers ``list``. ``...`` replaces values that are nested
    deeper than 32 levels.
    """
    return _printable_all(value, _DEPTH_MAX)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON in ASCII, which any terminal, log and file accepts.

    Texts stay as they are, since JSON escapes them. Not every JSON reader accepts lone surrogates:
    if there are any, all texts are made ``printable``.
    """
    import json  # noqa: PLC0415 - 2 ms of a help text's 40

    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        value = printable_all(value)
    return json.dumps(value, indent=indent)


def _printable_all(value: Any, depth_left: int) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping | list | tuple):
        if not depth_left:
            return _ELLIPSIS
        if isinstance(value, Mapping):
            return {
                _printable_all(key, 0): _printable_all(item, depth_left - 1)
                for key, item in value.items()
            }
        return [_printable_all(item, depth_left - 1) for item in value]
    return value


def _decode(text: str | bytes) -> str:
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code in _ESCAPED_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code in _LATIN_1:
        return f"\\u{code:04x}"
    return ascii(character)[1:-1]


def _take(text: str, max_chars: int) -> list[str]:
    """Escape the characters from the start that fit, without splitting an escape."""
    taken: list[str] = []
    for character in text:
        escaped = _escape(character)
        max_chars -= len(escaped)
        if max_chars < 0:
            break
        taken.append(escaped)
    return taken
