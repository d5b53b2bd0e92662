"""Messages that are resent for new subscribers, at a limited rate."""

import math
from itertools import pairwise

import pytest

from spectrod.daemon.publisher.new_subscriptions import AGAIN_S, NewSubscriptions

TOPICS = [b"meta/a/0/x/", b"meta/a/1/x/", b"meta/b/0/x/", b"hb/a/", b"hb/b/", b"last/a/0/x/"]


def due(subscriptions, now_s, *, is_sent=True):
    topics = subscriptions.take(lambda: TOPICS, now_s)
    if is_sent:
        for topic in topics:
            subscriptions.note_sent(topic, now_s)
    return sorted(topics)


@pytest.mark.parametrize(
    ("prefix", "topics"),
    [
        (b"meta/a/", [b"meta/a/0/x/", b"meta/a/1/x/"]),
        (b"meta/", [b"meta/a/0/x/", b"meta/a/1/x/", b"meta/b/0/x/"]),
        (b"hb/b/", [b"hb/b/"]),
        (b"last/a/0/x/", [b"last/a/0/x/"]),
        (b"h", [b"hb/a/", b"hb/b/"]),
        (b"l", []),
        (b"", [b"hb/a/", b"hb/b/", b"meta/a/0/x/", b"meta/a/1/x/", b"meta/b/0/x/"]),
        (b"nobody/1", []),
        (b"spec/a/0/x/", []),
        (b"event/", []),
        (b"meta/c/", []),
    ],
)
def test_a_subscription_is_answered_with_matching_topics_only(prefix, topics):
    """At once, and not again."""
    subscriptions = NewSubscriptions()
    subscriptions.note(prefix)
    assert due(subscriptions, 100.0) == topics
    assert subscriptions.due_s == math.inf
    assert due(subscriptions, 200.0) == []


@pytest.mark.parametrize("topic", [b"meta/a/0/x/", b"last/a/0/x/", b"hb/a/"])
def test_the_next_subscription_waits_until_it_may_be_sent_again(topic):
    """However many come meanwhile, one message answers all."""
    subscriptions = NewSubscriptions()
    again_s = AGAIN_S[topic[: topic.index(b"/") + 1]]
    subscriptions.note_sent(topic, 100.0)
    sent_s, now_s = [], 100.0
    while now_s < 110.0:
        subscriptions.note(topic)
        now_s += 0.01
        if due(subscriptions, now_s):
            sent_s.append(now_s)
    assert len(sent_s) == pytest.approx(10.0 / again_s, abs=2)
    assert min(b - a for a, b in pairwise(sent_s)) >= again_s - 1e-9


def test_it_is_woken_when_an_answer_is_due():
    """Neither before nor, where there is nothing to answer, ever."""
    subscriptions = NewSubscriptions()
    assert subscriptions.due_s == math.inf
    subscriptions.note_sent(b"meta/a/0/x/", 100.0)
    subscriptions.note(b"meta/a/0/x/")
    assert subscriptions.due_s <= 100.0
    assert due(subscriptions, 100.2) == []
    assert subscriptions.due_s == pytest.approx(101.0)
    assert due(subscriptions, 101.0) == [b"meta/a/0/x/"]


def test_topics_that_are_no_more_are_forgotten():
    """Also of topics that wait."""
    subscriptions = NewSubscriptions()
    subscriptions.note_sent(b"meta/gone/0/x/", 100.0)
    subscriptions.note(b"meta/")
    subscriptions.take(lambda: [b"meta/gone/0/x/"], 100.1)
    assert due(subscriptions, 102.0) == []
    assert subscriptions.due_s == math.inf
    assert not subscriptions._sent_s


def test_prefixes_without_end_become_one():
    """More than 64 that wait for an answer stand for all of their word."""
    subscriptions = NewSubscriptions()
    for k in range(1000):
        subscriptions.note(b"meta/%d/" % k)
    assert len(subscriptions._prefixes[b"meta/"]) == 65
    assert due(subscriptions, 100.0) == [b"meta/a/0/x/", b"meta/a/1/x/", b"meta/b/0/x/"]
