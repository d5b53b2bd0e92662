"""The ring between capture process and daemon: limits, order of stores, two processes."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import ConfigError
from spectrod.lib.wakeup import Wakeup
from spectrod.source.capture.ring_writer import RECORD, RECORDS_BYTES, RingWriter
from spectrod.source.ring import SampleRing
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard.callback_costs import CallbackCosts

FS, BLOCK = 1000.0, 8


class Pipe:
    """A non-blocking pipe for records."""

    def __init__(self):
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self.write_fd, False)

    def take(self):
        try:
            data = os.read(self.read_fd, RECORDS_BYTES)
        except BlockingIOError:
            return []
        return list(RECORD.iter_unpack(data))

    def close(self):
        os.close(self.read_fd)
        os.close(self.write_fd)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def ring():
    """Make a ring of 60 samples of two channels, of which the second one is read."""
    shared = SharedSamples(SampleLayout("int16", 2, interleaved=True), 60, [1], BLOCK)
    ring = SampleRing(FS, SampleLayout("int16", 1), shared=shared)
    yield ring
    ring.release()


def writer_into(ring, pipe):
    return RingWriter(block_frames=BLOCK, records_fd=pipe.write_fd, **ring.shared.for_writer())


def block(first, n=BLOCK):
    """Make a block whose second channel has the samples' numbers."""
    numbers = np.arange(first, first + n, dtype="<i2")
    return np.stack([-numbers, numbers], axis=1).tobytes()


def publish(ring, pipe):
    for position, t_ns, _, n, flagged in pipe.take():
        ring.publish(position, n, position, t_ns, t_ns, overflow=bool(flagged))


def test_samples_of_another_process_are_read_across_the_wrap(ring, pipe):
    """Selected channels are read as written, also where blocks cross the end of the memory."""
    writer, got = writer_into(ring, pipe), []
    for first in range(0, 40 * BLOCK, BLOCK):
        writer.write(block(first), BLOCK, flagged=False)
        publish(ring, pipe)
        got.append(ring.read(100).samples[0])
    np.testing.assert_array_equal(np.concatenate(got), np.arange(40 * BLOCK))
    assert (ring.overruns, ring.written, ring.taken) == (0, 40 * BLOCK, 40 * BLOCK)


def test_the_ring_holds_at_least_four_blocks():
    """A ring for blocks that are longer than its capacity holds four of them."""
    shared = SharedSamples(SampleLayout("int16", 1, interleaved=True), 100, [0], 1000)
    assert shared.samples.shape == (1, 4000)
    shared.close()


def test_a_ring_larger_than_the_memory_is_refused():
    """A shared ring larger than the memory is an error with the channels and the size."""
    layout = SampleLayout(channels=4096, interleaved=True)
    with pytest.raises(ConfigError, match=r"^channels=4096: no memory for a ring of .* GiB\)$"):
        SharedSamples(layout, 1 << 44, range(4096), 480)


def test_a_block_larger_than_the_reader_expects_is_refused(ring, pipe):
    """A block larger than PortAudio's block size is neither written nor counted."""
    writer = writer_into(ring, pipe)
    with pytest.raises(ValueError, match="block of 9 frames: at most 8"):
        writer.write(block(0, 9), 9, flagged=False)
    assert ring.shared.count == 0
    assert pipe.take() == []


def test_samples_overwritten_before_they_were_published_are_an_overrun(ring, pipe):
    """A daemon that was held up finds the exact loss, and continues in the middle of the ring."""
    writer = writer_into(ring, pipe)
    for first in range(0, 20 * BLOCK, BLOCK):
        writer.write(block(first), BLOCK, flagged=False)
    publish(ring, pipe)
    read = ring.read(100)
    start = 21 * BLOCK - 30  # a block more may be in the making
    assert (read.sample_index, read.lost_samples, read.discontinuity) == (start, start, True)
    np.testing.assert_array_equal(read.samples[0], np.arange(start, 20 * BLOCK))
    assert ring.overruns == 1


def test_samples_that_the_next_block_may_overwrite_are_not_read(ring, pipe):
    """Samples in the place of the next block count as overwritten: it may be in the making."""
    writer = writer_into(ring, pipe)
    for first in range(0, 7 * BLOCK, BLOCK):  # 56 of 60 samples
        writer.write(block(first), BLOCK, flagged=False)
    publish(ring, pipe)
    assert ring.read(100).lost_samples == 8 * BLOCK - 30


@pytest.mark.parametrize("n_more", [1, 20])
def test_samples_overwritten_while_they_are_copied_are_dropped(ring, pipe, overtaken, n_more):
    """A copy during which the process wrote over its samples is dropped and made again."""
    writer = writer_into(ring, pipe)
    for first in range(0, 6 * BLOCK, BLOCK):
        writer.write(block(first), BLOCK, flagged=False)
    publish(ring, pipe)

    def meanwhile():
        for number in range(n_more):
            writer.write(block((6 + number) * BLOCK), BLOCK, flagged=False)

    read = ring.read(100, overtaken(np.empty((1, 100), np.int16), meanwhile))
    publish(ring, pipe)
    read = read or ring.read(100)
    start = (7 + n_more) * BLOCK - 30
    assert (read.sample_index, ring.overruns) == (start, 1)
    np.testing.assert_array_equal(read.samples[0], np.arange(start, start + read.n_samples))


