"""An MQTT broker that may be away: what is published waits, and the oldest goes first."""

import logging
import ssl
import sys
import time
from collections import deque
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessageInfo
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from spectrod.bridge.address import BrokerAddress
from spectrod.bridge.topics import Publication
from spectrod.drop_oldest_queue import DropOldestQueue
from spectrod.errors import ConfigError

_KEEPALIVE_S = 20
_CONNECT_TIMEOUT_S = 5.0
_BACKOFF_S = (1, 60)
_UNACKNOWLEDGED_MAX = 20
_POLL_S = 0.02

_log = logging.getLogger(__name__)


class Broker:
    """A connection to a broker that is made, kept and made again by a thread of its own.

    Bounded: ``queue_messages`` wait here while the broker is away or slow; a further one takes the
    place of the oldest, which is counted in ``dropped``. Beside them waits what is so now, the
    newest message of each such topic, which goes first. 20 more may be on their way; those that the
    broker has not acknowledged when it goes are sent again, or with a qos of 0 counted as dropped.

    All methods are to be called by one thread; none waits but ``stop``.

    Parameters
    ----------
    address : BrokerAddress
    will : Publication
        What the broker says in our place once we are gone.
    client_id : str
        The broker closes an older connection of the same.
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
        self._queue = DropOldestQueue[Publication](queue_messages)
        self._states: dict[str, Publication] = {}
        self._sent: deque[MQTTMessageInfo] = deque()
        self._connections = self._connections_seen = self._connections_caught_up = 0
        self._is_connected = False
        self._is_complaining = False
        self._lost = 0
        client = Client(CallbackAPIVersion.VERSION2, client_id)
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
        self._client = client

    def start(self) -> None:
        """Begin to connect, and go on for ever."""
        self._client.connect_async(self._address.host, self._address.port, self._keepalive_s)
        self._client.loop_start()

    @property
    def connected(self) -> bool:
        """Whether the broker has let us in and is there, as far as is known."""
        return self._is_connected

    @property
    def dropped(self) -> int:
        """Messages dropped so far: they had to make room, or were lost with a connection."""
        return self._queue.dropped + self._lost

    def take_connected(self) -> bool:
        """Whether there is a new connection since the last call; the broker may have forgotten."""
        connections, self._connections_seen = self._connections_seen, self._connections
        return connections != self._connections_seen

    def tell(self, publication: Publication) -> None:
        """Have it told what is so now, in the place of what was so before; ``pump`` sends it."""
        self._states.pop(publication.topic, None)
        self._states[publication.topic] = publication

    def publish(self, publication: Publication) -> None:
        """Queue a message about something that was; ``pump`` sends it."""
        had_dropped = self._queue.dropped
        self._queue.put(publication)
        if self._queue.dropped and not had_dropped:
            _log.warning(
                "%s: %d messages wait already, the oldest are dropped",
                *(self._address.text, self._queue.limit),
            )

    def pump(self) -> None:
        """Send what may be sent now."""
        connections = self._connections
        while self._sent and self._is_done(self._sent[0]):
            self._sent.popleft()
        if not self._sent:
            self._connections_caught_up = connections
        if self._connections_caught_up != self._connections:
            # paho sends what the last connection has lost after it has told of the new one: sent
            # now, a newer state could come before an older one, which would stay.
            return
        while self._waiting and self.connected and len(self._sent) < _UNACKNOWLEDGED_MAX:
            if self._states:
                self._send(self._states.pop(next(iter(self._states))))
            elif (publication := self._queue.take()) is not None:
                self._send(publication)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Send what waits, for at most so long, and say goodbye; what is left is dropped."""
        deadline_s = time.monotonic() + timeout_s
        self.pump()
        while self.connected and (self._waiting or self._sent) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)  # the client's thread tells nobody what it has heard
            self.pump()
        left = self._waiting + len(self._sent)
        if left:
            _log.warning("%s: %d messages were not sent", self._address.text, left)
        was_connected = self.connected
        self._client.disconnect()
        if was_connected:
            # Else its thread may be looking up a name, which nothing ends; it is a daemon thread.
            self._client.loop_stop()
            # Else it would be collected in a circle with us, its sockets before it can close them.
            self._client.on_connect = self._client.on_connect_fail = None
            self._client.on_disconnect = None

    @property
    def _waiting(self) -> int:
        return len(self._states) + len(self._queue)

    def _send(self, publication: Publication) -> None:
        info = self._client.publish(
            publication.topic, publication.payload, self._qos, publication.retain
        )
        if info.rc == MQTTErrorCode.MQTT_ERR_NO_CONN and self._qos:
            # The connection has just been lost. paho has kept it for the next one, but would go on
            # to call it failed.
            info.rc = MQTTErrorCode.MQTT_ERR_SUCCESS
        self._sent.append(info)

    def _is_done(self, info: MQTTMessageInfo) -> bool:
        """Whether there is nothing more to be done for a message, be it lost."""
        try:
            return info.is_published()
        except RuntimeError:  # not acknowledged, and lost with its connection
            self._lost += 1
            return True

    # All below runs in the client's thread, which holds locks of its own meanwhile: no method of
    # the client is called here.

    def _on_connect(
        self,
        _client: Client,
        _userdata: Any,
        _flags: ConnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._complain(f"refuses us: {reason}")
            return
        self._is_complaining = False
        self._is_connected = True
        self._connections += 1
        _log.info("%s: connected", self._address.text)

    def _on_connect_fail(self, _client: Client, _userdata: Any) -> None:
        error = sys.exc_info()[1]  # paho calls this while it handles it
        self._complain(f"cannot be reached: {error}")

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
            self._complain(f"the connection is lost: {reason}")

    def _complain(self, text: str) -> None:
        """Say once what is wrong, until it is right again."""
        if not self._is_complaining:
            _log.warning("%s: %s; trying again", self._address.text, text)
        self._is_complaining = True


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigError(f"{ca_file}: {error.strerror}") from error
