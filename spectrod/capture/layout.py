"""The ring of raw blocks between the capture process and the daemon: its bytes and its rules."""

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

# Buckets of callbacks' costs: one for each ns up to 31, then sixteen for each power of two.
_SUBBUCKETS = 16
_N_BUCKETS = 64 * _SUBBUCKETS
_HEADER_BYTES = 8 * _N_BUCKETS

# An eventfd takes exactly eight bytes and adds them to its count; a pipe keeps them in a row.
_ONE = struct.pack("=Q", 1)
BELL_READ_BYTES = 1 << 16
"""All that a bell can hold."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a ring's memory is divided: costs of callbacks, then slots of one block each.

    Attributes
    ----------
    block_frames : int
        Frames that a slot has room for: PortAudio's block size.
    frame_bytes : int
        Bytes of a sample of all channels.
    n_slots : int
        Blocks held.
    """

    block_frames: int
    frame_bytes: int
    n_slots: int

    @classmethod
    def of_stream(cls, fs: float, block_frames: int, frame_bytes: int) -> "Layout":
        """Hold 4 s of a stream, or what 256 MiB hold of it, but four blocks at least."""
        slot_bytes = _slot_bytes(block_frames, frame_bytes)
        n_slots = min(round(_RING_S * fs / block_frames), _RING_BYTES_MAX // slot_bytes)
        return cls(block_frames, frame_bytes, max(_SLOTS_MIN, n_slots))

    @property
    def size(self) -> int:
        """Bytes of all."""
        return _HEADER_BYTES + self.n_slots * _slot_bytes(self.block_frames, self.frame_bytes)

    def offset(self, number: int) -> int:
        """Where the block of this number, counted from 0, has its slot."""
        slot_bytes = _slot_bytes(self.block_frames, self.frame_bytes)
        return _HEADER_BYTES + number % self.n_slots * slot_bytes


def _slot_bytes(block_frames: int, frame_bytes: int) -> int:
    return _RECORD_BYTES + -(-block_frames * frame_bytes // 64) * 64


class RawBlock(NamedTuple):
    """What one callback of PortAudio brought.

    Attributes
    ----------
    frame : int
        Frames that the stream had delivered before it.
    n_frames : int
        Frames in it.
    flagged : bool
        The sound system said that samples were lost before it.
    t_mono_ns : int
        Monotonic clock when the callback began [ns].
    data : bytes
        Interleaved samples.
    """

    frame: int
    n_frames: int
    flagged: bool
    t_mono_ns: int
    data: bytes


class RingWriter:
    """The producer's side, used by PortAudio's thread alone; never waits and takes no lock.

    When the ring is full the oldest block is overwritten; the reader finds out and counts it.

    Parameters
    ----------
    layout : Layout
    memory : mmap
        ``layout.size`` bytes that both processes map.
    bell : int
        Eventfd or pipe, not blocking, that is written to for each block.
    """

    def __init__(self, layout: Layout, memory: mmap.mmap, bell: int) -> None:
        self._layout, self._bell = layout, bell
        self._memory = memoryview(memory)
        self._costs = self._memory[:_HEADER_BYTES].cast("Q")
        self._number = self._frame = 0

    def write(self, data: "ReadableBuffer", n_frames: int, *, flagged: bool) -> None:
        """Copy a block into the next slot and ring the bell.

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
        os.write(self._bell, _ONE)
        self._costs[_bucket(time.monotonic_ns() - t_ns)] += 1


class RingReader:
    """The consumer's side; one thread uses it.

    Blocks that were overwritten before they were read show as frames missing between two blocks;
    so as not to be overtaken again at once, reading then goes on in the middle of the ring.

    Parameters
    ----------
    layout, memory, bell
        As ``RingWriter``'s; of a pipe the end to read.

    Notes
    -----
    Why no lock is needed. The bell is written after a block and is an object of the kernel with a
    lock of its own, so whoever has read it sees the blocks that it stands for, on any processor.
    After P of them the writer can be at work on block P, not yet on P + 1, for which it would have
    had to ring again. So a copy of block k that was made before the bell was read as P is intact
    unless P has taken its slot: if k + n_slots > P.
    """

    def __init__(self, layout: Layout, memory: mmap.mmap, bell: int) -> None:
        self._layout, self._memory, self._bell = layout, memory, bell
        self._next = self._published = 0

    @property
    def has_unread(self) -> bool:
        """True if blocks are known of that ``read`` has not returned; the bell is then silent."""
        return self._next < self._published

    def read(self) -> list[RawBlock]:
        """Take the oldest unread blocks, a quarter of the ring at most; empty if there are none."""
        self._hear()
        if self._oldest_intact > self._next:
            self._next = self._published - self._layout.n_slots // 2
        stop = min(self._published, self._next + max(1, self._layout.n_slots // 4))
        blocks = [self._copy(number) for number in range(self._next, stop)]
        self._hear()
        n_torn = max(0, self._oldest_intact - self._next)
        self._next = stop
        return blocks[n_torn:]

    @property
    def _oldest_intact(self) -> int:
        return self._published - self._layout.n_slots + 1

    def _hear(self) -> None:
        try:
            counts = os.read(self._bell, BELL_READ_BYTES)
        except BlockingIOError:
            return
        self._published += sum(memoryview(counts).cast("Q"))

    def _copy(self, number: int) -> RawBlock:
        start = self._layout.offset(number)
        frame, t_mono_ns, n_frames, flagged = _RECORD.unpack_from(self._memory, start)
        first = start + _RECORD_BYTES
        # NB: a record that is being overwritten may say anything; the slot bounds what is copied.
        n_bytes = min(n_frames, self._layout.block_frames) * self._layout.frame_bytes
        data = self._memory[first : first + n_bytes]
        return RawBlock(frame, n_frames, bool(flagged), t_mono_ns, data)


def callback_cost_us(memory: mmap.mmap, quantile: float) -> float | None:
    """Say how long PortAudio's callback takes, from its first to its last statement.

    Parameters
    ----------
    memory : mmap
        A ring's.
    quantile : float
        0 to 1; 0.5 is the median.

    Returns
    -------
    cost : float or None
        Upper edge of the bucket that the quantile falls into, at most 1/16 too high [us]; None
        before the first callback.
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
