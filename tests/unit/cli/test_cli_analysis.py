"""Options for the analysis and the data files of ``record`` and ``convert``."""

import dataclasses
from pathlib import Path

import h5netcdf
import msgspec
import numpy as np
import pytest
import soundfile

from spectrod.cli import main, options, whole_parser
from spectrod.cli.picture_options import like, picture_options
from spectrod.config import config
from spectrod.config.settings import AnalysisConfig, SourceConfig
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.segment.segment_reader import SegmentReader

FS = 8000
NAME = "20260501_235930.wav"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECTROD_ENGINE_ENGINE", "numpy")


def noise(path, seconds):
    x = np.random.default_rng(8).uniform(-0.5, 0.5, round(seconds * FS))
    soundfile.write(path, x, FS, subtype="PCM_16")
    return soundfile.read(path)[0]


def rows_of(path):
    reader = SegmentReader(path)
    return reader.description, np.concatenate([batch.values for batch in reader.batches()])


@pytest.mark.parametrize("command", ["record", "run"])
def test_every_key_of_the_analysis_has_a_flag(command):
    """Every analysis key has a flag, so a new key appears on the command line by itself."""
    source = ["a.wav", "-o", "a.spd"] if command == "record" else []
    given = {key: f"value of {key}" for key in AnalysisConfig.__struct_fields__}
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
    args = whole_parser().parse_args([command, *source, *flags])
    assert options.flags(args)["analysis"] == given


ARGUMENTS = {
    "record": ["a.wav", "-o", "a.spd"],
    "run": [],
    "tones": ["a.wav"],
    "calibrate": ["a.wav", "--level=94", "-o", "c.toml"],
}


@pytest.mark.parametrize("command", ARGUMENTS)
def test_every_key_of_a_source_has_a_flag(command):
    """Every key of a source has a flag, but for those that commands take in another way."""
    others = {"uri", "name", "channel_names", "time_zone"}
    others |= {"iq", "center_frequency_hz"} if command == "calibrate" else set()
    keys = [key for key in msgspec.structs.fields(SourceConfig) if key.name not in others]
    given = {key.name: True if key.default is False else "x" for key in keys}
    names = {key: f"--{key.removesuffix('_hz').replace('_', '-')}" for key in given}
    flags = [names[key] if value is True else f"{names[key]}=x" for key, value in given.items()]
    args = whole_parser().parse_args([command, *ARGUMENTS[command], *flags])
    found = options.flags(args)["source"]
    assert {key: found[key] for key in given} == given


def test_flags_switch_off_what_a_file_switches_on(tmp_path):
    """A flag with --no- overrides true of the file, as later layers win."""
    (tmp_path / "c.toml").write_text("[source]\nuri = 'a.wav'\nloop = true\nstrict = true\n")
    args = whole_parser().parse_args(["run", "--no-loop"])
    source = config.load(str(tmp_path / "c.toml"), options.flags(args)).source
    assert (source.loop, source.strict) == (False, True)


OPTIONS_OF_PICTURES = {
    "width": ("300", 300),
    "height": ("60", 60),
    "f_scale": ("mel", "mel"),
    "f_min": ("0.1kHz", 100.0),
    "f_max": ("2k", 2000.0),
    "levels": ("-90,-10", (-90.0, -10.0)),
    "dynamic_range_db": ("40", 40.0),
    "percentiles": ("5,95", (5.0, 95.0)),
    "colormap": ("grey", "grey"),
    "time_axis": ("utc", "utc"),
    "time_zone": ("Europe/Berlin", "Europe/Berlin"),
    "strips": ("level,waveform", ("level", "waveform")),
    "theme": ("dark", "dark"),
    "title": ("pond", "pond"),
    "signals": ("left,right", ("left", "right")),
    "channels_as": ("files", "files"),
    "pool": ("max", "max"),
}
DRAWN = ("record", "a.wav", "-o", "a.png", "--title=x")
FLAGS_OF_OTHER_NAMES = {"dynamic_range_db": "--dynamic-range", "signals": "--channel-names"}


