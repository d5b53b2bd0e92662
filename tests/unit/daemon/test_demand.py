"""Demand for the products of a source."""

import threading

import pytest

from spectrod.daemon.demand import Demand


@pytest.fixture
def clock(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("spectrod.daemon.demand.time.monotonic", lambda: now_s[0])
    return now_s


def wanted(demand, unproven=(), used=()):
    return demand.wanted(unproven, used)


def test_all_products_are_in_demand_until_demand_is_reported():
    """Everything is computed until demand is reported; then wanted, unproven and used products."""
    demand = Demand()
    assert wanted(demand, ["a"], ["b"]) is None
    demand.want(frozenset())
    assert wanted(demand) == frozenset()
    assert wanted(demand, ["a"], ["b", "b"]) == {"a", "b"}
    demand.want(frozenset({"c"}))
    assert wanted(demand, ["a"]) == {"a", "c"}
    demand.want(None)
    assert wanted(demand) is None


def test_all_is_computed_where_that_is_asked_for():
    """With "compute all", products named meanwhile count again afterwards; a pause overrides it."""
    demand = Demand(frozenset())
    assert wanted(demand, ["a"]) == {"a"}
    demand.compute_all(is_of_all=True)
    assert demand.take_change()
    assert wanted(demand) is None
    demand.want(frozenset({"c"}))
    assert wanted(demand) is None
    demand.pause(is_paused=True)
    assert wanted(demand) == frozenset()
    demand.pause(is_paused=False)
    demand.compute_all(is_of_all=False)
    assert wanted(demand) == {"c"}


def test_a_pause_goes_before_all():
    """A pause stops all products regardless of demand and restores the demand at its end."""
    demand = Demand()
    demand.pause(is_paused=True)
    demand.lease("a", 10.0)
    assert demand.is_paused
    assert wanted(demand, ["a"], ["b"]) == frozenset()
    demand.pause(is_paused=False)
    assert wanted(demand) is None


def test_a_lease_ends_by_itself(clock):
    """A lease expires by itself, which is a change; a renewed request extends it."""
    demand = Demand()
    demand.want(frozenset())
    demand.lease("a", 10.0)
    demand.lease("b", 5.0)
    assert demand.take_change()
    clock[0] += 4.0
    demand.lease("b", 20.0)
    demand.lease("b", 1.0)  # another client's lease with a shorter wait
    assert demand.take_change()
    clock[0] += 10.0
    assert wanted(demand) == {"a", "b"}
    assert demand.take_change()
    assert wanted(demand) == {"b"}
    clock[0] += 11.0
    assert demand.take_change()
    assert wanted(demand) == frozenset()
    assert not demand.take_change()


def test_each_change_is_taken_once():
    """Each change is reported once, and a wait does not consume it."""
    demand = Demand()
    assert not demand.take_change()
    for change in (
        lambda: demand.want(None),
        lambda: demand.pause(is_paused=True),
        lambda: demand.lease("a", 1e9),
        demand.touch,
    ):
        change()
        demand.wait(10.0)
        assert demand.has_changed
        assert demand.take_change()
        assert not demand.has_changed
        assert not demand.take_change()


def test_a_change_that_comes_while_one_is_taken_is_not_lost():
    """A change during a report appears in the next one."""

    class Late(threading.Event):
        def is_set(self):
            was_set = super().is_set()
            self.set()
            return was_set

    demand = Demand()
    demand._changed = Late()
    assert not demand.take_change()
    assert demand.take_change()
