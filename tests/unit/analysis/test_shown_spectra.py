"""What notebooks, xarray and matplotlib get of spectrograms and batches."""

import io
from html import escape

import numpy as np
import pytest
import xarray
from PIL import Image

from spectrod import Stft, spectrogram
from spectrod.dsp.units import power_to_level
from spectrod.lib import notebook, optional_packages
from spectrod.lib.errors import ConfigError, InputError, UnavailableError

FS = 8000.0


def found(n=4001, channels=None, **settings):
    shape = n if channels is None else (channels, n)
    x = 0.1 * np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    return spectrogram(x, FS, **{"win_length": 256, "hop": 100, "engine": "numpy"} | settings)


@pytest.mark.parametrize(
    ("settings", "name", "dims"),
    [
        ({}, "psd", ("frequency", "time")),
        ({"scaling": "dbfs", "channels": 2}, "level", ("channel", "frequency", "time")),
        ({"output": "complex"}, "amplitude_density", ("frequency", "time")),
        ({"bands": "third-octave", "scaling": "spectrum"}, "power", ("frequency", "time")),
    ],
)
def test_xarray_has_values_axes_and_units(settings, name, dims):
    """Values are not copied; axes are in Hz and s, and the unit is an attribute."""
    spectra = found(**settings)
    array = spectra.to_xarray()
    assert isinstance(array, xarray.DataArray)
    assert (array.name, array.dims) == (name, dims)
    assert np.shares_memory(array.values, spectra.values)
    np.testing.assert_array_equal(array.frequency, spectra.f)
    np.testing.assert_array_equal(array.time, spectra.t)
    assert (array.frequency.units, array.time.units) == ("Hz", "s")
    assert (array.units, array.win_length, array.hop) == (spectra.unit, 256, 100)


def test_repr_is_one_line():
    """A spectrogram says its sizes, ranges, unit and analysis, and prints no arrays."""
    assert repr(found(4001)) == (
        "<Spectrogram: 129 values of 38 rows, 0 to 4000 Hz, 0.016 to 0.4785 s, power spectral "
        "density in FS^2/Hz, hann window of 256, hop 100>"
    )
    assert repr(found(4001, channels=3)).startswith("<Spectrogram: 3 signals, 129 values")


def test_it_unpacks_in_the_order_of_scipy():
    """Three names are its frequencies, times and values; two are an error, as of any tuple."""
    spectra = found(channels=2)
    f, t, values = spectra
    assert (f is spectra.f, t is spectra.t, values is spectra.values) == (True, True, True)
    with pytest.raises(ValueError, match="too many values to unpack"):
        f, t = spectra


@pytest.mark.parametrize("settings", [{}, {"scaling": "dbfs"}, {"output": "complex"}])
def test_plot_draws_levels(settings):
    """The mesh has the level of each value, and the axes and the bar their units."""
    spectra = found(**settings)
    axes = spectra.plot()
    (mesh,) = axes.collections
    power = spectra.values if settings != {"output": "complex"} else np.abs(spectra.values) ** 2
    level = power if settings == {"scaling": "dbfs"} else power_to_level(power)
    np.testing.assert_allclose(mesh.get_array(), np.maximum(level, level.max() - 100), atol=1e-4)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time [s]", "frequency [Hz]")
    unit = spectra.spec.scale.level_unit
    assert axes.figure.axes[1].get_ylabel().endswith(f"[{unit}]")


@pytest.mark.parametrize(
    ("bands", "scale"), [("octave", "log"), ("mel:8", "log"), ("reassigned", "linear")]
)
def test_bands_have_a_logarithmic_axis(bands, scale):
    """Low bands are not squashed; bins stay linear."""
    assert found(bands=bands).plot().get_yscale() == scale
    assert found().plot().get_yscale() == "linear"


def test_plot_draws_into_given_axes():
    """Axes that are given are drawn into, and a signal is chosen."""
    spectra = found(channels=2)
    axes = spectra.plot().figure.add_subplot()
    assert spectra.plot(axes, signal=1) is axes
    for signal in (2, -1):
        with pytest.raises(ConfigError, match=f"signal={signal}: must be 0 to 1"):
            spectra.plot(axes, signal=signal)


def test_many_rows_are_averaged():
    """More rows than pixels are drawn as means of their powers, odd rests too."""
    spectra = found(n=256 + 4999, hop=1)
    assert spectra.values.shape == (129, 5000)
    (mesh,) = spectra.plot().collections
    drawn = mesh.get_array()
    assert drawn.shape == (129, 1667)
    expected = power_to_level(spectra.values[:, :3].mean(axis=1))
    np.testing.assert_allclose(drawn[:, 0], expected, atol=1e-4)
    expected = power_to_level(spectra.values[:, 4998:].mean(axis=1))
    np.testing.assert_allclose(drawn[:, -1], expected, atol=1e-4)


