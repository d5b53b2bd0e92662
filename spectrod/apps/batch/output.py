"""Where the results of a job go: a folder or a bucket, with the same names in both."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.formats.whole_files import write_whole
from spectrod.source.store.urls import is_url


class JobOutput(Protocol):
    """Files of results, by their names from the output on, with ``/``.

    A file appears whole under its name, or not at all.

    Raises
    ------
    StorageError
        By all methods: if the output refuses, is gone or full, or does not answer. The text has the
        path or address, and the reason.
    """

    @property
    def scratch(self) -> Path:
        """Folder of this machine for locks and for files that are not complete."""
        ...

    def place(self, name: str) -> str:
        """Return the path or address of a file, for messages."""
        ...

    def prepare(self, names: Collection[str]) -> None:
        """Prepare for files that are computed next: make folders, remove what was left of them."""
        ...

    def size(self, name: str) -> int | None:
        """Return the size of a file [bytes]; None if it is not there."""
        ...

    def read(self, name: str, bytes_max: int) -> bytes:
        """Return the content of a file; FileNotFoundError or another OSError if it has none."""
        ...

    def fetched(self, name: str) -> AbstractContextManager[Path]:
        """Yield the path of a local file of this content, or of none if it is not there."""
        ...

    def written(self, name: str) -> AbstractContextManager[Path]:
        """Yield the path of a local file to write; it has the name when the block ends."""
        ...

    def publish(self, files: Mapping[str, Path]) -> None:
        """Give complete files of ``scratch`` their names, in place of others."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def snapshot(self, names: Collection[str]) -> "JobOutput":
        """Return the output as it is now, for reading: a bucket is listed once.

        ``names`` are files that will be read, some or many at a time.
        """
        ...


def output_of(address: str) -> JobOutput:
    """Return the output of a path, or of the address of a bucket.

    Raises
    ------
    UnavailableError
        If it is a bucket, and the libraries of the extra ``cloud`` are not installed.
    """
    if not is_url(address):
        return FolderOutput(Path(address))
    from spectrod.apps.batch.bucket_output import BucketOutput  # noqa: PLC0415 - optional

    return BucketOutput(address)


def write(output: JobOutput, name: str, content: bytes) -> None:
    """Write a file of an output, in place of one of its name; raises StorageError."""
    with output.written(name) as path:
        write_whole(path, content, replaces=True, follows_link=False)
