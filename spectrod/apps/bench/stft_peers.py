"""Other libraries for spectra, one class each, measured beside spectrod if installed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.bench import framing
from spectrod.apps.bench.framing import Finish, NumpyFraming, scaled_window
from spectrod.apps.bench.peers import PreparedRun, run_on_host, translated
from spectrod.apps.bench.spectra import PEER_LIMIT, Spectra
from spectrod.lib.errors import ConfigError, UnavailableError

Array = NDArray[Any]
Ways = Iterator[tuple[str, Sequence[Callable[[], PreparedRun]]]]
"""Name of a way to use a library, with functions that create its runs; the fastest counts."""


class SpectraPeer(Protocol):
    """A library for spectra.

    Attributes
    ----------
    module : str
        Module that must be installed.
    package : str
        Name of the package for pip.
    device_kinds : tuple of str
        Kinds of OpenCL devices to compare it with.
    is_framing : bool
        True if it combines NumPy and an FFT.
    is_resident : bool
        True if its data are in the memory of a device other than the host.
    """

    module: str
    package: str
    device_kinds: tuple[str, ...]
    is_framing: bool
    is_resident: bool

    def ways(self, spectra: Spectra) -> Ways:
        """Yield the ways to use the library.

        Raises
        ------
        ImportError
            If the installed library does not work here.
        """
        ...


class _Framing:
    """NumPy around an FFT."""

    device_kinds: tuple[str, ...] = ("cpu",)
    is_framing, is_resident = True, False

    def __init__(self, module: str, package: str, transform: framing.MakeTransform) -> None:
        self.module, self.package = module, package
        self._transform = transform

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        pipeline = NumpyFraming(spectra, self._transform)
        for name, makers in pipeline.ways():
            yield name, [partial(_made, maker) for maker in makers]


class ShortTimeFft:
    """``scipy.signal.ShortTimeFFT.spectrogram`` over the slices that equal spectrod's frames."""

    module, package = "scipy.signal", "scipy"
    device_kinds: tuple[str, ...] = ("cpu",)
    is_framing, is_resident = False, False

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        spec, signal = spectra.spec, import_module("scipy.signal")
        window = scaled_window(spectra)
        stft = signal.ShortTimeFFT(
            window, spec.hop, spec.fs, fft_mode="onesided", mfft=spec.nfft, phase_shift=None
        )
        # Its slice p is centred on sample p * hop: use those that lie within the signal.
        first, rest = divmod(stft.m_num_mid, spec.hop)
        if rest:
            raise ValueError(f"hop={spec.hop} does not divide n / 2, where its slices are centred")
        power = partial(stft.spectrogram, p0=first, p1=first + spectra.n_frames)
        yield "", [lambda: _by_channel(spectra, lambda x: power(x).T)]


class Librosa:
    """``librosa.stft`` and the squared magnitude by ``librosa.util.abs2``."""

    module = package = "librosa"
    device_kinds: tuple[str, ...] = ("cpu",)
    is_framing, is_resident = False, False

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        librosa, spec, window = import_module("librosa"), spectra.spec, scaled_window(spectra)

        def power(x: Array) -> Array:
            spectrum = librosa.stft(
                x, n_fft=spec.nfft, hop_length=spec.hop, window=window, center=False
            )
            return np.asarray(librosa.util.abs2(spectrum)).T

        yield "", [lambda: _by_channel(spectra, power)]


class TorchStftCpu:
    """``torch.stft`` on the processor and the squared magnitude, in the faster of two forms."""

    module = package = "torch"
    device_kinds: tuple[str, ...] = ("cpu",)
    is_framing, is_resident = False, False

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        torch = import_module("torch")
        source = torch.from_numpy(spectra.samples)

        def made(square: Callable[[Any], Any]) -> PreparedRun:
            power = _torch_power(torch, spectra, "cpu", square)
            return run_on_host(lambda: power(source), lambda: _in_order(power(source)))

        yield "", [partial(made, square) for square in _squares(torch)]


class TorchStftCuda:
    """``torch.stft`` on a CUDA device and the squared magnitude, with the samples on the device."""

    module = package = "torch"
    device_kinds: tuple[str, ...] = ("gpu",)
    is_framing, is_resident = False, True

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        torch = _torch_with_cuda()
        source = torch.from_numpy(spectra.samples).cuda()

        def made(square: Callable[[Any], Any]) -> PreparedRun:
            power = _torch_power(torch, spectra, "cuda", square)

            def seconds() -> float:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                power(source)
                end.record()
                end.synchronize()
                return float(start.elapsed_time(end)) * 1e-3

            return PreparedRun(seconds, lambda: _in_order(power(source)))

        yield "", [partial(made, square) for square in _squares(torch)]


class TorchStftCudaFromHost:
    """``torch.stft`` on a CUDA device, from pinned host memory and back."""

    module = package = "torch"
    device_kinds: tuple[str, ...] = ("gpu",)
    is_framing, is_resident = False, False

    def ways(self, spectra: Spectra) -> Ways:
        """See ``SpectraPeer``."""
        torch = _torch_with_cuda()
        source = torch.from_numpy(spectra.samples).pin_memory()
        frames, channels, values = spectra.shape
        out = torch.empty((channels, values, frames), dtype=torch.float32).pin_memory()

        def made(square: Callable[[Any], Any]) -> PreparedRun:
            power = _torch_power(torch, spectra, "cuda", square)

            def call() -> None:
                out.copy_(power(source.cuda(non_blocking=True)), non_blocking=True)
                torch.cuda.synchronize()

            def result() -> Array:
                call()
                return _in_order(out)

            return run_on_host(call, result)

        yield "", [partial(made, square) for square in _squares(torch)]


