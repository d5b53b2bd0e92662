"""The streaming STFT: push blocks of any size, receive every frame exactly once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.iq import as_channels
from spectrod.analysis.parameters import require_averages, require_known, showing
from spectrod.analysis.samples import (
    along_time,
    as_samples,
    check_axis,
    checked_full_scale,
    of_full_scale,
)
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block, SampleFormat, duration_ns
from spectrod.dsp.calibration import CalibrationLike, calibration_of
from spectrod.dsp.spectrum import SpectrumSpec, StreamParameters, taper_for
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.windows import WindowLike
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays


class Stft:
    """Short-time Fourier transform of a stream: ``push`` blocks of any size, receive all frames.

    Several resolutions at once: if win_length, hop or nfft are sequences, each batch belongs to one
    of the ``specs``, and all specs read the same copy of the samples.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int, optional
        Number of channels; by default 1, or 2 with ``iq``.
    window, win_length
        As for ``spectrogram``; win_length may be a sequence.
    hop, nfft
        See ``SpectrumSpec``; win_length, hop and nfft are numbers or sequences of one length.
    sample_format : {"float32", "int16", "int24", "int32"}
        Format of the samples in memory and on the device. With float32, ``push`` accepts and
        converts everything that ``as_samples`` does; with the others only that format.
    interleaved : bool
        Whether the channels' samples alternate in that memory. ``push`` accepts both orders; this
        order is copied fastest.
    axis : int
        Axis of time in arrays that are pushed: -1 or 1 of (channels, n), 0 or -2 of (n, channels).
    full_scale : float, optional
        Number that represents digital full scale in pushed arrays, as for ``spectrogram``; only
        with a ``sample_format`` of float32.
    max_latency_s : float
        How long complete frames may wait for a full batch, in time of the samples [s]. With 0,
        ``push`` returns all frames that it completes.
    batch_frames : int, optional
        Frames of a full batch; by default a number that suits the engine.
    engine : {"auto", "opencl", "numpy", "float64"}
        Engine; with "auto", NumPy continues if a device fails.
    device : str
        OpenCL device, by part of its name or by number.
    calibration : str, Path or Calibration, optional
        Calibration file, or its contents; results are in its units then.
    **parameters
        Those of ``StreamParameters``, see ``SpectrumSpec``: scaling, output, iq, weighting, bands,
        averaging, averaging_frames, averaging_s, rate_hz, center_frequency_hz, align.

    Attributes
    ----------
    specs : tuple of SpectrumSpec
        What is computed.

    Raises
    ------
    ConfigError, DeviceError
        If a setting breaks a rule or the device is not available.

    Notes
    -----
    Not thread-safe. Holds a device: ``close`` it or use it in a ``with`` statement. The memory of a
    batch is reused when no array refers to it any more: copy rows to keep them for long.
    """

    @showing(StreamParameters)
    def __init__(  # noqa: PLR0913 - the analysis has these settings
        self,
        fs: float,
        *,
        channels: int | None = None,
        window: WindowLike = "hann",
        win_length: int | Sequence[int] | None = None,
        hop: int | Sequence[int] = 1024,
        nfft: int | Sequence[int] = 0,
        sample_format: SampleFormat = "float32",
        interleaved: bool = False,
        axis: int = -1,
        full_scale: float | None = None,
        max_latency_s: float = 0.0,
        batch_frames: int | None = None,
        engine: Literal["auto", "opencl", "numpy", "float64"] = "auto",
        device: str = "",
        calibration: CalibrationLike = None,
        **parameters: Unpack[StreamParameters],
    ) -> None:
        require_known("Stft", parameters, StreamParameters)
        require_averages(parameters)
        if channels is None:
            channels = 2 if parameters.get("iq") else 1
        n_signals = channels // 2 if parameters.get("iq") else channels
        calibrated = calibration_of(calibration, n_signals)
        self.specs = tuple(
            SpectrumSpec(
                fs,
                channels,
                **_with_taper(window, frames),
                broadband=bool(parameters.get("bands")),
                calibration=calibrated,
                **parameters,
            )
            for frames in _broadcast(win_length=win_length, hop=hop, nfft=nfft)
        )
        check_axis(axis)
        self._axis, self._full_scale = axis, full_scale
        if full_scale is not None:
            checked_full_scale(full_scale)
            if sample_format != "float32":
                raise ConfigError(f"full_scale={full_scale:g}: needs sample_format='float32'")
        self._is_closed = False
        self._opened = open_engine(engine, device)
        try:
            self._stream = FrameStream(
                self.specs,
                self._opened,
                sample_format=sample_format,
                interleaved=interleaved,
                max_latency_s=max_latency_s,
                batch_frames=batch_frames,
            )
        except BaseException:
            self._opened.close()
            raise

    def __repr__(self) -> str:
        """Return one line: rate, channels, resolutions and the engine."""
        spec = self.spec
        frames = ", ".join(f"{one.win_length} at {one.hop}" for one in self.specs)
        state = ", closed" if self._is_closed else ""
        return (
            f"<Stft: {spec.fs:g} Hz, {spec.channels} channels, {spec.window} window of {frames}, "
            f"{self._opened.name}{state}>"
        )

    @property
    def spec(self) -> SpectrumSpec:
        """The spec, or the first of several."""
        return self.specs[0]

    @property
    def engine(self) -> Engine:
        """The engine in use."""
        return self._stream.engine

    @property
    def stream(self) -> FrameStream:
        """The underlying stream, with counters of gaps and failures."""
        return self._stream

    @naming_arrays
    def push(
        self, block: Block | ArrayLike | bytes | bytearray | memoryview
    ) -> list[SpectrumBatch]:
        """Add samples and return the spectra that they complete.

        Parameters
        ----------
        block : Block, (n,), (channels, n) or (n, channels) array-like, or bytes
            Floats in [-1, 1] or integer PCM, see ``as_samples`` [FS]; bytes are interleaved samples
            of the format. With ``iq`` also complex, (n,) or (signals, n); uint8 then has its middle
            at 127.5. ``axis`` and ``full_scale`` apply to arrays, not to blocks and bytes. An array
            directly follows the samples pushed before, and its times are elapsed times: index / fs.

        Returns
        -------
        batches : list of SpectrumBatch
            In order for each spec; empty while no frame is complete, or all frames wait for a
            batch.

        Raises
        ------
        InputError
            For a wrong shape or dtype, and for samples that are not finite.
        DeviceError
            If the device fails and was requested.
        ConfigError
            After ``close``.
        """
        self._require_open()
        if isinstance(block, Block):
            return self._stream.push(replace(block, samples=self._samples(block.samples)))
        samples = self._samples(self._arranged(block))
        index = self._stream.next_index or 0
        elapsed_ns = duration_ns(index, self.spec.fs)
        return self._stream.push(Block(samples, index, elapsed_ns, elapsed_ns, fs=self.spec.fs))

    def _arranged(self, given: Any) -> Any:
        """Return an array as (channels, n) of full scale 1.0; bytes as they are."""
        is_view = isinstance(given, memoryview) and given.ndim == 1
        if is_view or isinstance(given, (bytes, bytearray)):
            return given
        n_ends = 1 if self._stream.layout.sample_format == "int24" else 0
        return of_full_scale(along_time(given, self._axis, n_ends), self._full_scale)

    def _samples(self, given: ArrayLike | bytes | bytearray | memoryview) -> NDArray[Any]:
        layout = self._stream.layout
        if layout.sample_format != "int24":  # those are bytes
            given = as_channels(given, iq=self.spec.iq, channels=layout.channels)
        return as_samples(given, layout.channels, layout.sample_format)

    def flush(self) -> list[SpectrumBatch]:
        """Return all complete frames that wait for a batch; more samples may follow.

        Averages continue; ``finish`` ends them.
        """
        self._require_open()
        return self._stream.flush()

    def finish(self) -> list[SpectrumBatch]:
        """Return the rest at the end of a signal: complete frames, and unfinished averages.

        An unfinished average makes a shorter row; ``cut_frames`` of its batch is the number of
        frames in it. More samples may follow; averages restart with them.
        """
        self._require_open()
        return self._stream.finish()

    def left_out_samples(self) -> list[int]:
        """Count the samples that do not fill a frame; see ``FrameStream.left_out_samples``."""
        return self._stream.left_out_samples()

    def remainder(self) -> list[tuple[int, int]]:
        """Return the samples and frames that no row has yet; see ``FrameStream.remainder``."""
        return self._stream.remainder()

    def close(self) -> None:
        """Release the device; results remain valid, frames that wait for a batch are lost."""
        self._is_closed = True
        self._opened.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConfigError("Stft: is closed; make a new one")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def _with_taper(window: WindowLike, frames: dict[str, Any]) -> dict[str, Any]:
    """Add a window, its name and its length to the settings of a resolution."""
    taper = taper_for(window, frames["win_length"])
    return frames | {"window": taper.name, "win_length": len(taper.samples), "taper": taper}


def _broadcast(**settings: Any) -> Iterator[dict[str, Any]]:
    """Yield the settings of each resolution; single numbers apply to all."""
    several = {
        name: list(value)
        for name, value in settings.items()
        if not isinstance(value, int) and np.ndim(value)
    }
    if len({len(value) for value in several.values()} - {0}) > 1 or not all(several.values()):
        lengths = ", ".join(f"{name} has {len(value)}" for name, value in several.items())
        raise ConfigError(f"several resolutions: {lengths}; must be equally many, at least 1")
    single = {name: value for name, value in settings.items() if name not in several}
    rows = zip_longest(*several.values()) if several else [()]
    for row in rows:
        yield single | dict(zip(several, row, strict=True))
