"""SigMF recordings: samples of receivers, with times, gaps and centre frequency."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spectrod.config.config import Pace
from spectrod.dsp.units import Float32Array
from spectrod.lib.durations import format_frequency
from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.base import Discontinuity, PulledSource
from spectrod.source.files.codings import decode
from spectrod.source.files.recorded_at import find_start
from spectrod.source.files.sigmf_meta import SampleRun, read_sigmf
from spectrod.source.naming import topic_name


class SigmfSource(PulledSource):
    """A SigMF recording, played once or in a loop; samples missing between captures are a gap.

    It starts at the time of its first capture that has one; otherwise its name gives the time.

    Parameters
    ----------
    path : str
        ``NAME.sigmf-meta``, or ``NAME.sigmf-data`` beside it.
    samplerate : float
        Sample rate of a recording that states none; 0 if unknown [Hz].
    pace : {"realtime", "full"}
        Pace of reading; gaps are not waited for.
    loop : bool
        Repeat the recording endlessly; times are then those of playing.
    time_format : str
        Format of the start time in its name; empty: see ``recorded_at``.
    time_zone : str
        Time zone of start times that name none; empty: UTC. See ``recorded_at``.

    Raises
    ------
    InputError
        See ``read_sigmf``.
    """

    def __init__(
        self,
        path: str,
        samplerate: float,
        pace: Pace,
        *,
        loop: bool = False,
        time_format: str = "",
        time_zone: str = "",
    ) -> None:
        super().__init__(pace)
        self._recording = recording = read_sigmf(path, samplerate)
        self._loop = loop
        self.name = topic_name(Path(path).stem)
        self.fs, self.channels = recording.fs, recording.channels
        self.is_iq = recording.is_iq
        self.center_frequency_hz = recording.center_frequency_hz
        rate = format_frequency(recording.fs)
        self.description = f"{printable(path)} (SigMF, {printable(recording.datatype)}, {rate})"
        if not loop:
            self.n_samples = recording.n_samples
            self.start_utc_ns = recording.start_utc_ns
            if self.start_utc_ns is None:
                path = recording.data_path
                found = find_start(path, time_format=time_format, time_zone=time_zone)
                self.take_start(found)

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``."""
        if not self._loop:
            self._first = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array | Discontinuity]:
        """Yield the samples of each segment in turn, with a ``Discontinuity`` for each gap."""
        with Path(self._recording.data_path).open("rb", buffering=0) as file:
            while True:
                end = self._first
                for segment in self._recording.segments:
                    if segment.end <= end:
                        continue
                    if segment.begin > end:
                        yield Discontinuity(segment.begin - end)
                        end = segment.begin
                    yield from self._samples(file, segment, end - segment.begin, n_max)
                    end = segment.end
                if not self._loop:
                    return

    def _samples(
        self, file: BinaryIO, segment: SampleRun, first: int, n_max: int
    ) -> Iterator[Float32Array]:
        recording = self._recording
        file.seek(segment.place + first * recording.frame_bytes)
        while first < segment.n_samples:
            n = min(n_max, segment.n_samples - first)
            data = _read(file, recording.data_path, n * recording.frame_bytes)
            yield decode(data, recording.coding).reshape(n, recording.channels).T
            first += n


def _read(file: BinaryIO, path: str, n_bytes: int) -> bytes:
    """Read exactly n_bytes."""
    data = b""
    while len(data) < n_bytes:
        try:
            part = file.read(n_bytes - len(data))
        except OSError as error:
            raise InputError(f"{printable(path)}: {error.strerror}") from error
        if not part:
            raise InputError(f"{printable(path)}: truncated while it was read")
        data += part
    return data
