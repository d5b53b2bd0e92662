"""Ctrl-C and other ending signals while files are written."""

import signal
import threading
import weakref

import pytest

from spectrod.cli.interrupts import interrupts_held, signals_as_interrupts


def _write(*steps):
    with interrupts_held():
        for step in steps:
            step()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_block_is_not_interrupted(number):
    """A protected block runs to its end before the interrupt, and the handlers are restored."""
    with signals_as_interrupts():
        before = signal.getsignal(number)
        done = []
        with pytest.raises(KeyboardInterrupt):
            _write(lambda: signal.raise_signal(number), lambda: done.append(True))
        assert done
        assert signal.getsignal(number) is before
        _write(lambda: done.append(True))


def test_ignored_signals_stay_ignored():
    """A program under nohup continues when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_interrupts(), interrupts_held():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_in_the_block_replaces_the_interrupt():
    """An error in the block is raised in place of the interrupt, because it says more."""
    with pytest.raises(IndexError):
        _write(lambda: signal.raise_signal(signal.SIGINT), [].pop)


class _Thing:
    """An object that can be weakly referenced."""


def _end_of_a_thing():
    thing = _Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    assert reference() is None
    threading.Event().wait(30.0)


@pytest.mark.parametrize("again_s", [0.01, 0.0])
def test_an_interrupt_that_python_swallows_comes_again(again_s, capsys):
    """Ctrl-C in a finalizer, which Python swallows, is raised again, on a busy machine too."""
    with signals_as_interrupts(again_s), pytest.raises(KeyboardInterrupt):
        _end_of_a_thing()
    assert capsys.readouterr().err == ""
