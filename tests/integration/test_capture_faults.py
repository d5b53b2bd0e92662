"""The fault matrix: real servers, a real capture process, and a signal that shows each loss.

Each test injects one fault and compares the source's report with the truth: when it noticed, when
it recovered, and the size of the loss. ``docs/capture.md`` has the table.
"""

import contextlib
import os
import signal
import time

import numpy as np
import pytest
import soundfile
from audio_faults import StoppedThread, belongings, children, stopped, threads_of, wait_for_end
from audio_listener import BLOCK, FS, Listener

from spectrod.apps.bench.sequence_signal import numbered_frames, read_numbers
from spectrod.lib.errors import UnavailableError
from spectrod.source.soundcard.childprocess import count_unreaped

pytestmark = [pytest.mark.slow, pytest.mark.audio]

BLOCK_S = BLOCK / FS
NOTICED_S = 1.0
NOTICED_STOPPED_S = 2.0
BACK_S = 3.0
BEFORE_S = 2.0
"""Samples from which the clock learns the delay of the earliest ones."""


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    """Check that a test leaves processes, threads, descriptors and shared memory as before."""
    belongings()  # the first one opens objects that stay open
    before = belongings()
    yield
    for pid in children() - before["children"]:
        wait_for_end(pid, 5.0)  # killed, but a busy machine takes its time
    assert count_unreaped() == 0
    assert belongings() == before


@pytest.fixture
def playing(sound_server):
    """Run a server whose sink plays the sequence signal; its players end with the test."""
    with contextlib.ExitStack() as stack:
        yield Playing(sound_server, stack)


class Playing:
    """A sound server and its current player."""

    def __init__(self, server, stack):
        self.server = server
        self._stack = stack
        self.play(1)

    def play(self, first):
        """Play from a frame number on."""
        player = self.server.play_numbered(first)
        self._stack.callback(player.stop)


def capture_process(before):
    """Return the id of the capture process, the child that did not exist before."""
    (pid,) = children() - before
    return pid


def report(**seconds):
    """Print times, which ``pytest -rP`` shows for passed tests."""
    for name, value in seconds.items():
        print(f"{name}: {value:.3f} s")  # noqa: T201


def assert_lossless(listener, *, silent=0):
    """Check that sample numbers are contiguous and no loss was reported."""
    assert listener.ring.check.breaks == []
    assert listener.ring.gaps == []
    assert listener.ring.check.silent <= silent
    assert_unflagged(listener, restarts=0)


def assert_unflagged(listener, restarts):
    """Check that no loss was flagged by the sound system and none was suspected."""
    capture = listener.source.capture()
    assert listener.ring.overflows == 0
    assert capture.suspected == 0
    assert capture.restarts == restarts
    assert capture.waiting_for == ""


def assert_one_gap(listener, n_min):
    """Check by sample numbers that there is one gap, sized to one block."""
    (found,) = listener.ring.check.breaks
    ((start, end),) = listener.ring.gaps
    assert (end, end - start) == (found.sample_index, found.index_jump)
    assert found.number_jump >= n_min
    print(f"gap: {found.index_jump} samples, by the numbers {found.number_jump}")  # noqa: T201
    assert abs(found.unaccounted) <= BLOCK


def assert_gap_fits_the_time(listener):
    """Check that the gap equals the elapsed time: later samples have the same delay."""
    ((start, end),) = listener.ring.gaps
    assert abs(listener.lateness_s(end) - listener.lateness_s(0, start)) <= BLOCK_S


# ---- no fault


