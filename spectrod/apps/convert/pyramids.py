"""Conversion of pyramids to Zarr stores that viewers zoom."""

import argparse
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import msgspec

from spectrod.cli.data_options import data_options
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.picture_options import picture_options, with_names
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sections import section_of_span
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.pyramid.pyramid_level import (
    PyramidLevel,
    describe,
    find_pyramid,
    levels_of,
    span_utc_ns,
)
from spectrod.formats.pyramid.pyramid_zarr import PyramidZarrWriter
from spectrod.lib.errors import ConfigError, InputError, storage_errors
from spectrod.lib.output_formats import format_of
from spectrod.recording.inputs import is_recording
from spectrod.recording.output_plan import make_folders

_SUFFIX = ".zarr"


def pyramid_of(source: Path, cells: str | None) -> Path | None:
    """Return the pyramid that is to be converted; None if the source is something else.

    It is the source, or lies in it: beside segments only if cells are named.

    Raises
    ------
    ConfigError
        If cells are named and there is no pyramid.
    StorageError
        If the source cannot be read.
    """
    with storage_errors(source):
        found = find_pyramid(source)
        if found is None and cells is not None:
            raise ConfigError(f"--cells {cells}: {source} has no pyramid")
        if found in (None, source) or cells is not None:
            return found
        return None if is_recording(source) else found


def convert_pyramid(args: argparse.Namespace, folder: Path, outputs: list[Path]) -> None:
    """Write a pyramid to the output, which must be one Zarr store.

    Raises
    ------
    ConfigError
        If a flag or the output does not fit.
    InputError, StorageError, UnavailableError
        See ``levels_of`` and ``PyramidZarrWriter``.
    """
    path = _output(args, folder, outputs)
    options = ExportOptions(**data_options(args, [str(path)]).export)
    with closing(PyramidReader(folder)) as reader:
        levels = levels_of(reader, args.cells)
    levels = _named(args, _section(args, levels))
    make_folders([str(path)])
    with ExitStack() as undo:
        with interrupts_held():
            writer = PyramidZarrWriter(folder, levels, path, options)
            undo.callback(_abort, writer)
        _copy(writer, levels)
        with interrupts_held():
            writer.finish()
        undo.pop_all()


def _output(args: argparse.Namespace, folder: Path, outputs: list[Path]) -> Path:
    """Return the only output, which must be a Zarr store outside the pyramid."""
    path, *others = outputs
    for one in outputs:
        if format_of(one).suffix != _SUFFIX:
            raise ConfigError(f"{one}: must be {_SUFFIX}: {folder} is a pyramid")
    if others:
        raise ConfigError(f"{others[0]}: must be the only output: {folder} is a pyramid")
    if args.profile:
        raise ConfigError(f"{path}: profile={args.profile!r}: must be a .nc file")
    if folder.resolve() in path.resolve().parents:
        raise ConfigError(f"{path}: must not lie in the folder that is read")
    return path


def _section(args: argparse.Namespace, levels: list[PyramidLevel]) -> list[PyramidLevel]:
    """Return the cells of each level that overlap the section; levels without any are left out."""
    start_ns, stop_ns, _ = section_of_span(args, *span_utc_ns(levels))
    found = [level for one in levels if len(level := one.between(start_ns, stop_ns))]
    if not found:
        raise InputError(f"{args.source}: has no cells in this time")
    return found


def _named(args: argparse.Namespace, levels: list[PyramidLevel]) -> list[PyramidLevel]:
    """Apply the given names of channels."""
    about = levels[0].about
    _, description = with_names(picture_options(args, has_samples=False), describe(about))
    about = msgspec.structs.replace(about, signals=description.signals)
    return [replace(level, about=about) for level in levels]


def _copy(writer: PyramidZarrWriter, levels: list[PyramidLevel]) -> None:
    """Write all pieces, with a progress bar of the time of the recording."""
    begin_ns, end_ns = span_utc_ns(levels)
    pieces, n_done = writer.write(), 0
    with ProgressBar(writer.n_cells / ((end_ns - begin_ns) / NS_PER_S), writer.n_cells) as bar:
        while True:
            with interrupts_held():
                n_cells = next(pieces, 0)
            if not n_cells:
                return
            n_done += n_cells
            bar.update(n_done)


def _abort(writer: PyramidZarrWriter) -> None:
    with interrupts_held():
        writer.abort()
