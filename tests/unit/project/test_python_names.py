"""Names of Python that the documents mention are there after ``import spectrod``."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spectrod
from spectrod.lib.errors import ConfigError

ROOT = Path(__file__).parents[3]
PACKAGE = Path(spectrod.__file__).parent
NAME = re.compile(r"(?<![\w\"/.])spectrod((?:\.[A-Za-z_][A-Za-z0-9_]*)+)")


def documented():
    """Return the dotted names in texts and code of the documents that begin with a module."""
    texts = [
        path.read_text("utf-8")
        for path in (ROOT / "docs").rglob("*.md")
        if path.parent.name != "adr"  # of what was then
    ]
    found = {name for text in texts for name in NAME.findall(text)}
    top = {path.stem for path in PACKAGE.iterdir()} | set(spectrod.__all__)
    return sorted(name for name in found if name.split(".")[1] in top)


def test_documented_names_are_reached_without_another_import():
    """Each documented name is found by its dots alone, and importing spectrod loads no NumPy."""
    names = documented()
    assert ".measure.levels.LevelMeter" in names
    assert len(names) > 20
    code = "import sys, spectrod; assert 'numpy' not in sys.modules\nspectrod"
    program = "\n".join([f"{code}{names[0]}", *(f"spectrod{name}" for name in names)])
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_what_is_no_module_is_no_attribute():
    """A name that is no module raises AttributeError, for a package inside as well."""
    for owner in (spectrod, spectrod.measure.tones, spectrod.formats.picture):
        assert not hasattr(owner, "nothing")
        assert not hasattr(owner, "_private")


@pytest.mark.parametrize("averaging", ["mean", "max", "min", "floor", "L90"])
def test_averages_need_a_number_of_frames(averaging):
    """An average over nothing stated is refused in Python as on the command line."""
    rule = f"averaging='{averaging}': needs averaging_frames, the frames of a row, or rate_hz"
    with pytest.raises(ConfigError, match=rule):
        spectrod.spectrogram(np.zeros(8000), 8000, averaging=averaging)
    with pytest.raises(ConfigError, match=rule):
        spectrod.Stft(8000, averaging=averaging)


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"averaging": "mean", "averaging_frames": 5}, 5),
        ({"averaging": "mean", "averaging_frames": 1}, 25),
        ({"averaging": "mean", "rate_hz": 10}, 10),
        ({"averaging": "exponential"}, 25),
        ({}, 25),
    ],
)
def test_stated_averages_are_made(given, rows):
    """With a number of frames or a rate, rows are averages; exponential ones need neither."""
    x = np.random.default_rng(2).standard_normal(8000)
    found = spectrod.spectrogram(
        x, 8000, win_length=320, hop=320, window="rectangular", engine="numpy", **given
    )
    assert found.values.shape[1] == rows