@pytest.mark.parametrize("format_", ["s16le", "f32le"])
def test_tone_of_another_program_is_bit_true(sound_server, tmp_path, format_):
    """A 1 kHz tone of paplay arrives sample by sample with its level and phase, from end to end."""
    period = np.round(16384 * np.sin(2 * np.pi * np.arange(48) / 48)).astype(np.int16)
    tone = np.tile(period, 20 * 1000)
    soundfile.write(tmp_path / "tone.wav", np.stack([tone, -tone], axis=1), FS, subtype="PCM_16")
    player = sound_server.play(tmp_path / "tone.wav")
    try:
        with Listener("pulse", format=format_) as listener:
            listener.wait_for_seconds(3.0)
            samples = listener.read(4 * FS).samples
    finally:
        player.terminate()
        player.wait()
    played = samples[:, -2 * FS - 7 :]
    assert_unflagged(listener, restarts=0)
    phase = next(
        k for k in range(48) if np.array_equal(np.roll(period, -k)[:4], played[0, :4] * 2**15)
    )
    expected = np.resize(np.roll(period, -phase), played.shape[1]) / 2.0**15
    np.testing.assert_array_equal(played, [expected, -expected])


def test_file_plugin_gives_its_file(sound_server, tmp_path):
    """ALSA's file plugin, paced by the server, delivers its file from the first frame on."""
    (tmp_path / "known.s16").write_bytes(numbered_frames(1, 10 * FS).tobytes())
    sound_server.add_devices(
        f'pcm.numbered {{ type file slave.pcm "pulse" file "/dev/null"'
        f' infile "{tmp_path}/known.s16" format "raw"'
        ' hint { show on description "numbered" } }\n'
    )
    with Listener("numbered") as listener:
        listener.wait_for_seconds(3.0)
        block = listener.read(4 * FS)
    assert_lossless(listener)
    assert block.sample_index == 0
    assert read_numbers(block.samples).tolist() == list(range(1, block.n_samples + 1))


# ---- faults of the server


