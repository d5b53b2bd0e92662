import asyncio
import math
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zmq

from spectrod import client
from spectrod.client import aio, subscribe
from spectrod.lib.errors import ConfigError, UnavailableError, WireError
from spectrod.wire.schema import (
    Frame,
    Heartbeat,
    HeartbeatHeader,
    Meta,
    MetaHeader,
    SpectrumHeader,
    encode,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "wire"))
from made_up import SPECTRUM

TIMEOUT_S = 10.0


def frame(seq, *, epoch=1, channel=0):
    header = SpectrumHeader(
        seq=seq, epoch=epoch, t_utc_ns=0, t_mono_ns=0, sample_index=32 * seq, **SPECTRUM
    )
    return Frame(f"spec/mic/{channel}/dbfs/", header, np.full(33, seq, np.float32))


def heartbeat(state="running", *, source="mic", seq=0, waiting_for=""):
    header = HeartbeatHeader(
        seq=seq, epoch=1, t_utc_ns=0, t_mono_ns=0, state=state, frames=0, waiting_for=waiting_for
    )
    return Heartbeat(f"hb/{source}/", header)


class Daemon:
    """A socket that sends a test's messages after the subscriber has connected."""

    def __init__(self, context):
        self._socket = context.socket(zmq.XPUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1e3))
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{port}"

    def subscribe(self, prefix="spec/", **options):
        subscription = subscribe(self.endpoint, prefix, timeout_s=TIMEOUT_S, **options)
        self.subscriptions = {self._socket.recv() for _ in range(3)}
        return subscription

    def receive(self):
        return self._socket.recv()

    def send(self, *messages):
        for message in messages:
            parts = message if isinstance(message, list) else encode(message)
            self._socket.send_multipart(parts)

    def send_when_subscribed(self, *messages):
        """Wait until the subscriptions of one connection end and those of another arrive."""
        while self._socket.recv()[:1] != b"\x00":
            pass
        while self._socket.recv()[:1] != b"\x01":
            pass
        while self._socket.poll(100):
            self._socket.recv()
        self.send(*messages)

    def close(self):
        self._socket.close()


@pytest.fixture
def daemon():
    with zmq.Context() as context:
        daemon = Daemon(context)
        yield daemon
        daemon.close()


@pytest.fixture
def subscription(daemon):
    with daemon.subscribe() as subscription:
        yield subscription


def test_frames_come_in_order_and_complete(daemon, subscription):
    """Frames arrive in order, and without a loss nothing counts as missed."""
    daemon.send(frame(0), frame(1), frame(2))
    received = [next(subscription) for _ in range(3)]
    assert [f.header.seq for f in received] == [0, 1, 2]
    assert [f.missed for f in received] == [0, 0, 0]
    np.testing.assert_array_equal(received[2].values, np.full(33, 2, np.float32))


def test_the_frame_after_a_hole_reports_it(daemon, subscription):
    """The frame after a hole counts the lost messages of its topic, and the sum is kept."""
    daemon.send(frame(5), frame(5, channel=1), frame(9), frame(7, channel=1), frame(10))
    received = [next(subscription) for _ in range(5)]
    assert [(f.channel, f.missed) for f in received] == [
        ("0", 0),
        ("1", 0),
        ("0", 3),
        ("1", 1),
        ("0", 0),
    ]
    assert subscription.missed == 4


def test_topics_can_be_added_and_removed(daemon):
    """Another prefix comes from then on; what was sent while it was removed is not missed."""
    with daemon.subscribe("event/") as subscription:
        for first_seq in (3, 50):
            subscription.add_prefix("spec/mic/1/")
            assert daemon.receive() == b"\x01spec/mic/1/"
            some = [frame(first_seq + k, channel=channel) for k in (0, 2) for channel in (0, 1)]
            daemon.send(*some)
            received = [next(subscription) for _ in range(2)]
            assert [f.topic for f in received] == ["spec/mic/1/dbfs/"] * 2
            assert [f.missed for f in received] == [0, 1]
            subscription.remove_prefix("spec/mic/1/")
            assert daemon.receive() == b"\x00spec/mic/1/"


def test_without_replay_holes_do_not_make_more_holes(daemon, monkeypatch):
    """A lost replay request is retried, but later one failed request per hole is the limit."""
    asked_s = []

    def ask(control, *_args, **_params):
        asked_s.append(control.timeout_s)
        raise UnavailableError("nobody")

    monkeypatch.setattr("spectrod.client.control.Control.call_parts", ask)
    with daemon.subscribe(replay_from="tcp://127.0.0.1:9") as frames:
        frames.replay_timeouts_s = (0.01, 0.02, 0.03)
        daemon.send(frame(0), frame(2), frame(4))
        assert [next(frames).missed for _ in range(3)] == [0, 1, 1]
        assert frames.replay_failure == "nobody"
    assert asked_s == [0.01, 0.02, 0.03, 0.01]


def test_a_new_epoch_means_a_restarted_daemon(daemon, subscription):
    """Sequence numbers that restart with a new epoch are no loss."""
    daemon.send(frame(8), frame(0, epoch=2), frame(1, epoch=2))
    received = [next(subscription) for _ in range(3)]
    assert [f.restarted for f in received] == [False, True, False]
    assert subscription.missed == 0


