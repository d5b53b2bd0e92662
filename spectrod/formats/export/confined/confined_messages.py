"""What a process that reads a file is asked, and what it answers."""

from typing import Literal

from msgspec import Struct

Content = bytes | memoryview | None
"""What follows an answer: an array, or nothing."""
Kind = Literal["hdf5", "blosc", "parquet"]
TEXT_BYTES_MAX = 1 << 23
"""Longest text of an attribute [bytes]: 4096 channel names take a quarter of that."""
ANSWER_BYTES_MAX = TEXT_BYTES_MAX + (1 << 16)
"""Longest answer without its array [bytes]."""
RANK_MAX = 8
"""Most axes of an array."""


class Question(Struct, frozen=True, array_like=True):
    """What is asked: an attribute, the unit or form of an array, rows of it, or a chunk's content.

    Attributes
    ----------
    what : {"open", "text", "unit", "form", "read", "decode"}
    name : str
        Of the attribute or array.
    first, past : int
        Rows [first, past); of "decode", the size of the content and of the decoded chunk [bytes],
        of Parquet the most rows: the content follows as a message of its own.
    """

    what: Literal["open", "text", "unit", "form", "read", "decode"]
    name: str = ""
    first: int = 0
    past: int = 0


class ConfinedAnswer(Struct, frozen=True, array_like=True):
    """The answer to a question.

    Attributes
    ----------
    error : str
        Why there is none; empty if there is.
    text : str
        Of an attribute or a unit.
    shape, dtype, piece_bytes : tuple of int, str, int
        Form of an array, see ``grid.Form``.
    n_bytes : int
        Size of rows or of a chunk, which follow as a message of their own [bytes].
    """

    error: str = ""
    text: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    piece_bytes: int = 0
    n_bytes: int = 0
