"""A file that is being written, as recordings see it."""

from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from spectrod.dsp.writer import Writer

T_contra = TypeVar("T_contra", contravariant=True)


class Output(Writer[T_contra], Protocol[T_contra]):
    """A file that is being written. Its methods raise only SpectrodErrors, but for ``is_gone``."""

    @property
    def path(self) -> Path:
        """Final path of the file; ``finish`` may change its name if that is taken."""

    @property
    def size_bytes(self) -> int:
        """Present length of the file; 0 if it does not count towards a limit."""

    @property
    def cut_length(self) -> int:
        """Written items that the file lost when a fault ended it; see ``SoundWriter``."""

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed while it is being written; raises OSError if unknown."""

    def fits(self, chunk: T_contra) -> bool:
        """Return whether a chunk belongs to this file, and not to a new one."""

    def flush(self) -> None:
        """Synchronise written data to the disk, so that they survive a power failure."""


class WholeFile:
    """The part of ``Output`` that is alike for all files that count only when they are complete."""

    size_bytes: Final = 0
    cut_length: Final = 0
    is_gone: Final = False

    def fits(self, _chunk: Any) -> bool:
        """Return True: ``write`` refuses another analysis."""
        return True

    def flush(self) -> None:
        """Do nothing: nothing can be kept of an unfinished file."""
