"""Helpers that the tests of several sources share."""

import numpy as np
import pytest

from spectrod.analysis.samples import to_float32
from spectrod.ring import SampleRing


@pytest.fixture
def collect():
    """Read a source, through a ring if it has one, and join its blocks between gaps.

    The run stops at the end of the source or after a given number of samples. Returns a list of
    (sample index, (channels, n) samples, monotonic ns, UTC ns), one entry for each stretch without
    a gap.
    """

    def run(source, n_samples=None, capacity=None):
        ring = source.open_reader()
        if capacity and isinstance(ring, SampleRing):
            ring.release()
            ring = SampleRing(source.fs, source.channels, capacity)
        source.start(ring)
        stretches = []
        n_left = float("inf") if n_samples is None else n_samples
        while not ring.exhausted and n_left > 0:
            block = ring.read(int(min(1 << 17, n_left)))
            if block is None:
                assert ring.data.wait(10.0), "the source delivers nothing"
                continue
            if block.discontinuity or not stretches:
                stretches.append((block.sample_index, [], block.t_mono_ns, block.t_utc_ns))
            stretches[-1][1].append(to_float32(block.samples, ring.layout.sample_format))
            n_left -= block.n_samples
        source.stop()
        ring.release()
        if source.failure:
            raise source.failure
        return [
            (index, np.concatenate(parts, axis=1), *times) for index, parts, *times in stretches
        ]

    return run
