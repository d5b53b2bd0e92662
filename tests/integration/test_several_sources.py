"""Several sources in one daemon, and absent sound cards, over real sockets."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import soundfile
from msgspec.structs import replace

from spectrod import client
from spectrod.config.config import (
    AnalysisConfig,
    Config,
    EngineConfig,
    PublishConfig,
    SourceConfig,
    SourceTable,
)
from spectrod.daemon import source_runner as runner_module
from spectrod.daemon.daemon import build_daemon
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.publisher.source_publisher import SourcePublisher
from spectrod.daemon.service.analysis_progress import ProgressWatch, is_up
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeviceError,
    InputError,
    InternalError,
    UnavailableError,
)
from spectrod.source.signal import SignalSource

TIMEOUT_S = 60.0
ANY_PORT = PublishConfig(endpoints=("tcp://127.0.0.1:*",))
NUMPY = EngineConfig("numpy")
TONE = SourceTable(uri="signal:sine,1000,-20", name="tone")
POND = SourceTable(
    uri="signal:multitone,-20,3000",
    name="pond",
    samplerate=96_000,
    channels=2,
    channel_names=("radio",),
    iq=True,
    analysis=AnalysisConfig(win_length=2048, hop=1024),
)
ABSENT = SourceTable(uri="soundcard:serial=123", name="mic")


def settings(*sources, **fields):
    return Config(sources=sources, publish=ANY_PORT, engine=NUMPY, **fields)


@pytest.fixture
def start(count_threads):
    """Start daemons, and check after the test that they leave no resources."""
    threads = count_threads()
    started = []

    def start(*sources, **fields):
        started.append(build_daemon(settings(*sources, **fields)))
        started[-1].start()
        return started[-1]

    yield start
    for running in started:
        running.stop()
        running.stop()
    assert count_threads() == threads


def subscribe(running, prefix="spec/"):
    return client.subscribe(running.publisher.endpoints[0], prefix, timeout_s=TIMEOUT_S)


def wait_until(running, condition):
    """Wait on the daemon's own wake-ups for a condition."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        running.progress.wait(0.5)  # counters without a wake-up are polled
        assert time.monotonic() < deadline_s, running.stats()


def wait_for_lines(running, caplog, *lines):
    """Wait for lines of the log, which follow the state that they describe."""
    wait_until(running, lambda: set(lines) <= set(caplog.messages))


def states(running):
    return [stats.state for stats in running.stats()]


def test_each_source_has_topics_rate_and_analysis_of_its_own(start):
    """Each source has its own topics, rate and analysis."""
    running = start(TONE, POND)
    with subscribe(running) as frames:
        seen = {}
        while len(seen) < 2:
            frame = next(frames)
            seen[frame.topic] = frame
        while [beat.state for beat in frames.heartbeats.values()] != ["running"] * 2:
            next(frames)
        while "spec/pond/radio/dbfs/" not in frames.meta:  # sent again within a second
            next(frames)
    tone, pond = seen["spec/tone/0/dbfs/"], seen["spec/pond/radio/dbfs/"]
    assert (tone.header.fs, tone.header.hop, tone.values.shape) == (48_000, 1024, (2049,))
    assert (pond.header.fs, pond.header.win_length, pond.values.shape) == (96_000, 2048, (2048,))
    assert abs(tone.f[tone.values.argmax()] - 1000.0) <= 48_000 / 4096
    # The same tone as I and as Q is alike on both sides; exactly on a bin.
    peaks = pond.f[np.argsort(pond.values)[-2:]]
    np.testing.assert_allclose(np.sort(peaks), [-3000.0, 3000.0], atol=0.5)
    assert pond.header.first_bin == -1024
    assert frames.meta[pond.topic].header.channel_names == ("radio",)


