"""Parts of recordings, selected by position and by UTC."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.cli.picture_options import like
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.source.files.soundfile import SoundFile

FS = 8000
SECONDS = 10.0
SPD = ["--win-length", "800", "--hop", "800"]  # one row per 0.1 s


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECTROD_ENGINE_ENGINE", "numpy")


def ramp(path, seconds=SECONDS, begin=0.0):
    """Write samples whose value is their time, in 16ths of a second."""
    n = round(seconds * FS)
    x = (np.floor((begin + np.arange(n) / FS) * 16.0) + 1.0) / 1024.0
    soundfile.write(path, x, FS, subtype="PCM_16")


def times_of(path):
    """Return the times of the first sample and past the last one, in 16ths of a second."""
    x, _ = soundfile.read(path)
    return round(x[0] * 1024.0) - 1, round(x[-1] * 1024.0), len(x)


@pytest.mark.parametrize(
    ("arguments", "first_s", "stop_s"),
    [
        (["--start", "2", "--duration", "3"], 2.0, 5.0),
        (["--start", "2.5s"], 2.5, 10.0),
        (["--start", "2", "--stop", "5"], 2.0, 5.0),
        (["--stop", "0:00:04"], 0.0, 4.0),
        (["--start", "-3", "--stop", "-1"], 7.0, 9.0),
        (["--stop", "T04:30:05"], 0.0, 5.0),
        (["--start", "9", "--stop", "11"], 9.0, 10.0),
        (["--start", "0:00:09", "--duration", "500ms"], 9.0, 9.5),
        (["--start", "00:04", "--duration", "00:00:01"], 4.0, 5.0),
        (["--start", "-3"], 7.0, 10.0),
        (["--start=-0:03", "--duration", "1s"], 7.0, 8.0),
        (["--start", "-0:03", "--duration", "1s"], 7.0, 8.0),
        (["--start", "-10"], 0.0, 10.0),
        (["--duration", "1m"], 0.0, 10.0),
        (["--start", "T04:30:02"], 2.0, 10.0),
        (["--start", "04:30:02Z"], 2.0, 10.0),
        (["--start", "2026-05-01T04:30:02Z"], 2.0, 10.0),
    ],
)
@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_part_of_a_file(arguments, first_s, stop_s, suffix):
    """A position counts from the start, or from the end with a minus sign; UTC is absolute."""
    name = f"20260501_043000.{suffix}"
    ramp(name)
    assert main(["record", name, "-o", "out.wav", *arguments]) == 0
    n = round((stop_s - first_s) * FS)
    assert times_of("out.wav") == (round(first_s * 16), round(stop_s * 16), n)


@pytest.mark.parametrize("name", ["a.wav", "pcm:a.raw", "site"])
def test_part_of_a_file_without_a_date(name, tmp_path):
    """Positions work for files without a date, raw files and folders."""
    ramp("a.wav")
    (tmp_path / "a.raw").write_bytes((tmp_path / "a.wav").read_bytes()[-round(SECONDS * FS) * 2 :])
    (tmp_path / "site").mkdir()
    ramp("site/1.wav", 4.0)
    ramp("site/2.wav", 6.0, begin=4.0)
    arguments = ["--rate", "8k"] if name.startswith("pcm:") else []
    assert main(["record", name, "-o", "out.wav", "--start", "5", *arguments]) == 0
    assert times_of("out.wav") == (80, 160, 5 * FS)
    assert main(["record", name, "-o", "end.wav", "--start", "-7", *arguments]) == 0
    assert times_of("end.wav") == (48, 160, 7 * FS)


def test_part_of_a_folder_with_a_gap(tmp_path):
    """A part that starts in a gap starts with the rest of the gap; one after a gap is in place."""
    (tmp_path / "site").mkdir()
    ramp("site/20260501_043000.wav", 2.0)
    ramp("site/20260501_043006.wav", 4.0, begin=6.0)
    assert main(["record", "site", "-o", "gap.spd", "--start", "4", *SPD]) == 0
    rows = list(SegmentReader("gap.spd").batches())
    assert sum(batch.n_frames for batch in rows) == 40
    assert rows[0].t_utc_ns[0] == 1_777_609_806 * 10**9
    assert rows[0].gap_samples == 2 * FS
    assert main(["record", "site", "-o", "out.wav", "--start", "7.5"]) == 0
    assert times_of("out.wav") == (120, 160, round(2.5 * FS))


def test_part_of_standard_input(monkeypatch, tmp_path, capsys):
    """A part of standard input can skip its first seconds; positions from its end are refused."""
    ramp("a.wav")
    samples = (tmp_path / "a.wav").read_bytes()[-round(SECONDS * FS) * 2 :]
    (tmp_path / "a.raw").write_bytes(samples)
    for start, exit_code in (("4", 0), ("-4", 2), ("2026-05-01T00:00Z", 2)):
        with Path("a.raw").open("rb") as file:
            monkeypatch.setattr("sys.stdin", file)
            found = main(["record", "-", "--rate", "8kHz", "-o", "out.wav", "--start", start])
        assert found == exit_code
    assert times_of("out.wav") == (64, 160, 6 * FS)
    backwards, dated = capsys.readouterr().err.splitlines()
    assert backwards == "spectrod: --start -4: counts from the end, and - has no known end"
    assert dated.endswith("- has no start time; give --start-time, or a position as 12.5")


@pytest.mark.parametrize("name", ["a.spd", "a.npz", "a.csv"])
@pytest.mark.parametrize("command", ["record", "convert"])
@pytest.mark.parametrize(
    ("arguments", "first_row", "stop_row"),
    [
        (["--start", "2", "--duration", "3"], 20, 50),
        (["--start", "0:08"], 80, 100),
        (["--start", "-2s", "--duration", "500ms"], 80, 85),
        (["--start", "2", "--stop", "T04:30:05"], 20, 50),
        (["--start", "T04:30:09"], 90, 100),
        (["--duration", "1.5s"], 0, 15),
    ],
)
def test_part_of_stored_spectra(name, command, arguments, first_row, stop_row):
    """Positions select the same rows of segments and of exported spectra."""
    ramp("20260501_043000.wav")
    made = ["-o", "a.spd", "-o", "a.npz", "-o", "a.csv"]
    assert main(["record", "20260501_043000.wav", *made, *SPD]) == 0
    out = ["-o", "b.spd"] if command == "record" else ["b.spd"]
    assert main([command, name, *out, *arguments]) == 0
    times = np.concatenate([batch.t_utc_ns for batch in SegmentReader("b.spd").batches()])
    rows = (times - 1_777_609_800 * 10**9) / 1e8
    assert (rows[0], rows[-1] + 1) == pytest.approx((first_row, stop_row))


def test_stop_is_a_position_too():
    """A part stops at a position from the start or from the end."""
    ramp("20260501_043000.wav")
    assert main(["record", "20260501_043000.wav", "-o", "a.spd", *SPD]) == 0
    assert main(["convert", "a.spd", "b.spd", "--start", "1", "--stop", "-8.5"]) == 0
    assert sum(batch.n_frames for batch in SegmentReader("b.spd").batches()) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--start", "10"], "--start 10: is not within a.wav, 10 s long"),
        (["--start", "-11"], "--start -11: is not within a.wav, 10 s long"),
        (["--start", "1x"], "--start 1x: must be a position as 12.5, 1m30s or 1:02:03 (-12.5: b"),
        (["--start", "1:99"], "--start 1:99: must be a time of day, 00:00 to 23:59:59"),
        (["--start", "2026-05-01"], "a.wav has no start time; give --start-time, or a"),
        (["--duration", "1 week"], "--duration 1 week: must be a time: 90, 1.5h, 10min, 500ms,"),
        (["--duration", "-1"], "--duration -1: must be above 0 and below 1e+09 s"),
        (["--stop", "1", "--duration", "1"], "--duration 1: must be without --stop 1"),
        (["--stop", "2", "--start", "3"], "--stop 2: must be later than --start 3"),
        (["--stop", "-10"], "--stop -10: must be later than the beginning of a.wav"),
        (["--stop", "T04:31"], "--stop T04:31: a.wav has no start time; give --start-time, or a"),
        (["--f-max", "4 parsec"], "argument --f-max: '4 parsec': must be a frequency: 4000, 4k,"),
    ],
)
def test_bad_parts(arguments, message, capsys):
    """A malformed or out-of-range position is one line with the value and the rule."""
    ramp("a.wav")
    assert main(["record", "a.wav", "-o", "out.png", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.fixture
def pauses():
    """A folder of a recorder that sleeps: 10 s each minute, the second file at a fraction."""
    Path("pond").mkdir()
    for name in ("043000", "043100.5", "043200"):
        ramp(f"pond/20260501_{name}.wav")


PAUSE = "nothing was recorded in the {} s from then; pond has sound up to {}, and again from {}\n"


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        (
            ["--start", "2026-05-01T04:30:30Z", "--duration", "10"],
            ("10", "2026-05-01T04:30:10Z", "2026-05-01T04:31:00.500Z"),
        ),
        (
            ["--start", "T04:30:10", "--stop", "T04:31"],
            ("50", "2026-05-01T04:30:10Z", "2026-05-01T04:31:00.500Z"),
        ),
        (
            ["--start", "1:15", "--duration", "500ms"],
            ("0.5", "2026-05-01T04:31:10.500Z", "2026-05-01T04:32:00Z"),
        ),
    ],
)
@pytest.mark.parametrize(
    "command", [["record", "pond", "-o", "a.png"], ["levels", "pond"], ["tones", "pond"]]
)
@pytest.mark.usefixtures("pauses")
def test_a_part_within_a_pause_names_what_is_nearest(command, arguments, rest, capsys):
    """Where nothing was recorded, the error says so, and when the sound before it ends."""
    assert main([*command, *arguments]) == 2
    assert capsys.readouterr().err == f"spectrod: --start {arguments[1]}: {PAUSE.format(*rest)}"
    assert not Path("a.png").exists()


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        (["--start", "9", "--duration", "10"], 1.0),
        (["--start", "15", "--stop", "61"], 0.5),
        (["--start", "T04:31:15"], 10.0),
    ],
)
@pytest.mark.usefixtures("pauses")
def test_a_part_that_begins_in_a_pause_has_what_follows(arguments, seconds):
    """A part with any sound is read as before."""
    assert main(["record", "pond", "-o", "a.wav", *arguments]) == 0
    assert times_of("a.wav")[2] >= seconds * FS
    assert np.count_nonzero(soundfile.read("a.wav")[0]) == seconds * FS


def test_live_sources_have_no_positions(capsys):
    """A position in a live source is refused before the program waits for the source."""
    assert main(["record", "ipc:///nowhere", "-o", "out.png", "--start", "12.5"]) == 2
    assert (
        "--start 12.5: is a position in a recording, and ipc:///nowhere is live: must be UTC"
        in (capsys.readouterr().err)
    )
    assert main(["record", "ipc:///nowhere", "-o", "out.png", "--stop", "5"]) == 2
    assert "--stop 5: ipc:///nowhere is live; give --duration\n" in capsys.readouterr().err


@pytest.mark.parametrize(("suffix", "n_read_max"), [("flac", 3 * FS), ("aiff", 3 * FS)])
def test_decoding_starts_at_the_position(suffix, n_read_max, monkeypatch):
    """In seekable formats, decoding starts at the position."""
    name = f"a.{suffix}"
    ramp(name)
    n_read = 0
    read = SoundFile.read

    def counted(self, out):
        nonlocal n_read
        n = read(self, out)
        n_read += n
        return n

    monkeypatch.setattr(SoundFile, "read", counted)
    assert main(["record", name, "-o", "out.wav", "--start", "-2"]) == 0
    assert times_of("out.wav") == (128, 160, 2 * FS)
    assert n_read <= n_read_max


@pytest.mark.parametrize("suffix", ["ogg", "mp3"])
def test_coded_streams_are_read_to_the_end_of_the_part(suffix, monkeypatch):
    """Where seeking is inexact, a part has the same samples as a read from the start."""
    rng = np.random.default_rng(5)
    soundfile.write(f"a.{suffix}", rng.uniform(-0.5, 0.5, 4 * FS), FS)
    whole, _ = soundfile.read(f"a.{suffix}")
    assert (
        main(["record", f"a.{suffix}", "-o", "out.wav", "--start", "-0.1", "--subtype", "f32"]) == 0
    )
    part, _ = soundfile.read("out.wav")
    # Samples decoded to float32 and to float64 differ in the last bit.
    np.testing.assert_allclose(part, whole[len(whole) - len(part) :], rtol=0, atol=3e-7)
    assert len(part) == 800


def test_frequencies_with_units():
    """The options --f-min and --f-max accept numbers with k and MHz as well as plain ones."""
    ramp("a.wav")
    limits = ["--f-min", "0.1k", "--f-max", "0.002MHz"]
    assert main(["record", "a.wav", "-o", "a.png", *limits]) == 0
    settings = like(Path("a.png"))
    assert (settings["f_min"], settings["f_max"]) == (100.0, 2000.0)


def test_the_elapsed_time_of_a_part_counts_from_the_beginning_of_the_file():
    """The elapsed times of a part count from the start of the file, in pictures and in data."""
    ramp("a.wav")
    part = ["--start", "7", "--width", "600"]
    assert main(["record", "a.wav", "-o", "x.svg", "-o", "x.csv", *part]) == 0
    drawn = Path("x.svg").read_text(encoding="utf-8")
    assert all(f">{label}.0</text>" in drawn for label in (7, 8, 9))  # up to column 4
    rows = [line for line in Path("x.csv").read_text().splitlines() if line[0].isdigit()]
    assert rows[0].startswith("7.0")
