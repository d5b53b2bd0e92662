import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spectrod.daemon.service import (
    Notifier,
    StatusChanges,
    caught_signals,
    loop,
    serve,
    status_line,
)
from spectrod.daemon.service.analysis_progress import ProgressWatch, is_up
from spectrod.lib.errors import ConfigError, InternalError, UnavailableError
from spectrod.lib.stats import CaptureStats

sys.path.insert(0, str(Path(__file__).parents[2] / "systemd"))
from fake_daemon import FakeDaemon, make_stats

ROOT = Path(__file__).parents[3]
FAKE_DAEMON = ROOT / "tests" / "systemd" / "fake_daemon.py"


@pytest.fixture
def manager(tmp_path):
    """A service manager's socket, bound where NOTIFY_SOCKET will point."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(10.0)
        yield receiver


def _environ(manager, **more):
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


def _received(manager):
    manager.settimeout(0.0)
    try:
        while True:
            yield manager.recv(4096).decode().split("\n")[0]
    except BlockingIOError:
        return


def _await(manager, text):
    """Receive messages up to the first with a prefix, and return it."""
    while True:
        message = manager.recv(4096).decode()
        if message.startswith(text):
            return message


def _serve(fake, environ, **keywords):
    options = {"reload": list, "notifier": Notifier(environ), **keywords}
    with caught_signals() as signals:
        return serve(fake, signals=signals, **options)


def _stop_after(count, number=signal.SIGTERM):
    """Make an on_tick that sends this process a signal at its count-th call."""
    ticks = iter(range(1, count + 1))

    def on_tick(_stats):
        if next(ticks) == count:
            os.kill(os.getpid(), number)

    return on_tick


def test_the_end_of_the_source_returns_zero_after_ready(manager):
    """If the source ends at once, READY=1 still precedes STOPPING=1 and the code is zero."""
    fake = FakeDaemon()
    fake.finished = True
    assert _serve(fake, _environ(manager)) == 0
    assert fake.stops == 1
    status, *rest = _received(manager)
    assert status.startswith("STATUS=running: fake, 48000 Hz x 1, numpy; 1 rows")
    assert rest == ["READY=1", "STOPPING=1"]


def test_ready_waits_for_the_first_message(manager):
    """READY=1 is not sent before the counters show a message."""
    fake = FakeDaemon([dataclasses.replace(make_stats(9), messages=0)])
    fake.finished = True
    assert _serve(fake, _environ(manager)) == 0
    assert list(_received(manager)) == ["STOPPING=1"]


def test_a_failure_is_raised_after_the_stop(manager):
    """The daemon's own error is raised after the stop, and the status names it."""
    fake = FakeDaemon(failure=UnavailableError("device='mic': unplugged"))
    with pytest.raises(UnavailableError, match="device='mic': unplugged"):
        _serve(fake, _environ(manager))
    assert fake.stops == 1
    assert list(_received(manager)) == ["STATUS=failed: device='mic': unplugged", "STOPPING=1"]


