"""The sound of events in files of their own."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from spectrod.analysis.samples import to_float32
from spectrod.apps.detect.event_folder import EventFolder
from spectrod.apps.detect.excerpt import Excerpt
from spectrod.dsp.blocks import SampleFormat
from spectrod.formats.sound import SoundOptions, SoundWriter

_SUBTYPES: dict[SampleFormat, str] = {
    "int16": "s16", "int24": "s24", "int32": "s32", "float32": "f32"
}  # fmt: skip


def write_clip(folder: EventFolder, name: str, excerpt: Excerpt, *, has_utc: bool) -> Path:
    """Write the sound of an event to a WAV file.

    Samples have the format of the source, or float32 where it is decoded; silence stands for
    samples that are missing. Samples of 32-bit integers are exact to 24 bits.

    Parameters
    ----------
    folder : EventFolder
        Where the file goes.
    name : str
        Its name, without the suffix.
    excerpt : Excerpt
        The samples.
    has_utc : bool
        Whether their times are UTC.

    Raises
    ------
    InputError
        If the source cannot be read any more.
    StorageError
        If the file cannot be written.
    """
    source = excerpt.source
    sample_format = source.layout.sample_format
    writer = SoundWriter(
        folder.made() / f"{name}.wav",
        source.fs,
        source.channels,
        _SUBTYPES[sample_format],
        SoundOptions(source=source.name, is_copy=True, has_utc=has_utc),
    )
    try:
        with closing(excerpt.blocks()) as blocks:
            for block in blocks:
                writer.write(replace(block, samples=to_float32(block.samples, sample_format)))
        writer.finish()
    finally:
        writer.abort()
    return writer.path
