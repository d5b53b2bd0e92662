"""Pauses between attempts, and the timeout of streams that stall."""

import pytest

from spectrod.lib.backoff import Backoff
from spectrod.source.soundcard.stall_timeout import StallTimeout


def test_pauses_double_up_to_the_last():
    """Pauses double from 0.1 s to 2 s with 25 % jitter, and restart at 0.1 s after a reset."""
    backoff = Backoff()
    for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0):
        assert backoff.next_s() == pytest.approx(expected, rel=0.25)
    backoff.reset()
    assert backoff.next_s() == pytest.approx(0.1, rel=0.25)


def test_pauses_differ():
    """Clients that wait for the same thing do not all retry at the same moment."""
    backoff = Backoff(1.0, 1.0)
    pauses = [backoff.next_s() for _ in range(1000)]
    assert min(pauses) < 0.8
    assert max(pauses) > 1.2
    assert sum(pauses) / 1000 == pytest.approx(1.0, abs=0.03)  # 6 sigma of a uniform mean


def test_patience_grows_at_the_third_stall_in_time():
    """Three stalls within 30 s raise the timeout once, to 1.5 times the longest stall."""
    timeout = StallTimeout(0.9)
    assert not timeout.record_stall(1.0, 100.0)
    assert not timeout.record_stall(2.0, 110.0)
    assert timeout.s == 0.9
    assert timeout.record_stall(1.5, 129.0)
    assert timeout.s == pytest.approx(3.0)
    assert not any(timeout.record_stall(1.0, 130.0 + t) for t in range(9))  # below the timeout
    assert timeout.s == pytest.approx(3.0)


def test_patience_is_bounded():
    """The stall timeout has an upper bound, so minutes of silence still count as a loss."""
    timeout = StallTimeout(0.9)
    assert [timeout.record_stall(60.0, t) for t in (0.0, 1.0, 2.0)] == [False, False, True]
    assert timeout.s == 5.0


def test_rare_stalls_do_not_count():
    """Stalls that are far apart are separate faults and do not raise the timeout."""
    timeout = StallTimeout(0.9)
    assert not any(timeout.record_stall(2.0, 16.0 * t) for t in range(20))
    assert timeout.s == 0.9


def test_stalls_before_a_loss_do_not_count():
    """Losses show that a stream does not merely deliver in bursts, so its stalls are dropped."""
    timeout = StallTimeout(0.9)
    for t in range(10):
        assert not timeout.record_stall(2.0, t)
        if t % 2:
            timeout.forget()
    assert timeout.s == 0.9
