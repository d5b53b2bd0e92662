"""The fault matrix: real servers, a real capture process, a signal that says where each loss is.

Each test injects one fault and holds against the truth what the source said: when it noticed, when
it was back, how much it says was lost. ``docs/capture.md`` has the table.
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

from spectrod.errors import UnavailableError
from spectrod.source.childprocess import count_unreaped
from spectrod_bench.sequence_signal import numbered_frames, read_numbers

pytestmark = [pytest.mark.slow, pytest.mark.audio]

BLOCK_S = BLOCK / FS
NOTICED_S = 1.0
NOTICED_STOPPED_S = 2.0
BACK_S = 3.0
BEFORE_S = 2.0
"""Of samples, from which the clock learns how late the soonest of them come."""


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    """Processes, threads, descriptors and shared memory are after a test what they were before."""
    belongings()  # the first one opens what stays open
    before = belongings()
    yield
    for pid in children() - before["children"]:
        wait_for_end(pid, 5.0)  # killed, but a machine that is busy takes its time
    assert count_unreaped() == 0
    assert belongings() == before


@pytest.fixture
def playing(sound_server):
    """A server whose sink plays the numbered signal; its players end with the test."""
    with contextlib.ExitStack() as stack:
        yield Playing(sound_server, stack)


class Playing:
    """A sound server and the player that it has at the moment."""

    def __init__(self, server, stack):
        self.server = server
        self._stack = stack
        self.play(1)

    def play(self, first):
        """Play from a number on."""
        player = self.server.play_numbered(first)
        self._stack.callback(player.stop)


def capture_process(before):
    """Id of the capture process: the child that there was not before."""
    (pid,) = children() - before
    return pid


def report(**seconds):
    """Print times, which ``pytest -rP`` shows of tests that pass."""
    for name, value in seconds.items():
        print(f"{name}: {value:.3f} s")  # noqa: T201


def assert_lossless(ear, *, silent=0):
    """Every sample's number follows on, and nothing was said to be lost."""
    assert ear.ring.check.breaks == []
    assert ear.ring.gaps == []
    assert ear.ring.check.silent <= silent
    assert_unflagged(ear, restarts=0)


def assert_unflagged(ear, restarts):
    """No loss was flagged by the sound system, none was suspected."""
    capture = ear.source.capture()
    assert ear.ring.overflows == 0
    assert (capture.suspected, capture.overruns) == (0, 0)
    assert capture.restarts == restarts
    assert capture.waiting_for == ""


def assert_one_gap(ear, n_min):
    """Numbers say that just one gap was, and its size is right to one block."""
    (found,) = ear.ring.check.breaks
    ((start, end),) = ear.ring.gaps
    assert (end, end - start) == (found.sample_index, found.index_jump)
    assert found.number_jump >= n_min
    print(f"gap: {found.index_jump} samples, by the numbers {found.number_jump}")  # noqa: T201
    assert abs(found.unaccounted) <= BLOCK


def assert_gap_fits_the_time(ear):
    """The gap is as long as the time that passed: samples behind it are as late as before."""
    ((start, end),) = ear.ring.gaps
    assert abs(ear.lateness_s(end) - ear.lateness_s(0, start)) <= BLOCK_S


# ---- no fault


@pytest.mark.parametrize("format_", ["s16le", "f32le"])
def test_tone_of_another_program_is_bit_true(sound_server, tmp_path, format_):
    """1 kHz played by paplay comes out sample by sample, in level and phase, from start to end."""
    period = np.round(16384 * np.sin(2 * np.pi * np.arange(48) / 48)).astype(np.int16)
    tone = np.tile(period, 20 * 1000)
    soundfile.write(tmp_path / "tone.wav", np.stack([tone, -tone], axis=1), FS, subtype="PCM_16")
    player = sound_server.play(tmp_path / "tone.wav")
    try:
        with Listener("pulse", format=format_) as ear:
            ear.hear(3.0)
            samples = ear.read(4 * FS).samples
    finally:
        player.terminate()
        player.wait()
    heard = samples[:, -2 * FS - 7 :]
    assert_unflagged(ear, restarts=0)
    phase = next(
        k for k in range(48) if np.array_equal(np.roll(period, -k)[:4], heard[0, :4] * 2**15)
    )
    expected = np.resize(np.roll(period, -phase), heard.shape[1]) / 2.0**15
    np.testing.assert_array_equal(heard, [expected, -expected])