def test_signal_handlers_are_put_back():
    """After the loop, signal handlers and the wake-up descriptor are restored."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(ConfigError, match="start"), caught_signals():
        raise ConfigError("start failed")
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_signals_before_the_loop_are_obeyed_in_their_order():
    """Signals during the start are kept: the reload runs before the end."""
    reloads = []
    with caught_signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        code = serve(
            FakeDaemon(),
            signals=signals,
            reload=lambda: reloads.append("now") or [],
            notifier=Notifier({}),
        )
    assert (code, reloads) == (130, ["now"])


def test_reloads_asked_for_meanwhile_are_one():
    """Nine reload requests during a reload cause one more, or two if they came in two groups."""
    reloads = []

    def reload():
        reloads.append("now")
        for _ in range(9 if len(reloads) == 1 else 0):
            os.kill(os.getpid(), signal.SIGHUP)
        if len(reloads) > 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return []

    with caught_signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        code = serve(FakeDaemon(), signals=signals, reload=reload, notifier=Notifier({}))
    assert code == 0
    assert len(reloads) in (2, 3)


@pytest.mark.slow
def test_an_end_does_not_wait_for_a_reload_that_takes_long():
    """SIGTERM during a reload ends the daemon without a wait for the reload."""
    released = threading.Event()

    def reload():
        os.kill(os.getpid(), signal.SIGTERM)
        assert released.wait(30.0)
        return []

    fake = FakeDaemon()
    with caught_signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        start_s = time.monotonic()
        code = serve(fake, signals=signals, reload=reload, notifier=Notifier({}))
    assert (code, fake.stops) == (0, 1)
    assert time.monotonic() - start_s < 10.0
    released.set()


def test_a_reload_that_breaks_ends_the_daemon():
    """A bug in a reload stops the daemon and reaches the caller."""

    def reload():
        raise RuntimeError("a bug")

    fake = FakeDaemon()
    with caught_signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        rule = r"reload failed: RuntimeError\('a bug'\); please report this"
        with pytest.raises(InternalError, match=rule):
            serve(fake, signals=signals, reload=reload, notifier=Notifier({}))
    assert fake.stops == 1


def test_a_failure_between_two_looks_is_not_taken_for_the_end():
    """A part that fails during a check raises its error and is not taken for a finished source."""

    class FailsWhenLookedAt(FakeDaemon):
        @property
        def finished(self):
            self.failure = UnavailableError("device='mic': unplugged")
            return True

        @finished.setter
        def finished(self, value):
            pass

    with pytest.raises(UnavailableError, match="unplugged"):
        _serve(FailsWhenLookedAt(), {})


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_loop_with_its_code(number, code):
    """SIGTERM ends the loop with code 0 and SIGINT with that of an interruption."""
    assert _serve(FakeDaemon(), {}, on_tick=_stop_after(1, number)) == code


@pytest.mark.slow
def test_the_watchdog_is_fed_while_all_counters_advance(manager):
    """The watchdog is notified while samples, rows and messages advance."""
    fake = FakeDaemon([make_stats(n) for n in range(1, 100)])
    pings = []
    stop = _stop_after(2)

    def on_tick(stats):
        pings.append(list(_received(manager)).count("WATCHDOG=1"))
        stop(stats)

    _serve(fake, _environ(manager, WATCHDOG_USEC="1000000"), on_tick=on_tick)
    assert len(pings) == 2
    assert min(pings) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("stuck", ["samples", "analysed", "rows", "messages", "heartbeats"])
def test_the_watchdog_starves_when_one_stage_is_stuck(manager, stuck):
    """One counter that stands still stops the watchdog notifications."""
    script = [dataclasses.replace(make_stats(n), **{stuck: 1}) for n in range(2, 100)]
    environ = _environ(manager, WATCHDOG_USEC="1000000")
    _serve(FakeDaemon(script), environ, on_tick=_stop_after(1))
    assert list(_received(manager)).count("WATCHDOG=1") == 1


@pytest.mark.slow
def test_the_status_is_sent_once_a_second(manager):
    """STATUS and on_tick come once a second, after a first STATUS at the start."""
    start_s = time.monotonic()
    seen = []
    stop = _stop_after(2)
    _serve(FakeDaemon(), _environ(manager), on_tick=lambda stats: (seen.append(stats), stop(stats)))
    statuses = [line for line in _received(manager) if line.startswith("STATUS=")]
    assert len(statuses) == 3
    assert len(seen) == 2
    assert time.monotonic() - start_s >= 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("stuck", "n_requests"), [({}, 2), ({"analysed": 7}, 1)])
def test_more_time_is_requested_while_samples_are_analysed(manager, stuck, n_requests):
    """Before the first message each second with new samples gets 30 s more; others get none."""
    silent = {"messages": 0, "samples": 9, "analysed": 9}
    script = [
        dataclasses.replace(make_stats(n), **(silent | {"analysed": n} | stuck))
        for n in range(1, 100)
    ]
    _serve(FakeDaemon(script), _environ(manager), on_tick=_stop_after(2))
    received = list(_received(manager))
    assert received.count("EXTEND_TIMEOUT_USEC=30000000") == n_requests
    assert "READY=1" not in received


@pytest.mark.slow
def test_a_reload_before_ready_does_not_claim_readiness(manager):
    """SIGHUP before the first message reloads without RELOADING=1 and READY=1."""
    lines = []
    ticks = iter([signal.SIGHUP, signal.SIGTERM])
    fake = FakeDaemon([make_stats(0)])
    _serve(
        fake,
        _environ(manager),
        reload=lambda: lines.append("reloaded") or [],
        on_tick=lambda _stats: os.kill(os.getpid(), next(ticks)),
    )
    assert lines == ["reloaded"]
    assert not {"READY=1", "RELOADING=1"} & set(_received(manager))


def _waiting(count, attempts, heartbeats, messages=0):
    capture = CaptureStats(waiting_for="no audio input", attempts=attempts)
    return dataclasses.replace(
        make_stats(count, "waiting"), capture=capture, heartbeats=heartbeats, messages=messages
    )


def test_ready_does_not_wait_for_a_row_that_takes_long(manager, caplog):
    """A unit whose product has a row an hour becomes ready when its samples are analysed."""
    caplog.set_level("INFO")
    fake = FakeDaemon([dataclasses.replace(make_stats(0), analysed=240_000)])
    fake.finished = True
    assert _serve(fake, _environ(manager)) == 0
    assert list(_received(manager))[1:] == ["READY=1", "STOPPING=1"]
    assert "ready: the first row of mic comes later" in caplog.text


@pytest.mark.slow
def test_looks_take_a_fifth_of_the_time_at_most(monkeypatch):
    """However often sources report changes, looking at the daemon leaves time for them."""
    clock = {"now_s": 0.0, "looks": 0}

    class Busy(FakeDaemon):
        def stats(self):
            self.progress.set()
            clock["looks"] += 1
            clock["now_s"] += 0.1
            if clock["looks"] == 11:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().stats()

    monkeypatch.setattr(loop.time, "monotonic", lambda: clock["now_s"])
    start_s = time.perf_counter()
    assert _serve(Busy(), {}) == 0
    assert time.perf_counter() - start_s >= 4.0  # ten rests of 0.4 s, which a signal ends


def test_ready_does_not_wait_for_a_source_that_is_waited_for(manager, caplog):
    """A unit whose microphone is absent becomes ready, and the log says so."""
    caplog.set_level("INFO")
    fake = FakeDaemon([_waiting(0, 1, 1)])
    fake.finished = True
    assert _serve(fake, _environ(manager)) == 0
    status, *rest = _received(manager)
    assert status.startswith("STATUS=waiting: fake, 48000 Hz x 1, numpy; no audio input; 0 rows")
    assert rest == ["READY=1", "STOPPING=1"]
    assert "ready: waiting for mic" in caplog.text


@pytest.mark.parametrize(
    ("stats", "up"),
    [
        ([make_stats(1), make_stats(0)], False),
        ([make_stats(1), make_stats(0, "starting")], False),
        ([make_stats(1), _waiting(0, 1, 1)], True),
        ([make_stats(1), make_stats(0, "failed")], True),
        ([make_stats(0, "finished"), make_stats(0, "failed")], False),
        ([make_stats(1), make_stats(1)], True),
        ([make_stats(0, "paused")], True),
        ([dataclasses.replace(make_stats(0), analysed=239_999)], False),
        ([dataclasses.replace(make_stats(0), analysed=240_000)], True),
        ([dataclasses.replace(make_stats(0, "starting"), fs=0.0)], False),
    ],
)
def test_a_daemon_is_up_once_all_of_its_sources_are(stats, up):
    """A daemon is up once each source publishes, waits or has ended, but not if all have ended.

    A source that has analysed 5 s without a first row is up, too.
    """
    assert is_up(stats) == up


def _advances(*script):
    watch = ProgressWatch()
    return [watch.has_advanced(stats) for stats in script]


def test_every_source_must_get_on():
    """One source that stands still stops the watchdog notifications."""
    assert _advances(
        [make_stats(1), make_stats(1, name="roof")],
        [make_stats(2), make_stats(1, name="roof")],
        [make_stats(3), make_stats(2, name="roof")],
    ) == [True, False, True]


def test_a_source_without_demand_must_still_deliver():
    """Without demand, samples, analysis and heartbeats of a source must still advance."""
    idle = {"computed": (), "row_due_samples": 0, "rows": 1, "messages": 1}
    assert _advances(
        *([dataclasses.replace(make_stats(n), **idle)] for n in (1, 2, 3)),
    ) == [True, True, True]
    for stuck in ("samples", "analysed", "heartbeats"):
        script = [dataclasses.replace(make_stats(n), **{**idle, stuck: 1}) for n in (1, 2)]
        assert _advances(*([stats] for stats in script)) == [True, False]
    paused = [dataclasses.replace(make_stats(n, "paused"), **idle) for n in (1, 2)]
    assert _advances(*([stats] for stats in paused)) == [True, True]


def test_rows_must_come_when_they_are_due():
    """A row that is due must come in time, even if other counters advance."""

    def slow(n, rows, due=10):
        return [
            dataclasses.replace(
                make_stats(n), rows=rows, messages=rows, analysed=4 * n, row_due_samples=due
            )
        ]

    assert _advances(slow(1, 1), slow(2, 1), slow(3, 1), slow(4, 1), slow(5, 2), slow(6, 2)) == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    # After a time without demand, a row has its full time again.
    assert _advances(slow(1, 1), slow(9, 1, due=0), slow(10, 1), slow(12, 1)) == [
        True,
        True,
        True,
        False,
    ]
    # The first row has as much time from the first sample on.
    assert _advances(slow(1, 0), slow(2, 0), slow(3, 0), slow(4, 1)) == [True, True, False, True]


def test_the_search_for_an_absent_source_must_advance():
    """A search or a publisher that hangs while a source is absent stops the notifications."""
    assert _advances(
        [_waiting(0, 1, 1)],
        [_waiting(0, 2, 1)],
        [_waiting(0, 1, 2)],
        [_waiting(0, 2, 2)],
    ) == [True, False, False, True]
    assert _advances([_waiting(0, 0, 5)]) == [False]


def test_going_away_and_coming_back_is_getting_on():
    """A change between present and absent counts as progress and resets the comparison."""
    assert _advances(
        [make_stats(5)],
        [_waiting(5, 1, 7, messages=5)],
        [_waiting(5, 1, 8, messages=5)],
        [make_stats(5)],
        [make_stats(5)],
        [make_stats(6)],
    ) == [True, True, False, True, False, True]


def test_a_source_that_has_ended_need_not_get_on():
    """A source that has ended need not advance, and the others are still watched."""
    ended = make_stats(5, "failed", name="roof")
    assert _advances(
        [make_stats(1), make_stats(5, name="roof")],
        [make_stats(2), ended],
        [make_stats(3), ended],
        [make_stats(3), ended],
    ) == [True, True, True, False]


def test_status_line_names_every_loss():
    """The status line has source, rate, counts, all four kinds of loss, and engine failures."""
    stats = dataclasses.replace(
        make_stats(7), overflows=1, overruns=2, dropped=3, gaps=4, engine_failures=5
    )
    assert status_line([stats]) == (
        "running: fake, 48000 Hz x 1, numpy; 7 rows, 7 messages; 1 subscriber, computing dbfs; "
        "1 overflows, 2 overruns, 3 dropped, 4 gaps, 5 engine failures"
    )


def test_the_status_line_describes_the_capture():
    """The status line has clock rate, detected losses, restarts of capture, and oddities."""
    capture = CaptureStats(
        restarts=1, suspected=2, rate_error_ppm=-12.34, rate_uncertainty_ppm=0.456
    )
    stats = dataclasses.replace(
        make_stats(7), capture=capture, checks=("silent: 0",), clipped_samples=3
    )
    assert status_line([stats]).endswith(
        "0 engine failures; 2 suspected losses, 1 restarts, 3 clipped samples, "
        "rate -12.3 +- 0.46 ppm, silent: 0"
    )


def test_status_line_of_a_source_that_was_never_there():
    """The status line of a source that was never available has the reason and the search."""
    capture = CaptureStats(waiting_for="soundcard: no audio input on this machine", attempts=9)
    stats = dataclasses.replace(make_stats(0, "waiting"), fs=0.0, channels=0, capture=capture)
    assert status_line([stats]) == (
        "waiting: soundcard: no audio input on this machine; tried 9 times"
    )


def test_a_log_has_changes_of_the_status_and_a_line_in_ten_minutes():
    """Counts that rise are no line of a log; a new state, demand, loss or trouble is one, once."""
    changes = StatusChanges()
    times = iter(range(10_000))

    def lines(n, troubles=(), **fields):
        several = [dataclasses.replace(make_stats(k), **fields) for k in range(n)]
        return [changes.is_due([one], troubles, float(next(times))) for one in several]

    assert lines(3) == [True, False, False]
    assert lines(3, computed=()) == [True, False, False]
    assert lines(3, computed=(), overruns=1) == [True, False, False]
    assert lines(2, computed=(), overruns=2) == [False, False]
    assert lines(2, computed=(), overruns=2, checks=("dc: 0 (-23.1 dBFS)",)) == [True, False]
    assert lines(2, computed=(), overruns=2, checks=("dc: 0 (-22.9 dBFS)",)) == [False, False]
    assert lines(2, ("recording x: failed",), computed=()) == [True, False]
    assert lines(2, state="failed") == [True, False]
    assert sum(lines(6000, state="failed")) == 10


def test_status_line_of_several_sources_is_short():
    """With several sources the status line has the name, the state and the problems of each."""
    lossy = dataclasses.replace(make_stats(7), name="roof", overruns=2)
    failed = dataclasses.replace(make_stats(3, "failed"), name="shed")
    idle = dataclasses.replace(make_stats(5), computed=(), subscribers=0)
    assert status_line([idle, lossy, _waiting(0, 1, 1), failed]) == (
        "mic running, 5 messages, computing nothing | roof running, 7 messages, 2 overruns | "
        "mic waiting: no audio input | shed failed, 3 messages | 0 subscribers"
    )


def test_the_status_line_begins_with_the_recordings_that_failed(manager):
    """A recording that cannot be written is at the start of the line that the manager gets."""
    fake = FakeDaemon(troubles=("recording all of mic: failed: No space left on device",))
    fake.finished = True
    assert _serve(fake, _environ(manager)) == 0
    assert next(_received(manager)).startswith(
        "STATUS=recording all of mic: failed: No space left on device | running: fake, 48000 Hz"
    )


def test_the_status_line_counts_troubles_after_the_fourth():
    """With several sources and six failures, four are named, and the others counted."""
    line = status_line([make_stats(5)] * 2, [f"recording {n} of mic: full" for n in range(6)])
    parts = line.split(" | ")
    assert parts[:5] == [*(f"recording {n} of mic: full" for n in range(4)), "2 more"]
    assert parts[5].startswith("mic running")


def test_the_status_line_lists_computed_products():
    """The status line of a single source lists the products that are computed."""
    stats = make_stats(7)
    two = dataclasses.replace(stats, subscribers=2, computed=("dbfs", "levels"))
    assert "; 2 subscribers, computing dbfs, levels; " in status_line([two])
    none = dataclasses.replace(stats, subscribers=0, computed=())
    assert "; 0 subscribers, computing nothing; " in status_line([none])


@pytest.fixture
def daemon(manager):
    """Start the fake daemon under the manager's socket, and stop it after the test."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, FAKE_DAEMON, *arguments],
            env={**os.environ, **_environ(manager), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        _await(manager, "READY=1")
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_process_stops_cleanly_within_two_seconds(daemon, number, code):
    """A signal ends a real process within two seconds with its exit code."""
    process = daemon()
    process.send_signal(number)
    start_s = time.monotonic()
    output, errors = process.communicate(timeout=10)
    assert time.monotonic() - start_s < 2.0
    assert (process.returncode, output) == (code, "stopped 1\n")
    assert f"{number.name}: stopping" in errors


@pytest.mark.slow
def test_sighup_reloads_and_is_logged(daemon, manager):
    """SIGHUP sends RELOADING and READY around the reload and logs the changes."""
    process = daemon()
    process.send_signal(signal.SIGHUP)
    _await(manager, "RELOADING=1")
    _await(manager, "READY=1")
    process.terminate()
    assert "INFO    reload: log.level: applied\n" in process.communicate(timeout=10)[1]


@pytest.mark.slow
def test_a_refused_reload_is_logged_and_survived(daemon, manager):
    """A reload of an invalid configuration logs the rule, and the daemon continues."""
    process = daemon("--refuse")
    process.send_signal(signal.SIGHUP)
    _await(manager, "RELOADING=1")
    _await(manager, "READY=1")
    process.terminate()
    errors = process.communicate(timeout=10)[1]
    assert "reload refused: hop=0: must be at least 1 sample" in errors
    assert process.returncode == 0


@pytest.mark.slow
def test_a_stop_that_hangs_is_cut_short(daemon):
    """A daemon whose stop hangs ends with code 1 and a traceback of the place."""
    process = daemon("--hang")
    process.terminate()
    errors = process.communicate(timeout=20)[1]
    assert process.returncode == 1
    assert "Timeout" in errors
    assert "in stop" in errors


def test_a_manager_that_is_misdescribed_is_refused():
    """A malformed NOTIFY_SOCKET or WATCHDOG variable is a configuration error."""
    with pytest.raises(ConfigError, match="must be an absolute path"):
        _serve(FakeDaemon(), {"NOTIFY_SOCKET": "x"})
