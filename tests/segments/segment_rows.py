"""Rows for segments, and their comparison after a round trip."""

from dataclasses import replace

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description

BEGIN_UTC_NS = 1_795_211_223 * 10**9
BEGIN_MONO_NS = 77 * 10**9
FIELDS = ("engine", "gap_samples", "discontinuity", "skipped_rows", "cut_frames")


def make_spec(**settings):
    return SpectrumSpec(**({"fs": 8000.0, "win_length": 16, "hop": 10, "nfft": 16} | settings))


def describe(spec, **more):
    signals = tuple(f"ch{n}" for n in range(spec.n_signals))
    return Description(spec, "mic", signals, "spectrod 1.2.3", **more)


def make_batch(spec, first_row, n_rows, seed=0, **more):
    """Make rows that follow those of lower numbers, each of its own random bits."""
    rng = np.random.default_rng([seed, first_row])
    dtype = np.complex64 if spec.output == "complex" else np.float32
    shape = (n_rows, spec.n_signals, spec.n_values)
    bits = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    index = (first_row + np.arange(n_rows, dtype=np.int64)) * spec.hop * spec.averaging_frames
    since_ns = np.rint(index * 1e9 / spec.fs).astype(np.int64)
    if spec.broadband:
        more = {"broadband": rng.standard_normal(shape[:2]).astype(np.float32)} | more
    return SpectrumBatch(
        bits.view(dtype)[..., 0],
        index,
        BEGIN_MONO_NS + since_ns,
        BEGIN_UTC_NS + since_ns,
        spec,
        **({"engine": "numpy"} | more),
    )


def shifted(batch, n_samples, **more):
    """Move a batch by a number of samples, with its times."""
    since_ns = round(n_samples * 1e9 / batch.spec.fs)
    return replace(
        batch,
        sample_index=batch.sample_index + n_samples,
        t_mono_ns=batch.t_mono_ns + since_ns,
        t_utc_ns=batch.t_utc_ns + since_ns,
        **more,
    )


def rows_of(batches):
    """List all fields of each row; those of a batch count for its first row."""
    rows = []
    for batch in batches:
        for k in range(batch.n_frames):
            times = (batch.sample_index[k], batch.t_mono_ns[k], batch.t_utc_ns[k])
            fields = [getattr(batch, name) for name in FIELDS]
            if k:
                fields[1:] = [0, False, 0, 0]
            if batch.broadband is not None:
                fields.append(batch.broadband[k].tobytes())
            rows.append((batch.values[k].tobytes(), *map(int, times), *fields))
    return rows