def test_a_number_that_goes_back_is_an_error(daemon, subscription):
    """Within an epoch a sequence number that goes back is an error."""
    daemon.send(frame(8), frame(8))
    next(subscription)
    with pytest.raises(WireError, match="seq=8: must be above 8, the one before"):
        next(subscription)


def test_a_malformed_message_is_reported_and_the_next_one_read(daemon, subscription):
    """Iteration raises on a malformed message and continues with the next one."""
    daemon.send(frame(0), [b"spec/mic/0/dbfs/", b"{"], frame(1))
    next(subscription)
    with pytest.raises(WireError, match=r"spec/mic/0/dbfs/: header='{': Input data was truncated"):
        next(subscription)
    assert next(subscription).header.seq == 1


def test_topics_of_a_later_version_are_ignored(daemon):
    """A subscription to everything ignores topics of later versions."""
    with daemon.subscribe("") as subscription:
        daemon.send([b"level/mic/", b"?"], frame(0))
        assert next(subscription).header.seq == 0


def test_a_subscription_narrows_its_descriptions_too(daemon):
    """A client subscribes only to wanted topics and their source's descriptions and heartbeats."""
    for prefix, narrower, source in [
        ("spec/mic/1/", "mic/1/", "mic/"),
        ("spec/mi", "mi", "mi"),
        ("spec/", "", ""),
        ("", "", ""),
    ]:
        with daemon.subscribe(prefix):
            expected = (prefix, f"meta/{narrower}", f"hb/{source}")
            assert daemon.subscriptions == {b"\x01" + text.encode() for text in expected}
        for _ in expected:
            daemon._socket.recv()


def test_descriptions_are_kept_by_the_topic_they_describe(daemon, subscription):
    """A frame's topic finds its description."""
    header = MetaHeader(seq=0, epoch=1, t_utc_ns=0, device="test", channels=1, **SPECTRUM)
    daemon.send(Meta("meta/mic/0/dbfs/", header, np.arange(33) * 750.0), frame(0))
    received = next(subscription)
    np.testing.assert_array_equal(subscription.meta[received.topic].f, received.f)


def test_latest_skips_to_the_newest_of_each_topic(daemon, subscription):
    """In latest mode a display gets the newest frame of each channel, with the losses before it."""
    daemon.send(frame(0), frame(0, channel=1), frame(3), frame(1, channel=1), heartbeat())
    seen = {}
    while subscription.heartbeat is None:
        seen |= subscription.latest(0.1)
    assert {topic: f.header.seq for topic, f in seen.items()} == {
        "spec/mic/0/dbfs/": 3,
        "spec/mic/1/dbfs/": 1,
    }
    assert subscription.missed == 2


def test_silence_is_no_life(daemon, subscription):
    """Before the first message a daemon counts as dead, after it as alive."""
    assert not subscription.alive
    assert subscription.silence_s == math.inf
    daemon.send(frame(0))
    next(subscription)
    assert subscription.alive


def test_a_message_that_waits_is_a_sign_of_life(daemon, subscription):
    """A waiting message counts as a sign of life, so a slow reader reports no dead daemon."""
    daemon.send(frame(0), frame(1))
    next(subscription)
    assert subscription._connection.socket.poll(5000)
    subscription._tracker._last_message_s -= 60.0
    assert subscription.alive


def test_long_silence_is_death(daemon, subscription):
    """Three seconds without any message mean that the daemon is dead."""
    daemon.send(heartbeat(), frame(0))
    next(subscription)
    subscription._tracker._last_message_s -= 3.1
    assert not subscription.alive


def test_goodbye_is_death_at_once(daemon, subscription):
    """A daemon that announces its end counts as dead at once."""
    daemon.send(frame(0), heartbeat("stopped"))
    next(subscription)
    while subscription.heartbeat is None:
        assert subscription.receive(0.1) is None
    assert not subscription.alive
    assert subscription.heartbeat.state == "stopped"


def test_one_source_of_several_that_ends_is_not_the_end(daemon, subscription):
    """The daemon counts as gone only when every source has ended."""
    daemon.send(heartbeat("failed"), heartbeat(source="pond"), frame(0))
    next(subscription)
    assert subscription.alive
    states = {name: beat.state for name, beat in subscription.heartbeats.items()}
    assert states == {"mic": "failed", "pond": "running"}
    daemon.send(heartbeat("finished", source="pond", seq=1), frame(1))
    next(subscription)
    assert not subscription.alive


def test_a_missing_daemon_is_reported_after_the_timeout(daemon):
    """The error for a missing daemon names the endpoint and the timeout."""
    with (
        subscribe("tcp://127.0.0.1:1", timeout_s=0.05) as subscription,
        pytest.raises(UnavailableError, match=r"tcp://127\.0\.0\.1:1: nothing came within 0\.05 s"),
    ):
        next(subscription)


