"""``spectrod bench live --soak``: a run without loss, one with a loss, and its requirements."""

import json
import shutil

import pytest

from spectrod.apps.bench import soak
from spectrod.apps.bench.verifying_ring import WatchedRing
from spectrod.cli import machine, main

SECONDS = "8"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Run the command on one device; return its exit code and the rows of its report."""
    device = machine.working_devices("")[0][0]
    monkeypatch.setattr(machine, "list_devices", lambda: [device])

    def run(*arguments):
        path = tmp_path / "report.json"
        code = main(["bench", "live", "--soak", SECONDS, *arguments, "--json", str(path)])
        (measured,) = json.loads(path.read_text())["devices"]
        assert measured["mode"] == "soak"
        return code, measured["rows"]

    return run


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.audio
@pytest.mark.opencl
def test_short_soak_accounts_for_every_sample(bench, capsys):
    """A short soak reports twenty rows without loss, the true rate and the cost of callbacks."""
    code, rows = bench()
    assert code == 0
    assert len(rows) == 20
    last = rows[-1]
    assert last["faults"] == []
    # Thirteen seconds in all, and the time of the start.
    assert last["samples"] > 11 * soak.FS
    assert last["frames"] == pytest.approx(last["samples"] / 1024, abs=16)
    assert 0.0 < last["callback_p50_s"] <= last["callback_p999_s"]
    assert last["callback_share"] == pytest.approx(last["callback_p999_s"] / 5e-3)
    assert f"every one of {last['samples']} samples is accounted for" in capsys.readouterr().out


class LeakyRing(WatchedRing):
    """Loses one frame, once, and keeps counting as if it had not."""

    lost = 0

    def publish(self, position, n, sample_index, *times, overflow=False):
        index = sample_index - self.lost
        if not self.lost and index > 2 * soak.FS:
            n, self.lost = n - 1, 1
        super().publish(position, n, index, *times, overflow=overflow)


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.audio
@pytest.mark.opencl
def test_soak_that_loses_one_frame_fails(bench, monkeypatch, capsys):
    """A soak that loses one frame of half a million fails with exit code 1."""
    monkeypatch.setattr(soak, "WatchedRing", LeakyRing)
    code, rows = bench()
    assert code == 1
    assert rows[-1]["faults"][:2] == ["unaccounted: 1", "breaks: 1"]
    assert "spectrod: soak: unaccounted: 1; breaks: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--soak", "2"], "soak=2: must be 3 to 80000 s"),
        (["--soak", "5", "--channels", "1"], "rate=48000, channels=1: must be 48000 and 2"),
    ],
)
@pytest.mark.opencl
def test_unsupported_soaks_are_refused(arguments, text, capsys):
    """Unsupported times and formats are refused with the value and the rule."""
    assert main(["bench", "live", *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.opencl
def test_soak_without_pulseaudio(monkeypatch, capsys):
    """A machine without PulseAudio gets an error with the package's name."""
    # Not by an empty PATH, since PoCL aborts the process if it finds no linker.
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert main(["bench", "live", "--soak", "5"]) == 69
    assert "pulseaudio: not installed" in capsys.readouterr().err
