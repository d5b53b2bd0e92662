"""What a publisher's socket sends, to subscribers of libzmq."""

import zmq

from spectrod.daemon.publisher.xpub import open_xpub, send_parts

TIMEOUT_MS = 10_000


def test_a_subscriber_that_has_read_all_is_never_taken_for_full(tmp_path):
    """A short queue drops nothing for one who reads message after message, however fast."""
    endpoint = f"ipc://{tmp_path}/x.ipc"
    with zmq.Context() as context:
        publisher = open_xpub(context, 4)
        subscriber = context.socket(zmq.SUB)
        with publisher, subscriber:
            publisher.bind(endpoint)
            subscriber.subscribe(b"")
            subscriber.connect(endpoint)
            assert publisher.recv() == b"\x01"
            for k in range(200):
                send_parts(publisher, [b"topic", b"%d" % k])
                assert subscriber.poll(TIMEOUT_MS), k
                assert subscriber.recv_multipart() == [b"topic", b"%d" % k]
