"""The table of output formats, which all parts of the program use."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from spectrod.cli import main
from spectrod.config.config import load as load_config
from spectrod.dsp.blocks import Block
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib import output_formats
from spectrod.lib.errors import ConfigError
from spectrod.lib.events import EventLog
from spectrod.lib.output_formats import FORMATS, OutputFormat, format_of, load
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.inputs import open_recording

DOCS = Path(__file__).parents[3] / "docs"


def test_every_entry_point_of_the_table_is_there():
    """Each format names objects that exist, and one suffix means one format."""
    for one in FORMATS:
        entries = (one.writer, one.reader, one.recovery, one.origin, one.sound_file)
        assert all(callable(load(entry)) for entry in entries if entry), one
        assert bool(one.recovery) == bool(one.origin)
    names = output_formats.suffixes()
    assert len(set(names)) == len(names)


def test_the_docs_list_every_format():
    """The table of outputs in the docs has the formats of the program, in its order."""
    text = (DOCS / "recording.md").read_text("utf-8")
    for content in ("picture", "rows"):
        assert f"| `{output_formats.listed(content)}` |" in text


@pytest.fixture
def added(monkeypatch):
    """Add a format of rows and one of samples, whose modules wrap formats that exist."""
    rows, sound = ModuleType("rows_of_test"), ModuleType("sound_of_test")
    rows.make = lambda path, about, options: SegmentWriter(path, about, is_copy=options.is_copy)
    rows.open = SegmentReader
    wav = format_of("x.wav")
    sound.File = load(wav.sound_file)
    for module in (rows, sound):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    several = (
        OutputFormat(".mat", "rows", "rows_of_test:make", "rows_of_test:open", is_text=True),
        replace(wav, suffix=".w64", sound_file="sound_of_test:File"),
    )
    monkeypatch.setattr(output_formats, "FORMATS", (*FORMATS, *several))


def help_of(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return capsys.readouterr().out


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("command", ["record", "convert"])
def test_help_lists_a_new_format(command, capsys):
    """The help of both commands lists a new format."""
    assert ".mat" in help_of(command, capsys)


@pytest.mark.usefixtures("added")
def test_record_and_convert_write_and_read_a_new_format(tmp_path, capsys):
    """A new format of rows is written by record, read by convert, and goes to standard output."""
    new, csv = tmp_path / "x.mat", tmp_path / "x.csv"
    source = ["signal:sine,1000,-20", "--rate", "8000", "--duration", "0.5", "--engine", "numpy"]
    assert main(["record", *source, "-o", str(new), "--attribute", "title=Reef"]) == 0
    reader = open_recording(new)
    n_rows = sum(batch.n_frames for batch in reader.batches())
    reader.close()
    assert main(["convert", str(new), str(csv)]) == 0
    lines = [line for line in csv.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) == n_rows + 1
    for arguments in (["x.bin", "x.csv"], ["x.spd", "x.bin"], ["x.spd", "bin:-"]):
        assert main(["convert", *arguments]) in (2, 74)
        assert re.search(r"must be .*\bmat\b", capsys.readouterr().err)


@pytest.mark.usefixtures("added")
def test_a_configured_recording_takes_a_new_format_of_samples(tmp_path):
    """A format of samples that can be completed is one of [recordings.NAME], by its suffix."""
    file = tmp_path / "spectrod.toml"
    text = '[recordings.night]\nsamples = "w64"\nspectra = false\nmin_free_mb = 0.0\n'
    file.write_text(text)
    config = load_config(str(file)).recordings[0]
    about = Recorded("pond", ("0",), 8000.0, "spectrod test", dict)
    recording = ConfiguredRecording(config, about, tmp_path / "site", EventLog())
    recording.start()
    recording.write(
        Block(np.zeros((1, 800), np.float32), 0, 0, 1_780_315_200_000_000_000, fs=8000.0)
    )
    recording.break_off("the power failed")
    again = ConfiguredRecording(config, about, tmp_path / "site", EventLog())
    again.start()
    assert [path.suffix for path in (tmp_path / "site").iterdir()] == [".w64"]
    assert again.status()["kept_files"] == 1
    again.finish()


def test_a_format_that_cannot_be_completed_is_refused_in_a_configuration(tmp_path):
    """Samples of a configured recording must be of a format that survives a crash."""
    file = tmp_path / "spectrod.toml"
    file.write_text('[recordings.night]\nsamples = "sigmf-meta"\n')
    with pytest.raises(ConfigError, match=r"samples='sigmf-meta': must be '', wav or flac"):
        load_config(str(file))
