"""Plain float32 vectors without topic and header, for programs that cannot parse messages."""

from collections.abc import Sequence

import zmq

from spectrod.daemon.publisher.source_publisher import Outgoing
from spectrod.daemon.publisher.upstream import Upstream
from spectrod.daemon.publisher.xpub import send_parts


class Raw32:
    """Socket of one endpoint that sends the values of one topic: one vector per message, one part.

    Subscribers must use the empty prefix. Any other prefix would be compared with the bytes of a
    spectrum's first value; it does not count as demand.

    Parameters
    ----------
    socket : zmq.Socket
        From ``open_xpub``, bound.
    topic : str
        Topic of the values.

    Attributes
    ----------
    is_wanted : bool
        Whether there is a subscriber.
    """

    def __init__(self, socket: zmq.SyncSocket, topic: str) -> None:
        self.socket = socket
        self.topic = topic
        self.is_wanted = False
        self._encoded = topic.encode()

    def read_requests(self, upstream: Upstream) -> bool:
        """Process some of the subscriptions; return whether ``is_wanted`` has changed."""
        before = self.is_wanted
        for request in upstream.take(self.socket):
            # libzmq reports every subscription, but only the last unsubscription.
            if request in (b"\x01", b"\x00"):
                self.is_wanted = request == b"\x01"
        return self.is_wanted != before

    def covers(self, topics: Sequence[bytes]) -> bool:
        """Return whether there is a subscriber and its topic is one of these."""
        return self.is_wanted and self._encoded in topics

    def send(self, message: Outgoing) -> None:
        """Send a message's values if it has the topic."""
        if message.topic == self.topic:
            send_parts(self.socket, message.parts[2:3])