def test_threads_do_not_grow_with_sources(start, tmp_path):
    """Dozens of signals, FIFOs and files need no more threads than three do, and all go on."""

    def several(n):
        for number in range(n):
            path = tmp_path / f"{number}.fifo"
            if not path.exists():
                os.mkfifo(path)
        fs = {"samplerate": 8000, "pace": "realtime"}
        soundfile.write(tmp_path / "x.wav", np.zeros(8000), 8000, subtype="PCM_16")
        kinds = ["signal:sine,1000,-20", f"{tmp_path}/x.wav", f"pcm:{tmp_path}/{{}}.fifo"]
        return [
            SourceTable(
                uri=kinds[number % 3].format(number),
                name=f"s{number}",
                loop=number % 3 == 1,
                **(fs if number % 3 < 2 else {"samplerate": 8000}),
            )
            for number in range(n)
        ]

    few = start(*several(3))
    wait_until(few, lambda: is_up(few.stats()))
    few.stop()
    limit = threading.active_count() + few._pool.threads_max + 8  # publisher, access and others
    many = start(*several(60))
    wait_until(many, lambda: is_up(many.stats()))
    assert threading.active_count() <= limit
    before = [stats.samples for stats in many.stats()]
    wait_until(
        many,
        lambda: all(
            now.state == "waiting" or now.samples > old
            for now, old in zip(many.stats(), before, strict=True)
        ),
    )


def test_a_stop_asks_all_sources_before_it_waits_for_one(start, monkeypatch):
    """Hundreds of sources end together, or the stop would wait for a thread for each of them."""
    running = start(*(replace(TONE, name=f"s{number}") for number in range(5)))
    wait_until(running, lambda: is_up(running.stats()))
    stop, asked = Pipeline.stop, []

    def noting(pipeline):
        asked.append([one.pipeline._stopping for one in running.runners])
        stop(pipeline)

    monkeypatch.setattr(Pipeline, "stop", noting)
    running.stop()
    assert asked[0] == [True] * 5
    assert states(running) == ["stopped"] * 5


def test_one_that_ends_leaves_the_other_alone(start, tmp_path, caplog):
    """A source that ends sends a heartbeat, and the daemon continues with the other one."""
    caplog.set_level("INFO")
    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(4800), 48_000)
    running = start(SourceTable(uri=str(path), name="short"), TONE)
    with subscribe(running) as frames:
        while frames.heartbeats.get("short") is None or (
            frames.heartbeats["short"].state != "finished"
        ):
            next(frames)
        assert next(frames).source == "tone"
        assert frames.alive
    assert not running.finished
    running.raise_failure()
    wait_for_lines(running, caplog, "short: the source has ended")


def test_when_all_have_ended_the_daemon_has_and_the_first_failure_is_its_own(
    start, tmp_path, monkeypatch, caplog
):
    """The daemon ends with all sources, and the first failure decides its exit code."""
    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(9600), 48_000)
    release = {"first": threading.Event(), "second": threading.Event()}

    def failing(source, _n_max):
        name = source.name
        release[name].wait(TIMEOUT_S)
        raise InputError(f"{name}: torn")
        yield

    monkeypatch.setattr(SignalSource, "blocks", failing)
    tones = [SourceTable(uri="signal:sine,1000,-20", name=name) for name in ("second", "first")]
    running = start(*tones, SourceTable(uri=str(path), name="short"))
    wait_until(running, lambda: states(running)[2] == "finished")
    release["first"].set()
    wait_until(running, lambda: states(running)[1] == "failed")
    running.raise_failure()
    assert not running.finished
    release["second"].set()
    wait_until(running, lambda: running.finished)
    with pytest.raises(InputError, match="first: torn"):
        running.raise_failure()
    lines = [f"{name}: failed: {name}: torn" for name in ("first", "second")]
    wait_for_lines(running, caplog, *lines)


