"""What history computes of whole columns: the level of all power, and differences of two topics."""

import struct
import tracemalloc

import numpy as np
import pytest

from spectrod.apps.web.archive.archives import open_archives
from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.axis import NOTHING, HistoryAxis
from spectrod.apps.web.history.band_level import BandLevel, PowerScale
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.columns import from_wire, to_wire
from spectrod.apps.web.history.export import to_csv, to_png
from spectrod.apps.web.history.request import parse_request
from spectrod.apps.web.history.row_ring import Ring
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.picture.colormaps import colormap
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError

pytestmark = pytest.mark.usefixtures("whole_scans")

S = 10**9
BEGIN_NS = 1_777_680_000 * S
COMMON = {"fs": 1000.0, "win_length": 1000, "hop": 1000, "nfft": 1000}
DENSITY = SpectrumSpec(**COMMON)
POWER = SpectrumSpec(**COMMON, scaling="spectrum")
DBFS = SpectrumSpec(**COMMON, scaling="dbfs")
BANDS = SpectrumSpec(**COMMON, bands="third-octave", scaling="spectrum")
BAND_DENSITY = SpectrumSpec(**COMMON, bands="third-octave")
ROUNDING_DB = 0.0051
"""Half a step of codes, of the levels and of a pyramid's means, whose errors average out."""


def values_of(spec, n, seed):
    power = np.random.default_rng(seed).gamma(2.0, 1e-6, (n, 1, spec.n_values))
    return (10.0 * np.log10(power) if spec.scaling == "dbfs" else power).astype(np.float32)


def stored(folder, source, spec, n=40, seed=1, *, values_max=None):
    """Write rows of a second each as a segment, or as a pyramid."""
    place = folder / source
    place.mkdir(parents=True)
    about = Description(spec, source, ("a",), "spectrod test")
    values, index = values_of(spec, n, seed), np.arange(n, dtype=np.int64) * spec.hop
    # Middles of rows are in the middle of seconds.
    t_ns = BEGIN_NS + index * S // int(spec.fs)
    batch = SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")
    if values_max is None:
        writer = SegmentWriter(place / "one.spd", about)
    else:
        writer = PyramidWriter(place / "pyramid", about, PyramidOptions(1.0, values_max))
    writer.write(batch)
    writer.finish()
    return values[:, 0].astype(np.float64)


def asked(folder, **given):
    found = open_archives([str(folder)])
    span = {"t0": BEGIN_NS / 1e6, "t1": BEGIN_NS / 1e6 + 40_000, "f0": 0, "f1": 500}
    query = {"topic": 0, "w": 4, "h": 2048} | span | given
    request = parse_request({name: str(value) for name, value in query.items()})
    return answer(request, found.topics, found, Ring(), Budget(), now_ns=BEGIN_NS + 10**18)


def levels_of(got, layer=0):
    codes = from_wire(got.layers[layer])
    return np.where(codes == NOTHING, np.nan, codes / 100.0)


def expected_level(spec, values):
    """Return the levels of four columns of ten rows by the definition, in float64."""
    power = 10.0 ** (values / 10.0) if spec.scaling == "dbfs" else values
    mean = power.reshape(4, 10, -1).mean(axis=1)
    if spec.bands:
        table = spec.band_table
        weights = table.upper - table.lower if spec.scaling == "density" else 1.0
    else:
        weights = spec.delta_f if spec.scaling == "density" else spec.delta_f / spec.enbw_hz
    total = (mean * weights).sum(axis=1)
    return 10.0 * np.log10(total if spec.scaling == "dbfs" else total / 0.5)


@pytest.mark.parametrize("values_max", [None, 0, 100])
@pytest.mark.parametrize("spec", [DENSITY, POWER, DBFS, BANDS, BAND_DENSITY])
def test_the_level_of_a_column_is_that_of_all_its_power(tmp_path, spec, values_max):
    """Of rows, of a pyramid, and of one whose values have several bins, in dBFS."""
    values = stored(tmp_path, "pond", spec, values_max=values_max)
    got = asked(tmp_path, layers="level")
    assert (got.header["unit"], got.header["h"], got.header["w"]) == ("dBFS", 1, 4)
    np.testing.assert_allclose(levels_of(got)[:, 0], expected_level(spec, values), atol=ROUNDING_DB)


def test_the_level_is_of_the_frequencies_that_are_asked_for(tmp_path):
    """Bins that the range touches count, and no others."""
    values = stored(tmp_path, "pond", DENSITY)
    got = asked(tmp_path, layers="level", f0=99.6, f1=200.4)
    part = expected_level(DENSITY, values[:, 100:201])
    np.testing.assert_allclose(levels_of(got)[:, 0], part, atol=ROUNDING_DB)
    assert (got.header["f0"], got.header["f1"]) == (99.5, 200.5)


def test_a_table_of_levels_has_one_column_of_them(tmp_path):
    """A line for each column in time, as of other layers."""
    stored(tmp_path, "pond", DENSITY)
    *_, first, _, _, last = to_csv(asked(tmp_path, layers="level")).decode().splitlines()
    assert [len(line.split(",")) for line in (first, last)] == [3, 3]


