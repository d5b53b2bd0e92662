"""Pyramids of rows half a second apart, with a gap."""

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter

S = 10**9
BEGIN_NS = 20_575 * 86400 * S + 3605 * S
"""2026-05-02T01:00:05Z."""
GAP = range(100, 230)
"""Rows that are missing."""


def spec_of(**settings):
    return SpectrumSpec(fs=1000.0, win_length=65, hop=500, nfft=65, **settings)


def write_pyramid(folder, spec=None, n_rows=400, values_max=512, finest_s=1.0):
    """Write rows of random power, without those of the gap."""
    spec = spec or spec_of()
    rows = np.array([n for n in range(n_rows) if n not in GAP], np.int64)
    power = np.random.default_rng(3).uniform(1e-9, 1e-3, (len(rows), spec.n_signals, spec.n_values))
    values = (10 * np.log10(power) if spec.scaling == "dbfs" else power).astype(np.float32)
    t_ns = BEGIN_NS + rows * (S // 2)
    signals = tuple(f"mic {n}" for n in range(spec.n_signals))
    about = Description(spec, "pier", signals, "spectrod 1", attributes={"license": "CC0"})
    writer = PyramidWriter(folder, about, PyramidOptions(finest_s, values_max, 1e9))
    writer.write(SpectrumBatch(values, rows * spec.hop, t_ns, t_ns, spec, "numpy"))
    writer.finish()
    return writer
