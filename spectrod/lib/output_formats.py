"""The table of output formats: what their files contain, and what writes and reads them.

A new format is a module with its writer and one ``OutputFormat`` in ``FORMATS``. Help texts, error
texts, the configuration check, the daemon and the commands read this table. Entry points are
written ``MODULE:NAME``, so that a format and its dependencies are imported when they are used.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal

from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean

Content = Literal["picture", "rows", "samples", "values", "figure"]

PART_SUFFIX: Final = ".part"
"""Added to the name of a file until it is finished."""

_EXPORT = "spectrod.formats.export"
_ORIGIN = "spectrod.formats.origin"
_SEGMENT = "spectrod.formats.segment"
_SOUND = "spectrod.formats.sound"
_VALUES = "spectrod.formats.values"
_PICTURE = "spectrod.recording.output_plan:make_picture"
_FIGURE = "spectrod.formats.figure.measurement_figure:MeasurementFigureWriter"


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """A format of files that spectrod writes.

    Attributes
    ----------
    suffix : str
        Suffix of its files, in lower case.
    content : {"picture", "rows", "samples", "values", "figure"}
        Content of its files.
    writer : str
        Entry point that starts a file: of pictures called with path and ``Plan``, of rows with
        path, ``Description`` and ``ExportOptions``, of samples with path, ``SpectrumSpec``, subtype
        and ``SoundOptions``, of values and figures with path and ``MeasurementDescription``.
    reader : str
        Entry point that opens a file of rows by its path as a ``RowReader``; empty if none does.
    aliases : tuple of str
        Other suffixes that mean the same.
    holds_levels : bool
        Whether it can hold the level statistics of ``--view spd``; data formats then have an entry
        in ``formats.longterm.longterm_sink``, too.
    is_text : bool
        Whether a terminal can show it.
    is_one_file : bool
        Whether it is a single file, which can go to standard output.
    is_of_daemon : bool
        Whether a running daemon records it on request.
    recovery : str
        Entry point that completes an unfinished file, or removes one that has nothing in it, called
        with its path and ``Directory``. It returns an object with a ``summary``. The
        daemon records only such formats continuously.
    origin : str
        Entry point that reads the ``Origin`` of a file by its descriptor; given with ``recovery``.
    sound_file : str
        Class of the files of samples that ``SoundWriter`` appends to.
    subtypes : tuple of str
        Sample formats of samples, the default first: the most exact for the analysis's samples.
    extra : str
        Extra of spectrod whose packages write it, see ``spectrod.lib.optional_packages``.
    """

    suffix: str
    content: Content
    writer: str
    reader: str = ""
    aliases: tuple[str, ...] = ()
    holds_levels: bool = False
    is_text: bool = False
    is_one_file: bool = True
    is_of_daemon: bool = False
    recovery: str = ""
    origin: str = ""
    sound_file: str = ""
    subtypes: tuple[str, ...] = ()
    extra: str = ""


FORMATS: tuple[OutputFormat, ...] = (
    OutputFormat(".png", "picture", _PICTURE, holds_levels=True, is_of_daemon=True),
    OutputFormat(".jpg", "picture", _PICTURE, aliases=(".jpeg",), holds_levels=True),
    OutputFormat(".webp", "picture", _PICTURE, holds_levels=True),
    OutputFormat(".pgm", "picture", _PICTURE),
    OutputFormat(".svg", "picture", _PICTURE, holds_levels=True, is_text=True),
    OutputFormat(".pdf", "picture", _PICTURE, holds_levels=True, extra="pdf"),
    OutputFormat(
        ".spd",
        "rows",
        f"{_SEGMENT}.segment_writer:make_segment",
        f"{_SEGMENT}.segment_reader:SegmentReader",
        is_of_daemon=True,
        recovery=f"{_SEGMENT}.segment_recovery:recover",
        origin=f"{_ORIGIN}:of_segment",
    ),
    OutputFormat(
        ".nc",
        "rows",
        f"{_EXPORT}.netcdf:NetcdfWriter",
        f"{_EXPORT}.netcdf:open_netcdf",
        extra="netcdf",
    ),
    OutputFormat(
        ".h5",
        "rows",
        f"{_EXPORT}.netcdf:NetcdfWriter",
        f"{_EXPORT}.netcdf:open_netcdf",
        extra="netcdf",
    ),
    OutputFormat(
        ".zarr",
        "rows",
        f"{_EXPORT}.zarr:ZarrWriter",
        f"{_EXPORT}.zarr_reader:open_zarr",
        is_one_file=False,
        extra="zarr",
    ),
    OutputFormat(
        ".npz",
        "rows",
        f"{_EXPORT}.npz:NpzWriter",
        f"{_EXPORT}.npz:open_npz",
        holds_levels=True,
    ),
    OutputFormat(".npy", "rows", f"{_EXPORT}.npy:NpyWriter", is_one_file=False),
    OutputFormat(
        ".csv",
        "rows",
        f"{_EXPORT}.csv:CsvWriter",
        f"{_EXPORT}.csv:open_csv",
        holds_levels=True,
        is_text=True,
    ),
    OutputFormat(
        ".wav",
        "samples",
        f"{_SOUND}.sound_writer:make_sound",
        is_of_daemon=True,
        recovery=f"{_SOUND}.sound_recovery:recover_or_remove",
        origin=f"{_ORIGIN}:of_wav",
        sound_file=f"{_SOUND}.wav:WavFile",
        subtypes=("f32", "s16", "s24", "s32"),
    ),
    OutputFormat(
        ".flac",
        "samples",
        f"{_SOUND}.sound_writer:make_sound",
        is_of_daemon=True,
        recovery=f"{_SOUND}.sound_recovery:recover_or_remove",
        origin=f"{_ORIGIN}:of_flac",
        sound_file=f"{_SOUND}.flac:FlacFile",
        subtypes=("s24", "s16"),
    ),
    OutputFormat(
        ".sigmf-meta",
        "samples",
        f"{_SOUND}.sigmf_writer:SigmfWriter",
        aliases=(".sigmf-data",),
        is_one_file=False,
        subtypes=("f32", "s16", "s32"),
    ),
)


VALUE_FORMATS: tuple[OutputFormat, ...] = (
    OutputFormat(
        ".csv",
        "values",
        f"{_VALUES}.value_csv:ValueCsvWriter",
        recovery=f"{_VALUES}.recorded:recover",
        origin=f"{_ORIGIN}:of_values",
    ),
    OutputFormat(
        ".nc",
        "values",
        f"{_VALUES}.value_netcdf:ValueNetcdfWriter",
        recovery=f"{_VALUES}.recorded:recover",
        origin=f"{_ORIGIN}:of_values",
        extra="netcdf",
    ),
    OutputFormat(".h5", "values", f"{_VALUES}.value_netcdf:ValueNetcdfWriter", extra="netcdf"),
    OutputFormat(
        ".parquet", "values", f"{_VALUES}.value_parquet:ValueParquetWriter", extra="parquet"
    ),
    OutputFormat(".png", "figure", _FIGURE, extra="plot"),
    OutputFormat(".svg", "figure", _FIGURE, extra="plot"),
    OutputFormat(".pdf", "figure", _FIGURE, extra="plot"),
)
"""Formats of measurements; spectra may have one of the same suffix."""


FOLDER_SUFFIXES: Final = (".zarr",)
"""Suffixes of recordings that are folders of files."""

_BESIDE: Final = (".npy.json",)
"""Suffixes of files that belong to those of a format."""
_FILE_SUFFIXES: Final = (
    *(name for one in (*FORMATS, *VALUE_FORMATS) for name in (one.suffix, *one.aliases)
      if name not in FOLDER_SUFFIXES),
    *_BESIDE,
)  # fmt: skip


def is_recording_name(name: str) -> bool:
    """Return whether a name is that of a finished file of a format, or of one that belongs to it.

    Files have other names until they are finished: with ``PART_SUFFIX``, and most begin with a dot.
    """
    return not name.startswith(".") and name.lower().endswith(_FILE_SUFFIXES)


def load(entry_point: str) -> Any:
    """Import the module of an entry point, and return the named object in it."""
    module, _, name = entry_point.partition(":")
    return getattr(import_module(module), name)


def format_named(name: str) -> OutputFormat | None:
    """Return the format of a suffix, in any case; None if it is unknown."""
    suffix = name.lower()
    for one in FORMATS:
        if suffix == one.suffix or suffix in one.aliases:
            return one
    return None


def value_format(suffix: str) -> OutputFormat:
    """Return the format of measurements of a suffix of ``VALUE_FORMATS``."""
    return next(one for one in VALUE_FORMATS if one.suffix == suffix)


def format_of(path: str | os.PathLike[str]) -> OutputFormat:
    """Return the format of a file by its name.

    Raises
    ------
    ConfigError
        If its suffix is unknown; the text lists the known ones.
    """
    # Called many times for each of many files, and a path object takes ten times as long.
    suffix = os.path.splitext(path)[1]  # noqa: PTH122
    found = format_named(suffix)
    if found is None:
        known = suffixes()
        rule = f"suffix must be one of {', '.join(known)}{did_you_mean(suffix.lower(), known)}"
        raise ConfigError(f"{os.fspath(path)}: {rule}")
    return found


def suffixes(wanted: Callable[[OutputFormat], object] = lambda _: True) -> list[str]:
    """Return the suffixes of all formats, or of those for which a function is true; aliases too."""
    return [name for one in FORMATS if wanted(one) for name in (one.suffix, *one.aliases)]


def continuous(content: Content | None = None) -> list[str]:
    """Return the suffixes that the daemon records continuously, optionally of one content."""
    return [one.suffix for one in _recorded() if content in (None, one.content)]


def recorded_format(suffix: str) -> OutputFormat:
    """Return the format that the daemon records continuously under a suffix of ``continuous``."""
    return next(one for one in _recorded() if one.suffix == suffix)


def _recorded() -> list[OutputFormat]:
    return [one for one in (*FORMATS, *VALUE_FORMATS) if one.recovery]


def readable_suffixes() -> list[str]:
    """Return the suffixes of recordings of spectra that can be read, unfinished ones too."""
    found = []
    for one in FORMATS:
        if one.reader:
            found += [one.suffix, one.suffix + PART_SUFFIX] if one.recovery else [one.suffix]
    return found


def listed(*contents: Content) -> str:
    """List the suffixes of each content for help texts, without aliases."""
    several = ([one.suffix for one in FORMATS if one.content == content] for content in contents)
    return "; ".join(" ".join(one) for one in several)
