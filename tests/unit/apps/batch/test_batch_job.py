"""The file of a job: what it says, and every mistake in it at its place."""

import re

import pytest

from spectrod.apps.batch import product_packages
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.shard import Shard, parse_shard
from spectrod.lib import optional_packages
from spectrod.lib.errors import ConfigError, UnavailableError

GOOD = """
[job]
name = "pier"
output = "results"
products = ["millidecade", "levels"]

[levels]
quantities = ["LZeq"]
format = "nc"

[features]
quantities = ["ACI"]

[attributes]
creator_name = "A. Nerd"

[deployments.north]
inputs = ["card", "file:///mnt/a*/*.wav"]
begin = 2026-05-01T00:00:00+02:00
"""


def job_of(tmp_path, text):
    path = tmp_path / "JOB.toml"
    path.write_text(text)
    return read_job(path)


def mistakes(tmp_path, text):
    """Return (line, column, text) of each mistake."""
    with pytest.raises(ConfigError) as caught:
        job_of(tmp_path, text)
    found = [re.fullmatch(r".+?JOB\.toml:(\d+):(\d+): (.+)", line) for line in caught.value.lines]
    assert all(found), caught.value.lines
    return [(int(one[1]), int(one[2]), one[3]) for one in found]


def test_paths_start_at_the_folder_of_the_file(tmp_path):
    """A job has absolute paths, times in UTC, and minutes of levels by default."""
    job = job_of(tmp_path, GOOD)
    assert job.output == str(tmp_path / "results")
    assert job.deployment("north").inputs == (str(tmp_path / "card"), "/mnt/a*/*.wav")
    assert job.deployment("north").begin_utc_ns == 1777586400 * 10**9
    assert (job.levels.interval_s, job.levels_format) == (60.0, "nc")
    assert job.attributes == {"creator_name": "A. Nerd"}


def test_all_mistakes_are_named_at_once(tmp_path):
    """Unknown keys, kinds, ranges, rules between keys and missing keys are one line each."""
    text = """
[job]
name = "my job"
unit = "week"
products = ["levles"]
attempts = 0
outputs = "x"
[levels]
quantities = ["LXeq"]
[analysis]
hop = 0
[deployment.a]
[deployments.state]
inputs = ["ftp://bucket/x", "b"]
begin = 2026-05-01T00:00:00
time_zone = "Mars/Olympus"
[deployments.b]
end = 2026-05-01T00:00:00Z
begin = 2026-05-02T00:00:00Z
calibration = "missing.toml"
"""
    found = mistakes(tmp_path, text)
    assert [(line, column) for line, column, _ in found] == [
        (2, 2), (3, 1), (4, 1), (5, 13), (6, 1), (7, 1), (8, 2), (11, 1), (12, 2), (13, 14),
        (14, 11), (15, 1), (16, 1), (17, 14), (18, 1), (20, 1),
    ]  # fmt: skip
    texts = dict(zip([line for line, _, _ in found], [text for *_, text in found], strict=True))
    assert texts[2] == "job.output: is missing"
    assert texts[3] == "job.name='my job': must be 1 to 64 of A-Z a-z 0-9 . _ -"
    assert texts[4] == "job.unit='week': must be one of day, hour"
    assert texts[5].endswith("did you mean levels?")
    assert texts[6] == "job.attempts=0: must be a whole number from 1 to 100"
    assert texts[7].startswith("job.outputs: unknown key; [job] knows name, output")
    assert texts[8].startswith("levels: quantity='LXeq': must be a level")
    assert texts[11].startswith("analysis: hop=0: must be")
    assert texts[12].endswith("did you mean deployments?")
    assert texts[13] == (
        "name of a deployment='state': must not begin with a dot or be 'state' or 'archive.zarr' "
        "or 'history'"
    )
    assert texts[14] == (
        "inputs='ftp://bucket/x': must be a folder, a file, a pattern or a file:// of them, or an "
        "address with s3://, gs://, http://, https://"
    )
    assert texts[15] == (
        "deployments.state.begin=2026-05-01T00:00:00: must be a date and time with a zone, as "
        "2026-05-01T04:30:00Z"
    )
    assert (
        texts[16]
        == "deployments.state.time_zone='Mars/Olympus': must be a time zone, as Europe/Berlin"
    )
    assert texts[17] == "deployments.b.inputs: is missing"
    assert texts[18].startswith("deployments.b.end=2026-05-01T00:00:00+00:00: must be after begin=")
    assert "missing.toml: there is no such file" in texts[20]


