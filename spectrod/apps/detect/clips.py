"""The sound of events in files of their own."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from spectrod.analysis.samples import to_float32
from spectrod.apps.detect.detection import Detection
from spectrod.dsp.blocks import RangeTrimmer, SampleFormat
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.lib.errors import ConfigError, storage_errors
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source

_SUBTYPES: dict[SampleFormat, str] = {
    "int16": "s16", "int24": "s24", "int32": "s32", "float32": "f32"
}  # fmt: skip
_READ_SAMPLES = 1 << 16


class Clips:
    """Writes the sound of events, with a margin, to WAV files in a folder.

    Samples have the format of the source, or float32 where it is decoded; silence stands for
    samples that are missing. Samples of 32-bit integers are exact to 24 bits.

    Parameters
    ----------
    folder : Path
        Where the files go; it is made if needed.
    margin_s : float
        Sound before and after an event [s].
    """

    def __init__(self, folder: Path, margin_s: float) -> None:
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._margin_s = folder, margin_s
        self._names: set[str] = set()

    def write(self, one: Detection, reopen: Callable[[], Source]) -> Path:
        """Write the sound of an event.

        Parameters
        ----------
        one : Detection
            The event.
        reopen : callable
            Returns the source, which has not been started.

        Raises
        ------
        InputError
            If the source cannot be read any more.
        StorageError
            If the file cannot be written.
        """
        source = reopen()
        margin = round(self._margin_s * source.fs)
        first = max(0, one.first - margin)
        trimmer = RangeTrimmer(first, one.first + one.n_samples + margin - first)
        if isinstance(source, SelectableSource):
            source.start_at(first)
        path = self._folder / self._name(one)
        reader = source.open_reader()
        subtype = _SUBTYPES[reader.layout.sample_format]
        options = SoundOptions(source=source.name, is_copy=True, has_utc=one.has_utc)
        writer = SoundWriter(path, source.fs, source.channels, subtype, options)
        try:
            source.start(reader)
            while not reader.exhausted and trimmer.left != 0:
                block = reader.read(_READ_SAMPLES)
                kept = None if block is None else trimmer.trim(block)
                if kept is not None:
                    samples = to_float32(kept.samples, reader.layout.sample_format)
                    writer.write(replace(kept, samples=samples))
            if source.failure is not None:
                raise source.failure
            writer.finish()
        finally:
            writer.abort()
            source.stop()
            reader.close()
            reader.release()
        return writer.path

    def _name(self, one: Detection) -> str:
        """Return a name with the time of the event, which no other event of this run has."""
        stem = Path(one.file).stem
        when = f"{one.begin_s:.3f}s"
        if one.has_utc:
            seconds, ns = divmod(one.event.begin_utc_ns, NS_PER_S)
            clock = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
            when = f"{clock}.{ns // 1_000_000:03d}Z"
        name, n = f"{stem}_{when}", 1
        while name in self._names:
            n += 1
            name = f"{stem}_{when}-{n}"
        self._names.add(name)
        return f"{name}.wav"


def check_margin(margin_s: float) -> float:
    """Return the margin if it is at most an hour; else raise ConfigError."""
    if margin_s > 3600.0:
        raise ConfigError(f"--margin {margin_s:g}: must be at most 3600 s")
    return margin_s
