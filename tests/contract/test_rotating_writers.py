"""What all writers of files keep: of ``spectrod record``, of a configuration, and on request.

Each policy of ``RotatingWriter`` gets the same samples, spectra and measurements, of ten items a
second from a whole second on, and files of one second in memory.
"""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.cli.periods import Period
from spectrod.cli.record_files import OutputFiles
from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.lib.errors import StorageError
from spectrod.measure.levels import LevelRow
from spectrod.recording.one_shot import OneShot
from spectrod.recording.recorder_clock import Clock
from spectrod.recording.retrying_writer import RetryingWriter

SECOND_NS = 10**9
ITEM_NS = SECOND_NS // 10
BEGIN_NS = 1_777_609_800 * SECOND_NS
SPEC = SpectrumSpec(1000.0, win_length=100, hop=100)
SPANS = [range(10), range(10, 20), range(20, 25)]
"""Numbers of 25 items, by the second in which they begin."""


# ---- the items


def samples(first, n, gap=0):
    values = np.arange(first, first + n, dtype=np.float32)[np.newaxis]
    return [Block(values, first, 0, BEGIN_NS + first * ITEM_NS, bool(gap), gap, fs=10.0)]


def spectra(first, n, gap=0):
    index = np.arange(first, first + n)
    values = np.repeat(index.astype(np.float32), SPEC.n_values).reshape(n, 1, -1)
    times = index * 100, index * ITEM_NS, BEGIN_NS + index * ITEM_NS
    return [SpectrumBatch(values, *times, SPEC, "numpy", gap, discontinuity=bool(gap))]


def measurements(first, n):
    about = SimpleNamespace(interval_s=0.1)
    return [
        MeasurementChunk(
            LevelRow(
                *(100 * k, 100, 100, BEGIN_NS + k * ITEM_NS, 0.1),
                *(np.full((1, 1), float(k)), np.zeros(1, np.uint8), 0, ()),
            ),
            about,
        )
        for k in range(first, first + n)
    ]


def numbers_of(chunk):
    """Return the numbers of a chunk's items, which are their values."""
    if isinstance(chunk, MeasurementChunk):
        return [int(chunk.row.values[0, 0])]
    of_first_bin = chunk.samples[0] if isinstance(chunk, Block) else chunk.values[:, 0, 0]
    return of_first_bin.astype(int).tolist()


# ---- the files, and the policies that fill them


class File:
    """A file in memory that fails at a given step."""

    size_bytes = cut_length = 0
    is_gone = False

    def __init__(self, path, fails):
        if fails == "open":
            raise StorageError(f"{path}: no")
        self.path, self._fails = path, fails
        self.chunks, self.ends = [], []

    @property
    def numbers(self):
        return [number for chunk in self.chunks for number in numbers_of(chunk)]

    def fits(self, _chunk):
        return True

    def write(self, chunk):
        if self._fails == "write":
            raise StorageError(f"{self.path}: full")
        self.chunks.append(chunk)

    def finish(self):
        if self._fails == "finish":
            raise StorageError(f"{self.path}: full")
        self.ends.append("finish")

    def abort(self):
        self.ends.append("abort")


class Policy(Clock):
    """A writer, its files, and the clock of its attempts; the first file may fail."""

    n_spans = len(SPANS) + 1
    now_s = 0.0

    def __init__(self, fails=""):
        self._fails, self.files, self.reports = fails, [], []
        self.writer = self.make_writer()

    def make(self, *_):
        fails, self._fails = self._fails, ""
        self.files.append(File(Path(f"{len(self.files)}.x"), fails))
        return self.files[-1]

    def monotonic_s(self):
        return self.now_s

    def write(self, chunks):
        for chunk in chunks:
            self.writer.write(chunk)
            self.now_s += chunk.length / 10


class Command(Policy):
    """Files of ``spectrod record`` for periods."""

    def make_writer(self):
        return OutputFiles(lambda _: Path("x"), self.make, Period(SECOND_NS))

    def failure(self):
        return str(self.writer.failure or "")


