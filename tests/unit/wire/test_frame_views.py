"""What notebooks, xarray and matplotlib get of messages."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from spectrod.dsp.units import power_to_level
from spectrod.lib.errors import InputError
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import LevelsFrame, decode

GOLDEN = json.loads((Path(__file__).parents[2] / "data/golden_v1.json").read_text())


def read(name):
    """Return a golden message."""
    (golden,) = (one for one in GOLDEN if one["name"] == name)
    payloads = [golden["payload_hex"], golden.get("edges_hex")]
    head = [golden["topic"].encode(), golden["header"].encode()]
    return decode([*head, *(bytes.fromhex(one) for one in payloads if one is not None)])


def test_a_frame_is_an_array_of_xarray():
    """Values are not copied; frequencies, UTC, unit and channel are beside them."""
    frame = read("spectrum")
    array = frame.to_xarray()
    assert np.shares_memory(array.values, frame.values)
    assert array.dims == ("frequency",)
    np.testing.assert_array_equal(array.frequency, frame.f)
    assert array.time.values == np.datetime64(frame.header.t_utc_ns, "ns")
    assert (array.units, array.channel) == (frame.header.unit, frame.channel)


@pytest.mark.parametrize("unit", ["dBFS", "FS^2/Hz"])
def test_a_frame_is_drawn_over_frequency(unit):
    """Levels are drawn as they are, power as levels; notebooks show the picture."""
    frame = read("spectrum")
    values = np.array([1e-3, 1e-2, 1.0, 1e-13], np.float32)[: len(frame.values)]
    header = msgspec.structs.replace(frame.header, unit=unit, shape=(len(values),))
    frame = replace(frame, header=header, values=values)
    axes = frame.plot()
    (line,) = axes.lines
    level = values if unit == "dBFS" else power_to_level(values.astype(np.float64))
    np.testing.assert_allclose(line.get_ydata(), np.maximum(level, level.max() - 100), rtol=1e-6)
    assert axes.get_ylabel() == ("level [dBFS]" if unit == "dBFS" else "level [dB re FS^2/Hz]")
    assert frame.topic in frame._repr_html_()


def test_bands_need_their_description():
    """The frequencies of bands are those of the description of the same topic."""
    frame, meta = read("bands"), read("bands_meta")
    array = frame.to_xarray(meta)
    np.testing.assert_array_equal(array.frequency, meta.f)
    axes = frame.plot(meta)
    assert axes.get_xscale() == "log"
    assert frame.plot(meta, axes) is axes
    other = replace(meta, topic="meta/other/0/third/")
    with pytest.raises(
        InputError, match=r"meta/other/0/third/: \d+ bands: must describe the \d+ of"
    ):
        frame.to_xarray(other)


def test_levels_are_a_table_in_notebooks():
    """Each quantity has a row with value and unit, and texts are escaped."""
    units = {"LAeq": "dB SPL", "LCpeak": "dB <SPL>"}
    header = LevelsHeader(
        seq=1, epoch=7, t_utc_ns=1_767_225_600_000_000_000, t_mono_ns=0, sample_index=0,
        fs=48000.0, interval_s=60.0, n_samples=2_880_000, due_samples=2_880_000,
        quantities=tuple(units), units=tuple(units.values()), shape=(2,), ref="",
    )  # fmt: skip
    html = LevelsFrame("levels/mic1/0/meter/", header, np.array([61.25, 80.5]))._repr_html_()
    assert "<tr><td>LAeq</td><td>61.25</td><td>dB SPL</td></tr>" in html
    assert "<tr><td>LCpeak</td><td>80.5</td><td>dB &lt;SPL&gt;</td></tr>" in html
    assert "<caption>levels/mic1/0/meter/, 2026-01-01T00:00:00" in html
