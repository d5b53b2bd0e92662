"""Addresses of folders in buckets that are written to."""

import re

from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.source.store.urls import OBJECT_SCHEMES, check_url, scheme_of, split_object

FOLDER_CHARS_MAX = 700
"""Longest folder in a bucket: with the names of its files it has less than 1024 bytes."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_SEGMENT = re.compile(r"[A-Za-z0-9!_'()=+,@-][A-Za-z0-9!_.'()=+,@-]*")
_SHOWN_CHARS = 200


def bucket_address(address: str) -> str:
    """Return the address of a bucket, or of a folder in one, without ``/`` at its end.

    Raises
    ------
    ConfigError
        If it is of an HTTP server, breaks a rule of addresses, see ``check_url``, or its bucket or
        folder has a name that is not safe in all stores and tools.
    """
    shown = printable(address, _SHOWN_CHARS)
    if scheme_of(address) not in OBJECT_SCHEMES:
        raise ConfigError(f"{shown}: must be a folder, or s3:// or gs:// with a bucket")
    check_url(address)
    bucket, folder = split_object(address.rstrip("/"))
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError(
            f"{shown}: its bucket must have 3 to 222 small letters, digits, dots, hyphens and "
            "underscores"
        )
    if folder and not all(map(_SEGMENT.fullmatch, folder.split("/"))):
        raise ConfigError(
            f"{shown}: names of folders in it must have letters, digits and !_.'()=+,@-, and not "
            "begin with a dot"
        )
    if len(folder) > FOLDER_CHARS_MAX:
        raise ConfigError(
            f"{shown}: its folder must have at most {FOLDER_CHARS_MAX} characters, so that names "
            "of files fit"
        )
    return address.rstrip("/")