PEERS: Mapping[str, SpectraPeer] = {
    "scipy.fft": _Framing("scipy.fft", "scipy", framing.scipy_transform),
    "pyFFTW": _Framing("pyfftw", "pyfftw", framing.fftw_transform),
    "mkl_fft": _Framing("mkl_fft", "mkl_fft", framing.mkl_transform),
    "ShortTimeFFT": ShortTimeFft(),
    "torch": TorchStftCpu(),
    "torch-cuda": TorchStftCuda(),
    "torch-cuda-host": TorchStftCudaFromHost(),
    "librosa": Librosa(),
}
"""All peers, by their names in tables and options."""


def choose_peers(
    names: Sequence[str] | None, kind: str, *, is_resident: bool = False
) -> tuple[list[str], list[str]]:
    """Choose the libraries to measure beside spectrod.

    Parameters
    ----------
    names : sequence of str or None
        Requested libraries; None for all that are installed and suit the device.
    kind : str
        Kind of the device that spectrod uses.
    is_resident : bool
        True if spectrod's data are in the device's memory.

    Returns
    -------
    chosen : list of str
        Names of the libraries.
    missing : list of str
        Names of libraries that are not installed, with how to install them.

    Raises
    ------
    ConfigError
        For an unknown name.
    UnavailableError
        If a requested library is not installed.
    """
    if names is None:
        on_device = is_resident and kind != "cpu"
        fitting = [
            name
            for name, peer in PEERS.items()
            if kind in peer.device_kinds and peer.is_resident == on_device
        ]
        chosen = [name for name in fitting if _is_installed(name)]
        return chosen, [_hint(name) for name in fitting if name not in chosen]
    for name in names:
        if name not in PEERS:
            raise ConfigError(f"peer {name!r}: must be one of {', '.join(PEERS)}")
        if not _is_installed(name):
            raise UnavailableError(f"peer {_hint(name)}")
    return list(names), []


def prepare(name: str, spectra: Spectra) -> Iterator[tuple[str, PreparedRun, float]]:
    """Prepare each way to use a library, and check its result.

    Yields
    ------
    way : str
        Name of the way; "" if there is only one.
    run : PreparedRun
        The fastest run of this way, warmed up.
    error : float
        See ``Spectra.error``.

    Raises
    ------
    UnavailableError
        If the library does not work here, with its own text, or computes another result.
    """
    with translated():
        for way, makers in PEERS[name].ways(spectra):
            run = _fastest(makers)
            error = spectra.error(run.result())
            if not error <= max(PEER_LIMIT, spectra.limit):
                raise UnavailableError(f"{way} is wrong: relative L2 error {error:.1e}".lstrip())
            yield way, run, error


def _fastest(makers: Sequence[Callable[[], PreparedRun]]) -> PreparedRun:
    """Create all runs, and return the fastest of them."""
    runs = [make() for make in makers]
    if len(runs) == 1:
        return runs[0]
    return min(runs, key=lambda run: min(run.seconds() for _ in range(3)))


def _is_installed(name: str) -> bool:
    return find_spec(PEERS[name].module.partition(".")[0]) is not None


def _hint(name: str) -> str:
    return f"{name}: not installed; pip install {PEERS[name].package}"


def _made(maker: Callable[[], Callable[[], Array]]) -> PreparedRun:
    return run_on_host(maker())


def _by_channel(spectra: Spectra, power: Callable[[Array], Array]) -> PreparedRun:
    """Compute the power of each channel, (frames, bins), and convert it to the product."""
    finish = Finish(spectra)

    def call() -> list[Array]:
        floats = (x if x.dtype == np.float32 else x.astype(np.float32) for x in spectra.samples)
        return [finish(power(x)) for x in floats]

    return run_on_host(call, lambda: np.stack(call(), axis=1))


def _torch_with_cuda() -> Any:
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise ImportError("torch sees no CUDA device")
    return torch


def _squares(torch: Any) -> list[Callable[[Any], Any]]:
    """Return two ways to the squared magnitude: neither is the faster one on all machines."""
    return [lambda x: torch.view_as_real(x).square().sum(-1), lambda x: x.abs().square()]


def _torch_power(
    torch: Any, spectra: Spectra, device: str, square: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Return a function from samples on the device to (channels, values, frames)."""
    spec, weights = spectra.spec, Finish(spectra).weights
    window = torch.from_numpy(scaled_window(spectra)).to(device)
    bands = None if weights is None else torch.from_numpy(weights.T.copy()).to(device)

    def power(source: Any) -> Any:
        x = source.to(torch.float32)
        spectrum = torch.stft(
            x, spec.nfft, spec.hop, window=window, center=False, return_complex=True
        )
        values = square(spectrum)
        values[:, 0] *= 0.5
        if spec.nfft % 2 == 0:
            values[:, -1] *= 0.5
        values = values if bands is None else bands @ values
        return values.clamp_(min=1e-20).log10_().mul_(10.0) if spectra.is_db else values

    return power


def _in_order(values: Any) -> Array:
    """Convert a tensor, (channels, values, frames), to (frames, channels, values)."""
    return np.asarray(values.cpu().permute(2, 0, 1).numpy())
