"""Token buckets, and the bounded table of buckets by peer."""

import pytest

from spectrod.lib.rate_limit import PeerLimits, TokenBucket


@pytest.mark.parametrize(("rate", "burst"), [(1.0, 1.0), (10.0, 3.0), (0.5, 7.0)])
def test_a_bucket_gives_its_burst_at_once_and_its_rate_after_that(rate, burst):
    """Never more than the burst and the time times the rate together."""
    bucket = TokenBucket(rate, burst, 100.0)
    assert [bucket.take(100.0) for _ in range(int(burst) + 3)] == [True] * int(burst) + [False] * 3
    assert bucket.wait_s(100.0) == pytest.approx(1.0 / rate)
    taken = sum(bucket.take(100.0 + k / (8 * rate)) for k in range(1, 8 * 20 + 1))
    assert taken == 20


def test_a_bucket_overflows():
    """A peer that was silent for a year has no more than the burst."""
    bucket = TokenBucket(10.0, 2.0, 0.0)
    assert [bucket.take(3e7) for _ in range(3)] == [True, True, False]
    assert bucket.wait_s(4e7) == 0.0


def test_the_wait_for_several_tokens_is_just_long_enough():
    """After the announced time the tokens are there, and not before."""
    bucket = TokenBucket(10.0, 100.0, 0.0)
    assert bucket.take(0.0, 95.0)
    wait_s = bucket.wait_s(0.0, 40.0)
    assert wait_s == pytest.approx(3.5)
    assert not bucket.take(wait_s - 0.01, 40.0)
    assert bucket.take(wait_s + 1e-9, 40.0)


def test_each_peer_has_a_bucket_of_its_own():
    """A rate below one a second still gives one at once."""
    limits = PeerLimits(0.25, peers_max=10)
    assert [limits.take(b"a", 0.0), limits.take(b"a", 0.0)] == [True, False]
    assert [limits.take(b"b", 0.0), limits.take(b"b", 3.9)] == [True, False]
    assert limits.take(b"a", 4.0)


def test_the_peer_that_was_silent_longest_is_forgotten_first():
    """Memory is bounded, and an active peer is not dropped for others."""
    limits = PeerLimits(1.0, peers_max=3)
    assert limits.take(b"busy", 0.0)
    for k in range(100):
        assert limits.take(b"%d" % k, 0.0)
        assert not limits.take(b"busy", 0.0)
        assert len(limits) <= 3
    assert limits.take(b"0", 0.0)


def test_an_excess_is_owed_for_a_second_at_most():
    """Waiting makes up for an excess, up to a bound."""
    bucket = TokenBucket(10.0, 2.0, 0.0)
    for _ in range(5):
        bucket.spend(0.0)
    assert bucket.wait_s(0.0) == pytest.approx(0.4)
    for _ in range(1000):
        bucket.spend(0.0)
    assert bucket.wait_s(0.0) == pytest.approx(1.1)
