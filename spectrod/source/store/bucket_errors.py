"""Errors of buckets that are written to: as those of a disk."""

from collections.abc import Iterator
from contextlib import contextmanager

from spectrod.lib.errors import InputError, StorageError, UnavailableError, storage_error
from spectrod.lib.text import printable


@contextmanager
def answers() -> Iterator[None]:
    """Raise StorageError where a bucket does not answer, is gone or cannot be listed."""
    try:
        yield
    except (InputError, UnavailableError) as error:
        raise StorageError(str(error)) from error


@contextmanager
def bucket_errors(place: str) -> Iterator[None]:
    """Raise StorageError for whatever a bucket answers."""
    try:
        with answers():
            yield
    except OSError as error:
        raise storage_error(printable(place), error) from error
