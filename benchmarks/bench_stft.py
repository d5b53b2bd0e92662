"""Speed of the power spectrum of overlapping frames, host memory to host memory.

Every OpenCL device that works, and NumPy in float64, against ``scipy.signal.ShortTimeFFT`` and
against NumPy framing around ``scipy.fft`` with two workers, in the same run. Each result is checked
against float64 before it is timed. One channel, Hann window, hop = nfft / 2; GS/s count input
samples.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

import numpy as np
import scipy.fft
import scipy.signal
from _report import Report, describe_device, median_seconds, new_report, write_report

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.errors import DeviceError
from spectrod.opencl.context import event_seconds
from spectrod.opencl.devices import list_devices
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

RELATIVE_L2_MAX = 3e-7
PEER_RELATIVE_L2_MAX = 1e-5  # scipy.fft in float32 need not be as good as ours to be a peer
FS = 48_000.0

Transform = Callable[[], Float32Array]


def numpy_framing(spec: SpectrumSpec, samples: Float32Array) -> Transform:
    """Frames by a strided view, ``scipy.fft.rfft`` in float32 with two workers."""
    window = spec.taper.samples.astype(np.float32)
    scale = np.full(spec.n_bins, 2.0 * spec.power_scale, np.float32)
    scale[[0, -1]] /= 2.0

    def transform() -> Float32Array:
        frames = np.lib.stride_tricks.sliding_window_view(samples[0], spec.nfft)[:: spec.hop]
        spectra = scipy.fft.rfft(frames * window, workers=2)
        return ((spectra.real**2 + spectra.imag**2) * scale)[:, None]

    return transform


def short_time_fft(spec: SpectrumSpec, samples: Float32Array) -> Transform:
    """``ShortTimeFFT.spectrogram`` over the slices that are our frames."""
    window = spec.taper.samples.astype(np.float32)
    stft = scipy.signal.ShortTimeFFT(
        window, spec.hop, FS, fft_mode="onesided2X", scale_to="psd", phase_shift=None
    )
    first = stft.m_num_mid // spec.hop
    last = first + spec.n_frames(samples.shape[1])

    def transform() -> Float32Array:
        return stft.spectrogram(samples[0], p0=first, p1=last).T[:, None]

    return transform


def check(name: str, power: Float32Array, expected: Float32Array, limit: float) -> None:
    """Stop the benchmark if a result is wrong: its speed would mean nothing."""
    error = np.linalg.norm(power - expected.astype(np.float64)) / np.linalg.norm(expected)
    if not error <= limit:
        sys.exit(f"{name}: relative L2 error {error:.2e} exceeds {limit:.0e}")


def bench_size(nfft: int, n_samples: int, repeats: int) -> Iterator[Report]:
    """Time everything at one transform length."""
    spec = SpectrumSpec(FS, win_length=nfft, hop=nfft // 2)
    samples = np.random.default_rng(0).standard_normal((1, n_samples)).astype(np.float32)
    n_frames = spec.n_frames(n_samples)
    plan = NumpyEngine().plan_power(spec, n_frames)
    expected = plan.execute(samples, n_frames)

    def row(name: str, seconds: float) -> Report:
        return {"nfft": nfft, "what": name, "gs_per_s": n_samples / seconds / 1e9}

    yield row("numpy", median_seconds(lambda: plan.execute(samples, n_frames), repeats))
    peers = {"numpy framing + scipy.fft": numpy_framing, "ShortTimeFFT": short_time_fft}
    for name, make in peers.items():
        transform = make(spec, samples)
        check(name, transform(), expected, PEER_RELATIVE_L2_MAX)
        yield row(name, median_seconds(transform, repeats))
    for engine in working_engines():
        opencl = engine.plan_power(spec, n_frames)
        check(engine.name, opencl.execute(samples, n_frames), expected, RELATIVE_L2_MAX)
        seconds = median_seconds(lambda: opencl.execute(samples, n_frames), repeats)  # noqa: B023 - called at once
        events = sorted(event_seconds(opencl.launch(n_frames)) for _ in range(repeats))
        kernel = {"kernel_gs_per_s": n_samples / events[repeats // 2] / 1e9}
        yield (
            row(engine.name, seconds) | kernel | {"device": describe_device(engine.context.device)}
        )
        engine.close()


def working_engines() -> Iterator[OpenCLEngine]:
    """Open each device with event timing; say which do not work."""
    for device in list_devices():
        try:
            yield OpenCLEngine(device, profiling=True)
        except DeviceError as error:
            print(f"left out: {error}", file=sys.stderr)


def main() -> None:
    """Run, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nfft", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--samples", type=int, default=1 << 22, help="input samples a run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    report = new_report("stft")
    print(f"{'nfft':>5}  {'GS/s':>7}  {'kernel':>7}  what")
    for nfft in arguments.nfft:
        for row in bench_size(nfft, arguments.samples, arguments.repeats):
            kernel = f"{row['kernel_gs_per_s']:7.3f}" if "kernel_gs_per_s" in row else " " * 7
            print(f"{row['nfft']:5}  {row['gs_per_s']:7.3f}  {kernel}  {row['what']}", flush=True)
            report["results"].append(row)
    if arguments.json:
        write_report(report, arguments.json)


if __name__ == "__main__":
    main()
