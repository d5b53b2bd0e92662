"""The thread that keeps a sound card's capture going."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable

from spectrod.backoff import Backoff
from spectrod.capture.layout import RawBlock
from spectrod.errors import SpectrodError, UnavailableError
from spectrod.source.blocks import BlockWriter
from spectrod.source.capture_process import CaptureProcess, StreamSettings
from spectrod.source.devices import Wanted, choose_input, describe_inputs
from spectrod.source.patience import Patience
from spectrod.stats import CaptureStats
from spectrod.wakeup import Wakeup
from spectrod.worker import Worker

_log = logging.getLogger(__name__)

_SILENCE_S = 0.9
"""Without samples, after which they are said not to come: within 1 s."""
_BLOCKS_OF_SILENCE = 2.0
"""At least, where blocks are long."""
_GIVE_UP_S = 1.5
"""Longer still, after which the stream is given up. A sound server that was merely stopped delivers
everything afterwards; a new stream would lose it."""
_PLACING_S = 0.3
"""Of callbacks, by which a stream that was begun again is placed in time."""
_RETRY_LAST_S = 1.5
"""Longest pause between attempts, but for chance: capture is back within 3 s of a fault's end."""
_STEADY_S = 5.0
"""Of samples, after which the next fault is a new one, and pauses begin anew."""


