"""Threads with names, error handling and a bounded join."""

import threading

import pytest

from spectrod.lib.errors import InputError, InternalError
from spectrod.lib.worker import Worker


def run(act):
    """Run a function in a worker; return the worker and its report at the end."""
    ends = []
    worker = Worker("level check", act, ends.append)
    worker.start()
    assert worker.wait(10.0)
    return worker, ends


def test_a_worker_is_named_for_its_task():
    """The thread's name has the program's prefix and no spaces, and it is a daemon thread."""
    names = []
    worker, ends = run(lambda: names.append(threading.current_thread().name))
    assert names == ["spectrod-level-check"]
    assert ends == [None]
    assert worker.failure is None
    assert worker.daemon


def test_an_expected_failure_is_kept_as_it_is(caplog):
    """A SpectrodError reaches the owner unchanged and is not logged as a defect."""
    error = InputError("x.wav: is empty")

    def fail():
        raise error

    worker, ends = run(fail)
    assert worker.failure is error
    assert ends == [error]
    assert not caplog.records


def divide():
    """Fail as a defect does, with a text that does not depend on Python's version."""
    raise ZeroDivisionError("by nothing")


def test_a_defect_becomes_an_internal_error(caplog):
    """Any other exception is logged with its traceback as an internal error to report."""
    worker, ends = run(divide)
    assert isinstance(worker.failure, InternalError)
    text = "level check failed: ZeroDivisionError('by nothing')"
    assert str(worker.failure) == f"{text}; please report this"
    assert isinstance(worker.failure.__cause__, ZeroDivisionError)
    assert ends == [worker.failure]
    assert "ZeroDivisionError" in caplog.text


def test_a_failure_is_known_when_the_end_is_reported():
    """The callback at the end sees the failure in the worker's attribute."""
    seen = []
    worker = Worker(
        "level check", lambda: 1 // 0, lambda error: seen.append(worker.failure is error)
    )
    worker.start()
    assert worker.wait(10.0)
    assert seen == [True]


def test_a_worker_that_never_started_has_ended():
    """A join of a worker that never started returns at once."""
    assert Worker("level check", lambda: None).wait()


def test_a_worker_that_does_not_end_is_reported():
    """A bounded join of a running worker returns false, or raises if the end is required."""
    release = threading.Event()
    worker = Worker("level check", release.wait)
    worker.start()
    try:
        assert not worker.wait(0.01)
        rule = r"level check: its thread did not end within 0\.01 s"
        with pytest.raises(InternalError, match=rule):
            worker.require_end(0.01)
    finally:
        release.set()
    worker.require_end(10.0)
