"""Jobs on few threads: times, descriptors, wakes, ends, and jobs that block."""

import gc
import math
import os
import select
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import pytest

from spectrod.lib.errors import InternalError, StorageError
from spectrod.lib.job_pool import JobPool, Wait

LIMIT_S = 20.0


@pytest.fixture
def pool():
    made = JobPool(threads_max=3)
    yield made
    made.close()


def n_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def finish(pool, steps):
    """Run a job to its end."""
    job = pool.job("test", steps)
    job.start()
    assert job.wait(LIMIT_S)
    return job


def test_a_job_waits_for_its_time(pool):
    """A job runs again at its time, not before, and within a step of the grid while idle."""
    times = []

    def steps():
        for pause_s in (0.02, 0.2):
            due_s = time.monotonic() + pause_s
            yield Wait(due_s)
            times.append(time.monotonic() - due_s)

    assert finish(pool, steps()).failure is None
    assert len(times) == 2
    assert min(times) >= 0.0


def test_times_that_are_not_awaited_any_more_do_not_pile_up(pool):
    """A job that waits long, is woken, and waits briefly, in turns, has two times in the heap."""
    counts = []

    def steps():
        for _ in range(20):
            yield Wait(time.monotonic() + 60.0)
            yield Wait(time.monotonic() + 0.001)
            counts.append(len(pool._due))

    job = pool.job("test", steps())
    job.start()
    while not job.has_ended:
        job.wake()
        job.wait(0.001)
    assert len(counts) == 20
    assert max(counts) <= 2


def test_an_ended_job_keeps_nothing(pool):
    """What a job was for is released at its end, though a time that it waited for is far away."""

    class Held:
        pass

    held, waits = Held(), threading.Event()
    gone = weakref.ref(held)

    def steps(own):
        waits.set()
        yield Wait(time.monotonic() + 60.0)
        assert own

    job = pool.job("test", steps(held), partial(_take, held))
    del held
    job.start()
    assert waits.wait(LIMIT_S)
    job.wake()
    assert job.wait(LIMIT_S)
    finish(pool, iter(()))  # the threads are past what they did for the first one
    gc.collect()
    assert gone() is None


def _take(_held, failure):
    assert failure is None


def test_a_job_waits_for_a_descriptor(pool):
    """A job runs again when its descriptor is readable."""
    reader, writer = os.pipe()
    found, waits = [], threading.Event()

    def steps():
        waits.set()
        while not select.select([reader], [], [], 0)[0]:
            yield Wait(math.inf, reader, select.POLLIN)
        found.append(os.read(reader, 10))

    job = pool.job("test", steps())
    job.start()
    assert waits.wait(LIMIT_S)
    os.write(writer, b"x")
    assert job.wait(LIMIT_S)
    assert found == [b"x"]
    os.close(reader)
    os.close(writer)


def test_without_events_only_the_end_of_the_other_side_counts(pool):
    """A job that waits for no event sleeps beside readable data until the writer has gone."""
    reader, writer = os.pipe()
    order, waits = [], threading.Event()

    def steps():
        waits.set()
        yield Wait(math.inf, reader)
        order.append("woken")

    job = pool.job("test", steps())
    job.start()
    assert waits.wait(LIMIT_S)
    os.write(writer, b"x")
    finish(pool, iter([Wait(time.monotonic() + 0.05)]))  # the scheduler has looked meanwhile
    order.append("closed")
    os.close(writer)
    assert job.wait(LIMIT_S)
    assert order == ["closed", "woken"]
    os.close(reader)


def test_a_descriptor_that_is_opened_again_under_its_number_is_watched(pool):
    """A job may close its descriptor and wait for another one that got the same number."""
    seen = []

    def steps():
        for _ in range(3):
            reader, writer = os.pipe()
            os.write(writer, b"x")
            yield Wait(math.inf, reader, select.POLLIN)
            seen.append(reader)
            os.close(reader)
            os.close(writer)

    finish(pool, steps())
    assert len(seen) == 3


