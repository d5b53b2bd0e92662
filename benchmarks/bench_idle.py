"""What a daemon costs while it captures 48 kHz stereo, beside cava and snapserver.

    python benchmarks/bench_idle.py [--seconds 20] [--rounds 3] [--json FILE]

A private PulseAudio plays a tone of 1 kHz at -20 dBFS in both channels. One after the other, these
record it from the same server:

  spectrod, idle       ``spectrod run``, to which nobody subscribes
  spectrod, 40 ms      the same with blocks of 40 ms (``source.block_ms``)
  spectrod, one        as the first with one subscriber, 46.9 spectra a second of each channel
  cava                 two times 64 bars, 47 times a second, to one reader
  snapserver, idle     FLAC, to which nobody listens
  snapserver, one      the same with one ``snapclient``

Before a figure counts, each must have shown the tone. Of each: processor time, sleeps that ended
(wake-ups), memory (PSS) and threads, its child processes included and its readers not; and the
processor time of the sound server meanwhile, which works more for short blocks. A program that is
missing is installed as root (packages cava, snapserver, snapclient), and else left out.
"""

import argparse
import math
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import numpy as np
from _report import ROOT, Report, new_report, write_report
from on_demand import reading

from spectrod import client
from spectrod.apps.bench.pulseaudio import CHANNELS, FS, PulseServer
from spectrod.apps.bench.usage import process_tree, processor_seconds, proportional_bytes, wake_ups

TONE_HZ, TONE_DBFS = 1000, -20.0
ROWS_PER_S = 47
BARS = 64
BAR_LOWEST_HZ, BAR_HIGHEST_HZ = 50, 10_000

_SETTLE_S = 3.0
_LIMIT_S = 120.0
_PROCESSES = 2  # the daemon and its capture; a third one compiles kernels at first

_CAVA = f"""
[general]
framerate = {ROWS_PER_S}
bars = {2 * BARS}
lower_cutoff_freq = {BAR_LOWEST_HZ}
higher_cutoff_freq = {BAR_HIGHEST_HZ}
[input]
method = pulse
source = vsink.monitor
[output]
method = raw
raw_target = {{fifo}}
data_format = binary
bit_format = 16bit
channels = stereo
"""
_SNAPSERVER = f"""
[server]
datadir = {{folder}}
[http]
enabled = false
[tcp]
enabled = false
[stream]
bind_to_address = 127.0.0.1
port = {{port}}
source = alsa:///?name=tone&device=pulse
sampleformat = {FS}:16:{CHANNELS}
codec = flac
"""


class UnfitError(Exception):
    """A program is missing, or does not do what is to be measured."""


