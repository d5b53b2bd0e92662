"""Names of Python that the documents mention are there after ``import spectrod``."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import spectrod
from spectrod.formats.pyramid import PyramidWriter
from spectrod.lib.errors import ConfigError
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.levels import LevelMeter, OctaveMeter
from spectrod.measure.transfer.transfer_meter import TransferIntervalMeter

ROOT = Path(__file__).parents[3]
PACKAGE = Path(spectrod.__file__).parent
NAME = re.compile(r"(?<!-m )(?<![\w\"/.])spectrod((?:\.[A-Za-z_][A-Za-z0-9_]*)+)")
PROGRAM = re.compile(r"-m (spectrod(?:\.[a-z_]+)+)")
TEXTS = [
    path.read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md")
    if path.parent.name != "adr"  # of what was then
]


def documented():
    """Return the dotted names in texts and code of the documents that begin with a module."""
    found = {name for text in TEXTS for name in NAME.findall(text)}
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


def test_documented_programs_are_there():
    """Each ``python -m`` of the documents names a module, or a package that can be run."""
    names = {name for text in TEXTS for name in PROGRAM.findall(text)}
    assert {"spectrod.apps.bench.fault_soak", "spectrod.source.capture"} <= names
    for name in names:
        is_package = find_spec(name).submodule_search_locations is not None
        assert find_spec(f"{name}.__main__" if is_package else name) is not None, name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("errors", "lib.errors"),
        ("features.indices", "measure.features.indices"),
        ("features.kurtosis", "measure.features.kurtosis"),
        ("features.shape", "measure.features.shape"),
        ("levels", "measure.levels"),
        ("meters.features", "measure.features.feature_meter"),
        ("meters.tones", "measure.tones.tone_meter"),
        ("meters.transfer", "measure.transfer.transfer_meter"),
        ("tones.distortion", "measure.tones.distortion"),
        ("tones.peaks", "measure.tones.peaks"),
        ("tones.tracker", "measure.tones.tone_tracker"),
        ("triggers.config", "measure.triggers.trigger_config"),
        ("triggers.trigger", "measure.triggers.trigger"),
        ("two_channel.delay", "measure.transfer.delay"),
        ("two_channel.sweep", "measure.transfer.sweep"),
        ("two_channel.transfer", "measure.transfer.cross_spectra"),
    ],
)
def test_earlier_names_are_the_same_modules(old, new):
    """A module that was documented under another name has both, and the old one warns."""
    program = (
        "import warnings; warnings.simplefilter('always')\n"
        f"import spectrod.{old} as first\n"
        f"import spectrod.{new} as second\n"
        "assert first is second, (first, second)\n"
        f"assert second.__spec__.name == second.__name__ == 'spectrod.{new}'\n"
        f"import spectrod; assert spectrod.{new} is second"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert f"DeprecationWarning: spectrod.{old} is spectrod.{new} now" in done.stderr


@pytest.mark.parametrize(
    ("owner", "old", "new"),
    [
        (FrameMeter, "feed", "push"),
        (LevelMeter, "feed", "push"),
        (OctaveMeter, "feed", "push"),
        (TransferIntervalMeter, "feed", "push"),
        (PyramidWriter, "submit", "write"),
    ],
)
def test_earlier_names_of_methods_warn_and_do_the_same(owner, old, new):
    """A method by its earlier name warns, and passes all to that of now, of a subclass too."""

    class Kept(owner):
        def __init__(self):
            pass

    setattr(Kept, new, lambda self, *args, **keywords: (self, args, keywords))
    one = Kept()
    with pytest.warns(DeprecationWarning, match=rf"^Kept\.{old} is Kept\.{new} now$") as found:
        assert getattr(one, old)(1, missing_samples=2) == (one, (1,), {"missing_samples": 2})
    assert found[0].filename == __file__
    assert getattr(owner, old).__name__ == old


def test_levels_are_the_same_by_the_earlier_name():
    """Rows that ``feed`` returns are those of ``push``."""
    samples = np.random.default_rng(5).uniform(-1.0, 1.0, (1, 8000))
    meters = [LevelMeter(8000.0, quantities=["LAeq"], interval_s=0.25) for _ in range(2)]
    with pytest.warns(DeprecationWarning, match=r"^LevelMeter\.feed is LevelMeter\.push now$"):
        rows = meters[0].feed(samples, utc_ns=10**18)
    others = meters[1].push(samples, utc_ns=10**18)
    assert rows
    for row, other in zip(rows, others, strict=True):
        np.testing.assert_array_equal(row.values, other.values)
        assert row.begin_utc_ns == other.begin_utc_ns


def test_earlier_names_of_nothing_are_not_found():
    """A module that never was is not found, with its new name in the error."""
    with (
        pytest.warns(DeprecationWarning, match="spectrod.tones is spectrod.measure.tones now"),
        pytest.raises(
            ModuleNotFoundError, match=r"No module named 'spectrod.measure.tones.absent'"
        ),
    ):
        import_module("spectrod.tones.absent")


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
