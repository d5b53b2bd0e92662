"""The wanted topics, from the messages of subscribers."""

import pytest

from spectrod.daemon.publisher.subscriptions import PREFIXES_MAX, SubscribedPrefixes

TOPICS = sorted([b"spec/mic/0/dbfs/", b"spec/mic/1/dbfs/", b"spec/mic/10/dbfs/"])


def book_of(*requests):
    book = SubscribedPrefixes()
    for request in requests:
        book.note(request)
    return book


@pytest.mark.parametrize(
    ("prefix", "is_covered"),
    [
        (b"", True),
        (b"s", True),
        (b"spec/", True),
        (b"spec/mic/1", True),
        (b"spec/mic/10/dbfs/", True),
        (b"spec/mic/10/dbfs/x", False),
        (b"spec/mic/2/", False),
        (b"spec/mi/", False),
        (b"spec/zoo/", False),
        (b"bands/", False),
        (b"meta/", False),
        (b"last/", False),
    ],
)
def test_a_prefix_covers_the_topics_that_start_with_it(prefix, is_covered):
    """Just as ZeroMQ would deliver them: whole topics, and only those of values."""
    assert book_of(b"\x01" + prefix).covers(TOPICS) == is_covered


def test_bands_have_their_own_word():
    """Spectra and bands are distinct, and the empty prefix matches both."""
    bands = [b"bands/mic/0/thirds/"]
    assert book_of(b"\x01bands/mic/").covers(bands)
    assert not book_of(b"\x01spec/mic/").covers(bands)
    assert book_of(b"\x01").covers(bands)


def test_a_removed_prefix_covers_nothing():
    """The last of two unsubscriptions, the only one that libzmq reports, ends both."""
    book = book_of(b"\x01spec/", b"\x01spec/mic/", b"\x01spec/")
    assert book.subscribers == 3
    book.note(b"\x00spec/")
    assert (book.subscribers, book.covers(TOPICS)) == (1, True)
    book.note(b"\x00spec/mic/")
    assert (book.subscribers, book.covers(TOPICS)) == (0, False)


def test_only_subscriptions_are_returned():
    """The returned prefixes are those that may need an answer."""
    book = SubscribedPrefixes()
    assert book.note(b"\x01hb/") == b"hb/"
    assert book.note(b"\x00hb/") is None
    for nonsense in (b"", b"\x07spec/", b"\x00spec/", b"\x02", b"spec/"):
        assert book.note(nonsense) is None
    assert (book.subscribers, book.covers(TOPICS)) == (0, False)


def test_only_changes_are_reported():
    """A second subscription to a prefix is one more subscriber; an end of none is nothing."""
    book = SubscribedPrefixes()
    book.has_changed = False
    for request, has_changed in [
        (b"\x01meta/", False),
        (b"\x00spec/", False),
        (b"\x01spec/", True),
        (b"\x00spec/", True),
    ]:
        book.note(request)
        assert book.has_changed == has_changed
        book.has_changed = False


def test_a_million_prefixes_use_bounded_memory_and_all_are_served():
    """Past the bound all topics are wanted, those that others had before too."""
    book = book_of(b"\x01spec/mic/0/", *(b"\x01spec/%d/" % k for k in range(PREFIXES_MAX - 1)))
    assert not book.covers([b"spec/late/0/dbfs/"])
    for k in range(10_000):
        book.note(b"\x01spec/x%d/" % k)
    assert len(book._arrivals) == PREFIXES_MAX
    assert book.covers([b"spec/late/0/dbfs/"])
    assert book.covers(TOPICS)
    assert not book.covers([])


def test_prefixes_that_no_topic_has_are_not_kept():
    """Neither of another kind nor longer than any topic."""
    book = book_of(b"\x01hb/", b"\x01" + b"q" * 60_000, b"\x01spec/" + b"a" * 60_000)
    assert len(book._arrivals) == 0


def test_demand_at_a_cut_counts_until_it_is_released():
    """Subscribers that leave or come in between count; afterwards only current ones."""
    book = book_of(b"\x01spec/mic/0/")
    book.hold()
    book.note(b"\x00spec/mic/0/")
    book.note(b"\x01spec/pond/")
    assert book.covers([b"spec/mic/0/dbfs/"])
    assert book.covers([b"spec/pond/0/dbfs/"])
    assert book.subscribers == 1
    book.has_changed = False
    book.release()
    assert book.has_changed
    assert not book.covers([b"spec/mic/0/dbfs/"])
    assert book.covers([b"spec/pond/0/dbfs/"])
    book.has_changed = False
    book.release()
    assert not book.has_changed
