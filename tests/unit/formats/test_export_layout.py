import json
from dataclasses import replace

import numpy as np
import pytest

from spectrod.dsp.calibration import ChannelCalibration, parse_reference
from spectrod.dsp.notes import bands_blurred, bands_left_out, frames_leave_out
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import coverage, global_attributes
from spectrod.formats.export.csv import value_names
from spectrod.formats.export.export_description import decode_description, encode_description
from spectrod.formats.export.export_rows import rows_of
from spectrod.formats.export.layout import (
    columns,
    frequency_edges,
    row_effort_s,
    row_span_s,
    variables,
)
from spectrod.lib.errors import StorageError


def described(**settings):
    spec = SpectrumSpec(**({"fs": 8000.0, "win_length": 256, "hop": 128} | settings))
    return Description(spec, "reef", ("1",) * spec.n_signals, "spectrod 1.2.3")


def values_of(about):
    return variables(about)[-1]


def test_descriptions_come_back():
    """A description with any settings survives writing and reading."""
    about = replace(
        described(bands="third-octave", averaging="max", averaging_frames=3),
        cal_id="é",
        settings={"a": [1, 2.5, None, {"b": "c"}]},
        attributes={"title": "x\ny"},
    )
    text = encode_description(about)
    assert text.isascii()
    assert "\n" not in text
    assert decode_description(text) == about


def _document(spec, **more):
    about = {"v": 1, "spec": spec, "source": "a", "signals": ["b"], "software": "c"}
    return json.dumps(about | more)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "description"),
        ("{}", "missing required field `v`"),
        ('{"v": 2}', "version 2: must be 1"),
        ('{"v": 1, "spec": {"fs": 1}, "signals": []}', "missing required field `source`"),
        (_document({"fs": -1}), "fs=-1"),
        (_document({"fs": 8000, "hops": 1}), "unknown field `hops`"),
        (_document({"fs": 10**400}), "out of range"),
        (_document({"fs": 8000, "product": 5}), "Expected `str`, got `int`"),
        (_document({"fs": 8000, "channels": 2}), "names of 1 signals: must be 2"),
        (_document({"fs": 8000}, source=5), "Expected `str`, got `int`"),
        ("[" * 100_000, "^description: nested too deeply$"),
    ],
)
def test_an_invalid_description_is_refused(text, reason):
    """An invalid description is refused with the reason and without a traceback."""
    with pytest.raises(StorageError, match=reason):
        decode_description(text)


@pytest.mark.parametrize("nfft", [255, 256])
def test_bins_reach_from_zero_to_nyquist(nfft):
    """A bin extends half a bin to both sides, cut at zero and Nyquist except for I/Q."""
    spec = described(win_length=255, nfft=nfft).spec
    edges = frequency_edges(spec)
    assert edges.shape == (spec.n_values, 2)
    assert edges[0, 0] == 0.0
    assert edges[0, 1] == spec.delta_f / 2
    np.testing.assert_allclose(edges[1:, 0], edges[:-1, 1], rtol=1e-12)
    assert edges[-1, 1] == pytest.approx(4000.0)
    two_sided = frequency_edges(described(win_length=255, nfft=nfft, channels=2, iq=True).spec)
    np.testing.assert_allclose(np.diff(two_sided), spec.delta_f)


def test_bands_have_their_own_edges():
    """Bands have the edges of their own table."""
    spec = described(bands="octave").spec
    edges = frequency_edges(spec)
    np.testing.assert_array_equal(edges.T, [spec.band_table.lower, spec.band_table.upper])


def test_rows_last_from_the_first_sample_to_the_last():
    """A row lasts from its first sample to its last; overlaps count once, pauses do not."""
    overlapping = described(averaging="mean", averaging_frames=3).spec
    three, cut = np.array([3]), np.array([1])
    assert row_span_s(overlapping, three) == row_effort_s(overlapping, three) == 512 / 8000
    assert row_span_s(overlapping, cut) == row_effort_s(overlapping, cut) == 256 / 8000
    apart = described(hop=1000, averaging="mean", averaging_frames=3).spec
    assert row_span_s(apart, three) == (2 * 1000 + 256) / 8000
    assert row_effort_s(apart, three) == 3 * 256 / 8000


