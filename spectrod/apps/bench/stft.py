"""Speed and error of spectra of a long signal, by spectrod and by peers, on one device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spectrod
from spectrod.analysis.parallel import usable_processors
from spectrod.analysis.sample_buffer import touched_memory
from spectrod.analysis.stft.stft_select import make_stft_stage
from spectrod.analysis.stft.stft_stage import Samples, StftLaunch, StftStage
from spectrod.apps.bench import stft_peers
from spectrod.apps.bench.peers import PreparedRun, run_on_host
from spectrod.apps.bench.spectra import FS, Spectra, product_settings, require_right
from spectrod.apps.bench.transforms import Row
from spectrod.apps.bench.waiting_threads import cores_after
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.fft.timing import Timer, median_seconds, span_seconds
from spectrod.lib.errors import UnavailableError
from spectrod.opencl.context import Context, event_seconds
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.transfers import Transfers

STREAM, WHOLE, KERNEL = "spectrod.Stft", "spectrod.spectrogram", "spectrod kernel"
"""The ways of spectrod: streaming, a call for a whole signal, and the launch alone."""

_ROUNDS = 25
_BLOCK_SAMPLES = 1 << 20
_GPU_BLOCK_SAMPLES = 1 << 22
_N_CORES = usable_processors()


@dataclass(frozen=True, slots=True)
class TimedComputation:
    """A computation to time.

    Attributes
    ----------
    what, way : str
        Name of the library, and the way of its use.
    run : PreparedRun
        Run that is warmed up.
    error : float
        Error of the result, see ``Spectra.error``.
    """

    what: str
    way: str
    run: PreparedRun
    error: float


def compare(
    spectra: Spectra, device: DeviceInfo, names: Sequence[str], seconds: float
) -> Iterator[Row]:
    """Measure from host memory to host memory, in turns; on CPUs also the launch alone.

    Parameters
    ----------
    spectra : Spectra
        Signal and spectra to compute.
    device : DeviceInfo
        Device that spectrod uses.
    names : sequence of str
        Names of the peers, see ``spectrod.apps.bench.stft_peers.PEERS``.
    seconds : float
        Time after which no round of measurements starts.

    Yields
    ------
    row : Row
        See ``spectrod.apps.bench.tables.SPECTRA``: for spectrod, then for each peer; a failed peer
        has only ``what`` and ``failed``. A share is relative to a copy: on a CPU, by all cores, of
        as many bytes as are read and written; on other devices, of the samples to the device, or of
        the result from it if that takes longer.

    Raises
    ------
    InternalError
        If spectrod's result is wrong.
    """
    with ExitStack() as stack:
        entries = list(_own_computations(spectra, device, stack))
        if device.kind == "cpu":
            context = Context(device, profiling=True)
            stack.callback(context.close)
            entries.append(_checked(KERNEL, Kernel(context, spectra).run, spectra))
        copies = (
            _host_copies(spectra) if device.kind == "cpu" else _transfers(spectra, device, stack)
        )
        yield from _measure(spectra, entries, names, copies, seconds)


def resident(
    spectra: Spectra, device: DeviceInfo, names: Sequence[str], seconds: float
) -> Iterator[Row]:
    """Measure the launch alone, with the samples and the result in the device's memory.

    The time is by the device's clock, on CPUs by the wall clock. A share is relative to a copy on
    the device of as many bytes as are read and written; otherwise like ``compare``.
    """
    context = Context(device, profiling=True)
    kernel = Kernel(context, spectra)
    entries = [_checked(KERNEL, kernel.run, spectra)]
    yield from _measure(spectra, entries, names, [kernel.copy_seconds], seconds)
    context.close()


class Kernel:
    """A stage with the whole signal on the device.

    Parameters
    ----------
    context : Context
        The device, with profiling.
    spectra : Spectra
        Signal and spectra to compute.

    Raises
    ------
    DeviceError
        If the device has too little memory.
    """

    def __init__(self, context: Context, spectra: Spectra) -> None:
        self._context, self._spectra = context, spectra
        self._stage: StftStage = make_stft_stage(context, *spectra.kernel_spec)
        self._out = context.allocate(spectra.out_bytes)
        self._samples = Samples(context.table(spectra.samples), spectra.samples.shape[1])
        n_scratch = self._stage.scratch_bytes(spectra.n_frames, spectra.spec.channels)
        self._scratch = context.allocate(n_scratch) if n_scratch else None
        half = (spectra.samples.nbytes + spectra.out_bytes) // 2
        self._copied = context.allocate(half), context.allocate(half)
        is_cpu = context.device.kind == "cpu"
        self.run = PreparedRun(self._wall_seconds if is_cpu else self._device_seconds, self._result)

    def copy_seconds(self) -> float:
        """Time of a copy that reads and writes as many bytes [s]."""
        return event_seconds(self._context.copy(*self._copied))

    def _launch(self) -> list[Any]:
        spec = self._spectra.spec
        launch = StftLaunch(self._samples, spec.hop, self._spectra.n_frames, spec.channels)
        return self._stage.launch(self._out, launch, self._scratch)

    def _device_seconds(self) -> float:
        return span_seconds(self._launch())

    def _wall_seconds(self) -> float:
        def call() -> None:
            self._launch()
            self._context.finish()

        return run_on_host(call).seconds()

    def _result(self) -> NDArray[Any]:
        out = np.empty(self._spectra.shape, np.float32)
        self._launch()
        self._context.download(out, self._out)
        return out


def _own_computations(
    spectra: Spectra, device: DeviceInfo, stack: ExitStack
) -> Iterator[TimedComputation]:
    settings = _settings(spectra, device)
    open_stft = partial(
        spectrod.Stft,
        FS,
        channels=spectra.spec.channels,
        sample_format=spectra.sample_format,
        max_latency_s=np.inf,
        **settings,
    )
    stft = stack.enter_context(open_stft())
    block_samples = _BLOCK_SAMPLES if device.kind == "cpu" else _GPU_BLOCK_SAMPLES
    batches = partial(_batches, samples=spectra.samples, block_samples=block_samples)

    def consume() -> None:
        for _ in batches(stft):
            pass

    def result() -> NDArray[Any]:
        with open_stft() as fresh:
            return np.concatenate([batch.values for batch in batches(fresh)])

    yield _checked(STREAM, run_on_host(consume, result), spectra)
    whole = partial(spectrod.spectrogram, spectra.samples, FS, **settings)
    run = run_on_host(whole, lambda: whole().values.transpose(2, 0, 1))
    yield _checked(WHOLE, run, spectra)


def _batches(
    stft: spectrod.Stft, samples: NDArray[Any], block_samples: int
) -> Iterator[SpectrumBatch]:
    """Push a signal in blocks; release the batches of each block before the next one."""
    length = max(1, block_samples // len(samples))
    for first in range(0, samples.shape[1], length):
        yield from stft.push(samples[:, first : first + length])
    yield from stft.flush()


def _settings(spectra: Spectra, device: DeviceInfo) -> dict[str, Any]:
    spec = spectra.spec
    return product_settings(spectra.product) | {
        "window": spec.window,
        "win_length": spec.win_length,
        "hop": spec.hop,
        "nfft": spec.nfft,
        "engine": "opencl",
        "device": device.number,
    }


def _checked(name: str, run: PreparedRun, spectra: Spectra) -> TimedComputation:
    error = spectra.error(run.result())
    require_right(name, spectra, error)
    run.seconds()  # warms up
    return TimedComputation(name, "", run, error)


def _measure(
    spectra: Spectra,
    own: Sequence[TimedComputation],
    names: Sequence[str],
    copies: Sequence[Timer],
    seconds: float,
) -> Iterator[Row]:
    """Time spectrod, peers and copies in turns."""
    entries, failed = list(own), []
    for name in names:
        try:
            entries += [
                TimedComputation(name, *prepared) for prepared in stft_peers.prepare(name, spectra)
            ]
        except UnavailableError as reason:
            failed.append({"what": name, "failed": str(reason)})
    timers = [*copies, *(entry.run.seconds for entry in entries)]
    times = median_seconds(timers, _ROUNDS, seconds)
    copy_seconds = max(times[: len(copies)])
    rows = list(_rows(spectra, entries, times[len(copies) :], copy_seconds))
    _add_ratios(rows, {entry.what for entry in own})
    yield from rows
    yield from ({**_place(spectra), **row} for row in failed)


def _rows(
    spectra: Spectra,
    entries: Sequence[TimedComputation],
    times: Sequence[float],
    copy_seconds: float,
) -> Iterator[Row]:
    for entry, seconds in zip(entries, times, strict=True):
        yield {
            **_place(spectra),
            "what": entry.what,
            "way": entry.way,
            "seconds": seconds,
            "gs_per_s": spectra.samples.size / seconds / 1e9,
            "x_real_time": spectra.samples.shape[1] / FS / seconds,
            "copy_share": copy_seconds / seconds,
            "relative_l2": entry.error,
            "cores_after": cores_after(entry.run.seconds),
        }


def _add_ratios(rows: Sequence[Row], own: set[str]) -> None:
    """Add the ratios of spectrod's speed to its kernel, NumPy's fastest way, and other peers."""
    groups: Mapping[str, Callable[[str], bool]] = {
        "over_numpy": lambda name: stft_peers.PEERS[name].is_framing,
        "over_shorttimefft": lambda name: name == "ShortTimeFFT",
        "over_torch": lambda name: name.startswith("torch"),
    }
    for kernel in [row for row in rows if row["what"] == KERNEL]:
        for row in rows:
            if row["what"] in own:
                row["of_kernel"] = kernel["seconds"] / row["seconds"]
    peers = [row for row in rows if row["what"] not in own]
    for key, belongs in groups.items():
        times = [row["seconds"] for row in peers if belongs(row["what"])]
        for row in rows:
            if row["what"] in own and times:
                row[key] = min(times) / row["seconds"]


def _place(spectra: Spectra) -> Row:
    spec = spectra.spec
    return {
        "n": spec.nfft,
        "hop": spec.hop,
        "channels": spec.channels,
        "format": spectra.sample_format,
        "product": spectra.product,
    }


def _host_copies(spectra: Spectra) -> list[Timer]:
    """Return a copy by all cores that reads and writes as many bytes as the computation."""
    n = (spectra.samples.nbytes + spectra.out_bytes) // 2
    source, out = np.ones(n, np.uint8), np.zeros(n, np.uint8)
    parts = [slice(n * i // _N_CORES, n * (i + 1) // _N_CORES) for i in range(_N_CORES)]
    pool = ThreadPoolExecutor(_N_CORES)

    def copy(part: slice) -> None:
        out[part] = source[part]

    return [run_on_host(lambda: list(pool.map(copy, parts))).seconds]


def _transfers(spectra: Spectra, device: DeviceInfo, stack: ExitStack) -> list[Timer]:
    """Return copies of the samples to the device, and of the result from it, in pinned memory."""
    context = Context(device)
    stack.callback(context.close)
    transfers = Transfers(context)

    def timer(n_bytes: int, start: Callable[[Any, NDArray[np.uint8]], Any]) -> Timer:
        memory, buffer = touched_memory(n_bytes), context.allocate(n_bytes)
        stack.callback(transfers.lock_pages(memory).release)
        return run_on_host(lambda: context.wait(start(buffer, memory))).seconds

    n_up, n_down = spectra.samples.nbytes, spectra.out_bytes
    return [
        timer(n_up, lambda buffer, memory: transfers.start_upload(buffer, memory, 0, n_up)),
        timer(n_down, lambda buffer, memory: transfers.start_download(memory, buffer, [])),
    ]
