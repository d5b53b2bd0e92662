"""Rows that show whether their samples are finite."""

import numpy as np
import pytest

import spectrod
from spectrod.analysis.finite_rows import are_finite, is_finite_around, shows_finite
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import InputError

FS = 48_000
NOISE = np.random.default_rng(20_261_125).uniform(-1, 1, (2, 9_000)).astype(np.float32)


@pytest.mark.parametrize(
    ("settings", "shows"),
    [
        ({}, True),
        ({"averaging": "mean", "averaging_frames": 3}, True),
        ({"bands": "third-octave", "scaling": "dbfs"}, True),
        ({"averaging": "max", "averaging_frames": 3}, False),
        ({"hop": 600}, False),
        ({"averaging": "mean", "rate_hz": 7.0}, False),
        ({"bands": "reassigned", "hop": 128}, False),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_spectrogram_of_samples_that_are_not_finite(settings, shows, engine, bad):
    """A sample that is not finite is named wherever it is, whether rows or samples are tested."""
    chosen = {"win_length": 512, "hop": 128} | settings
    assert shows_finite(SpectrumSpec(FS, 1, **chosen)) == shows
    for where in [0, 1, 511, 4000, 8959, 8960, 8999]:
        samples = NOISE.copy()
        samples[1, where] = bad
        with pytest.raises(InputError, match=f"sample {where} of channel 1 is {bad}: must be"):
            spectrod.spectrogram(samples, FS, engine=engine, **chosen)


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_the_first_of_several_samples_is_named(engine):
    """Of samples in frames and after the last frame the error names the first one."""
    samples = NOISE[0].copy()
    samples[[4000, 8999]] = np.nan
    with pytest.raises(InputError, match="sample 4000 of channel 0 is nan: must be finite"):
        spectrod.spectrogram(samples, FS, win_length=512, hop=128, engine=engine)


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_huge_samples_are_no_error(engine):
    """Finite samples whose power is infinite have infinite rows."""
    s = spectrod.spectrogram(NOISE[0] * np.float32(1e30), FS, win_length=512, engine=engine)
    assert np.isinf(s.values).all()


def test_one_value_of_each_row_is_read():
    """Rows are finite if the first value of each is, and samples around frames if all are."""
    rows = np.ones((5, 2, 9), np.float32)
    assert are_finite(rows)
    rows[3, 1] = np.inf
    assert not are_finite(rows)
    samples = NOISE[:, :100].copy()
    samples[:, 10:90] = np.nan
    assert is_finite_around(samples, 10, 90)
    assert not is_finite_around(samples, 11, 90)
    assert not is_finite_around(samples, 10, 89)
