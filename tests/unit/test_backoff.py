"""Pauses between attempts, and the patience with streams that pause."""

import pytest

from spectrod.backoff import Backoff
from spectrod.source.patience import Patience


def test_pauses_double_up_to_the_last():
    """0.1, 0.2, ... 2 s, each within a quarter of it; begun anew after a reset."""
    backoff = Backoff()
    for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0):
        assert backoff.next_s() == pytest.approx(expected, rel=0.25)
    backoff.reset()
    assert backoff.next_s() == pytest.approx(0.1, rel=0.25)


def test_pauses_differ():
    """Many that wait for one thing do not all come at once."""
    backoff = Backoff(1.0, 1.0)
    pauses = [backoff.next_s() for _ in range(1000)]
    assert min(pauses) < 0.8
    assert max(pauses) > 1.2
    assert sum(pauses) / 1000 == pytest.approx(1.0, abs=0.03)  # 6 sigma of a uniform mean


def test_patience_grows_at_the_third_stall_in_time():
    """Three stalls within 30 s let it be half as long again as the longest, once."""
    patience = Patience(0.9)
    assert not patience.bear(1.0, 100.0)
    assert not patience.bear(2.0, 110.0)
    assert patience.s == 0.9
    assert patience.bear(1.5, 129.0)
    assert patience.s == pytest.approx(3.0)
    assert not any(patience.bear(1.0, 130.0 + t) for t in range(9))  # shorter than it is by now
    assert patience.s == pytest.approx(3.0)


def test_patience_is_bounded():
    """A stream that is silent for minutes is not waited for so long."""
    patience = Patience(0.9)
    assert [patience.bear(60.0, t) for t in (0.0, 1.0, 2.0)] == [False, False, True]
    assert patience.s == 5.0


def test_rare_stalls_do_not_count():
    """Stalls that are further apart are faults, each by itself."""
    patience = Patience(0.9)
    assert not any(patience.bear(2.0, 16.0 * t) for t in range(20))
    assert patience.s == 0.9


def test_stalls_before_a_loss_do_not_count():
    """A stream that loses samples is not one that merely delivers in bursts."""
    patience = Patience(0.9)
    for t in range(10):
        assert not patience.bear(2.0, t)
        if t % 2:
            patience.forget()
    assert patience.s == 0.9