def test_notebooks_get_a_picture():
    """A notebook shows a PNG; silence has one as well."""
    silence = spectrogram(np.zeros(4000), FS, win_length=256, engine="numpy")
    for shown in (found(), silence, found().plot(), found().plot().figure):
        with Image.open(io.BytesIO(shown._repr_png_())) as picture:
            assert (picture.format, picture.size) == ("PNG", (800, 400))
    axes = found().plot().figure.add_subplot()
    assert not hasattr(found().plot(axes), "_repr_png_")  # the figure is the caller's


def test_missing_packages_are_named(monkeypatch):
    """Without matplotlib there is no picture but text; plot and to_xarray name what to install."""

    def missing(package):
        raise ModuleNotFoundError(name=package)

    monkeypatch.setattr(optional_packages, "import_module", missing)
    spectra = found()
    with pytest.raises(UnavailableError, match=r"xarray is not installed: .*spectrod\[xarray\]"):
        spectra.to_xarray()
    with pytest.raises(UnavailableError, match=r"matplotlib is not installed: .*spectrod\[plot\]"):
        spectra.plot()
    monkeypatch.setattr(notebook, "find_spec", lambda _: None)
    assert (spectra._repr_png_(), spectra._repr_html_()) == (None, None)


@pytest.mark.parametrize("bands", ["", "octave"])
def test_one_row_is_drawn_over_frequency(bands):
    """A spectrogram of one row would have cells without width: it is the line of its levels."""
    spectra = found(256, bands=bands)
    axes = spectra.plot()
    (line,) = axes.lines
    level = power_to_level(spectra.values[:, 0])
    np.testing.assert_array_equal(line.get_xdata(), spectra.f)
    np.testing.assert_allclose(line.get_ydata(), np.maximum(level, level.max() - 100), atol=1e-4)
    assert (axes.get_xlabel(), axes.get_xscale()) == (
        "frequency [Hz]",
        "log" if bands else "linear",
    )


def test_notebooks_get_html_with_the_text():
    """The HTML is the picture with the line of text below, escaped."""
    spectra = found()
    html = spectra._repr_html_()
    assert html.startswith('<figure><img alt="" src="data:image/png;base64,')
    assert f"<figcaption>{escape(repr(spectra))}</figcaption>" in html


def batch_of(n, channels=2):
    x = 0.1 * np.random.default_rng(2).standard_normal((channels, n)).astype(np.float32)
    settings = {"win_length": 256, "hop": 100, "engine": "numpy"}
    with Stft(FS, channels=channels, max_latency_s=10.0, **settings) as stft:
        batches = [*stft.push(x), *stft.finish()]
    return batches, spectrogram(x, FS, **settings)


def test_batches_are_arrays_of_xarray_that_join_to_the_spectrogram():
    """Times and values are those of ``spectrogram``, with the first sample of each row."""
    batches, whole = batch_of(4000)
    arrays = [one.to_xarray() for one in batches]
    assert arrays[0].dims == ("time", "channel", "frequency")
    assert np.shares_memory(arrays[0].values, batches[0].values)
    joined = xarray.concat(arrays, "time")
    np.testing.assert_allclose(joined.time, whole.t, rtol=1e-12)
    np.testing.assert_array_equal(joined.sample_index, 100 * np.arange(len(whole.t)))
    expected = whole.to_xarray().transpose("time", "channel", "frequency")
    np.testing.assert_allclose(joined, expected, rtol=1e-4)
    assert joined.attrs == expected.attrs


def test_batches_are_drawn():
    """The mesh has the levels of the signal; a signal that is not there and no rows are errors."""
    (batch, *_), _ = batch_of(4000)
    (mesh,) = batch.plot(signal=1).collections
    level = power_to_level(batch.values[:, 1].T)
    np.testing.assert_allclose(mesh.get_array(), np.maximum(level, level.max() - 100), atol=1e-4)
    assert batch._repr_html_().startswith("<figure>")
    with pytest.raises(ConfigError, match="signal=2: must be 0 to 1"):
        batch.plot(signal=2)
    empty = batch.between(0, 0)
    with pytest.raises(InputError, match="a batch without rows cannot be drawn"):
        empty.plot()
    assert (empty._repr_png_(), empty._repr_html_()) == (None, None)
