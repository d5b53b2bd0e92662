"""Recordings on request: their folder, their product, and the release of resources on errors."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectrod.config.settings import SourceTable
from spectrod.daemon import recordings
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.directory import Directory
from spectrod.lib.errors import BusyError, ConfigError, StorageError
from spectrod.lib.events import EventLog
from spectrod.recording.picture_output import PictureOutput, picture_bytes
from spectrod.recording.state_folder import state_folder
from spectrod.wire.requests import StartRecordingParams


@pytest.mark.parametrize(
    ("configured", "service", "home", "folder"),
    [
        ("/a", "/b", "/c", "/a"),
        ("", "/b", "/c", "/b"),
        ("", "/b:/x", "/c", "/b"),
        ("", "", "/c", "/c/spectrod"),
        ("", "", "relative", "/home/ann/.local/state/spectrod"),
        ("", "", "", "/home/ann/.local/state/spectrod"),
    ],
)
def test_the_state_folder_is_the_named_the_services_or_the_users(
    configured, service, home, folder, monkeypatch
):
    """The state folder is the configured one, else the service's, else the user's."""
    monkeypatch.setenv("STATE_DIRECTORY", service)
    monkeypatch.setenv("XDG_STATE_HOME", home)
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_folder(configured) == Path(folder)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bands": "octave"}, "product='density': pictures show no bands"),
        ({"iq": True, "channels": 2}, "product='density': pictures show no two-sided or complex"),
        ({"nfft": 1 << 20, "channels": 1}, "1 channels of 524289 bins need 8000 MB for a picture"),
    ],
)
def test_a_product_that_no_picture_can_show_is_refused(options, text):
    """A product that no picture can show is refused before anything is recorded."""
    with pytest.raises(ConfigError) as refused:
        picture_bytes(SpectrumSpec(48000.0, **options))
    assert text in str(refused.value)


# ---- failed starts, and disks that hang

SPEC = SpectrumSpec(8000.0, nfft=64, win_length=64, hop=10, scaling="spectrum")
NAMES = ["x.spd", "x.wav", "x.flac", "x.png"]


class Source:
    """A source whose product can vanish between the check and the attachment."""

    name, ended, table = "pond", False, SourceTable()
    finished, specs, error, triggers = False, (SPEC,), None, None

    @property
    def pipeline(self):
        return self

    def attach(self, _sink, _product, _on_failure):
        if self.error:
            raise self.error

    def detach(self, _sink):
        pass

    def tap(self, sink, on_failure):
        self.attach(sink, "", on_failure)

    def untap(self, _sink):
        pass


@pytest.fixture
def started(tmp_path):
    """Start recordings of a source and stop all of them after the test."""
    running = recordings.Recordings(tmp_path / "state", EventLog())
    running.source = Source()
    running.begin = lambda name, **more: running.start(
        running.source, StartRecordingParams(name=name, **more), "ann"
    )
    running.states = lambda: {one["name"]: one["state"] for one in running.status()["recordings"]}
    yield running
    running.close()


@pytest.fixture
def disk(monkeypatch):
    """A disk on which directories can be opened once it is ``set``."""
    answers, opened = threading.Event(), Directory.open.__func__

    def wait(cls, path):
        assert answers.wait(30.0)
        return opened(cls, path)

    monkeypatch.setattr(Directory, "open", classmethod(wait))
    monkeypatch.setattr(recordings, "START_MAX_S", 0.05)

    def answer():
        # From now on a start may take as long as a busy machine needs.
        monkeypatch.setattr(recordings, "START_MAX_S", 30.0)
        answers.set()

    yield SimpleNamespace(set=answer)
    answers.set()


def descriptors():
    return {one.name for one in Path("/proc/self/fd").iterdir()}


def wait_until(is_true):
    deadline, pause = 30.0, threading.Event()
    while not is_true():
        pause.wait(0.01)
        deadline -= 0.01
        assert deadline > 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_start_that_fails_leaves_no_file_and_no_descriptor(name, started, tmp_path):
    """A start that fails, in the pipeline or at the file's name, leaves no file or descriptor."""
    before, started.source.error = descriptors(), ConfigError("product='x': is gone")
    with pytest.raises(ConfigError, match="product='x': is gone"):
        started.begin(name)
    assert list((tmp_path / "state").iterdir()) == []
    (tmp_path / "state" / name).mkdir()
    with pytest.raises(StorageError, match=f"{name}: already exists; choose another name"):
        started.begin(name)
    assert list((tmp_path / "state" / name).parent.iterdir()) == [tmp_path / "state" / name]
    assert started.states() == {}
    wait_until(lambda: descriptors() == before)


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_duration_that_no_clock_can_count_leaves_nothing(name, started, tmp_path):
    """A duration beyond the range of the clock leaves nothing, even if the schema accepts it."""
    before = descriptors()
    for duration_s in (float("inf"), float("nan")):
        with pytest.raises(Exception, match="please report this"):
            started.begin(name, duration_s=duration_s)
    assert not list(tmp_path.glob("state/*"))
    wait_until(lambda: descriptors() == before)


