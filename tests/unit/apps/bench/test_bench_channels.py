import numpy as np
import pytest

from spectrod.apps.bench import channels
from spectrod.apps.bench.live import LiveRun
from spectrod.dsp.spectrum_rules import CHANNELS_MAX


@pytest.mark.parametrize("limit", [0, 1, 15, 255, 256, 300, 1000, CHANNELS_MAX - 1, CHANNELS_MAX])
def test_the_search_finds_the_limit(limit):
    """The search ends after few runs, within a 16th (and one) below the true limit."""
    rows = list(channels.search(lambda n: {"channels": n, "keeps_up": n <= limit}))
    found = channels.largest(rows)
    assert found <= limit <= found * (1 + 1 / 16) + 1
    assert len(rows) <= 12
    assert len({row["channels"] for row in rows}) == len(rows)


def test_the_search_stops_at_the_most_there_can_be():
    """If every number of channels keeps up, the search returns the largest one allowed."""
    rows = list(channels.search(lambda n: {"channels": n, "keeps_up": True}))
    assert channels.largest(rows) == CHANNELS_MAX


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.5])
def test_a_backlog_grows_by_the_missing_speed(rate):
    """Results that fall behind by a share of each hop give that growth, with or without jitter."""
    hop_s = 0.02
    jitter = np.random.default_rng(0).exponential(1e-4, 400)
    latencies = rate * hop_s * np.arange(400) + jitter
    assert channels.backlog_growth(latencies, hop_s) == pytest.approx(rate, abs=1e-4)


def test_too_few_frames_give_no_growth():
    """Fewer than four frames are too few to measure a growing backlog."""
    assert channels.backlog_growth(np.ones(3), 0.02) == np.inf


@pytest.mark.parametrize(
    ("lost", "overruns", "growth", "expected"),
    [(0, 0, 0.0, True), (1, 0, 0.0, False), (0, 1, 0.0, False), (0, 0, 0.02, False)],
)
def test_keeping_up(lost, overruns, growth, expected):
    """A run keeps up if nothing is lost, nothing overruns and no backlog grows."""
    run = LiveRun(np.ones(8), {"lost": lost, "overruns": overruns})
    assert channels.keeps_up(run, growth) is expected