def test_zones_of_results_are_checked(tmp_path):
    """A zone that is none is named at its table; that of this machine has a name of its own."""
    wrong = '\n[picture]\ntime_zone = "Mars"\n'
    ((line, _, text),) = mistakes(tmp_path, GOOD + wrong)
    assert (line, text[:48]) == (22, "picture: time_zone='Mars': there is no such time")
    job = job_of(tmp_path, GOOD + wrong.replace("Mars", "local"))
    assert job.picture.time_zone == "local"


def test_a_key_in_another_table_is_named_with_its_own(tmp_path):
    """An unknown key that another table of a job has is suggested there."""
    found = mistakes(tmp_path, GOOD.replace("[job]", "[job]\nwin_length = 5"))
    ((_, _, text),) = found
    assert text.startswith("job.win_length: unknown key; [job] knows name, ")
    assert text.endswith("; did you mean analysis.win_length?")


def test_the_first_mistake_of_syntax_comes_alone(tmp_path):
    """A file that is no TOML has no settings that could be wrong or missing."""
    found = mistakes(tmp_path, '[job]\nname = pier\nunit = "week"\n[deployments.a]\ninputs = [1]\n')
    rule = 'not valid TOML: Invalid value; a string needs quotes: "pier"'
    assert found == [(2, 8, rule)]


def test_a_shard_is_every_nth_unit():
    """Shards of a plan share no unit and leave none out, also if there are more of them."""
    units = list(range(7))
    for total in (1, 3, 9):
        shards = [Shard(number, total).units(units) for number in range(1, total + 1)]
        assert sorted(unit for shard in shards for unit in shard) == units


def test_schedulers_tell_the_shard_by_variables():
    """Arrays of Slurm may begin at any number; indices of Kubernetes begin at 0."""
    slurm = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "4"}
    assert parse_shard("slurm", slurm) == (3, 4)
    assert parse_shard("kubernetes/4", {"JOB_COMPLETION_INDEX": "0"}) == (1, 4)
    assert parse_shard("2/8", {}) == (2, 8)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3", "--shard 3: must be I/N, slurm or kubernetes/N"),
        ("slurm/4", "--shard slurm/4: must be I/N, slurm or kubernetes/N"),
        ("0/4", "--shard 0/4: is shard 0 of 4: must be from 1 to the number of shards"),
        ("5/4", "--shard 5/4: is shard 5 of 4: must be from 1 to"),
        ("1/9999999", "--shard 1/9999999: must be at most 100000 shards"),
        ("slurm", "SLURM_ARRAY_TASK_ID='': must be a number; --shard needs it"),
    ],
)
def test_other_shards_are_refused(text, rule):
    """The error names the value and the rule."""
    with pytest.raises(ConfigError, match=re.escape(rule)):
        parse_shard(text, {})