@pytest.mark.parametrize(
    ("settings", "name", "units", "methods"),
    [
        ({}, "psd", "Hz-1", "time: mean (of power)"),
        ({"scaling": "spectrum", "averaging": "max"}, "power", "1", "time: maximum (of power)"),
        (
            {"scaling": "dbfs", "averaging": "exponential"},
            "level",
            "0.1 lg(re 0.5)",
            "time: mean (exponential, of power, 0.125 s)",
        ),
        (
            {"scaling": "dbfs", "channels": 2, "iq": True},
            "level",
            "0.1 lg(re 1)",
            "time: mean (of power)",
        ),
        ({"bands": "octave"}, "psd", "Hz-1", "time: mean (of power) frequency: mean (of power)"),
        (
            {"bands": "octave", "scaling": "spectrum"},
            "power",
            "1",
            "time: mean (of power) frequency: sum (of power)",
        ),
        ({"output": "complex"}, "amplitude_density", "FS/Hz^0.5", "time: mean (of power)"),
    ],
)
def test_values_have_a_name_and_a_unit(settings, name, units, methods):
    """Values have a name, a UDUNITS unit, our unit, and the kind of average."""
    about = described(**settings)
    variable = values_of(about)
    assert (variable.name, variable.attributes["units"]) == (name, units)
    assert variable.attributes["spectrod_unit"] == about.spec.scale.unit
    assert variable.attributes["reference_level"] == about.spec.scale.reference
    assert variable.attributes["cell_methods"] == methods


def test_gaps_are_listed_by_their_first_sample():
    """Each gap is listed with its first sample and its length."""
    about = described()
    index = 500 + 128 * np.arange(3, dtype=np.int64)
    t_ns = 10**18 + np.arange(3, dtype=np.int64)
    values = np.zeros((3, 1, about.spec.n_values), np.float32)
    batch = SpectrumBatch(values, index, t_ns, t_ns, about.spec, "numpy", 400, discontinuity=True)
    parts = columns(rows_of(batch, 0), about.spec)
    assert parts["gap_start"].tolist() == [100]
    assert parts["gap_length"].tolist() == [400]
    assert parts["gap_samples"].tolist() == [400, 0, 0]
    assert parts["discontinuity"].tolist() == [1, 0, 0]
    assert set(parts) == {one.name for one in variables(about) if one.grows}


def test_coverage_ends_after_the_last_sample():
    """Coverage ends after the last sample, to the nanosecond, and is never negative."""
    spec = described().spec
    about = coverage(10**18, 10**18 + 1_032_000_000, spec)
    assert about == {
        "time_coverage_start": "2001-09-09T01:46:40.000000000Z",
        "time_coverage_end": "2001-09-09T01:46:41.032000000Z",
        "time_coverage_duration": "PT1.032000000S",
        "time_coverage_resolution": "PT0.016000000S",
    }
    assert coverage(10**18, 10**17, spec)["time_coverage_duration"] == "PT0.000000000S"


def test_the_operator_has_the_last_word():
    """Attributes of the operator override those of the description, which override ours."""
    about = replace(described(), attributes={"title": "mine", "license": "CC0"})
    got = global_attributes(about, {"title": "asked", "spectrod_description": "no"})
    assert (got["title"], got["license"]) == ("asked", "CC0")
    assert decode_description(got["spectrod_description"]) == about
    assert got["Conventions"] == "CF-1.11, ACDD-1.3"


def test_the_operator_cannot_override_attributes_of_the_analysis():
    """The operator cannot override attributes of the analysis, the program or the calibration."""
    asked = {"window": "flattop", "nfft": "1", "software": "mine", "calibration": "best"}
    got = global_attributes(described(), asked)
    assert (got["window"], got["nfft"], got["software"]) == ("hann", 256, "spectrod 1.2.3")
    assert got["calibration"] == "none: of digital full scale"


def test_files_name_bands_and_those_that_are_missing():
    """Files name bands by nominal names and exact centres, and list unresolved bands."""
    about = described(fs=48000.0, win_length=4096, hop=2048, bands="third-octave")
    found = {one.name: one for one in variables(about)}
    assert found["band_name"].dims == ("frequency",)
    assert found["band_name"].data.tolist()[:3] == ["63 Hz", "80 Hz", "100 Hz"]
    assert found["frequency"].data[0] == pytest.approx(63.0957, abs=1e-4)
    assert found["psd"].attributes["coordinates"] == "channel_name band_name"
    assert value_names(about)[:2] == ["1:63 Hz", "1:80 Hz"]
    attributes = global_attributes(about, {})
    assert attributes["unresolved_bands"] == "20 Hz, 25 Hz, 31.5 Hz, 40 Hz, 50 Hz"
    assert attributes["unresolved_bands_win_length"] == 10425
    whole = described(fs=48000.0, win_length=10425, hop=2048, bands="third-octave")
    assert not [name for name in global_attributes(whole, {}) if name.startswith("unresolved")]


