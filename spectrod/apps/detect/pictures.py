"""Spectrograms of events, with a frame around the time and the frequencies of each."""

import math
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import spectrod
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.apps.detect.event_folder import EventFolder
from spectrod.apps.detect.excerpt import Excerpt
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.spectrum_rules import REASSIGNED_HOPS_MAX
from spectrod.formats.picture.framing import PRODUCT, hop_for
from spectrod.formats.picture.marks import Mark
from spectrod.formats.picture.painter import host_transpose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.sink import PictureSink, TimeScale
from spectrod.measure.triggers.detection import Detection


class EventPictures:
    """Draws the events of a source.

    Parameters
    ----------
    folder : EventFolder
        Where the files go.
    spec : SpectrumSpec
        The analysis in which events are found. Pictures have its window and a hop that shows each
        column's own frame, without averages.
    channels : sequence of str
        Name of each signal.
    time_zone : str
        Of the time axis; empty: UTC.

    Raises
    ------
    ConfigError
        If a picture cannot show these spectra.
    """

    def __init__(
        self, folder: EventFolder, spec: SpectrumSpec, channels: Sequence[str], time_zone: str = ""
    ) -> None:
        self._folder = folder
        self._spec = replace(
            spec,
            averaging="none",
            averaging_frames=1,
            rate_hz=0.0,
            product=PRODUCT,
        )
        self._options = PictureOptions(
            f_scale="log" if is_constant_q(spec.bands) else "linear",
            signals=tuple(channels) if len(channels) > 1 else (),
            time_zone=time_zone,
        )
        self._options.frequency_axis(self._spec)
        self._options.height_for(spec.n_signals)

    def write(self, one: Detection, name: str, excerpt: Excerpt) -> Path:
        """Draw an event into a PNG file.

        Each column is of frames around its own time: sound before and after the excerpt is read for
        them. Where there is none, the picture begins or ends half a window later or earlier.

        Parameters
        ----------
        one : Detection
            The event.
        name : str
            Name of the file, without the suffix.
        excerpt : Excerpt
            The samples.

        Raises
        ------
        InputError
            If the source cannot be read any more.
        StorageError
            If the file cannot be written.
        """
        event = one.event
        options = replace(
            self._options,
            title=f"{Path(one.file).name}: {event.name}, {event.level:.1f} {event.unit}",
            time_axis="utc" if one.has_utc else "elapsed",
        )
        spec = self._framed(excerpt.stop - excerpt.first)
        path = self._folder.made() / f"{name}.png"
        sink = PictureSink(path, options, host_transpose, spec, f"spectrod {spectrod.__version__}")
        signal, end = one.channel - 1, one.first + one.n_samples
        sink.marks = [Mark(signal, one.first, end, event.f_min_hz, event.f_max_hz)]
        sink.origin_sample = one.first - round(one.begin_s * spec.fs)
        rows: list[int] = []
        with closing(_batches(excerpt, spec)) as batches:
            for batch in batches:
                sink.write(batch)
                if batch.n_frames:
                    rows = [*rows[:1], *map(int, batch.sample_index[[0, -1]])]
        if rows:
            begin, stop = _computed(excerpt, spec, rows[0], rows[-1])
            sink.scale = TimeScale((stop - begin) / options.width, begin)
        sink.finish()
        return path

    def _framed(self, n_samples: int) -> SpectrumSpec:
        """Return the analysis with a frame for each column of the picture, if these are few."""
        win_length = self._spec.win_length
        hop = hop_for(win_length, n_samples, self._options.width)
        return replace(self._spec, hop=max(hop, math.ceil(win_length / REASSIGNED_HOPS_MAX)))


def _computed(excerpt: Excerpt, spec: SpectrumSpec, first: int, last: int) -> tuple[int, int]:
    """Return the part of an excerpt that rows stand for, from the first sample of two of them.

    A row stands for a hop around the middle of its window.
    """
    before = (spec.win_length - spec.hop) // 2
    return max(excerpt.first, first + before), min(excerpt.stop, last + before + spec.hop)


def _batches(excerpt: Excerpt, spec: SpectrumSpec) -> Generator[SpectrumBatch]:
    layout = excerpt.source.layout
    stream = FrameStream(
        spec,
        NumpyEngine(),
        "gap",
        sample_format=layout.sample_format,
        interleaved=layout.interleaved,
    )
    with closing(excerpt.blocks(around=spec.win_length)) as blocks:
        for block in blocks:
            yield from stream.push(block)
    yield from stream.finish()
