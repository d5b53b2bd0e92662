"""The files of recordings on request: pictures, spectra and sound."""

from pathlib import Path
from typing import Any

from spectrod.daemon.source_runner import SourceRunner
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.directory import Directory
from spectrod.formats.output import Output
from spectrod.formats.part import PartFile
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.lib.errors import exists_error, storage_error
from spectrod.lib.output_formats import format_of
from spectrod.recording.configured import recorded_of
from spectrod.recording.picture_output import PictureOutput, picture_bytes

__all__ = ["open_file", "picture_bytes"]

_FOLDER_MODE = 0o750


def open_file(path: Path, runner: SourceRunner, spec: SpectrumSpec) -> Output[Any]:
    """Create the file; raises a SpectrodError."""
    try:
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        with Directory.open(path.parent) as directory:
            if directory.find(path.name) is not None:
                raise exists_error(path.name)
            return _open_in(directory, path, runner, spec)
    except OSError as error:
        raise storage_error(path, error) from error


def _open_in(
    directory: Directory, path: Path, runner: SourceRunner, spec: SpectrumSpec
) -> Output[Any]:
    content = format_of(path).content
    if content == "picture":
        return PictureOutput(path, directory, spec, f"{runner.name} {spec.product}")
    description = recorded_of(runner, spec).describe(spec)
    if content == "rows":
        return SegmentWriter(PartFile(path, directory), description)
    options = SoundOptions(source=description.source, software=description.software)
    part = PartFile(path, directory)
    return SoundWriter(part, spec.fs, spec.channels, options=options)
