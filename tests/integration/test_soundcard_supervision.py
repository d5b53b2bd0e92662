"""A sound card's source: found, captured, lost and found again, with PortAudio's real callbacks."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from audio_faults import belongings, stopped

from spectrod.analysis.samples import to_float32
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.source.soundcard import childprocess, supervisor
from spectrod.source.soundcard.soundcard import SoundCardSource

FS = 48000

pytestmark = [pytest.mark.slow, pytest.mark.audio]


class Listener:
    """Runs a source into a ring and keeps the data and the messages."""

    def __init__(self, relaxed_s=0.0, **settings):
        self.before = belongings()
        self.source = SoundCardSource("pulse", SourceConfig(samplerate=FS, **settings))
        self.ring = self.source.open_reader()
        self.ring.relax(relaxed_s)
        self.blocks, self.states = [], []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)

    def __enter__(self):
        self.source.start(self.ring, self._changed)
        self._reader.start()
        return self

    def __exit__(self, *error):
        self.source.stop()
        self._reader.join()
        self.ring.release()

    def _changed(self):
        with self._news:
            self.states.append(self.source.capture())
            self._news.notify_all()

    def _read(self):
        while not self.ring.exhausted:
            block = self.ring.read(FS)
            if block is None:
                self.ring.data.wait(5.0)
                continue
            with self._news:
                self.blocks.append(block)
                self._news.notify_all()

    def wait_until(self, condition, timeout_s=60.0):
        with self._news:
            assert self._news.wait_for(lambda: condition(self), timeout_s)

    def wait_for_samples(self, n):
        self.wait_until(lambda self: sum(b.n_samples for b in self.blocks) >= n)

    @property
    def pid(self):
        return self.source._supervisor._process.pid

    @property
    def gaps(self):
        return [b.lost_samples for b in self.blocks if b.discontinuity]

    @property
    def samples(self):
        sample_format = self.ring.layout.sample_format
        every = [to_float32(b.samples, sample_format) for b in self.blocks]
        return np.concatenate(every, axis=1)


def assert_left_nothing(before):
    for killed in childprocess._unreaped:
        killed.wait(60.0)
    after = belongings()
    assert after["children"] <= before["children"]  # a server may have been killed
    for kind in ("threads", "descriptors", "mappings"):
        assert after[kind] == before[kind]


def is_back(listener):
    capture = listener.source.capture()
    return capture.restarts and not capture.waiting_for and listener.gaps


def test_a_source_describes_itself_before_its_start(sound_server):
    """Name, rate and channels are known before the start, and a stop needs no start."""
    source = SoundCardSource("pulse", SourceConfig())
    assert (source.name, source.fs, source.channels) == ("pulse", 44100.0, 2)
    assert source.description == "sound card 'pulse' (ALSA)"
    assert source.callback_cost_us(0.5) is None
    source.stop()
    source.stop()
    assert SoundCardSource("", SourceConfig()).name == "soundcard"
    assert SoundCardSource("pulse", SourceConfig(select=(4, 2))).channels == 2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"format": "u8"}, ConfigError, r"^source\.format=u8: a sound card gives one of s16le, "),
        ({"exclusive": True}, ConfigError, r"^source\.exclusive=true: 'pulse' \(ALSA\): only a hw"),
        ({"channels": 2, "select": (2,)}, ConfigError, r"^source\.select=2: the source has chann"),
        (
            {"channels": 40},
            UnavailableError,
            r"^sound card 'pulse' \(ALSA\): does not give channels=40 \(Invalid number of channels",
        ),
        (
            {"samplerate": 999_999},
            UnavailableError,
            r"^sound card 'pulse' \(ALSA\): does not take samplerate=999999 \(Invalid sample rate",
        ),
    ],
)
def test_settings_that_cannot_be(sound_server, settings, error, message):
    """A setting that the device refuses is one error with its name and leaves no resources."""
    before = belongings()
    with pytest.raises(error, match=message):
        SoundCardSource("pulse", SourceConfig(**settings))
    assert_left_nothing(before)


def test_a_device_that_is_not_there(sound_server):
    """Opening a source for an absent device is an error."""
    with pytest.raises(UnavailableError, match="no such audio input"):
        SoundCardSource("no such card", SourceConfig())


@pytest.mark.parametrize(
    "settings",
    [{"format": "s16le"}, {"format": "s24le", "channels": 3, "select": (1,)}, {"block_ms": 5.0}],
)
def test_samples_arrive(sound_server, settings):
    """Samples are in the ring from index 0 without a gap at the right times."""
    with Listener(**settings) as listener:
        listener.wait_for_samples(FS // 2)
        assert 0.0 < listener.source.callback_cost_us(0.999) < 1e5
    now_ns = time.monotonic_ns()
    assert_left_nothing(listener.before)
    assert listener.gaps == []
    assert listener.blocks[0].sample_index == 0
    assert not listener.samples.any()  # no playback
    last = listener.blocks[-1]
    end_ns = last.t_mono_ns + last.n_samples * 1e9 / FS
    assert now_ns - 2e9 < end_ns < now_ns + 0.01e9  # a stop under load may take a second
    assert last.t_utc_ns - last.t_mono_ns == pytest.approx(
        time.time_ns() - time.monotonic_ns(), abs=1e6
    )
    assert [each.attempts for each in listener.states] == [1]
    assert listener.source.capture().restarts == 0


@pytest.mark.parametrize("relaxed_s", [0.0, 60.0])
def test_a_killed_process_is_replaced(sound_server, relaxed_s):
    """After a kill, the gap is the time without capture, to 50 ms of scheduling."""
    with Listener(relaxed_s) as listener:
        listener.wait_for_samples(FS // 2)
        pid = listener.pid
        t = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        listener.wait_until(lambda each: each.states[-1].waiting_for)
        assert time.monotonic() - t < 1.0
        assert listener.states[-1].waiting_for == "capture process: ended (signal 9)"
        listener.wait_until(is_back)
        assert time.monotonic() - t < 3.0
        assert listener.pid != pid
    assert_left_nothing(listener.before)
    (gap,) = listener.gaps
    after = next(b for b in listener.blocks if b.discontinuity)
    assert gap / FS == pytest.approx(after.t_mono_ns * 1e-9 - t, abs=0.05)
    assert listener.source.capture().restarts == 1


@pytest.mark.parametrize("relaxed_s", [0.0, 60.0])
def test_a_process_that_stands_still_is_replaced(sound_server, relaxed_s):
    """A process is reported silent after a second and replaced after two and a half."""
    with Listener(relaxed_s) as listener:
        listener.wait_for_samples(FS // 2)
        pid = listener.pid
        with stopped(pid):
            t = time.monotonic()
            listener.wait_until(lambda each: each.states[-1].waiting_for)
            assert time.monotonic() - t < 2.0  # after 0.9 s, see below
            listener.wait_until(is_back)
            assert time.monotonic() - t < 5.0
        assert listener.pid != pid
    assert_left_nothing(listener.before)
    assert [each.waiting_for for each in listener.states[1:3]] == [
        "no samples for 0.9 s",
        "no samples for 2.4 s",
    ]


def test_a_server_that_pauses_costs_nothing(sound_server):
    """After a sound server's pause, reported as a wait, its samples arrive without a loss."""
    with Listener() as listener:
        listener.wait_for_samples(FS // 2)
        pid = listener.pid
        with stopped(sound_server.process.pid):
            listener.wait_until(lambda each: each.states[-1].waiting_for)
            time.sleep(0.5)
        listener.wait_until(lambda each: not each.states[-1].waiting_for)
        listener.wait_for_samples(3 * FS)
        assert listener.pid == pid
    assert listener.gaps == []
    assert listener.source.capture().restarts == 0


def test_a_source_stops_whatever_its_process_does(sound_server):
    """A stop is not delayed by a process or a server that hangs."""
    with Listener() as listener:
        listener.wait_for_samples(FS // 10)
        with stopped(listener.pid):
            t = time.monotonic()
            listener.source.stop()
            assert time.monotonic() - t < 1.0
    assert_left_nothing(listener.before)
    with Listener() as listener:
        listener.wait_for_samples(FS // 10)
        with stopped(sound_server.process.pid):
            os.kill(listener.pid, signal.SIGKILL)
            listener.wait_until(lambda each: each.source.capture().attempts == 2)
            t = time.monotonic()
            listener.source.stop()
            assert time.monotonic() - t < 1.0
    assert_left_nothing(listener.before)


def test_a_bug_in_supervision_is_a_failure(sound_server, monkeypatch, caplog):
    """An unexpected error in supervision is a failure of the stream and leaves no resources."""
    monkeypatch.setattr(supervisor, "choose_input", lambda *_: 1 / 0)
    with Listener() as listener:
        listener._reader.join(60.0)
        assert listener.ring.exhausted
    assert "please report this" in str(listener.source.failure)
    assert "capture failed" in caplog.text
    assert_left_nothing(listener.before)
