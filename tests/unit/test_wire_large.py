"""How many large replies may be held for a peer, and when there is room for one more."""

from spectrod.wire.answers import Answer
from spectrod.wire.large import LargeReplies
from spectrod.wire.requests import failed


def test_a_peer_has_room_for_two():
    """A third must wait until one of its own has gone; others have room."""
    large = LargeReplies()
    first = large.hold(b"a", b"1")
    second = large.hold(b"a", b"2")
    assert (first, second) == (b"1", b"2")
    assert not large.has_room(b"a")
    assert large.has_room(b"b")
    del first
    assert large.has_room(b"a")


def test_a_reply_is_held_by_the_last_view_of_it():
    """As ZeroMQ keeps one of its own behind ours."""
    large = LargeReplies()
    held = [large.hold(b"a", b"1"), large.hold(b"a", b"2")]
    kept = held[0]
    held.clear()
    assert large.has_room(b"a")
    kept_too = large.hold(b"a", b"3")
    assert not large.has_room(b"a")
    del kept
    assert large.has_room(b"a")
    assert kept_too == b"3"


def test_all_peers_have_room_for_sixteen():
    """The seventeenth of whatever peer must wait."""
    large = LargeReplies()
    held = [large.hold(b"%d" % (k // 2), b"x") for k in range(16)]
    assert not large.has_room(b"new")
    held.pop()
    assert large.has_room(b"new")


def test_who_waits_is_told_when_one_has_gone():
    """And looks again: the answer is made then, not kept."""
    large = LargeReplies()
    held = [large.hold(b"a", b"1"), large.hold(b"a", b"2")]
    late = failed(1, "too_many", "read them first")
    made, told = Answer("made"), []
    later = large.once_read(b"a", lambda: made, late)
    assert later.otherwise is late
    end_watch = later.watch(lambda: told.append("gone"))
    assert later.look() is None
    held.pop()
    assert told == ["gone"]
    assert later.look() is made
    end_watch()
    held.pop()
    assert told == ["gone"]
