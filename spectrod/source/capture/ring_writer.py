"""The producer's side of a shared ring: copies PortAudio's blocks and reports them."""

import mmap
import os
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

RECORD = struct.Struct("=QqQII")
"""Record of a block: position in the ring of its first sample, monotonic clock at the start of its
callback [ns], duration of the callback before [ns], samples per channel, whether the sound system
has flagged a loss before it.

A pipe accepts a record as a whole or not at all, and returns whole ones if asked for
``RECORDS_BYTES``."""
RECORDS_BYTES = 1 << 16

_COUNT = struct.Struct("=Q")
_MAP_POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # pages exist before the first callback


class RingWriter:
    """Writes blocks to the memory of a ring; used only by PortAudio's thread.

    It never waits: the newest samples overwrite the oldest, which the reader detects by the count.
    ``spectrod.source.shared_samples`` has the argument.

    Parameters
    ----------
    memory_fd, memory_bytes : int
        Descriptor and size of the ring's memory.
    frame_bytes : int
        Bytes of a sample of every channel.
    block_frames : int
        Largest block, PortAudio's block size.
    position : int
        Position in the ring of the first sample.
    count_fd : int
        Non-blocking eventfd or pipe that counts the samples of all blocks.
    records_fd : int
        Non-blocking pipe for a record of each block. A record that does not fit is dropped; its
        flag is reported with the next one, whose position shows that there were more samples.
    """

    def __init__(  # noqa: PLR0913 - shared by two processes
        self,
        *,
        memory_fd: int,
        memory_bytes: int,
        frame_bytes: int,
        block_frames: int,
        position: int,
        count_fd: int,
        records_fd: int,
    ) -> None:
        flags = mmap.MAP_SHARED | _MAP_POPULATE
        self._memory = memoryview(mmap.mmap(memory_fd, memory_bytes, flags=flags))
        self._size, self._next_byte = memory_bytes, position * frame_bytes % memory_bytes
        self._frame_bytes, self._block_frames = frame_bytes, block_frames
        self._position, self._count_fd, self._records_fd = position, count_fd, records_fd
        self._is_flagged = False
        self._cost_ns = 0

    def write(self, data: "ReadableBuffer", n_frames: int, *, flagged: bool) -> None:
        """Copy a block, count it, and send its record.

        Raises
        ------
        ValueError
            If the block is larger than it may be.
        BlockingIOError
            If the count is a pipe and nobody has read it for 8192 blocks.
        """
        t_ns = time.monotonic_ns()
        if n_frames > self._block_frames:
            raise ValueError(f"block of {n_frames} frames: at most {self._block_frames}")
        n_bytes, first = n_frames * self._frame_bytes, self._next_byte
        self._next_byte = (first + n_bytes) % self._size
        if first + n_bytes <= self._size:
            self._memory[first : first + n_bytes] = data
        else:
            before_wrap = memoryview(data)[: self._size - first]
            self._memory[first:] = before_wrap
            self._memory[: self._next_byte] = memoryview(data)[len(before_wrap) :]
        os.write(self._count_fd, _COUNT.pack(n_frames))
        flagged = flagged or self._is_flagged
        record = RECORD.pack(self._position, t_ns, self._cost_ns, n_frames, flagged)
        self._position += n_frames
        try:
            os.write(self._records_fd, record)
            self._is_flagged = False
        except BlockingIOError:
            self._is_flagged = flagged
        self._cost_ns = time.monotonic_ns() - t_ns