def test_a_source_that_cannot_be_opened_ends_the_start(start, monkeypatch):
    """A source that cannot be opened ends the start, and open ones are closed."""
    stopped = []
    monkeypatch.setattr(SignalSource, "stop", lambda source: stopped.append(source.name))
    with pytest.raises(InputError, match=r"absent\.wav: No such file"):
        build_daemon(settings(TONE, SourceTable(uri="/absent.wav", name="file")))
    assert stopped == ["tone"]
    with pytest.raises(ConfigError, match="channel_names=a,b: must be 1, one for each spectrum"):
        build_daemon(settings(SourceTable(uri=TONE.uri, channel_names=("a", "b"))))


def test_a_second_daemon_on_an_endpoint_is_refused(tmp_path, monkeypatch):
    """A second daemon on an endpoint fails in start and can be stopped."""
    monkeypatch.chdir(tmp_path)  # its path may be too long for a socket's address
    publish = PublishConfig(endpoints=("ipc://spectrum",))
    one = Config(SourceConfig(uri=TONE.uri), engine=NUMPY, publish=publish)
    first, second = build_daemon(one), build_daemon(one)
    first.start()
    try:
        with pytest.raises(BusyError, match="ipc://spectrum"):
            second.start()
        second.stop()
    finally:
        first.stop()


def test_a_failing_publisher_ends_it(start, monkeypatch):
    """A failing publisher ends the daemon."""
    running = start(TONE, POND)
    monkeypatch.setattr(SourcePublisher, "described", None)
    with subscribe(running):
        wait_until(running, lambda: running.finished)
    with pytest.raises(InternalError, match=r"publisher failed: TypeError.*please report this"):
        running.raise_failure()


# ---- changes while running


def test_changed_analyses_start_with_the_next_block(start):
    """A changed analysis applies from the source's next block on, without a reported loss."""
    running = start(TONE, POND)
    with subscribe(running) as frames:
        next(frames)
        changed = AnalysisConfig("flattop", 512, 128, scaling="density")
        running.reconfigure(settings(replace(TONE, analysis=changed), POND))
        frame = next(frame for frame in frames if frame.header.nfft == 512)
        assert (frame.source, frame.header.unit) == ("tone", "FS^2/Hz")
        assert next(f for f in frames if f.source == "pond").header.nfft == 2048
        assert frames.missed == 0
    assert [stats.gaps for stats in running.stats()] == [0, 0]


def test_a_change_that_one_source_refuses_changes_none(start, monkeypatch):
    """If one source refuses a change, none is changed."""
    running = start(TONE, POND)
    wait_until(running, lambda: all(stats.messages for stats in running.stats()))
    before = [runner.pipeline.spec for runner in running.runners]
    more = replace(TONE, name="more")
    fine, broken = (
        replace(table, analysis=AnalysisConfig(hop=hop)) for table, hop in ((TONE, 64), (POND, 0))
    )
    with pytest.raises(ConfigError, match="hop=0: must be at least 1 sample"):
        running.reconfigure(settings(fine, more, broken))
    n = [stats.analysed for stats in running.stats()]
    wait_until(
        running, lambda: all(now.analysed > k for now, k in zip(running.stats(), n, strict=True))
    )
    assert [runner.pipeline.spec for runner in running.runners] == before


# ---- absent sound cards


class Sound:
    """A replacement for the machine's sound devices, none of which exist at first."""

    def __init__(self, monkeypatch):
        self.answer = UnavailableError("soundcard: no audio input on this machine")
        self.asked = threading.Semaphore(0)
        self._real = runner_module.open_source
        monkeypatch.setattr(runner_module, "open_source", self._open)

    def _open(self, table):
        if not table.uri.startswith("soundcard"):
            return self._real(table)
        self.asked.release()
        answer = self.answer() if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def sound(monkeypatch):
    return Sound(monkeypatch)


def tone_source(channels=2):
    return SignalSource("sine,1000,-20", 44_100.0, channels, "realtime")


