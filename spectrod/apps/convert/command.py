"""``spectrod convert``: converts a recording of spectra to other formats and to pictures."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from spectrod.apps.convert.pyramids import convert_pyramid, pyramid_of
from spectrod.cli import options
from spectrod.cli.data_options import add_data, data_options, profile_paths
from spectrod.cli.interrupts import interrupts_held, signals_as_interrupts
from spectrod.cli.long_term import add_view, apply_view, check_time_axis
from spectrod.cli.picture_options import add_picture, picture_options, repeat, with_names
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sections import section_utc_ns
from spectrod.cli.standard_output import standard_output
from spectrod.daemon.service import configure_logging
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description, RowWriter, note_left_out
from spectrod.formats.picture.painter import host_transpose
from spectrod.formats.picture.plan import PicturePlan
from spectrod.formats.sound.sound_recovery import is_unfinished, recover
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.output_formats import (
    PART_SUFFIX,
    continuous,
    format_of,
    listed,
    readable_suffixes,
)
from spectrod.recording.inputs import batches_between, left_out_samples, open_recording
from spectrod.recording.output_plan import Plan, check_outputs, make_folders, make_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    unfinished = [suffix + PART_SUFFIX for suffix in continuous("samples")]
    parser.add_argument(
        "source",
        metavar="IN",
        help=f"recording of spectra, {' '.join(readable_suffixes())}, or a folder of .spd; a "
        "pyramid, or a folder with one, for .zarr; or an unfinished sound file to complete, "
        f"{' '.join(unfinished)}",
    )
    parser.add_argument(
        "output",
        metavar="OUT",
        nargs="+",
        help=f"its suffix selects the format: {listed('picture', 'rows')}; - and FORMAT:- are "
        "standard output",
    )
    parser.add_argument("--start", metavar="WHEN", help=f"only from there on: {options.WHEN}")
    parser.add_argument("--stop", metavar="WHEN", help="only before this, given as --start is")
    parser.add_argument("--duration", metavar="TIME", help=f"only so much of it: {TIME_FORMS}")
    parser.add_argument(
        "--cells",
        metavar="NAME",
        help="of a pyramid: the shortest cells that are written, such as 1min (all)",
    )
    add_data(parser)
    add_view(parser)
    add_picture(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


@signals_as_interrupts()
def run(args: argparse.Namespace) -> int:
    """Read the recording once, from start to end, and write all outputs."""
    configure_logging(args.log_level)
    with standard_output(args):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    source, outputs = Path(args.source), [Path(one) for one in profile_paths(args, args.output)]
    if is_unfinished(source):
        return _make_whole(source, outputs)
    check_outputs([str(path) for path in outputs], source)
    pyramid = pyramid_of(source, args.cells)
    if pyramid is not None:
        convert_pyramid(args, pyramid, outputs)
        return 0
    _check_content(outputs)
    make_folders(map(str, outputs))
    with closing(open_recording(source)) as reader, ExitStack() as undo:
        start_utc_ns, stop_utc_ns, duration_ns = section_utc_ns(args, reader)
        plan = _plan(args, reader.description, outputs)
        writers: list[RowWriter] = []
        for path in outputs:
            with interrupts_held():
                writers.append(make_rows(path, plan))
                undo.callback(_abort, writers[-1])
        batches = batches_between(reader, start_utc_ns, stop_utc_ns)
        if not _copy(batches, writers, reader.description.spec.fs, duration_ns):
            raise InputError(f"{source}: has no rows{_between(args)}")
        if not (args.start or args.stop or args.duration):
            for writer in writers:
                note_left_out(writer, left_out_samples(reader))
        for writer in writers:
            with interrupts_held():
                writer.finish()
        undo.pop_all()
    return 0


def _abort(writer: RowWriter) -> None:
    with interrupts_held():
        writer.abort()


def _make_whole(source: Path, outputs: list[Path]) -> int:
    """Complete a sound file in place, without copying its samples."""
    whole = source.with_suffix("")
    if outputs != [whole]:
        raise ConfigError(f"{outputs[0]}: must be {whole}, which {source.name} becomes")
    recover(source)
    return 0


def _between(args: argparse.Namespace) -> str:
    start = f" from {args.start} on" if args.start else ""
    length = f" for {args.duration}" if args.duration else ""
    return f"{start} before {args.stop}" if args.stop else start + length


def _check_content(outputs: list[Path]) -> None:
    """Refuse outputs that spectra cannot fill."""
    for path in outputs:
        if format_of(path).content == "samples":
            raise ConfigError(
                f"{path}: must be of spectra: convert completes sound files that end in "
                f"{PART_SUFFIX}, and copies no samples, which spectrod record does"
            )


def _plan(args: argparse.Namespace, description: Description, outputs: list[Path]) -> Plan:
    data = data_options(args, [str(path) for path in outputs])
    description = data.described(description)
    repeat(args)
    check_time_axis(args, has_utc=description.has_utc)
    apply_view(args, has_utc=description.has_utc, is_iq=description.spec.iq)
    look, description = with_names(picture_options(args, has_samples=False), description)
    picture = PicturePlan(look, host_transpose, view=args.view)
    return Plan(description, description, picture, export=data.export, is_copy=True)


def _copy(
    batches: Iterator[SpectrumBatch],
    writers: list[RowWriter],
    fs: float,
    duration_ns: int | None,
) -> bool:
    """Pass all rows to all writers, with a progress bar; return whether there were any."""
    n_samples = None if duration_ns is None else max(1, round(duration_ns * fs / NS_PER_S))
    begin_ns = None
    with ProgressBar(fs, n_samples) as bar:
        for batch in batches:
            with interrupts_held():
                for writer in writers:
                    writer.write(batch)
            last_ns = int(batch.t_utc_ns[-1])
            begin_ns = last_ns if begin_ns is None else begin_ns
            bar.update(max(0, round((last_ns - begin_ns) * fs / NS_PER_S)))
    return any(writer.n_frames for writer in writers)
