"""Sound files by their own begins: which has a time, and at which sample."""

import datetime as dt

import numpy as np
import pytest
import soundfile

from spectrod.lib.errors import InputError
from spectrod.source.files.dated_files import DatedFiles

FS = 8000
S = 10**9
BEGIN = dt.datetime(2026, 5, 1, 4, 30, tzinfo=dt.UTC)
BEGIN_NS = 1_777_609_800 * S


def put(folder, after_s, seconds, fs=FS):
    when = BEGIN + dt.timedelta(seconds=after_s)
    path = folder / f"{when:%Y%m%dT%H%M%S}.{when.microsecond:06d}Z.wav"
    soundfile.write(path, np.zeros(round(seconds * fs)), fs)
    return str(path)


def at(files, after_s):
    return files.at(BEGIN_NS + round(after_s * S))


def test_each_file_has_its_own_time(tmp_path):
    """Also after a pause that is too short to be one in a stream; lengths add up without pauses."""
    first, second = put(tmp_path, 0, 10), put(tmp_path, 11.25, 4, fs=16000)
    files = DatedFiles(tmp_path)
    assert at(files, 0) == (first, 0, 0.0, FS)
    assert at(files, 9.5) == (first, 76_000, 0.0, FS)
    assert at(files, 12.25) == (second, 16_000, 10.0, 16000.0)
    for outside_s in (-0.1, 10.0, 11.2, 15.25, 100.0):
        assert at(files, outside_s) is None


def test_times_are_rounded_to_the_nearest_sample(tmp_path):
    """Headers have microseconds: what begins with a file may be a little before it."""
    path = put(tmp_path, 0, 1)
    files = DatedFiles(tmp_path)
    assert at(files, -0.4 / FS) == (path, 0, 0.0, FS)
    assert at(files, -0.6 / FS) is None
    assert at(files, 100.4 / FS) == (path, 100, 0.0, FS)


def test_of_files_that_overlap_the_later_one_counts(tmp_path):
    """After its end it is the earlier one again, which is longer."""
    long, short = put(tmp_path, 0, 30), put(tmp_path, 5, 2)
    put(tmp_path, 40, 1)
    files = DatedFiles(tmp_path)
    assert at(files, 6).path == short
    assert at(files, 20) == (long, 20 * FS, 0.0, FS)


def test_what_says_no_time_is_left_out(tmp_path):
    """With a line for each; a file alone may be named; none at all is an error."""
    path = put(tmp_path, 0, 1)
    soundfile.write(tmp_path / "undated.wav", np.zeros(FS), FS)
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    files = DatedFiles(tmp_path)
    assert at(files, 0.5).path == path
    assert [one.rpartition("/")[2].partition(":")[0] for one in files.left_out] == [
        "broken.wav", "undated.wav",
    ]  # fmt: skip
    assert all(one.endswith(": left out") for one in files.left_out)
    assert DatedFiles(tmp_path / path).at(BEGIN_NS)
    with pytest.raises(InputError, match=r"undated\.wav: must be sound that says when it begins"):
        DatedFiles(tmp_path / "undated.wav")
    with pytest.raises(InputError, match="must be sound that says when it begins"):
        DatedFiles(tmp_path / "missing.wav")
