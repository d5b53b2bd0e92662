"""``spectrod convert``: segments to every format and back, parts, and refused arguments."""

import os
import signal
import sys
from pathlib import Path

import pytest

from spectrod.apps.convert import command
from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import StorageError
from spectrod.recording.inputs import batches_between, open_recording

sys.path.insert(0, str(Path(__file__).parents[1] / "segments"))
from segment_rows import BEGIN_UTC_NS, describe, make_batch, make_spec, rows_of, shifted

SPEC = make_spec(channels=2, win_length=31, nfft=31)
FIRST = "2026-11-20T21:47:03"
"""UTC of the first row."""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def power(first_row, n_rows, **more):
    """Make rows as they could be measured: random bits may be NaN, which is not equal to itself."""
    batch = make_batch(SPEC, first_row, n_rows, **more)
    batch.values.view("u4")[:] = batch.values.view("u4") % (1 << 20) + (0x30000000)
    return batch


def write(path, *batches, finish=True, **attributes):
    texts = {"title": "Reef"} | attributes
    made = SegmentWriter(path, describe(SPEC, settings={"a": 1}, attributes=texts))
    for batch in batches:
        made.write(batch)
    if finish:
        made.finish()
    return made


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def two_stretches():
    """Make two stretches of rows with a gap of half a second between them."""
    later = shifted(power(400, 101), 4000, gap_samples=4000, discontinuity=True)
    return [power(0, 400), later]


@pytest.mark.parametrize("name", ["b.spd", "b.npz", "b.csv", "b.nc", "b.h5", "b.zarr"])
def test_rows_survive_the_way_there_and_back(name):
    """Rows, gaps and times survive each format and the way back to segments, to the last bit."""
    batches = two_stretches()
    write("a.spd", *batches)
    before = Path("a.spd").read_bytes()
    assert main(["convert", "a.spd", name]) == 0
    assert main(["convert", name, "c.spd"]) == 0
    assert rows_of(open_recording(Path("c.spd")).batches()) == rows_of(batches)
    assert SegmentReader("c.spd").description == SegmentReader("a.spd").description
    assert Path("a.spd").read_bytes() == before
    assert names() == sorted(["a.spd", name, "c.spd"])


@pytest.mark.parametrize("name", ["b.spd", "b.npz"])
def test_attributes_are_added_to_those_that_are_there(name):
    """An attribute with any value is added, or replaces one of the same name."""
    write("a.spd", power(0, 3))
    given = ["--attribute", "creator_name=A = B", "--attribute", "title="]
    assert main(["convert", "a.spd", name, *given]) == 0
    attributes = open_recording(Path(name)).description.attributes
    assert attributes == {"title": "", "creator_name": "A = B"}


@pytest.mark.parametrize("name", ["b.spd", "b.npz", "b.csv", "b.nc", "b.h5", "b.zarr"])
def test_the_time_zone_of_the_source_goes_there_and_back(name):
    """Also into the files of parts of a recording."""
    write("a.spd", power(0, 40), time_zone="Asia/Kolkata")
    assert main(["convert", "a.spd", name, "--start", FIRST]) == 0
    assert main(["convert", name, "c.spd"]) == 0
    attributes = SegmentReader("c.spd").description.attributes
    assert attributes == {"title": "Reef", "time_zone": "Asia/Kolkata"}


def test_a_picture_shows_rows_where_they_are():
    """Gaps are drawn as gaps at the rows' times, with several outputs in one run."""
    write("a.spd", *two_stretches())
    size = ["--width", "200", "--height", "64"]
    assert main(["convert", "a.spd", "b.png", "c.npz", "--title", "Reef", *size]) == 0
    pixels = read_levels("b.png").pixels
    assert (pixels.begin_utc_ns, pixels.gaps, pixels.gap_samples) == (BEGIN_UTC_NS, 1, 4000)
    assert names() == ["a.spd", "b.png", "c.npz"]


@pytest.mark.parametrize("source", ["a.spd", "a.npz", "a.spd.part"])
def test_a_part_includes_its_start_and_excludes_its_end(source):
    """A part includes its start and excludes its stop, in UTC or another zone."""
    batches = two_stretches()
    made = write("a.spd", *batches, finish=source == "a.spd")
    if source == "a.npz":
        assert main(["convert", "a.spd.part", "a.npz"]) == 0
    between = ["--start", f"{FIRST}.25Z", "--stop", "2026-11-20T22:47:03.5+01:00"]
    assert main(["convert", source, "b.spd", *between]) == 0
    rows = rows_of(SegmentReader("b.spd").batches())
    assert rows == rows_of([power(0, 400)])[200:400]
    assert main(["convert", source, "c.spd", "--start", f"{FIRST}.75Z"]) == 0
    (tail,) = SegmentReader("c.spd").batches()
    assert (tail.n_frames, tail.gap_samples, tail.discontinuity) == (101, 0, False)
    made.abort()


def test_a_folder_becomes_one_file():
    """Segments of a folder become one file in order, an unfinished one included."""
    Path("site").mkdir()
    batches = two_stretches()
    first = write("site/a.spd", batches[0])
    second = SegmentWriter("site/b.spd", first.description, place=first.next_place)
    second.write(batches[1])
    assert main(["convert", "site", "c.spd"]) == 0
    assert rows_of(SegmentReader("c.spd").batches()) == rows_of(batches)
    second.abort()


