"""The protocols of whatever consumes a stream: ``write``, ``finish``, ``abort``."""

from typing import Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Consumes a stream without an end: a sink or a tap of a pipeline.

    The thread that makes the chunks calls it, so it must not block for long.
    """

    def write(self, chunk: T_contra) -> None:
        """Accept the next chunk, which nobody changes afterwards.

        Raises
        ------
        SpectrodError
            If it cannot be accepted; any other exception is a defect. Unless a class says that
            later chunks can be tried, only ``abort`` may follow.
        """


class Writer(Sink[T_contra], Protocol[T_contra]):
    """A sink with an end: it writes a file, or several.

    The constructor checks everything that can be known to be wrong. A file has its final name only
    when it is complete, except in formats that are complete at every moment. One thread at a time
    calls; it may wait for the disk.
    """

    def finish(self) -> None:
        """Write the remaining data, and complete the file; nothing can be written afterwards.

        Raises
        ------
        InputError
            If there was nothing to write; no file is left then.
        StorageError
            If the file cannot be completed; no file is left that looks complete.
        """

    def abort(self) -> None:
        """Give up, and leave no file that looks complete. Idempotent; no effect after ``finish``.

        Formats that can be recovered keep what was written as ``PATH.part``.
        """