@pytest.mark.parametrize("key", OPTIONS_OF_PICTURES)
def test_every_option_of_pictures_has_a_flag(key):
    """A flag sets the option of pictures whose setting describes it, and no other."""
    text, value = OPTIONS_OF_PICTURES[key]
    flag = FLAGS_OF_OTHER_NAMES.get(key, f"--{key.replace('_', '-')}")
    args = whole_parser().parse_args([*DRAWN, f"{flag}={text}"])
    assert picture_options(args) == PictureOptions(**{"title": "x", key: value})


@pytest.mark.parametrize(
    ("flags", "is_raw"), [([], False), (["--raw"], True), (["--no-raw"], False)]
)
def test_pictures_can_be_pixels_alone(flags, is_raw):
    """The option without a value has a flag that sets it and one that resets it."""
    args = whole_parser().parse_args([*DRAWN, *flags])
    assert picture_options(args) == PictureOptions(title="x", raw=is_raw)
    tested = {*OPTIONS_OF_PICTURES, "raw"}
    assert tested == {field.name for field in dataclasses.fields(PictureOptions)}


def test_third_octaves_of_a_file(tmp_path):
    """Flags can set all that a configuration file can: bands, weighting and rows of one second."""
    noise("a.wav", 4.0)
    frames = ["--win-length", "4000", "--hop", "2000"]
    levels = [
        "--bands",
        "third-octave",
        "--weighting",
        "A",
        "--averaging",
        "mean",
        "--rate-hz",
        "1",
    ]
    assert main(["record", "a.wav", "-o", "flags.spd", *frames, *levels]) == 0
    (tmp_path / "c.toml").write_text(
        "[analysis]\nwin_length = 4000\nhop = 2000\n"
        'bands = "third-octave"\nweighting = "A"\naveraging = "mean"\nrate_hz = 1.0\n'
    )
    assert main(["record", "a.wav", "-o", "file.spd", "--config", "c.toml"]) == 0
    described, values = rows_of("flags.spd")
    described_by_file, values_by_file = rows_of("file.spd")
    assert described.spec == described_by_file.spec
    assert (described.spec.bands, described.spec.weighting) == ("third-octave", "A")
    np.testing.assert_array_equal(values, values_by_file)


@pytest.mark.slow
def test_like_repeats_rows_at_a_rate(tmp_path):
    """The option --like alone reproduces a picture of 0.1 s maxima byte for byte."""
    noise("a.wav", 30.0)
    rows = ["--averaging", "max", "--rate-hz", "10", "--win-length", "256", "--hop", "128"]
    assert main(["record", "a.wav", "-o", "a.png", "--width", "200", "--raw", *rows]) == 0
    assert main(["record", "a.wav", "-o", "b.png", "--like", "a.png"]) == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    reported = like(Path("a.png"))
    assert (reported["averaging"], reported["rate_hz"]) == ("max", 10.0)
    assert main(["record", "a.wav", "-o", "c.png", "--width", "200", "--raw"]) == 0
    assert "averaging" not in like(Path("c.png"))  # derived from the width


def test_attributes_go_into_data_files(tmp_path):
    """The option --attribute of ``record`` reaches every data file."""
    noise(NAME, 1.0)
    flags = ["--attribute", "title=Reef", "--attribute", "creator_name=A. Nonym"]
    assert main(["record", NAME, "-o", "a.nc", "-o", "a.spd", *flags]) == 0
    assert rows_of("a.spd")[0].attributes == {"title": "Reef", "creator_name": "A. Nonym"}
    assert main(["record", "a.spd", "-o", "b.nc", "--attribute", "title=Pond"]) == 0
    for path, title in (("a.nc", "Reef"), ("b.nc", "Pond")):
        with h5netcdf.File(tmp_path / path, "r") as file:
            assert (file.attrs["title"], file.attrs["creator_name"]) == (title, "A. Nonym")


def test_the_time_zone_of_a_source_goes_into_data_files(tmp_path):
    """That of the configuration, in each format; without one nothing is stated."""
    noise(NAME, 1.0)
    Path("c.toml").write_text('[source]\ntime_zone = "Asia/Kolkata"\n')
    zoned = ["record", NAME, "-o", "a.nc", "-o", "a.spd"]
    assert main([*zoned, "--config", "c.toml"]) == 0
    assert rows_of("a.spd")[0].attributes == {"time_zone": "Asia/Kolkata"}
    with h5netcdf.File(tmp_path / "a.nc", "r") as file:
        assert file.attrs["time_zone"] == "Asia/Kolkata"
    assert main(["record", NAME, "-o", "b.spd"]) == 0
    assert rows_of("b.spd")[0].attributes == {}


