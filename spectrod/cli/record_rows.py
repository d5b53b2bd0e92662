"""``spectrod record`` of existing spectra, from a stored recording or a running daemon."""

import argparse
import logging
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from spectrod.cli.data_options import data_options
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.long_term import apply_view, check_time_axis
from spectrod.cli.picture_options import picture_options, with_names
from spectrod.cli.progress import ProgressBar
from spectrod.cli.record_files import RowFiles, finish_all
from spectrod.cli.record_plan import (
    Asked,
    Outputs,
    asked,
    make_outputs,
    picture_plan,
    picture_width,
)
from spectrod.cli.times import parse_seconds, stop_of_live, wait_for_start, zone_of_times
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.picture.painter import host_transpose
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.output_formats import format_of
from spectrod.recording.output_plan import Plan

_log = logging.getLogger(__name__)

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class _Rows:
    """A source of rows."""

    description: Description
    batches: Iterator[SpectrumBatch]
    n_samples: int | None


def record_rows(args: argparse.Namespace) -> int:
    """Pass all rows to all outputs."""
    found = asked(args)
    for path in found.paths:
        if format_of(path).content == "samples":
            raise ConfigError(f"{path}: {args.source} has spectra, and no samples")
    return (_of_daemon if "://" in args.source else _of_recording)(args, found)


def _of_recording(args: argparse.Namespace, found: Asked) -> int:
    from spectrod.cli.sections import section_utc_ns  # noqa: PLC0415
    from spectrod.recording.inputs import batches_between, open_recording  # noqa: PLC0415

    with closing(open_recording(Path(args.source))) as reader:
        start_ns, stop_ns, duration_ns = section_utc_ns(args, reader)
        fs = reader.description.spec.fs
        n_samples = None if duration_ns is None else max(1, round(duration_ns * fs / NS_PER_S))
        batches = batches_between(reader, start_ns, stop_ns)
        return _record(args, found, _Rows(reader.description, batches, n_samples))


def _of_daemon(args: argparse.Namespace, found: Asked) -> int:
    from spectrod.client.subscription import subscribe  # noqa: PLC0415
    from spectrod.recording.remote import DaemonReader  # noqa: PLC0415

    if args.stop is not None:
        raise stop_of_live(args.stop, args.source)
    seconds = parse_seconds("--duration", args.duration) if args.duration else None
    if args.start is not None:
        wait_for_start(args.start, args.source, zone_of_times(args))
    subscription = subscribe(args.source, args.topic, server_key=args.server_key, key_file=args.key)
    with closing(subscription), closing(DaemonReader(subscription, args.topic)) as reader:
        stop_s = None if seconds is None else time.monotonic() + seconds
        fs = reader.description.spec.fs
        n_samples = None if seconds is None else round(seconds * fs)
        exit_code = _record(
            args, found, _Rows(reader.description, reader.batches(stop_s), n_samples)
        )
        if reader.lost_rows:
            _log.warning("%d rows were lost on the way", reader.lost_rows)
        return exit_code


def _record(args: argparse.Namespace, found: Asked, rows: _Rows) -> int:
    has_utc = rows.description.has_utc
    check_time_axis(args, has_utc=has_utc)
    apply_view(args, has_utc=has_utc, is_iq=rows.description.spec.iq)
    data = data_options(args, found.paths)
    about = data.described(rows.description)
    look, about = with_names(picture_options(args, has_samples=False), about)
    look = picture_width(found, look, args.tile)
    picture, is_copy = picture_plan(found, look, host_transpose), "://" not in args.source
    plan = Plan(about, about, picture, export=data.export, is_copy=is_copy)
    outputs = make_outputs(found, plan, time.time_ns())
    try:
        exit_code = _hand_out(rows, outputs)
        failure = finish_all(outputs.all, interrupts_held)
    finally:
        with interrupts_held():
            outputs.abort()
    if failure is not None:
        raise failure
    return exit_code


def _hand_out(rows: _Rows, outputs: Outputs) -> int:
    """Pass every row to every output; an output that fails is aborted, the others continue."""
    n_done = 0
    spec = rows.description.spec
    with ProgressBar(spec.fs, rows.n_samples) as bar:
        bar.update(0)
        try:
            for batch in rows.batches:
                with interrupts_held():
                    for files in [*outputs.pictures, *outputs.rows]:
                        if not files.is_over:
                            _write(outputs, files, batch)
                if all(files.is_over for files in outputs.all):
                    return 0
                n_done += batch.gap_samples + round(batch.n_frames * spec.row_step)
                bar.update(n_done)
        except KeyboardInterrupt:
            return _INTERRUPTED
    return 0


def _write(outputs: Outputs, files: RowFiles, batch: SpectrumBatch) -> None:
    try:
        files.write(batch)
    except SpectrodError as error:
        outputs.give_up(files, error)
