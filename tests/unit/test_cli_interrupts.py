"""Ctrl-C, and what does the same, while files are written."""

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
    """It comes to its end, and the interrupt comes then; the handlers are those from before."""
    with signals_as_interrupts():
        before = signal.getsignal(number)
        done = []
        with pytest.raises(KeyboardInterrupt):
            _write(lambda: signal.raise_signal(number), lambda: done.append(True))
        assert done
        assert signal.getsignal(number) is before
        _write(lambda: done.append(True))


def test_what_is_ignored_stays_ignored():
    """A program under nohup goes on when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_interrupts(), interrupts_held():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_in_the_block_is_told():
    """It says more than the interrupt."""
    with pytest.raises(IndexError):
        _write(lambda: signal.raise_signal(signal.SIGINT), [].pop)


class _Thing:
    """Can be referred to weakly."""


def _end_of_a_thing():
    thing = _Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    assert reference() is None
    threading.Event().wait(30.0)


def test_an_interrupt_that_python_swallows_comes_again(capsys):
    """Ctrl-C while an object ends is neither lost nor a traceback."""
    with signals_as_interrupts(), pytest.raises(KeyboardInterrupt):
        _end_of_a_thing()
    assert capsys.readouterr().err == ""
