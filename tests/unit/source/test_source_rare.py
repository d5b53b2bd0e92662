"""Formats that libsndfile alone reads: decoded as it does, within a time."""

import struct
import time

import numpy as np
import pytest
import soundfile

from spectrod.lib.errors import InputError
from spectrod.source.files.rare import is_rare
from spectrod.source.files.soundfile import SoundFile

FORMS = (
    "SVX",
    "NIST",
    "VOC",
    "IRCAM",
    "PAF",
    "PVF",
    "AVR",
    "MPC2K",
    "WVE",
    "SDS",
    "XI",
    "MAT4",
    "MAT5",
)


def made(path, form):
    subtype = {"XI": "DPCM_16", "WVE": "ALAW"}.get(form, "PCM_16")
    samples = np.random.default_rng(1).uniform(-0.5, 0.5, 3000)
    soundfile.write(path, samples, 8000 if form == "WVE" else 44100, subtype, format=form)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_rare_formats_are_read_as_libsndfile_reads_them(tmp_path, form):
    """Each of them is recognised by its first bytes, and its samples are libsndfile's."""
    path = tmp_path / "x.snd"
    made(path, form)
    with path.open("rb") as file:  # by its name, libsndfile would go by the suffix
        expected = soundfile.read(file, dtype="float32", always_2d=True)[0]
    file = SoundFile(str(path))
    out = np.zeros((4000, 1), np.float32)
    assert file.read(out) == len(expected) == 3000
    np.testing.assert_array_equal(out[:3000], expected)
    file.close()


@pytest.mark.slow
def test_a_header_on_which_libsndfile_hangs_is_one_error(tmp_path, monkeypatch):
    """A file whose header libsndfile goes round in is given up after a time."""
    monkeypatch.setattr("spectrod.source.files.rare.OPEN_MAX_S", 3.0)
    path = tmp_path / "x.8svx"
    data = made(path, "SVX")
    at = data.index(b"ANNO") + 4
    path.write_bytes(data[:at] + struct.pack(">i", -8) + data[at + 4 :])
    begin_s = time.monotonic()
    with pytest.raises(InputError, match=r"x\.8svx: damaged: libsndfile does not open it within 3"):
        SoundFile(str(path))
    assert time.monotonic() - begin_s < 60.0


def test_what_is_none_of_them_never_reaches_libsndfile(tmp_path, monkeypatch):
    """Text, zeros and noise are refused without a process."""
    monkeypatch.setattr("spectrod.source.files.soundfile.check_it_opens", None)
    for content in (
        b"not a sound",
        b"FORM\0\0\0\0ILBM",
        bytes([7]) * 100,
        bytes(100),
    ):
        (tmp_path / "x.wav").write_bytes(content)
        assert not is_rare(content)
        with pytest.raises(InputError, match=r"x\.wav: not a sound file: Format not recognised\."):
            SoundFile(str(tmp_path / "x.wav"))
