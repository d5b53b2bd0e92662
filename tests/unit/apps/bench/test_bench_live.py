import subprocess
import time

import numpy as np
import pytest

from spectrod.apps.bench import memory
from spectrod.apps.bench.live import LatencySink
from spectrod.apps.bench.noise_sources import FullSpeedSource, PacedSource
from spectrod.apps.bench.usage import (
    CpuMeter,
    peak_resident_bytes,
    process_tree,
    proportional_bytes,
    resident_bytes,
    wake_ups,
)
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.source.ring import SampleRing

FS = 48_000.0
SPEC = SpectrumSpec(FS, win_length=64, hop=48)


def batch(first_frame, n_frames):
    index = SPEC.hop * np.arange(first_frame, first_frame + n_frames, dtype=np.int64)
    values = np.zeros((n_frames, 1, SPEC.n_bins), np.float32)
    return SpectrumBatch(values, index, index, index, SPEC, "none")


def test_a_paced_source_keeps_the_pace():
    """A paced source writes no block before its last sample is due, and then closes the ring."""
    source, ring = PacedSource(FS, 2, 0.05), SampleRing(FS, 2, 4800)
    start_ns = time.monotonic_ns()
    source.start(ring)
    assert source.ended.wait(5.0)
    source.stop()
    assert ring.written == source.n_samples == 2400
    due_ns = start_ns + 10_000_000 * np.arange(1, 6)
    assert (source.written_ns >= due_ns).all()
    assert 0.0 < source.cpu_s < 0.05
    while ring.read(4800) is not None:
        pass
    assert ring.exhausted
    ring.release()


def test_a_source_at_full_speed_ends_with_its_last_sample():
    """A source at full speed writes all samples in blocks of the same memory, the last shorter."""
    blocks = list(FullSpeedSource(FS, 3, 1000).blocks(400))
    assert [block.shape for block in blocks] == [(3, 400), (3, 400), (3, 200)]


def test_latency_counts_from_the_last_sample_of_a_frame():
    """Latency counts from the block that holds a frame's last sample, not its first."""
    source, sink = PacedSource(FS, 1, 0.02), LatencySink(10)
    source.written_ns[:] = time.monotonic_ns() - np.array([2_000_000_000, 1_000_000_000])
    sink.write(batch(0, 1))
    sink.write(batch(1, 9))
    assert sink.n_frames == 10
    latencies = sink.latencies(source, 0)
    # Block 0 has samples up to 479; the first frame that ends after it is number 9.
    np.testing.assert_allclose(latencies, [2.0] * 9 + [1.0], atol=0.5)
    assert len(sink.latencies(source, 4)) == 6


def test_memory_is_written_down_at_equal_distances():
    """Memory is recorded twenty times at equal distances, whatever the timing of frames."""
    sink = memory.MemorySink(1000)
    for first in range(0, 1000, 10):
        sink.write(batch(first, 10))
    assert [row["frames"] for row in sink.rows] == list(range(50, 1001, 50))
    assert all(row["rss_bytes"] > 0 for row in sink.rows)


def test_growth_after_the_first_tenth_is_not_flat():
    """Growth in the first tenth of a run is warm-up; a MiB of growth after it is a fault."""
    sizes = [1 << 20, 9 << 20] + [9 << 20] * 10 + [(10 << 20) + 1] * 8
    rows = [{"rss_bytes": size} for size in sizes]
    assert memory.growth_bytes(rows) == (1 << 20) + 1
    assert not memory.is_flat(rows)
    assert memory.is_flat(rows[:12])
    assert memory.growth_bytes([]) == 0


def test_usage_of_this_process():
    """Memory is above zero and at most its peak, and a busy loop uses processor time."""
    assert 1 << 20 < resident_bytes() <= peak_resident_bytes() + (1 << 20)
    meter = CpuMeter()
    deadline = time.process_time() + 0.02
    while time.process_time() < deadline:
        pass
    assert meter.share() > 0.0


@pytest.mark.parametrize("fs", [8000.0, 44_100.0])
def test_a_block_is_ten_milliseconds(fs):
    """A block lasts 10 ms at any sample rate, and the source ends on a whole block."""
    source = PacedSource(fs, 1, 0.1)
    assert source.block_samples == round(fs / 100)
    assert source.n_samples == 10 * source.block_samples


def test_usage_of_a_process_and_its_children():
    """A pipe of cats: the tree has the shell and both; each line wakes both; they share pages."""
    command = ["sh", "-c", "cat | cat; exit"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        for n_lines in range(1, 4):
            shell.stdin.write(b"a line\n")
            shell.stdin.flush()
            assert shell.stdout.readline() == b"a line\n"
            tree = list(process_tree(shell.pid))
            assert tree[0] == shell.pid
            assert len(tree) == 3
            assert sum(map(wake_ups, tree)) >= n_lines
        for pid in tree:
            assert 0 < proportional_bytes(pid) <= resident_bytes(pid)
        shell.stdin.close()