def test_a_silent_source_differs_from_a_dead_daemon(daemon):
    """If heartbeats arrive but no spectra, the error says so."""
    with daemon.subscribe() as subscription:
        daemon.send(heartbeat("starting"))
        assert subscription._connection.socket.poll(TIMEOUT_S * 1e3)
        subscription._timeout_s = 0.1
        with pytest.raises(UnavailableError, match="the daemon is starting but sent no spectrum"):
            next(subscription)


def test_the_reason_for_silence_is_reported(daemon):
    """The error for a waiting source gives the reason."""
    with daemon.subscribe() as subscription:
        daemon.send(heartbeat("waiting", waiting_for="no audio input"))
        assert subscription._connection.socket.poll(TIMEOUT_S * 1e3)
        subscription._timeout_s = 0.1
        with pytest.raises(UnavailableError, match=r"is waiting \(no audio input\) but sent no"):
            next(subscription)


def test_closing_inside_the_loop_ends_it(daemon, subscription):
    """Iteration over a closed subscription stops, and a second close is no error."""
    daemon.send(frame(0), frame(1))
    for received in subscription:
        assert received.header.seq == 0
        subscription.close()
    subscription.close()


def test_a_loop_that_is_left_leaves_no_socket(daemon):
    """A subscription without references closes itself without a warning."""
    subscription = daemon.subscribe()
    daemon.send(frame(0))
    socket = subscription._connection.socket
    for _ in subscription:
        break
    del subscription
    assert socket.closed


async def _turns_of_others(frames, n_frames):
    """Read frames; return how often another task ran between the first and the last."""
    turns = []

    async def other():
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(n_frames):
        assert await frames.receive(TIMEOUT_S) is not None
    task.cancel()
    return len(turns)


def test_other_tasks_have_their_turn_while_frames_wait(daemon):
    """A reader slower than its frames blocks neither the other tasks nor the end of the loop."""
    with daemon.subscribe() as subscription:
        daemon.send(*(frame(seq) for seq in range(8)))
        asynchronous = aio.AsyncSubscription(subscription._connection, timeout_s=TIMEOUT_S)
        assert asyncio.run(_turns_of_others(asynchronous, 8)) >= 7


def test_a_context_can_be_shared(daemon):
    """A context passed by the caller is used and left open."""
    with zmq.Context() as context:
        daemon.subscribe(context=context).close()
        assert not context.closed


def test_an_endpoint_that_cannot_be_connected_to_is_refused():
    """An invalid endpoint is refused with the value and the rule before a socket is opened."""
    with pytest.raises(ConfigError, match=r"endpoint='tcp://\*:5556': to connect, name a host"):
        subscribe("tcp://*:5556")


def test_every_name_is_there():
    """The package has exactly the names that it lists."""
    for name in dir(client):
        assert getattr(client, name) is not None
    with pytest.raises(AttributeError, match=r"module 'spectrod.client' has no attribute 'take'"):
        client.take  # noqa: B018 - asking is the test


@pytest.mark.slow
def test_the_client_loads_nothing_heavy():
    """The client imports neither OpenCL nor PortAudio nor Pillow."""
    code = (
        "import sys; from spectrod.client import *; "
        "print({'pyopencl', 'sounddevice', 'soundfile', 'PIL', 'scipy'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_the_largest_part_of_the_protocol_is_received(daemon, subscription):
    """The edges of 2^20 bands, the largest part of the protocol, arrive over a plain connection."""
    header = MetaHeader(
        seq=0,
        epoch=1,
        t_utc_ns=0,
        device="",
        channels=1,
        **SPECTRUM | {"shape": (1 << 20,)},
        bands="octave",
    )
    f = np.zeros(1 << 20)
    daemon.send(Meta("meta/mic/0/x/", header, f, np.stack([f, f])), frame(0))
    assert next(subscription).header.seq == 0
    assert subscription.meta["bands/mic/0/x/"].edges.shape == (2, 1 << 20)


@pytest.mark.slow
def test_a_larger_part_takes_no_memory_and_does_not_end_the_subscription(daemon, monkeypatch):
    """After a part that is too large, the subscription opens a new connection."""
    monkeypatch.setattr("spectrod.client.connection._SILENCE_LATER_S", 0.1)
    with daemon.subscribe() as subscription:
        daemon.send(frame(0))
        assert next(subscription).header.seq == 0
        daemon.send([b"spec/mic/0/dbfs/", bytes((16 << 20) + 65)], frame(1))
        again = threading.Thread(target=daemon.send_when_subscribed, args=(frame(2),))
        again.start()
        received = subscription.receive(TIMEOUT_S)
        again.join()
    assert (received.header.seq, received.missed) == (2, 1)


def test_a_pause_of_the_process_loses_nothing(daemon, monkeypatch):
    """After a pause that looks like silence, messages on their way still come."""
    paused_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + paused_s)
    monkeypatch.setattr("spectrod.client.connection.time", clock)
    with daemon.subscribe() as subscription:
        daemon.send(frame(0))
        assert next(subscription).header.seq == 0
        paused_s = 60.0
        assert subscription.silence_hint() == ""
        daemon.send(frame(1))
        received = subscription.receive(paused_s + TIMEOUT_S)
    assert (received.header.seq, received.missed) == (1, 0)
