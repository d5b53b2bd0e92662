"""--jobs: parts that processes measure have the rows of the whole."""

import argparse
import datetime as dt
import logging
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.measurements import intervals
from spectrod.apps.measurements.bound_source import bind
from spectrod.apps.measurements.part_processes import _measure_part
from spectrod.apps.measurements.parts import RecordingPart, cut_parts
from spectrod.cli import main
from spectrod.lib import ordered_work
from spectrod.lib.errors import InputError
from spectrod.measure.kinds import KINDS

FS = 8000
BEGIN = dt.datetime(2026, 5, 1, 4, 3, 7, tzinfo=dt.UTC)
MICROPHONE = """
reference = "20 uPa"
sensitivity = "50 mV/Pa"
gain_db = 20.0
full_scale_v = 2.0
[channels.1.response]
table = [[100, 0], [900, 0], [1100, 6], [3900, 6]]
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(folder, times_s, seconds, seed=1):
    """Write a file of two channels for each time after the first."""
    Path(folder).mkdir()
    rng = np.random.default_rng(seed)
    for time_s in times_s:
        name = f"{BEGIN + dt.timedelta(seconds=time_s):%Y%m%d_%H%M%S}.wav"
        x = 0.1 * rng.standard_normal((seconds * FS + 1, 2))
        soundfile.write(f"{folder}/{name}", x, FS, subtype="PCM_16")


def duty(n=8):
    write("duty", [30 * k for k in range(n)], 3)
    return "duty"


def continuous(n=4):
    write("continuous", [6 * k for k in range(n)], 6)
    return "continuous"


@pytest.fixture
def here(monkeypatch):
    """Let parts be measured in this process."""
    parts = []

    def measure_parts(args, defaults, given, _jobs):
        parts.extend(given)
        root = logging.getLogger()
        for part in given:
            before = root.handlers[:], root.level
            own = argparse.Namespace(**vars(args))
            try:
                yield _measure_part(own, defaults, part)
            finally:
                root.handlers[:], root.level = before

    monkeypatch.setattr(intervals, "measure_parts", measure_parts)
    return parts


def rows_of(*arguments, code=0):
    """Run the command; return the rows of its file."""
    assert main([*arguments, "-o", "t.csv"]) == code
    return [one for one in Path("t.csv").read_text("utf-8").splitlines() if one[0] != "#"]


LEVELS = "LAF,L10,L90,true_peak,LCpeak"


@pytest.mark.parametrize(
    ("make", "arguments", "is_cut"),
    [
        (duty, ["levels", "--interval", "2s", "--quantity", LEVELS], True),
        (duty, ["levels", "--interval", "1min", "--bands", "octave"], True),
        (duty, ["levels", "--interval", "10s", "--calibration", "mic.toml"], True),
        (duty, ["levels", "--interval", "7s", "--align", "start", "--start", "20"], True),
        (duty, ["levels", "--interval", "7s", "--stop", "-31"], True),
        (duty, ["levels", "--interval", "1h", "--time-zone", "UTC"], False),
        (duty, ["features", "--interval", "2s", "--quantity", "flux,ACI_1s"], True),
        (continuous, ["features", "--interval", "3s", "--start", "2.2"], True),
        (continuous, ["features", "--interval", "3s", "--align", "start"], True),
        (continuous, ["tones", "--interval", "3s", "--quantity", "level,OBW"], True),
    ],
)
def test_parts_have_the_rows_of_the_whole(make, arguments, is_cut, here, capsys, tmp_path):
    """Rows and flags are those of one process, to the bit."""
    (tmp_path / "mic.toml").write_text(MICROPHONE)
    command, *options = arguments
    if command != "levels":
        options += ["--win-length", "1024"]
    arguments = [command, make(), *options]
    expected = rows_of(*arguments)
    assert rows_of(*arguments, "--jobs", "2") == expected
    assert bool(here) == is_cut
    assert all(a.stop == b.first for a, b in pairwise(here))
    assert [part.is_last for part in here] == [False] * (len(here) - 1) + [True] * is_cut
    capsys.readouterr()


def test_the_line_of_all_intervals(here, capsys):
    """The table of parts ends with that of the whole."""
    arguments = ["levels", duty(), "--interval", "2s", "--quantity", "LAeq,LAFmax,L10,LAFmin"]
    assert main(arguments) == 0
    expected = capsys.readouterr().out
    assert main([*arguments, "--jobs", "2"]) == 0
    assert capsys.readouterr().out == expected
    assert here


@pytest.mark.slow
def test_processes_have_the_rows_of_the_whole(capsys):
    """Processes give the same rows as one."""
    arguments = ["features", continuous(), "--interval", "3s"]
    expected = rows_of(*arguments)
    assert rows_of(*arguments, "--jobs", "2") == expected
    capsys.readouterr()


def test_why_one_process_measures_all(here, capsys):
    """A line says why a recording is not cut."""
    folder = continuous(2)
    for arguments, reason in (
        (["levels", folder], "filters go on over all of it"),
        (["features", folder, "--interval", "1h"], "it is one interval"),
        (["tones", folder, "--interval", "3s", "--quantity", "tracks"], "tracks go on from"),
    ):
        assert main([*arguments, "--jobs", "3"]) == 0
        assert f"--jobs 3: one process measures all: {reason}" in capsys.readouterr().err
    assert not here


def test_parts_are_bounded():
    """A part has at most the intervals whose rows may wait in memory."""
    soundfile.write("a.wav", np.zeros(FS * 400), FS, subtype="PCM_16")
    options = dict.fromkeys(("start", "stop", "duration", "start_time", "loop", "pace", "config"))
    args = argparse.Namespace(**options, source="a.wav", command="features", log_level="error")
    settings = KINDS["features"]("x", interval_s=0.01, win_length=64)
    with suppress(AttributeError):
        args.__dict__.update({f"measurement.{one}": None for one in settings.__struct_fields__})
    bound = bind(args, settings)
    parts = cut_parts(bound, bound.meter.open(0), 1)
    assert [part.stop - part.first for part in parts[:2]] == [10_000 * 80] * 2
    assert parts[-1] == RecordingPart(30_000 * 80, 400 * FS, is_last=True)


def test_an_interrupt_keeps_the_rows_so_far(here, monkeypatch, capsys):
    """Ctrl-C ends the file with the parts that are complete; without any there is no file."""
    whole = rows_of("levels", duty(), "--interval", "2s")
    complete = intervals.measure_parts

    def interrupted(*given):
        if not is_early:
            yield next(complete(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(intervals, "measure_parts", interrupted)
    is_early = True
    assert main(["levels", "duty", "--interval", "2s", "--jobs", "2", "-o", "u.csv"]) == 130
    assert not Path("u.csv").exists()
    is_early = False
    rows = rows_of("levels", "duty", "--interval", "2s", "--jobs", "2", code=130)
    assert rows == whole[: len(rows)]
    assert 1 < len(rows) < len(whole)
    assert here
    capsys.readouterr()


def test_a_process_that_ends_leaves_no_file(monkeypatch, capsys):
    """A process that is killed is one error, and no file is left."""
    monkeypatch.setattr(ordered_work, "serve", logging.debug)
    folder = duty(4)
    assert main(["levels", folder, "--interval", "2s", "-o", "t.csv", "--jobs", "2"]) == 69
    error = capsys.readouterr().err
    assert error == "spectrod: a process that measured ended with exit code 0\n"
    assert [path.name for path in Path().iterdir()] == ["duty"]


def test_a_file_that_is_read_in_part_is_reported(here, capsys):
    """What a process finds out about a file is said once, with the exit code of one process."""
    folder = duty(4)
    damaged = sorted(Path(folder).iterdir())[2]
    damaged.write_bytes(damaged.read_bytes()[:-20_001])
    found = []
    for jobs in ("1", "2"):
        rows = rows_of("levels", folder, "--interval", "2s", "--jobs", jobs, code=65)
        said = [one.split(" ", 1)[1] for one in capsys.readouterr().err.splitlines()]
        found.append((rows, said))
    assert found[0] == found[1]
    assert "files left out or read in part: 1" in "".join(found[0][1])


def test_the_error_of_a_process_is_the_commands(monkeypatch):
    """A failure keeps its kind and its text."""
    link = argparse.Namespace(recv=lambda: ordered_work.WorkFailure(InputError, "a.wav: broken"))
    process = ordered_work.WorkProcess(None, None)
    process.link, process.number = link, 3
    with pytest.raises(InputError, match=r"a\.wav: broken"):
        process.take()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["levels", "a.wav", "--jobs", "0"], "'0': must be at least 1"),
        (["levels", "a.wav", "--jobs", "65"], "--jobs 65: must be 1 to 64"),
        (["levels", "a.wav", "--jobs", "two"], "must be a whole number"),
        (["levels", "signal:white,-20", "--duration", "1", "--jobs", "2"], "must be of recordings"),
        (["features", "a.wav", "--pace", "realtime", "--jobs", "2"], "must be without --pace"),
        (["tones", "a.wav", "--jobs", "2"], "--jobs 2: must be with --interval"),
        (["transfer", "a.wav", "--interval", "1s", "--jobs", "2"], "--jobs"),
    ],
)
def test_wrong_arguments(arguments, text, capsys):
    """Each wrong number or source is one error that names it."""
    soundfile.write("a.wav", np.zeros(FS), FS)
    assert main(arguments) == 2
    assert text in capsys.readouterr().err