def test_a_card_that_comes_later_is_analysed_then(start, sound, caplog):
    """An absent card is reported by heartbeats, analysed once it appears, and delays no other."""
    caplog.set_level("INFO")
    running = start(ABSENT, TONE)
    assert states(running)[0] == "waiting"
    with subscribe(running) as frames:
        while (beat := frames.heartbeats.get("mic")) is None:
            next(frames)
        assert (beat.state, beat.waiting_for) == ("waiting", str(sound.answer))
        for _ in range(3):
            assert sound.asked.acquire(timeout=TIMEOUT_S)
        assert running.stats()[0].capture.attempts >= 2
        sound.answer = tone_source
        frame = next(frame for frame in frames if frame.source == "mic")
        assert (frame.header.fs, frame.header.seq, frame.header.gap_samples) == (44_100, 0, 0)
        assert frames.meta[frame.topic].header.device == "test signal sine,1000,-20"
        while frames.heartbeats["mic"].state != "running":
            next(frames)
        assert frames.heartbeats["mic"].waiting_for == ""
    wait_for_lines(
        running,
        caplog,
        "mic: waiting: soundcard: no audio input on this machine",
        "mic: there: test signal sine,1000,-20, 44100 Hz",
    )


def test_another_reason_is_logged_at_once_and_the_same_one_once(start, sound, caplog):
    """A new reason to wait is logged at once, the same one only once."""
    running = start(ABSENT)
    with subscribe(running, "hb/") as beats:
        while beats.heartbeat is None:
            beats.receive(0.1)
        for _ in range(4):
            assert sound.asked.acquire(timeout=TIMEOUT_S)
        sound.answer = UnavailableError("mic: busy")
        while beats.heartbeat.waiting_for != "mic: busy":
            beats.receive(0.1)
    wait_for_lines(running, caplog, "mic: waiting: mic: busy")
    waiting = [line for line in caplog.messages if "waiting" in line]
    assert waiting == [
        "mic: waiting: soundcard: no audio input on this machine",
        "mic: waiting: mic: busy",
    ]


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("soundcard", "soundcard"),
        ("soundcard:pulse", "pulse"),
        ("soundcard:serial=A1", "serial-A1"),
    ],
)
def test_topics_do_not_depend_on_present_cards(sound, uri, name):
    """An absent card has the same topics as a present one."""
    absent = build_daemon(settings(SourceTable(uri=uri)))
    absent.stop()
    assert [runner.name for runner in absent.runners] == [name]


def test_an_absent_card_changes_its_analysis_too(start, sound):
    """A change of the analysis during a card's absence applies when it appears."""
    running = start(ABSENT)
    running.reconfigure(settings(replace(ABSENT, analysis=AnalysisConfig(win_length=256, hop=128))))
    sound.answer = tone_source
    with subscribe(running) as frames:
        assert next(frames).header.win_length == 256


def test_a_card_that_does_not_fit_fails_alone(start, sound, caplog):
    """A card whose properties do not fit fails when it appears, and the others continue."""
    names = ("left", "right")
    running = start(SourceTable(uri="soundcard", name="mic", channel_names=names), TONE)
    sound.answer = lambda: tone_source(channels=3)
    wait_until(running, lambda: states(running)[0] == "failed")
    wait_until(running, lambda: states(running)[1] == "running")
    assert not running.finished
    text = "channel_names=left,right: must be 3, one for each spectrum, not 2"
    wait_for_lines(running, caplog, f"mic: failed: {text}")


def test_a_card_unplugged_before_its_start_is_searched_for_again(start, sound, monkeypatch):
    """A card unplugged between search and start is searched for again."""
    gone = [UnavailableError("mic: gone"), UnavailableError("mic: gone")]
    real = SignalSource.start

    def unsteady(source, ring, on_change):
        if gone:
            raise gone.pop()
        real(source, ring, on_change)

    running = start(ABSENT)
    monkeypatch.setattr(SignalSource, "start", unsteady)
    sound.answer = tone_source
    with subscribe(running) as frames:
        assert next(frames).source == "mic"
    assert gone == []
    running.raise_failure()


