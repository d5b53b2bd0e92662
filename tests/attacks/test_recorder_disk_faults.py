"""Each call of a recording to the file system fails, alone or with all that follow.

Whatever call it is, the recording reports the disk, resumes when the disk is back, and counts each
row that is in no file.
"""

import errno
import fcntl
import os
import random
import sys
from pathlib import Path

import pytest

from spectrod.lib.errors import StorageError
from spectrod.recording.rotating_writer import is_known_gone, require_there

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "recording"))
from test_recorder import Machine

FOREVER = 10**9
STRIDE = 331
"""Of the calls that fail in turn: odd, and no multiple of those of a file."""
ERRORS = [errno.EACCES, errno.EIO, errno.ESTALE]
CALLS = [
    *("open", "stat", "lstat", "fstat", "access", "mkdir", "scandir", "listdir", "unlink"),
    *("rename", "link", "utime", "statvfs", "fstatvfs", "fsync", "fdatasync", "ftruncate"),
    *("dup", "lseek", "pread", "pwrite", "read", "write"),
]
SETTINGS = {
    "samples": "wav",
    "pyramid": True,
    "rotate_s": 3,
    "keep_mb": 0.03,
    "fsync_s": 0.5,
    "min_free_mb": 0.001,
}


class FaultyDisk:
    """Counts calls of ``os``, and makes some of them fail."""

    def __init__(self, monkeypatch, tmp_path):
        self.n_calls = 0
        self._first, self._last, self._errno = 0, -1, 0
        self._folder = str(tmp_path)
        for name in CALLS:
            monkeypatch.setattr(os, name, self._faulty(getattr(os, name)))
        monkeypatch.setattr(fcntl, "flock", self._faulty(fcntl.flock))
        directory = sys.modules["spectrod.formats.directory"]
        real = directory._renameat2_noreplace
        monkeypatch.setattr(directory, "_renameat2_noreplace", self._faulty(real))

    def fail(self, first, last, number):
        """Let the calls of these numbers fail, counted from now."""
        self.n_calls, self._first, self._last, self._errno = 0, first, last, number

    def _faulty(self, real):
        def call(*arguments, **keywords):
            # pytest and the standard library have files of their own.
            if arguments and isinstance(arguments[0], str | Path):
                place = str(arguments[0])
                if place.startswith("/") and not place.startswith(self._folder):
                    return real(*arguments, **keywords)
            self.n_calls += 1
            if self._first <= self.n_calls <= self._last:
                raise OSError(self._errno, os.strerror(self._errno), *arguments[:1])
            return real(*arguments, **keywords)

        return call


@pytest.fixture
def disk(monkeypatch, tmp_path):
    random.seed(11)  # the wait before a retry is random
    return FaultyDisk(monkeypatch, tmp_path)


def run(tmp_path, disk, first, last, number):
    """Record, with a file that another daemon has left, while some calls fail; then without."""
    before = Machine(tmp_path, **SETTINGS)
    before.play(2.0)
    for writer in before.recording._writers:
        writer.abort()
    before.recording._folder.release()
    disk.fail(first, last, number)
    site = Machine(tmp_path, **SETTINGS)
    site.clock.now_s = 100.0
    site.play(10.0)
    n_calls = disk.n_calls
    disk.fail(0, -1, 0)
    # The last attempt may have been just now, and the next one 37.5 s away.
    while site.recording.status()["state"] != "recording" and site.clock.now_s < 165.0:
        site.play(5.0, 50)
    site.play(15.0, 50)  # of files that begin, end and are deleted with all calls in order
    facts = site.recording.status()
    assert facts["state"] == "recording", facts
    assert facts["error"] == ""
    site.recording.finish()
    return n_calls, site


def check(site):
    """Check that no fault was called one of spectrod, and that no row is in no count."""
    assert [text for text in site.reported() if "please report" in text] == []
    facts = site.recording.status()
    assert facts["rows"] + facts["lost_rows"] == round((site.clock.now_s - 100.0) * 10)


def attack(tmp_path, disk, calls, errors):
    """Let each of these calls fail alone, and then with all that follow."""
    for k in calls:
        for last in (k, FOREVER):
            check(run(tmp_path / f"{k}-{last}", disk, k, last, errors[k % len(errors)])[1])


@pytest.fixture
def n_calls(tmp_path, disk):
    """Return the number of calls of a recording whose disk never fails."""
    n_calls, site = run(tmp_path / "sound", disk, 0, -1, 0)
    check(site)
    assert site.recording.status()["lost_rows"] == 0
    assert n_calls > 500
    return n_calls


@pytest.mark.slow
@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_no_call_that_fails_is_a_fault_of_spectrod(tmp_path, disk, n_calls, number):
    """The recording reports the disk, resumes when it is back, and counts the lost rows."""
    attack(tmp_path, disk, range(1 + ERRORS.index(number), n_calls, STRIDE), [number])


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("first", range(1, 41, 5))
def test_each_fifth_call_that_fails_is_the_disks(tmp_path, disk, n_calls, first):
    """The same for one call in five; all of them take four minutes of processor time."""
    attack(tmp_path, disk, range(first, n_calls, 40), ERRORS)


class _UnknownOutput:
    """A file of which nobody can say whether it is there."""

    path, size_bytes = Path("x.spd"), 0

    @property
    def is_gone(self):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_a_file_that_cannot_be_looked_at_is_not_gone():
    """Where the disk does not answer, the error names the file, and no row is taken for lost."""
    output = _UnknownOutput()
    with pytest.raises(StorageError, match=r"^x\.spd: Stale file handle$"):
        require_there(output)
    assert not is_known_gone(output)
