"""Plain float32 vectors without topic and header, for programs that read nothing else."""

from collections.abc import Sequence

import zmq

from spectrod.wire.feed import Outgoing
from spectrod.wire.upstream import Upstream


class Raw32:
    """One endpoint's socket, which sends the values of one topic: one vector a message, one part.

    Subscribers must subscribe to everything, the empty prefix. Another one would be compared with
    the bytes of a spectrum's first value; nothing is computed for its sake.

    Parameters
    ----------
    socket : zmq.Socket
        From ``open_xpub``, bound.
    topic : str
        Whose values to send.

    Attributes
    ----------
    is_wanted : bool
        Whether somebody has subscribed.
    """

    def __init__(self, socket: zmq.SyncSocket, topic: str) -> None:
        self.socket = socket
        self.topic = topic
        self.is_wanted = False
        self._encoded = topic.encode()

    def read_requests(self, upstream: Upstream) -> bool:
        """Take what subscribers have sent, some of it; say whether ``is_wanted`` has changed."""
        before = self.is_wanted
        for request in upstream.take(self.socket):
            # libzmq reports every subscription, but of ends that of the last one only.
            if request in (b"\x01", b"\x00"):
                self.is_wanted = request == b"\x01"
        return self.is_wanted != before

    def covers(self, topics: Sequence[bytes]) -> bool:
        """Say whether somebody wants one of these topics."""
        return self.is_wanted and self._encoded in topics

    def send(self, message: Outgoing) -> None:
        """Send a message's values if it is of the topic."""
        if message.topic == self.topic:
            self.socket.send(message.parts[2])
