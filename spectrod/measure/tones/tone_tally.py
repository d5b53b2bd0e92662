"""Tones of intervals: figures of the mean spectrum, and tracks from interval to interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log10

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array, Float64Array
from spectrod.dsp.welch import effective_averages
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.measurement import check_frame_size
from spectrod.measure.quantity_names import ChannelQuantity
from spectrod.measure.rows import require_bins
from spectrod.measure.tones.channel_power import occupied_bandwidth
from spectrod.measure.tones.distortion import HARMONICS_DEFAULT, HARMONICS_MAX, measure_distortion
from spectrod.measure.tones.intermodulation import IntermodulationKind, measure_intermodulation
from spectrod.measure.tones.kernel import window_kernel
from spectrod.measure.tones.peaks import THRESHOLD_DB, Peaks, find_peaks
from spectrod.measure.tones.tone_quantities import (
    DISTORTIONS,
    INTERMODULATIONS,
    TRACK_COLUMNS,
)
from spectrod.measure.tones.tone_tracker import NO_TRACK, PeakTracker


@dataclass(frozen=True, slots=True)
class ToneSettings:
    """How tones are found and tracked.

    Attributes
    ----------
    band_hz : tuple of float or None
        Lowest and highest frequency of tracks, distortion and noise [Hz]; None: all.
    max_tracks : int
        Maximum number of tracks of a signal at a time, 1 to ``TRACKS_MAX``.
    threshold_db : float
        See ``find_peaks`` [dB].
    max_step_hz : float
        Maximum change of a track's frequency from an interval to the next [Hz]; 0: the half width
        of the window's main lobe.
    max_missed : int
        Intervals in succession that a track may be without a peak.
    harmonics : int
        Highest harmonic of the distortion.
    """

    band_hz: tuple[float, float] | None = None
    max_tracks: int = 32
    threshold_db: float = THRESHOLD_DB
    max_step_hz: float = 0.0
    max_missed: int = 2
    harmonics: int = HARMONICS_DEFAULT


class ToneTally:
    """Averages the frames of an interval, and measures the tones in their mean.

    Parameters
    ----------
    quantities : sequence of ChannelQuantity
        Which values.
    spec : SpectrumSpec
        Definition of the frames: unweighted densities of bins, without averaging.
    interval_s : float
        Length of an interval, for the ages of tracks [s].
    settings : ToneSettings
        How tones are found.
    next_identity : list of int, optional
        Identity of the next track of each signal; updated in place, so that another tally can
        continue the numbers.

    Raises
    ------
    ConfigError
        If a setting breaks a rule, distortion is asked of I/Q, or a frame of all signals has more
        values than ``FRAME_VALUES_MAX``.
    """

    def __init__(
        self,
        quantities: Sequence[ChannelQuantity],
        spec: SpectrumSpec,
        interval_s: float,
        settings: ToneSettings,
        next_identity: list[int] | None = None,
    ) -> None:
        self.quantities = tuple(quantities)
        self._spec, self._interval_s, self._settings = spec, interval_s, settings
        self._check()
        self._next = [0] * spec.n_signals if next_identity is None else next_identity
        step_hz = settings.max_step_hz or (
            window_kernel(spec.taper, spec.nfft).lobe_bins * spec.delta_f
        )
        self._trackers = [
            PeakTracker(step_hz, settings.max_missed, settings.max_tracks, first_identity=first)
            for first in self._next
        ]
        self._sum = np.zeros((spec.n_signals, spec.n_bins))
        self._n_frames = 0
        self.tables: tuple[Float64Array, ...] = ()

    def _check(self) -> None:
        spec, settings = self._spec, self._settings
        of_signal = _of_signal(spec, 0)
        require_bins(of_signal, "tones", unweighted=True)
        of_real = DISTORTIONS | INTERMODULATIONS
        wanted = [one.name for one in self.quantities if one.name in of_real]
        if spec.iq and wanted:
            raise ConfigError(f"{wanted[0]}: is of real signals, not of I/Q")
        check_frame_size(spec.n_signals, spec.n_bins)
        if not 2 <= settings.harmonics <= HARMONICS_MAX:
            raise ConfigError(f"must be 2 to {HARMONICS_MAX}", harmonics=settings.harmonics)
        empty = np.empty((0, spec.n_bins))
        find_peaks(empty, of_signal, threshold_db=settings.threshold_db)  # raises errors now

    def clear(self) -> None:
        """Begin the next interval."""
        self._sum[:] = 0.0
        self._n_frames = 0

    def skip(self, n_intervals: int) -> None:
        """Pass over intervals without any sample, in which no track has a peak."""
        for tracker in self._trackers:
            tracker.skip(n_intervals)

    def interrupt(self) -> None:
        """Do nothing: the mean does not depend on the order of frames."""

    def add(self, rows: Float32Array) -> None:
        """Add frames, (frames, signals, bins)."""
        self._sum += rows.sum(axis=0, dtype=np.float64)
        self._n_frames += len(rows)

    def values(self) -> Float64Array:
        """Return the values of the interval, (quantities, signals); set ``tables`` to the tracks.

        A value is NaN if it cannot be measured: without a frame, without a tone 13 dB above the
        noise, or with one that is too close to 0 Hz.
        """
        values = np.full((len(self.quantities), self._spec.n_signals), np.nan)
        tracks = []
        for signal in range(self._spec.n_signals):
            row, spec = self._mean(signal)
            table = self._track(signal, row, spec)
            tracks.append(table)
            if self._n_frames:
                values[:, signal] = self._measure(row, spec, len(table))
        self.tables = tuple(tracks)
        return values

    def _mean(self, signal: int) -> tuple[Float64Array, SpectrumSpec]:
        spec = _of_signal(self._spec, signal)
        if self._n_frames > 1:
            spec = replace(spec, averaging="mean", averaging_frames=self._n_frames)
        return self._sum[signal] / max(1, self._n_frames), spec

    def _measure(self, row: Float64Array, spec: SpectrumSpec, n_tracks: int) -> list[float]:
        found = {"tracks": float(n_tracks)}
        names = [one.name for one in self.quantities]
        if "OBW" in names:
            found["OBW"] = float(occupied_bandwidth(row, spec).width_hz[0, 0])
        if any(name in DISTORTIONS for name in names):
            found |= self._distortion(row, spec)
        for name in filter(INTERMODULATIONS.__contains__, names):
            found[name] = _intermodulation_db(row, spec, INTERMODULATIONS[name])
        return [found.get(name, np.nan) for name in names]

    def _distortion(self, row: Float64Array, spec: SpectrumSpec) -> dict[str, float]:
        settings = self._settings
        try:
            distortion = measure_distortion(
                row, spec, harmonics=settings.harmonics, band_hz=settings.band_hz
            )
        except InputError:  # there is no such tone in this interval
            return {}
        return {name: getattr(distortion, field) for name, field in DISTORTIONS.items()}

    def _track(self, signal: int, row: Float64Array, spec: SpectrumSpec) -> Float64Array:
        """Return the tracks with a peak in this interval, (n, columns)."""
        tracker = self._trackers[signal]
        peaks = self._peaks(row, spec)
        identity, _ = tracker.push(peaks.frequency_hz, peaks.level_db)
        self._next[signal] = tracker.next_identity
        ages = {
            track.identity: (track.last_frame - track.first_frame) * self._interval_s
            for track in tracker.tracks
        }
        kept = identity != NO_TRACK
        # A mean of K independent frames has this share of one frame's deviations.
        share = 1.0
        if self._n_frames > 1:
            share = effective_averages(spec.taper, spec.hop, self._n_frames) ** -0.5
        table = np.column_stack(
            [
                identity,
                peaks.frequency_hz,
                share * peaks.frequency_sd_hz,
                peaks.level_db,
                share * peaks.level_sd_db,
                [ages.get(one, 0.0) for one in identity.tolist()],
            ]
        )
        return np.asarray(table[kept], np.float64).reshape(-1, len(TRACK_COLUMNS))

    def _peaks(self, row: Float64Array, spec: SpectrumSpec) -> Peaks:
        settings = self._settings
        rows = row[np.newaxis] if self._n_frames else row[np.newaxis][:0]
        peaks = find_peaks(
            rows, spec, max_peaks=settings.max_tracks, threshold_db=settings.threshold_db
        )
        if settings.band_hz is None:
            return peaks
        low_hz, high_hz = settings.band_hz
        return peaks.where((peaks.frequency_hz >= low_hz) & (peaks.frequency_hz <= high_hz))


def _intermodulation_db(row: Float64Array, spec: SpectrumSpec, kind: IntermodulationKind) -> float:
    """Return the intermodulation of the two strongest tones; NaN without such a pair [dB]."""
    try:
        ratio = measure_intermodulation(row, spec, kind).rss
    except InputError:
        return np.nan
    return 20.0 * log10(ratio) if ratio > 0.0 else -np.inf


def _of_signal(spec: SpectrumSpec, signal: int) -> SpectrumSpec:
    """Return the definition of the rows of one signal."""
    calibration = spec.calibration[signal : signal + 1]
    return replace(spec, channels=2 if spec.iq else 1, calibration=calibration)
