"""Engines, which stay open between calls for one borrower at a time."""

import os
from threading import Thread

import pytest

from spectrod.analysis import engine_pool
from spectrod.analysis.engine_pool import EnginePool
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.lib.errors import DeviceError


@pytest.fixture
def opened(monkeypatch):
    """Count the engines that are opened."""
    engines = []

    def open_engine(*_):
        engines.append(NumpyEngine())
        return engines[-1]

    monkeypatch.setattr(engine_pool, "open_engine", open_engine)
    return engines


def test_an_engine_is_opened_once_for_each_device(opened):
    """Each device's engine is opened once and shared by later calls."""
    engines = EnginePool()
    with engines.borrow("auto", "") as first:
        pass
    with engines.borrow("auto", "") as again, engines.borrow("auto", "other") as other:
        assert again is first
        assert other is not first
    assert len(opened) == 2


def test_one_that_failed_is_not_lent_again(opened):
    """A failed engine is not lent again; the next call opens the device again."""
    engines = EnginePool()
    with (
        pytest.raises(DeviceError, match="is lost"),
        engines.borrow("auto", "") as first,
    ):
        raise DeviceError("the device is lost")
    with engines.borrow("auto", "") as second:
        assert second is not first


def test_borrowers_take_turns(opened):
    """A second borrower in another thread waits until the engine is returned."""
    engines, order = EnginePool(), []

    def later():
        with engines.borrow("auto", ""):
            order.append("later")

    thread = Thread(target=later)
    with engines.borrow("auto", ""):
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "later"]


def test_a_fork_opens_its_own(opened, monkeypatch):
    """A forked process does not use the parent's engine but opens its own."""
    engines = EnginePool()
    with engines.borrow("auto", "") as first:
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with engines.borrow("auto", "") as second:
        assert second is not first
