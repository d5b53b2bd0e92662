"""The thread that keeps a sound card's capture running."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing

from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.lib.stats import CaptureStats
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.source.ring import SampleRing
from spectrod.source.soundcard.capture_index import CaptureIndex
from spectrod.source.soundcard.capture_process import BlockRecord, CaptureProcess, StreamSettings
from spectrod.source.soundcard.devices import DeviceSelector, choose_input, describe_inputs
from spectrod.source.soundcard.stall_timeout import StallTimeout

_log = logging.getLogger(__name__)

_SILENCE_S = 0.9
"""Time without samples before waiting is reported [s]: within 1 s."""
_BLOCKS_OF_SILENCE = 2.0
"""The same in blocks, which counts where blocks are long."""
_PAUSE_S = 0.09
"""Longest pause between reads of blocks that nobody waits for [s]: silence shows within 1 s."""
_PAUSE_BLOCKS = 512.0
"""The same in blocks, which counts where blocks are short: the pipe holds 2048."""
_GIVE_UP_S = 1.5
"""Further time after which the stream is closed [s]. A sound server that was only paused delivers
everything afterwards; a new stream would lose it."""
_PLACING_S = 0.3
"""Duration of callbacks used to place a restarted stream in time [s]."""
_RETRY_LAST_S = 1.5
"""Longest pause between attempts, without jitter [s]: capture is back within 3 s after a fault."""
_STEADY_S = 5.0
"""Duration of samples after which the next fault is a new one and pauses start short again [s]."""


class Supervisor:
    """Finds a device, opens it and passes its blocks on; retries without a limit when it fails.

    Waiting is reported after 0.9 s without samples, or at once when the stream or the process ends.
    A silent stream is closed 1.5 s later and its process killed; the pauses between attempts grow
    from 0.1 s to 1.5 s. A stream that is silent regularly without losing samples (PulseAudio's null
    sink delivers every 2 s) gets more time; see ``StallTimeout``.

    Parameters
    ----------
    description : str
        Name of the device in errors and the log.
    selector : DeviceSelector
        Selector of the device.
    settings : StreamSettings
        Settings of the stream, except the device's index, which may change.
    ring : SampleRing
        Ring with shared memory, which the capture process fills.
    on_change : callable
        Called by the thread when the state or a counter in ``capture`` changes.
    on_end : callable
        Called by the thread as its last action, after the last write, with the error if it failed.
    """

    def __init__(
        self,
        description: str,
        selector: DeviceSelector,
        settings: StreamSettings,
        ring: SampleRing,
        *,
        on_change: Callable[[], None],
        on_end: Callable[[SpectrodError | None], None],
    ) -> None:
        self._description, self._selector, self._settings = description, selector, settings
        self._ring, self._on_change = ring, on_change
        self._blocks = CaptureIndex(ring, settings, description)
        self._process = CaptureProcess(ring.shared)
        self._backoff = Backoff(last_s=_RETRY_LAST_S)
        block_s = settings.block_frames / settings.samplerate
        self._stall_timeout = StallTimeout(max(_SILENCE_S, _BLOCKS_OF_SILENCE * block_s))
        self._pause_max_s = min(_PAUSE_S, _PAUSE_BLOCKS * block_s)
        self._waiting_for, self._waiting_since_s = "", 0.0
        self._attempts = self._streams = 0
        self._reported = CaptureStats()
        self._stop, self._stopping = Wakeup(), threading.Event()
        self._worker = Worker("capture", self._run, on_end)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def stop(self) -> None:
        """Stop the thread and the process in any state; takes at most a second. Call once."""
        self._stopping.set()
        self._stop.set()
        self._worker.wait()
        self._stop.close()

    def capture(self) -> CaptureStats:
        """Return a snapshot of the capture statistics; any thread may call it."""
        clock = self._blocks.clock
        return dataclasses.replace(
            self._counted(),
            rate_error_ppm=clock.rate_error_ppm,
            rate_uncertainty_ppm=clock.rate_uncertainty_ppm,
            jitter_s=clock.jitter_s,
        )

    def callback_cost_us(self, quantile: float) -> float | None:
        """Return the duration of the running stream's callbacks [us]."""
        return self._process.callback_cost_us(quantile)

    def _counted(self) -> CaptureStats:
        return CaptureStats(
            waiting_for=self._waiting_for,
            restarts=max(0, self._streams - 1),
            attempts=self._attempts,
            suspected=self._ring.suspected,
            suspected_samples=self._blocks.suspected_samples,
        )

    # ---- the thread

    def _run(self) -> None:
        with closing(self._process):
            while not self._stopping.is_set():
                try:
                    self._open()
                    self._deliver()
                except UnavailableError as error:
                    self._lose(error)

    def _open(self) -> None:
        self._attempts += 1
        self._report_changes()
        inputs = describe_inputs(self._process.scan(self._stop))
        device = choose_input(self._selector, inputs)
        self._process.open(dataclasses.replace(self._settings, device=device.index), self._stop)

    def _deliver(self) -> None:
        """Pass blocks on until stopped; raises UnavailableError when the stream fails."""
        blocks = self._first_blocks()
        if not blocks:
            return
        lost = self._blocks.start_stream(blocks)
        self._streams += 1
        self._end_waiting(lost)
        while blocks:
            for block in blocks:  # may take seconds for many small blocks
                if self._stopping.is_set():
                    return
                self._blocks.add(block)
            self._report_changes()
            if self._blocks.delivered_s > _STEADY_S:
                self._backoff.reset()
            blocks = self._next_blocks()

    def _first_blocks(self) -> list[BlockRecord]:
        """Wait for a stream's first blocks, longer if it must be placed in time."""
        blocks = self._await_blocks()
        until_s = time.monotonic() + (_PLACING_S if self._streams else 0.0)
        while blocks and (left_s := until_s - time.monotonic()) > 0 and not self._stopping.is_set():
            blocks += self._process.wait(left_s, self._stop)
        return blocks

    def _next_blocks(self) -> list[BlockRecord]:
        """Wait for further blocks of a stream that may stall; empty only if stopped."""
        t_s = time.monotonic()
        if (pause_s := min(self._ring.relaxed_s, self._pause_max_s)) > 0.0:
            self._process.pause(pause_s, self._stop, self._ring.room)
        blocks = self._await_blocks()
        if blocks and self._waiting_for:
            self._end_stall(t_s)
        return blocks

    def _await_blocks(self) -> list[BlockRecord]:
        """Wait for blocks; empty only if stopped. Reports late blocks; gives up after more time."""
        blocks = self._process.wait(self._stall_timeout.s, self._stop)
        if blocks or self._stopping.is_set():
            return blocks
        self._wait_for(f"no samples for {self._stall_timeout.s:.1f} s")
        blocks = self._process.wait(_GIVE_UP_S, self._stop)
        if self._stopping.is_set():
            return []
        if not blocks:
            self._process.close()
            raise UnavailableError(f"no samples for {self._stall_timeout.s + _GIVE_UP_S:.1f} s")
        return blocks

    def _end_stall(self, since_s: float) -> None:
        """Record that a silent stream delivers again."""
        now_s = time.monotonic()
        if self._stall_timeout.record_stall(now_s - since_s, now_s):
            _log.warning(
                "%s: delivers in bursts; the stall timeout is %.1f s from now on",
                self._description,
                self._stall_timeout.s,
            )
        self._end_waiting(0)

    def _lose(self, error: UnavailableError) -> None:
        """Report why there is no stream, and pause."""
        if not self._stopping.is_set():
            self._wait_for(str(error))
            self._stop.wait(self._backoff.next_s())

    def _wait_for(self, reason: str) -> None:
        """Report that no samples arrive; log an unchanged reason only once."""
        if reason == self._waiting_for:
            return
        if not self._waiting_for:
            self._waiting_since_s = time.monotonic()
        self._waiting_for = reason
        _log.warning("%s: waiting: %s", self._description, reason)
        self._report_changes()

    def _end_waiting(self, lost: int) -> None:
        if self._waiting_for:
            self._waiting_for = ""
            waited_s = time.monotonic() - self._waiting_since_s
            _log.warning(
                "%s: back after %.1f s, %d samples lost", self._description, waited_s, lost
            )
            self._report_changes()

    def _report_changes(self) -> None:
        """Call ``on_change`` if a counter or the state has changed."""
        counted = self._counted()
        if counted == self._reported:
            return
        if counted.suspected != self._reported.suspected:
            self._stall_timeout.forget()
        self._reported = counted
        self._on_change()
