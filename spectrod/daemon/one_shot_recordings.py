"""Recordings of one file on request: the format, the place and the content of the file."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spectrod.daemon.recorder import QUEUE_MAX_BYTES, Recorder, RecordingFeed
from spectrod.daemon.source_runner import SourceRunner, find_running
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.directory import Directory
from spectrod.formats.output import Output
from spectrod.formats.part import PartFile
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.lib.errors import ConfigError, exists_error, storage_errors
from spectrod.lib.output_formats import format_named, format_of, suffixes
from spectrod.recording.configured import recorded_of
from spectrod.recording.one_shot import OneShot
from spectrod.wire.requests import StartRecordingParams

_FOLDER_MODE = 0o750
_PICTURE = ".png"


def make(
    runner: SourceRunner,
    params: StartRecordingParams,
    folder: Path,
    who: str,
    on_end: Callable[[Recorder[OneShot[Any]]], None],
) -> Recorder[OneShot[Any]]:
    """Make a recorder, not started yet.

    Raises
    ------
    ConfigError
        If a running daemon does not make the format, or it cannot hold the product.
    NotFoundError, UnavailableError
        If there is no such product, or the source is absent or has ended.
    """
    pipeline, spec = find_running(runner, params.product)
    path = folder / _file_name(params.name or _default_name(runner.name, spec.product))
    content = format_of(path).content
    memory_bytes = QUEUE_MAX_BYTES
    if content == "picture":
        # Imported when needed: the start of a daemon does not wait for it.
        from spectrod.recording.picture_output import picture_bytes  # noqa: PLC0415

        memory_bytes = picture_bytes(spec)
    is_of_samples = content == "samples"
    shot = OneShot[Any](
        path,
        lambda: _open(path, runner, spec),
        who,
        is_of_samples=is_of_samples,
        duration_s=params.duration_s,
        memory_bytes=memory_bytes,
    )
    feed = RecordingFeed(
        runner, pipeline, spec.product, spec, rows=not is_of_samples, samples=is_of_samples
    )
    return Recorder(path.name, shot, feed, on_end=on_end)


def status_of(one: Recorder[OneShot[Any]]) -> dict[str, Any]:
    """Return the status of a recording in built-in types."""
    status = one.status()
    return status | {
        "source": one.feed.runner.name,
        "product": one.feed.product,
        "dropped": status["lost_rows"] + status["lost_samples"],
        # The name that ``rows`` and ``samples`` had; it stays for one release.
        "frames": status["rows"] + status["samples"],
    }


def _file_name(name: str) -> str:
    """Return the name of the file with its suffix; without a known one it is a picture."""
    found = format_named(Path(name).suffix)
    if found is None:
        return f"{name}{_PICTURE}"
    if found.is_of_daemon:
        return name
    is_of_samples = found.content == "samples"
    others = "record makes others" if is_of_samples else "convert makes others of a .spd"
    known = ", ".join(suffixes(lambda one: one.is_of_daemon))
    raise ConfigError(f"name={name!r}: a running daemon makes {known}; spectrod {others}")


def _default_name(source: str, product: str) -> str:
    return f"{source}-{product}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"


def _open(path: Path, runner: SourceRunner, spec: SpectrumSpec) -> Output[Any]:
    """Create the file; raises a SpectrodError."""
    with storage_errors(path):
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        with Directory.open(path.parent) as directory:
            if directory.find(path.name) is not None:
                raise exists_error(path.name)
            return _open_in(directory, path, runner, spec)


def _open_in(
    directory: Directory, path: Path, runner: SourceRunner, spec: SpectrumSpec
) -> Output[Any]:
    content = format_of(path).content
    if content == "picture":
        from spectrod.recording.picture_output import PictureOutput  # noqa: PLC0415 - as above

        return PictureOutput(path, directory, spec, f"{runner.name} {spec.product}")
    description = recorded_of(runner.name, lambda: runner.table, spec).describe(spec)
    if content == "rows":
        return SegmentWriter(PartFile(path, directory), description)
    options = SoundOptions(source=description.source, software=description.software)
    return SoundWriter(PartFile(path, directory), spec.fs, spec.channels, options=options)