def test_a_pause_before_the_card_comes_holds(start, sound):
    """A source paused while its card is absent stays paused when the card appears."""
    running = start(ABSENT)
    running.runner("mic").pause()
    sound.answer = tone_source
    wait_until(running, lambda: states(running) == ["paused"])
    assert running.stats()[0].rows == 0
    running.runner("mic").resume()
    wait_until(running, lambda: running.stats()[0].rows > 0)
    assert states(running) == ["running"]


def test_a_bug_in_the_search_is_no_waiting(start, sound):
    """A bug in the search ends the daemon with its text."""
    running = start(ABSENT)
    sound.answer = ZeroDivisionError("oops")
    wait_until(running, lambda: running.finished)
    with pytest.raises(
        InternalError, match=r"search for mic failed: ZeroDivisionError\('oops'\); please report"
    ):
        running.raise_failure()


def test_a_missing_engine_is_an_error_even_without_the_card(sound, monkeypatch):
    """A missing engine is an error at the start even if the card is absent."""

    def none(*_):
        raise DeviceError("device='gpu': no such OpenCL device")

    monkeypatch.setattr(runner_module, "open_engine", none)
    with pytest.raises(DeviceError, match="device='gpu'"):
        build_daemon(settings(ABSENT))


def test_other_sources_are_not_waited_for(sound):
    """Only sound cards are waited for; another missing source is an error."""
    sound.answer = InputError("soundcard:x=1: no such key")
    with pytest.raises(InputError, match="no such key"):
        build_daemon(settings(ABSENT))