@pytest.mark.parametrize(
    "command", [["convert", "a.spd", "b.npz"], ["record", "a.spd", "-o", "b.npz"]]
)
def test_channels_get_other_names(command):
    """Channels are renamed in the output, and the input stays unchanged."""
    write("a.spd", power(0, 3))
    names = [f"mic {number}" for number in range(SPEC.n_signals)]
    assert main([*command, "--channel-names", ",".join(names)]) == 0
    assert list(open_recording(Path("b.npz")).description.signals) == names
    assert list(open_recording(Path("a.spd")).description.signals) != names


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a.spd", "a.spd"], "a.spd: must be another file than the one that is read"),
        (
            ["b_mic_20260501.nc", "b.nc", "--profile", "millidecade"],
            "b.nc: must be of another name: a daily file may replace b_mic_20260501.nc",
        ),
        (["a.spd", "./b.npz", "b.npz"], "b.npz: must be named once"),
        (["site", "site/c.spd"], "site/c.spd: must not lie in the folder that is read"),
        (["a.spd", "b.xyz"], "b.xyz: suffix must be one of .png, "),
        (
            ["a.spd", "b.wav"],
            "b.wav: must be of spectra: convert completes sound files that end in .part",
        ),
        (["a.spd", "b.png", "--like", "c.png"], "c.png: "),
        (["a.wav", "b.spd"], "a.wav: must be a recording of spectra (.spd, "),
        (["none.spd", "b.spd"], "none.spd: No such file or directory"),
        (["none.nc", "b.spd"], "none.nc: No such file or directory"),
        (["a.spd", "a.spd/b.npz"], "a.spd: must be a folder, it is a file"),
        (["a.spd", "b.spd", "--start", "noon"], "--start noon: must be a position as 12.5, 1m"),
        (["a.spd", "b.spd", "--start", "9999-01-01"], "--start 9999-01-01: must be 1700 to 2200"),
        (["a.spd", "b.spd", "--start", "2030-01-01"], "--start 2030-01-01: is not within a.spd, "),
        (["a.spd", "b.npz", "--stop", "2020-01-01"], "--stop 2020-01-01: must be later than the b"),
        (
            ["a.spd", "b.npz", "--stop", "1", "--duration", "1"],
            "--duration 1: must be without --st",
        ),
        (
            ["a.spd", "b.npz", "--start", "2030-01-01", "--stop", "2020-01-01"],
            "--stop 2020-01-01: must be later than --start 2030-01-01",
        ),
        (["a.spd", "b.npz", "--attribute", "x"], "--attribute x: must be NAME=VALUE, as in titl"),
        (["a.spd", "b.npz", "--compression", "10"], "compression=10: must be 0 to 9"),
        (["a.spd", "b.npz", "--profile", "millidecade"], "b.npz: profile='millidecade': must be"),
    ],
)
def test_an_impossible_argument_is_one_line(capsys, arguments, text):
    """An impossible argument is one line with the value and the rule, and no file is left."""
    write("a.spd", power(0, 3))
    Path("site").mkdir()
    write("site/a.spd", power(0, 3))
    assert main(["convert", *arguments]) in (2, 74)
    error = capsys.readouterr().err
    assert error.startswith(f"spectrod: {text}")
    assert error.count("\n") == 1
    assert names() == ["a.spd", "site"]
    assert names("site") == ["a.spd"]


def test_the_name_that_a_part_will_have_is_refused(capsys):
    """An output named like the part of its own input is refused."""
    write("a.spd", power(0, 3), finish=False).abort()
    assert main(["convert", "a.spd.part", "a.spd"]) == 2
    assert "a.spd: must be another file than the one that is read" in capsys.readouterr().err
    assert names() == ["a.spd.part"]


@pytest.mark.parametrize(
    ("fault", "exit_code", "text"),
    [("signal", 130, "interrupted"), ("disk", 74, "a.spd: Input/output error")],
)
def test_an_end_in_the_middle_leaves_nothing(monkeypatch, capsys, fault, exit_code, text):
    """SIGTERM or an error in the middle removes the incomplete output."""

    def break_off(*arguments):
        rows = batches_between(*arguments)
        yield next(rows)
        assert len(names()) == 3
        if fault == "disk":
            raise StorageError("a.spd: Input/output error")
        os.kill(os.getpid(), signal.SIGTERM)
        yield from rows

    monkeypatch.setattr(command, "batches_between", break_off)
    write("a.spd", *two_stretches())
    assert main(["convert", "a.spd", "b.spd", "c.npz", "d.png"]) == exit_code
    assert capsys.readouterr().err == f"spectrod: {text}\n"
    assert names() == ["a.spd"]


def test_an_output_that_cannot_be_made_leaves_no_other(capsys):
    """If one output cannot be created, the run ends before reading and leaves no other."""
    write("a.spd", power(0, 3))
    Path("b.png").mkdir()
    assert main(["convert", "a.spd", "b.spd", "c.npz", "b.png"]) == 74
    assert "b.png: is a folder" in capsys.readouterr().err
    assert names() == ["a.spd", "b.png"]


def test_damage_is_reported_and_skipped(capfd):
    """Damage gives a warning with its place; intact rows are converted with exit code 0."""
    batches = two_stretches()
    write("a.spd", *batches)
    content = bytearray(Path("a.spd").read_bytes())
    content[content.index(batches[1].values.tobytes()) + 7] ^= 1
    Path("a.spd").write_bytes(content)
    assert main(["convert", "a.spd", "b.spd"]) == 0
    assert "are damaged; intact records around them are read" in capfd.readouterr().err
    assert rows_of(SegmentReader("b.spd").batches()) == rows_of(batches[:1])
