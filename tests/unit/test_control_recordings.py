"""Where recordings go, and what of a product a picture is made of."""

from pathlib import Path

import numpy as np
import pytest

from spectrod.control import pictures
from spectrod.errors import ConfigError
from spectrod.recorder.folders import state_folder
from spectrod.types import SpectrumBatch, SpectrumSpec


@pytest.mark.parametrize(
    ("wanted", "service", "home", "folder"),
    [
        ("/a", "/b", "/c", "/a"),
        ("", "/b", "/c", "/b"),
        ("", "/b:/x", "/c", "/b"),
        ("", "", "/c", "/c/spectrod"),
        ("", "", "relative", "/home/ann/.local/state/spectrod"),
        ("", "", "", "/home/ann/.local/state/spectrod"),
    ],
)
def test_the_state_folder_is_the_named_the_services_or_the_users(
    wanted, service, home, folder, monkeypatch
):
    """In this order."""
    monkeypatch.setenv("STATE_DIRECTORY", service)
    monkeypatch.setenv("XDG_STATE_HOME", home)
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_folder(wanted) == Path(folder)


def batch(spec, values, first_sample=0):
    rows = np.arange(len(values))
    times = np.zeros(len(values), np.int64)
    indices = first_sample + rows * spec.hop * spec.averaging_frames
    return SpectrumBatch(values, indices, times, times, spec, "numpy")


class Collect:
    """Takes the place of the picture."""

    def __init__(self, _path, _options, _transpose, spec, _software):
        self.spec, self.batches = spec, []

    def submit(self, batch):
        assert batch.spec == self.spec
        self.batches.append(batch)


@pytest.fixture
def picture(monkeypatch):
    """Make a sink whose picture only collects."""
    monkeypatch.setattr(pictures, "PictureSink", Collect)
    path = Path("x.png")
    return lambda spec, duration_s=None: pictures.ProductPicture(path, spec, duration_s, "")


@pytest.mark.parametrize(("n_frames", "kept"), [(1, 1), (7, 5), (5, 5)])
def test_a_duration_ends_it_to_the_row(n_frames, kept, picture):
    """Counted from the first row's first sample, wherever that was, and over several batches."""
    spec = SpectrumSpec(1000.0, nfft=64, win_length=64, hop=10, scaling="spectrum")
    sink = picture(spec, 0.05)
    values = np.ones((1, 1, spec.n_bins), np.float32)
    for k in range(n_frames):
        sink.submit(batch(spec, values, 70_000 + 10 * k))
    assert sink.n_frames == kept
    assert sink.is_full == (n_frames > kept)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bands": "octave"}, "product='density': pictures show no bands"),
        ({"iq": True, "channels": 2}, "product='density': pictures show no two-sided or complex"),
        ({"nfft": 1 << 20, "channels": 1}, "1 channels of 524289 bins need 8000 MB for a picture"),
    ],
)
def test_what_no_picture_can_show_is_refused(options, text, picture):
    """Before anything is recorded."""
    with pytest.raises(ConfigError) as refused:
        picture(SpectrumSpec(48000.0, **options))
    assert text in str(refused.value)


def test_an_analysis_that_changes_ends_it(picture):
    """What came before stays."""
    spec = SpectrumSpec(1000.0, nfft=64, win_length=64, hop=10)
    other = SpectrumSpec(1000.0, nfft=64, win_length=64, hop=11)
    sink = picture(spec)
    values = np.zeros((1, 1, spec.n_bins), np.float32)
    sink.submit(batch(spec, values))
    with pytest.raises(ConfigError, match="the analysis has changed, and a picture holds one"):
        sink.submit(batch(other, values))
    assert sink.n_frames == 1
