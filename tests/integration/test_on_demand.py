"""A pipeline that computes on demand: demand, attached sinks, pauses, resets."""

import threading

import numpy as np
import pytest

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.daemon import pipeline as pipeline_module
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.source.base import PulledSource

FS = 48000.0
HOP = 128
BLOCK = 480
MAIN = SpectrumSpec(FS, 1, win_length=256, hop=HOP, product="main")
MEAN = SpectrumSpec(
    FS, 1, win_length=255, hop=HOP, averaging="mean", averaging_frames=5, product="mean"
)
SPECS = (MAIN, MEAN)
NOISE = np.random.default_rng(7).uniform(-1, 1, (1, 400 * BLOCK)).astype(np.float32)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Check samples without demand at once, as tests push few."""
    monkeypatch.setattr(pipeline_module, "_IDLE_S", 0.001)


class Fed(PulledSource):
    """A source whose blocks the test gives one by one."""

    def __init__(self):
        super().__init__("full")
        self.name, self.description, self.fs, self.channels = "fed", "fed by a test", FS, 1

    def start(self, ring, _on_change):
        self._ring = ring

    def blocks(self, n_max):
        raise NotImplementedError

    def give(self):
        first = self._ring.written
        self._ring.write(NOISE[:, first : first + BLOCK], first, 0, 0)

    def stop(self):
        pass


class Collect:
    """A sink that keeps everything, or optionally raises."""

    def __init__(self, error=None):
        self.batches, self._error = [], error

    def write(self, batch):
        if self._error:
            raise self._error
        self.batches.append(batch)

    def of(self, product):
        return [batch for batch in self.batches if batch.spec.product == product]

    def rows(self, product):
        return [int(index) for batch in self.of(product) for index in batch.sample_index]


class Running:
    """A pipeline under test, which takes blocks one by one."""

    def __init__(self, specs=SPECS):
        self.source, self.sink = Fed(), Collect()
        self.pipeline = Pipeline(self.source, specs, NumpyEngine())
        self.pipeline.attach(self.sink, wants=False)
        self._changed = threading.Condition()
        self._n_analysed = 0
        self._pause_s = self.pipeline._pause_s
        self.pipeline._pause_s = self._idle

    def _idle(self):
        """Report, from the analysis thread, that all blocks have reached the sinks."""
        with self._changed:
            self._n_analysed = self.pipeline.ring.taken
            self._changed.notify()
        return self._pause_s()

    def give(self, n_blocks):
        """Push some blocks and one more, each after the analysis of all before."""
        for _ in range(n_blocks + 1):
            self.source.give()
            n = self.pipeline.ring.written
            with self._changed:
                assert self._changed.wait_for(lambda n=n: self._n_analysed >= n, 10.0)

    def __enter__(self):
        self.pipeline.start()
        return self

    def __exit__(self, *_):
        self.pipeline.stop()


def test_all_is_computed_without_demand_tracking():
    """Without demand tracking every row of every product is computed, the last one included."""
    with Running() as running:
        running.give(9)
    n = 10 * BLOCK
    assert running.sink.rows("main") == list(range(0, n - 255, HOP))
    assert running.sink.rows("mean") == list(range(0, n - 255, 5 * HOP))
    assert running.sink.of("mean")[-1].cut_frames == (n - 256) // HOP % 5 + 1
    assert running.pipeline.stats().computed == ("main", "mean")


def test_a_product_without_demand_is_computed_until_its_first_row():
    """A product without demand is computed until its first row, which proves the engine."""
    with Running() as running:
        running.pipeline.demand.want(frozenset())
        running.give(20)
        assert running.pipeline.stats().computed == ()
        assert running.pipeline.stats().row_due_samples == 0
        assert running.pipeline.stats().analysed == 21 * BLOCK
        before = running.sink.rows("main"), running.sink.rows("mean")
        assert before[0][0] == before[1][0] == 0
        running.give(20)
        assert (running.sink.rows("main"), running.sink.rows("mean")) == before


@pytest.mark.parametrize("product", ["main", "mean"])
def test_the_first_row_on_demand_comes_within_two_rows(product):
    """The first row on demand starts with the first complete frame after it, in its place."""
    spec = {spec.product: spec for spec in SPECS}[product]
    row_samples = spec.hop * spec.averaging_frames
    with Running() as running:
        running.pipeline.demand.want(frozenset())
        running.give(31)
        before = running.sink.of(product)
        n_before = sum(batch.n_frames + batch.skipped_rows for batch in before)
        reported_at = running.pipeline.ring.written
        running.pipeline.demand.want(frozenset({product}))
        assert running.pipeline.stats().computed == ()
        running.give(8)
        assert running.pipeline.stats().computed == (product,)
        due_samples = running.pipeline.stats().row_due_samples
        assert due_samples == 2 * row_samples + spec.win_length
        batch = running.sink.of(product)[len(before)]
        first = int(batch.sample_index[0])
        assert first == (n_before + batch.skipped_rows) * row_samples
        complete = first + (spec.averaging_frames - 1) * HOP + spec.win_length
        assert reported_at < complete <= reported_at + 2 * row_samples


def test_attached_sinks_are_demand():
    """An attached sink gets one product, from the next block on, until it is detached."""
    kept = Collect()
    with Running() as running:
        running.pipeline.demand.want(frozenset())
        running.give(20)
        running.pipeline.attach(kept, "mean")
        running.give(20)
        assert running.pipeline.stats().computed == ("mean",)
        running.pipeline.detach(kept)
        n_rows = len(kept.rows("mean"))
        assert n_rows >= 10
        assert kept.rows("main") == []
        running.give(20)
        assert len(kept.rows("mean")) == n_rows
        assert running.pipeline.stats().computed == ()
        with pytest.raises(
            ConfigError, match=r"^product='max': .* no such product; there are: main, mean$"
        ):
            running.pipeline.attach(kept, "max")


def test_an_attached_sink_that_fails_is_detached():
    """A failing sink is detached, its owner is informed, and the pipeline continues."""
    reported = []
    error = StorageError("disk full")
    with Running() as running:
        running.pipeline.attach(Collect(error), "main", reported.append)
        running.give(20)
        assert reported == [error]
        assert running.pipeline.stats().state == "running"
        assert len(running.sink.rows("main")) > 1


def test_a_pause_stops_all_and_loses_no_count():
    """During a pause nothing is computed despite demand, and rows are still counted."""
    with Running([MAIN]) as running:
        running.give(10)
        running.pipeline.demand.pause(is_paused=True)
        running.pipeline.demand.want(frozenset({"main"}))
        running.give(10)
        assert running.pipeline.stats().state == "paused"
        assert running.pipeline.stats().computed == ()
        n_before = len(running.sink.rows("main"))
        running.give(10)
        assert len(running.sink.rows("main")) == n_before
        running.pipeline.demand.pause(is_paused=False)
        running.give(10)
        assert running.pipeline.stats().state == "running"
    skipped = sum(batch.skipped_rows for batch in running.sink.batches)
    assert skipped > 20
    assert len(running.sink.rows("main")) + skipped == MAIN.n_frames(44 * BLOCK)


def test_a_reset_restarts_averages():
    """The row after a reset starts with the first frame not complete by then."""
    with Running([MEAN]) as running:
        running.give(9)
        running.pipeline.reset("mean")
        running.give(9)
    starts = [int(b.sample_index[0]) for b in running.sink.batches if b.discontinuity]
    assert starts == [-(-(10 * BLOCK - 254) // HOP) * HOP]


def test_after_a_change_each_product_is_computed_until_its_first_row():
    """After a change, each product is computed until its first row, then on demand again."""
    with Running() as running:
        running.pipeline.demand.want(frozenset())
        running.give(20)
        n_before = len(running.sink.batches)
        changed = SpectrumSpec(FS, 1, win_length=512, hop=256, product="main")
        running.pipeline.reconfigure((changed, MEAN))
        running.give(20)
        assert running.pipeline.specs == (changed, MEAN)
        assert running.pipeline.stats().computed == ()
        after = running.sink.batches[n_before:]
        assert {batch.spec for batch in after} == {changed, MEAN}
