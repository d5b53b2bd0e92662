"""A process that decodes parts of sound files into shared memory, until its link is closed.

``spectrod.apps.batch.decoding`` starts it: ``python -m spectrod.apps.batch.decoder PARENT LINK
MEMORY``, the parent's process id and two descriptors.
"""

import ctypes
import mmap
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

import msgspec
import numpy as np
from msgspec import Struct

from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.source.files.filesamples import are_usable
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.files.triggered import is_triggered

_PR_SET_PDEATHSIG = 1
_IN_ORDER: deque[str] = deque(maxlen=64)
"""Files that were found to be decoded in order: opening one of hours may take a second."""


class SoundChunk(Struct, frozen=True, array_like=True):
    """Part of a sound file, and where its samples go.

    Attributes
    ----------
    path : str
        The file.
    fs : float
        Its sample rate [Hz].
    channels : int
        Its channels.
    first, end : int
        Samples to decode, [first, end).
    block_samples : int
        Samples that are read at once, per channel.
    place : int
        First byte of the memory that gets them, float32, interleaved.
    """

    path: str
    fs: float
    channels: int
    first: int
    end: int
    block_samples: int
    place: int = 0

    def samples(self, memory: memoryview | mmap.mmap) -> Float32Array:
        """View its place in a memory, (samples, channels) float32."""
        shape = self.end - self.first, self.channels
        n_values = shape[0] * shape[1]
        return np.frombuffer(memory, np.float32, n_values, self.place).reshape(shape)


class Decoded(Struct, frozen=True, array_like=True):
    """The answer to a chunk.

    Attributes
    ----------
    is_whole : bool
        Whether all of its samples were decoded from an undamaged file of the stated format, and are
        usable; where not, nothing of it is used.
    processor_s : float
        Processor time that it took [s].
    """

    is_whole: bool
    processor_s: float


def decode(chunk: SoundChunk, out: Float32Array) -> bool:
    """Decode a chunk into (samples, channels) float32; see ``Decoded.is_whole``.

    A file in which positions cannot be found exactly is decoded from its first sample only, and one
    from which AudioMoth may have left something out not at all.
    """
    if chunk.first and chunk.path in _IN_ORDER:
        return False
    try:
        file = SoundFile(chunk.path)
    except InputError:
        return False
    try:
        is_alike = (file.fs, file.channels) == (chunk.fs, chunk.channels)
        if not is_alike or file.damage or is_triggered(file.comment) or not _go_to(file, chunk):
            return False
        n_done = 0
        while n_done < len(out) and not file.damage:
            n = file.read(out[n_done : n_done + chunk.block_samples])
            if n == 0:
                return False
            n_done += n
        is_usable = not file.is_float or bool(are_usable(out).all())
        return n_done == len(out) and is_usable and not file.damage
    except InputError:
        return False
    finally:
        file.close()


def _go_to(file: SoundFile, chunk: SoundChunk) -> bool:
    """Go to the first sample of a chunk; return False where it cannot be found exactly."""
    if not chunk.first:
        return True
    if not file.seeks_exactly:
        _IN_ORDER.append(chunk.path)
        return False
    file.seek(chunk.first)
    return True


def _requests(link: Connection) -> Iterator[SoundChunk]:
    while True:
        yield msgspec.msgpack.decode(link.recv_bytes(), type=SoundChunk)


def main(parent: int, link_fd: int, memory_fd: int) -> None:
    """Decode the chunks that arrive on a link."""
    with suppress(OSError, AttributeError):  # elsewhere than on Linux the closed link is enough
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    memory = mmap.mmap(memory_fd, os.fstat(memory_fd).st_size)
    link = Connection(link_fd)
    with suppress(EOFError, OSError):
        for chunk in _requests(link):
            start_s = time.process_time()
            samples = chunk.samples(memory)
            is_whole = decode(chunk, samples)
            answer = Decoded(is_whole, time.process_time() - start_s)
            link.send_bytes(msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
