"""The spectrogram of a whole signal in one call."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.analysis.calibrated_rows import CalibratedRows
from spectrod.analysis.engine import Engine, fallback_for
from spectrod.analysis.engine_pool import ENGINE_POOL
from spectrod.analysis.finite_rows import are_finite, shows_finite
from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.iq import as_channels
from spectrod.analysis.parallel import copy
from spectrod.analysis.parameters import require_averages, require_known, showing
from spectrod.analysis.percentile_plan import make_plan
from spectrod.analysis.sample_buffer import SampleBuffer
from spectrod.analysis.samples import (
    along_time,
    as_array,
    as_rows,
    as_samples,
    is_finite,
    memory_of,
    native_format,
    of_full_scale,
    require_finite,
)
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.blocks import Block
from spectrod.dsp.calibration import CalibrationLike, calibration_of
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumParameters, SpectrumSpec, taper_for
from spectrod.dsp.spectrum_batch import without_broadband
from spectrod.dsp.spectrum_views import TIME, check_signal, data_array, draw_rows
from spectrod.dsp.units import Float64Array
from spectrod.dsp.value_names import long_name
from spectrod.dsp.windows import WindowLike
from spectrod.lib.array_values import ArrayValues
from spectrod.lib.errors import DeviceError, InputError
from spectrod.lib.notebook import Drawn

_PIECE_BYTES = 1 << 26
"""Maximum size of the results of one launch [bytes]: drivers limit buffers and scratch memory."""

_CONVERTED_SAMPLES = 1 << 18
"""Samples of a channel that are converted, and stay in the cache, before they are copied."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spectrogram(ArrayValues, Drawn):
    """Spectra over time.

    Attributes
    ----------
    f : (values,) float64
        Frequency of each bin, or centre of each band [Hz].
    t : (rows,) float64
        Centre of each frame, or of all frames of an average [s]; the last average may have fewer
        frames.
    values : (values, rows) or (signals, values, rows) float32 or complex64
        Two axes for one-dimensional input, else three, in ``unit``.
    unit : str
        ``FS^2/Hz``, ``FS^2`` or ``dBFS``; ``FS/Hz^0.5`` or ``FS`` for complex spectra; with a
        calibration ``Pa^2/Hz``, ``Pa^2``, ``dB SPL`` and so on.
    spec : SpectrumSpec
        Description of the values.
    engine : str
        Engine that computed them.
    broadband : (rows,) or (signals, rows) float32, optional
        With bands, the power of all bins of the same rows, including 0 Hz and Nyquist, in the
        product's weighting: the mean square of the sound, in ``spec.scale.broadband_unit``.
    """

    f: Float64Array
    t: Float64Array
    values: NDArray[Any]
    unit: str
    spec: SpectrumSpec
    engine: str
    broadband: NDArray[Any] | None = None

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield f, t and values, in the order of SciPy: ``f, t, values = spectrogram(x, fs)``."""
        yield from (self.f, self.t, self.values)

    def __repr__(self) -> str:
        """Return one line: sizes, ranges and unit."""
        spec = self.spec
        sizes = f"{len(self.f)} values of {len(self.t)} rows"
        signals = f"{self.values.shape[0]} signals, " if self.values.ndim == 3 else ""
        times = f"{self.t[0]:.6g} to {self.t[-1]:.6g} s"
        return (
            f"<Spectrogram: {signals}{sizes}, {self.f[0]:.6g} to {self.f[-1]:.6g} Hz, {times}, "
            f"{long_name(spec)} in {self.unit}, {spec.window} window of {spec.win_length}, "
            f"hop {spec.hop}>"
        )

    def plot(self, ax: Any = None, signal: int = 0) -> Any:
        """Draw the levels of one signal, down to 100 dB below the highest, with matplotlib.

        One row alone is drawn over frequency. The axis of bands is logarithmic, unless one lies at
        0 Hz.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the axes of a new figure, ``.figure`` of the result. A
            notebook shows it where a cell ends with it; pyplot does not.
        signal : int
            Which one, if there are several; 0 is the first.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Raises
        ------
        ConfigError
            If there is no such signal.
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        one = self.values.ndim == 2
        check_signal(signal, 1 if one else self.values.shape[0])
        return draw_rows(ax, self.spec, self.t, self.values if one else self.values[signal])

    def to_xarray(self) -> Any:
        """Return the values, which are not copied, as an ``xarray.DataArray``.

        Returns
        -------
        array : xarray.DataArray
            Dimensions (channel,) frequency, time, with coordinates in Hz and s; named as in files,
            with unit and analysis as attributes.

        Raises
        ------
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        dims = ("channel", "frequency", "time")[-self.values.ndim :]
        return data_array(self.spec, self.values, dims, {"time": ("time", self.t, TIME)})


@showing(SpectrumParameters)
def spectrogram(  # noqa: PLR0913 - the analysis has these settings
    x: ArrayLike,
    fs: float,
    *,
    window: WindowLike = "hann",
    win_length: int | None = None,
    hop: int | None = None,
    nfft: int = 0,
    axis: int = -1,
    full_scale: float | None = None,
    engine: Literal["auto", "opencl", "numpy", "float64"] = "auto",
    device: str = "",
    calibration: CalibrationLike = None,
    **parameters: Unpack[SpectrumParameters],
) -> Spectrogram:
    """Compute the spectrogram of a signal.

    Frames lie wholly within the signal: the first starts at its first sample, and samples after the
    last whole frame are ignored. If fewer frames than a whole average remain at the end, the last
    row is their average. The device stays open for the next call; threads use it in turn.

    Parameters
    ----------
    x : (n,), (channels, n) or (n, channels) array-like
        Floats in [-1, 1] or integer PCM, n >= win_length [FS]; (n, channels) with ``axis=0``.
        Devices that share the host's memory read float32, int16 and int32 in place, in either order
        of axes. Complex numbers are I/Q signals, (n,) or (signals, n), and imply ``iq``; with
        integers or real floats each pair of channels is I and Q, uint8 with its middle at 127.5.
    fs : float
        Sample rate [Hz].
    window : str, tuple or (win_length,) array-like
        Name, see ``spectrod.dsp.windows``; ``("kaiser", beta)``; or samples, of which the sum is
        not 0. Names denote periodic windows, as in ``scipy.signal.get_window``; samples are used
        unchanged.
    win_length : int, optional
        Samples under the window; by default the length of an array, 4096 for names.
    hop : int, optional
        Samples from one frame to the next; by default a quarter of win_length.
    nfft : int
        Transform length; 0 is the least power of two, from 64 on, that holds the window. An odd or
        other length has the bins of SciPy's ``nperseg`` with ``nfft=win_length``.
    axis : int
        Axis of time in x: -1 or 1 of (channels, n), 0 or -2 of (n, channels).
    full_scale : float, optional
        Number in x that represents digital full scale, 1.0: x is divided by it, and nothing is
        subtracted. Without it floats are unchanged, int8, int16 and int32 are divided by 2^7, 2^15
        and 2^31, and uint8 is ``(x - 128) / 2^7``; other integers, such as int64 and lists of int,
        require it.
    engine : {"auto", "opencl", "numpy", "float64"}
        Engine; with "auto", NumPy continues if a device fails. NumPy computes constant-Q
        transforms and reassignment, whatever the engine.
    device : str
        OpenCL device, by part of its name or by number.
    calibration : str, Path or Calibration, optional
        Calibration file, or its contents; results are in its units then.
    **parameters
        Those of ``SpectrumParameters``, see ``SpectrumSpec``: scaling, output, iq, weighting,
        bands, averaging, averaging_frames, averaging_s, rate_hz, center_frequency_hz.

    Returns
    -------
    spectrogram : Spectrogram

    Raises
    ------
    ConfigError, InputError, DeviceError
        If a setting breaks a rule, the signal is unusable, or the device is not available.

    References
    ----------
    .. [1] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002.
    """
    require_known("spectrogram", parameters, SpectrumParameters)
    require_averages(parameters)
    x = along_time(as_array(x), axis)
    parameters["iq"] = iq = parameters.get("iq", False) or x.dtype.kind == "c"
    rows = as_rows(as_channels(of_full_scale(x, full_scale), iq=iq))
    taper = taper_for(window, win_length)
    n = len(taper.samples)
    spec = SpectrumSpec(
        fs,
        len(rows),
        taper.name,
        n,
        max(1, n // 4) if hop is None else hop,
        nfft,
        broadband=bool(parameters.get("bands")),
        taper=taper,
        calibration=calibration_of(calibration, len(rows) // 2 if iq else len(rows)),
        **parameters,
    )
    n_samples = rows.shape[1]
    if n_samples < spec.win_length:
        hint = "; for (n, channels) give axis=0" if n_samples < len(rows) else ""
        raise InputError(
            f"{n_samples} samples: fewer than one window, win_length={spec.win_length}{hint}"
        )
    if is_host_only(spec.bands):  # there are no kernels
        engine, device = "numpy", ""
    with ENGINE_POOL.borrow(engine, device) as computing:
        computed, name = _compute(computing, spec, rows)
    values, broadband = without_broadband(computed, spec)
    by_signal = values.transpose(1, 2, 0)
    levels = None if broadband is None else broadband.T
    return Spectrogram(
        spec.frequencies,
        _centres(spec, n_samples, len(values)),
        by_signal[0] if x.ndim == 1 else by_signal,
        spec.scale.unit,
        spec,
        name,
        levels if levels is None or x.ndim > 1 else levels[0],
    )


def _centres(spec: SpectrumSpec, n_samples: int, n_rows: int) -> Float64Array:
    """Return the centre of the frames of each row, shape (n_rows,) [s]."""
    centres = spec.grid.begins(n_rows).astype(np.float64)
    n_last = spec.n_frames(n_samples) - (n_rows - 1) * spec.averaging_frames
    centres[:-1] += spec.grid.span / 2.0
    centres[-1:] += spec.grid.row_span(n_last) / 2.0
    centres /= spec.fs
    return centres


def _compute(engine: Engine, spec: SpectrumSpec, rows: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Return all rows, (rows, signals, n_computed), and the name of the last engine."""
    dtype = np.complex64 if spec.output == "complex" else np.float32
    n_rows = -(-spec.n_frames(rows.shape[1]) // spec.averaging_frames)
    shape = n_rows, spec.n_signals, spec.n_computed
    try:
        values = engine.result_memory(shape, np.dtype(dtype))
        buffer = _buffer_over(engine, spec, rows)
        if buffer is None:
            return values, _streamed(engine, spec, rows, values)
        _in_place(engine, spec, buffer, values, spec.n_frames(rows.shape[1]))
        if _n_tested_by_rows(spec, buffer.layout, rows.shape[1]) and not are_finite(values):
            require_finite(rows)
        values = CalibratedRows(spec).apply(values)
    except DeviceError as error:
        other = fallback_for(engine, error)
        ENGINE_POOL.discard(engine)
        values = other.result_memory(shape, np.dtype(dtype))
        return values, _streamed(other, spec, rows, values)
    return values, engine.name


def _buffer_over(engine: Engine, spec: SpectrumSpec, rows: NDArray[Any]) -> SampleBuffer | None:
    """Return a buffer over the samples, if a kernel can read them; test those in no frame."""
    found = memory_of(rows)
    if found is None:
        return None
    memory, layout = found
    buffer = engine.sample_buffer_over(layout, memory)
    if layout.sample_format == "float32":
        n_tested = 0 if buffer is None else _n_tested_by_rows(spec, layout, rows.shape[1])
        if not is_finite(rows[:, n_tested:]):
            require_finite(rows)
    return buffer


def _n_tested_by_rows(spec: SpectrumSpec, layout: SampleLayout, n_samples: int) -> int:
    """Count the samples, from the first on, that the rows show to be finite or not."""
    if layout.sample_format != "float32" or not shows_finite(spec):
        return 0
    return spec.grid.row_span(spec.n_frames(n_samples))


def _in_place(
    engine: Engine, spec: SpectrumSpec, buffer: SampleBuffer, values: NDArray[Any], n_frames: int
) -> None:
    # A multiple of 16 rows keeps each part aligned as a device requires.
    step_rows = max(1, _PIECE_BYTES // max(1, values[:1].nbytes) // 16) * 16
    step = min(step_rows, len(values)) * spec.averaging_frames
    if step == 0:
        return
    plan = make_plan(engine, spec, buffer, step)
    grid, n_whole = spec.grid, n_frames // spec.averaging_frames
    is_endless = spec.averaging == "exponential"
    for first in range(0, n_whole, step_rows):
        out = values[first : min(first + step_rows, n_whole)]
        plan.submit(
            FrameLaunch(
                grid.begin(first),
                len(out) * spec.averaging_frames,
                spec.averaging_frames,
                primed=is_endless and first > 0,
                phase=grid.phase_of(first),
            ),
            out,
        ).collect()
    if n_last := n_frames - n_whole * spec.averaging_frames:
        plan.submit(
            FrameLaunch(
                grid.begin(n_whole),
                n_last,
                n_last,
                primed=is_endless and n_whole > 0,
                phase=grid.phase_of(n_whole),
            ),
            values[n_whole:],
        ).collect()


def _streamed(engine: Engine, spec: SpectrumSpec, rows: NDArray[Any], values: NDArray[Any]) -> str:
    format_ = native_format(rows)
    interleaved = not rows.flags.c_contiguous
    stream = FrameStream(
        spec,
        engine,
        sample_format=format_,
        interleaved=interleaved,
        max_latency_s=np.inf,
        out=values,
    )
    done = 0
    n_pushed = rows.shape[1] if rows.dtype == stream.layout.dtype else _CONVERTED_SAMPLES
    for block in _blocks(rows, format_, n_pushed):
        last = block.sample_index + block.n_samples == rows.shape[1]
        for batch in [*stream.push(block), *(stream.finish() if last else [])]:
            out, broadband = without_broadband(values[done : done + batch.n_frames], spec)
            done += batch.n_frames
            if np.may_share_memory(out, batch.values):
                continue
            copy(out, batch.values, axis=0)
            if broadband is not None and batch.broadband is not None:
                broadband[...] = batch.broadband
    return engine.name


def _blocks(rows: NDArray[Any], sample_format: Any, n_samples: int) -> Iterator[Block]:
    for first in range(0, rows.shape[1], n_samples):
        part = rows[:, first : first + n_samples]
        yield Block(as_samples(part, sample_format=sample_format), first, 0, 0)
