"""The ring of raw blocks between the capture process and the daemon: layout and protocol."""

import mmap
import os
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_RING_S = 4.0
_RING_BYTES_MAX = 1 << 28
_SLOTS_MIN = 4

_RECORD = struct.Struct("=QqII")  # frame, t_mono_ns, n_frames, flagged
_RECORD_BYTES = 64

# Buckets of callback costs: one for each ns up to 31, then sixteen for each power of two.
_SUBBUCKETS = 16
_N_BUCKETS = 64 * _SUBBUCKETS
_HEADER_BYTES = 8 * _N_BUCKETS

# An eventfd accepts exactly eight bytes and adds them to its counter; a pipe queues them.
_ONE = struct.pack("=Q", 1)
WAKE_READ_BYTES = 1 << 16
"""Read size that empties the wake-up descriptor [bytes]."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a ring's memory: costs of callbacks, then slots of one block each.

    Attributes
    ----------
    block_frames : int
        Size of a slot, PortAudio's block size [frames].
    frame_bytes : int
        Bytes of one frame: a sample of every channel.
    n_slots : int
        Number of slots.
    """

    block_frames: int
    frame_bytes: int
    n_slots: int

    @classmethod
    def of_stream(cls, fs: float, block_frames: int, frame_bytes: int) -> "Layout":
        """Return a layout for 4 s of a stream, at most 256 MiB, at least four blocks."""
        slot_bytes = _slot_bytes(block_frames, frame_bytes)
        n_slots = min(round(_RING_S * fs / block_frames), _RING_BYTES_MAX // slot_bytes)
        return cls(block_frames, frame_bytes, max(_SLOTS_MIN, n_slots))

    @property
    def size(self) -> int:
        """Total size [bytes]."""
        return _HEADER_BYTES + self.n_slots * _slot_bytes(self.block_frames, self.frame_bytes)

    def offset(self, number: int) -> int:
        """Return the offset of the slot of a block, numbered from 0 [bytes]."""
        slot_bytes = _slot_bytes(self.block_frames, self.frame_bytes)
        return _HEADER_BYTES + number % self.n_slots * slot_bytes


def _slot_bytes(block_frames: int, frame_bytes: int) -> int:
    return _RECORD_BYTES + -(-block_frames * frame_bytes // 64) * 64


class RawBlock(NamedTuple):
    """The block of one PortAudio callback.

    Attributes
    ----------
    frame : int
        Frames delivered before this block.
    n_frames : int
        Frames in this block.
    flagged : bool
        Whether the sound system has flagged a loss before this block.
    t_mono_ns : int
        Monotonic clock at the start of the callback [ns].
    data : bytes
        Interleaved samples.
    """

    frame: int
    n_frames: int
    flagged: bool
    t_mono_ns: int
    data: bytes


class RingWriter:
    """The producer's side, used only by PortAudio's thread; never waits and takes no lock.

    When the ring is full the oldest block is overwritten; the reader detects and counts this.

    Parameters
    ----------
    layout : Layout
    memory : mmap
        ``layout.size`` bytes, mapped by both processes.
    wake_fd : int
        Non-blocking eventfd or pipe, written once per block.
    """

    def __init__(self, layout: Layout, memory: mmap.mmap, wake_fd: int) -> None:
        self._layout, self._wake_fd = layout, wake_fd
        self._memory = memoryview(memory)
        self._costs = self._memory[:_HEADER_BYTES].cast("Q")
        self._number = self._frame = 0

    def write(self, data: "ReadableBuffer", n_frames: int, *, flagged: bool) -> None:
        """Copy a block into the next slot and wake the reader.

        Raises
        ------
        ValueError
            If the block is larger than a slot.
        """
        t_ns = time.monotonic_ns()
        layout = self._layout
        if n_frames > layout.block_frames:
            raise ValueError(f"block of {n_frames} frames: a slot has {layout.block_frames}")
        start = layout.offset(self._number)
        first = start + _RECORD_BYTES
        self._memory[first : first + n_frames * layout.frame_bytes] = data
        _RECORD.pack_into(self._memory, start, self._frame, t_ns, n_frames, flagged)
        self._frame += n_frames
        self._number += 1
        os.write(self._wake_fd, _ONE)
        self._costs[_bucket(time.monotonic_ns() - t_ns)] += 1


class RingReader:
    """The consumer's side; one thread uses it.

    Blocks that were overwritten before they were read appear as missing frames between two blocks.
    Reading then continues in the middle of the ring, to avoid the next overrun.

    Parameters
    ----------
    layout, memory, wake_fd
        As for ``RingWriter``; the read end of a pipe.

    Notes
    -----
    No lock is needed. The writer writes the wake-up descriptor after each block. It is a kernel
    object with its own lock, so a reader that has read the count P sees these P blocks on any
    processor. The writer may then be writing block P, but not yet block P + 1, for which it must
    write the descriptor again. So a copy of block k that was made before the count was read as P is
    intact unless block P uses the same slot: if k + n_slots > P.
    """

    def __init__(self, layout: Layout, memory: mmap.mmap, wake_fd: int) -> None:
        self._layout, self._memory, self._wake_fd = layout, memory, wake_fd
        self._next = self._published = 0

    @property
    def has_unread(self) -> bool:
        """True if ``read`` left known blocks, for which the descriptor is not readable any more."""
        return self._next < self._published

    def read(self) -> list[RawBlock]:
        """Return the oldest unread blocks, at most a quarter of the ring; empty if all are read."""
        self._read_count()
        if self._oldest_intact > self._next:
            self._next = self._published - self._layout.n_slots // 2
        stop = min(self._published, self._next + max(1, self._layout.n_slots // 4))
        blocks = [self._copy(number) for number in range(self._next, stop)]
        self._read_count()
        n_torn = max(0, self._oldest_intact - self._next)
        self._next = stop
        return blocks[n_torn:]

    @property
    def _oldest_intact(self) -> int:
        return self._published - self._layout.n_slots + 1

    def _read_count(self) -> None:
        try:
            counts = os.read(self._wake_fd, WAKE_READ_BYTES)
        except BlockingIOError:
            return
        self._published += sum(memoryview(counts).cast("Q"))

    def _copy(self, number: int) -> RawBlock:
        start = self._layout.offset(number)
        frame, t_mono_ns, n_frames, flagged = _RECORD.unpack_from(self._memory, start)
        first = start + _RECORD_BYTES
        # NB: a record that is being overwritten may have any content; the slot's size bounds the
        # copy.
        n_bytes = min(n_frames, self._layout.block_frames) * self._layout.frame_bytes
        data = self._memory[first : first + n_bytes]
        return RawBlock(frame, n_frames, bool(flagged), t_mono_ns, data)


def callback_cost_us(memory: mmap.mmap, quantile: float) -> float | None:
    """Return the duration of PortAudio's callback, from its first to its last statement.

    Parameters
    ----------
    memory : mmap
        Memory of a ring.
    quantile : float
        0 to 1; 0.5 is the median.

    Returns
    -------
    cost : float or None
        Upper edge of the bucket that contains the quantile, at most 1/16 too high [us]; None before
        the first callback.
    """
    counts = struct.unpack_from(f"={_N_BUCKETS}Q", memory)
    rank = quantile * sum(counts)
    n_below = 0
    for bucket, count in enumerate(counts):
        n_below += count
        if count and n_below >= rank:
            return _upper_edge_ns(bucket) * 1e-3
    return None


def _bucket(cost_ns: int) -> int:
    shift = max(0, cost_ns.bit_length() - 5)
    return min(_N_BUCKETS - 1, shift * _SUBBUCKETS + (cost_ns >> shift))


def _upper_edge_ns(bucket: int) -> int:
    shift = max(0, bucket // _SUBBUCKETS - 1)
    return (bucket - shift * _SUBBUCKETS + 1) << shift
