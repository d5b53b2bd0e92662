"""The capture process with PortAudio: requests, hangs, kills, orphans, and clean ends."""

import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from audio_faults import belongings, stopped

from spectrod.lib.errors import UnavailableError
from spectrod.lib.wakeup import Wakeup
from spectrod.source.shared_samples import SharedSamples
from spectrod.source.soundcard import childprocess
from spectrod.source.soundcard.capture_process import CaptureProcess, StreamSettings
from spectrod.source.soundcard.childprocess import ChildProcess

FS = 48000.0

pytestmark = [pytest.mark.slow, pytest.mark.audio]


CAPACITY = 4 * round(FS)


class RecordingProcess(CaptureProcess):
    """A capture process with the memory of a ring for the settings that most tests use."""

    def __init__(self, settings=None, capacity=CAPACITY, **options):
        settings = settings or SETTINGS
        self.memory = SharedSamples(settings.layout, capacity, [0], settings.block_frames)
        super().__init__(self.memory, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self.memory.close()


SETTINGS = StreamSettings(0, "ALSA", FS, 2, "f32le", 240)


@pytest.fixture
def process():
    """Make a capture process, and check that it leaves no resources."""
    before = belongings()
    with RecordingProcess() as process:
        yield process
    for killed in childprocess._unreaped:
        killed.wait(10.0)
    after = belongings()
    assert after["children"] <= before["children"]  # a server may have been killed
    for kind in ("threads", "descriptors", "mappings"):
        assert after[kind] == before[kind]


def settings_of(process, name="pulse", **changes):
    index = next(device["index"] for device in process.scan() if device["name"] == name)
    return replace(SETTINGS, device=index, **changes)


def fetch(process, n_frames):
    blocks = []
    while sum(block.n_samples for block in blocks) < n_frames:
        blocks += process.wait(5.0) or pytest.fail("no samples for 5 s")
    return blocks


def fetch_until_the_end(process, blocks):
    while fetched := process.wait(5.0):
        blocks += fetched


def test_each_scan_is_a_fresh_list(silent_server, process):
    """Each scan in the same process finds new devices and no longer lists removed ones."""
    names = [{device["name"] for device in process.scan()}]
    pid = process.pid
    silent_server.start()
    names.append({device["name"] for device in process.scan()})
    silent_server.kill()
    names.append({device["name"] for device in process.scan()})
    assert ["pulse" in found for found in names] == [False, True, False]
    assert process.pid == pid


def test_a_process_is_replaced_after_many_requests(sound_server):
    """After many requests the process is replaced, so PortAudio restarts are bounded in each."""
    pids = []
    with RecordingProcess(requests_max=3) as process:
        for _ in range(7):
            process.scan()
            pids.append(process.pid)
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]


def test_a_process_whose_portaudio_does_not_start_is_not_asked_again(process, monkeypatch):
    """A process whose PortAudio fails to start is replaced for the next scan."""
    process.scan()
    pid = process.pid
    answer = {"error": {"kind": "failed", "text": "Error initializing PortAudio"}}
    monkeypatch.setattr(process._child, "ask", lambda *_: answer)
    with pytest.raises(UnavailableError, match=r"^Error initializing PortAudio$"):
        process.scan()
    assert process.pid is None
    process.scan()
    assert process.pid != pid


def test_callbacks_run_before_others(sound_server, process, real_time_allowed):
    """PortAudio's thread, and no other, gets real-time priority where that is allowed."""
    process.open(settings_of(process))
    assert process.wait(5.0)
    tasks = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
    urgent = [task for task in tasks if os.sched_getscheduler(task) == os.SCHED_RR]
    assert process.pid not in urgent
    assert len(urgent) == real_time_allowed


def test_one_thread_hears_of_spinning(process):
    """One thread receives the signal of a spinning callback; in others it would end the process."""
    process.scan()
    statuses = [
        (task / "status").read_text() for task in Path(f"/proc/{process.pid}/task").iterdir()
    ]
    blocked = [int(re.search(r"^SigBlk:\s*(\w+)$", s, re.MULTILINE)[1], 16) for s in statuses]
    assert sum(not mask >> (signal.SIGXCPU - 1) & 1 for mask in blocked) <= 1


