from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.picture.axes import FREQUENCY_SCALES, FrequencyAxis
from spectrod.formats.picture.labels import frequency_labels, level_labels, time_labels
from spectrod.formats.picture.pixelmap import options_of, read_levels, read_pixel_map
from spectrod.formats.picture.render import PictureOptions
from spectrod.formats.picture.sink import PictureSink
from spectrod.lib.errors import ConfigError, InputError, StorageError

FS = 8000.0
BEGIN_UTC_NS = 1_795_211_223 * 10**9
SMALL = PictureOptions(width=200, height=64)


def spec_of(**settings):
    defaults = {"fs": FS, "win_length": 128, "hop": 64, "scaling": "spectrum"}
    return SpectrumSpec(**(defaults | settings))


def batch_of(power, spec, first_frame=0, **settings):
    index = (first_frame + np.arange(len(power), dtype=np.int64)) * spec.hop
    t_ns = BEGIN_UTC_NS + (index * 1e9 / spec.fs).astype(np.int64)
    return SpectrumBatch(power.astype(np.float32), index, t_ns, t_ns, spec, "numpy", **settings)


def flat(n_frames, spec, power=1e-3):
    return np.full((n_frames, spec.channels, spec.n_bins), power)


def transpose(matrix):
    assert matrix.flags.c_contiguous
    assert matrix.dtype == np.float32
    return np.ascontiguousarray(matrix.T)


def sink_of(path, options=SMALL, **settings):
    return PictureSink(path, options, transpose, spec_of(**settings), "spectrod 1.2.3")


def test_nothing_appears_before_the_end(tmp_path):
    """The picture appears only with finish, and no other file is left."""
    path = tmp_path / "x.png"
    sink = sink_of(path)
    sink.write(batch_of(flat(30, spec_of()), spec_of()))
    assert list(tmp_path.iterdir()) == []
    assert sink.n_frames == 30
    sink.finish()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("f_scale", ["linear", "log"])
def test_long_transforms_are_drawn_in_pieces(tmp_path, monkeypatch, f_scale):
    """Long transforms are drawn in pieces of bounded size with the picture of the whole."""
    spec = spec_of(win_length=1 << 14, hop=1 << 12, nfft=1 << 14, channels=2)
    power = np.random.default_rng(3).uniform(1e-6, 1e-3, (5, 2, spec.n_bins))
    sizes = []

    def watched(matrix):
        sizes.append(matrix.size)
        return transpose(matrix)

    def drawn(name):
        options = replace(SMALL, f_scale=f_scale, height=300)
        sink = PictureSink(tmp_path / name, options, watched, spec)
        sink.write(batch_of(power, spec))
        sink.finish()
        return (tmp_path / name).read_bytes()

    in_pieces, n_pieces = drawn("x.png"), len(sizes)
    assert max(sizes) <= 1 << 18
    monkeypatch.setattr("spectrod.formats.picture.pixel_levels._PIECE_VALUES", 1 << 30)
    assert in_pieces == drawn("y.png")
    assert len(sizes) - n_pieces == 2 < n_pieces


def test_frequencies_without_a_band_are_drawn_as_missing(tmp_path):
    """Rows below the first band that a bin separates and above the last band have no level."""
    spec = spec_of(win_length=1024, hop=512, bands="octave")
    options = PictureOptions(
        width=3,
        height=64,
        raw=True,
        levels=(-60.0, 0.0),
        f_scale="log",
        f_min=FS / 8192,
        f_max=FS / 2.0,
    )
    sink = PictureSink(tmp_path / "x.png", options, transpose, spec)
    sink.write(batch_of(np.full((9, 1, spec.n_values), 0.5e-3), spec))
    sink.finish()
    read = read_levels(tmp_path / "x.png")
    edges = FrequencyAxis("log", FS / 8192, FS / 2.0).edges(64)
    lower, upper = spec.band_table.lower[0], spec.band_table.upper[-1]
    is_without = (edges[1:] <= lower) | (edges[:-1] >= upper)
    assert 8 < is_without.sum() < 40
    np.testing.assert_array_equal(np.isnan(read.level), is_without[:, None].repeat(3, axis=1))
    np.testing.assert_allclose(read.level[~is_without], -30.0, atol=0.13)


