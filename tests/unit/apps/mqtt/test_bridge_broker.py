"""The bridge's connection to a broker that breaks the protocol: bounded, one line, and again."""

import socket
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("paho.mqtt")

from spectrod.apps.mqtt.address import parse_broker
from spectrod.apps.mqtt.broker import ANSWER_MAX_BYTES, PACKET_MAX_BYTES, Broker
from spectrod.apps.mqtt.mqtt_topics import Publication

TIMEOUT_S = 30.0
CONNACK = b"\x20\x02\0\0"
WILL = Publication("spectrod/box/status", b"offline", retain=True)


class Endpoint:
    """A broker that sends some bytes to each client, and sees when the connection ends."""

    def __init__(self, *answers):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(TIMEOUT_S)
        self.port = self._server.getsockname()[1]
        self._answers = answers
        self.answered = [threading.Event() for _ in answers]
        self.ended = [threading.Event() for _ in answers]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        for answer, answered, ended in zip(self._answers, self.answered, self.ended, strict=True):
            client, _ = self._server.accept()
            with client:
                client.settimeout(TIMEOUT_S)
                client.recv(4096)
                try:
                    client.sendall(answer)
                    answered.set()
                    while client.recv(4096):
                        pass
                except ConnectionError:
                    pass
                ended.set()

    def close(self):
        self._thread.join(TIMEOUT_S)
        self._server.close()


@pytest.fixture
def serve():
    made = []

    def start(*answers):
        made.append(Endpoint(*answers))
        return made[-1]

    yield start
    for one in made:
        one.close()


def connect(port, **options):
    return Broker(parse_broker(f"mqtt://127.0.0.1:{port}"), WILL, client_id="box", **options)


BROKEN = {
    "a packet of 256 MB": b"\x30\xff\xff\xff\x7f" + bytes(1000),
    "a packet of 2 KiB": b"\x40\x81\x10",
    "a message that nobody subscribed to": b"\x30\x05\0\1a12",
    "a message to be kept until it is released": b"\x34\x07\0\1a\0\x0112",
    "a ping of the broker": b"\xc0\0",
    "a second acceptance": CONNACK,
    "an acknowledgement without a number": b"\x40\0",
    "an acknowledgement of a byte": b"\x40\x01a",
    "a length of five bytes": b"\x40\xff\xff\xff\xff\x01",
    "no packet": b"\0\0",
    "a subscription's answer": b"\x90\x03\0\1\0",
}


