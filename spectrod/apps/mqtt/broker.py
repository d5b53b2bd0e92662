"""Connection to an MQTT broker that may be away: messages wait, the oldest are dropped."""

import logging
import ssl
import struct
import sys
import threading
import time
from collections import deque
from typing import Any

from paho.mqtt.client import (
    CONNACK,
    PINGRESP,
    PUBACK,
    PUBLISH,
    SUBACK,
    UNSUBACK,
    Client,
    ConnectFlags,
    DisconnectFlags,
    MQTTMessage,
    MQTTMessageInfo,
)
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from spectrod.apps.mqtt.address import BrokerAddress
from spectrod.apps.mqtt.mqtt_topics import Publication
from spectrod.client.bounded_dict import BoundedDict
from spectrod.lib.drop_oldest_queue import DropOldestQueue
from spectrod.lib.errors import ConfigError
from spectrod.lib.rate_limit import TokenBucket
from spectrod.lib.regular_files import open_regular

_KEEPALIVE_S = 20
_CONNECT_TIMEOUT_S = 5.0
_BACKOFF_S = (1, 60)
_UNACKNOWLEDGED_MAX = 20
_POLL_S = 0.02
_LINES_PER_S, _LINES = 1 / 60, 10
_PIECE_BYTES = 4096
_STATES_MAX = 65_536
_STATES_MAX_BYTES = 32 << 20
PACKET_MAX_BYTES = 1024
"""Longest packet of a broker: it has nothing to say to a client that has asked for nothing."""
ANSWER_MAX_BYTES = 1 << 20
"""Longest message of a broker that was asked for one; a longer one ends the connection."""
_ANSWERS_MAX_BYTES = 16 << 20
_STATE_BYTES = 500  # its topic, and entries in two dictionaries
_EXPECTED = (CONNACK, PUBACK, PINGRESP)
_ANSWERS = (PUBLISH, SUBACK, UNSUBACK)
_KIND = 0xF0
_QOS = 0x06

_log = logging.getLogger(__name__)


