"""Disk faults under a recording daemon: the stream continues, and recording resumes.

Errors of a device come from a library between the program and the system
(``tests/recorder/failing_disk.c``); a full disk is a real one, of 3 MB.
"""

import errno
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from audio_daemon import Daemon

from spectrod.client import Control
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.wire import schema

pytestmark = pytest.mark.slow

LIMIT_S = 20.0
HOP = 1024
ROWS_AT_LEAST = 16

CONFIG = """
[recordings.all]
folder = "{folder}"
rotate_s = 0
fsync_s = 0.1
min_free_mb = {min_free_mb}
{more}
"""


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory):
    """Build a library in which calls fail with the error in a file."""
    library = tmp_path_factory.mktemp("failing") / "failing_disk.so"
    source = Path(__file__).parents[1] / "recorder" / "failing_disk.c"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source]
    subprocess.run(command, check=True)
    return library


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class Site:
    """A daemon that records a tone, and its events."""

    def __init__(self, tmp_path, folder, env=None, min_free_mb=0.0, more=""):
        self.folder = folder / "all" / "signal"
        self._wanted = ("rows", "samples") if "samples" in more else ("rows",)
        settings = tmp_path / "spectrod.toml"
        text = CONFIG.format(folder=folder, min_free_mb=min_free_mb, more=more)
        settings.write_text(text)
        env = (env or {}) | {"SPECTROD_CONFIG": os.fspath(settings)}
        self.daemon = Daemon("signal:sine,1000,-20", env)

    def __enter__(self):
        """Start, and wait until rows, and samples if wanted, are in files."""
        self.daemon.__enter__()
        try:
            while not self._records():
                self.daemon.receive_frame(LIMIT_S)
        except BaseException:
            self.daemon.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.daemon.__exit__(*exc)

    def await_event(self, kind):
        """Wait for an event of a kind; return its text."""
        message, _ = self.daemon.receive(
            lambda m: isinstance(m, schema.EventMessage) and m.header.kind == kind, LIMIT_S
        )
        return message.header.text

    def ask(self, method):
        """Send the daemon a request, if it takes requests."""
        (endpoint,) = [line.split()[-1] for line in self.daemon.log if "control at" in line]
        with Control(endpoint) as control:
            return control.call(method)

    def _records(self):
        if not any("control at" in line for line in self.daemon.log):
            return False
        (recorder,) = self.ask("status")["recorders"]
        return all(recorder[unit] >= ROWS_AT_LEAST for unit in self._wanted)

    def assert_streams(self):
        """Check that frames come without a hole."""
        first, _ = self.daemon.receive_frame(LIMIT_S)
        for k in range(1, 16):
            frame, _ = self.daemon.receive_frame(LIMIT_S)
            assert frame.header.seq == first.header.seq + k
            assert frame.header.gap_samples == 0

    def stop(self):
        """Stop it as a service manager does; return the rows of all files and the gaps between."""
        self.daemon.process.send_signal(signal.SIGTERM)
        assert self.daemon.process.wait(LIMIT_S) == 0
        assert not any("Traceback" in line for line in self.daemon.log)
        assert not list(self.folder.glob("*.part"))
        batches = list(SegmentReader(self.folder).batches())
        return batches, [batch.gap_samples for batch in batches if batch.gap_samples]


def assert_accounted(batches, gaps):
    """Check that each missing row is in a gap and that all rows hold the tone."""
    index = np.concatenate([batch.sample_index for batch in batches])
    n_missing = (int(index[-1] - index[0]) // HOP + 1) - len(index)
    assert sum(gaps) == n_missing * HOP
    for batch in batches:
        assert abs(batch.values.max(axis=2) + 20.0).max() < 1.5


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES])
def test_a_disk_error_is_reported_once_and_the_recording_resumes(number, failing_disk, tmp_path):
    """Any disk error is reported once, and only data that could not be written are a gap."""
    folder, switch = tmp_path / "disk", tmp_path / "errno"
    folder.mkdir()
    env = {
        "LD_PRELOAD": os.fspath(failing_disk),
        "FAILING_FOLDER": os.fspath(folder),
        "FAILING_ERRNO": os.fspath(switch),
    }
    with Site(tmp_path, folder, env) as site:
        switch.write_text(f"{number}")
        text = site.await_event("record.failed")
        assert os.strerror(number) in text
        site.assert_streams()
        switch.unlink()
        assert "rows are missing" in site.await_event("record.resumed")
        site.assert_streams()
        batches, gaps = site.stop()
        assert len(gaps) == 1
        assert_accounted(batches, gaps)
        failures = [line for line in site.daemon.log if os.strerror(number) in line]
        assert len([line for line in failures if "it is tried again" in line]) == 1


def test_a_folder_that_is_removed_is_made_again(tmp_path):
    """A removed folder is recreated, and the loss of its contents is reported."""
    folder = tmp_path / "disk"
    with Site(tmp_path, folder) as site:
        # While the daemon is stopped: it could recreate the folder during its removal.
        site.daemon.process.send_signal(signal.SIGSTOP)
        shutil.rmtree(folder)
        site.daemon.process.send_signal(signal.SIGCONT)
        assert "was removed while it was being written" in site.await_event("record.failed")
        site.await_event("record.resumed")
        site.assert_streams()
        batches, gaps = site.stop()
        assert len(gaps) == 1
        assert gaps[0] == batches[0].gap_samples
        assert_accounted(batches, [])


def test_a_full_disk_stops_the_recording_until_there_is_space(small_disk, tmp_path):
    """A full disk stops the recording until there is space, without effect on the stream."""
    with Site(tmp_path, small_disk) as site:
        (small_disk / "others").write_bytes(bytes(2_700_000))
        assert "No space left on device" in site.await_event("record.failed")
        site.assert_streams()
        (small_disk / "others").unlink()
        site.await_event("record.resumed")
        batches, gaps = site.stop()
        assert len(gaps) == 1
        assert_accounted(batches, gaps)


def test_it_stops_before_the_disk_is_full(small_disk, tmp_path):
    """Recording stops at ``min_free_mb``, with a status, and leaves space to others."""
    with Site(tmp_path, small_disk, min_free_mb=1.0) as site:
        (small_disk / "others").write_bytes(bytes(1_800_000))
        assert "less than min_free_mb=1 is free" in site.await_event("record.full")
        site.assert_streams()
        (recorder,) = site.ask("status")["recorders"]
        assert (recorder["state"], recorder["files"]) == ("full", [])
        assert recorder["lost_rows"] > 0
        (small_disk / "others").unlink()
        site.await_event("record.room")
        site.assert_streams()
        batches, gaps = site.stop()
        assert len(gaps) == 1
        assert_accounted(batches, gaps)


def test_files_of_a_killed_daemon_are_recovered_at_the_next_start(tmp_path):
    """After a kill and a restart, only data in memory at the kill are missing."""
    folder = tmp_path / "disk"
    with Site(tmp_path, folder, more='samples = "wav"') as site:
        site.daemon.process.kill()
        site.daemon.process.wait(10.0)
    (part,) = site.folder.glob("*.spd.part")
    n_rows = sum(batch.n_frames for batch in SegmentReader(part).batches())
    assert n_rows >= ROWS_AT_LEAST
    with Site(tmp_path, folder) as site:
        site.stop()
        assert any(f"{n_rows} rows kept, 0 bytes cut" in line for line in site.daemon.log)
        assert any("samples kept, 0 bytes cut" in line for line in site.daemon.log)