@pytest.mark.parametrize("suffix", [".png", ".pgm", ".webp", ".jpg", ".svg"])
@pytest.mark.parametrize("size", [(1, 1), (1, 64), (128, 1), (224, 128), (3, 7)])
def test_a_raw_picture_has_any_size_from_one_pixel_on(tmp_path, size, suffix):
    """A raw picture has any size from one pixel on and the level of the rows in each plot."""
    options = PictureOptions(width=size[0], height=size[1], raw=True, levels=(-60.0, 0.0))
    path = tmp_path / f"x{suffix}"
    sink = sink_of(path, options, channels=2)
    sink.write(batch_of(flat(9, spec_of(channels=2), 0.5e-3), spec_of(channels=2)))
    sink.finish()
    pixels = read_pixel_map(path)
    assert pixels.plots == ((0, 0, *size), (0, size[1], *size))
    assert options_of(pixels, path) == options
    if suffix in {".png", ".pgm"}:
        level = read_levels(path, 1).level
        assert level.shape == size[::-1]
        np.testing.assert_allclose(level, -30.0, atol=0.13)


@pytest.mark.parametrize("f_scale", FREQUENCY_SCALES)
def test_one_pixel_shows_the_loudest_bin_of_the_mean_of_all_frames(tmp_path, f_scale):
    """With few pixels, a pixel shows the loudest bin of the mean of all its frames."""
    power = flat(8, spec_of(), 1e-9)
    power[:, 0, 40] = 0.5 * np.array([0.02, 0.0] * 4)
    options = PictureOptions(width=1, height=1, raw=True, levels=(-60.0, 0.0), f_scale=f_scale)
    sink = sink_of(tmp_path / "x.pgm", options)
    sink.write(batch_of(power, spec_of()))
    sink.finish()
    assert read_levels(tmp_path / "x.pgm").level.item() == pytest.approx(-20.0, abs=0.01)


def test_every_engine_is_named(tmp_path):
    """A picture that a fallback engine continued names both engines in order."""
    sink = sink_of(tmp_path / "x.png")
    first = batch_of(flat(3, spec_of()), spec_of())
    sink.write(replace(first, engine="opencl:a/b"))
    for frame in (3, 6):
        sink.write(batch_of(flat(3, spec_of()), spec_of(), first_frame=frame))
    sink.finish()
    assert read_levels(tmp_path / "x.png").pixels.engine == "opencl:a/b, numpy"


def test_abort_leaves_nothing(tmp_path):
    """An aborted recording makes no file, even if finish follows."""
    sink = sink_of(tmp_path / "x.png")
    sink.write(batch_of(flat(3, spec_of()), spec_of()))
    sink.abort()
    with pytest.raises(InputError, match="nothing to draw"):
        sink.finish()
    assert list(tmp_path.iterdir()) == []


def test_no_frames_no_picture(tmp_path):
    """A recording shorter than a window is an input error that states the required length."""
    with pytest.raises(InputError, match=r"x\.png: nothing to draw: fewer than 128 samples"):
        sink_of(tmp_path / "x.png").finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.bmp", "x", "png"])
def test_unknown_suffixes_are_refused(tmp_path, name):
    """The suffix selects the format, and an unknown one is refused."""
    with pytest.raises(ConfigError, match=r"a picture's suffix must be one of \.png"):
        sink_of(tmp_path / name)


def test_bad_settings_are_found_at_once(tmp_path):
    """An impossible setting is refused before the first frame."""
    with pytest.raises(StorageError, match="No such file or directory"):
        sink_of(tmp_path / "missing" / "x.png")
    with pytest.raises(ConfigError, match="f_max=5000"):
        sink_of(tmp_path / "x.png", PictureOptions(f_max=5000.0))
    with pytest.raises(ConfigError, match="channels=64: must not exceed"):
        sink_of(tmp_path / "x.png", PictureOptions(width=8000, height=4000), channels=64)
    with pytest.raises(ConfigError, match="output='complex': a picture is made of power"):
        sink_of(tmp_path / "x.png", output="complex")