class Broker:
    """A connection to a broker; its own thread connects and reconnects.

    Bounded: ``queue_messages`` messages of up to 4 KiB wait while the broker is away or slow, a
    longer one in the place of several; a further one replaces the oldest, which is counted in
    ``dropped``. The newest message of each state topic waits in addition and is sent first, of
    65 536 topics and 32 MiB. 20 more may be in flight; messages that the broker has not
    acknowledged when the connection is lost are resent, or with a qos of 0 counted as dropped.

    One thread calls all methods; only ``stop`` waits.

    Parameters
    ----------
    address : BrokerAddress
    will : Publication
        Message that the broker sends when the bridge is gone.
    client_id : str
        The broker closes an older connection with the same id.
    qos : {0, 1}
        At most once, or at least once.
    queue_messages : int
    keepalive_s : int
        Time without a message after which the broker is asked whether it is there [s].

    Raises
    ------
    ConfigError
        If the certificates cannot be read.
    """

    def __init__(
        self,
        address: BrokerAddress,
        will: Publication,
        *,
        client_id: str,
        qos: int = 1,
        queue_messages: int = 1000,
        keepalive_s: int = _KEEPALIVE_S,
    ) -> None:
        self._keepalive_s = keepalive_s
        self._address = address
        self._qos = qos
        self._queue = DropOldestQueue[Publication](queue_messages, _n_pieces)
        self._states = BoundedDict[Publication](_STATES_MAX, _STATES_MAX_BYTES)
        self._sent: deque[MQTTMessageInfo] = deque()
        self._connections = self._connections_seen = self._connections_caught_up = 0
        self._is_connected = False
        self._is_complaining = False
        # A broker may end each connection as soon as it is made.
        self._lines = TokenBucket(_LINES_PER_S, _LINES, time.monotonic())
        self._lost = 0
        self._answers_lock = threading.Lock()
        self._asked: set[str] = set()
        self._answers: dict[str, bytes] = {}
        client = _Client(CallbackAPIVersion.VERSION2, client_id)
        client.connect_timeout = _CONNECT_TIMEOUT_S
        client.reconnect_delay_set(*_BACKOFF_S)
        client.will_set(will.topic, will.payload, qos=1, retain=will.retain)
        if address.user is not None:
            client.username_pw_set(address.user, address.password)
        if address.tls:
            client.tls_set_context(_tls_context(address.ca_file))
        client.on_connect = self._on_connect
        client.on_connect_fail = self._on_connect_fail
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        self._client = client

    def start(self) -> None:
        """Start to connect, and reconnect without end."""
        self._client.connect_async(self._address.host, self._address.port, self._keepalive_s)
        self._client.loop_start()

    @property
    def connected(self) -> bool:
        """Whether the connection is open, as far as known."""
        return self._is_connected

    @property
    def dropped(self) -> int:
        """Messages dropped so far: from a full queue, or lost with a connection."""
        return self._queue.dropped + self._lost

    def take_connected(self) -> bool:
        """Return whether there was a new connection since the last call; it needs all states."""
        connections, self._connections_seen = self._connections_seen, self._connections
        return connections != self._connections_seen

    def set_state(self, publication: Publication) -> None:
        """Set the current state of a topic, replacing the previous one; ``pump`` sends it.

        What is not retained waits beside the state of its topic, and is replaced by such alone:
        both are sent, in the order of the calls.
        """
        name = _name(publication)
        n_before = len(self._states) + (name not in self._states)
        self._states.put(name, publication, len(publication.payload) + _STATE_BYTES)
        self._lost += n_before - len(self._states)

    def publish(self, publication: Publication) -> None:
        """Queue a message; ``pump`` sends it."""
        had_dropped = self._queue.dropped
        self._queue.put(publication)
        if self._queue.dropped and not had_dropped:
            _log.warning(
                "%s: %d messages wait already, the oldest are dropped",
                *(self._address.text, self._queue.limit),
            )

    def ask(self, topic: str) -> None:
        """Ask for the message that the broker keeps of a topic; a new connection forgets it.

        A broker that keeps none says nothing. Of answers that nobody takes 16 MiB wait.
        """
        with self._answers_lock:
            self._asked.add(topic)
        self._client.answer_max_bytes = ANSWER_MAX_BYTES
        self._client.subscribe(topic, qos=0)

    def answers(self) -> dict[str, bytes]:
        """Return the messages that have come since the last call, by their topics."""
        with self._answers_lock:
            answers, self._answers = self._answers, {}
        return answers

    def end_question(self, topic: str) -> None:
        """Take no answer any more, and no message of others in this topic."""
        with self._answers_lock:
            self._asked.discard(topic)
            self._answers.pop(topic, None)
        self._client.unsubscribe(topic)

    def pump(self) -> None:
        """Send the messages that may be sent now."""
        connections = self._connections
        while self._sent and self._is_done(self._sent[0]):
            self._sent.popleft()
        if not self._sent:
            self._connections_caught_up = connections
        if self._connections_caught_up != self._connections:
            # paho resends the messages of the last connection after it has reported the new one: a
            # newer state that is sent now could arrive before an older one, which would stay.
            return
        while self._waiting and self.connected and len(self._sent) < _UNACKNOWLEDGED_MAX:
            if self._states:
                publication = self._states[next(iter(self._states))]
                self._states.discard(_name(publication))
                self._send(publication)
            elif (waiting := self._queue.take()) is not None:
                self._send(waiting)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Send waiting messages for at most timeout_s, then disconnect; the rest is dropped."""
        deadline_s = time.monotonic() + timeout_s
        self.pump()
        while self.connected and (self._waiting or self._sent) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)  # the client's thread has no wake-up to wait on
            self.pump()
        left = self._waiting + len(self._sent)
        if left:
            _log.warning("%s: %d messages were not sent", self._address.text, left)
        was_connected = self.connected
        self._client.disconnect()
        if was_connected:
            # Otherwise its thread may be resolving a name, which cannot be interrupted; it is a
            # daemon thread.
            self._client.loop_stop()
            # Otherwise it would be collected in a cycle with this object, its sockets before it can
            # close them.
            self._client.on_connect = self._client.on_connect_fail = None
            self._client.on_disconnect = self._client.on_message = None

    @property
    def _waiting(self) -> int:
        return len(self._states) + len(self._queue)

    def _send(self, publication: Publication) -> None:
        info = self._client.publish(
            publication.topic, publication.payload, self._qos, publication.retain
        )
        if info.rc == MQTTErrorCode.MQTT_ERR_NO_CONN and self._qos:
            # The connection was just lost. paho keeps the message for the next one, but would
            # report it as failed.
            info.rc = MQTTErrorCode.MQTT_ERR_SUCCESS
        self._sent.append(info)

    def _is_done(self, info: MQTTMessageInfo) -> bool:
        """Return whether a message is finished: sent or lost."""
        try:
            return info.is_published()
        except RuntimeError:  # not acknowledged, and lost with its connection
            self._lost += 1
            return True

    # All methods below run in the client's thread, which holds its own locks: they call no method
    # of the client.

    def _on_connect(
        self,
        _client: Client,
        _userdata: Any,
        _flags: ConnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._report_failure(f"refused the connection: {reason}")
            return
        self._is_complaining = False
        self._is_connected = True
        self._connections += 1
        if self._lines.take(time.monotonic()):
            _log.info("%s: connected", self._address.text)

    def _on_connect_fail(self, _client: Client, _userdata: Any) -> None:
        error = sys.exc_info()[1]  # paho calls this inside its except block
        self._report_failure(f"cannot be reached: {error}")

    def _on_disconnect(
        self,
        _client: Client,
        _userdata: Any,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        self._is_connected = False
        if reason.is_failure:
            why = str(reason)  # paho's word for a closed socket says nothing
            if why == "Unspecified error":
                why = "the broker or the network has closed it"
            self._report_failure(f"the connection is lost: {why}")

    def _on_message(self, _client: Client, _userdata: Any, message: MQTTMessage) -> None:
        with self._answers_lock:
            waiting = sum(map(len, self._answers.values()))
            has_room = waiting + len(message.payload) <= _ANSWERS_MAX_BYTES
            if message.retain and message.topic in self._asked and has_room:
                self._asked.discard(message.topic)
                self._answers[message.topic] = bytes(message.payload)

    def _report_failure(self, text: str) -> None:
        """Log the first of successive problems."""
        if not self._is_complaining and self._lines.take(time.monotonic()):
            _log.warning("%s: %s; trying again", self._address.text, text)
        self._is_complaining = True


class _Client(Client):
    """paho's client, which takes what a broker sends to a client with few subscriptions or none.

    paho bounds neither a packet, whose 256 MB it keeps, nor the messages that a broker sends
    unasked, and a packet that is too short ends its thread with an exception. All that is a broken
    protocol: the connection ends, and is made again later.

    Attributes
    ----------
    answer_max_bytes : int
        Longest message of a broker [bytes]; 0: it was asked for none.
    """

    answer_max_bytes = 0

    def _sock_recv(self, bufsize: int) -> bytes:
        is_message = self._in_packet["command"] & _KIND == PUBLISH
        if bufsize > max(PACKET_MAX_BYTES, self.answer_max_bytes if is_message else 0):
            raise ConnectionAbortedError(f"a packet of {bufsize} bytes")
        return bytes(super()._sock_recv(bufsize))

    def _packet_handle(self) -> MQTTErrorCode:
        command = self._in_packet["command"]
        kind = command & _KIND
        expected = (*_EXPECTED, *_ANSWERS) if self.answer_max_bytes else _EXPECTED
        is_to_be_acknowledged = kind == PUBLISH and command & _QOS
        is_second = kind == CONNACK and self.is_connected()
        if kind not in expected or is_to_be_acknowledged or is_second:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        try:
            return super()._packet_handle()
        except (struct.error, IndexError, KeyError, ValueError):
            return MQTTErrorCode.MQTT_ERR_PROTOCOL


def _name(publication: Publication) -> str:
    # No topic of a message has a #.
    return publication.topic if publication.retain else f"{publication.topic}#"


def _n_pieces(publication: Publication) -> int:
    """Return the number of messages of 4 KiB that a message counts as."""
    return 1 + len(publication.payload) // _PIECE_BYTES


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        if ca_file is not None:
            open_regular(ca_file).close()  # of a FIFO OpenSSL would wait for a writer
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigError(f"{ca_file}: {error.strerror}") from error
