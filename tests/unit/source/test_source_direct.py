"""Samples that are made when they are read: at full speed, and as they are due."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import InputError
from spectrod.source import direct
from spectrod.source.direct import PacedReader

FS = 8000.0


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(direct.time, "monotonic", lambda: now.s)
    return now


def reader(*lengths, failure=None, failures=None):
    """Make a started reader of pieces in one memory, whose values are the samples' indices."""
    memory = np.empty((1, max(lengths)), np.float32)

    def samples():
        index = 0
        for n in lengths:
            memory[0, :n] = np.arange(index, index + n)
            yield index, memory[:, :n]
            index += n
        if failure:
            raise failure

    layout = SampleLayout("float32", 1)
    made = PacedReader(
        FS,
        layout,
        samples(),
        0,
        lambda _: (0, 0),
        failures.append if failures is not None else None,
    )
    made.begin(lambda index: (index, 2 * index))
    return made


def drain(made):
    """Read all that is due; return the lengths of the blocks."""
    lengths = []
    while (block := made.read(1 << 16)) is not None:
        first = block.sample_index
        np.testing.assert_array_equal(block.samples[0], np.arange(first, first + block.n_samples))
        assert (block.t_mono_ns, block.t_utc_ns) == (first, 2 * first)
        lengths.append(block.n_samples)
    return lengths


def test_samples_come_when_the_last_of_them_is_due(clock):
    """No sample is read before its time; pieces have 10 ms at least."""
    made = reader(4000, 4000)
    assert drain(made) == []
    clock.s += 0.00999
    assert drain(made) == []
    clock.s += 0.00002
    assert drain(made) == [80]
    clock.s += 0.1
    assert drain(made) == [800]
    assert made.taken == made.written == 880


def test_a_late_reader_loses_nothing(clock):
    """After a pause all samples that are due come, in the pieces of the source."""
    made = reader(4000, 4000, 100)
    clock.s += 60.0
    assert drain(made) == [4000, 4000, 100]
    assert made.exhausted


def test_blocks_stay_when_the_source_uses_its_memory_again(clock):
    """A block is a copy, in the given memory if there is one."""
    made = reader(80, 80)
    clock.s += 1.0
    into = np.empty((1, 50), np.float32)
    first = made.read(1000, into)
    assert np.may_share_memory(first.samples, into)
    assert first.n_samples == 50
    rest = made.read(1000)
    assert drain(made) == [80]
    np.testing.assert_array_equal(first.samples[0], np.arange(50))
    np.testing.assert_array_equal(rest.samples[0], np.arange(50, 80))


def test_relaxed_samples_come_in_large_pieces_and_at_once_when_they_are_wanted(clock):
    """What may come late comes half a second at a time; a demand ends that."""
    made = reader(4000, 4000)
    made.relax(0.5)
    assert made.awaited().until_s == pytest.approx(clock.s + 0.5)
    clock.s += 0.49
    assert drain(made) == []
    made.relax(0.0)
    assert made.awaited().until_s == pytest.approx(clock.s - 0.48)
    assert drain(made) == [3920]


def test_the_wait_ends_with_the_time_and_with_the_end(clock):
    """A wait says whether samples are there, and ``close`` ends it."""
    made = reader(4000)
    assert not made.wait(0.001)
    clock.s += 1.0
    assert made.wait(0.001)
    made.close()
    assert made.wait()
    assert made.exhausted
    assert made.read(100) is None


def test_a_source_that_is_not_started_has_no_samples(clock):
    """Before ``begin`` nothing is due."""
    made = PacedReader(FS, SampleLayout("float32", 1), iter(()), 0, lambda _: (0, 0), None)
    clock.s += 100.0
    assert made.read(100) is None
    assert made.awaited().until_s == math.inf
    assert not made.exhausted


def test_a_failure_ends_it(clock):
    """An error of the source is passed on, after all samples before it."""
    failures = []
    made = reader(100, failure=InputError("x: damaged"), failures=failures)
    clock.s += 1.0
    assert drain(made) == [100]
    assert [str(error) for error in failures] == ["x: damaged"]
    assert made.exhausted
