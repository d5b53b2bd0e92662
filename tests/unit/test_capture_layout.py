"""The ring between capture process and daemon: sizes, limits, two processes, callback costs."""

import mmap
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from spectrod.capture import layout as layout_module
from spectrod.capture.layout import Layout, RingReader, RingWriter, callback_cost_us


@pytest.fixture
def bell():
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(
    ("fs", "block_frames", "frame_bytes", "n_slots"),
    [
        (48_000, 480, 8, 400),
        (48_000, 241, 6, 797),
        (768_000, 7_680, 256, 136),  # 64 channels: 256 MiB hold 1.4 s
        (768_000, 768_000, 256, 4),  # blocks of one second
        (8_000, 8_000, 2, 4),
    ],
)
def test_the_ring_holds_four_seconds_within_limits(fs, block_frames, frame_bytes, n_slots):
    """The ring holds four seconds, at most 256 MiB, but at least four blocks."""
    layout = Layout.of_stream(fs, block_frames, frame_bytes)
    assert layout.n_slots == n_slots
    assert layout.offset(n_slots) == layout.offset(0)
    assert layout.offset(n_slots - 1) + 64 + block_frames * frame_bytes <= layout.size


def test_a_block_larger_than_a_slot_is_refused(bell):
    """A block larger than a slot, which PortAudio never delivers, is not written."""
    layout = Layout(4, 2, 4)
    writer = RingWriter(layout, mmap.mmap(-1, layout.size), bell)
    with pytest.raises(ValueError, match="block of 5 frames: a slot has 4"):
        writer.write(bytes(10), 5, flagged=False)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(bell)


def test_a_pipe_is_as_good_a_bell():
    """Without eventfd, a pipe counts the blocks."""
    layout = Layout(2, 1, 100)
    memory = mmap.mmap(-1, layout.size)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    writer = RingWriter(layout, memory, write_end)
    for value in range(5):
        writer.write(bytes([value, value]), 2, flagged=False)
    blocks = RingReader(layout, memory, read_end).read()
    assert [block.data[0] for block in blocks] == [0, 1, 2, 3, 4]
    os.close(read_end)
    os.close(write_end)


WRITER = """
    import mmap, sys
    from spectrod.capture.layout import Layout, RingWriter
    memory, bell, n_blocks = map(int, sys.argv[1:])
    layout = Layout(64, 8, 32)
    writer = RingWriter(layout, mmap.mmap(memory, layout.size), bell)
    frame = 0
    for number in range(n_blocks):
        n = number % 64 + 1
        writer.write(b"".join(i.to_bytes(8, "little") for i in range(frame, frame + n)), n,
                     flagged=False)
        frame += n
"""


@pytest.mark.slow
def test_two_processes_never_show_a_torn_block(bell):
    """A reader that is overtaken by the writer sees only whole blocks, in order and in place.

    Each frame holds its own number; the reader lags behind at random, so the ring of 32 blocks is
    overwritten under it many times.
    """
    layout = Layout(64, 8, 32)
    memory_fd = os.memfd_create("test")
    os.ftruncate(memory_fd, layout.size)
    memory = mmap.mmap(memory_fd, layout.size, prot=mmap.PROT_READ)
    n_blocks = 60_000
    total = sum(number % 64 + 1 for number in range(n_blocks))
    arguments = [str(memory_fd), str(bell), str(n_blocks)]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), *arguments], pass_fds=(memory_fd, bell)
    )
    reader, lags = RingReader(layout, memory, bell), np.random.default_rng(6)
    frame, n_laps = 0, 0
    while process.poll() is None or reader.has_unread:
        for block in reader.read():
            n_laps += block.frame > frame
            assert block.frame >= frame
            frame = block.frame + block.n_frames
            numbers = memoryview(block.data).cast("Q")
            assert numbers.tolist() == list(range(block.frame, frame))
        for _ in range(lags.choice((0, 0, 0, 20_000))):
            pass
    assert process.returncode == 0
    frame = max([frame, *(block.frame + block.n_frames for block in reader.read())])
    assert total - frame <= 32 * 64
    assert n_laps > 10
    memory.close()
    os.close(memory_fd)


def test_costs_of_callbacks_are_kept_as_quantiles(bell, monkeypatch):
    """Quantiles of callback costs are at most a sixteenth too high."""
    layout = Layout(1, 1, 4)
    memory = mmap.mmap(-1, layout.size)
    assert callback_cost_us(memory, 0.5) is None
    rng = np.random.default_rng(7)
    costs_ns = [round(10 ** rng.uniform(0, 8)) for _ in range(2001)]
    clock = iter([t for cost in costs_ns for t in (1000, 1000 + cost)])
    monkeypatch.setattr(layout_module.time, "monotonic_ns", lambda: next(clock))
    writer = RingWriter(layout, memory, bell)
    for _ in costs_ns:
        writer.write(b"x", 1, flagged=False)
    for quantile in (0.0, 0.5, 0.99, 0.999, 1.0):
        rank = max(1, -int(-quantile * len(costs_ns) // 1))
        exact_us = sorted(costs_ns)[rank - 1] * 1e-3
        assert exact_us < callback_cost_us(memory, quantile) <= exact_us * 17 / 16 + 1e-3
