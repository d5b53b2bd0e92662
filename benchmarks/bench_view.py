"""What the terminal view costs: bytes a second to the terminal, and processor time.

    python benchmarks/bench_view.py [--seconds S] [--keys KEYS] [--json FILE]

A daemon analyses pink noise in real time (48 kHz, win_length 4096, hop 1024, by NumPy). The view
runs in tmux, in windows of 80x24 and 200x60 characters, with 24-bit colours and in ASCII; bytes are
those that it writes to tmux, times are of its process. Waterfalls of pixels go to a pseudo-terminal
that answers as kitty or as a terminal with sixels, of characters of 9 x 18 pixels, and shows
nothing. Needs tmux.
"""

import argparse
import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from _report import ROOT, new_report, write_report

_SIZES = ((80, 24), (200, 60))
_KINDS = {
    "24-bit": (["LC_ALL=C.UTF-8", "COLORTERM=truecolor"], []),
    "256": (["LC_ALL=C.UTF-8", "TERM=screen-256color", "COLORTERM="], []),
    "no colours": (["LC_ALL=C.UTF-8"], ["--no-color"]),
    "ASCII": (["LC_ALL=POSIX"], ["--ascii", "--no-color"]),
}
_ANSWERS = {
    "kitty": b"\x1b_Gi=31;OK\x1b\\\x1b[6;18;9t\x1b[?62c",
    "sixel": b"\x1b[6;18;9t\x1b[?62;4c",
}
"""What a terminal answers to the second question."""
_LIMIT_S = 30.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure each size and kind, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--keys", default="", help="keys that are pressed first, as lm")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("view")
    report["keys"], report["results"] = args.keys, []
    with tempfile.TemporaryDirectory() as folder, _daemon(Path(folder)) as endpoint:
        for size in _SIZES:
            for kind in _KINDS:
                result = _measure(Path(folder), endpoint, size, kind, args)
                report["results"].append(result)
                print(", ".join(f"{key}: {value}" for key, value in result.items()), flush=True)
            for protocol in _ANSWERS:
                result = _measure_pixels(endpoint, size, protocol, args)
                report["results"].append(result)
                print(", ".join(f"{key}: {value}" for key, value in result.items()), flush=True)
    if args.json:
        write_report(report, args.json)


@contextmanager
def _daemon(folder: Path) -> Iterator[str]:
    endpoint = f"ipc://{folder}/view.ipc"
    command = ["run", "--source", "signal:pink,-20", "--publish", endpoint, "--show", "none"]
    argv = [sys.executable, "-m", "spectrod", *command, "--engine", "numpy"]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            yield endpoint
        finally:
            process.terminate()


def _measure(
    folder: Path, endpoint: str, size: tuple[int, int], kind: str, args: argparse.Namespace
) -> dict[str, object]:
    written = folder / "written"
    written.write_bytes(b"")
    environment, options = _KINDS[kind]
    view = [sys.executable, "-m", "spectrod", "view", endpoint, *options]
    command = shlex.join(["env", *environment, *view])
    with _tmux(folder, size, f"cd {shlex.quote(str(ROOT))} && exec {command}") as tmux:
        tmux("pipe-pane", "-O", f"cat >> {shlex.quote(str(written))}")
        _wait_until(lambda: "q quit" in tmux("capture-pane", "-p"))
        for key in args.keys:
            tmux("send-keys", "-l", key)
        pid = int(tmux("display-message", "-p", "#{pane_pid}"))
        before = written.stat().st_size, _processor_s(pid), time.monotonic()
        time.sleep(args.seconds)
        after = written.stat().st_size, _processor_s(pid), time.monotonic()
    return _result(size, kind, before, after)


def _result(
    size: tuple[int, int], kind: str, before: tuple[float, ...], after: tuple[float, ...]
) -> dict[str, object]:
    """Return the costs between two readings of bytes, processor time and time."""
    n_bytes, busy_s, wall_s = (b - a for a, b in zip(before, after, strict=True))
    return {
        "columns": size[0],
        "lines": size[1],
        "kind": kind,
        "kilobytes_per_s": round(n_bytes / wall_s / 1e3, 1),
        "core_percent": round(100.0 * busy_s / wall_s, 1),
    }


def _measure_pixels(
    endpoint: str, size: tuple[int, int], protocol: str, args: argparse.Namespace
) -> dict[str, object]:
    environment = os.environ | {"LC_ALL": "C.UTF-8", "COLORTERM": "truecolor", "TERM": "xterm"}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    argv = [sys.executable, "-m", "spectrod", "view", endpoint]
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    with subprocess.Popen(argv, cwd=ROOT, env=environment, **streams) as process:
        screen = _Screen(master, protocol)
        screen.read_for(_LIMIT_S / 6)  # the waterfall fills
        os.write(master, args.keys.encode())
        before = screen.n_bytes, _processor_s(process.pid), time.monotonic()
        screen.read_for(args.seconds)
        after = screen.n_bytes, _processor_s(process.pid), time.monotonic()
        process.terminate()
        screen.read_for(1.0)
    if not screen.has_pixels:
        raise SystemExit(f"bench_view: no pixels by {protocol}")
    return _result(size, protocol, before, after)


class _Screen:
    """The other end of a pseudo-terminal, which answers questions and counts bytes."""

    def __init__(self, fd: int, protocol: str) -> None:
        self._fd, self._protocol = fd, protocol
        self.n_bytes = 0
        self.has_pixels = False

    def read_for(self, seconds: float) -> None:
        """Read output for a time."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0.0:
            if not select.select([self._fd], [], [], left_s)[0]:
                return
            data = os.read(self._fd, 1 << 16)
            self.n_bytes += len(data)
            self.has_pixels |= b"\x1bP" in data or b"a=T" in data
            if b"a=q" in data:
                os.write(self._fd, _ANSWERS[self._protocol])
            elif b"\x1b[c" in data:
                os.write(self._fd, b"\x1b[?62c")


@contextmanager
def _tmux(folder: Path, size: tuple[int, int], command: str) -> Iterator["_Tmux"]:
    # A socket of its own: the server of the one before may still be ending.
    tmux = _Tmux(Path(tempfile.mkdtemp(dir=folder)) / "tmux")
    columns, lines = map(str, size)
    tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, command)
    try:
        yield tmux
    finally:
        tmux("kill-server")


class _Tmux:
    """A server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def __call__(self, *arguments: str) -> str:
        argv = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _processor_s(pid: int) -> float:
    """Return the processor time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _LIMIT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit("bench_view: the view shows nothing")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