@pytest.mark.parametrize("scaling", ["spectrum", "dbfs"])
@pytest.mark.parametrize("iq", [False, True])
def test_levels_are_pooled_as_power(tmp_path, scaling, iq):
    """Rows of levels are averaged as power, so they give the picture of their power."""
    spec = spec_of(scaling=scaling, channels=2, iq=iq)
    full_scale = 1.0 if iq else 0.5
    power = np.tile(full_scale * np.array([1e-2, 1e-6]), 500)[:, np.newaxis, np.newaxis]
    power = np.broadcast_to(power, (1000, spec.n_signals, spec.n_bins))
    values = power if scaling == "spectrum" else 10.0 * np.log10(power / full_scale)
    options = PictureOptions(width=250, height=64, levels=(-40.0, 0.0))
    sink = PictureSink(tmp_path / "x.png", options, transpose, spec)
    sink.write(batch_of(values, spec))
    sink.finish()
    mean_db = 10.0 * np.log10((1e-2 + 1e-6) / 2.0)
    level = read_levels(tmp_path / "x.png").level
    np.testing.assert_allclose(level[:, 2:-2], mean_db, atol=40.0 / 478 + 0.02)


def test_a_changed_analysis_is_refused(tmp_path):
    """Spectra of another analysis are refused and never mixed into a picture."""
    other = spec_of(hop=32)
    with pytest.raises(ConfigError, match="the analysis has changed"):
        sink_of(tmp_path / "x.png").write(batch_of(flat(1, other), other))


@pytest.mark.parametrize("n_frames", [1, 7, 199, 200, 201, 5000])
@pytest.mark.parametrize("scaling", ["spectrum", "density"])
def test_a_flat_spectrum_is_flat(tmp_path, n_frames, scaling):
    """Equal frames give the same level everywhere, in the right unit, whatever their number."""
    spec = spec_of(scaling=scaling)
    sink = sink_of(tmp_path / "x.png", PictureOptions(width=200, height=64, levels=(-40.0, -20.0)),
                   scaling=scaling)  # fmt: skip
    sink.write(batch_of(flat(n_frames, spec), spec))
    sink.finish()
    read = read_levels(tmp_path / "x.png")
    expected = -30.0 + (10.0 * np.log10(2.0) if scaling == "spectrum" else 0.0)
    assert read.level.shape == (64, 200)
    np.testing.assert_allclose(read.level, expected, atol=20.0 / 478 + 1e-3)
    assert read.pixels.level_unit == ("dBFS" if scaling == "spectrum" else "dB re FS^2/Hz")
    assert read.pixels.duration_s == ((n_frames - 1) * 64 + 128) / FS


def test_gaps_are_hatched_and_counted(tmp_path):
    """Where samples are missing, the picture is hatched and the file states their share."""
    spec = spec_of()
    sink = sink_of(tmp_path / "x.png")
    sink.write(batch_of(flat(50, spec), spec, discontinuity=True))
    sink.write(batch_of(flat(50, spec), spec, 100, discontinuity=True, gap_samples=3136))
    sink.finish()
    read = read_levels(tmp_path / "x.png")
    is_gap = np.isnan(read.level)
    assert (is_gap.all(axis=0) == is_gap.any(axis=0)).all()
    gap_t = read.t[is_gap[0]]
    # Frame 49's hop ends at 49 hops + half a window + half a hop; frame 100's begins likewise.
    assert gap_t[0] == pytest.approx((49 * 64 + 64 + 32) / FS, abs=0.01)
    assert gap_t[-1] == pytest.approx((100 * 64 + 64 - 32) / FS, abs=0.01)
    assert (read.pixels.gaps, read.pixels.gap_samples) == (1, 3136)
    with Image.open(tmp_path / "x.png") as image:
        assert (np.asarray(image) == 255).any()


def test_a_click_is_in_the_columns_of_its_time(tmp_path):
    """A loud frame brightens the columns of its own time and no others."""
    spec = spec_of()
    power = flat(40, spec, 1e-9)
    power[25] = 1e-2
    sink = sink_of(tmp_path / "x.png")
    sink.write(batch_of(power, spec))
    sink.finish()
    read = read_levels(tmp_path / "x.png")
    loud_t = read.t[read.level[10] > -40.0]
    centre_s = (25 * 64 + 64) / FS
    np.testing.assert_array_less(np.abs(loud_t - centre_s), 32 / FS + 1e-9)
    assert loud_t.mean() == pytest.approx(centre_s, abs=0.5 * read.pixels.duration_s / 200)


