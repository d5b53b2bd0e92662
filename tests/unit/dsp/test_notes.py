import pytest

from spectrod.dsp.notes import samples_left_out
from spectrod.dsp.spectrum import SpectrumSpec

SPEC = SpectrumSpec(fs=32_000.0, win_length=1024, hop=512)
N_READ = 426 * 55 * 32_000


def test_ends_of_stretches_are_normal():
    """Ends of less than a window each are given as a share, and said to be normal."""
    assert samples_left_out(SPEC, 327_168, N_READ, 425) == (
        "10.22 s of 23430 s (0.044 %) are in no spectrum: at the ends of 426 stretches without "
        "gaps, on average less than a window of 1024 samples; that is normal, and a shorter --hop "
        "leaves out less"
    )


@pytest.mark.parametrize(
    ("n_left_out", "gaps", "begin"),
    [
        (100, 0, "100 samples (0.003125 s) at the end are"),
        (N_READ, 425, "749760000 samples (2.343e+04 s) at the end, before gaps are"),
    ],
)
def test_stretches_shorter_than_a_window_are_not_normal(n_left_out, gaps, begin):
    """What fills no window is said with the option that changes it."""
    assert samples_left_out(SPEC, n_left_out, N_READ, gaps) == (
        f"{begin} in no spectrum: they do not fill a window of 1024 (--win-length)"
    )


def test_samples_before_the_first_row_are_named():
    """Rows on the clock may leave out more than a window before the first one."""
    spec = SpectrumSpec(fs=32_000.0, win_length=1024, hop=512, rate_hz=1.0, align="utc")
    assert samples_left_out(spec, 40_000, 320_000, 1).startswith(
        "40000 samples (1.25 s) at the end, before gaps, before the first row are in no spectrum: "
    )