def main() -> None:
    """Measure all in turns; print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="each measurement (20)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (3)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        write_tone()
        return
    _install("cava", "snapserver", "snapclient")
    report = new_report("idle")
    with PulseServer() as server, server.environment(), _tone(server):
        taken = measure_all(server, args.seconds, args.rounds)
    print(f"{'':18}{'processor':>10}{'wake-ups/s':>12}{'PSS':>10}{'threads':>9}{'server':>9}")
    for name, figures in taken.items():
        report["results"].append({"what": name} | figures)
        print(
            f"{name:18}{figures['processor']:>10.2%}{figures['wake_ups_per_s']:>12.0f}"
            f"{figures['pss_mb']:>7.1f} MB{figures['threads']:>9.0f}{figures['server']:>9.2%}"
        )
    if args.json:
        write_report(report, args.json)


def measure_all(server: PulseServer, seconds: float, rounds: int) -> dict[str, Report]:
    """Return the medians of each that is there and showed the tone."""
    taken: dict[str, list[Report]] = {}
    left_out = set()
    for _ in range(rounds):
        for name, run in ROLES.items():
            if name in left_out:
                continue
            try:
                with tempfile.TemporaryDirectory() as folder, run(Path(folder)) as pid:
                    time.sleep(_SETTLE_S)
                    taken.setdefault(name, []).append(measure(pid, server, seconds))
            except UnfitError as error:
                left_out.add(name)
                taken.pop(name, None)
                print(f"{name}: LEFT OUT: {error}", flush=True)
    return {
        name: {key: statistics.median(one[key] for one in figures) for key in figures[0]}
        for name, figures in taken.items()
    }


def measure(pid: int, server: PulseServer, seconds: float) -> Report:
    """Return what a process and its children take, and the sound server meanwhile."""
    assert server.process is not None
    tree, begin_s = list(process_tree(pid)), time.monotonic()
    before_s, woken = sum(map(processor_seconds, tree)), sum(map(wake_ups, tree))
    server_s = processor_seconds(server.process.pid)
    time.sleep(seconds)
    if list(process_tree(pid)) != tree:
        raise UnfitError("a process of it began or ended meanwhile")
    took_s = time.monotonic() - begin_s
    return {
        "processor": (sum(map(processor_seconds, tree)) - before_s) / took_s,
        "wake_ups_per_s": (sum(map(wake_ups, tree)) - woken) / took_s,
        "pss_mb": sum(map(proportional_bytes, tree)) / 1e6,
        "threads": sum(len(list(Path(f"/proc/{one}/task").iterdir())) for one in tree),
        "server": (processor_seconds(server.process.pid) - server_s) / took_s,
    }


# ---- the signal


def write_tone() -> None:
    """Write the tone without end: stereo, int16, whole periods of 1 kHz at a time."""
    level = 10.0 ** (TONE_DBFS / 20.0) * 32767.0
    mono = level * np.sin(2.0 * np.pi * TONE_HZ / FS * np.arange(FS))
    second = np.repeat(np.rint(mono).astype("<i2"), CHANNELS).tobytes()
    while True:
        sys.stdout.buffer.write(second)


@contextmanager
def _tone(server: PulseServer) -> Iterator[None]:
    generate = [sys.executable, __file__, "--play"]
    play = ["pacat", "--playback", "--raw", "--format=s16le", f"--rate={FS}", "--device=vsink"]
    with (
        _process(generate, stdout=subprocess.PIPE) as generator,
        _process([*play, f"--channels={CHANNELS}"], stdin=generator.stdout),
    ):
        server.wait_for("list", "short", "sink-inputs")
        yield


# ---- spectrod


@contextmanager
def _spectrod(folder: Path, *, is_read: bool, block_ms: float = 10.0) -> Iterator[int]:
    endpoint = f"ipc://{folder}/s"
    config = folder / "spectrod.toml"
    config.write_text(f"[source]\nblock_ms = {block_ms}\n", encoding="ascii")
    options = ("--source", "soundcard:pulse", "--rate", str(FS), "--channels", str(CHANNELS))
    command = [sys.executable, "-m", "spectrod", "run", "--show", "none", *options]
    command += ["--config", str(config)]
    with ExitStack() as stack:
        daemon = stack.enter_context(_process([*command, "--publish", endpoint]))
        with client.subscribe(endpoint, "spec/", timeout_s=_LIMIT_S) as frames:
            shown: set[str] = set()  # topics, one of each channel
            _await(lambda: _all_show_tone(next(frames), shown), "its spectra show no tone")
        _await(lambda: len(list(process_tree(daemon.pid))) == _PROCESSES, "compiles on and on")
        if is_read:
            stack.enter_context(reading(endpoint))
        yield daemon.pid


def _all_show_tone(frame: client.Frame, shown: set[str]) -> bool:
    peak = int(frame.values.argmax())
    is_near = abs(frame.f[peak] - TONE_HZ) <= frame.f[1]
    if is_near and abs(frame.values[peak] - TONE_DBFS) < 1.5:
        shown.add(frame.topic)
    return len(shown) == CHANNELS


# ---- cava


@contextmanager
def _cava(folder: Path) -> Iterator[int]:
    fifo, config = folder / "bars", folder / "config"
    os.mkfifo(fifo)
    config.write_text(_CAVA.format(fifo=fifo))
    newest = [b""]

    def read() -> None:
        with fifo.open("rb") as bars:
            while row := bars.read(4 * BARS):
                newest[0] = row

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with _process([_program("cava"), "-p", str(config)]) as process:
        _await(lambda: _bars_show_tone(newest[0]), "its bars show no tone", process)
        yield process.pid


def _bars_show_tone(row: bytes) -> bool:
    """Tell whether the highest bar of both channels is that of the tone, give or take a third."""
    if not row:
        return False
    bars = np.frombuffer(row, "<u2").reshape(2, BARS)
    octaves = math.log2(BAR_HIGHEST_HZ / BAR_LOWEST_HZ)
    # The left channel's bars are mirrored: the lowest are in the middle.
    highest = np.array([BARS - 1 - bars[0].argmax(), bars[1].argmax()])
    peaks_hz = BAR_LOWEST_HZ * 2.0 ** (octaves * (highest + 0.5) / BARS)
    return bool(bars.max() and np.all(np.abs(np.log2(peaks_hz / TONE_HZ)) < 1 / 3))


# ---- snapserver


@contextmanager
def _snapserver(folder: Path, *, is_read: bool) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "snapserver.conf"
    config.write_text(_SNAPSERVER.format(folder=folder, port=port))
    with ExitStack() as stack:
        server = stack.enter_context(_process([_program("snapserver"), "--config", str(config)]))
        samples = folder / "samples"
        client_command = [_program("snapclient"), "--host", "127.0.0.1", "--port", str(port)]
        client_command += ["--hostID", "bench", "--player", f"file:filename={samples}"]
        listener = stack.enter_context(_process(client_command))
        _await(lambda: _samples_show_tone(samples), "its listener hears no tone", server, listener)
        if not is_read:
            listener.terminate()
            listener.wait()
        yield server.pid


def _samples_show_tone(path: Path) -> bool:
    """Tell whether the newest tenth of a second is the tone in both channels."""
    n_bytes = FS // 10 * CHANNELS * 2
    if not path.exists() or path.stat().st_size < n_bytes:
        return False
    with path.open("rb") as file:
        file.seek(path.stat().st_size // 4 * 4 - n_bytes)
        samples = np.frombuffer(file.read(n_bytes), "<i2").reshape(-1, CHANNELS) / 32768.0
    powers = np.abs(np.fft.rfft(samples, axis=0) / (len(samples) / 2)) ** 2
    levels = 10.0 * np.log10(np.maximum(powers.max(axis=0), 1e-30))
    peaks_hz = powers.argmax(axis=0) * 10
    return bool(np.all(peaks_hz == TONE_HZ) and np.all(np.abs(levels - TONE_DBFS) < 1.0))


# ---- processes


@contextmanager
def _process(
    command: list[str], stdin: object = subprocess.DEVNULL, stdout: object = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    process: subprocess.Popen[bytes] = subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _await(is_so: Callable[[], bool], otherwise: str, *processes: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _LIMIT_S
    while not is_so():
        ended = [one.args for one in processes if one.poll() is not None]
        if ended:
            raise UnfitError(f"has ended: {ended[0]}")
        if time.monotonic() > deadline_s:
            raise UnfitError(f"{otherwise} within {_LIMIT_S:g} s")
        time.sleep(0.1)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UnfitError(f"{name} is not installed; it is in the package {name}")
    return path


def _install(*names: str) -> None:
    if missing := [name for name in names if shutil.which(name) is None]:
        subprocess.run([ROOT / "scripts" / "packages", *missing], check=False)


ROLES: Mapping[str, Callable[[Path], AbstractContextManager[int]]] = {
    "spectrod, idle": lambda folder: _spectrod(folder, is_read=False),
    "spectrod, 40 ms": lambda folder: _spectrod(folder, is_read=False, block_ms=40.0),
    "spectrod, one": lambda folder: _spectrod(folder, is_read=True),
    "cava": _cava,
    "snapserver, idle": lambda folder: _snapserver(folder, is_read=False),
    "snapserver, one": lambda folder: _snapserver(folder, is_read=True),
}


if __name__ == "__main__":
    main()
