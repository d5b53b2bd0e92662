"""Log the level of every channel to a CSV file, one row an interval.

    python log_to_csv.py levels.csv [ENDPOINT [PREFIX]] [--interval 60]
                         [--key ME.key --server-key BOX.pub]

Needs pyzmq and NumPy, and subscribe.py beside it. Intervals are those of UTC: 60 s begin at each
full minute, by the times in the messages. A row has the start of the interval, the mean level (Leq)
and the highest of a single spectrum, how many spectra they come from, how many messages were
missed and whether the daemon was restarted. An interval without any spectrum has no row.

The file is appended to, so the logger may be ended and started again; the interval in which that
happens has two rows, whose mean powers add up in proportion to their spectra. A row that a power
failure has torn is removed at the next start.

A level is the power of all bins together, over the window's noise bandwidth in bins, so it does not
depend on window or length. Spectra of FS^2 and FS^2/Hz are given in dBFS as well, where 0 dBFS is a
full-scale sine.
"""

import argparse
import csv
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from subscribe import Message, connect, receive

COLUMNS = [
    *("time_utc", "source", "channel", "product", "level", "max_level", "unit"),
    *("spectra", "missed", "restarts"),
]
LATE_S = 2.0  # after its end an interval waits so long for what is still on the way


def mean_power(header: dict[str, Any], values: np.ndarray) -> tuple[float, str]:
    """Return the power of all bins together, and the unit of its level in decibels."""
    bin_hz, unit = header["fs"] / header["nfft"], header["unit"]
    values = values.astype(np.float64)
    if unit == "FS^2/Hz":
        return 2.0 * values.sum() * bin_hz, "dBFS"  # a full-scale sine's mean square is 1/2
    if unit == "FS^2":
        return 2.0 * values.sum() * bin_hz / header["enbw_hz"], "dBFS"
    if unit.startswith("dB"):
        return (10.0 ** (values / 10.0)).sum() * bin_hz / header["enbw_hz"], unit
    raise SystemExit(f"unit={unit}: this program knows FS^2, FS^2/Hz and units of dB")


class Row:
    """One topic in one interval, as its spectra come."""

    def __init__(self) -> None:
        self.powers: list[float] = []
        self.missed = self.restarts = 0
        self.unit = ""

    def add(self, message: Message) -> None:
        """Count one more spectrum in."""
        power, self.unit = mean_power(message.header, message.values)
        self.powers.append(power)
        self.missed += message.missed
        self.restarts += message.restarted

    def cells(self) -> list[str | int]:
        """Return the columns from the level on."""
        mean, highest = (10.0 * np.log10(p) for p in (np.mean(self.powers), max(self.powers)))
        figures = [f"{mean:.2f}", f"{highest:.2f}", self.unit]
        return [*figures, len(self.powers), self.missed, self.restarts]


class Log:
    """The rows that are not complete yet, and the file that takes them then."""

    def __init__(self, file: TextIO, interval_s: int) -> None:
        self._file = file
        self._writer = csv.writer(file)
        self._interval_ns = interval_s * 10**9
        self._rows: dict[int, dict[str, Row]] = {}

    def add(self, message: Message) -> None:
        """Add a spectrum to the interval of its first sample."""
        number = message.header["t_utc_ns"] // self._interval_ns
        self._rows.setdefault(number, {}).setdefault(message.topic, Row()).add(message)

    def write(self, until_ns: int | None = None) -> None:
        """Write the intervals that have ended by then; None: all of them."""
        for number in sorted(self._rows):
            if until_ns is None or (number + 1) * self._interval_ns <= until_ns:
                begin = datetime.fromtimestamp(number * self._interval_ns // 10**9, UTC)
                for topic, row in sorted(self._rows.pop(number).items()):
                    names = topic.split("/")[1:4]
                    self._writer.writerow([begin.isoformat(), *names, *row.cells()])
                self._file.flush()
                os.fsync(self._file.fileno())


def open_log(path: Path) -> TextIO:
    """Open the file to append to it; a new one gets its heading."""
    heading = ",".join(COLUMNS) + "\r\n"
    if path.exists() and path.stat().st_size:
        with path.open("r+b") as file:
            data = file.read()
            if not data.startswith(heading.encode()):
                raise SystemExit(f"{path}: has other columns than {','.join(COLUMNS)}")
            file.truncate(data.rindex(b"\n") + 1)
        return path.open("a", newline="", encoding="utf-8")
    file = path.open("a", newline="", encoding="utf-8")
    file.write(heading)
    file.flush()
    return file


def main() -> None:
    """Log until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path, metavar="FILE.csv")
    parser.add_argument("endpoint", nargs="?", default="tcp://127.0.0.1:5556")
    parser.add_argument("prefix", nargs="?", default="spec/", help="topics wanted (%(default)s)")
    parser.add_argument("--interval", type=int, default=60, metavar="S", help="(%(default)s)")
    parser.add_argument("--key", metavar="ME.key", help="who I am (spectrod keys new)")
    parser.add_argument("--server-key", metavar="BOX.pub", help="public key of the daemon")
    args = parser.parse_args()
    if args.interval < 1:
        raise SystemExit(f"--interval {args.interval}: must be 1 or more seconds")
    keys = {"key": args.key, "server_key": args.server_key}
    with open_log(args.path) as file, connect(args.endpoint, args.prefix, "hb/", **keys) as socket:
        log = Log(file, args.interval)
        try:
            for message in receive(socket):
                if message is None:
                    print(f"nothing from {args.endpoint} for 3 s", file=sys.stderr, flush=True)
                elif message.topic.startswith(args.prefix):
                    log.add(message)
                log.write(until_ns=time.time_ns() - int(LATE_S * 1e9))
        finally:
            log.write()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
