"""Kill recordings at random moments, and compare what is there with what was recorded.

    python benchmarks/kill_recording.py [--kills 200] [--format NAME ...] [--json FILE]
    python benchmarks/kill_recording.py --daemon [--kills 50]

Each round starts ``spectrod record`` on noise in real time, which writes all formats at once, and
kills it (SIGKILL) at a random moment between its start and shortly after its end: while it starts,
while it records, while it finishes. What is there is opened by each format's reader, and every row
and every sample is compared with the signal's, computed again. Required:

- formats that grow (.spd, .wav, .flac) open, and hold nothing false, nothing twice, no false gap;
- what a reader saw of a segment before the kill is still there after it;
- of what was older than ``--bound`` seconds at the kill nothing is missing;
- other formats have their name only if they are whole.

With ``--daemon`` it is ``spectrod run`` with a table ``[recordings.*]``, segments that rotate each
second and sound beside them. The daemon is then started again, which must make whole what was left.

Killing is no power failure: the system keeps what it was given. ``spectrod record`` says on its own
of nothing that it is on the disk; what a reader can see is what counts as said.
"""

import argparse
import contextlib
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import soundfile
from _kill_checks import (
    FS,
    PART,
    SIGNAL,
    Kill,
    Tally,
    Truth,
    check_rows,
    check_samples,
    check_whole,
    count_rows,
    found,
)
from _report import new_report, write_report

from spectrod.formats.sound import recover as recover_sound
from spectrod.lib.errors import SpectrodError
from spectrod.recording.inputs import open_recording

DAEMON_S = 4.0
GROWING = ("spd", "wav", "flac")
WHOLE = ("nc", "h5", "zarr", "npz", "npy", "csv", "png", "jpg", "webp", "pgm", "svg")
_PYTHON = (sys.executable, "-m", "spectrod")
_ANALYSIS = ("--win-length", "256", "--hop", "64", "--engine", "numpy")
_CONFIG = """
source = {{ uri = "signal:{signal}", samplerate = {fs}, name = "noise" }}
analysis = {{ win_length = 256, hop = 64, scaling = "density" }}
engine = {{ engine = "numpy" }}
publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
control = {{ endpoints = [], state_folder = "{folder}" }}
[recordings.killed]
samples = "wav"
rotate_s = 1
min_free_mb = 0
"""


def kill_when_due(
    process: "subprocess.Popen[str]", due_s: float, segment: Path, duration_s: float = math.inf
) -> Kill:
    """Wait until a moment of the monotonic clock, look at what is there, and kill."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, due_s - time.monotonic()))
    seen = count_rows(found(segment))
    was_running = process.poll() is None
    t_s = time.time()
    process.send_signal(signal.SIGKILL)
    _, stderr = process.communicate()
    if not was_running and process.returncode:
        raise SystemExit(f"spectrod: exit code {process.returncode}: {stderr}")
    return Kill(t_s, seen, was_running, duration_s)


# ---- spectrod record


def start_record(
    folder: Path, formats: Sequence[str], duration_s: float
) -> "subprocess.Popen[str]":
    """Begin to record into a folder."""
    outputs = [text for name in formats for text in ("-o", str(folder / f"x.{name}"))]
    source = (f"signal:{SIGNAL}", "--rate", str(FS), "--pace", "realtime")
    command = [*_PYTHON, "record", *source, "--duration", str(duration_s), *_ANALYSIS, *outputs]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def check_segment(tally: Tally, truth: Truth, path: Path, kill: Kill) -> float:
    """Check a segment; return the UTC of the recording's begin [s], 0 if it has no rows."""
    there = found(path)
    if not there.exists():
        tally.outcomes["absent"] += 1
        return 0.0
    tally.outcomes["unfinished" if there.name.endswith(PART) else "finished"] += 1
    try:
        n_rows, begin_s, end_s = check_rows(tally, truth, open_recording(there))
    except SpectrodError as error:
        if kill.seen or there == path:
            tally.problems.append(str(error))
        return 0.0
    tally.vanished += max(0, kill.seen - n_rows)
    if n_rows:
        until_s = min(kill.t_s, begin_s + kill.duration_s)
        tally.loss_s = max(tally.loss_s, until_s - end_s)
    return begin_s