def test_a_machine_that_is_short_of_descriptors(process):
    """Whichever descriptor is the first to be missing, the error allows a retry."""
    before = belongings()["descriptors"]
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_allowed, refusals = min(set(range(limit)) - set(map(int, before))), []
    while process.pid is None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_allowed, hard))
        try:
            process.scan()
        except UnavailableError as error:
            refusals.append(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        n_allowed += 1
        assert process.pid or belongings()["descriptors"] == before
    # Later the process has too few, and PulseAudio's library crashes.
    assert refusals.count("capture process: cannot be started: Too many open files") > 5


@pytest.mark.parametrize("format_", ["s16le", "s24le", "s32le", "f32le"])
def test_blocks_of_every_format(sound_server, format_):
    """Blocks of every format have the requested size and are contiguous."""
    settings = replace(SETTINGS, format=format_, block_frames=241)
    with RecordingProcess(settings) as process:
        settings = settings_of(process, format=format_, block_frames=241)
        process.check(settings)
        assert 0.0 < process.open(settings) < 1.0
        blocks = fetch(process, 0.2 * FS)
        assert {block.n_samples for block in blocks} == {241}
        assert [block.position for block in blocks] == [241 * i for i in range(len(blocks))]
        assert process.memory.count >= blocks[-1].stop
        assert 0.0 < process.callback_cost_us(0.5) <= process.callback_cost_us(0.999) < 1e5


def test_the_next_stream_continues_in_the_ring(sound_server, process):
    """After a restart, positions continue where the stream before ended."""
    process.open(settings_of(process))
    first = fetch(process, 0.1 * FS)
    process.close()
    process.open(settings_of(process))
    second = fetch(process, 0.1 * FS)
    assert first[-1].stop <= second[0].position <= process.memory.count - second[-1].n_samples


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"channels": 40},
            r"^does not give channels=40 \(.*Invalid number of channels .*-9998\]\)$",
        ),
        ({"samplerate": 5e6}, r"^does not take samplerate=5e\+06 \(.*Invalid sample rate .*\)$"),
        ({"device": 99}, r"^is not there \(Error querying device 99\)$"),
    ],
)
def test_refusals_name_the_value(sound_server, process, changes, message):
    """A value that PortAudio refuses is named in one line with its reason; the process stays."""
    settings = settings_of(process)
    pid = process.pid
    for ask in (process.check, process.open):
        with pytest.raises(UnavailableError, match=message):
            ask(replace(settings, **changes))
    process.open(settings)
    assert process.pid == pid
    assert process.wait(5.0)


def test_a_probe_disturbs_nobody(sound_server, process):
    """A probe of rates and formats beside a running capture costs it no samples."""
    process.open(settings_of(process))
    with closing(CaptureProcess()) as other:
        index = settings_of(other).device
        answer = other.probe(index)
    assert {8000, 44100, 48000, 192000} <= set(answer["rates"])
    assert answer["formats"] == ["s16le", "s24le", "s32le", "f32le"]
    blocks = fetch(process, 0.3 * FS)
    assert [block.position for block in blocks] == [240 * i for i in range(len(blocks))]
    # No samples are late for good: their number fits the elapsed time, to 50 ms of scheduling.
    passed_s = (blocks[-1].t_mono_ns - blocks[0].t_mono_ns) * 1e-9
    assert 240 * (len(blocks) - 1) / FS == pytest.approx(passed_s, abs=0.05)


def test_a_process_that_hangs_is_replaced(sound_server, process):
    """A process that does not answer in time is killed, and the next scan has a new one."""
    process.scan()
    pid = process.pid
    os.kill(pid, signal.SIGSTOP)
    process.answer_s = 0.3
    with pytest.raises(UnavailableError, match=r"^capture process: did not answer within 0\.3 s$"):
        process.scan()
    process.answer_s = 5.0
    assert not Path(f"/proc/{pid}").exists()
    assert settings_of(process)
    assert process.pid != pid


def test_a_server_that_hangs_is_waited_for_only_so_long(sound_server, process):
    """The same limit holds if PortAudio hangs in a request to a stopped sound server."""
    process.answer_s = 0.5
    with (
        stopped(sound_server.process.pid),
        pytest.raises(UnavailableError, match="did not answer within"),
    ):
        process.scan()