def test_columns_without_sound_have_no_level(tmp_path):
    """Neither between rows nor before them."""
    stored(tmp_path, "pond", DENSITY, n=10)
    got = asked(tmp_path, layers="level", t0=BEGIN_NS / 1e6 - 10_000, t1=BEGIN_NS / 1e6 + 30_000)
    np.testing.assert_array_equal(np.isnan(levels_of(got)[:, 0]), [True, False, True, True])


def test_levels_of_many_values_take_no_memory_for_each(tmp_path):
    """Columns have one value, whatever the number of bins."""
    stored(tmp_path, "pond", DENSITY)
    asked(tmp_path, layers="level", w=1)
    tracemalloc.start()
    try:
        got = asked(tmp_path, layers="level", w=2048)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.header["w"] == 2000
    assert peak < 2000 * 501 * 8 / 4


def test_bins_that_some_rows_lack_count_where_they_are():
    """A row's power is that of the values that it has; of none it has none."""
    level = BandLevel(PowerScale(HistoryAxis.of_bins(0.0, 1.0, 3), "FS2", 1.5), 0, 3, 1)
    power = level.power(np.array([[1.0, 2.0, 4.0], [1.0, np.nan, 4.0], [np.nan] * 3]))
    np.testing.assert_allclose(power, np.array([7.0, 5.0, np.nan]) / 1.5)


@pytest.mark.parametrize("layers", ["max,level", "level,level", "levels"])
def test_a_level_stands_alone(tmp_path, layers):
    """Other layers have other frequencies."""
    stored(tmp_path, "pond", DENSITY)
    with pytest.raises(ConfigError, match=r"layers='.*': must be of max, mean, or level alone"):
        asked(tmp_path, layers=layers)


@pytest.mark.parametrize("layer", ["max", "mean"])
def test_a_difference_is_that_of_the_levels(tmp_path, layer):
    """In dB, where both have data, rounded once."""
    stored(tmp_path, "north", DENSITY, seed=1)
    stored(tmp_path, "south", DENSITY, n=30, seed=2)
    one, other = (levels_of(asked(tmp_path, topic=n, layers=layer)) for n in (0, 1))
    got = asked(tmp_path, topic=0, less=1, layers=layer)
    np.testing.assert_allclose(levels_of(got), one - other, atol=1e-9)
    assert np.isnan(levels_of(got)[3]).all()
    assert (got.header["unit"], got.header["less"]) == ("dB", "spec/south/a/density/")
    coarse = asked(tmp_path, topic=0, less=1, layers=layer, step="0.1")
    np.testing.assert_allclose(levels_of(coarse), one - other, atol=0.0501)


def test_files_of_a_difference_name_both_and_have_0_in_the_middle(tmp_path):
    """In a picture blue is below 0 dB, red above, and 0 between them; one has other colours."""
    for source, seed in (("north", 1), ("south", 2)):
        stored(tmp_path, source, DENSITY, seed=seed)
    found = asked(tmp_path, less=1)
    names = "spec/north/a/density/ less spec/south/a/density/"
    assert to_csv(found).decode().startswith(f"# {names}, dB,")
    found.layers[0][:] = to_wire(np.array([[-500], [0], [500], [NOTHING]], np.int16))
    picture = to_png(found, -5.0, 5.0, "viridis")
    assert f"{names} from ".encode() in picture
    palette = png_palette(picture)
    assert [palette[k] for k in (1, 128, 255)] == [(33, 102, 172), (247, 247, 247), (178, 24, 43)]
    alone = to_png(asked(tmp_path), -5.0, 5.0, "viridis")
    assert png_palette(alone)[1] == tuple(colormap("viridis", 255)[0])


def png_palette(picture):
    """Return the colours of a PNG, in its order."""
    begin = picture.index(b"PLTE") + 4
    (length,) = struct.unpack(">I", picture[begin - 8 : begin - 4])
    return [tuple(picture[k : k + 3]) for k in range(begin, begin + length, 3)]


def test_a_difference_of_levels_is_one_too(tmp_path):
    """The trend of one source less that of another."""
    stored(tmp_path, "north", DENSITY, seed=1)
    stored(tmp_path, "south", DENSITY, seed=2)
    one, other = (levels_of(asked(tmp_path, topic=n, layers="level")) for n in (0, 1))
    got = asked(tmp_path, topic=0, less=1, layers="level")
    np.testing.assert_allclose(levels_of(got), one - other, atol=1e-9)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (SpectrumSpec(**(COMMON | {"nfft": 2000})), "have different bins; a difference needs the"),
        (POWER, r"have different units, dB re FS\^2/Hz and dB re FS\^2"),
    ],
)
def test_what_has_other_bins_or_units_is_not_subtracted(tmp_path, other, text):
    """One clear error that names both topics."""
    stored(tmp_path, "north", DENSITY)
    stored(tmp_path, "south", other)
    names = f"spec/north/a/density/ less spec/south/a/{other.product}/: "
    with pytest.raises(ConfigError, match=names + text):
        asked(tmp_path, topic=0, less=1)
