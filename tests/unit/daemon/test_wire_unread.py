"""How much may wait for peers that do not read, and when there is room for one more reply."""

import pytest

from spectrod.daemon.control.dispatch import Answer
from spectrod.daemon.control.unread import (
    A_PEER_MAX_BYTES,
    REPLIES_A_PEER,
    RESERVED_BYTES,
    RESERVED_PEERS,
    TOTAL_MAX_BYTES,
    UnreadReplies,
)
from spectrod.wire.requests import failed

BIG = 4 << 20


def fill(unread, peer, n_bytes, most=1000):
    """Send replies of a size to a peer until there is no room; return the held views."""
    held = []
    while unread.has_room(peer, n_bytes) and len(held) < most:
        held.append(unread.hold(peer, b"x", n_bytes))
    return held


@pytest.mark.parametrize(
    ("n_bytes", "n_replies"),
    [
        (1, REPLIES_A_PEER),
        (60_001, A_PEER_MAX_BYTES // 60_001),
        (BIG, 2),
        (A_PEER_MAX_BYTES + 1, 1),
        (TOTAL_MAX_BYTES + 1, 0),
    ],
)
def test_replies_and_bytes_of_a_peer_are_bounded(n_bytes, n_replies):
    """One more waits until one of its own has gone; others have room."""
    unread = UnreadReplies()
    held = fill(unread, b"a", n_bytes)
    assert len(held) == n_replies
    assert unread.n_bytes == n_replies * n_bytes
    assert unread.has_room(b"b", 1)
    if held:
        held.pop()
        assert unread.has_room(b"a", n_bytes)


def test_a_reply_is_held_by_the_last_view_of_it():
    """As ZeroMQ keeps one of its own behind ours."""
    unread = UnreadReplies()
    held = [unread.hold(b"a", b"1", BIG), unread.hold(b"a", b"2", BIG)]
    assert held == [b"1", b"2"]
    kept = held[0]
    held.clear()
    assert unread.n_bytes == BIG
    kept_too = unread.hold(b"a", b"3", BIG)
    assert not unread.has_room(b"a", BIG)
    del kept
    assert unread.has_room(b"a", BIG)
    assert kept_too == b"3"


@pytest.mark.parametrize("n_bytes", [10_000, BIG])
def test_all_peers_together_are_bounded(n_bytes):
    """For any number of connections with unread replies, including reserved bytes."""
    unread = UnreadReplies()
    held = []
    for k in range(2000):
        held += fill(unread, b"%d" % k, n_bytes)
    bound = TOTAL_MAX_BYTES + RESERVED_PEERS * RESERVED_BYTES
    assert TOTAL_MAX_BYTES - n_bytes < unread.n_bytes <= bound
    del held
    assert unread.n_bytes == 0
    assert not unread._held


def test_a_peer_that_reads_has_room_though_others_do_not_read():
    """Peers that fill the total take no reserved bytes."""
    unread = UnreadReplies()
    held = [view for k in range(20) for view in fill(unread, b"deaf %d" % k, BIG)]
    assert not unread.has_room(b"reader", BIG)
    assert not unread.has_room(b"reader", RESERVED_BYTES + 1)
    assert unread.has_room(b"reader", RESERVED_BYTES)
    held.clear()
    assert unread.has_room(b"reader", BIG)


def test_a_watcher_is_called_when_a_reply_is_released():
    """And looks again: the answer is made then, not kept."""
    unread = UnreadReplies()
    held = fill(unread, b"a", BIG)
    late = failed(1, "too_many", "read them first")
    made, reported = Answer("made"), []
    later = unread.once_read(b"a", BIG, lambda: made, late)
    assert later.otherwise is late
    end_watch = later.watch(lambda: reported.append("gone"))
    assert later.look() is None
    held.pop()
    assert reported == ["gone"]
    assert later.look() is made
    end_watch()
    held.pop()
    assert reported == ["gone"]