@pytest.mark.parametrize(
    ("missing", "merged", "text"),
    [
        (("arro3",), "", "arro3 is not installed: needs: pip install 'spectrod[parquet]'"),
        (
            ("zarr", "h5py", "h5netcdf", "arro3"), 'merged = ["zarr"]',
            (
                "h5py, h5netcdf, arro3, zarr are not installed: needs: pip install "
                "'spectrod[netcdf,parquet,zarr]'"
            ),
        ),
        (
            ("zarr", "h5py"), 'merged = ["pyramid"]',
            "h5py is not installed: needs: pip install 'spectrod[netcdf]'",
        ),
        (("zarr", "xarray"), "", ""),
    ],
)  # fmt: skip
def test_missing_packages_are_named_once(tmp_path, monkeypatch, missing, merged, text):
    """One line has all packages that a job lacks, and one command that installs them."""
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None if name in missing else 1)
    products = 'products = ["millidecade", "levels"]'
    good = GOOD.replace('format = "nc"', 'format = "parquet"')
    line = next(one for one in good.splitlines() if one.startswith("products"))
    job = job_of(tmp_path, good.replace(line, f"{products}\n{merged}"))
    assert product_packages.missing_packages(job) == text
    if text:
        with pytest.raises(UnavailableError, match=re.escape(text)):
            product_packages.need_packages(job)
    product_packages.need_packages(job, for_units=False, for_merge=False)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ('output = "https://host/a"', "job.output: https://host/a: must be a folder, or s3:// or"),
        ('output = "azure://abc/a"', "job.output: azure://abc/a: must be a folder, or s3:// or"),
        ('output = "s3://abc/../a"', "job.output: s3://abc/../a: names of folders in it must have"),
        (
            'output = "s3://abc/a"\nmerged = ["zarr"]',
            "job.merged=['zarr']: needs an output that is a folder: a bucket cannot replace",
        ),
    ],
)
def test_outputs_that_cannot_be(tmp_path, lines, text):
    """One line with the key, the value and the rule."""
    ((_, _, found),) = mistakes(tmp_path, GOOD.replace('output = "results"', lines))
    assert found.startswith(text)


def test_an_output_may_be_in_a_bucket(tmp_path):
    """Its address has no slash at its end."""
    text = GOOD.replace('"results"', '"s3://abc/pier/"')
    assert job_of(tmp_path, text).output == "s3://abc/pier"


SITE = """
latitude = 54.5
longitude = -3
depth_m = 20.5
platform = "mooring"
instrument = "SoundTrap 600"
"""


def test_a_site_becomes_attributes_of_acdd(tmp_path):
    """Keys of a deployment are attributes of its files alone, before those of all files."""
    site = job_of(tmp_path, GOOD + SITE).deployment("north").site
    assert site.attributes == {
        "platform": "mooring",
        "instrument": "SoundTrap 600",
        "geospatial_lat_min": "54.5",
        "geospatial_lat_max": "54.5",
        "geospatial_lat_units": "degrees_north",
        "geospatial_lon_min": "-3",
        "geospatial_lon_max": "-3",
        "geospatial_lon_units": "degrees_east",
        "geospatial_vertical_min": "20.5",
        "geospatial_vertical_max": "20.5",
        "geospatial_vertical_units": "m",
        "geospatial_vertical_positive": "down",
    }
    assert job_of(tmp_path, GOOD).deployment("north").site.attributes == {}


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ("latitude = 91\nlongitude = 0", "latitude=91: .*90"),
        ("latitude = 0\nlongitude = 181", "longitude=181: .*180"),
        ("latitude = nan\nlongitude = 0", "latitude=nan: "),
        ("latitude = 54.5", "deployments.north.latitude=54.5: needs longitude"),
        ("longitude = 8", "deployments.north.longitude=8: needs latitude"),
        ("depth_m = -1", "depth_m=-1: "),
        ("depth_m = 3\nheight_m = 2", "deployments.north.depth_m=3: must not be beside height_m=2"),
        (f'platform = "{"x" * 201}"', "platform="),
        ("latitudes = 3", "latitudes.*latitude"),
    ],
)
def test_a_site_that_cannot_be_is_refused(tmp_path, keys, rule):
    """Bounds and rules between the keys are one line."""
    ((_, _, text),) = mistakes(tmp_path, GOOD + keys)
    assert re.search(rule, text), text
