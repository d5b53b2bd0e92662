"""Publisher and subscribers over real sockets; every wait is for a message or a wake-up."""

import fcntl
import resource
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import zmq
from publishing import ANY_PORT, SPEC, TIMEOUT_S, make_batch, make_stats

from spectrod.client import subscribe
from spectrod.daemon.access.access import Access
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.daemon.publisher.upstream import PREFIX_MAX_BYTES
from spectrod.daemon.publisher.xpub import GOODBYE_S
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import BusyError, ConfigError, StorageError, UnavailableError
from spectrod.wire.schema import Heartbeat, Meta, decode

ROOT = Path(__file__).parents[2]


@pytest.fixture
def connected(publish, wait_for_subscribers):
    publisher = publish()
    with subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        yield publisher, subscription


def receive(sub):
    return decode(sub.recv_multipart())


def test_a_batch_arrives_as_one_message_a_frame_and_channel(connected):
    """Each frame and channel is a message with the batch's values, numbers, times and counts."""
    publisher, subscription = connected
    publisher.sources[0].write(make_batch(2, gap_samples=77))
    frames = [next(subscription) for _ in range(4)]
    assert [(f.channel, f.header.seq) for f in frames] == [("0", 0), ("1", 0), ("0", 1), ("1", 1)]
    assert [f.values[0] for f in frames] == [0.0, 0.5, 1.0, 1.5]
    assert [f.header.gap_samples for f in frames] == [77, 77, 0, 0]
    last = frames[-1].header
    assert last.sample_index == 128
    assert (last.t_mono_ns, last.t_utc_ns) == (1002666624, 1002666629)
    assert (last.fs, last.nfft, last.hop, last.window) == (48000.0, 256, 128, "hann")
    assert last.enbw_hz == pytest.approx(SPEC.enbw_hz)
    assert (last.unit, last.ref, last.engine) == ("dBFS", "0 dBFS = full-scale sine", "numpy")


def test_a_description_comes_before_the_first_frame_and_when_it_changes(publish, raw_subscriber):
    """A description precedes the first frame and each change, so values have a known meaning."""
    publisher = publish()
    sub = raw_subscriber(publisher.endpoints[0], "spec/mic/0/", "meta/mic/0/", "hb/")
    while not publisher.subscribers:
        receive(sub)
    publisher.sources[0].write(make_batch())
    other = SpectrumSpec(fs=48000.0, channels=2, win_length=64, hop=128, scaling="dbfs")
    publisher.sources[0].write(make_batch(first=1, spec=other))
    messages = (receive(sub) for _ in range(20))
    seen = []
    while len(seen) < 4:
        message = next(messages)
        if not isinstance(message, Heartbeat):
            seen.append((type(message).__name__, message.header.nfft, message.header.seq))
    assert seen == [("Meta", 256, 0), ("Frame", 256, 0), ("Meta", 64, 1), ("Frame", 64, 1)]


def test_a_late_joiner_gets_description_and_heartbeat_at_once(publish, progress, raw_subscriber):
    """Each new subscription gets description and heartbeat at once, also a late one."""
    publisher = publish(progress=progress)
    publisher.sources[0].write(make_batch())
    assert progress.wait(TIMEOUT_S)
    sub = raw_subscriber(publisher.endpoints[0], "meta/mic/1/", "hb/mic/")
    kinds = {}
    while len(kinds) < 2:
        message = receive(sub)
        kinds[type(message)] = message
    assert kinds[Meta].header.device == "test signal"
    np.testing.assert_array_equal(kinds[Meta].f, SPEC.frequencies)
    assert kinds[Heartbeat].header.state == "running"
    assert kinds[Heartbeat].header.frames == 1


@pytest.mark.slow
def test_heartbeats_come_without_frames(publish, raw_subscriber):
    """Numbered heartbeats come each second without frames, so silence differs from death."""
    start_ns = time.monotonic_ns()
    publisher = publish(stats=lambda: make_stats("starting"))
    sub = raw_subscriber(publisher.endpoints[0], "hb/")
    beats = [receive(sub).header for _ in range(3)]
    assert {beat.state for beat in beats} == {"starting"}
    assert [beat.seq - beats[0].seq for beat in beats] == [0, 1, 2]
    # The first comes with the start and another with the subscription; each may be late.
    assert (beats[2].t_mono_ns - start_ns) * 1e-9 >= 1.0