def test_the_next_process_continues_where_the_last_one_ended(ring, pipe):
    """Samples of the former process stay readable, except what was not published."""
    first = writer_into(ring, pipe)
    first.write(block(0), BLOCK, flagged=False)
    publish(ring, pipe)
    first.write(block(BLOCK), BLOCK, flagged=False)
    pipe.take()  # lost with the process
    second = writer_into(ring, pipe)
    second.write(block(100), BLOCK, flagged=False)
    ((position, t_ns, _, n, _),) = pipe.take()
    assert position == 2 * BLOCK
    ring.publish(position, n, 100, t_ns, t_ns)
    before, after = ring.read(100), ring.read(100)
    assert (before.n_samples, after.sample_index, after.lost_samples) == (BLOCK, 100, 100 - BLOCK)
    np.testing.assert_array_equal(after.samples[0], np.arange(100, 100 + BLOCK))


def test_records_that_do_not_fit_lose_no_samples(ring, pipe):
    """If the pipe is full, the samples are counted all the same, and a flag comes later."""
    writer = writer_into(ring, pipe)
    for number in range(3000):
        writer.write(block(0), BLOCK, flagged=number == 2999)
    records = pipe.take()
    assert [position for position, *_ in records] == [BLOCK * i for i in range(len(records))]
    assert not any(flagged for *_, flagged in records)
    assert ring.shared.count == 3000 * BLOCK
    writer.write(block(0), BLOCK, flagged=False)
    ((position, _, cost_ns, _, flagged),) = pipe.take()
    assert (position, flagged) == (3000 * BLOCK, 1)
    assert cost_ns > 0


def test_a_pipe_counts_where_there_is_no_eventfd(monkeypatch):
    """Without eventfd, a pipe carries the count."""
    monkeypatch.delattr(os, "eventfd")
    wakeup = Wakeup()
    for n in (1, 480, 1 << 40):
        os.write(wakeup.write_fd, n.to_bytes(8, sys.byteorder))
    assert (wakeup.clear(), wakeup.clear()) == (481 + (1 << 40), 0)
    wakeup.close()


WRITER = """
    import json, sys
    from spectrod.source.capture.ring_writer import RingWriter
    where = json.loads(sys.argv[1])
    writer = RingWriter(block_frames=64, **where)
    position = where["position"]
    for number in range(int(sys.argv[2])):
        n = number % 64 + 1
        data = b"".join(i.to_bytes(4, "little") for i in range(position, position + n))
        writer.write(data, n, flagged=False)
        position += n
"""


@pytest.mark.slow
def test_two_processes_never_show_a_torn_block(pipe):
    """A reader that the writer overtakes sees only whole blocks, in order and in place.

    Each sample is its own position; the reader lags behind at random, so the ring is overwritten
    under it many times.
    """
    layout = SampleLayout("int32", 1, interleaved=True)
    shared = SharedSamples(layout, 2048, [0], 64)
    ring = SampleRing(FS, SampleLayout("int32", 1), shared=shared)
    where = {**shared.for_writer(), "records_fd": pipe.write_fd}
    n_blocks = 60_000
    total = sum(number % 64 + 1 for number in range(n_blocks))
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), json.dumps(where), str(n_blocks)],
        pass_fds=(*shared.fds, pipe.write_fd),
    )
    lags, stop, is_running = np.random.default_rng(6), 0, True
    while is_running or ring.taken < ring.written:
        is_running = process.poll() is None
        for position, _, _, n, _ in pipe.take():
            ring.publish(stop, position + n - stop, stop, 0, 0)
            stop = position + n
        for _ in range(lags.choice((0, 0, 0, 20_000))):
            pass
        while (block := ring.read(500)) is not None:
            index = block.sample_index
            np.testing.assert_array_equal(
                block.samples[0], np.arange(index, index + block.n_samples)
            )
        if not is_running:
            break
    assert process.returncode == 0
    assert total - ring.taken <= 2048
    assert shared.count == total
    assert ring.overruns > 10
    ring.release()


def test_costs_of_callbacks_are_kept_as_quantiles():
    """Quantiles of callback costs are at most a sixteenth too high."""
    costs = CallbackCosts()
    assert costs.quantile_us(0.5) is None
    rng = np.random.default_rng(7)
    costs_ns = [round(10 ** rng.uniform(0, 8)) for _ in range(2001)]
    for cost_ns in costs_ns:
        costs.add(cost_ns)
    for quantile in (0.0, 0.5, 0.99, 0.999, 1.0):
        rank = max(1, -int(-quantile * len(costs_ns) // 1))
        exact_us = sorted(costs_ns)[rank - 1] * 1e-3
        assert exact_us < costs.quantile_us(quantile) <= exact_us * 17 / 16 + 1e-3
