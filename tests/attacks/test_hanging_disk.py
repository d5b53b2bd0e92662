"""A disk that hangs under requested files: requests are answered, and nothing is left.

Calls hang in a library between the program and the system (``tests/recorder/failing_disk.c``).
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spectrod.client import Control
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.errors import BusyError, StorageError

sys.path.insert(0, str(Path(__file__).parents[1] / "audio"))
from audio_daemon import Daemon

pytestmark = pytest.mark.slow

LIMIT_S = 30.0
READ_S = 3.0
"""Time limit for answers to reads: less than a start waits for a disk."""

CONFIG = """
[control]
state_folder = "{folder}"
requests_per_s = 10000
"""


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory):
    """Build a library in which calls hang while a file says so."""
    library = tmp_path_factory.mktemp("failing") / "failing_disk.so"
    source = Path(__file__).parents[1] / "recorder" / "failing_disk.c"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source]
    subprocess.run(command, check=True)
    return library


class Site:
    """A daemon whose state folder is on a disk that can hang."""

    def __init__(self, tmp_path, library):
        self.folder, self._switch = tmp_path / "disk", tmp_path / "errno"
        settings = tmp_path / "spectrod.toml"
        settings.write_text(CONFIG.format(folder=self.folder))
        env = {
            "SPECTROD_CONFIG": os.fspath(settings),
            "RUNTIME_DIRECTORY": os.path.relpath(tmp_path / "run"),
            "LD_PRELOAD": os.fspath(library),
            "FAILING_FOLDER": os.fspath(self.folder),
            "FAILING_ERRNO": os.fspath(self._switch),
        }
        self.daemon = Daemon("signal:sine,1000,-20", env)

    def hang(self):
        self._switch.write_text("hang")

    def work(self):
        self._switch.unlink(missing_ok=True)

    @contextlib.contextmanager
    def control(self, timeout_s=LIMIT_S):
        (line,) = [line for line in self.daemon.log if "control at" in line]
        with Control(line.split()[-1], timeout_s=timeout_s) as control:
            yield control

    def recordings(self):
        with self.control(READ_S) as control:
            return control.call("status")["recordings"]

    def written(self):
        (one,) = self.recordings()
        return one["rows"] + one["samples"]

    def wait(self, is_true):
        deadline_s = time.monotonic() + LIMIT_S
        while not (found := is_true()):
            assert time.monotonic() < deadline_s, (self.recordings(), self.daemon.log)
            self.daemon.receive_frame(LIMIT_S)
        return found

    @contextlib.contextmanager
    def asked(self, method, **params):
        """Send a request on a new connection; the list gets the reply or the error."""
        outcome = []

        def ask():
            with self.control(2 * LIMIT_S) as control:
                try:
                    outcome.append(control.call(method, **params))
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    outcome.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        yield outcome
        thread.join()


@pytest.fixture
def site(tmp_path, failing_disk, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    (tmp_path / "run").mkdir()
    site = Site(tmp_path, failing_disk)
    with site.daemon:
        site.wait(lambda: any("control at" in line for line in site.daemon.log))
        yield site
        site.work()
    assert not any("Traceback" in line for line in site.daemon.log)


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", ["x.spd", "x.wav", "x.png"])
def test_a_start_on_a_disk_that_hangs_is_refused_and_reads_are_answered(name, site):
    """A start answers ``busy`` after five seconds; a late file is removed and its name is free."""
    site.hang()
    with site.asked("record.start", name=name) as outcome:
        n_read = 0
        while not outcome:
            assert site.recordings() == []
            n_read += 1
    (error,) = outcome
    assert isinstance(error, BusyError)
    assert str(error) == f"{name}: the disk has not answered for 5 s: nothing is recorded"
    assert n_read > 1
    with site.control(READ_S) as control:
        assert control.call("set", changes={"analysis.hop": 512})
    # A file that starts before the change takes effect ends with it.
    site.daemon.receive_frame(LIMIT_S, lambda header: header.hop == 512)
    site.work()
    with site.control() as control:
        site.wait(lambda: not list(site.folder.glob("*.part")))
        site.wait(lambda: started(control, name))
        site.wait(lambda: site.written() > 4)
        (stopped,) = control.call("record.stop")
    assert (stopped["name"], stopped["state"]) == (name, "finished")
    assert [one.name for one in site.folder.iterdir()] == [name]


def started(control, name):
    """Start a file; return false while its name belongs to one that is still being aborted."""
    with contextlib.suppress(BusyError, StorageError):
        return control.call("record.start", name=name)
    return False


@pytest.mark.parametrize("name", ["x.spd", "x.flac", "x.png"])
def test_a_stop_on_a_disk_that_hangs_waits_alone(name, site):
    """Only the stop waits for the disk, reads are answered, and the file is valid afterwards."""
    with site.control() as control:
        control.call("record.start", name=name)
    site.wait(lambda: site.written() > 4)
    site.hang()
    with site.asked("record.stop") as outcome:
        for _ in range(20):
            (facts,) = site.recordings()
            assert facts["state"] == "recording"
        assert outcome == []
        site.work()
    (stopped,) = outcome[0]
    assert (stopped["state"], stopped["error"]) == ("finished", "")
    assert [one.name for one in site.folder.iterdir()] == [name]
    if name.endswith(".spd"):
        n_rows = sum(batch.n_frames for batch in SegmentReader(site.folder / name).batches())
        assert n_rows == stopped["frames"] > 4
