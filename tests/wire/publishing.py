"""Batches, counts and addresses for tests of the publisher."""

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.stats import Stats

TIMEOUT_S = 60.0
ANY_PORT = "tcp://127.0.0.1:*"
SPEC = SpectrumSpec(fs=48000.0, channels=2, win_length=256, hop=128, scaling="dbfs")


def make_batch(n_frames=1, first=0, spec=SPEC, gap_samples=0, skipped_rows=0):
    """Make frames whose values are their number, and a half more in the second channel."""
    index = (first + np.arange(n_frames)) * spec.hop
    values = np.zeros((n_frames, spec.n_signals, spec.n_values), np.float32)
    values += (first + np.arange(n_frames, dtype=np.float32))[:, None, None]
    values[:, 1:] += 0.5
    t_ns = 10**9 + index * 20833
    return SpectrumBatch(
        values,
        index,
        t_ns,
        t_ns + 5,
        spec,
        "numpy",
        gap_samples,
        skipped_rows=skipped_rows,
    )


def make_stats(state="running", **counts):
    """Make counters of zero, except for given ones."""
    return Stats(state, "test signal", "numpy", 48000.0, 2, **counts)
