"""Tones over time: peaks of successive frames joined to tracks with identities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.tones.peaks import PEAKS_MAX

TRACKS_MAX = 1024
"""Maximum number of tracks at a time."""

NO_TRACK = -1
"""Identity of a peak that starts no track, because ``max_tracks`` exist."""


@dataclass(slots=True)
class Track:
    """A tone over time.

    Attributes
    ----------
    identity : int
        Number of the track, from 0 in order of birth; never used twice.
    frequency_hz, level_db : float
        Frequency [Hz] and level of its last peak, in the unit of the peaks.
    first_frame, last_frame : int
        Frames of its first and its last peak.
    n_frames : int
        Number of frames with a peak of it.
    """

    identity: int
    frequency_hz: float
    level_db: float
    first_frame: int
    last_frame: int
    n_frames: int = 1


class PeakTracker:
    """Joins the peaks of frames to tracks.

    In each frame, pairs of a track and a peak whose frequencies differ by at most ``max_step_hz``
    are joined nearest first, one to one; of pairs with the same distance, the older track and the
    lower peak come first. A peak that is left starts a track, the strongest first. A track ends
    when it has no peak in more than ``max_missed`` successive frames.

    Parameters
    ----------
    max_step_hz : float
        Maximum change of frequency from the last peak to the next, above 0 [Hz].
    max_missed : int
        Frames in succession that a track may be without a peak, at least 0.
    max_tracks : int
        Maximum number of tracks at a time, 1 to ``TRACKS_MAX``; further peaks start none.
    first_identity : int
        Identity of the first track.

    Attributes
    ----------
    tracks : list of Track
        Present tracks, in order of birth.
    next_identity : int
        Identity of the next track.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.

    References
    ----------
    .. [1] R. J. McAulay and T. F. Quatieri, "Speech analysis/synthesis based on a sinusoidal
       representation", IEEE Trans. ASSP 34(4), 1986: frame-to-frame peak matching.
    """

    def __init__(
        self,
        max_step_hz: float,
        max_missed: int = 2,
        max_tracks: int = 256,
        *,
        first_identity: int = 0,
    ) -> None:
        if not 0.0 < max_step_hz < np.inf:
            raise ConfigError("must be a positive number of Hz", max_step_hz=max_step_hz)
        if max_missed < 0:
            raise ConfigError("must be at least 0 frames", max_missed=max_missed)
        if not 1 <= max_tracks <= TRACKS_MAX:
            raise ConfigError(f"must be 1 to {TRACKS_MAX}", max_tracks=max_tracks)
        self._max_step_hz, self._max_missed, self._max_tracks = max_step_hz, max_missed, max_tracks
        self.next_identity, self._frame = first_identity, -1
        self.tracks: list[Track] = []

    @naming_arrays
    def push(
        self, frequency_hz: ArrayLike, level_db: ArrayLike
    ) -> tuple[NDArray[np.int64], list[Track]]:
        """Add the peaks of the next frame.

        Parameters
        ----------
        frequency_hz, level_db : (n,) array-like
            Frequencies [Hz] and levels of the peaks, finite; n is 0 to ``PEAKS_MAX``.

        Returns
        -------
        identity : (n,) int64
            Identity of each peak's track; ``NO_TRACK`` if there are too many.
        ended : list of Track
            Tracks that end with this frame, in order of birth.

        Raises
        ------
        InputError
            If the arrays differ in shape, are too long, or hold a value that is not finite.
        """
        frequency, level = np.asarray(frequency_hz, float), np.asarray(level_db, float)
        if frequency.ndim != 1 or frequency.shape != level.shape:
            raise InputError(
                f"peaks of shapes {frequency.shape} and {level.shape}: must both be (n,)"
            )
        if len(frequency) > PEAKS_MAX:
            raise InputError(f"{len(frequency)} peaks: must be at most {PEAKS_MAX}")
        if not (np.isfinite(frequency).all() and np.isfinite(level).all()):
            raise InputError("peaks: hold values that are not finite")
        self._frame += 1
        identity = np.full(len(frequency), NO_TRACK, np.int64)
        for n_track, n_peak in self._pairs(frequency):
            track = self.tracks[n_track]
            track.frequency_hz, track.level_db = float(frequency[n_peak]), float(level[n_peak])
            track.last_frame = self._frame
            track.n_frames += 1
            identity[n_peak] = track.identity
        ended = self._end(self._max_missed)
        for n_peak in np.argsort(-level, kind="stable").tolist():
            if identity[n_peak] == NO_TRACK and len(self.tracks) < self._max_tracks:
                identity[n_peak] = self._start(float(frequency[n_peak]), float(level[n_peak]))
        return identity, ended

    def skip(self, n_frames: int) -> list[Track]:
        """Pass over frames without a peak, at least 0; return the tracks that end, as ``push``."""
        self._frame += n_frames
        return self._end(self._max_missed)

    def finish(self) -> list[Track]:
        """End all tracks, and return them; a following frame starts new ones."""
        return self._end(-1)

    def _pairs(self, frequency: Float64Array) -> list[tuple[int, int]]:
        """Return indices of tracks and peaks to join, nearest first and one to one."""
        expected = np.array([track.frequency_hz for track in self.tracks])
        distance = np.abs(expected[:, np.newaxis] - frequency)
        rows, columns = np.nonzero(distance <= self._max_step_hz)
        order = np.lexsort((columns, rows, distance[rows, columns]))
        joined: list[tuple[int, int]] = []
        tracks, peaks = set(), set()
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            if row not in tracks and column not in peaks:
                tracks.add(row)
                peaks.add(column)
                joined.append((row, column))
        return joined

    def _start(self, frequency_hz: float, level_db: float) -> int:
        track = Track(self.next_identity, frequency_hz, level_db, self._frame, self._frame)
        self.next_identity += 1
        self.tracks.append(track)
        return track.identity

    def _end(self, max_missed: int) -> list[Track]:
        oldest = self._frame - max_missed
        ended = [track for track in self.tracks if track.last_frame < oldest]
        self.tracks = [track for track in self.tracks if track.last_frame >= oldest]
        return ended
