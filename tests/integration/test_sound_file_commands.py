"""Commands on sound files whose headers are wrong: exit codes, lines, and how much is measured."""

import os
import re
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
import soundfile

sys.path.insert(0, str(Path(__file__).parents[1] / "sounds"))
from sound_headers import DEFECTS, FORMS, WITHOUT_CHUNKS

from spectrod.cli import main

FS = 8000
SECONDS = 3
LEVEL_DB = -20.0
JOB = """
[job]
name = "t"
output = "results"
products = ["levels"]
engine = "numpy"
[deployments.d]
inputs = ["card"]
"""


def tone_file(folder, form, defect):
    """Write a tone of 3 s with a defect; return its path and whether it is damaged."""
    folder.mkdir()
    path = folder / f"20260501_043000{form.suffix}"
    x = 10 ** (LEVEL_DB / 20) * np.sin(2 * np.pi * 1000 * np.arange(SECONDS * FS) / FS)
    soundfile.write(path, x, FS, "PCM_24", format=form.format)
    data = path.read_bytes()
    path.write_bytes(DEFECTS[defect].change(form, form.magic + data[len(form.magic) :]))
    return path


def measured(text):
    """Return seconds and level of the line of all intervals."""
    found = re.search(r"^ *all +([\d.]+) +(-?[\d.]+)", text, re.MULTILINE)
    assert found, text
    return float(found[1]), float(found[2])


CASES = [
    (name, defect)
    for name in FORMS
    for defect in ("none", "size of 0", "size too large", "hostile list", "bytes behind")
    if name != "AU" or defect not in WITHOUT_CHUNKS
]


@pytest.mark.extended
@pytest.mark.parametrize(("name", "defect"), CASES)
def test_commands_measure_what_is_there(tmp_path, monkeypatch, capfd, name, defect):
    """Alone, in folders, by pipe, by range, by batch: all 3 s, and 65 where a line says so."""
    monkeypatch.chdir(tmp_path)
    path = tone_file(tmp_path / "card", FORMS[name], defect)
    code = 0 if DEFECTS[defect].is_harmless else 65
    levels = ["levels", "--interval", "1h", "--quantity", "LZeq"]
    for source in (str(path), "card"):
        assert main([*levels, source]) == code, source
        out, err = capfd.readouterr()
        assert measured(out) == (SECONDS, LEVEL_DB)
        assert (str(path.name) in err) == (code == 65)

    read_fd, write_fd = os.pipe()
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(fileno=lambda: read_fd))

    def write():
        with os.fdopen(write_fd, "wb") as pipe:
            pipe.write(path.read_bytes())

    writer = threading.Thread(target=write)
    writer.start()
    assert main([*levels, "-"]) == (0 if defect == "size of 0" else code)
    writer.join()
    os.close(read_fd)
    assert measured(capfd.readouterr().out) == (SECONDS, LEVEL_DB)

    part = ["--start", "1", "--duration", "1.5", "--engine", "numpy"]
    assert main(["record", str(path), *part, "-o", "part.wav", "--subtype", "s24"]) == code
    x, _ = soundfile.read("part.wav")
    whole = 10 ** (LEVEL_DB / 20) * np.sin(2 * np.pi * 1000 * np.arange(FS, 2.5 * FS) / FS)
    np.testing.assert_allclose(x, whole, rtol=0, atol=2**-23)

    Path("job.toml").write_text(JOB)
    assert main(["batch", "plan", "job.toml"]) in (0, 65)
    assert main(["batch", "run", "job.toml", "--jobs", "1"]) == code
    out, err = capfd.readouterr()
    assert (path.name in out + err) == (code == 65)
