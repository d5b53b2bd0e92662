"""Killed daemons and subscribers: the other side continues and reports the loss."""

import json
import subprocess
import sys
import time

import pytest

from spectrod.client import Control, latest, subscribe

TIMEOUT_S = 60.0
RECOVERY_S = 2.0

pytestmark = pytest.mark.slow

READER = """
import json, sys
from spectrod.client import subscribe
for frame in subscribe(sys.argv[1], "spec/tone/0/"):
    print(json.dumps(frame.header.seq), flush=True)
"""


@pytest.fixture
def start(tmp_path, run_daemon):
    """Run a daemon at free ports or at those of an earlier one."""

    def run(like=None):
        publish, control = (like.endpoint, like.control) if like else ("tcp://127.0.0.1:*",) * 2
        config = tmp_path / "spectrod.toml"
        config.write_text(
            f"""
            source = {{ uri = "signal:sine,1000,-20", name = "tone" }}
            analysis = {{ win_length = 512, hop = 480 }}
            engine = {{ engine = "numpy" }}
            publish = {{ endpoints = ["{publish}"] }}
            control = {{ endpoints = ["{control}"] }}
            """
        )
        return run_daemon(config)

    return run


def test_a_subscriber_outlives_a_daemon_that_is_killed(start):
    """A subscriber reports a killed daemon's restart, its duration and the missed messages."""
    first = start()
    with subscribe(first.endpoint, timeout_s=TIMEOUT_S) as frames:
        before = [next(frames) for _ in range(20)][-1]
        first.kill()
        last = before
        while (frame := frames.receive(0.2)) is not None:
            last = frame
        assert last.header.epoch == before.header.epoch
        second = start(like=first)
        start_s = time.monotonic()
        after = next(frames)
        assert time.monotonic() - start_s < RECOVERY_S
        assert second.process.poll() is None
        assert after.restarted
        assert after.header.epoch != last.header.epoch
        assert after.missed == after.header.seq == frames.missed
        apart_s = (after.header.t_utc_ns - last.header.t_utc_ns) / 1e9
        assert after.away_s == apart_s > 0.2
        nexts = [next(frames) for _ in range(20)]
        assert not any(frame.restarted or frame.missed or frame.away_s for frame in nexts)


def test_replay_after_a_restart_starts_with_the_first_frame(start):
    """After a restart, replay starts with the new daemon's first frame."""
    first = start()
    with subscribe(first.endpoint, timeout_s=TIMEOUT_S, replay_from=first.control) as frames:
        next(frames)
        first.kill()
        while frames.receive(0.2) is not None:
            pass
        start(like=first)
        after = next(frames)
        assert after.restarted
        assert after.header.seq == after.missed == 0
        assert after.away_s > 0.2
        assert not next(frames).restarted
        assert frames.replay_failure == ""


def test_control_and_latest_outlive_a_daemon_that_is_killed(start):
    """Control and latest objects survive a restart, which the newest frame reports."""
    first = start()
    with (
        latest(first.control, "spec/tone/0/dbfs/", timeout_s=TIMEOUT_S) as newest,
        Control(first.control, timeout_s=TIMEOUT_S) as control,
    ):
        next(newest)
        epoch = control.call("status")["daemon"]["epoch"]
        first.kill()
        second = start(like=first)
        start_s = time.monotonic()
        after = next(newest)
        assert time.monotonic() - start_s < RECOVERY_S
        assert after.restarted
        assert after.away_s > 0.0
        about = control.call("status")["daemon"]
        assert about["epoch"] == after.header.epoch != epoch
        assert about["pid"] == second.process.pid


def test_a_daemon_outlives_a_subscriber_that_is_killed(start):
    """A daemon stops counting a killed subscriber, others lose nothing, a new one is served."""
    daemon = start()
    command = [sys.executable, "-c", READER, daemon.endpoint]
    with (
        subscribe(daemon.endpoint, timeout_s=TIMEOUT_S) as frames,
        Control(daemon.control) as control,
    ):
        next(frames)
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
                numbers = [json.loads(reader.stdout.readline()) for _ in range(10)]
                assert numbers == list(range(numbers[0], numbers[0] + 10))
                assert control.call("status")["daemon"]["subscribers"] == 2
                reader.kill()
            killed_s = time.monotonic()
            while control.call("status")["daemon"]["subscribers"] == 2:
                assert next(frames).missed == 0
                assert time.monotonic() - killed_s < RECOVERY_S
        assert frames.missed == 0
        assert control.call("status")["sources"][0]["state"] == "running"
