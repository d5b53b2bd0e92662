"""Addresses of files and folders in object stores and on HTTP servers."""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable

OBJECT_SCHEMES = ("s3", "gs")
HTTP_SCHEMES = ("http", "https")
URL_CHARS_MAX = 4096

_PREFIXES = tuple(f"{scheme}://" for scheme in (*OBJECT_SCHEMES, *HTTP_SCHEMES))
_PATTERN = re.compile(r"[*?\[]")
UNPRINTABLE = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters of no address: parsers disagree on them, so that one may see another host."""


def is_url(path: str) -> bool:
    """Return whether a path is an address of a store, and not one of a local file."""
    return path.startswith(_PREFIXES)


def scheme_of(url: str) -> str:
    """Return the scheme of an address."""
    return url.partition("://")[0]


def has_pattern(url: str) -> bool:
    """Return whether an address of an object store stands for several: ``*``, ``?`` or ``[``."""
    return scheme_of(url) in OBJECT_SCHEMES and _PATTERN.search(url) is not None


def file_name(path: str) -> str:
    """Return the name of a file, of an HTTP address without percent signs."""
    name = PurePosixPath(path).name
    return unquote(name) if path.startswith(HTTP_SCHEMES) and is_url(path) else name


def split_object(url: str) -> tuple[str, str]:
    """Split an address of an object store into bucket and key."""
    bucket, _, key = url.partition("://")[2].partition("/")
    return bucket, key


def check_url(url: str) -> None:
    """Check an address; a password in it is in no text of an error.

    Raises
    ------
    ConfigError
        If it names no server or bucket, holds a user, a password or a query, or is too long.
    """
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if "@" in authority:
        host = printable(authority.rpartition("@")[2])
        raise ConfigError(
            f"{scheme}://...@{host}: must hold no user and password; set the variables or the "
            "configuration of the library instead"
        )
    shown = printable(url)
    if not authority:
        raise ConfigError(f"{shown}: must name a server or a bucket")
    if len(url) > URL_CHARS_MAX:
        raise ConfigError(f"{shown[:80]}...: must have at most {URL_CHARS_MAX} characters")
    if "\0" in url:
        raise ConfigError(f"{shown}: must have no NUL")
    if scheme in HTTP_SCHEMES:
        _check_http(url, scheme, authority, shown)


def _check_http(url: str, scheme: str, authority: str, shown: str) -> None:
    if "?" in url or "#" in url:
        cut = printable(re.split(r"[?#]", url, maxsplit=1)[0])
        raise ConfigError(f"{cut}?...: must have no query, which may hold credentials")
    if "*" in url or UNPRINTABLE.search(url):
        raise ConfigError(
            f"{shown}: must be a file, or a folder with / at its end, written as in a browser"
        )
    try:
        _ = urlsplit(f"{scheme}://{authority}").port
    except ValueError as error:
        raise ConfigError(f"{shown}: must have a port from 0 to 65535, if any") from error
