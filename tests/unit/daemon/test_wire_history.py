"""The history of sent messages."""

import pytest

from spectrod.daemon.publisher.sent_messages import History, Stored

ONE = "spec/mic/0/dbfs/"
OTHER = "spec/mic/1/dbfs/"


def make(seq, size=1000):
    return Stored(seq, (b"topic", b"header", bytes(size)))


def history_of(n, limit_messages=4):
    history = History(limit_messages * make(0).size_bytes, epoch=7)
    for seq in range(n):
        history.add(ONE, make(seq))
    return history


def seqs(messages):
    return [message.seq for message in messages]


def test_messages_come_back_from_a_number_on():
    """Oldest first, at most as many as asked for."""
    history = history_of(4)
    assert seqs(history.since(ONE, 0)) == [0, 1, 2, 3]
    assert seqs(history.since(ONE, 2)) == [2, 3]
    assert seqs(history.since(ONE, 1, limit=2)) == [1, 2]
    assert seqs(history.since(ONE, 4)) == []
    assert seqs(history.since(OTHER, 0)) == []


def test_another_epochs_numbers_find_nothing():
    """They were given by another start of the daemon."""
    history = history_of(2)
    assert seqs(history.since(ONE, 0, epoch=7)) == [0, 1]
    assert seqs(history.since(ONE, 0, epoch=8)) == []


def test_the_oldest_go_first_whatever_their_topic():
    """The bound is one for all, so a busy topic may push out a quiet one."""
    history = history_of(3)
    history.add(OTHER, make(0))
    history.add(OTHER, make(1))
    assert seqs(history.since(ONE, 0)) == [1, 2]
    for seq in range(2, 5):
        history.add(OTHER, make(seq))
    assert seqs(history.since(ONE, 0)) == []
    assert seqs(history.since(OTHER, 0)) == [1, 2, 3, 4]
    assert history.newest(ONE).seq == 2


@pytest.mark.parametrize("n", [0, 1, 100, 1001])
def test_the_size_is_that_of_the_stored_messages(n):
    """And never above the limit."""
    history = history_of(n, limit_messages=7)
    assert history.size_bytes == sum(m.size_bytes for m in history.since(ONE, 0))
    assert history.size_bytes == min(n, 7) * make(0).size_bytes
    assert history.size_bytes <= history.limit_bytes


def test_nothing_but_the_newest_is_kept_where_nothing_may_be():
    """Also of a message that is larger than all may be; smaller ones before it stay."""
    history = History(0, epoch=7)
    history.add(ONE, make(3))
    assert (history.since(ONE, 0), history.newest(ONE).seq) == ([], 3)
    history = history_of(2)
    history.add(ONE, make(2, size=100_000))
    assert seqs(history.since(ONE, 0)) == [0, 1]
    assert history.newest(ONE).seq == 2


def test_a_forgotten_topic_is_gone_and_its_room_is_free():
    """Others' messages stay in their order."""
    history = history_of(2)
    history.add(OTHER, make(0))
    history.add(ONE, make(2))
    history.forget(ONE)
    history.forget("spec/never/0/dbfs/")
    assert (history.newest(ONE), history.topics()) == (None, [OTHER])
    assert history.size_bytes == make(0).size_bytes
    for seq in range(1, 5):
        history.add(OTHER, make(seq))
    assert seqs(history.since(OTHER, 0)) == [1, 2, 3, 4]


def test_a_watch_is_called_for_each_message_until_it_ends():
    """Only for that topic; the callback may read and watch the history itself."""
    history = history_of(0)
    received = []
    end = history.watch(
        ONE, lambda message: received.append((message.seq, history.newest(ONE).seq))
    )
    other = history.watch(ONE, lambda _: other())
    history.add(OTHER, make(9))
    history.add(ONE, make(0))
    history.add(ONE, make(1))
    end()
    end()
    history.add(ONE, make(2))
    assert received == [(0, 0), (1, 1)]
    assert history._watchers == {}