class Configured(Policy):
    """Files of ``[recordings.NAME]``."""

    def make_writer(self):
        random.seed(7)  # the wait before a retry is random
        folder = SimpleNamespace(stamp=lambda _name: 0)
        reporter = SimpleNamespace(
            report=lambda *_: None, warn=lambda *report: self.reports.append(report)
        )
        return RetryingWriter(
            RecordingConfig("night", rotate_s=1), self.make, folder, reporter, self
        )

    def failure(self):
        kinds = [kind for kind, _ in self.reports]
        assert kinds in ([], ["record.failed"], ["record.failed", "record.resumed"])
        return self.reports[0][1].removesuffix("; it is tried again") if kinds else ""


class Requested(Policy):
    """A file of ``record.start`` with a duration."""

    n_spans = 1

    def make_writer(self):
        shot = OneShot(Path("x"), self.make, "ann", is_of_samples=False, duration_s=1.0)
        shot.start()
        return shot

    def failure(self):
        return self.writer.status()["error"]


@pytest.fixture(params=[Command, Configured, Requested])
def policy(request):
    return request.param


@pytest.fixture(params=[samples, spectra, measurements])
def make_items(request):
    return request.param


# ---- the contract


@pytest.mark.parametrize("size", [1, 3, 25])
def test_each_item_is_in_the_file_of_its_time(policy, make_items, size):
    """Each item is once in the file of the span in which it begins, in order, in any chunks.

    A span without items has no file.
    """
    site = policy()
    for first in range(0, 25, size):
        site.write(make_items(first, min(size, 25 - first)))
    site.write(make_items(47, 2))
    site.writer.finish()
    expected = [*SPANS, range(47, 49)][: site.n_spans]
    assert [file.numbers for file in site.files] == [list(numbers) for numbers in expected]
    begins_ns = [file.chunks[0].begin_utc_ns - BEGIN_NS for file in site.files]
    assert begins_ns == [numbers[0] * ITEM_NS for numbers in expected]
    assert all(file.ends == ["finish"] for file in site.files)
    n_items = sum(map(len, expected))
    assert (site.writer.written, site.writer.missed, site.failure()) == (n_items, 0, "")


@pytest.mark.parametrize("make_marked", [samples, spectra])
def test_a_gap_is_of_the_item_after_it(policy, make_marked):
    """A gap before a chunk is reported with its first item, and in no later file."""
    site = policy()
    site.write(make_marked(8, 4, gap=800))
    site.writer.finish()
    firsts = [file.chunks[0] for file in site.files]
    found = [(one.span_samples - one.between(1, one.length).span_samples) for one in firsts]
    assert [n >= 800 for n in found] == [True, False][: site.n_spans]
    assert [one.discontinuity for one in firsts] == [True, False][: site.n_spans]


@pytest.mark.parametrize("fails", ["open", "write", "finish"])
def test_a_fault_costs_its_file_alone(policy, make_items, fails):
    """A file that fails is not finished and its error is known; later files are whole."""
    if policy is Requested and fails == "open":
        with pytest.raises(StorageError, match=r"^0\.x: no$"):
            policy(fails)
        return
    site = policy(fails)
    for first in range(0, 25, 5):
        site.write(make_items(first, 5))
    site.writer.finish()
    assert site.failure() == ("0.x: no" if fails == "open" else "0.x: full")
    later = site.files if fails == "open" else site.files[1:]
    assert all(file.ends == ["abort"] for file in site.files if file not in later)
    assert all(file.ends == ["finish"] for file in later)
    numbers = [number for file in later for number in file.numbers]
    assert numbers == sorted({*numbers})
    if policy is Requested:
        assert numbers == []
        return
    assert numbers[-10:] == [*range(15, 25)]
    for file in later:
        assert len({number // 10 for number in file.numbers}) == 1
    if policy is Configured:
        assert site.writer.written + site.writer.missed == 25


def test_without_items_there_is_no_file(policy):
    """Where nothing came, no file is finished."""
    site = policy()
    site.writer.finish()
    assert all(file.ends == ["abort"] for file in site.files)


def test_an_abort_leaves_finished_files(policy, make_items):
    """An abort gives up the open file, and none that has ended."""
    site = policy()
    site.write(make_items(0, 15))
    site.writer.abort()
    ends = [file.ends for file in site.files]
    assert ends == [["finish"], ["abort"]][: site.n_spans]