@pytest.mark.parametrize("name", NAMES)
def test_a_start_does_not_wait_for_a_disk_that_hangs(name, started, disk, tmp_path):
    """A start on a disk that hangs is refused in time, and a file made later is removed."""
    before = descriptors()
    with pytest.raises(BusyError, match=f"{name}: the disk has not answered for 0.05 s: nothing"):
        started.begin(name)
    assert started.states() == {}
    disk.set()
    wait_until(lambda: not started._running)
    wait_until(lambda: list((tmp_path / "state").iterdir()) == [])
    wait_until(lambda: descriptors() == before)
    assert started.begin(name)["state"] == "recording"


def test_files_that_hang_count_for_as_many_as_may_run(started, disk):
    """Files that hang count towards the limit, so requests cannot add threads without bound."""
    for k in range(recordings.ONE_SHOTS_MAX):
        with pytest.raises(BusyError, match="the disk has not answered"):
            started.begin(f"{k}.spd")
    with pytest.raises(BusyError, match="recordings: 4 run already; stop one first"):
        started.begin("more.spd")
    disk.set()
    wait_until(lambda: not started._running)
    assert started.begin("more.spd")["state"] == "recording"


def test_the_name_of_a_file_that_hangs_is_taken(started, disk):
    """The name of a file that hangs stays reserved, so that two recordings never share it."""
    with pytest.raises(BusyError, match="the disk has not answered"):
        started.begin("x.spd")
    with pytest.raises(StorageError, match=r"x\.spd: already exists; choose another name"):
        started.begin("x.spd")


def test_one_file_that_hangs_at_its_end_holds_up_no_other(started, monkeypatch):
    """A file that hangs at its end delays no other, and the status names it."""
    answers = threading.Event()
    abort = PictureOutput.abort

    def hang(picture):
        if picture.path.name == "a.png":
            assert answers.wait(30.0)
        abort(picture)

    monkeypatch.setattr(PictureOutput, "abort", hang)
    monkeypatch.setattr(recordings, "STOP_MAX_S", 0.05)
    for name in ("a.png", "b.png"):
        started.begin(name)
    with pytest.raises(BusyError, match=r"a\.png: is still being written"):
        started.stop("a.png", "ann")
    monkeypatch.setattr(recordings, "STOP_MAX_S", 30.0)
    (stopped,) = started.stop("b.png", "ann")
    assert (stopped["name"], stopped["state"]) == ("b.png", "failed")  # nothing to draw
    assert started.states() == {"a.png": "recording", "b.png": "failed"}
    answers.set()
    wait_until(lambda: "recording" not in started.states().values())


def test_a_source_that_ends_ends_its_files(started):
    """The end of a source ends the files on request of that source, once it is reported."""
    started.begin("x.png")
    started.update([], [])
    assert started.states() == {"x.png": "recording"}
    started.source.finished = True
    started.update([], [])
    wait_until(lambda: started.states() == {"x.png": "failed"})  # nothing to draw


def test_a_source_that_ends_while_a_file_is_opened_ends_the_file(started):
    """A source whose end is reported before the file is open ends the file as well."""
    attach = started.source.attach

    def end_and_attach(*arguments):
        started.source.finished = True
        started.update([], [])
        attach(*arguments)

    started.source.attach = end_and_attach
    started.begin("x.spd")
    wait_until(lambda: started.states() == {"x.spd": "failed"})


def test_finished_files_stay_in_the_status(started):
    """The status keeps the last twenty finished files, with the journal's text of each."""
    for k in range(22):
        started.begin(f"{k}.spd")
        started.stop(f"{k}.spd", "bob")
    assert [*started.states()] == [f"{k}.spd" for k in range(2, 22)]
    (last,) = [one for one in started.status()["recordings"] if one["name"] == "21.spd"]
    assert (last["who"], last["error"]) == ("bob", "21.spd: nothing came to be written")
    events = [one for one in started._events.since() if one.kind == "record.stop"]
    assert events[-1].text == f"21.spd: failed, 0 rows: {last['error']}"