def test_file_plugin_gives_its_file(sound_server, tmp_path):
    """ALSA's file plugin, paced by the server, comes out from its first frame on."""
    (tmp_path / "known.s16").write_bytes(numbered_frames(1, 10 * FS).tobytes())
    sound_server.add_devices(
        f'pcm.numbered {{ type file slave.pcm "pulse" file "/dev/null"'
        f' infile "{tmp_path}/known.s16" format "raw"'
        ' hint { show on description "numbered" } }\n'
    )
    with Listener("numbered") as ear:
        ear.hear(3.0)
        block = ear.read(4 * FS)
    assert_lossless(ear)
    assert block.sample_index == 0
    assert read_numbers(block.samples).tolist() == list(range(1, block.n_samples + 1))


# ---- faults of the server


def test_server_that_is_killed_and_started_again(playing):
    """Noticed at once; back on the same device when it is; the gap is as long as the time was."""
    with Listener() as ear:
        ear.hear(BEFORE_S)
        killed = time.monotonic()
        playing.server.kill()
        noticed_s = ear.wait_until_waiting(killed, NOTICED_S)
        playing.server.start()
        started = time.monotonic()
        back_s = ear.wait_until_back(started, BACK_S)
        ear.hear(0.5)
        playing.play(10_000_000)
        ear.hear(1.0)
        assert_gap_fits_the_time(ear)
        assert_unflagged(ear, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_server_that_stands_still_for_two_seconds(playing):
    """Said to be waiting meanwhile; it then delivers everything, and nothing counts as lost."""
    with Listener() as ear:
        ear.hear(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(playing.server.process.pid):
            noticed_s = ear.wait_until_waiting(stopped_at, NOTICED_S)
            _stand(stopped_at, 2.0)
        back_s = ear.wait_until_back(time.monotonic(), BACK_S)
        ear.hear(4.0)
        assert_lossless(ear)
    report(noticed_s=noticed_s, back_s=back_s)


def test_server_that_stands_still_for_too_long(playing):
    """Capture is given up, begun anew, and the gap is right to one block by the numbers."""
    with Listener() as ear:
        ear.hear(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(playing.server.process.pid):
            noticed_s = ear.wait_until_waiting(stopped_at, NOTICED_S)
            _stand(stopped_at, 4.0)
        back_s = ear.wait_until_back(time.monotonic(), BACK_S)
        ear.hear(2.0)
        assert_one_gap(ear, n_min=3 * FS)
        assert_unflagged(ear, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_device_that_is_removed_and_added(playing):
    """The server lives on; while the device is away it is sought, and recorded from again."""
    with Listener() as ear:
        ear.hear(BEFORE_S)
        removed = time.monotonic()
        playing.server.remove_sink()
        noticed_s = ear.wait_until_waiting(removed, NOTICED_S)
        # Until it was sought in vain a few times.
        attempts = ear.source.capture().attempts
        ear.wait(lambda: ear.source.capture().attempts >= attempts + 2, 5.0, "sought again")
        playing.server.add_sink()
        back_s = ear.wait_until_back(time.monotonic(), BACK_S)
        playing.play(10_000_000)
        ear.hear(1.0)
        assert_gap_fits_the_time(ear)
        assert_unflagged(ear, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_device_that_is_absent_and_then_present(silent_server):
    """No server: an error that says what is not there. With the server it is found, in one life."""
    with pytest.raises(UnavailableError, match=r"^soundcard"):
        Listener()
    silent_server.start()
    with Listener() as ear:
        ear.hear(0.2)
    assert_unflagged(ear, restarts=0)


# ---- faults of the capture process


def test_process_that_is_killed(playing):
    """Another one takes its place at once; what came in between is a gap, right to one block."""
    before = children()
    with Listener() as ear:
        ear.hear(BEFORE_S)
        killed = time.monotonic()
        os.kill(capture_process(before), signal.SIGKILL)
        noticed_s = ear.wait_until_waiting(killed, NOTICED_S)
        back_s = ear.wait_until_back(killed, BACK_S)
        ear.hear(2.0)
        assert_one_gap(ear, n_min=BLOCK)
        assert_unflagged(ear, restarts=1)
        np.testing.assert_allclose(ear.time_errors_s(), 0.0, atol=BLOCK_S)
    report(noticed_s=noticed_s, back_s=back_s)


def test_process_that_stands_still(playing):
    """It is killed, another one takes its place before five seconds are over, the gap is exact."""
    before = children()
    with Listener() as ear:
        ear.hear(BEFORE_S)
        stopped_at = time.monotonic()
        with stopped(capture_process(before)):
            noticed_s = ear.wait_until_waiting(stopped_at, NOTICED_STOPPED_S)
            back_s = ear.wait_until_back(stopped_at, 5.0)
        ear.hear(2.0)
        assert_one_gap(ear, n_min=FS)
        assert_unflagged(ear, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


def test_callbacks_that_stop_in_a_living_process(playing):
    """The stream says that it is active, the process answers, but no samples come: begun anew."""
    before = children()
    with Listener() as ear:
        ear.hear(BEFORE_S)
        pid = capture_process(before)
        stopped_at = time.monotonic()
        # PortAudio's thread is one of those that bear the program's name; the main one answers.
        threads = [t for t, name in threads_of(pid).items() if t != pid and "python" in name]
        standing = [StoppedThread(thread) for thread in threads]
        noticed_s = ear.wait_until_waiting(stopped_at, NOTICED_S)
        back_s = ear.wait_until_back(stopped_at, 5.0)
        for thread in standing:
            thread.wait_for_end(5.0)
        ear.hear(1.0)
        assert_one_gap(ear, n_min=FS)
        assert_unflagged(ear, restarts=1)
    report(noticed_s=noticed_s, back_s=back_s)


# ---- who reads too slowly, who wants the same


def test_consumer_that_stalls_until_the_ring_overruns(playing):
    """The capture goes on without a loss; the reader is told once how much it has missed."""
    with Listener() as ear:
        ear.hear(4.5)  # the ring holds 4 s
        assert_lossless(ear)
        block = ear.read(FS)
    assert ear.ring.overruns == 1
    assert block.discontinuity
    assert block.lost_samples == block.sample_index > 0
    offset = ear.ring.check.frames - ear.ring.written  # 0: nothing silent
    assert offset == 0
    numbers = read_numbers(block.samples)
    assert np.all(np.diff(numbers) == 1)
    first = ear.ring.first_number
    assert numbers[0] - first == block.sample_index


def test_two_that_want_a_device_that_is_shared(playing):
    """A sound server serves both, each without a loss."""
    with Listener() as one, Listener() as other:
        other.hear(1.0)
        one.hear(1.0)
    for ear in (one, other):
        assert_lossless(ear)


def test_two_that_want_a_device_that_only_one_can_have(jack_server):
    """The second one waits, says why, and has it within 3 s of when the first one gives it back."""
    jack_server.ports = 7  # four of its own, two for one of them
    jack_server.start()
    with Listener("api=JACK,name=system", format="f32le") as first:
        first.hear(0.5)
        with Listener("api=JACK,name=system", format="f32le") as second:
            # PortAudio says that it cannot be opened, or crashes over it.
            second.wait_until_waiting(time.monotonic(), 5.0)
            first.hear(1.0)
            first.source.stop()
            back_s = second.wait_until_back(time.monotonic(), BACK_S)
            second.hear(0.5)
        assert first.source.capture().restarts == 0
    report(back_s=back_s)


# ---- losses that nobody flags, and silences that are none


def test_loss_that_nobody_flags(playing):
    """PulseAudio keeps 0.7 s of 32 channels, drops the rest and says nothing: the clock tells."""
    before = children()
    with Listener(channels=32, select=(0, 1), format="f32le") as ear:
        ear.hear(3.0)
        with stopped(capture_process(before)):
            stalled_at = time.monotonic()
            _stand(stalled_at, 2.0)  # less than it takes to be given up
        ear.wait(lambda: ear.source.capture().suspected, 8.0, "suspected")
        found_s = time.monotonic() - stalled_at
        ear.hear(1.0)
        capture, check = ear.source.capture(), ear.ring.check
        assert (capture.suspected, capture.restarts, ear.ring.overflows) == (1, 0, 0)
        ((start, end),) = ear.ring.gaps
        assert end - start == capture.suspected_samples
        # Said in the end as many as were lost, though not where: until then nobody knows.
        lost = sum(found.number_jump for found in check.breaks)
        assert lost > FS // 2
        assert abs(capture.suspected_samples - lost) <= BLOCK
    report(found_s=found_s)


def test_device_that_delivers_in_bursts(silent_server):
    """PulseAudio's null sink has 2 s at once for who can wait: soon no fault."""
    silent_server.sink = silent_server.sink.replace(" norewinds=1", "")
    silent_server.start()
    with Listener(latency_ms=4000.0) as ear:
        ear.wait(lambda: ear.ring.written, 30.0, "begun")
        # Two bursts come in five seconds; each three that are too far apart teach patience.
        borne = (_silences_during(ear, 5.0) == 0 for _ in range(5))
        assert any(borne)
        assert_unflagged(ear, restarts=0)
        assert ear.ring.gaps == []


# ---- a sound system that flags what it loses


def test_overflow_that_the_sound_system_flags(jack_server):
    """JACK says that samples were lost, not how many: the clock does, right to one block."""
    jack_server.start()
    before = children()
    with Listener("api=JACK,name=system", format="f32le") as ear:
        ear.hear(3.0)
        start = ear.ring.written
        with stopped(capture_process(before)):
            _stand(time.monotonic(), 0.5)  # less than it takes to be given up
        ear.hear(6.0)
        end = ear.ring.gaps[-1][1]
        assert ear.ring.overflows >= 1
        # On a busy machine JACK loses and flags a block more; what it may be is below the clock's
        # least step, which is 1.5 blocks.
        unseen_s = 1.5 * BLOCK_S * (ear.ring.overflows - 1)
        assert abs(ear.lateness_s(end) - ear.lateness_s(0, start)) <= BLOCK_S + unseen_s
        capture = ear.source.capture()
        assert (capture.suspected, capture.restarts) == (0, 0)
        gap_s = sum(end - start for start, end in ear.ring.gaps) / FS
    report(gap_s=gap_s)


def test_jack_that_is_killed_and_started_again(jack_server):
    """PortAudio hangs when it closes what JACK has left: its process goes, and another comes."""
    jack_server.start()
    with Listener("api=JACK,name=system", format="f32le") as ear:
        ear.hear(BEFORE_S)
        killed = time.monotonic()
        jack_server.kill()
        noticed_s = ear.wait_until_waiting(killed, NOTICED_S)
        jack_server.start()
        back_s = ear.wait_until_back(time.monotonic(), BACK_S)
        ear.hear(1.5)
        capture = ear.source.capture()
        assert (capture.suspected, capture.overruns, capture.restarts) == (0, 0, 1)
        if ear.ring.overflows == 0:  # else the machine was too busy for JACK, too
            assert_gap_fits_the_time(ear)
    report(noticed_s=noticed_s, back_s=back_s)


def _silences_during(ear, seconds):
    before = ear.silences
    ear.hear(seconds)
    return ear.silences - before


def _stand(since, seconds):
    """Let time pass in which a fault lasts: it is the fault that is timed, nothing waits for it."""
    time.sleep(max(0.0, since + seconds - time.monotonic()))
