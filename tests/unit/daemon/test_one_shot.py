"""Recordings of one file on request: their end, and their status."""

import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.daemon.one_shot_recordings import status_of
from spectrod.daemon.recorder import Recorder
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.recording.one_shot import OneShot

FS = 1000.0
SPEC = SpectrumSpec(FS, nfft=64, win_length=64, hop=10, scaling="spectrum")
BEGIN_NS = 1_777_609_800_000_000_000


def batch(first, n_rows=1, spec=SPEC):
    index = 70_000 + 10 * (first + np.arange(n_rows, dtype=np.int64))
    t_ns = BEGIN_NS + index * 1_000_000
    values = np.ones((n_rows, 1, spec.n_bins), np.float32)
    return SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")


def block(first, n):
    t_ns = BEGIN_NS + first * 1_000_000
    return Block(np.zeros((2, n), np.float32), first, t_ns, t_ns, fs=FS)


class Source:
    """A feed that gives the test's data."""

    runner, product = SimpleNamespace(name="pond"), "spectrum"

    def attach(self, recorder, _finder):
        self.taker, attached = recorder, ExitStack()
        attached.callback(setattr, self, "taker", None)
        return attached


class File:
    """An output in memory that fails at a given point."""

    path, is_gone, fails, cut_length = Path("x.spd"), False, "", 0

    def __init__(self):
        self.chunks, self.ends = [], []

    @property
    def size_bytes(self):
        return sum(chunk.n_bytes for chunk in self.chunks)

    def fits(self, chunk):
        return getattr(chunk, "spec", SPEC) == SPEC

    def write(self, chunk):
        if self.fails == "write":
            raise StorageError("x.spd: full")
        self.chunks.append(chunk)

    def finish(self):
        self.ends.append("finish")
        if self.fails == "finish":
            raise StorageError("x.spd: full")

    def abort(self):
        self.ends.append("abort")


@pytest.fixture
def begin():
    """Start a recording of a file in memory, which is stopped after the test."""
    started = []

    def begin(*, is_of_samples=False, duration_s=None, fails=""):
        file, source = File(), Source()
        file.fails = fails
        shot = OneShot(
            file.path, lambda: file, "ann", is_of_samples=is_of_samples, duration_s=duration_s
        )
        one = Recorder(file.path.name, shot, source)
        one.start()
        one.attach()
        one.file, one.source = file, source
        started.append(one)
        return one

    yield begin
    for one in started:
        end(one)


def end(one):
    one.end()
    assert one.wait(30.0)
    return status_of(one)


def test_a_duration_ends_it_to_the_sample(begin):
    """A recording of samples ends at its duration within a block, with the usual status."""
    one = begin(is_of_samples=True, duration_s=0.25)
    for first in range(0, 400, 100):
        one.write(block(first, 100))
    assert one.wait(30.0)
    facts = status_of(one)
    assert sum(chunk.n_samples for chunk in one.file.chunks) == 250
    assert (facts["frames"], facts["who"]) == (250, "ann")
    counts = {key: facts[key] for key in ("rows", "samples", "lost_rows", "lost_samples", "files")}
    assert counts == {"rows": 0, "samples": 250, "lost_rows": 0, "lost_samples": 0, "files": []}
    assert facts["written_bytes"] == one.file.size_bytes == 250 * 2 * 4


def test_an_analysis_that_changes_ends_it(begin):
    """A change of the analysis ends the recording, keeps its rows and appears in the status."""
    one = begin()
    one.write(batch(0))
    one.write(batch(1, spec=SpectrumSpec(FS, nfft=64, win_length=64, hop=11, scaling="spectrum")))
    assert one.wait(30.0)
    facts = status_of(one)
    assert (facts["state"], facts["frames"], one.file.ends) == ("finished", 1, ["finish"])
    assert facts["error"] == "the analysis has changed, and a file holds one kind"


@pytest.mark.parametrize(("fails", "frames"), [("write", 0), ("finish", 1)])
def test_a_fault_of_the_disk_ends_it(fails, frames, begin):
    """A disk error ends the recording, appears in the status and leaves the written data."""
    one = begin(fails=fails)
    one.write(batch(0))
    facts = end(one)
    assert (facts["state"], facts["error"], facts["frames"]) == ("failed", "x.spd: full", frames)
    assert facts["files"] == []
    assert one.source.taker is None


def test_without_data_there_is_no_file(begin):
    """A recording without data leaves no file and has failed."""
    one = begin()
    facts = end(one)
    assert (facts["state"], facts["error"]) == ("failed", "x.spd: nothing came to be written")
    assert one.file.ends == ["abort"]


def test_losses_by_a_slow_disk_are_a_gap(begin):
    """On a slow disk the oldest blocks are dropped, counted and reported as a gap."""
    one, is_writing, answers = begin(is_of_samples=True), threading.Event(), threading.Event()
    write = one.file.write

    def hang(chunk):
        is_writing.set()
        assert answers.wait(30.0)
        write(chunk)

    one.file.write = hang
    one._samples.limit = 2 * block(0, 100).n_bytes
    one.write(block(0, 100))
    assert is_writing.wait(30.0)
    for first in range(100, 600, 100):
        one.write(block(first, 100))
    answers.set()
    facts = end(one)
    assert (facts["samples"], facts["lost_samples"], facts["dropped"]) == (300, 300, 300)
    assert [chunk.lost_samples for chunk in one.file.chunks] == [0, 300, 0]


def test_a_file_that_cannot_be_made_ends_it():
    """If the file cannot be created, the recorder ends with the error, without a log of a bug."""

    def refuse():
        raise ConfigError("no")

    shot, ended = OneShot(Path("x.spd"), refuse, "ann", is_of_samples=False), []
    one = Recorder("x.spd", shot, Source(), on_end=ended.append)
    one.start()
    assert one.has_started.wait(30.0)
    assert ended == [one]
    assert (str(one.failure), one.was_attached) == ("no", False)


def test_data_that_come_after_its_end_are_not_taken(begin):
    """A recorder that has ended by itself before it is attached lets go of its source."""
    one = Recorder("x.spd", OneShot(Path("x.spd"), File, "ann", is_of_samples=False), Source())
    one.start()
    end(one)
    one.attach()
    assert one.feed.taker is None


def test_the_first_data_may_end_it():
    """A recording that ends with its first data, while it is being attached, counts as one."""

    class Sudden(Source):
        def attach(self, recorder, finder):
            attached = super().attach(recorder, finder)
            recorder.write(batch(0, 7))
            assert recorder.wait(30.0)
            return attached

    shot, found = OneShot(Path("x.spd"), File, "ann", is_of_samples=False, duration_s=0.05), []
    note = lambda one: found.append((one.was_attached, one.status()["rows"]))  # noqa: E731
    one = Recorder("x.spd", shot, Sudden(), on_end=note)
    one.start()
    one.attach()
    assert found == [(True, 5)]
    assert one.feed.taker is None


def test_a_defect_ends_it(begin, caplog):
    """An unexpected exception ends the recording as failed, logs it, and aborts the file."""
    one = begin()
    one.file.write = {}.__getitem__
    one.write(batch(0))
    assert one.wait(30.0)
    facts = status_of(one)
    assert facts["state"] == "failed"
    assert facts["error"].endswith("; please report this")
    assert "Traceback" in caplog.text
    assert (one.file.ends, one.source.taker) == (["abort"], None)