def check_sound(tally: Tally, truth: Truth, path: Path, kill: Kill, begin_s: float) -> None:
    """Check a sound file as it is, then as recovery leaves it."""
    there = found(path)
    if not there.exists():
        tally.outcomes["absent"] += 1
        return
    is_part = there.name.endswith(PART)
    tally.outcomes["unfinished" if is_part else "finished"] += 1
    # libsndfile cannot read FLAC of unknown length, as it is until it is finished or recovered.
    is_readable = there.stat().st_size > 0 and (there == path or path.suffix != ".flac")
    try:
        n_before = check_samples(tally, truth, there) if is_readable else 0
        if is_part:
            recover(there)
        n_samples = check_samples(tally, truth, path) if path.exists() else 0
    except (SpectrodError, OSError, soundfile.SoundFileError) as error:
        tally.problems.append(f"{there.name}: {error}")
        return
    if n_samples < n_before:
        tally.problems.append(f"{there.name}: {n_before} samples, {n_samples} once recovered")
    if begin_s:
        until_s = min(kill.t_s, begin_s + kill.duration_s)
        tally.loss_s = max(tally.loss_s, until_s - begin_s - n_samples / FS)


def recover(part: Path) -> None:
    """Make a sound file whole, if there is any of it."""
    try:
        recover_sound(part)
    except SpectrodError as error:
        if "holds no samples" not in str(error):
            raise