def test_a_regular_file_is_always_readable(pool, tmp_path):
    """A file that epoll refuses counts as readable."""
    with (tmp_path / "x").open("wb") as file:
        finish(pool, iter([Wait(math.inf, file.fileno(), select.POLLIN)]))


def test_a_wake_ends_any_wait_and_none_is_lost(pool):
    """A job that is woken while it runs runs once more, and a wake ends a wait without a time."""
    has_begun, may_go_on, runs_again = (threading.Event() for _ in range(3))

    def steps():
        has_begun.set()
        assert may_go_on.wait(LIMIT_S)
        yield Wait()
        runs_again.set()
        yield Wait()

    job = pool.job("test", steps())
    job.start()
    assert has_begun.wait(LIMIT_S)
    job.wake()  # it runs
    may_go_on.set()
    assert runs_again.wait(LIMIT_S)
    assert not job.has_ended
    job.wake()
    assert job.wait(LIMIT_S)


def test_a_job_that_blocks_holds_up_no_other(pool):
    """Another thread helps while a job blocks, as long as there are threads."""
    go_on, has_begun = threading.Event(), threading.Event()

    def blocks():
        has_begun.set()
        assert go_on.wait(LIMIT_S)
        yield Wait(0.0)

    stuck = pool.job("stuck", blocks())
    stuck.start()
    assert has_begun.wait(LIMIT_S)
    finish(pool, iter([Wait(0.0), Wait(time.monotonic() + 0.01)]))
    assert not stuck.has_ended
    go_on.set()
    assert stuck.wait(LIMIT_S)


def test_threads_do_not_grow_with_jobs(pool):
    """Hundreds of jobs that wait need no more threads than the limit, and one for times."""
    before = threading.active_count()
    n_runs = [0] * 300

    def steps(number):
        for _ in range(3):
            n_runs[number] += 1
            yield Wait(time.monotonic() + 0.01)

    jobs = [pool.job("test", steps(number)) for number in range(300)]
    for job in jobs:
        job.start()
    assert all(job.wait(LIMIT_S) for job in jobs)
    assert n_runs == [3] * 300
    assert threading.active_count() - before <= pool.threads_max + 1


@pytest.mark.parametrize(
    ("error", "text"),
    [(StorageError("full"), "full"), (ValueError("x"), r"test failed: ValueError\('x'\); please")],
)
def test_a_failure_is_kept(pool, error, text, caplog):
    """An expected failure is passed on; a defect is logged with its traceback."""
    ends = []

    def steps():
        yield Wait(0.0)
        raise error

    job = pool.job("test", steps(), ends.append)
    job.start()
    assert job.wait(LIMIT_S)
    assert ends == [job.failure]
    with pytest.raises(
        type(error) if isinstance(error, StorageError) else InternalError, match=text
    ):
        raise job.failure
    assert bool(caplog.records) == isinstance(error, ValueError)
    finish(pool, iter([Wait(0.0)]))  # the pool goes on


def test_a_job_that_was_never_started_counts_as_ended(pool):
    """Nobody waits for a job that was not started, and a wake does not start it."""
    job = pool.job("test", iter([Wait(0.0)]))
    job.wake()
    assert job.wait(0.0)
    assert not job.has_ended


def test_times_that_are_replaced_do_not_pile_up(pool):
    """A job that is woken again and again before its time keeps one entry for it."""
    woken = threading.Semaphore(0)

    def steps():
        for _ in range(200):
            woken.release()
            yield Wait(time.monotonic() + 60.0)

    job = pool.job("test", steps())
    job.start()
    for _ in range(200):
        assert woken.acquire(timeout=LIMIT_S)
        job.wake()
    assert job.wait(LIMIT_S)
    assert len(pool._due) <= 1


def test_the_end_leaves_no_thread_and_no_descriptor():
    """After ``close``, which may be repeated, threads and descriptors are gone."""
    threads, n_open = threading.active_count(), n_descriptors()
    made = JobPool()
    finish(made, iter([Wait(time.monotonic() + 0.01)]))
    made.close()
    made.close()
    assert threading.active_count() == threads
    assert n_descriptors() == n_open
