"""Chunks as recordings take them: spectra of 0.1 s, and blocks, at 1 kHz."""

from contextlib import closing

import numpy as np

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.segment.segment_reader import SegmentReader

NS = 1_000_000_000
FS = 1000.0
SPEC = SpectrumSpec(FS, win_length=64, hop=100, nfft=64, scaling="spectrum")


def batch(first, n_rows=1, gap_samples=0):
    rows = first + np.arange(n_rows)
    values = np.ones((n_rows, 1, SPEC.n_values), np.float32)
    t_ns = rows * (NS // 10)
    return SpectrumBatch(values, rows * 100, t_ns, t_ns, SPEC, "numpy", gap_samples)


def n_rows_of(file):
    with closing(SegmentReader(file)) as reader:
        return sum(batch.n_frames for batch in reader.batches())


def block(first, samples, lost_samples=0):
    samples = np.atleast_2d(np.asarray(samples, np.float32))
    t_ns = first * NS // 1000
    return Block(samples, first, t_ns, t_ns, bool(lost_samples), lost_samples, FS)
