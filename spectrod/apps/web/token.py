"""The token that lets a browser or program in where an address alone does not."""

import os
import re
import secrets
import stat
from hmac import compare_digest
from pathlib import Path

from spectrod.lib.errors import ConfigError, storage_errors
from spectrod.lib.regular_files import open_regular

_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,128}")
_RANDOM_BYTES = 16
_READ_MAX_BYTES = 256
_FOR_OTHERS = 0o077
_FOR_ROOTS_GROUP = 0o037  # systemd hands its credentials over to the group of a unit


class Token:
    """A secret of at least 128 bits; its text appears in no representation.

    Parameters
    ----------
    text : str
        22 to 128 letters, digits, ``-`` and ``_``.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text, for a link or a cookie."""
        return self._text

    def matches(self, text: str) -> bool:
        """Return whether a text is the token, in a time that says nothing about the token."""
        return compare_digest(text.encode("utf-8", "surrogatepass"), self._text.encode())


def new_token() -> Token:
    """Return a random token of 128 bits."""
    return Token(secrets.token_urlsafe(_RANDOM_BYTES))


def read_token(path: Path) -> Token:
    """Read a token from a file; make the file, mode 600, with a new token if it is missing.

    Raises
    ------
    ConfigError
        If the file has another content, cannot be read, or others may read it.
    StorageError
        If it cannot be made.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise ConfigError(f"token-file={path}: {error.strerror}") from error


def _read(path: Path) -> Token:
    with open_regular(path) as file:
        info = os.fstat(file.fileno())
        mode = stat.S_IMODE(info.st_mode)
        if mode & (_FOR_OTHERS if info.st_uid else _FOR_ROOTS_GROUP):
            raise ConfigError(
                f"token-file={path}: mode={mode:04o}: others must not read it; chmod 600 {path}"
            )
        text = file.read(_READ_MAX_BYTES).decode("latin-1").strip()
    if not _TOKEN.fullmatch(text):
        raise ConfigError(f"token-file={path}: must be 22 to 128 letters, digits, - and _")
    return Token(text)


def _make(path: Path) -> Token:
    token = new_token()
    with (
        storage_errors(path),
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file,
    ):
        file.write(f"{token.reveal()}\n")
    return token
