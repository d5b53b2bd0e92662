"""Checks of the results on this machine's device, for operators to run after installation."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spectrod import client
from spectrod.analysis.engine import Engine
from spectrod.analysis.numpy_engine import Float64Engine
from spectrod.analysis.stream import FrameStream
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, Float32Array, Float64Array, power_to_level
from spectrod.lib.errors import DeviceError
from spectrod.source.signal import SignalSource

FS = 48_000.0
TONE_HZ, TONE_DBFS = 1000.0, -20.0
MAX_RELATIVE_L2 = 3e-7
MAX_LEVEL_ERROR_DB = 0.05
MAX_PRODUCT_ERROR = 1e-13
"""Relative L2 of products over 512 numbers, whose rounding makes some eps sqrt(512) = 5e-15."""
_MESSAGE_TIMEOUT_S = 10.0
_SIZES = (16, 64, 101, 256, 1000, 1024, 4095, 4096, 8192, 65536)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check: the comparison, the value and its limit."""

    name: str
    measured: str
    allowed: str
    passed: bool


def checks(engine: Engine) -> Iterator[Check]:
    """Run all checks on an engine, one after another; the last one closes it."""
    for nfft in _SIZES:
        yield _accuracy(engine, nfft)
    for name, frequency_hz in (("on", 85 * FS / 4096), ("between", 85.5 * FS / 4096)):
        yield _level(engine, frequency_hz, f"level of a tone {name} bins, flattop")
    yield _band_level(engine)
    yield _noise(engine)
    yield _product()
    yield _transpose(engine)
    yield _message(engine)


def _spectra(engine: Engine, spec: SpectrumSpec, samples: Float32Array) -> list[SpectrumBatch]:
    return FrameStream(spec, engine).push(Block(samples, 0, 0, 0))


def _power(engine: Engine, spec: SpectrumSpec, samples: Float32Array) -> Float64Array:
    batches = _spectra(engine, spec, samples)
    return np.concatenate([batch.values for batch in batches]).astype(np.float64)


def _random(shape: tuple[int, ...]) -> Float32Array:
    return np.random.default_rng(1).uniform(-1.0, 1.0, shape).astype(np.float32)