@pytest.mark.parametrize("settings", [{}, {"bands": "mel:10"}])
def test_bins_and_other_bands_have_no_names(settings):
    """Columns of bins and unnamed bands are labelled with their exact frequencies."""
    about = described(**settings)
    assert "band_name" not in {one.name for one in variables(about)}
    assert value_names(about)[3] == f"1:{float(about.spec.frequencies[3])!r}"
    assert bands_left_out(about.spec) == ""


def test_the_log_names_bands_that_are_left_out():
    """The log names missing bands (at most the first and the last) and a window for them."""
    thirds = SpectrumSpec(48000.0, win_length=4096, bands="third-octave")
    assert bands_left_out(thirds) == (
        "bands='third-octave': left out, as narrower than a bin of 11.72 Hz: 20 Hz, 25 Hz, "
        "31.5 Hz, 40 Hz, 50 Hz; win_length=10425 or more resolves them"
    )
    many = SpectrumSpec(48000.0, win_length=4096, bands="octave/12")
    assert bands_left_out(many).endswith(
        "34.4747 Hz, 36.5174 Hz, ... 193.865 Hz (40 bands); win_length=40600 or more resolves them"
    )
    fast = SpectrumSpec(100e6, win_length=4096, bands="octave")
    assert bands_blurred(thirds) == bands_blurred(many) == ""
    assert bands_left_out(fast).endswith("; no win_length up to 1048576 resolves them")


def test_the_log_names_bands_that_only_zero_padding_resolves():
    """Zero padding gives closer bins but no finer resolution, and the log says so."""
    padded = SpectrumSpec(48000.0, win_length=960, nfft=4096, bands="third-octave")
    assert bands_blurred(padded) == (
        "bands='third-octave': narrower than the window's resolution, 50 Hz; they mix with "
        "their neighbours: 63 Hz, 80 Hz, 100 Hz, 125 Hz, 160 Hz, 200 Hz"
    )
    bins = SpectrumSpec(48000.0, win_length=960, nfft=4096)
    mel = SpectrumSpec(48000.0, win_length=960, nfft=4096, bands="mel:10")
    assert bands_blurred(bins) == bands_blurred(mel) == ""


@pytest.mark.parametrize(
    ("hop", "text"), [(4096, ""), (5000, "density: 904 of each 5000 samples ")]
)
def test_the_log_reports_samples_between_frames(hop, text):
    """The log reports a hop longer than the window, which leaves samples unused."""
    assert frames_leave_out(SpectrumSpec(48000.0, win_length=4096, hop=hop)).startswith(text)
    assert bool(frames_leave_out(SpectrumSpec(48000.0, win_length=4096, hop=hop))) == bool(text)


@pytest.mark.parametrize(
    ("reference", "settings", "name"),
    [
        ("20 uPa", {}, "sound_pressure_level_in_air"),
        ("1 uPa", {}, "sound_pressure_level_in_water"),
        ("1e-6 Pa", {}, "sound_pressure_level_in_water"),
        ("1 V", {}, None),
        ("20 uPa", {"weighting": "A"}, None),
        ("20 uPa", {"scaling": "spectrum"}, None),
    ],
)
def test_sound_pressure_levels_have_the_name_of_cf(reference, settings, name):
    """Only unweighted levels over all frequencies of a calibrated sound pressure have it."""
    calibration = (ChannelCalibration(parse_reference(reference), 120.0),)
    given = {"scaling": "dbfs", "bands": "third-octave", "broadband": True} | settings
    spec = SpectrumSpec(
        fs=48000.0, win_length=4800, hop=4800, nfft=4800, calibration=calibration, **given
    )
    found = {one.name: one for one in variables(Description(spec, "reef", ("a",), "spectrod"))}
    assert found["broadband"].attributes.get("standard_name") == name
    value = found["level" if spec.scaling == "dbfs" else "power"]
    assert "standard_name" not in value.attributes
