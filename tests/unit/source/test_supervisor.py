"""The supervisor of a capture process, without a process."""

from types import SimpleNamespace

import pytest

from spectrod.source.ring import SampleRing
from spectrod.source.soundcard import supervisor as supervisor_module
from spectrod.source.soundcard.capture_process import BlockRecord, StreamSettings
from spectrod.source.soundcard.devices import DeviceSelector
from spectrod.source.soundcard.supervisor import Supervisor

BLOCKS = [BlockRecord(i, t_mono_ns=i, n_samples=1, flagged=False) for i in range(1000)]


class Writer:
    """A writer that stops the supervisor at the first block."""

    suspected_samples = 0
    delivered_s = 0.0
    lost = 0

    def __init__(self):
        self.clock = SimpleNamespace(rate_error_ppm=None, rate_uncertainty_ppm=None, jitter_s=None)
        self.written = []

    def start_stream(self, _blocks):
        return self.lost

    def add(self, block):
        self.written.append(block.position)
        self.supervisor._stopping.set()


@pytest.fixture
def writer():
    """Make the writer of a supervisor that is not running."""
    writer = Writer()
    settings = StreamSettings(0, "ALSA", 48000.0, 1, "s16le", 1)
    ring = SampleRing(48000.0, 1)
    writer.supervisor = Supervisor(
        "card", DeviceSelector(), settings, ring, on_change=lambda: None, on_end=lambda _: None
    )
    writer.supervisor._blocks = writer
    yield writer
    writer.supervisor._stop.close()
    ring.release()


def test_a_stop_does_not_wait_for_all_blocks_that_have_come(writer):
    """A stop does not write the remaining blocks, of which there may be many."""
    writer.supervisor._process = SimpleNamespace(wait=lambda *_: BLOCKS)
    writer.supervisor._deliver()
    assert writer.written == [0]


@pytest.mark.parametrize(
    ("relaxed_s", "block_frames", "pauses"),
    [(0.0, 480, []), (0.05, 480, [0.05]), (0.5, 480, [0.09]), (0.5, 3, [512 * 3 / 48000])],
)
def test_blocks_that_nobody_waits_for_are_read_less_often(relaxed_s, block_frames, pauses):
    """A pause is short enough to report silence within 1 s, and for the pipe of short blocks."""
    settings = StreamSettings(0, "ALSA", 48000.0, 1, "s16le", block_frames)
    ring, found = SampleRing(48000.0, 1), []
    supervisor = Supervisor(
        "card", DeviceSelector(), settings, ring, on_change=lambda: None, on_end=lambda _: None
    )
    supervisor._process = SimpleNamespace(
        wait=lambda *_: BLOCKS, pause=lambda longest_s, *_: found.append(longest_s)
    )
    ring.relax(relaxed_s)
    assert supervisor._next_blocks() == BLOCKS
    assert found == pytest.approx(pauses)
    supervisor._stop.close()
    ring.release()


def test_samples_that_are_wanted_again_end_a_pause():
    """A consumer that wants samples sooner wakes the producer; a longer pause does not."""
    ring = SampleRing(48000.0, 1)
    ring.relax(0.5)
    assert not ring.room.wait(0.0)
    ring.relax(0.0)
    assert ring.room.wait(0.0)
    ring.relax(0.0)
    assert not ring.room.wait(0.0)
    ring.release()


def test_a_slow_restart_of_a_stream_is_reported(writer, caplog, monkeypatch):
    """A slow restart of a stream is no harmless stall: the loss before it is reported."""
    supervisor, writer.lost = writer.supervisor, 144_000
    supervisor._streams = 1
    supervisor._wait_for("the sound system has ended the stream")
    waits = iter([[]])
    supervisor._process = SimpleNamespace(wait=lambda *_: next(waits, list(BLOCKS[:2])))
    monkeypatch.setattr(supervisor_module, "_PLACING_S", 0.0)
    supervisor._deliver()
    (back,) = (r.message for r in caplog.records if "back after" in r.message)
    assert back.endswith(" s, 144000 samples lost")
    assert supervisor.capture().waiting_for == ""
