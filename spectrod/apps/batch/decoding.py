"""Decoding beside the analysis: processes that decode the next parts of sound files."""

import mmap
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

import msgspec

from spectrod.apps.batch.decoder import Decoded, SoundChunk
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import UnavailableError
from spectrod.source.shared_samples import allocate, anonymous_memory

DECODERS_MAX = 64
"""Most decoding processes of a process that computes units."""
CHUNK_BYTES = 1 << 23
"""Largest chunk, decoded [bytes]."""
HANG_S = 60.0
"""Longest time that a decoder may take for a chunk [s]; then it is killed."""
_END_S = 1.0
_QUEUED = 2
"""Chunks that a decoder has at a time: one that it decodes, one that waits."""


@dataclass(eq=False, slots=True)
class _Work:
    """A chunk that a decoder has; answer is None until it is decoded, or if the decoder is lost."""

    chunk: SoundChunk
    is_done: bool = False
    answer: Decoded | None = None


@dataclass(eq=False, slots=True)
class _Decoder:
    """A decoding process, and what it has to do; ``since_s`` is when it was last heard of [s]."""

    process: subprocess.Popen[bytes]
    link: Connection
    since_s: float = 0.0
    queue: deque[_Work] = field(default_factory=deque)


class Decoders:
    """Processes that decode chunks of sound files into memory that they share with this one.

    They start with the first chunk, and end with this process, however it ends. One that ends
    early, or hangs, is replaced, as often as there are decoders; the chunks that it had are not
    decoded.

    Parameters
    ----------
    n : int
        Number of processes, 1 to ``DECODERS_MAX``.
    hang_s : float
        Longest time for a chunk [s].

    Attributes
    ----------
    processor_s : float
        Processor time of all chunks so far [s].
    hang_s : float
        See above; may be changed.
    """

    def __init__(self, n: int, hang_s: float = HANG_S) -> None:
        self._n, self.hang_s = n, hang_s
        self._n_starts = 2 * n
        self._n_slots = _QUEUED * n + 1
        self._memory_fd = -1
        self._memory: mmap.mmap | None = None
        self._decoders: list[_Decoder] = []
        self.processor_s = 0.0

    @property
    def pids(self) -> list[int]:
        """Process ids of the decoders that run."""
        return [one.process.pid for one in self._decoders]

    def decoded(
        self, chunks: Iterable[SoundChunk]
    ) -> Generator[tuple[SoundChunk, Float32Array | None], None, None]:
        """Decode chunks, up to two ahead for each decoder.

        Yields
        ------
        chunk : SoundChunk
            In the given order.
        samples : (n, channels) float32 or None
            Its samples, read-only and valid until the next one; None if it could not be decoded
            whole, or its decoder was lost.

        Raises
        ------
        UnavailableError
            If there is no memory, or no process can be started.
        """
        waiting = iter(chunks)
        ahead: deque[_Work] = deque()
        places = [k * CHUNK_BYTES for k in range(self._n_slots)]
        try:
            while True:
                self._take_answers(0.0)
                self._give(waiting, ahead, places)
                if not ahead:
                    return
                self._wait_for(ahead[0])
                work = ahead.popleft()
                is_whole = work.answer is not None and work.answer.is_whole
                yield work.chunk, work.chunk.samples(self._mapped()) if is_whole else None
                places.append(work.chunk.place)
        finally:
            for one in [one for one in self._decoders if one.queue]:
                self._end(one)
                self._n_starts += 1

    def close(self) -> None:
        """End the processes. Idempotent."""
        while self._decoders:
            self._end(self._decoders[0])
        if self._memory_fd >= 0:
            os.close(self._memory_fd)
            self._memory_fd, self._memory = -1, None

    # ---- the work

    def _give(self, waiting: Iterator[SoundChunk], ahead: deque[_Work], places: list[int]) -> None:
        """Give decoders as many chunks as there is room for."""
        while places:
            one = self._least_busy()
            if one is not None and len(one.queue) >= _QUEUED:
                return
            chunk = next(waiting, None)
            if chunk is None:
                return
            work = _Work(msgspec.structs.replace(chunk, place=places.pop()))
            ahead.append(work)
            if one is None:
                work.is_done = True
                return
            if not one.queue:
                one.since_s = time.monotonic()
            one.queue.append(work)
            with suppress(OSError):  # it has ended: found when its answer is read
                one.link.send_bytes(msgspec.msgpack.encode(work.chunk))

    def _least_busy(self) -> _Decoder | None:
        """Return a decoder, a new one if all are busy; None if too many were lost."""
        idle = next((one for one in self._decoders if not one.queue), None)
        if idle is None and len(self._decoders) < self._n and self._n_starts:
            self._n_starts -= 1
            idle = self._start()
            self._decoders.append(idle)
        return idle or min(self._decoders, key=lambda one: len(one.queue), default=None)

    def _wait_for(self, work: _Work) -> None:
        """Take answers until that of a chunk has come; end decoders that hang."""
        while not work.is_done:
            busy = [one for one in self._decoders if one.queue]
            end_s = min(one.since_s for one in busy) + self.hang_s
            self._take_answers(max(0.0, end_s - time.monotonic()))
            now_s = time.monotonic()
            for one in busy:
                if one.queue and now_s >= one.since_s + self.hang_s and not one.link.poll():
                    self._end(one)

    def _take_answers(self, timeout_s: float) -> None:
        """Take an answer of each decoder that has one; wait for the first."""
        of_link = {one.link: one for one in self._decoders if one.queue}
        for link in wait(list(of_link), timeout_s):
            self._take(of_link[link])  # type: ignore[index]

    def _take(self, one: _Decoder) -> None:
        try:
            answer = msgspec.msgpack.decode(one.link.recv_bytes(), type=Decoded)
        except (EOFError, OSError):
            self._end(one)
            return
        self.processor_s += answer.processor_s
        one.since_s = time.monotonic()
        work = one.queue.popleft()
        work.is_done, work.answer = True, answer

    # ---- the processes

    def _mapped(self) -> mmap.mmap:
        """Return the memory that the decoders share."""
        if self._memory is None:
            n_bytes = self._n_slots * CHUNK_BYTES
            try:
                self._memory_fd = anonymous_memory("spectrod-decoded")
                allocate(self._memory_fd, n_bytes)
                self._memory = mmap.mmap(self._memory_fd, n_bytes, prot=mmap.PROT_READ)
            except OSError as error:
                mib = n_bytes >> 20
                raise UnavailableError(f"decoders: {mib} MiB: {error.strerror}") from error
        return self._memory

    def _start(self) -> _Decoder:
        self._mapped()
        ours, theirs = Pipe()
        fds = theirs.fileno(), self._memory_fd
        command = [sys.executable, "-P", "-m", "spectrod.apps.batch.decoder", str(os.getpid())]
        try:
            process = subprocess.Popen(  # noqa: S603 - this program
                [*command, *map(str, fds)], stdin=subprocess.DEVNULL, pass_fds=fds
            )
        except OSError as error:
            ours.close()
            raise UnavailableError(f"decoder: cannot be started: {error.strerror}") from error
        finally:
            theirs.close()
        return _Decoder(process, ours)

    def _end(self, one: _Decoder) -> None:
        """End a decoder; the chunks that it has are not decoded."""
        self._decoders.remove(one)
        one.link.close()
        one.process.kill()
        with suppress(subprocess.TimeoutExpired):  # it waits for storage that does not answer
            one.process.wait(_END_S)
        for work in one.queue:
            work.is_done = True
        one.queue.clear()
