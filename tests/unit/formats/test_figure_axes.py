"""Axes of frequency: round labels, and spectra whose extremes stay."""

import numpy as np
import pytest

from spectrod.formats.figure.drawing import figure_style, new_figure
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.frequency_axis import (
    COLUMNS_MAX,
    SpectrumAxis,
    frequency_text,
    smoothed_db,
)


@pytest.mark.parametrize("n", [100, 2 * COLUMNS_MAX, 2 * COLUMNS_MAX + 1, 100_003])
@pytest.mark.parametrize("low_hz", [0.0, 20.0])
def test_a_line_has_every_point_or_the_extremes_of_each_part(n, low_hz):
    """Up to 2 * COLUMNS_MAX points are all there; of more, peaks and dips stay in their place."""
    x = np.linspace(low_hz, 20_000.0, n)
    y = np.random.default_rng(1).uniform(-100.0, -90.0, n)
    y[n // 3], y[n // 2], y[n // 4] = -3.0, -200.0, np.nan
    axis = SpectrumAxis(low_hz, 20_000.0)
    assert axis.is_log == (low_hz > 0.0)
    drawn_x, drawn_y = axis.line(x, y)
    if n <= 2 * COLUMNS_MAX:
        np.testing.assert_array_equal(drawn_x, x)
        np.testing.assert_array_equal(drawn_y, y)
        return
    assert COLUMNS_MAX < len(drawn_x) <= 2 * COLUMNS_MAX
    assert (drawn_x[0], drawn_x[-1]) == (x[0], x[-1])
    assert (np.diff(drawn_x) >= 0.0).all()
    for k in (n // 3, n // 2):
        share = axis.share(drawn_x[drawn_y == y[k]]) - axis.share(x[k])
        assert np.abs(share).min() <= 1.0 / COLUMNS_MAX


def test_points_beyond_the_axis_are_left_out():
    """What is below or above the ends is not drawn."""
    x = np.arange(10.0)
    drawn_x, drawn_y = SpectrumAxis(2.0, 5.0).line(x, -x)
    np.testing.assert_array_equal(drawn_x, [2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(drawn_y, [-2.0, -3.0, -4.0, -5.0])


@pytest.mark.parametrize(
    ("low_hz", "high_hz", "expected"),
    [
        (15.0, 24_000.0, ["20", "50", "100", "200", "500", "1k", "2k", "5k", "10k", "20k"]),
        (900.0, 1100.0, ["900", "925", "950", "975", "1k", "1.025k", "1.05k", "1.075k", "1.1k"]),
        (433.4e6, 434.4e6, ["433.4M", "433.6M", "433.8M", "434M", "434.2M", "434.4M"]),
        (-1000.0, 1000.0, ["-1k", "-750", "-500", "-250", "0", "250", "500", "750", "1k"]),
    ],
)
def test_labels_are_round_frequencies(low_hz, high_hz, expected):
    """Logarithmic axes have 1-2-5; short and two-sided ones are linear."""
    with figure_style():
        _, (panel,) = new_figure("x", [2.0], FigureLook())
        SpectrumAxis(low_hz, high_hz).label(panel)
    places = [one for one in panel.get_xticks() if low_hz <= one <= high_hz]
    assert panel.xaxis.get_major_formatter().format_ticks(places) == expected
    assert panel.get_xlabel() == "frequency [Hz]"


@pytest.mark.parametrize(
    ("hz", "text"), [(31.5, "31.5"), (12_500, "12.5k"), (433.92e6, "433.92M"), (2.4e9, "2.4G")]
)
def test_frequencies_have_prefixes(hz, text):
    """The digits are those of the value."""
    assert frequency_text(hz) == text


@pytest.mark.parametrize("n", [999, 1000, 40_001])
def test_smoothing_is_the_mean_of_power_over_a_twelfth_of_an_octave(n):
    """Each point is the mean of the given ones within 1/24 octave; what is NaN has no part."""
    x = np.linspace(0.0, 20_000.0, n)
    y = np.random.default_rng(n).uniform(-60.0, -20.0, n)
    y[x > 9000.0] = np.nan
    smooth_x, smooth_y = smoothed_db(x, y)
    assert len(smooth_x) <= 480
    assert (smooth_x[0], smooth_x[-1]) == (x[1], x[-1])
    np.testing.assert_array_equal(np.isnan(smooth_y), smooth_x > 9000.0)
    for middle, level in zip(smooth_x[::17], smooth_y[::17], strict=True):
        near = np.abs(np.log2(np.maximum(x, 1e-9) / middle)) <= 1.0 / 24.0
        power = 10.0 ** (y[near & np.isfinite(y)] / 10.0)
        if middle <= 9000.0:
            # The sums of all bins before lose digits: 40 dB and 40000 bins of them.
            assert level == pytest.approx(10.0 * np.log10(power.mean()), abs=1e-6)


@pytest.mark.parametrize(
    ("words", "n_lines", "is_whole"), [(3, 1, True), (12, 2, True), (100, 3, False)]
)
def test_long_titles_have_lines(words, n_lines, is_whole):
    """A title is cut only where three lines do not hold it; the panels keep their height."""
    with figure_style():
        figure, _ = new_figure(" ".join(["recording"] * words), [2.0], FigureLook())
    lines = figure.get_suptitle().splitlines()
    assert len(lines) == n_lines
    assert (lines[-1][-3:] != "...") == is_whole
    assert figure.get_size_inches()[1] == pytest.approx(2.9 + 0.17 * (n_lines - 1))