def spectrum_error(engine: Engine, nfft: int) -> float:
    """Return the relative L2 error of power spectra of noise, against NumPy in float64."""
    spec = SpectrumSpec(FS, 2, "hann", nfft, nfft // 2 - 1, nfft, "density")
    samples = _random((2, 16 * nfft))
    reference = _power(Float64Engine(), spec, samples)
    difference = _power(engine, spec, samples) - reference
    return float(np.linalg.norm(difference) / np.linalg.norm(reference))


def _accuracy(engine: Engine, nfft: int) -> Check:
    error = spectrum_error(engine, nfft)
    return Check(
        f"power spectra, N = {nfft}, against float64",
        f"{error:.1e} relative L2",
        f"<= {MAX_RELATIVE_L2:.0e}",
        error <= MAX_RELATIVE_L2,
    )


def _level(engine: Engine, frequency_hz: float, name: str) -> Check:
    spec = SpectrumSpec(FS, 1, "flattop", 4096, 1024, scaling="dbfs")
    tone = SignalSource(f"sine,{frequency_hz},{TONE_DBFS}", FS, 1, "full")
    batch = _spectra(engine, spec, next(tone.blocks(8192)).copy())[0]
    return _level_check(name, float(batch.values[0, 0].max()))


def _band_level(engine: Engine) -> Check:
    """Check the level of a tone in its band; A weighting does not change 1 kHz."""
    spec = SpectrumSpec(
        FS, 1, "hann", 8192, 4096, scaling="dbfs", weighting="A", bands="third-octave"
    )
    tone = SignalSource(f"sine,{TONE_HZ},{TONE_DBFS}", FS, 1, "full")
    batch = _spectra(engine, spec, next(tone.blocks(16384)).copy())[0]
    band = int(np.abs(spec.frequencies - TONE_HZ).argmin())
    return _level_check("level of a tone in a third octave, A", float(batch.values[0, 0, band]))


def _level_check(name: str, level_dbfs: float) -> Check:
    return Check(
        name,
        f"{level_dbfs:.3f} dBFS",
        f"{TONE_DBFS:g} +- {MAX_LEVEL_ERROR_DB}",
        abs(level_dbfs - TONE_DBFS) <= MAX_LEVEL_ERROR_DB,
    )


def _noise(engine: Engine) -> Check:
    """Check white noise: its density, summed over all bins, is its mean square."""
    spec = SpectrumSpec(FS, 1, "hann", 1024, 512, scaling="density")
    noise = next(SignalSource(f"white,{TONE_DBFS}", FS, 1, "full").blocks(1 << 19)).copy()
    mean_square = _power(engine, spec, noise).mean(axis=(0, 1)).sum() * spec.delta_f
    level = power_to_level(np.asarray(mean_square), FULL_SCALE_SINE_FS2)
    return _level_check("level of white noise, summed over its density", float(level))


def product_error() -> float:
    """Return the relative L2 error of NumPy's products of float64 and complex128 matrices.

    A BLAS library makes them, with other instructions on each processor, and filters, constant-Q
    transforms and tones rest on them. The sums beside them are NumPy's own.
    """
    real, other = _random((64, 512)).astype(np.float64), _random((512, 64)).astype(np.float64)
    errors = []
    for a, b in ((real, other), (real + 1j * real[::-1], other + 0j)):
        expected = np.einsum("ik,kj->ij", a, b)
        with np.errstate(all="ignore"):
            error = np.linalg.norm(np.matmul(a, b) - expected) / np.linalg.norm(expected)
        errors.append(error)
    return float(np.max(errors))


def _product() -> Check:
    error = product_error()
    return Check(
        "products of matrices by BLAS, against sums",
        f"{error:.1e} relative L2",
        f"<= {MAX_PRODUCT_ERROR:.0e}",
        error <= MAX_PRODUCT_ERROR,
    )


def _transpose(engine: Engine) -> Check:
    matrix = _random((1023, 517))
    passed = bool(np.array_equal(engine.transpose(matrix), matrix.T))
    return Check("transpose, 1023 x 517", "exact" if passed else "wrong", "exact", passed)


def _message(engine: Engine) -> Check:
    """Check the complete path: test signal, ring, engine, publisher, ZeroMQ, subscriber."""
    source = SignalSource(f"sine,{TONE_HZ:g},{TONE_DBFS:g}", FS, 1, "realtime")
    spec = SpectrumSpec(FS, 1, "flattop", 4096, 1024, scaling="dbfs")
    publisher = Publisher(["tcp://127.0.0.1:*"])
    feed = publisher.add_source(source.name, lambda: pipeline.stats())  # noqa: PLW0108 - made below
    pipeline = Pipeline(source, spec, engine)
    pipeline.attach(feed)
    start_s = time.monotonic()
    publisher.start()
    try:
        pipeline.start()
        with client.subscribe(publisher.endpoints[0], timeout_s=_MESSAGE_TIMEOUT_S) as frames:
            frame = next(one for one in frames if isinstance(one, client.Frame))
    finally:
        pipeline.stop()
        publisher.stop()
    peak = int(frame.values.argmax())
    level, frequency_hz = float(frame.values[peak]), float(frame.f[peak])
    return Check(
        "tone through the whole daemon to a subscriber",
        f"{frequency_hz:.0f} Hz, {level:.3f} dBFS after {time.monotonic() - start_s:.2f} s",
        f"{TONE_HZ:g} Hz +- a bin, {TONE_DBFS:g} +- {MAX_LEVEL_ERROR_DB}",
        abs(frequency_hz - TONE_HZ) <= spec.delta_f
        and abs(level - TONE_DBFS) <= MAX_LEVEL_ERROR_DB,
    )


def require_all(results: list[Check]) -> None:
    """Raise DeviceError if a check failed."""
    failed = [check.name for check in results if not check.passed]
    if failed:
        raise DeviceError(f"selftest: {len(failed)} of {len(results)} failed: {'; '.join(failed)}")
