"""Meters of a running source: what a loss of samples does to their intervals."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.daemon.demand import Demand
from spectrod.daemon.live_meters import LiveMeter
from spectrod.dsp.blocks import Block
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.levels import LevelMeter
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.transfer.transfer_config import TransferConfig

FS = 8000
N = FS // 2
"""Samples of an interval, of 0.5 s."""
AT = 1000
"""Where in the second interval samples are lost."""


def levels(first_sample=0):
    return LevelMeter(
        FS, 2, quantities=["LAeq", "LAFmax"], interval_s=0.5, first_sample=first_sample
    )


def features(first_sample=0):
    spec = SpectrumSpec(FS, 2, win_length=256, hop=128)
    return feature_meter(spec, ["flux_max"], interval_s=0.5, first_sample=first_sample)


def transfer(first_sample=0, **changes):
    config = TransferConfig("pair", interval_s=0.5, align="start", win_length=256, **changes)
    return config.bind(MeasuredSignals("", FS, ("0", "1"), (None, None))).open(first_sample)


def delayed(first_sample=0):
    return transfer(first_sample, delay_samples=5)


METERS = pytest.mark.parametrize("open_meter", [levels, features, transfer, delayed])


def samples(n=3 * N + 4101):
    """Return noise of three intervals and a chunk of the filters, (2, n) float32."""
    x = np.random.default_rng(3).standard_normal((2, n)) * 0.1
    x[:, N + AT :] += 0.5  # so that a frame or a filter across the loss would show
    return x.astype(np.float32)


def rows_of(open_meter, x, discontinuity, lost_samples=0, at=N + AT):
    """Return the rows of a live meter that gets samples in two blocks."""
    rows = []
    meter = LiveMeter(
        SimpleNamespace(),
        SimpleNamespace(product="p"),
        open_meter,
        Demand(None),
        lambda _encoder, row, _t_ns: rows.append(row),
        SimpleNamespace(),
    )
    meter.write(Block(x[:, :at], 0, 0, 0, fs=FS))
    t_ns = round((at + lost_samples) / FS * 1e9)
    second = (x[:, at:], at + lost_samples, t_ns, t_ns)
    meter.write(Block(*second, discontinuity=discontinuity, lost_samples=lost_samples, fs=FS))
    return rows[:3]


@METERS
def test_a_loss_of_unknown_size_flags_its_interval(open_meter):
    """It has a gap, though no sample is known to be missing; those before and after have none."""
    x = samples()
    rows = rows_of(open_meter, x, discontinuity=True)
    assert [bool(row.flags[0] & IntervalFlag.GAP) for row in rows] == [False, True, False]
    assert [row.first_sample for row in rows] == [0, N, 2 * N]
    whole = rows_of(open_meter, x, discontinuity=False)
    assert [int(row.flags[0]) & IntervalFlag.GAP for row in whole] == [0, 0, 0]
    assert rows[0].values.tobytes() == whole[0].values.tobytes()
    assert not np.array_equal(rows[1].values, whole[1].values)


@pytest.mark.parametrize("open_meter", [levels, features, transfer])
@pytest.mark.parametrize("rest", [0, 5, N - 1])
def test_the_last_whole_interval_of_a_source_that_ends(open_meter, rest):
    """It is published with the others; the rest of an interval after it is not."""
    rows = []
    meter = LiveMeter(
        SimpleNamespace(),
        SimpleNamespace(product="p"),
        open_meter,
        Demand(None),
        lambda _encoder, row, t_ns: rows.append((row, t_ns)),
        SimpleNamespace(),
    )
    x = samples()[:, : 3 * N + rest]
    meter.write(Block(x, 0, 7, 0, fs=FS))
    meter.finish()
    assert [(row.first_sample, row.n_samples) for row, _ in rows] == [(k * N, N) for k in range(3)]
    assert [t_ns for _, t_ns in rows] == [7 + k * 500_000_000 for k in range(3)]
    meter.finish()
    assert len(rows) == 3


def test_filters_start_again_after_a_loss_of_unknown_size():
    """The interval is settling, too: its values are those after a gap of any size."""
    x = samples()
    unknown = rows_of(levels, x, discontinuity=True)[1]
    assert unknown.flags[0] == IntervalFlag.GAP | IntervalFlag.SETTLING
    assert unknown.n_samples == unknown.due_samples == N
    known = rows_of(levels, x, discontinuity=True, lost_samples=7)[1]
    parts = IntervalFlag.GAP | IntervalFlag.SETTLING | IntervalFlag.PARTIAL
    assert (known.flags[0], known.n_samples) == (parts, N - 7)


def test_no_frame_spans_a_loss_of_unknown_size():
    """The interval has the frames of its two parts alone."""
    rows = rows_of(features, samples(), discontinuity=True)
    frames = [(n - 256) // 128 + 1 for n in (AT, N - AT)]
    assert rows[1].n_frames == sum(frames) < rows[0].n_frames


def test_the_samples_after_a_loss_at_the_begin_of_an_interval_are_whole():
    """Between two intervals nothing of either is missing: the second settles, and has no gap."""
    rows = rows_of(levels, samples(), discontinuity=True, at=N)
    assert [int(row.flags[0]) for row in rows[1:]] == [IntervalFlag.SETTLING, 0]


def test_a_first_block_after_a_loss_is_no_gap():
    """What came before a meter began does not concern it."""
    rows = []
    meter = LiveMeter(
        SimpleNamespace(),
        SimpleNamespace(product="p"),
        levels,
        Demand(None),
        lambda _encoder, row, _t_ns: rows.append(row),
        SimpleNamespace(),
    )
    meter.write(Block(samples(), 0, 0, 0, discontinuity=True, fs=FS))
    assert not any(row.flags[0] & IntervalFlag.GAP for row in rows)
