"""``spectrod upload``: sends the files of a folder of recordings to a bucket."""

import argparse
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from spectrod.apps.upload.following import Following, LogReport
from spectrod.apps.upload.uploader import Uploader
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import seconds
from spectrod.cli.progress import UploadProgress
from spectrod.daemon.service import Notifier, caught_signals, configure_logging
from spectrod.lib.allocator import share_arenas
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.source.store.bucket_address import bucket_address
from spectrod.source.store.stores import answer

_INCOMPLETE, _REFUSED = 65, 74
_DAY_S = 86400.0
_INTERVAL_MIN_S = 0.01
_DAYS_MAX = 36_500.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="recordings, at any depth")
    parser.add_argument(
        "address", nargs="?", metavar="ADDRESS", help="s3://BUCKET/FOLDER or gs://BUCKET/FOLDER"
    )
    parser.add_argument(
        "--follow", action="store_true", help="continue with files as they are finished (a service)"
    )
    parser.add_argument(
        "--interval", type=seconds, metavar="TIME",
        help="with --follow: from one look at the folder to the next (1min)",
    )  # fmt: skip
    parser.add_argument(
        "--remove", action="store_true",
        help="remove files here that are whole in the bucket, when they are a minute old",
    )  # fmt: skip
    parser.add_argument(
        "--keep-days", type=float, metavar="DAYS",
        help="with --remove: only those that were finished longer ago (0)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument(
        "--log-level", metavar="LEVEL", help="(warning; with --follow info, a line for each file)"
    )


def run(args: argparse.Namespace) -> int:
    """Send what is finished, or follow the folder until a signal."""
    folder, address = _places(args)
    _check(args)
    configure_logging(args.log_level or ("info" if args.follow else "warning"))
    removed_after_s = (args.keep_days or 0.0) * _DAY_S if args.remove else None
    if args.follow:
        return _follow(folder, address, removed_after_s, args.interval or 60.0)
    with signals_as_interrupts():
        return _send_once(folder, address, removed_after_s, is_json=args.json)


def _places(args: argparse.Namespace) -> tuple[Path, str]:
    if args.folder is None or args.address is None:
        raise ConfigError(
            "FOLDER and ADDRESS must be given, as recordings s3://BUCKET/FOLDER; for the service "
            "in the file /etc/spectrod/upload.env, a line SPECTROD_UPLOAD=FOLDER ADDRESS"
        )
    if "\0" in args.folder or not args.folder:
        raise ConfigError(f"{printable(args.folder)!r}: must be a folder")
    return Path(args.folder), bucket_address(args.address)


def _check(args: argparse.Namespace) -> None:
    if args.interval is not None:
        if not args.follow:
            raise ConfigError("--interval: needs --follow")
        if not _INTERVAL_MIN_S <= args.interval <= _DAY_S:
            rule = f"must be {_INTERVAL_MIN_S:g} s to 1 d"
            raise ConfigError(f"--interval {args.interval:g}: {rule}")
    if args.json and args.follow:
        raise ConfigError("--json: is for the summary, which --follow has not")
    if args.keep_days is not None:
        if not args.remove:
            raise ConfigError("--keep-days: needs --remove")
        if not 0.0 <= args.keep_days <= _DAYS_MAX:
            raise ConfigError(f"--keep-days {args.keep_days:g}: must be 0 to {_DAYS_MAX:g}")


def _follow(folder: Path, address: str, removed_after_s: float | None, interval_s: float) -> int:
    share_arenas()
    with caught_signals() as signals:
        following = Following(folder, address, signals, Notifier())
        uploader = Uploader(
            folder,
            address,
            LogReport(),
            ask=following.ask,
            tick=following.tick,
            removed_after_s=removed_after_s,
        )
        return following.run(uploader, interval_s)


def _send_once(folder: Path, address: str, removed_after_s: float | None, *, is_json: bool) -> int:
    report = _Printed()
    uploader = Uploader(folder, address, report, ask=report.ask, removed_after_s=removed_after_s)
    report.uploader = uploader
    try:
        with report.progress:
            uploader.look()
    finally:
        if uploader.has_listed:
            print(json.dumps(_summary(uploader)) if is_json else _line(uploader))
    if uploader.n_failed:
        return _REFUSED
    return _INCOMPLETE if uploader.n_left_out else 0


def _summary(uploader: Uploader) -> dict[str, int]:
    return {
        "sent": uploader.n_sent,
        "sent_bytes": uploader.sent_bytes,
        "there": uploader.n_there,
        "removed": uploader.n_removed,
        "unfinished": uploader.n_unfinished,
        "left_out": uploader.n_left_out,
        "failed": uploader.n_failed,
        "waiting": uploader.n_waiting,
    }


def _line(uploader: Uploader) -> str:
    counts = _summary(uploader)
    sent, n_bytes, there = counts.pop("sent"), counts.pop("sent_bytes"), counts.pop("there")
    others = [f"{name.replace('_', ' ')}: {n}" for name, n in counts.items() if n]
    first = f"sent: {sent} files, {n_bytes / 1e6:.1f} MB; there before: {there}"
    return "; ".join([first, *others])


class _Printed:
    """Lines of a command on standard error, see ``UploadReport``.

    Attributes
    ----------
    uploader : Uploader or None
        The one whose progress is shown.
    """

    def __init__(self) -> None:
        self.progress = UploadProgress()
        self.uploader: Uploader | None = None

    def ask(
        self, url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float | None = None
    ) -> Any:
        """Make a request, and show how far the upload is; see ``Ask``."""
        found = answer(url, call, limit_s)
        if (one := self.uploader) is not None:
            self.progress.update(one.n_sent, one.n_waiting, one.sent_bytes)
        return found

    def sent(self, name: str, size: int) -> None:
        """Print nothing: the progress shows it."""

    def removed(self, name: str) -> None:
        """Print nothing: the summary has the number."""

    def complain(self, text: str) -> None:
        """Print a fault."""
        self.progress.print(f"spectrod: {printable(text)}\n")
