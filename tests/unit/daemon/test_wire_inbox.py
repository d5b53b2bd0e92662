"""Requests that wait: in turns, and bounded."""

import pytest

from spectrod.daemon.control.inbox import A_PEER_MAX_BYTES, TOTAL_MAX_BYTES, Inbox


def drain(inbox):
    taken = []
    while inbox:
        taken.append(inbox.take())
    return taken


def test_peers_have_turns_and_each_its_own_order():
    """One that asks a lot keeps nobody waiting for more than one of its requests."""
    inbox = Inbox()
    for peer, n in ((b"a", 4), (b"b", 1), (b"c", 2)):
        for k in range(n):
            assert inbox.add(peer, (peer, k), 10) is None
    assert [b"%s%d" % one for one in drain(inbox)] == [
        b"a0", b"b0", b"c0", b"a1", b"c1", b"a2", b"a3",
    ]  # fmt: skip
    assert inbox.take() is None
    assert inbox.n_bytes == 0


@pytest.mark.parametrize(("n_bytes", "most"), [(1, (1 << 20) // 301), (65_536, 15)])
def test_requests_and_bytes_of_a_peer_are_bounded(n_bytes, most):
    """It is named when it has more, and others go on."""
    inbox = Inbox()
    inbox.add(b"other", "x", 10)
    for k in range(most):
        assert inbox.add(b"greedy", k, n_bytes) is None
    assert inbox.add(b"greedy", most, n_bytes) == b"greedy"
    inbox.forget(b"greedy")
    assert drain(inbox) == ["x"]
    assert inbox.n_bytes == 0


def test_of_all_peers_the_one_with_most_is_named():
    """The total of all peers is bounded, whatever their number."""
    inbox, named = Inbox(), []
    for k in range(2000):
        for _ in range(2 if k == 7 else 1):
            if greedy := inbox.add(b"%d" % k, k, 60_000):
                inbox.forget(greedy)
                named.append(greedy)
        assert inbox.n_bytes <= TOTAL_MAX_BYTES
    assert named[0] == b"7"
    assert inbox.n_bytes > A_PEER_MAX_BYTES