@pytest.mark.slow
def test_a_pipe_that_nobody_writes_to_is_waited_for(start, tmp_path):
    """With a pipe without a writer the daemon is up, and the watchdog sees the polling."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    running = start(SourceTable(uri=f"pcm:{fifo}", name="pipe"))
    wait_until(running, lambda: states(running) == ["waiting"])
    watch = ProgressWatch()
    wait_until(running, lambda: is_up(running.stats()) and watch.has_advanced(running.stats()))
    wait_until(running, lambda: watch.has_advanced(running.stats()))
    with fifo.open("wb") as writer:
        writer.write(bytes(2 * 10_000))
        writer.flush()
        wait_until(running, lambda: states(running) == ["running"])
    wait_until(running, lambda: states(running) == ["waiting"])
    assert running.stats()[0].capture.waiting_for == f"no program writes to {fifo}"


@pytest.mark.slow
def test_a_pipe_that_is_made_later_is_waited_for(start, tmp_path, caplog):
    """A pipe that another service has not made yet is waited for like a sound card."""
    fifo = tmp_path / "fifo"
    running = start(SourceTable(uri=f"pcm:{fifo}"))
    reason = f"{fifo}: No such file or directory"
    wait_for_lines(running, caplog, f"fifo: waiting: {reason}")
    assert is_up(running.stats())
    assert running.stats()[0].capture.waiting_for == reason
    os.mkfifo(fifo)
    with fifo.open("wb") as writer:
        writer.write(bytes(2 * 10_000))
        writer.flush()
        wait_until(running, lambda: running.stats()[0].messages > 0)
    assert [one.name for one in running.runners] == ["fifo"]


@pytest.mark.slow
def test_a_search_that_hangs_does_not_hold_up_the_stop(sound, caplog):
    """A search that hangs in native code does not delay a stop, and its result is dropped."""
    release = threading.Event()
    source = tone_source()

    def hang():
        release.wait(TIMEOUT_S)
        return source

    absent = [SourceTable(uri="soundcard", name=name) for name in ("a", "b")]
    hanging = build_daemon(settings(*absent))
    sound.answer = hang
    hanging.start()
    for _ in range(4):
        assert sound.asked.acquire(timeout=TIMEOUT_S)
    begin_s = time.monotonic()
    hanging.stop()
    assert time.monotonic() - begin_s < 3.5
    assert [line for line in caplog.messages if "still looking" in line] == [
        f"{name}: still looking for the source: not waited for" for name in ("b", "a")
    ]
    release.set()
    for runner in hanging.runners:
        assert runner._search.wait(TIMEOUT_S)
        assert runner.pipeline is None


# ---- as a process


@pytest.fixture
def run(tmp_path):
    """Start ``spectrod run`` with a configuration; return an object that reads its log."""
    processes = []

    def run(text, *arguments):
        file = tmp_path / "c.toml"
        file.write_text(text)
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(file), "--show", "none"]
        process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process, file

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(process, text):
    """Read the log up to the line with the text; return the text after it."""
    for line in process.stderr:
        if text in line:
            return line.partition(text)[2].strip()
    raise AssertionError(f"ended without {text!r}")


FILE = """
[publish]
endpoints = ["tcp://127.0.0.1:*"]
[engine]
engine = "numpy"
[sources.roof]
uri = "signal:sine,1000,-20"
[sources.pond]
uri = "signal:white,-20"
analysis = { hop = 512 }
"""


@pytest.mark.slow
def test_a_reload_changes_one_source_of_several(run):
    """The journal names each changed key with its source, and a source with a new URI restarts."""
    process, file = run(FILE)
    wait_for(process, "source roof: test signal sine,1000,-20")
    wait_for(process, "source pond: test signal white,-20")
    endpoint = wait_for(process, "publishing at ")
    wait_for(process, "ready: the first message is out")
    with client.subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
        next(frames)
        file.write_text(FILE.replace("512", "256").replace("sine,1000", "sine,2000"))
        process.send_signal(signal.SIGHUP)
        frame = next(frame for frame in frames if frame.header.hop == 256)
        assert frame.source == "pond"
    wait_for(process, "reload: applied sources.roof.uri")
    wait_for(process, "reload: applied sources.pond.analysis.hop")
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


@pytest.mark.slow
def test_a_source_on_the_command_line_replaces_all_with_a_message(run):
    """A source on the command line replaces all of the file, unopened, with a message."""
    process, _ = run(FILE, "--source", "signal:pink,-30", "--name", "test")
    wait_for(process, "command line: source.uri='signal:pink,-30' replaces [sources.roof], ")
    wait_for(process, "source test: test signal pink,-30")
    endpoint = wait_for(process, "publishing at ")
    with client.subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
        assert {next(frames).source for _ in range(4)} == {"test"}
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


@pytest.mark.slow
@pytest.mark.audio
def test_a_real_card_that_comes_later(run, silent_server):
    """The service is ready without its card and receives it once the sound server runs."""
    text = FILE.replace('"signal:white,-20"', '"soundcard:pulse"\nsamplerate = 48000')
    process, _ = run(text)
    wait_for(process, "source pond: not yet available")
    endpoint = wait_for(process, "publishing at ")
    wait_for(process, "ready: the first message is out; waiting for pond")
    with client.subscribe(endpoint, "spec/pond/", timeout_s=TIMEOUT_S) as frames:
        while frames.heartbeat is None:
            frames.receive(0.1)
        assert frames.heartbeat.state == "waiting"
        silent_server.start()
        frame = next(frames)
        assert (frame.header.fs, frame.header.hop) == (48_000, 512)
        while frames.heartbeat.state != "running":
            next(frames)
    wait_for(process, "pond: there: sound card 'pulse' (ALSA), 48000 Hz")
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


@pytest.mark.slow
@pytest.mark.audio
def test_a_daemon_that_only_waits_is_ready_and_stops_in_time(run, silent_server):
    """A daemon that only waits feeds the watchdog, and SIGTERM ends it within two seconds."""
    process, _ = run(
        FILE.partition("[sources.pond]")[0].replace("signal:sine,1000,-20", "soundcard")
    )
    wait_for(process, "roof: waiting: soundcard: ")
    wait_for(process, "ready: waiting for roof")
    begin_s = time.monotonic()
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    assert time.monotonic() - begin_s < 4.0