class Supervisor:
    """Seeks a device, opens it, hands its blocks on; when it breaks off, all that again, for ever.

    Waiting is announced after 0.9 s without samples, or at once when the stream or the process
    ends. A silent stream is given up 1.5 s later, its process killed; attempts to begin again have
    pauses that grow from 0.1 s to 1.5 s. A stream that goes silent regularly and loses nothing
    (PulseAudio's null sink delivers every 2 s) is given more time, see ``Patience``.

    Parameters
    ----------
    description : str
        What errors and the log call the device.
    identity : Wanted
        What it is sought by.
    settings : StreamSettings
        To open it with, but for its index, which may change.
    writer : BlockWriter
        Takes the blocks.
    on_change : callable
        Called by the thread when the state or a counter in ``capture`` has changed.
    on_end : callable
        Called by the thread when nothing more is written, as its last act, with why if it failed.
    """

    def __init__(
        self,
        description: str,
        identity: Wanted,
        settings: StreamSettings,
        writer: BlockWriter,
        *,
        on_change: Callable[[], None],
        on_end: Callable[[SpectrodError | None], None],
    ) -> None:
        self._description, self._identity, self._settings = description, identity, settings
        self._writer, self._on_change = writer, on_change
        self._process = CaptureProcess()
        self._backoff = Backoff(last_s=_RETRY_LAST_S)
        block_s = settings.block_frames / settings.samplerate
        self._patience = Patience(max(_SILENCE_S, _BLOCKS_OF_SILENCE * block_s))
        self._waiting_for, self._waiting_since_s = "", 0.0
        self._attempts = self._streams = 0
        self._told = CaptureStats()
        self._stop, self._stopping = Wakeup(), threading.Event()
        self._worker = Worker("capture", self._run, on_end)

    def start(self) -> None:
        """Begin."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread and the process, whatever they do; takes a second at most. Call once."""
        self._stopping.set()
        self._stop.set()
        self._worker.wait()
        self._stop.close()

    def capture(self) -> CaptureStats:
        """Take a snapshot of how samples arrive; any thread may call it."""
        clock = self._writer.clock
        return dataclasses.replace(
            self._counted(),
            rate_error_ppm=clock.rate_error_ppm,
            rate_uncertainty_ppm=clock.rate_uncertainty_ppm,
            jitter_s=clock.jitter_s,
        )

    def callback_cost_us(self, quantile: float) -> float | None:
        """Say how long the callbacks of the stream that runs take [us]."""
        return self._process.callback_cost_us(quantile)

    def _counted(self) -> CaptureStats:
        return CaptureStats(
            waiting_for=self._waiting_for,
            restarts=max(0, self._streams - 1),
            attempts=self._attempts,
            overruns=self._writer.overruns,
            suspected=self._writer.suspected,
            suspected_samples=self._writer.suspected_samples,
        )

    # ---- the thread

    def _run(self) -> None:
        with self._process:
            while not self._stopping.is_set():
                try:
                    self._open()
                    self._deliver()
                except UnavailableError as error:
                    self._lose(error)

    def _open(self) -> None:
        self._attempts += 1
        self._tell()
        inputs = describe_inputs(self._process.scan(self._stop))
        device = choose_input(self._identity, inputs)
        self._process.open(dataclasses.replace(self._settings, device=device.index), self._stop)

    def _deliver(self) -> None:
        """Hand blocks on until stopped; raises UnavailableError when no more come."""
        blocks = self._first_blocks()
        if not blocks:
            return
        lost = self._writer.begin(blocks)
        self._streams += 1
        self._end_waiting(lost)
        while blocks:
            for block in blocks:  # maybe for seconds, where they are many and small
                if self._stopping.is_set():
                    return
                self._writer.write(block)
            self._tell()
            if self._writer.delivered_s > _STEADY_S:
                self._backoff.reset()
            blocks = self._next_blocks()

    def _first_blocks(self) -> list[RawBlock]:
        """Wait for a stream's first blocks, longer if it has a place in time to be found."""
        blocks = self._await_blocks()
        until_s = time.monotonic() + (_PLACING_S if self._streams else 0.0)
        while blocks and (left_s := until_s - time.monotonic()) > 0 and not self._stopping.is_set():
            blocks += self._process.wait(left_s, self._stop)
        return blocks

    def _next_blocks(self) -> list[RawBlock]:
        """Wait for further blocks of a stream that may stall; empty only if stopped."""
        t_s = time.monotonic()
        blocks = self._await_blocks()
        if blocks and self._waiting_for:
            self._end_stall(t_s)
        return blocks

    def _await_blocks(self) -> list[RawBlock]:
        """Wait for blocks; empty only if stopped. Says when they are late, and when too late."""
        blocks = self._process.wait(self._patience.s, self._stop)
        if blocks or self._stopping.is_set():
            return blocks
        self._wait_for(f"no samples for {self._patience.s:.1f} s")
        blocks = self._process.wait(_GIVE_UP_S, self._stop)
        if self._stopping.is_set():
            return []
        if not blocks:
            self._process.close()
            raise UnavailableError(f"no samples for {self._patience.s + _GIVE_UP_S:.1f} s")
        return blocks

    def _end_stall(self, since_s: float) -> None:
        """Note that a stream that was silent delivers after all."""
        now_s = time.monotonic()
        if self._patience.bear(now_s - since_s, now_s):
            _log.warning(
                "%s: delivers in bursts; up to %.1f s of silence are borne from now on",
                self._description,
                self._patience.s,
            )
        self._end_waiting(0)

    def _lose(self, error: UnavailableError) -> None:
        """Say why there is no stream, and pause."""
        if not self._stopping.is_set():
            self._wait_for(str(error))
            self._stop.wait(self._backoff.next_s())

    def _wait_for(self, reason: str) -> None:
        """Announce that no samples come; a reason that stays the same is logged once."""
        if reason == self._waiting_for:
            return
        if not self._waiting_for:
            self._waiting_since_s = time.monotonic()
        self._waiting_for = reason
        _log.warning("%s: waiting: %s", self._description, reason)
        self._tell()

    def _end_waiting(self, lost: int) -> None:
        if self._waiting_for:
            self._waiting_for = ""
            waited_s = time.monotonic() - self._waiting_since_s
            _log.warning(
                "%s: back after %.1f s, %d samples lost", self._description, waited_s, lost
            )
            self._tell()

    def _tell(self) -> None:
        """Call ``on_change`` if there is a change."""
        counted = self._counted()
        if counted == self._told:
            return
        if counted.suspected != self._told.suspected:
            self._patience.forget()
        self._told = counted
        self._on_change()
