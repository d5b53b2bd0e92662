"""Work in parts by several threads."""

import gc
import threading
import weakref

import numpy as np
import pytest

from spectrod.analysis import parallel
from spectrod.analysis.parallel import copy, copy_steps, in_parts


@pytest.mark.parametrize(("shape", "axis"), [((2, 1_500_001), 1), ((3001, 2, 257), 0), ((1, 5), 1)])
def test_a_copy_is_whole(shape, axis):
    """A copy in any number of parts is complete, also for rows with gaps between them."""
    source = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.zeros((*shape[:-1], shape[-1] + 3), np.float32)
    copy(out[..., : shape[-1]], source, axis)
    np.testing.assert_array_equal(out[..., : shape[-1]], source)
    assert not out[..., shape[-1] :].any()


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("step", [1, 700_001, 1_500_001, 2_000_000])
def test_each_step_of_a_copy_is_there_when_it_is_yielded(threads, step, monkeypatch):
    """Steps come in order, each complete, and together they are the whole."""
    monkeypatch.setattr(parallel, "usable_processors", lambda: threads)
    n = 1_500_001 if step > 1 else 101
    source = np.random.default_rng(step).integers(1, 1 << 30, (2, n))
    out = np.zeros((2, n + 3), source.dtype)
    end = 0
    for part in copy_steps(out[:, :n], source, 1, step):
        assert part == slice(end, min(end + step, n))
        np.testing.assert_array_equal(out[:, part], source[:, part])
        end = part.stop
    assert end == n
    assert not out[:, n:].any()


def test_a_copy_in_steps_that_is_left_writes_nothing_any_more(monkeypatch):
    """Whoever closes it may use the memory again: no thread copies a later step."""
    monkeypatch.setattr(parallel, "usable_processors", lambda: 2)
    source = np.ones((1, 1 << 24), np.uint8)
    out = np.zeros_like(source)
    steps = copy_steps(out, source, 1, 1 << 21)
    next(steps)
    steps.close()
    np.testing.assert_array_equal(out, source)


@pytest.mark.parametrize("n_bytes", [0, 1 << 20, 1 << 21, 1 << 30])
@pytest.mark.parametrize("n", [1, 2, 7, 1001])
def test_each_item_is_in_one_part(n, n_bytes):
    """The parts cover all items once, in order, with threads and without."""
    parts = in_parts(lambda part: list(range(part.start, part.stop)), n, n_bytes)
    assert [item for part in parts for item in part] == list(range(n))


def test_an_error_in_a_part_is_raised():
    """An error in the last of several parts reaches the caller."""

    def work(part):
        if part.stop == 8:
            raise ValueError("the last part")

    with pytest.raises(ValueError, match="the last part"):
        in_parts(work, 8, 1 << 30)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_when_no_part_writes_any_more(error, monkeypatch):
    """Ctrl-C or an error in one part leaves after all others: their memory may be used again."""
    monkeypatch.setattr(parallel, "usable_processors", lambda: 2)
    has_failed, written = threading.Event(), []

    def work(part):
        if part.start == 0:
            has_failed.set()
            raise error
        assert has_failed.wait(60)
        written.append(part)

    with pytest.raises(error):
        in_parts(work, 8, 1 << 30)
    assert written == [slice(4, 8)]


def test_several_threads_copy_at_once(monkeypatch):
    """Each gets its own copy whole, whoever has the helpers, and there are 8 of these at most."""
    helpers = parallel._Helpers()
    monkeypatch.setattr(parallel, "_helpers", lambda _pid: helpers)
    monkeypatch.setattr(parallel, "usable_processors", lambda: 16)
    n, turns = 1 << 22, 20
    sources = np.random.default_rng(5).integers(1, 255, (6, 1, n)).astype(np.uint8)
    same = []

    def copy_again(source):
        for turn in range(turns):
            out = np.zeros_like(source)
            if turn % 2:
                copy(out, source, 1)
            else:
                assert len(list(copy_steps(out, source, 1, n // 2))) == 2
            same.append(np.array_equal(out, source))

    threads = [threading.Thread(target=copy_again, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * (len(sources) * turns)
    assert 0 < helpers._n <= 8


def test_without_further_threads_the_caller_does_all(monkeypatch):
    """Where the system starts no more threads (``TasksMax``), work takes longer."""

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    helpers = parallel._Helpers()
    monkeypatch.setattr(parallel, "_helpers", lambda _pid: helpers)
    monkeypatch.setattr(parallel, "usable_processors", lambda: 8)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    callers = in_parts(lambda _part: threading.current_thread(), 8, 1 << 30)
    assert callers == [threading.current_thread()] * 8
    source = np.arange(1 << 22).reshape(1, -1)
    out = np.zeros_like(source)
    assert len(list(copy_steps(out, source, 1, 1 << 20))) == 4
    np.testing.assert_array_equal(out, source)


def test_work_does_not_wait_for_a_helper_that_has_not_started(monkeypatch):
    """On a busy machine a thread may start late: the caller does its part, and it helps later."""
    may_run, run = threading.Event(), parallel._Helper.run

    def run_late(helper):
        assert may_run.wait(60)
        run(helper)

    helpers = parallel._Helpers()
    monkeypatch.setattr(parallel, "_helpers", lambda _pid: helpers)
    monkeypatch.setattr(parallel, "usable_processors", lambda: 2)
    monkeypatch.setattr(parallel._Helper, "run", run_late)
    for _ in range(2):
        callers = in_parts(lambda _part: threading.current_thread(), 8, 1 << 30)
        assert callers == [threading.current_thread()] * 2
    may_run.set()
    both = threading.Barrier(2)
    assert sorted(in_parts(lambda _part: both.wait(60), 8, 1 << 30)) == [0, 1]


def test_helpers_keep_no_memory_of_work_that_is_done(monkeypatch):
    """A thread that waits for the next job does not refer to the arrays of the last one."""
    monkeypatch.setattr(parallel, "usable_processors", lambda: 8)
    source = np.ones((1, 1 << 23), np.uint8)
    out = np.zeros_like(source)
    copy(out, source, 1)
    freed = weakref.ref(out)
    del out
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), (8, 8), (0, 1)])
def test_a_process_that_shares_its_processors_has_fewer_threads(limit, expected, monkeypatch):
    """A limit holds for all parts, and is at least the calling thread."""
    monkeypatch.setattr(parallel, "usable_processors", lambda: 16)
    monkeypatch.setattr(parallel, "_limits", {"threads": 8})
    parallel.limit_threads(limit)
    assert len(in_parts(lambda part: part, 16, 1 << 30)) == expected