@pytest.mark.parametrize("output", ["daily.nc", "days/", "days"])
def test_daily_files_in_one_command(output, tmp_path):
    """The option --profile millidecade writes a file a day and selects the needed analysis."""
    (tmp_path / "days").mkdir()
    x = noise(NAME, 90.0)
    assert main(["record", NAME, "-o", output, "--profile", "millidecade"]) == 0
    stem = Path("daily") if output == "daily.nc" else Path("days") / Path(NAME).stem
    paths = [stem.with_name(f"{stem.name}_{day}.nc") for day in ("20260501", "20260502")]
    found = [path for path in Path().rglob("*") if path.is_file() and path.name != NAME]
    assert sorted(found) == paths
    levels, effort = [], 0.0
    for path, minute in zip(paths, (1439, 0), strict=True):
        with h5netcdf.File(path, "r") as file:
            effort += float(np.sum(file["effort"][:]))
            frequency = file["frequency"][:]
            levels.append(file["psd"][minute])
    assert effort == pytest.approx(90.0, abs=1.0)
    # White noise of uniform samples from -0.5 to 0.5, averaged over both minutes.
    density = np.mean(np.square(x)) / (FS / 2)
    inner = (frequency > 10) & (frequency < 3900)
    power = np.average(10.0 ** (np.array(levels) / 10.0), axis=0, weights=[1, 2])
    assert 10 * np.log10(power[inner].mean() / density) == pytest.approx(0.0, abs=0.05)


def test_daily_files_beside_a_picture_and_by_other_frames():
    """A picture keeps its own analysis beside daily files, and flags override the profile's."""
    noise(NAME, 40.0)
    made = ["-o", "a.png", "-o", "a.nc", "-o", "a.spd", "--profile", "millidecade"]
    assert main(["record", NAME, *made, "--hop", "8000"]) == 0
    assert Path("a_20260501.nc").exists()
    assert rows_of("a.spd")[0].spec.hop == 8000
    assert like(Path("a.png"))["bands"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-o", "a.nc", "--profile", "millidecade"],
            "--profile millidecade: a.wav has no start ti",
        ),
        (
            ["-o", "a.csv", "--profile", "millidecade", "--start-time", "2026-05-01"],
            "must be a .nc",
        ),
        (
            ["-o", "x", "--every", "1h", "--name", "%Y%m%d%H.nc", "--profile", "millidecade"],
            "--every 1h: must be without --profile, which makes daily files",
        ),
        (
            ["-o", "a.nc", "--subtype", "s16"],
            "--subtype s16: is for .wav .flac .sigmf-meta .sigmf-data, and the output is a",
        ),
        (
            ["-o", "a.png", "--attribute", "title=x"],
            "--attribute title=x: is for .spd .nc .h5 .zarr",
        ),
        (["-o", "a.nc", "--attribute", "title"], "--attribute title: must be NAME=VALUE, as in t"),
        (["-o", "a.wav.csv", "--compression", "11"], "compression=11: must be 0 to 9"),
        (["-o", "a.csv", "--weighting", "B"], "analysis.weighting='B': must be one of Z, A, C"),
        (["-o", "a.csv", "--averaging", "mean"], "averaging='mean': needs rate_hz"),
    ],
)
def test_an_unused_flag_is_one_line(arguments, message, capsys):
    """A flag that is invalid or that no output uses is an error that names the outputs that do."""
    noise("a.wav", 1.0)
    assert main(["record", "a.wav", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["a.wav"]


def test_spectra_that_are_stored_stay_as_they_are(capsys):
    """Analysis flags are refused for stored spectra, which have no samples."""
    noise("a.wav", 1.0)
    assert main(["record", "a.wav", "-o", "a.spd"]) == 0
    assert main(["record", "a.spd", "-o", "a.csv", "--bands", "octave"]) == 2
    assert "--bands octave: is for samples, and a.spd has spectra" in capsys.readouterr().err