@pytest.mark.parametrize("packet", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_broken_packet_ends_the_connection(packet, is_accepted, serve, caplog):
    """What a broker must not send ends the connection, which is made again; no thread ends."""
    if not is_accepted and packet == CONNACK:
        packet = b"\x20\x01\0"
    endpoint = serve((CONNACK if is_accepted else b"") + packet, CONNACK)
    broker = connect(endpoint.port)
    broker.start()
    assert endpoint.ended[0].wait(TIMEOUT_S)
    assert endpoint.answered[1].wait(TIMEOUT_S)
    broker.stop()
    assert endpoint.ended[1].wait(TIMEOUT_S)
    assert "Traceback" not in caplog.text


def test_a_broker_that_ends_each_connection_is_some_lines(caplog):
    """Lines of connections that are made and lost are bounded by time."""
    caplog.set_level("INFO")
    broker = connect(1)
    for _ in range(100):
        broker._on_connect(None, None, None, _Reason(is_failure=False), None)
        broker._on_disconnect(None, None, None, _Reason(is_failure=True), None)
    assert 2 <= len(caplog.records) <= 11


class _Reason:
    def __init__(self, *, is_failure):
        self.is_failure = is_failure


def test_the_queue_is_bounded_by_bytes():
    """A long message takes the place of several of up to 4 KiB."""
    broker = connect(1, queue_messages=10)
    broker.publish(Publication("a", b"x" * 40_000))
    assert broker.dropped == 0
    broker.publish(Publication("b", b""))
    assert broker.dropped == 1
    for _ in range(10):
        broker.publish(Publication("c", b"x" * 4000))
    assert broker.dropped == 2


def test_states_are_bounded_and_the_newest_kept():
    """While the broker is away, the oldest of more than 65 536 states are dropped and counted."""
    broker = connect(1)
    names = [str(n) for n in range(65_536 + 3)]
    for name in names:
        broker.set_state(Publication(name, b"x", retain=True))
    assert list(broker._states) == names[3:]
    assert broker.dropped == 3
    broker.set_state(Publication("4", b"y", retain=True))
    assert list(broker._states) == ["3", *names[5:], "4"]
    assert broker.dropped == 3


def test_what_is_not_kept_waits_beside_the_state_of_its_topic():
    """Both are sent in their order; each replaces only what is of its kind."""
    broker = connect(1)
    state, news = Publication("a", b"1", retain=True), Publication("a", b"2")
    for one in (news, state, Publication("b", b"", retain=True), replace(state, payload=b"3")):
        broker.set_state(one)
    assert [one.payload for one in broker._states.values()] == [b"2", b"", b"3"]
    broker.set_state(replace(news, payload=b"4"))
    assert [one.payload for one in broker._states.values()] == [b"", b"3", b"4"]
    assert broker.dropped == 0


def test_a_packet_of_the_longest_length_is_read(serve):
    """Up to the bound the length alone ends no connection."""
    broker = connect(1)
    client = broker._client
    ours, theirs = socket.socketpair()
    with ours, theirs:
        client._sock = ours
        theirs.sendall(bytes(PACKET_MAX_BYTES))
        assert len(client._sock_recv(PACKET_MAX_BYTES)) == PACKET_MAX_BYTES
        with pytest.raises(ConnectionAbortedError, match="a packet of 1025 bytes"):
            client._sock_recv(PACKET_MAX_BYTES + 1)
        client._sock = None


# ---- what the bridge asks for


def message(topic, payload, *, retain=True, qos=0):
    """Return a message of a broker, as it is sent."""
    number = b"\0\1" if qos else b""
    content = len(topic).to_bytes(2) + topic.encode() + number + payload
    n, length = len(content), b""
    while n >= 0x80:
        length, n = length + bytes([n & 0x7F | 0x80]), n >> 7
    return bytes([0x30 | qos << 1 | retain]) + length + bytes([n]) + content


def answered(serve, *packets):
    """Return the answers to a question, after a broker has sent some packets and the last one."""
    last = message("last", b"1")
    endpoint = serve(CONNACK + b"".join(packets) + last)
    broker = connect(endpoint.port)
    broker.ask("mine")
    broker.ask("last")
    broker.start()
    answers = {}
    deadline_s = time.monotonic() + TIMEOUT_S
    while "last" not in answers:
        assert time.monotonic() < deadline_s
        answers |= broker.answers()
    broker.stop()
    assert endpoint.ended[0].wait(TIMEOUT_S)
    del answers["last"]
    return answers


def test_what_a_broker_keeps_is_an_answer(serve):
    """A long one as well, the first of several, and nothing that is not kept or not asked for."""
    kept = b"x" * (ANSWER_MAX_BYTES - 6)
    others = [message("mine", b"news", retain=False), message("others", b"kept")]
    acknowledged = b"\x90\x03\0\1\0"
    assert answered(serve, acknowledged, *others) == {}
    assert answered(serve, acknowledged, *others, message("mine", kept)) == {"mine": kept}
    assert answered(serve, message("mine", b"1"), message("mine", b"2")) == {"mine": b"1"}
    refused = b"\x90\x03\0\1\x80"
    assert answered(serve, refused, b"\xb0\x02\0\1") == {}


def test_answers_that_nobody_takes_are_bounded():
    """The rest counts as not kept."""
    broker = connect(1)
    for k in range(20):
        broker.ask(str(k))
        kept = SimpleNamespace(topic=str(k), payload=bytes(ANSWER_MAX_BYTES), retain=True)
        broker._on_message(None, None, kept)
    assert list(broker.answers()) == [str(k) for k in range(16)]
    broker._on_message(None, None, kept)
    assert list(broker.answers()) == ["19"]
    broker._on_message(None, None, kept)
    broker.ask("a")
    broker.end_question("a")
    broker._on_message(None, None, SimpleNamespace(topic="a", payload=b"1", retain=True))
    assert broker.answers() == {}


WRONG_ANSWERS = {
    "longer than any device": message("mine", bytes(ANSWER_MAX_BYTES)),
    "to be acknowledged": message("mine", b"1", qos=1),
    "to be released": message("mine", b"1", qos=2),
    "a topic that is no text": b"\x31\x05\0\1\xff12",
    "a topic longer than the message": b"\x31\x05\0\x09a12",
    "a subscription's answer of nothing": b"\x90\x01\0",
    "a subscription's answer without a meaning": b"\x90\x03\0\1\x7f",
    "the end of a subscription without a number": b"\xb0\0",
    "a long acknowledgement": b"\x40\x81\x10",
}


@pytest.mark.parametrize("packet", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_a_broken_answer_ends_the_connection(packet, serve, caplog):
    """No thread ends, and nothing is an answer."""
    endpoint = serve(CONNACK + packet, CONNACK)
    broker = connect(endpoint.port)
    broker.ask("mine")
    broker.start()
    assert endpoint.ended[0].wait(TIMEOUT_S)
    assert endpoint.answered[1].wait(TIMEOUT_S)
    broker.stop()
    assert endpoint.ended[1].wait(TIMEOUT_S)
    assert broker.answers() == {}
    assert "Traceback" not in caplog.text
