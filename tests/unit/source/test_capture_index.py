"""Blocks of a capture process in the ring: their index and time, and each kind of loss."""

import os

import numpy as np
import pytest

from spectrod.analysis.samples import to_float32
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.source.capture.ring_writer import RingWriter
from spectrod.source.files.codings import CODINGS, NATIVE_FORMATS, decode
from spectrod.source.ring import SampleRing
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard.capture_index import CaptureIndex
from spectrod.source.soundcard.capture_process import BlockRecord, StreamSettings
from spectrod.source.soundcard.sample_clock import WallClock

FS, BLOCK = 1000.0, 10
T0_NS = 5_000_000_000
PERIOD_NS = 1_000_000


class Card:
    """A ring, the writer of a capture process, and the index of its samples."""

    def __init__(self, channels=1, selected=(0,), format_="f32le"):
        settings = StreamSettings(0, "ALSA", FS, channels, format_, BLOCK)
        shared = SharedSamples(settings.layout, 1 << 17, selected, BLOCK)
        self.ring = SampleRing(
            FS, SampleLayout(settings.layout.sample_format, len(selected)), shared=shared
        )
        self.index = CaptureIndex(self.ring, settings, "card")
        self._records_fd = os.open(os.devnull, os.O_WRONLY)
        self._writer = RingWriter(
            block_frames=BLOCK, records_fd=self._records_fd, **shared.for_writer()
        )

    def close(self):
        self.ring.release()
        os.close(self._records_fd)

    def write(self, data, n):
        self._writer.write(data, n, flagged=False)


@pytest.fixture
def card():
    card = Card()
    yield card
    card.close()


def block(frame, *, late=0, flagged=False, n=BLOCK):
    """Make the record of a block that is due with its last sample."""
    return BlockRecord(frame, T0_NS + (frame + n + late) * PERIOD_NS, n, flagged)


def stream(n_blocks, *, start=0, **how):
    return [block(start + BLOCK * i, **how) for i in range(n_blocks)]


def write_all(card, blocks):
    """Write the samples of a stream, which are the numbers of their frames; add the records."""
    base = card.ring.shared.count - blocks[0].position
    for first in range(blocks[0].position, blocks[-1].stop, BLOCK):
        card.write(np.arange(first, first + BLOCK, dtype="<f4").tobytes(), BLOCK)
    placed = [each._replace(position=base + each.position) for each in blocks]
    lost = card.index.start_stream(placed)
    for each in placed:
        card.index.add(each)
    return lost


def read_all(ring):
    blocks = []
    while (each := ring.read(1 << 16)) is not None:
        blocks.append(each)
    return blocks


def test_blocks_follow_on_each_other(card):
    """Samples of a stream are contiguous from index 0 and keep their arrival times."""
    assert write_all(card, stream(300)) == 0
    (read,) = read_all(card.ring)
    np.testing.assert_array_equal(read.samples[0], np.arange(3000))
    assert (read.sample_index, read.discontinuity) == (0, False)
    assert read.t_mono_ns == pytest.approx(T0_NS, abs=PERIOD_NS)
    assert card.index.delivered_s == 3.0


@pytest.mark.parametrize("selected", [(0, 1, 2), (2, 0), (1,)])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("format_", NATIVE_FORMATS)
def test_selected_channels_arrive_as_the_device_gave_them(format_, interleaved, selected):
    """Selected channels keep their order and the device's format in memory of any layout."""
    card = Card(3, selected, format_)
    data = np.random.default_rng(1).integers(0, 100, 7 * 3 * CODINGS[format_].n_bytes, np.uint8)
    card.write(data.tobytes(), 7)
    record = block(0, n=7)
    card.index.start_stream([record])
    card.index.add(record)
    layout = SampleLayout(NATIVE_FORMATS[format_], len(selected), interleaved)
    memory = layout.arranged(np.zeros(layout.step_bytes * 9, np.uint8), 9)
    read = card.ring.read(1 << 16, memory)
    assert np.may_share_memory(read.samples, memory)
    expected = decode(data.tobytes(), CODINGS[format_]).reshape(7, 3).T[list(selected)]
    np.testing.assert_array_equal(to_float32(read.samples, layout.sample_format), expected)
    card.close()


