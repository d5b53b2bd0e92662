"""Commands that measure samples, where a sound card delivers nothing or goes away."""

from collections.abc import Iterator

import numpy as np
import pytest

from spectrod.cli import main
from spectrod.lib.stats import CaptureStats
from spectrod.source.signal import SignalSource

FS = 8000
COMMANDS = ("levels", "features", "tones", "transfer")


class Card(SignalSource):
    """A sound card that delivers some blocks of a tone, and is absent then."""

    is_live = True

    def __init__(self, n_blocks: int) -> None:
        super().__init__("sine,1000,-20", float(FS), 2, "full")
        self._n_blocks = n_blocks
        self.is_absent = False

    def blocks(self, n_max: int) -> Iterator[np.ndarray]:
        """Yield the blocks, and wait for the end."""
        blocks = super().blocks(n_max)
        for _ in range(self._n_blocks):
            yield next(blocks)[:, :4000]
        self.is_absent = True
        self._stopping.wait(60.0)

    def capture(self) -> CaptureStats:
        """Return what the card waits for."""
        return CaptureStats(waiting_for="no samples for 0.9 s" if self.is_absent else "")


def measure(monkeypatch, command, n_blocks, duration_s):
    card = Card(n_blocks)
    monkeypatch.setattr("spectrod.apps.measurements.measured_source.open_source", lambda *_: card)
    return main([command, "soundcard", "--duration", str(duration_s)])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_card_that_delivers_nothing_is_an_error_after_the_duration(monkeypatch, capsys, command):
    """Without a sample when the duration is over, commands end with 69 and say why."""
    assert measure(monkeypatch, command, n_blocks=0, duration_s=0.2) == 69
    found = capsys.readouterr()
    assert "no samples in 0.2 s: no samples for 0.9 s" in found.err
    assert (found.err.count("\n"), found.out) == (1, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_card_that_goes_away_ends_with_the_duration(monkeypatch, capsys, command):
    """What came before a card went away is measured when the duration is over, with a warning."""
    assert measure(monkeypatch, command, n_blocks=3, duration_s=1.8) == 0
    found = capsys.readouterr()
    assert "the duration is over, and the source has not come back" in found.err
    assert found.out