def test_channels_have_their_own_plots(tmp_path):
    """Each channel's levels are in its own plot."""
    spec = spec_of(channels=3)
    power = flat(20, spec) * np.array([1.0, 0.1, 0.01])[:, np.newaxis]
    options = PictureOptions(width=200, height=64, levels=(-60.0, -20.0))
    sink = sink_of(tmp_path / "x.png", options, channels=3)
    sink.write(batch_of(power, spec))
    sink.finish()
    levels = [read_levels(tmp_path / "x.png", channel).level for channel in range(3)]
    for channel, level in enumerate(levels):
        np.testing.assert_allclose(level, -26.99 - 10.0 * channel, atol=40.0 / 478 + 0.01)
    with pytest.raises(ConfigError, match=r"channel=3: .*x\.png has 0 to 2"):
        read_levels(tmp_path / "x.png", 3)


@pytest.mark.parametrize("f_scale", ["linear", "log"])
@pytest.mark.parametrize("time_axis", ["elapsed", "utc"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_file_describes_itself(tmp_path, f_scale, time_axis, theme):
    """Title, software, analysis, start and axes are stored in the file with any appearance."""
    options = PictureOptions(width=200, height=64, f_scale=f_scale, time_axis=time_axis,
                             theme=theme, title="Grüße \udcff.wav")  # fmt: skip
    sink = sink_of(tmp_path / "x.PNG", options)
    sink.write(batch_of(flat(20, spec_of()), spec_of()))
    sink.finish()
    pixels = read_levels(tmp_path / "x.PNG").pixels
    assert pixels.software == "spectrod 1.2.3"
    assert pixels.begin_utc_ns == BEGIN_UTC_NS
    assert (pixels.fs, pixels.nfft, pixels.hop, pixels.window) == (FS, 128, 64, "hann")
    assert (pixels.f_scale, pixels.f_max_hz) == (f_scale, FS / 2.0)
    with Image.open(tmp_path / "x.PNG") as image:
        assert image.mode == "P"
        assert image.info["Title"] == "Grüße \\xff.wav"
        assert image.info["Software"] == "spectrod 1.2.3"


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "not a readable picture"), (b"text", "not a readable picture")],
)
def test_other_files_are_not_read(tmp_path, content, text):
    """A file that is not a picture is an input error that names the file."""
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(InputError, match=rf"x\.png: {text}"):
        read_levels(tmp_path / "x.png")


def test_missing_files_are_named(tmp_path):
    """A missing picture is an input error with the system's reason."""
    with pytest.raises(InputError, match=r"x\.png: No such file or directory"):
        read_levels(tmp_path / "x.png")


def test_a_truncated_picture_is_not_read(tmp_path):
    """A truncated picture is an input error and never half a picture."""
    sink = sink_of(tmp_path / "x.png")
    sink.write(batch_of(flat(20, spec_of()), spec_of()))
    sink.finish()
    content = (tmp_path / "x.png").read_bytes()
    (tmp_path / "y.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"y\.png: "):
        read_levels(tmp_path / "y.png")


def test_pictures_of_others_are_not_read(tmp_path):
    """A picture without our description, or with a damaged one, is refused."""
    Image.new("P", (8, 8)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="not a spectrogram of spectrod"):
        read_levels(tmp_path / "x.png")


@pytest.mark.parametrize(
    "axis",
    [
        level_labels(-85.0, -20.0, 100, "dBFS"),
        frequency_labels(FrequencyAxis("linear", 0.0, 4800.0), 50),
        frequency_labels(FrequencyAxis("linear", -96e3, 96e3), 50),
        frequency_labels(FrequencyAxis("log", 14125.4, 89125.1), 50),
        frequency_labels(FrequencyAxis("mel", 70e3, 447e3), 50),
        frequency_labels(FrequencyAxis("octave", 20.0, 24e3), 50),
        level_labels(-28.0, 35.7, 50, "dBFS"),
        time_labels(PictureOptions(), 200, (0, 0.0), 4.98),
        time_labels(PictureOptions(time_axis="utc"), 300, (58 * 10**9, 0.0), 7.0),
    ],
)
def test_axes_of_small_pictures_have_a_scale(axis):
    """Axes of small pictures have at least two labels, as one gives no scale."""
    assert len(axis.ticks) >= 2


def test_power_beyond_all_numbers_is_refused(tmp_path):
    """Samples of 1e38, whose power overflows, give an error of one line and no file."""
    power = flat(3, spec_of())
    power[1, 0, 5] = np.inf
    with pytest.raises(InputError, match="a power is beyond all numbers: samples too far beyond"):
        sink_of(tmp_path / "x.png").write(batch_of(power, spec_of()))
    assert list(tmp_path.iterdir()) == []
