"""An output to standard output: the bytes of the file, and nothing else."""

import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.cli import main
from spectrod.lib.output_formats import suffixes

FS = 8000
FRAMES = ["--win-length", "800", "--hop", "800"]
SMALL = ["--raw", "--width", "8", "--height", "8"]


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    """Work in a separate folder, and check that nothing is left in the temporary folder."""
    monkeypatch.setenv("SPECTROD_ENGINE_ENGINE", "numpy")
    folder, temporary = tmp_path / "here", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    x = np.random.default_rng(4).uniform(-0.5, 0.5, FS)
    soundfile.write("a.wav", x, FS, subtype="PCM_16")
    yield
    assert list(temporary.iterdir()) == []


def record(*outputs, options=()):
    outs = [text for output in outputs for text in ("-o", output)]
    return main(["record", "a.wav", *outs, *FRAMES, *options])


@pytest.mark.parametrize("suffix", suffixes(lambda one: one.content == "picture"))
def test_standard_output_is_the_file_to_the_byte(capsysbinary, suffix):
    """Standard output has the bytes of the picture file, in any format."""
    assert record(f"a{suffix}", options=SMALL) == 0
    assert capsysbinary.readouterr() == (b"", b"")
    assert record(f"{suffix[1:]}:-", options=SMALL) == 0
    assert capsysbinary.readouterr() == (Path(f"a{suffix}").read_bytes(), b"")


@pytest.mark.parametrize("form", ["wav", "flac"])
def test_sound_is_whole(capsysbinary, form):
    """Sound on standard output is complete, with headers that are written last."""
    assert record(f"{form}:-", options=["--subtype", "s16"]) == 0
    read, fs = soundfile.read(io.BytesIO(capsysbinary.readouterr().out), dtype="int16")
    assert fs == FS
    np.testing.assert_array_equal(read, soundfile.read("a.wav", dtype="int16")[0])


@pytest.mark.parametrize("form", ["nc", "h5", "npz", "csv", "spd"])
def test_data_are_whole(capsysbinary, form):
    """Data formats that need to seek are complete on standard output."""
    assert record(f"{form}:-") == 0
    Path(f"b.{form}").write_bytes(capsysbinary.readouterr().out)
    assert main(["convert", f"b.{form}", "c.csv"]) == 0
    rows = [line for line in Path("c.csv").read_text().splitlines() if not line.startswith("#")]
    assert len(rows) == 10 + 1


def test_a_dash_is_a_png_beside_other_files(capsysbinary):
    """A dash is a PNG beside other outputs; messages go to standard error."""
    assert record("-", "x.csv", options=SMALL) == 0
    captured = capsysbinary.readouterr()
    with Image.open(io.BytesIO(captured.out)) as image:
        assert (image.format, image.size) == ("PNG", (8, 8))
    assert b"has no start time" in captured.err
    assert Path("x.csv").exists()


def test_stored_spectra_are_converted_to_it(capsysbinary):
    """``convert``, and ``record`` of a recording, accept the same names for standard output."""
    assert record("x.spd") == 0
    capsysbinary.readouterr()
    assert main(["convert", "x.spd", "-", *SMALL]) == 0
    converted = capsysbinary.readouterr().out
    assert main(["record", "x.spd", "-o", "-", *SMALL]) == 0
    assert capsysbinary.readouterr().out == converted
    assert converted.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("outputs", "options", "text"),
    [
        (["-", "csv:-"], [], "csv:-: one output alone can go to standard output, besides -"),
        (["npy:-"], [], "npy:-: .npy is more than one file, and needs a name"),
        (["sigmf-meta:-"], [], "sigmf-meta:-: .sigmf-meta is more than one file, and needs a"),
        (["zarr:-"], [], "zarr:-: .zarr is more than one file, and needs a name"),
        (["pgn:-"], [], "pgn:-: the format must be one of png jpg .* did you mean png?"),
        (["-"], ["--every", "1h"], "--every 1h: makes several files, and - is standard output"),
        (["svg:-"], ["--time-per-pixel", "1"], "--time-per-pixel 1: makes several files, and svg"),
        (["nc:-"], ["--profile", "millidecade"], "--profile millidecade: makes several files"),
        (["-"], ["--channels-as", "files"], "--channels-as files: makes several files, and -"),
        (["-"], ["--width", "7"], "width=7: must be 200"),
        (["csv:-"], ["--view", "spd", "--duration", "1ms"], "standard output: nothing to count"),
    ],
)
def test_an_output_that_standard_output_cannot_take_is_refused(
    capsysbinary, outputs, options, text
):
    """An output that standard output cannot take is refused in one line, and nothing is written."""
    assert record(*outputs, options=options) != 0
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    last = captured.err.decode().splitlines()[-1]
    assert last.startswith("spectrod: ")

    assert re.search(text.replace("?", r"\?"), last)


def test_a_terminal_refuses_binary_formats(monkeypatch, capsys):
    """A terminal as output refuses binary formats and shows text."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert record("-") != 0
    text = "standard output: is a terminal, which shows no .png: redirect it, or name a file"
    assert capsys.readouterr().err == f"spectrod: {text}\n"


def test_a_closed_standard_output_is_refused(monkeypatch, capsys):
    """A closed standard output is refused before anything is recorded."""
    monkeypatch.setattr(sys, "stdout", None)
    assert record("-") == 74
    assert capsys.readouterr().err == "spectrod: standard output: is closed\n"


def test_a_reader_that_has_gone_is_no_error(monkeypatch, capfd):
    """A reader that closes the pipe is no error, and no temporary file is left."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert record("-", options=["--width", "1000", "--height", "1000"]) == 0
        monkeypatch.undo()
    assert capfd.readouterr().err == ""


def test_a_full_disk_behind_it_is_reported(monkeypatch, capfd):
    """A full disk behind standard output gives the exit code of a storage error."""
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert record("-", options=SMALL) == 74
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert capfd.readouterr().err == "spectrod: standard output: No space left on device\n"


def test_no_room_for_temporary_files_is_reported(monkeypatch, capsys, tmp_path):
    """A lack of room for temporary files, also for a PDF's fonts, gives that exit code, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    for output, options in (("-", SMALL), ("a.pdf", [])):
        assert record(output, options=options) == 74
        text = "spectrod: folder for temporary files: No such file or directory\n"
        assert capsys.readouterr().err == text
    assert not Path("a.pdf").exists()


def test_each_mistake_of_the_settings_is_a_line(capsysbinary):
    """Several mistakes of a configuration are as many lines, as with an output that is a file."""
    Path("bad.toml").write_text("[analysis]\nwindow = 3\nscaling = 'x'\n")
    assert record("a.png", options=["--config", "bad.toml"]) == 2
    expected = capsysbinary.readouterr()
    assert record("png:-", options=["--config", "bad.toml"]) == 2
    assert capsysbinary.readouterr() == expected
    assert expected.err.count(b"\n") == 2
