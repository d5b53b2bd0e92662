"""The OpenCL engine on a large GPU: contract, speed with the data on the device, and the peers.

Self-contained: run it from a checkout with pyopencl installed, ``python benchmarks/h200_engine.py
OUT.json``. It writes the report after each part, so that an interrupted run leaves what it has.
pytest, SciPy and torch are used where they are installed. ``--small`` is for a machine that only
has to show that the script works.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from _report import (
    Report,
    describe_device,
    median_seconds,
    new_report,
    run_tests,
    write_report,
)

from spectrod.analysis.numpy_engine import NumpyPowerPlan
from spectrod.errors import SpectrodError
from spectrod.fft.stft_params import StftParams, choose_params
from spectrod.fft.stft_plan import StftPowerPlan
from spectrod.opencl.context import Context, event_seconds
from spectrod.opencl.devices import choose
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array

ALL_NFFT = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
RELATIVE_L2_MAX = 3e-7
CHECKED_FRAMES = 1000
REPEATS = 9
TESTS = ("tests/contract/test_engine_contract.py", "tests/kernels")


def median_event_seconds(launch: Callable[[], Any]) -> float:
    """Median device time of a launch [s], after one that warms up."""
    event_seconds(launch())
    return sorted(event_seconds(launch()) for _ in range(REPEATS))[REPEATS // 2]


def copy_bandwidth(context: Context, n_bytes: int) -> float:
    """Bytes read and written in a second [GB/s] by a copy on the device."""
    source, destination = context.allocate(n_bytes), context.allocate(n_bytes)
    return 2 * n_bytes / median_event_seconds(lambda: context.copy(destination, source)) / 1e9


def make_spec(nfft: int) -> SpectrumSpec:
    """Describe the standard case: one channel, Hann window, half overlap."""
    return SpectrumSpec(48_000.0, win_length=nfft, hop=nfft // 2)


def relative_l2(spec: SpectrumSpec, samples: Float32Array, power: Float32Array) -> float:
    """Error of the first and of the last frames against float64."""
    count = min(CHECKED_FRAMES, len(power))
    reference = NumpyPowerPlan(spec, count)
    tail = np.ascontiguousarray(samples[:, (len(power) - count) * spec.hop :])
    errors = []
    for part, frames in ((samples, power[:count]), (tail, power[-count:])):
        expected = reference.execute(part, count).astype(np.float64)
        errors.append(np.linalg.norm(frames - expected) / np.linalg.norm(expected))
    return float(max(errors))


def bench_shape(
    context: Context, spec: SpectrumSpec, samples: Float32Array, params: StftParams
) -> Report:
    """Time one shape of the kernel with the samples on the device; check its result first."""
    n_frames = spec.n_frames(samples.shape[1])
    plan = StftPowerPlan(context, spec, n_frames, params)
    power = plan.execute(samples, n_frames)
    error = relative_l2(spec, samples, power)
    if not error <= RELATIVE_L2_MAX:
        raise SpectrodError(f"nfft={spec.nfft} {params}: relative L2 error {error:.2e}")
    seconds = median_event_seconds(lambda: plan.launch(n_frames))
    return {
        "nfft": spec.nfft,
        "radices": params.radices,
        "item_values": params.item_values,
        "group_frames": params.group_frames,
        "local_buffers": params.local_buffers,
        "local_pad": params.local_pad,
        "relative_l2": error,
        "gs_per_s": samples.shape[1] / seconds / 1e9,
        "gb_per_s": (samples.nbytes + power.nbytes) / seconds / 1e9,
    }


def variants(default: StftParams) -> Iterator[StftParams]:
    """Shapes around the default: values an item, items a group, buffers, gaps."""
    grid = itertools.product((8, 16), (64, 128, 256), (1, 2), (0, 16, 32))
    for values, group_items, buffers, pad in grid:
        frames = max(1, group_items // (default.nfft // 2 // values))
        yield replace(
            default, item_values=values, group_frames=frames, local_buffers=buffers, local_pad=pad
        )


def bench_variants(context: Context, nfft: int, samples: Float32Array) -> Iterator[Report]:
    """Time every shape that the device accepts, each once."""
    spec = make_spec(nfft)
    default = choose_params(nfft, nfft, context.device)
    for params in dict.fromkeys([default, *variants(default)]):
        try:
            yield bench_shape(context, spec, samples, params)
        except SpectrodError as error:
            yield {"nfft": nfft, "params": str(params), "failed": str(error).splitlines()[0]}


def bench_host_to_host(context: Context, nfft: int, samples: Float32Array) -> Report:
    """Time upload, kernel and read-back together."""
    spec = make_spec(nfft)
    n_frames = spec.n_frames(samples.shape[1])
    plan = StftPowerPlan(context, spec, n_frames)
    seconds = median_seconds(lambda: plan.execute(samples, n_frames), 3)
    return {"nfft": nfft, "gs_per_s": samples.shape[1] / seconds / 1e9}


def bench_torch(samples: Float32Array, sizes: tuple[int, ...]) -> list[Report]:
    """Time ``torch.stft`` and the squared magnitude with the samples on the GPU."""
    try:
        import torch  # noqa: PLC0415 - a peer that need not be there
    except ImportError:
        return [{"skipped": "torch is not installed"}]
    if not torch.cuda.is_available():
        return [{"skipped": "torch sees no GPU"}]
    x = torch.from_numpy(samples[0]).cuda()
    return [
        {"nfft": nfft, "gs_per_s": len(x) / _torch_seconds(torch, x, nfft) / 1e9} for nfft in sizes
    ]


def _torch_seconds(torch: Any, x: Any, nfft: int) -> float:
    window = torch.hann_window(nfft, device="cuda")

    def transform() -> None:
        spectra = torch.stft(x, nfft, nfft // 2, window=window, center=False, return_complex=True)
        torch.view_as_real(spectra).square().sum(-1)
        torch.cuda.synchronize()

    return median_seconds(transform, REPEATS)


def main() -> None:
    """Run all parts in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="report to write, JSON")
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE, or an index")
    parser.add_argument("--small", action="store_true", help="2^20 samples instead of 2^28")
    arguments = parser.parse_args()
    report = new_report("h200_engine")

    def keep(part: str, value: object) -> None:
        report[part] = value
        write_report(report, arguments.out)
        print(part, value, flush=True)

    context = Context(choose(arguments.device), profiling=True)
    keep("device", describe_device(context.device))
    keep("tests", run_tests(list(TESTS), 420.0))
    n_samples = 1 << (20 if arguments.small else 28)
    samples = np.random.default_rng(0).standard_normal((1, n_samples), np.float32)
    keep("n_samples", n_samples)
    keep("copy_gb_per_s", copy_bandwidth(context, samples.nbytes))
    for nfft in ALL_NFFT:
        params = choose_params(nfft, nfft, context.device)
        keep(f"resident_{nfft}", bench_shape(context, make_spec(nfft), samples, params))
    for nfft in ALL_NFFT[::3]:
        keep(f"host_to_host_{nfft}", bench_host_to_host(context, nfft, samples))
    keep("torch_stft", bench_torch(samples, ALL_NFFT))
    shorter = np.ascontiguousarray(samples[:, : n_samples // 4])
    for nfft in (64, 512, 1024, 4096):
        keep(f"variants_{nfft}", list(bench_variants(context, nfft, shorter)))
    keep("copy_gb_per_s_at_end", copy_bandwidth(context, samples.nbytes))
    context.close()


if __name__ == "__main__":
    main()
