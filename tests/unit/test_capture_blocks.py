"""Raw blocks on their way into the ring: their position, and each kind of loss."""

import numpy as np
import pytest

from spectrod.analysis.samples import to_float32
from spectrod.capture.layout import RawBlock
from spectrod.ring import SampleRing
from spectrod.sample_layout import SampleLayout
from spectrod.source.blocks import BlockWriter
from spectrod.source.capture_process import StreamSettings
from spectrod.source.clock import WallClock
from spectrod.source.pcm import BYTES_PER_SAMPLE, NATIVE_FORMATS, decode_pcm

FS, BLOCK = 1000.0, 10
T0_NS = 5_000_000_000
PERIOD_NS = 1_000_000


@pytest.fixture
def ring():
    ring = SampleRing(FS, 1, 1 << 16)
    yield ring
    ring.release()


def writer_into(ring, channels=1, selected=(0,), format_="f32le"):
    settings = StreamSettings(0, "ALSA", FS, channels, format_, BLOCK)
    return BlockWriter(ring, settings, selected, "card")


def block(frame, *, late=0, flagged=False, n=BLOCK):
    """Make a block whose samples are their frames' numbers, due with its last sample."""
    t = T0_NS + (frame + n + late) * PERIOD_NS
    data = np.arange(frame, frame + n, dtype="<f4").tobytes()
    return RawBlock(frame, n, flagged, t, data)


def stream(n_blocks, *, start=0, **how):
    return [block(start + BLOCK * i, **how) for i in range(n_blocks)]


def write_all(writer, blocks):
    lost = writer.begin(blocks)
    for each in blocks:
        writer.write(each)
    return lost


def read_all(ring):
    blocks = []
    while (each := ring.read(1 << 16)) is not None:
        blocks.append(each)
    return blocks


def test_blocks_follow_on_each_other(ring):
    """Samples of a stream are contiguous from index 0 and keep their arrival times."""
    writer = writer_into(ring)
    assert write_all(writer, stream(300)) == 0
    (read,) = read_all(ring)
    np.testing.assert_array_equal(read.samples[0], np.arange(3000))
    assert (read.sample_index, read.discontinuity) == (0, False)
    assert read.t_mono_ns == pytest.approx(T0_NS, abs=PERIOD_NS)
    assert writer.delivered_s == 3.0


@pytest.mark.parametrize("selected", [(0, 1, 2), (2, 0), (1,)])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("format_", NATIVE_FORMATS)
def test_selected_channels_arrive_as_the_device_gave_them(format_, interleaved, selected):
    """Selected channels keep their order and the device's format in any ring layout."""
    layout = SampleLayout(NATIVE_FORMATS[format_], len(selected), interleaved)
    ring = SampleRing(FS, layout, 1 << 10)
    data = np.random.default_rng(1).integers(0, 100, 7 * 3 * BYTES_PER_SAMPLE[format_], np.uint8)
    writer = writer_into(ring, 3, selected, format_)
    write_all(writer, [block(0, n=7)._replace(data=data.tobytes())])
    (read,) = read_all(ring)
    expected = decode_pcm(data.tobytes(), format_).reshape(7, 3).T[list(selected)]
    np.testing.assert_array_equal(to_float32(read.samples, layout.sample_format), expected)
    ring.release()


def test_the_first_block_after_a_wait_has_the_utc_of_its_time(ring):
    """After a wait the UTC clock is read again before the next samples are written."""
    writer = writer_into(ring)
    step_ns, now = 3_600_000_000_000, [T0_NS, T0_NS]
    writer._wall = WallClock(lambda: now[0], lambda: now[1])
    write_all(writer, stream(300))
    (before,) = read_all(ring)
    assert before.t_utc_ns == before.t_mono_ns
    now[0] += 10_000_000_000
    now[1] += 10_000_000_000 + step_ns
    again = [each._replace(t_mono_ns=each.t_mono_ns + 9000 * PERIOD_NS) for each in stream(1)]
    write_all(writer, again)
    (after,) = read_all(ring)
    assert after.t_utc_ns == after.t_mono_ns + step_ns


def test_overwritten_blocks_are_a_gap_of_exact_size(ring, caplog):
    """Frame numbers that are skipped become a gap of that size, counted as an overrun."""
    writer = writer_into(ring)
    write_all(writer, stream(10) + stream(10, start=1230))
    first, second = read_all(ring)
    assert (first.n_samples, second.sample_index, second.lost_samples) == (100, 1230, 1130)
    assert (writer.overruns, writer.suspected, ring.overflows) == (1, 0, 0)
    assert "1130 samples were overwritten before they were fetched (overrun)" in caplog.text


def test_a_stream_begun_again_stands_where_time_says(ring):
    """A restarted stream continues after a gap as long as the pause; indices never go back."""
    writer = writer_into(ring)
    write_all(writer, stream(300))
    again = [each._replace(t_mono_ns=each.t_mono_ns + 4321 * PERIOD_NS) for each in stream(30)]
    assert write_all(writer, again) == pytest.approx(1321, abs=1)
    first, second = read_all(ring)
    assert second.lost_samples == second.sample_index - 3000 == pytest.approx(1321, abs=1)
    assert second.samples[0, 0] == 0.0
    assert write_all(writer, stream(1)) == 0  # though its time is earlier
    assert first.discontinuity is False


def late_by(n_lost):
    """Make the blocks of two streams, the second half delayed by the samples lost before it."""
    return stream(300) + stream(700, start=3000, late=n_lost)


def test_an_unflagged_loss_is_suspected(ring, caplog):
    """A lasting delay without a flag is a suspected loss of as many samples."""
    writer = writer_into(ring)
    write_all(writer, late_by(200))
    assert (writer.suspected, writer.suspected_samples) == (1, pytest.approx(200, abs=BLOCK))
    assert ring.written == 10_000 + writer.suspected_samples
    assert sum(each.lost_samples for each in read_all(ring)) == writer.suspected_samples
    assert "a loss that was not flagged" in caplog.text


def test_a_flagged_loss_is_no_suspected_one(ring, caplog):
    """A flagged loss is a discontinuity at once, and the clock then gives its size."""
    writer = writer_into(ring)
    blocks = late_by(200)
    blocks[300] = blocks[300]._replace(flagged=True)
    write_all(writer, blocks)
    assert (writer.suspected, ring.overflows) == (0, 1)
    assert ring.written == pytest.approx(10_200, abs=BLOCK)
    assert [each.discontinuity for each in read_all(ring)] == [False, True, True]
    assert "the sound system lost samples (overflow)" in caplog.text
    assert "the overflow was of" in caplog.text


def test_a_flag_explains_one_loss_in_its_time(ring):
    """A flag explains one loss; a loss long after it is a separate one."""
    writer = writer_into(ring)
    blocks = stream(900) + stream(700, start=9000, late=200)
    blocks[300] = blocks[300]._replace(flagged=True)
    write_all(writer, blocks)
    assert (writer.suspected, ring.overflows) == (1, 1)


def test_a_rate_that_is_off_is_said_once(ring, caplog):
    """A sample rate that is 0.1 % off is reported once, when it is certain."""
    writer = writer_into(ring)
    blocks = stream(6000)
    fast = [
        each._replace(t_mono_ns=T0_NS + round((each.t_mono_ns - T0_NS) / 1.001)) for each in blocks
    ]
    write_all(writer, fast)
    said = [r.message for r in caplog.records if "the sample rate is" in r.message]
    assert len(said) == 1
    assert "the sample rate is off: +100" in said[0]
    assert writer.suspected == 0