@pytest.mark.parametrize(
    ("state", "goodbye"), [("running", "stopped"), ("waiting", "stopped"), ("failed", "failed")]
)
def test_stop_sends_queued_frames_and_the_reason(publish, wait_for_subscribers, state, goodbye):
    """A stop sends all submitted frames, and its last message gives the reason."""
    states = ["running"]
    publisher = publish(stats=lambda: make_stats(states[-1]))
    with subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        publisher.sources[0].write(make_batch(100))
        states.append(state)
        publisher.stop()
        frames = [next(subscription) for _ in range(200)]
        assert [frame.missed for frame in frames] == [0] * 200
        while subscription.heartbeat is None or subscription.heartbeat.state != goodbye:
            assert subscription.receive(0.01) is None
        assert not subscription.alive


def test_frames_dropped_by_the_queue_are_a_hole_of_the_same_length(publish, wait_for_subscribers):
    """Messages that the daemon's queue drops are counted apart from those lost on the way."""
    publisher = publish(queue_frames=4)
    with subscribe(publisher.endpoints[0], "spec/mic/0/", timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        publisher.sources[0].write(make_batch())
        next(subscription)
        publisher.sources[0].write(make_batch(10, first=1))
        frame = next(subscription)
        assert (frame.missed, frame.header.dropped, publisher.sources[0].dropped) == (6, 6, 6)


def test_a_restarted_daemon_has_another_epoch(publish):
    """Each start has a random epoch that fits a double."""
    epochs = {publish().epoch for _ in range(3)}
    assert len(epochs) == 3
    assert max(epochs) < 2**53


def test_a_change_is_sent_at_once(publish, raw_subscriber, monkeypatch):
    """A change sends a heartbeat before one is due and leaves those of other sources on time."""
    monkeypatch.setattr("spectrod.daemon.publisher.sender.HEARTBEAT_PERIOD_S", 10 * TIMEOUT_S)
    state = ["running"]
    publisher = publish(stats=lambda: make_stats(state[0]), names=("mic", "pond"))
    beats = {
        name: raw_subscriber(publisher.endpoints[0], f"hb/{name}/") for name in ("mic", "pond")
    }
    first = {name: receive(sub).header for name, sub in beats.items()}
    for name in ("waiting", "running"):
        state[0] = name
        publisher.sources[0].changed()
        while (beat := receive(beats["mic"]).header).state != name:
            pass
    reported = publisher.sources[1].heartbeats
    assert beat.seq >= first["mic"].seq + 2
    assert publisher.sources[0].heartbeats >= reported + 2


def test_sources_share_the_socket_and_nothing_else(publish, wait_for_subscribers):
    """Each source has its own numbers, drops, name and description; the epoch is the daemon's."""
    publisher = publish(names=("mic", "pond"), queue_frames=4)
    mic, pond = publisher.sources
    with subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        pond.write(make_batch())
        assert (first := next(subscription)).source == "pond"
        next(subscription)
        mic.write(make_batch(10))
        frames = [next(subscription) for _ in range(8)]
        pond.write(make_batch(first=1))
        frames += [next(subscription) for _ in range(2)]
        seqs = [(f.source, f.header.seq) for f in frames if f.channel == "0"]
        assert seqs == [("mic", 6), ("mic", 7), ("mic", 8), ("mic", 9), ("pond", 1)]
        assert {f.header.epoch for f in frames} == {first.header.epoch}
        assert [f.header.dropped for f in frames] == [6] * 8 + [0] * 2
        while len(subscription.heartbeats) < 2:  # a heartbeat may follow the rows that it reports
            assert subscription.receive(0.1) is None
        assert set(subscription.heartbeats) == {"mic", "pond"}
    publisher.stop()  # a message is counted once it is sent: the last may have been read before
    assert (mic.messages, pond.messages, mic.dropped, pond.dropped) == (8, 4, 6, 0)


def test_a_busy_source_does_not_hold_another_up(publish, wait_for_subscribers):
    """A source with much data does not delay another's frame."""
    publisher = publish(names=("busy", "mic"), queue_frames=64)
    busy, mic = publisher.sources
    with subscribe(publisher.endpoints[0], "spec/mic/", timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        for k in range(20):
            busy.write(make_batch(64, first=64 * k))
        mic.write(make_batch())
        assert next(subscription).header.seq == 0


def test_the_first_message_is_notified(publish, progress):
    """An owner that waits for the first message is woken by it."""
    publisher = publish(progress=progress)
    assert publisher.sources[0].messages == 0
    publisher.sources[0].write(make_batch())
    assert progress.wait(TIMEOUT_S)
    assert publisher.sources[0].messages == 2


def test_a_failure_in_the_thread_is_kept_and_notified(progress):
    """A failure in the thread wakes the owner, which gets the exception and can stop."""

    def broken():
        raise ArithmeticError("no count today")

    publisher = Publisher([ANY_PORT], progress=progress)
    publisher.add_source("mic", broken)
    publisher.start()
    assert progress.wait(TIMEOUT_S)
    assert str(publisher.failure.__cause__) == "no count today"
    publisher.stop()


def test_subscribers_are_counted_until_they_leave(publish, wait_for_subscribers, raw_subscriber):
    """Each subscription to spectra is counted, and others are not."""
    publisher = publish()
    gone = raw_subscriber(publisher.endpoints[0], "spec/mic/0/")
    raw_subscriber(publisher.endpoints[0], "")
    wait_for_subscribers(publisher, 2)
    gone.close()
    beats = raw_subscriber(publisher.endpoints[0], "hb/")
    while publisher.subscribers > 1:
        beats.recv_multipart()
    assert publisher.subscribers == 1


@pytest.mark.slow
def test_a_subscriber_that_never_reads_harms_nobody(
    publish, raw_subscriber, wait_for_subscribers, ipc_path
):
    """A subscriber that never reads finds a hole, while others get all and memory is bounded."""
    spec = SpectrumSpec(fs=48000.0, win_length=8192, scaling="dbfs")
    publisher = publish(f"ipc://{ipc_path}", high_water_mark=20, replay_mb=0)
    slow = raw_subscriber(publisher.endpoints[0], "spec/", high_water_mark=20)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher, 2)
        for k in range(2000):
            if k % 10 == 0:  # half of what may wait
                publisher.sources[0].write(make_batch(10, first=k, spec=spec))
            frame = subscription.receive(TIMEOUT_S)
            counts = k, publisher.subscribers, publisher.sources[0].messages, subscription.missed
            assert frame is not None, counts
            assert frame.header.seq == k, counts
        assert subscription.missed == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 8 * 1024
    seqs = []
    while slow.poll(100):
        seqs.append(receive(slow).header.seq)
    assert seqs[0] == 0
    assert len(seqs) < 1000


@pytest.mark.slow
def test_stop_does_not_wait_for_a_subscriber_that_never_reads(publish, raw_subscriber):
    """A stop is bounded in time with a subscriber that never reads."""
    publisher = publish(queue_frames=5000, high_water_mark=5000)
    sub = raw_subscriber(publisher.endpoints[0], "spec/", "hb/", high_water_mark=1)
    while not publisher.subscribers:
        receive(sub)
    publisher.sources[0].write(make_batch(5000, spec=SpectrumSpec(fs=48000.0, win_length=8192)))
    begin_s = time.monotonic()
    publisher.stop()
    assert time.monotonic() - begin_s < GOODBYE_S + 1.8


def test_garbage_on_the_port_disturbs_nobody(connected):
    """Arbitrary bytes at the port neither end the daemon nor reach a subscriber."""
    publisher, subscription = connected
    address = ("127.0.0.1", int(publisher.endpoints[0].rpartition(":")[2]))
    rng = np.random.default_rng(1)
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", rng.bytes(5000), b"\xff\0\0\0\0\0\0\0\x01\x7f", b""):
        with socket.create_connection(address) as stranger:
            stranger.sendall(garbage)
    publisher.sources[0].write(make_batch())
    assert next(subscription).header.seq == 0


@pytest.mark.parametrize(
    "nonsense", [b"\x07nonsense", b"", b"\x01" + b"x" * (PREFIX_MAX_BYTES + 1)]
)
def test_a_peer_that_sends_no_subscription_is_cut_off(
    nonsense, publish, raw_subscriber, wait_for_subscribers, wait_for_refusals
):
    """A peer that sends no valid subscription is cut off, and other subscribers are served."""
    with ExitStack() as cleanup:
        access = Access()
        access.start()
        cleanup.callback(access.close)
        publisher = publish(access=access)
        cleanup.callback(publisher.stop)
        with zmq.Context() as context, context.socket(zmq.XSUB) as peer:
            peer.setsockopt(zmq.LINGER, 0)
            peer.setsockopt(zmq.RECONNECT_IVL, -1)  # it would send the same again
            monitor = peer.get_monitor_socket(zmq.Event.DISCONNECTED)
            peer.connect(publisher.endpoints[0])
            peer.send(nonsense)
            assert monitor.poll(TIMEOUT_S * 1e3)
            peer.disable_monitor()
            monitor.close()
        wait_for_refusals(access, "flood")
        assert access.refusals.counts["flood"] == 1
        raw_subscriber(publisher.endpoints[0], "spec/")
        wait_for_subscribers(publisher)
        assert publisher.subscribers == 1


def test_an_ipc_socket_is_private_and_leaves_nothing(publish, ipc_path):
    """An IPC socket has mode 0660 in a new folder of 0750, and both files are removed."""
    path = ipc_path.parent / "new" / "s.ipc"
    publisher = publish(f"ipc://{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750
    publisher.stop()
    assert list(path.parent.iterdir()) == []


def test_a_second_daemon_cannot_take_an_ipc_path(publish, ipc_path, wait_for_subscribers):
    """A second daemon at an IPC path is an error that names the first, until that ends."""
    first = publish(f"ipc://{ipc_path}")
    with pytest.raises(BusyError, match=r"s\.ipc': in use by another process, which holds .*lock"):
        publish(f"ipc://{ipc_path}")
    with subscribe(first.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(first)
        first.sources[0].write(make_batch())
        assert next(subscription).header.seq == 0
    first.stop()
    publish(f"ipc://{ipc_path}")


def test_a_lock_removed_while_it_was_awaited_is_not_taken_for_the_new_one(ipc_path, monkeypatch):
    """If the lock file is replaced between open and lock, the new file is locked."""
    lock = ipc_path.with_name("s.ipc.lock")
    real_flock = fcntl.flock
    calls = []

    def flock(fd, operation):
        if not calls:
            lock.unlink()
        calls.append(fd)
        real_flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    publisher = Publisher([f"ipc://{ipc_path}"])
    publisher.start()
    assert len(calls) == 2
    assert lock.exists()
    publisher.stop()


def test_a_stale_socket_is_replaced(publish, ipc_path):
    """The socket that a killed daemon left is replaced."""
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(ipc_path))
    publish(f"ipc://{ipc_path}")


def test_a_living_stranger_on_the_path_is_left_alone(publish, ipc_path):
    """A live process at the path that does not use our lock keeps its socket."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(ipc_path))
        stranger.listen()
        with pytest.raises(BusyError, match=r"s\.ipc': in use by another process"):
            publish(f"ipc://{ipc_path}")
        assert ipc_path.is_socket()
    assert not ipc_path.with_name("s.ipc.lock").exists()


def test_a_file_at_the_path_is_not_deleted(publish, ipc_path):
    """A file at the path is refused, although ZeroMQ would remove it."""
    ipc_path.write_text("precious")
    with pytest.raises(StorageError, match="the path exists and is not a socket"):
        publish(f"ipc://{ipc_path}")
    assert ipc_path.read_text() == "precious"


def test_a_folder_that_cannot_be_created_is_an_error(publish, ipc_path):
    """A folder that cannot be created is an error with endpoint, path and reason."""
    ipc_path.write_text("")
    with pytest.raises(StorageError, match=r"endpoint='ipc://.*': .*(Not a directory|File exists)"):
        publish(f"ipc://{ipc_path}/deeper/s.ipc")


def test_an_occupied_port_is_an_error_and_releases_other_endpoints(publish, ipc_path):
    """An occupied port gives exit code 75 with the endpoint, and other endpoints are released."""
    taken = publish().endpoints[0]
    with pytest.raises(BusyError, match=f"endpoint='{taken}': in use by another process") as caught:
        publish(f"ipc://{ipc_path}", taken)
    assert caught.value.exit_code == 75
    assert list(ipc_path.parent.iterdir()) == []


def test_an_address_of_another_machine_is_an_error(publish):
    """The address 192.0.2.1, reserved for documentation, cannot be bound and is an error."""
    with pytest.raises(UnavailableError, match="no network interface of this machine has that"):
        publish("tcp://192.0.2.1:5556", insecure=True)


def test_settings_that_break_a_rule_are_refused_before_anything_is_opened():
    """Malformed, exposed, missing or too small settings are refused before a socket is opened."""
    for endpoints, options, rule in [
        (["tcp://nowhere"], {}, "the port must be"),
        (["tcp://0.0.0.0:5556"], {}, "anyone on the network could listen"),
        ([], {}, "endpoints=0: must be at least 1"),
        (["ipc:///x", ANY_PORT, "ipc:///x"], {}, "endpoint='ipc:///x': named 2 times, must be"),
        ([ANY_PORT], {"queue_frames": 0}, "queue_frames=0: must be at least 1"),
        ([ANY_PORT], {"high_water_mark": 0}, "high_water_mark=0: must be at least 1"),
    ]:
        with pytest.raises(ConfigError, match=rule):
            Publisher(endpoints, **options)


def test_sources_of_one_name_are_refused():
    """Two sources with the same name are refused, as their topics would be equal."""
    publisher = Publisher([ANY_PORT])
    publisher.add_source("mic", make_stats)
    with pytest.raises(ConfigError, match="source name='mic': another source has it"):
        publisher.add_source("mic", make_stats)


def test_several_endpoints_carry_the_same_frames(publish, ipc_path, wait_for_subscribers):
    """TCP and IPC subscribers get the same stream with one numbering."""
    publisher = publish(ANY_PORT, f"ipc://{ipc_path}")
    assert publisher.endpoints[1] == f"ipc://{ipc_path}"
    with (
        subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as one,
        subscribe(publisher.endpoints[1], timeout_s=TIMEOUT_S) as other,
    ):
        wait_for_subscribers(publisher, 2)
        publisher.sources[0].write(make_batch())
        assert next(one).header == next(other).header


def test_ipv6_loopback_works(publish, wait_for_subscribers):
    """An IPv6 address in brackets works for bind and connect."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this machine has no IPv6 loopback: {error}")
    publisher = publish("tcp://[::1]:*")
    with subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S) as subscription:
        wait_for_subscribers(publisher)
        publisher.sources[0].write(make_batch())
        assert next(subscription).header.seq == 0


@pytest.mark.slow
def test_the_ten_line_example_reads_the_stream(publish, wait_for_subscribers):
    """A script with only zmq, json and numpy prints each frame's peak."""
    publisher = publish()
    command = [sys.executable, str(ROOT / "examples/subscribe.py"), publisher.endpoints[0]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as example:
        try:
            wait_for_subscribers(publisher)
            batch = make_batch()
            batch.values[0, 0, 10] = -20.0 + 40.0
            publisher.sources[0].write(batch)
            assert example.stdout.readline() == "spec/mic/0/dbfs/ 1875.0 Hz 20.00 dBFS\n"
            assert example.stdout.readline() == "spec/mic/1/dbfs/ 0.0 Hz 0.50 dBFS\n"
        finally:
            example.terminate()