def test_server_that_is_killed_and_started_again(playing):
    """A killed server is noticed at once; its return resumes the device after a true gap."""
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        killed = time.monotonic()
        playing.server.kill()
        noticed_s = listener.wait_until_waiting(killed, NOTICED_S)
        playing.server.start()
        started = time.monotonic()
        back_s = listener.wait_until_back(started, BACK_S)
        listener.wait_for_seconds(0.5)
        playing.play(10_000_000)
        listener.wait_for_seconds(1.0)
        assert_gap_fits_the_time(listener)
        assert_unflagged(listener, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


@pytest.mark.extended
def test_server_that_stands_still_for_two_seconds(playing):
    """A server stopped for two seconds is reported as waiting and then delivers without a loss."""
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(playing.server.process.pid):
            noticed_s = listener.wait_until_waiting(stopped_at, NOTICED_S)
            _stand(stopped_at, 2.0)
        back_s = listener.wait_until_back(time.monotonic(), BACK_S)
        listener.wait_for_seconds(4.0)
        assert_lossless(listener)
    report(noticed_s=noticed_s, back_s=back_s)


@pytest.mark.extended
def test_server_that_stands_still_for_too_long(playing):
    """A server stopped for too long makes capture restart, with a gap right to one block."""
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(playing.server.process.pid):
            noticed_s = listener.wait_until_waiting(stopped_at, NOTICED_S)
            _stand(stopped_at, 4.0)
        back_s = listener.wait_until_back(time.monotonic(), BACK_S)
        listener.wait_for_seconds(2.0)
        assert_one_gap(listener, n_min=3 * FS)
        assert_unflagged(listener, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_device_that_is_removed_and_added(playing):
    """A device removed from a living server is searched for and resumed when it returns."""
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        removed = time.monotonic()
        playing.server.remove_sink()
        noticed_s = listener.wait_until_waiting(removed, NOTICED_S)
        # Until the search has failed a few times.
        attempts = listener.source.capture().attempts
        listener.wait(lambda: listener.source.capture().attempts >= attempts + 2, 5.0, "retried")
        playing.server.add_sink()
        back_s = listener.wait_until_back(time.monotonic(), BACK_S)
        playing.play(10_000_000)
        listener.wait_for_seconds(1.0)
        assert_gap_fits_the_time(listener)
        assert_unflagged(listener, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_device_that_is_absent_and_then_present(silent_server):
    """Without a server the error names the device; with one, the same source finds it."""
    with pytest.raises(UnavailableError, match=r"^soundcard"):
        Listener()
    silent_server.start()
    with Listener() as listener:
        listener.wait_for_seconds(0.2)
    assert_unflagged(listener, restarts=0)


# ---- faults of the capture process


def test_process_that_is_killed(playing):
    """A killed capture process is replaced at once, with a gap right to one block."""
    before = children()
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        killed = time.monotonic()
        os.kill(capture_process(before), signal.SIGKILL)
        noticed_s = listener.wait_until_waiting(killed, NOTICED_S)
        back_s = listener.wait_until_back(killed, BACK_S)
        listener.wait_for_seconds(2.0)
        assert_one_gap(listener, n_min=BLOCK)
        assert_unflagged(listener, restarts=1)
        np.testing.assert_allclose(listener.time_errors_s(), 0.0, atol=BLOCK_S)
    report(noticed_s=noticed_s, back_s=back_s)


@pytest.mark.extended
def test_process_that_stands_still(playing):
    """A stopped capture process is killed and replaced within five seconds, with an exact gap."""
    before = children()
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(capture_process(before)):
            noticed_s = listener.wait_until_waiting(stopped_at, NOTICED_STOPPED_S)
            back_s = listener.wait_until_back(stopped_at, 5.0)
        listener.wait_for_seconds(2.0)
        assert_one_gap(listener, n_min=FS)
        assert_unflagged(listener, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


@pytest.mark.extended
def test_callbacks_that_stop_in_a_living_process(playing):
    """If callbacks stop in a living process whose stream claims to be active, capture restarts."""
    before = children()
    with Listener() as listener:
        listener.wait_for_seconds(BEFORE_S)
        pid = capture_process(before)
        stopped_at = time.monotonic()
        # PortAudio's thread is one of those with the program's name; the main one answers.
        threads = [t for t, name in threads_of(pid).items() if t != pid and "python" in name]
        standing = [StoppedThread(thread) for thread in threads]
        noticed_s = listener.wait_until_waiting(stopped_at, NOTICED_S)
        back_s = listener.wait_until_back(stopped_at, 5.0)
        for thread in standing:
            thread.wait_for_end(5.0)
        listener.wait_for_seconds(1.0)
        assert_one_gap(listener, n_min=FS)
        assert_unflagged(listener, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


# ---- slow readers, and shared devices


def test_consumer_that_stalls_until_the_ring_overruns(playing):
    """If the ring overruns, capture continues and the reader gets one report of the loss."""
    with Listener() as listener:
        listener.wait_for_seconds(4.5)  # the ring holds 4 s
        assert_lossless(listener)
        block = listener.read(FS)
    assert listener.ring.overruns == 1
    assert block.discontinuity
    assert block.lost_samples == block.sample_index > 0
    offset = listener.ring.check.frames - listener.ring.written  # 0: no silence
    assert offset == 0
    numbers = read_numbers(block.samples)
    assert np.all(np.diff(numbers) == 1)
    first = listener.ring.first_number
    assert numbers[0] - first == block.sample_index


def test_two_captures_share_a_device(playing):
    """A sound server serves two captures of one device without a loss."""
    with Listener() as one, Listener() as other:
        other.wait_for_seconds(1.0)
        one.wait_for_seconds(1.0)
    for listener in (one, other):
        assert_lossless(listener)


def test_a_second_capture_waits_for_an_exclusive_device(jack_server):
    """The second capture of an exclusive device waits and has it within 3 s of its release."""
    jack_server.ports = 7  # four of its own, two for one of them
    jack_server.start()
    with Listener("api=JACK,name=system", format="f32le") as first:
        first.wait_for_seconds(0.5)
        with Listener("api=JACK,name=system", format="f32le") as second:
            # PortAudio reports that the device cannot be opened, or crashes.
            second.wait_until_waiting(time.monotonic(), 5.0)
            first.wait_for_seconds(1.0)
            first.source.stop()
            back_s = second.wait_until_back(time.monotonic(), BACK_S)
            second.wait_for_seconds(0.5)
        assert first.source.capture().restarts == 0
    report(back_s=back_s)


# ---- losses without a flag, and silences without a loss


@pytest.mark.alone
def test_loss_that_nobody_flags(playing):
    """PulseAudio silently drops data beyond 0.7 s of 32 channels, and the clock finds the loss."""
    before = children()
    with Listener(channels=32, select=(0, 1), format="f32le") as listener:
        listener.wait_for_seconds(3.0)
        with stopped(capture_process(before)):
            stalled_at = time.monotonic()
            _stand(stalled_at, 2.0)  # less than the stall timeout
        listener.wait(lambda: listener.source.capture().suspected, 8.0, "suspected")
        found_s = time.monotonic() - stalled_at
        listener.wait_for_seconds(1.0)
        capture, check = listener.source.capture(), listener.ring.check
        assert (capture.suspected, capture.restarts, listener.ring.overflows) == (1, 0, 0)
        ((start, end),) = listener.ring.gaps
        assert end - start == capture.suspected_samples
        # The final sum is the number lost; their position is unknown until then.
        lost = sum(found.number_jump for found in check.breaks)
        assert lost > FS // 2
        assert abs(capture.suspected_samples - lost) <= BLOCK
    report(found_s=found_s)


@pytest.mark.extended
def test_device_that_delivers_in_bursts(silent_server):
    """PulseAudio's null sink delivers bursts of 2 s, which soon count as no fault."""
    silent_server.sink = silent_server.sink.replace(" norewinds=1", "")
    silent_server.start()
    with Listener(latency_ms=4000.0) as listener:
        listener.wait(lambda: listener.ring.written, 30.0, "started")
        # Two bursts come in five seconds, and three that are too far apart raise the timeout.
        accepted = (_silences_during(listener, 5.0) == 0 for _ in range(5))
        assert any(accepted)
        assert_unflagged(listener, restarts=0)
        assert listener.ring.gaps == []


# ---- losses that the sound system flags


@pytest.mark.extended
def test_overflow_that_the_sound_system_flags(jack_server):
    """JACK flags a loss without a size, and the clock finds its size to one block."""
    jack_server.start()
    before = children()
    with Listener("api=JACK,name=system", format="f32le") as listener:
        listener.wait_for_seconds(3.0)
        start = listener.ring.written
        with stopped(capture_process(before)):
            _stand(time.monotonic(), 0.5)  # less than the stall timeout
        listener.wait_for_seconds(6.0)
        assert listener.ring.gaps, f"the loss has no size: {listener.source.capture()}"
        end = listener.ring.gaps[-1][1]
        assert listener.ring.overflows >= 1
        # On a busy machine JACK loses and flags a block more, below the clock's least step of 1.5
        # blocks.
        unseen_s = 1.5 * BLOCK_S * (listener.ring.overflows - 1)
        assert abs(listener.lateness_s(end) - listener.lateness_s(0, start)) <= BLOCK_S + unseen_s
        capture = listener.source.capture()
        # The clock may find that further block before it is flagged.
        assert capture.suspected <= listener.ring.overflows - 1
        assert capture.restarts == 0
        gap_s = sum(end - start for start, end in listener.ring.gaps) / FS
    report(gap_s=gap_s)


@pytest.mark.extended
def test_jack_that_is_killed_and_started_again(jack_server):
    """PortAudio hangs when it closes a killed JACK's stream, so its process is replaced."""
    jack_server.start()
    with Listener("api=JACK,name=system", format="f32le") as listener:
        listener.wait_for_seconds(BEFORE_S)
        killed = time.monotonic()
        jack_server.kill()
        noticed_s = listener.wait_until_waiting(killed, NOTICED_S)
        jack_server.start()
        back_s = listener.wait_until_back(time.monotonic(), BACK_S)
        listener.wait_for_seconds(1.5)
        capture = listener.source.capture()
        assert (capture.suspected, capture.restarts) == (0, 1)
        if listener.ring.overflows == 0:  # else the machine was too busy for JACK, too
            assert_gap_fits_the_time(listener)
    report(noticed_s=noticed_s, back_s=back_s)


def _silences_during(listener, seconds):
    before = listener.silences
    listener.wait_for_seconds(seconds)
    return listener.silences - before


def _stand(since, seconds):
    """Let a fault last for some time, which is part of the fault and no synchronisation."""
    time.sleep(max(0.0, since + seconds - time.monotonic()))