def test_the_first_block_after_a_wait_has_the_utc_of_its_time(card):
    """After a wait the UTC clock is read again before the next samples are written."""
    step_ns, now = 3_600_000_000_000, [T0_NS, T0_NS]
    card.index._wall = WallClock(lambda: now[0], lambda: now[1])
    write_all(card, stream(300))
    (before,) = read_all(card.ring)
    assert before.t_utc_ns == before.t_mono_ns
    now[0] += 10_000_000_000
    now[1] += 10_000_000_000 + step_ns
    again = [each._replace(t_mono_ns=each.t_mono_ns + 9000 * PERIOD_NS) for each in stream(1)]
    write_all(card, again)
    (after,) = read_all(card.ring)
    assert after.t_utc_ns == after.t_mono_ns + step_ns


def test_blocks_whose_records_are_missing_are_published(card):
    """Samples whose records did not fit the pipe follow without a gap."""
    write_all(card, stream(10) + stream(10, start=1230))
    (read,) = read_all(card.ring)
    np.testing.assert_array_equal(read.samples[0], np.arange(1330))
    assert (card.ring.overruns, card.ring.suspected, card.ring.overflows) == (0, 0, 0)


def test_a_restarted_stream_is_placed_by_time(card):
    """A restarted stream continues after a gap as long as the pause; indices never go back."""
    write_all(card, stream(300))
    again = [each._replace(t_mono_ns=each.t_mono_ns + 4321 * PERIOD_NS) for each in stream(30)]
    assert write_all(card, again) == pytest.approx(1321, abs=1)
    first, second = read_all(card.ring)
    assert second.lost_samples == second.sample_index - 3000 == pytest.approx(1321, abs=1)
    assert second.samples[0, 0] == 0.0
    assert write_all(card, stream(1)) == 0  # though its time is earlier
    assert first.discontinuity is False


def late_by(n_lost):
    """Make the blocks of two streams, the second half delayed by the samples lost before it."""
    return stream(300) + stream(700, start=3000, late=n_lost)


def test_an_unflagged_loss_is_suspected(card, caplog):
    """A lasting delay without a flag is a suspected loss of as many samples."""
    write_all(card, late_by(200))
    assert (card.ring.suspected, card.index.suspected_samples) == (
        1,
        pytest.approx(200, abs=BLOCK),
    )
    assert card.ring.written == 10_000 + card.index.suspected_samples
    assert sum(each.lost_samples for each in read_all(card.ring)) == card.index.suspected_samples
    assert "a loss that was not flagged" in caplog.text


def test_a_flagged_loss_is_no_suspected_one(card, caplog):
    """A flagged loss is a discontinuity at once, and the clock then gives its size."""
    blocks = late_by(200)
    blocks[300] = blocks[300]._replace(flagged=True)
    write_all(card, blocks)
    assert (card.ring.suspected, card.ring.overflows) == (0, 1)
    assert card.ring.written == pytest.approx(10_200, abs=BLOCK)
    assert [each.discontinuity for each in read_all(card.ring)] == [False, True, True]
    assert "the sound system lost samples (overflow)" in caplog.text
    assert "the overflow was of" in caplog.text


def test_a_flag_explains_one_loss_in_its_time(card):
    """A flag explains one loss; a loss long after it is a separate one."""
    blocks = stream(900) + stream(700, start=9000, late=200)
    blocks[300] = blocks[300]._replace(flagged=True)
    write_all(card, blocks)
    assert (card.ring.suspected, card.ring.overflows) == (1, 1)


def rate_reports(card, caplog, ppm, until_s):
    """Add 100 s of a stream whose rate is off for its first seconds; return what is logged."""
    until_ns = T0_NS + round(until_s * 1e9)
    blocks = []
    for each in stream(10_000):
        t_ns = each.t_mono_ns
        stretch_ns = (min(t_ns, until_ns) - T0_NS) * ppm * 1e-6
        blocks.append(each._replace(t_mono_ns=t_ns - round(stretch_ns)))
    write_all(card, blocks)
    assert card.ring.suspected == 0
    return [r.message for r in caplog.records if "the sample rate is" in r.message]


def test_a_rate_that_is_off_is_reported_once(card, caplog):
    """A sample rate that is 0.1 % off is reported once, when it has been so for a minute."""
    (reported,) = rate_reports(card, caplog, 1000.0, 100.0)
    assert "the sample rate is off: +100" in reported


@pytest.mark.parametrize(("ppm", "until_s"), [(-1800.0, 25.0), (1800.0, 25.0), (-600.0, 45.0)])
def test_a_latency_that_grows_after_the_start_is_no_rate_that_is_off(card, caplog, ppm, until_s):
    """Arrivals that drift for less than a minute, as a sound server's may, report no rate."""
    assert rate_reports(card, caplog, ppm, until_s) == []