def kill_records(
    n_kills: int, formats: Sequence[str], moments: random.Random, duration_s: float
) -> dict[str, Tally]:
    """Run all rounds of ``spectrod record``."""
    truth, tallies = Truth(duration_s + 1.0), {name: Tally() for name in formats}
    whole_s = math.inf
    for number in range(-1, n_kills):
        with tempfile.TemporaryDirectory(prefix="spectrod-kill-") as name:
            folder, start_s = Path(name), time.monotonic()
            process = start_record(folder, formats, duration_s)
            # The first round is not killed: it says how long one takes, as do others that end.
            wait_s = 60.0 if number < 0 else moments.uniform(0.0, whole_s)
            kill = kill_when_due(process, start_s + wait_s, folder / "x.spd", duration_s)
            if not kill.was_running:
                whole_s = min(whole_s, time.monotonic() - start_s)
            check_round(folder, kill, truth, tallies)
        print(f"\r{number + 1} of {n_kills}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return tallies


def check_round(folder: Path, kill: Kill, truth: Truth, tallies: dict[str, Tally]) -> None:
    """Check all that a round has left."""
    begin_s = check_segment(tallies["spd"], truth, folder / "x.spd", kill)
    for name, tally in tallies.items():
        path = folder / f"x.{name}"
        if name in ("wav", "flac"):
            check_sound(tally, truth, path, kill, begin_s)
        elif name != "spd":
            check_whole(tally, truth, path, kill.duration_s)
            if not kill.was_running and not path.exists():
                tally.problems.append(f"{path.name}: finished, and not there")


# ---- spectrod run


def start_daemon(folder: Path) -> "subprocess.Popen[str]":
    """Start a daemon that records below a folder."""
    config = folder / "spectrod.toml"
    config.write_text(_CONFIG.format(folder=folder, signal=SIGNAL, fs=FS))
    command = [*_PYTHON, "run", "--config", str(config), "--show", "none"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def kill_daemons(n_kills: int, moments: random.Random) -> dict[str, Tally]:
    """Run all rounds of ``spectrod run``."""
    truth, tally, sound = Truth(DAEMON_S + 1.0), Tally(), Tally()
    for number in range(n_kills):
        with tempfile.TemporaryDirectory(prefix="spectrod-kill-") as name:
            folder = Path(name)
            files = folder / "recordings" / "killed" / "noise"
            due_s = time.monotonic() + moments.uniform(0.0, DAEMON_S)
            kill = kill_when_due(start_daemon(folder), due_s, files)
            n_before, begin_s = check_segments(tally, truth, files, kill)
            kept = [path.name.partition(".")[0] for path in files.glob("*.*")]
            restart(folder)
            n_samples = check_recovered(tally, sound, truth, files, kept, n_before)
            if n_before:
                sound.loss_s = max(sound.loss_s, kill.t_s - begin_s - n_samples / FS)
        print(f"\r{number + 1} of {n_kills}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {"daemon, .spd": tally, "daemon, .wav": sound}


def check_segments(tally: Tally, truth: Truth, files: Path, kill: Kill) -> tuple[int, float]:
    """Check all segments of a daemon that was killed; return their rows, and their begin [s]."""
    if not files.is_dir() or not any(files.glob("*.spd*")):
        tally.outcomes["absent"] += 1
        return 0, 0.0
    tally.outcomes["unfinished" if any(files.glob("*.part")) else "between files"] += 1
    try:
        n_rows, begin_s, end_s = check_rows(tally, truth, open_recording(files))
    except SpectrodError as error:
        tally.problems.append(str(error))
        return 0, 0.0
    tally.vanished += max(0, kill.seen - n_rows)
    if n_rows:
        tally.loss_s = max(tally.loss_s, kill.t_s - end_s)
    return n_rows, begin_s


def restart(folder: Path) -> None:
    """Start a daemon on the existing files, and end it once its own recording has started."""
    process = start_daemon(folder)
    assert process.stderr is not None
    for line in process.stderr:
        if "publishing at" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate()
    if process.returncode:
        raise SystemExit(f"spectrod run: exit code {process.returncode}")


def check_recovered(
    tally: Tally, sound: Tally, truth: Truth, files: Path, kept: Sequence[str], n_before: int
) -> int:
    """Check what the next daemon has made of what was left; return how many samples there are."""
    first = files / "first"
    first.mkdir(parents=True)
    left = [path for path in files.iterdir() if path.name.partition(".")[0] in kept]
    for path in left:
        path.replace(first / path.name)
        if path.suffix == PART:
            tally.problems.append(f"{path.name}: was not made whole")
    n_samples = 0
    for path in sorted(first.glob("*.wav")):
        n_samples += check_samples(sound, truth, path, n_samples)
        sound.outcomes["recovered"] += 1
    if n_before:
        n_rows, _, _ = check_rows(tally, truth, open_recording(first))
        tally.vanished += max(0, n_before - n_rows)
    return n_samples


# ---- the report


def problems_of(name: str, tally: Tally, bound_s: float) -> list[str]:
    """List the violated conditions, one per line."""
    lines = [f"{name}: {problem}" for problem in tally.problems]
    if tally.false:
        lines.append(f"{name}: {tally.false} false of {tally.compared}")
    if tally.vanished:
        lines.append(f"{name}: {tally.vanished} rows were seen and have vanished")
    if tally.loss_s > bound_s:
        lines.append(f"{name}: {tally.loss_s:.2f} s lost: must be at most {bound_s}")
    return lines


def print_table(tallies: dict[str, Tally]) -> None:
    """Print a line a format."""
    print(f"{'format':<14}{'compared':>10}{'false':>7}{'vanished':>10}{'lost [s]':>10}  rounds")
    for name, tally in tallies.items():
        outcomes = ", ".join(f"{n} {what}" for what, n in sorted(tally.outcomes.items()))
        counts = f"{tally.compared:>10}{tally.false:>7}{tally.vanished:>10}"
        print(f"{name:<14}{counts}{tally.loss_s:>10.2f}  {outcomes}")


def main() -> int:
    """Run the rounds, print the table; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="(%(default)s)")
    parser.add_argument("--format", action="append", metavar="NAME", help="also spd; default: all")
    parser.add_argument("--daemon", action="store_true", help="spectrod run instead of record")
    parser.add_argument("--duration", type=float, default=1.5, metavar="S", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=20260501, help="of the moments (%(default)s)")
    parser.add_argument("--bound", type=float, default=1.0, metavar="S", help="(%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write a report")
    args = parser.parse_args()
    moments = random.Random(args.seed)  # noqa: S311 - not for secrets
    if args.daemon:
        tallies = kill_daemons(args.kills, moments)
    else:
        formats = dict.fromkeys(["spd", *(args.format or (*GROWING, *WHOLE))])
        tallies = kill_records(args.kills, list(formats), moments, args.duration)
    print_table(tallies)
    problems = [
        line for name, one in tallies.items() for line in problems_of(name, one, args.bound)
    ]
    print("\n".join(problems) or "nothing is false, nothing that was there has vanished")
    report = new_report("kill_recording")
    report |= {"kills": args.kills, "seed": args.seed, "bound_s": args.bound}
    report["results"] = [{"format": name, **vars(one)} for name, one in tallies.items()]
    if args.json:
        write_report(report, args.json)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
