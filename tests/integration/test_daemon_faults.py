"""A running daemon's messages about faults of the capture."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from audio_daemon import START_S, Daemon
from audio_faults import children, stopped, wait_for_end

pytestmark = [pytest.mark.slow, pytest.mark.audio]

FS = 48000
BLOCK_S = 0.01
HOUR_NS = 3600 * 10**9


def capture_process(daemon):
    """Return the id of the daemon's only child."""
    (pid,) = children(daemon.process.pid)
    return pid


def time_of(header):
    """Return when a frame started by its index, and by the monotonic clock [s]."""
    return header.sample_index / FS, header.t_mono_ns * 1e-9


def assert_gap_is_as_long_as_the_time(before, after):
    """Check that received and lost samples together fit the elapsed time."""
    (index_0, mono_0), (index_1, mono_1) = time_of(before), time_of(after)
    assert abs((index_1 - index_0) - (mono_1 - mono_0)) <= BLOCK_S


def test_subscriber_hears_of_a_server_that_is_killed_and_back(sound_server):
    """A killed server is reported by a heartbeat within a second, and its gap by a spectrum."""
    with Daemon() as daemon:
        before, _ = daemon.receive_frame(START_S)
        killed = time.monotonic()
        sound_server.kill()
        heartbeat, noticed = daemon.receive_state("waiting", 1.5)
        assert noticed - killed < 1.0
        assert heartbeat.header.waiting_for
        sound_server.start()
        started = time.monotonic()
        after, back = daemon.receive_frame(4.0, lambda header: header.gap_samples > 0)
        assert back - started < 3.0
        assert_gap_is_as_long_as_the_time(before.header, after.header)
        heartbeat, _ = daemon.receive_state("running", 2.0)
        assert (heartbeat.header.restarts, heartbeat.header.suspected) == (1, 0)
        assert heartbeat.header.waiting_for == ""
    assert daemon.process.returncode == 0


def test_subscriber_hears_of_a_card_that_is_absent_at_the_start(silent_server):
    """Without its card the daemon starts, reports the reason and delivers once the card appears."""
    with Daemon() as daemon:
        heartbeat, _ = daemon.receive_state("waiting", START_S)
        assert "soundcard" in heartbeat.header.waiting_for
        silent_server.start()
        started = time.monotonic()
        _, back = daemon.receive_frame(4.0)
        assert back - started < 3.0
    assert daemon.process.returncode == 0


def test_subscriber_hears_of_a_capture_process_that_is_killed(sound_server):
    """A killed capture process is replaced at once, with the gap in the next spectrum."""
    with Daemon() as daemon:
        before, _ = daemon.receive_frame(START_S)
        killed = capture_process(daemon)
        os.kill(killed, signal.SIGKILL)
        after, _ = daemon.receive_frame(START_S, lambda header: header.gap_samples > 0)
        assert_gap_is_as_long_as_the_time(before.header, after.header)
        new = capture_process(daemon)
        assert new != killed
    assert daemon.process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(new, 0)


@pytest.mark.extended
def test_a_suspended_daemon_reports_its_losses(sound_server):
    """After ten seconds without a processor, the daemon reports what it lost from the capture."""
    with Daemon() as daemon:
        before, _ = daemon.receive_frame(START_S)
        with stopped(daemon.process.pid):
            time.sleep(10.0)
        after, _ = daemon.receive_frame(START_S, lambda header: header.gap_samples > FS)
        assert_gap_is_as_long_as_the_time(before.header, after.header)
        _, last = daemon.receive_state("running", START_S)
        frame, _ = daemon.receive_frame(START_S, lambda header: header.t_mono_ns * 1e-9 > last)
        assert_gap_is_as_long_as_the_time(before.header, frame.header)
    assert daemon.process.returncode == 0


def test_daemon_that_is_killed_takes_its_capture_process_with_it(sound_server):
    """If the daemon is killed, its capture process ends, too."""
    with Daemon() as daemon:
        daemon.receive_frame(START_S)
        pid = capture_process(daemon)
        daemon.process.kill()
        with contextlib.suppress(ProcessLookupError):  # already gone
            wait_for_end(pid, 2.0)


def test_wall_clock_that_is_set(sound_server, tmp_path):
    """UTC follows a clock set by an hour; indices and monotonic times do not."""
    libraries = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    assert libraries, "not installed: faketime (make test installs it)"
    offset = tmp_path / "offset"

    def set_clock(text):
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", offset)  # noqa: PTH105 - atomic for every reader

    set_clock("+0")
    # libfaketime 0.9.10 refuses to sleep until a time, which is how Python sleeps.
    (tmp_path / "sitecustomize.py").write_text(
        "import select, time\ntime.sleep = lambda s: select.select([], [], [], s)\n"
    )
    env = {
        "PYTHONPATH": str(tmp_path),
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": "1",  # a file read with each call would hold the daemon up
        "DONT_FAKE_MONOTONIC": "1",
    }
    with Daemon(env=env) as daemon:
        first, _ = daemon.receive_frame(START_S)
        utc_0 = first.header.t_utc_ns - first.header.t_mono_ns
        for text, hours in (("+1h", 1), ("-1h", -1)):
            set_clock(text)

            def follows(header, hours=hours):
                return abs(header.t_utc_ns - header.t_mono_ns - utc_0 - hours * HOUR_NS) < 10**8

            frame, _ = daemon.receive_frame(START_S, follows)
            assert_gap_is_as_long_as_the_time(first.header, frame.header)
            assert frame.header.gap_samples == 0
        heartbeat, _ = daemon.receive_state("running", START_S)
        assert (heartbeat.header.suspected, heartbeat.header.restarts) == (0, 0)
    lines = [line for line in daemon.log if "wall clock was set by +3600" in line]
    assert lines, daemon.log
    # The same library shifts the clock by which a stalled thread is found.
    assert not [line for line in daemon.log if "closed to new connections" in line]