def test_a_wait_for_blocks_can_be_ended(sound_server, process):
    """A caller that waits for blocks of a stopped process is woken by a stop."""
    process.open(settings_of(process))
    assert process.wait(5.0)
    with stopped(process.pid):
        stop = Wakeup()
        while process.wait(0.05, stop):
            pass
        stop.set()
        t = time.monotonic()
        assert process.wait(10.0, stop) == []
        assert time.monotonic() - t < 1.0
        stop.close()


@pytest.mark.parametrize("end", ["stop", "hurry", "death"])
def test_a_pause_can_be_ended(sound_server, process, end):
    """A caller that lets blocks wait is woken by either flag and by the end of the stream."""
    process.open(settings_of(process))
    assert process.wait(5.0)
    stop, hurry = Wakeup(), Wakeup()
    process.pause(0.1, stop, hurry)  # blocks do not end it
    assert len(process.wait(5.0, stop)) > 1
    if end == "death":
        os.kill(process.pid, signal.SIGKILL)
    else:
        {"stop": stop, "hurry": hurry}[end].set()
    t = time.monotonic()
    process.pause(60.0, stop, hurry)
    assert time.monotonic() - t < 1.0
    assert not hurry.wait(0.0)
    stop.close()
    hurry.close()


def test_blocks_before_a_death_are_returned(sound_server, process):
    """All blocks captured before the process died are returned before the error."""
    process.open(settings_of(process))
    first = process.wait(5.0)
    time.sleep(0.2)  # of capture that is not fetched
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    blocks = []
    with pytest.raises(UnavailableError, match=r"^capture process: ended \(signal 9\)$"):
        fetch_until_the_end(process, blocks)
    positions = [block.position for block in first + blocks]
    assert positions == [240 * i for i in range(len(positions))]
    # One block may have been counted and not reported.
    assert process.memory.count // 240 - len(positions) in (0, 1)


def test_a_server_that_dies_ends_the_stream_at_once(sound_server, process):
    """PortAudio's report of the end of a stream ends it at once."""
    process.open(settings_of(process))
    assert process.wait(5.0)
    sound_server.kill()
    t = time.monotonic()
    with pytest.raises(UnavailableError, match="the sound system has ended the stream"):
        fetch_until_the_end(process, [])
    assert time.monotonic() - t < 1.0


def test_a_stream_that_ends_before_its_start_was_confirmed_has_ended(process, monkeypatch):
    """The end of a stream before its start was confirmed is no answer, and the process ends."""
    monkeypatch.setattr(ChildProcess, "ask", lambda *_: {"event": "finished"})
    with pytest.raises(UnavailableError, match="the sound system has ended the stream"):
        process.scan()
    assert process._child is None


def test_blocks_that_are_not_fetched_are_counted(sound_server):
    """A delayed reader learns by the count how far the samples were overwritten."""
    with RecordingProcess(capacity=4800) as process:
        process.open(settings_of(process))
        assert process.wait(5.0)
        deadline_s = time.monotonic() + 60.0
        while process.memory.claimed() <= 0.3 * FS:  # into a ring for 0.1 s
            assert time.monotonic() < deadline_s
            time.sleep(0.005)
        blocks = process.wait(5.0)
        assert blocks[-1].stop + 240 <= process.memory.claimed()


ORPHANING = """
    import os, sys, time
    from spectrod.source.soundcard.capture_process import CaptureProcess
    process = CaptureProcess()
    process.scan()
    print(process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_orphan_ends(sound_server, is_stopped):
    """If the daemon is killed, its capture process ends, even a stopped one."""
    program = "\n".join(line.strip() for line in ORPHANING.splitlines())
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        ended = os.pidfd_open(pid)
        if is_stopped:
            os.kill(pid, signal.SIGSTOP)
        parent.kill()
    assert select.select([ended], [], [], 5.0)[0]
    os.close(ended)


def test_a_machine_without_portaudio(tmp_path, monkeypatch, process):
    """On a machine without PortAudio the error names the missing package."""
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    message = r"^soundcard: PortAudio's library is missing: install the package libportaudio2 "
    with pytest.raises(UnavailableError, match=message):
        process.scan()
