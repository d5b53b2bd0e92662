import numpy as np
import pytest

from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.apps.bench.spectra import FORMATS, Spectra, make_spec, require_right
from spectrod.lib.errors import InternalError


def spectra(product="power", sample_format="float32", channels=2, n=64, hop=24):
    spec = make_spec(n, hop, channels, product)
    return Spectra.of_noise(spec, product, sample_format, 300 * n)


def right_rows(this):
    return ReferenceStft(*this.kernel_spec).rows(this.samples, 0, this.spec.hop, this.n_frames)


@pytest.mark.parametrize("sample_format", FORMATS)
@pytest.mark.parametrize("product", ["power", "db", "octave"])
def test_the_error_is_that_of_the_worst_end(product, sample_format):
    """The error covers the first and the last frame; NaN or a wrong shape gives NaN."""
    this = spectra(product, sample_format, n=512)
    right = right_rows(this)
    assert right.shape == this.shape
    assert this.error(right) == 0.0
    for place in (0, -1):
        wrong = right.copy()
        wrong[place, 1] += 3.0 if product == "db" else wrong[place, 1]
        assert this.error(wrong) > this.limit
        wrong[place, 0, 3] = np.nan
        assert np.isnan(this.error(wrong))
    assert np.isnan(this.error(right[:, :1]))


@pytest.mark.parametrize("sample_format", FORMATS)
def test_noise_is_the_same_in_every_format(sample_format):
    """Integer noise is the float noise, rounded at full scale."""
    floats, this = spectra().samples, spectra(sample_format=sample_format)
    assert this.samples.dtype == FORMATS[sample_format]
    np.testing.assert_allclose(this.samples / this.full_scale, floats, atol=2.0**-15)


def test_decibels_are_held_to_a_thousandth():
    """An error of 0.0005 dB passes, one of 0.002 dB fails."""
    this = spectra("db")
    right = right_rows(this).astype(float)
    assert this.error(right + 0.0005) <= this.limit < this.error(right + 0.002)


def test_wrong_results_are_not_timed():
    """A wrong or NaN result is not timed; the error names the deviation and the limit."""
    this = spectra()
    require_right("spectrod.Stft", this, 3e-7)
    with pytest.raises(
        InternalError,
        match=r"spectrod\.Stft, n=64 hop=24 power: relative L2 error 4\.0e-07: must be at most 3\.",
    ):
        require_right("spectrod.Stft", this, 4e-7)
    with pytest.raises(InternalError, match="error nan"):
        require_right("spectrod.Stft", this, np.nan)
