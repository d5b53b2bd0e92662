import pytest

from spectrod.daemon.control.dispatch import Answer, Later
from spectrod.daemon.control.replay_requests import latest
from spectrod.daemon.publisher.sent_messages import History, Stored
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.stats import Stats
from spectrod.wire.requests import LatestParams

TOPIC = "spec/mic/0/dbfs/"
EPOCH = 77


class Source:
    """A source that may compute its product, and that records how long it was wanted."""

    def __init__(self, *computed):
        self.leases = []
        self._stats = Stats(
            "running", "mic", "numpy", 48000.0, products=("dbfs",), computed=computed
        )

    def stats(self):
        return self._stats

    def topics(self):
        return frozenset([TOPIC])

    def lease(self, product, seconds):
        self.leases.append((product, seconds))


@pytest.fixture
def history():
    """Make a history in which messages seven and eight were sent."""
    kept = History(10**6, EPOCH)
    for seq in (7, 8):
        kept.add(TOPIC, stored(seq))
    return kept


def stored(seq):
    return Stored(seq, (TOPIC.encode(), b'{"seq":%d}' % seq, b"values"))


def ask(history, source, **params):
    return latest(history, lambda _: source, LatestParams(topic=TOPIC, **params))


def test_the_newest_message_is_returned_at_once(history):
    """A computed product's newest message is given at once if the client does not have it."""
    answer = ask(history, Source("dbfs"), after_seq=7, timeout_s=5)
    assert isinstance(answer, Answer)
    assert answer.parts == list(stored(8).parts)


@pytest.mark.parametrize("after_seq", [-1, 7, 8])
def test_a_reply_waits_for_an_idle_product(history, after_seq):
    """For a product that nobody wanted, the reply waits until it is computed again."""
    source, woken = Source(), []
    later = ask(history, source, after_seq=after_seq, timeout_s=5)
    assert isinstance(later, Later)
    end = later.watch(lambda: woken.append("now"))
    assert source.leases == [("dbfs", 5)]
    assert later.look() is None
    history.add(TOPIC, stored(9))
    assert (woken, later.look().parts) == (["now"], list(stored(9).parts))
    end()


@pytest.mark.parametrize(("after_seq", "parts"), [(7, list(stored(8).parts)), (8, [])])
def test_an_old_message_is_given_if_no_other_comes(history, after_seq, parts):
    """A source that has ended gives its last message to clients that do not have it."""
    assert ask(history, Source(), after_seq=after_seq, timeout_s=5).otherwise.parts == parts


@pytest.mark.parametrize(("after_seq", "parts"), [(7, list(stored(8).parts)), (8, [])])
def test_without_a_timeout_the_last_message_is_returned(history, after_seq, parts):
    """Without a timeout the reply is the last message of any age, and nothing is computed."""
    source = Source()
    assert ask(history, source, after_seq=after_seq).parts == parts
    assert source.leases == []


def test_a_number_of_another_epoch_does_not_count(history):
    """After a restart of the daemon, every message is newer than those of the old epoch."""
    answer = ask(history, Source("dbfs"), after_seq=500, epoch=EPOCH + 1, timeout_s=5)
    assert answer.parts == list(stored(8).parts)


def test_an_unknown_product_is_refused_with_the_topics(history):
    """An unknown product is refused with the list of topics."""
    with pytest.raises(
        NotFoundError, match="topic='spec/mic/0/hold/': does not exist; there are: s"
    ):
        latest(history, lambda _: Source(), LatestParams(topic="spec/mic/0/hold/"))


@pytest.mark.parametrize("topic", ["spec/mic/1/dbfs/", "bands/mic/0/dbfs/"])
def test_a_topic_that_the_source_never_sends_is_refused(history, topic):
    """A topic that the source can never send, such as another channel, is refused at once."""
    with pytest.raises(
        NotFoundError, match=f"^topic='{topic}': does not exist; there are: {TOPIC}$"
    ):
        latest(history, lambda _: Source(), LatestParams(topic=topic, timeout_s=5))


def test_a_topic_of_an_absent_source_is_waited_for(history, monkeypatch):
    """A topic of an absent sound card is waited for, since its channels are unknown."""
    source = Source()
    monkeypatch.setattr(source, "topics", frozenset)
    later = latest(history, lambda _: source, LatestParams(topic="spec/mic/5/dbfs/", timeout_s=5))
    assert isinstance(later, Later)


@pytest.mark.parametrize(
    "topic", ["", "spec/", "spec/mic/0/dbfs", "spec//0/dbfs/", "spec/mic//dbfs/"]
)
def test_a_prefix_is_refused_with_the_known_topics(history, topic):
    """A prefix is refused because one whole topic is needed; the error lists at most 20 topics."""
    words = "bands/..., levels/..., features/..., tones/... or transfer/..."
    rule = f"must be spec/SOURCE/CHANNEL/PRODUCT/, {words}, one whole topic"
    with pytest.raises(ConfigError) as refused:
        latest(history, lambda _: Source(), LatestParams(topic=topic))
    assert str(refused.value) == f"topic={topic!r}: {rule}; there are: {TOPIC}"
    for channel in range(1, 25):
        history.add(f"spec/mic/{channel}/dbfs/", stored(0))
    with pytest.raises(ConfigError, match=r"there are: spec/mic/0/dbfs/, [^;]* and 5 more$"):
        latest(history, lambda _: Source(), LatestParams(topic=topic))
