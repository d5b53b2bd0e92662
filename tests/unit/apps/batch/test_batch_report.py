"""The report of a job: numbers from records, the average from daily files, escaped names."""

import json
import os
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import h5netcdf
import h5py
import msgspec
import numpy as np
import pytest

from spectrod.apps.batch.daily_file import EFFORTS
from spectrod.apps.batch.flags import parse_flags
from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.ltsa import HEIGHT, LongTermAverage, PooledDay, _Pool, pool_days
from spectrod.apps.batch.plan import write_plan
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.products import _look
from spectrod.apps.batch.report import make_report, write_report
from spectrod.apps.batch.report_page import _average, html_page
from spectrod.apps.batch.results import OutputFile, write_record
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit, file_digest
from spectrod.apps.batch.unit_settings import settings_of

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

HOSTILE = "<script>alert(1)</script>"
S_NS = 10**9


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """Return a job of two days, whose second day failed, its plan and its statuses."""
    folder = tmp_path_factory.mktemp("report")
    write(folder / "card", sound(120 * FS), 300.0)
    write(folder / "card", sound(90 * FS, 2), 900.0)
    write(folder / "card", sound(60 * FS, 3), 1200.0)
    # No file name has a slash.
    (folder / "card" / f"{HOSTILE.replace('/', '')}_20260502_120000.wav").write_bytes(b"")
    job = job_of(folder, folder / "card", products=("millidecade", "flags"))
    plan = plan_job(job)
    (folder / "results").mkdir(exist_ok=True)
    write_plan(folder / "results" / "plan.jsonl", plan)
    first, second = plan.units
    record = compute_unit(job, first)
    failed = msgspec.structs.replace(
        record, unit=second.name, state="failed", outputs=(), reason=HOSTILE, exit_code=74
    )
    failed = msgspec.structs.replace(
        failed, digest=second.digest(job), attempts=job.attempts, begin_utc_ns=second.begin_utc_ns
    )
    write_record(FolderOutput(folder / "results"), second, failed)
    return job, plan, [status_of(job, unit) for unit in plan.units]


def test_numbers_are_those_of_the_records(computed):
    """120 s of 270 s are computed, in a span of 960 s; the second day is set aside."""
    report, pictures = make_report(*computed)
    (one,) = report.deployments
    assert one.n_units == {"done": 1, "failed": 1}
    assert (one.sound_s, one.computed_s, one.gaps) == (270.0, 120.0, 0)
    assert one.coverage == pytest.approx(120 / 960, abs=1e-6)
    assert one.end_utc_ns - one.begin_utc_ns == 960 * S_NS
    assert [(day.day, day.share) for day in one.days] == [
        ("2026-05-01", pytest.approx(120 / 86400, abs=1e-6)),
        ("2026-05-02", 0.0),
    ]
    assert [(unit.state, unit.reason, unit.exit_code) for unit in one.set_aside] == [
        ("failed", HOSTILE, 74)
    ]
    assert one.findings["unreadable"] == 1
    assert [(found.deployment, found.signal) for found in pictures.averages] == [("north", "")]


def test_a_deployment_without_units_has_its_findings(tmp_path):
    """Files of which none can be used are in the report, with the number that is not listed."""
    for k in range(203):
        write(tmp_path / "card", sound(1), k).write_bytes(b"")
    job = job_of(tmp_path, tmp_path / "card")
    report, pictures = make_report(job, plan_job(job), [])
    (one,) = report.deployments
    assert (one.name, one.n_units, one.findings) == ("north", {}, {"unreadable": 203})
    page = html_page(report, pictures)
    assert "north</h2>" in page
    assert "20260501_235000.wav: empty file" in page
    assert "and 3 more in plan.jsonl" in page
    assert "1970" not in page


def test_a_day_with_little_sound_is_seen(computed):
    """The strip tells a day of two minutes from a day without sound."""
    report, pictures = make_report(*computed)
    page = html_page(report, pictures)
    shades = re.findall(r'fill-opacity="([0-9.]+)"><title>(\S+):', page)
    assert [(float(shade) > 0.2, day) for shade, day in shades] == [
        (True, "2026-05-01"), (False, "2026-05-02"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("zone", "span_s", "labels"),
    [
        ("UTC", 60, ["2026-05-01 23:55:00", "2026-05-01 23:55:10"]),
        ("UTC", 960, ["2026-05-01 23:55", "2026-05-02 00:00", "2026-05-02 00:05"]),
        ("UTC", 3 * 86400, ["2026-05-02 00:00", "2026-05-02 12:00", "2026-05-03 00:00"]),
        ("UTC", 99 * 86400, ["2026-05-07", "2026-05-27", "2026-06-16"]),
        ("Europe/Berlin", 960, ["2026-05-02 01:55", "2026-05-02 02:00", "2026-05-02 02:05"]),
        ("Europe/Berlin", 3 * 86400, ["2026-05-02 12:00", "2026-05-03 00:00"]),
        ("Europe/Berlin", 250 * 86400, ["2026-05-27", "2026-07-16", "2026-09-04"]),
        ("Asia/Kathmandu", 3 * 86400, ["2026-05-02 12:00", "2026-05-03 00:00"]),
    ],
)
def test_times_of_the_picture_are_round(zone, span_s, labels):
    """Labels are at whole minutes, hours or days of local time, of any length of a deployment."""
    begin_ns = 1777679700 * S_NS  # 2026-05-01 23:55
    level = np.zeros((HEIGHT, 2), np.float32)
    average = LongTermAverage(level, begin_ns, begin_ns + span_s * S_NS, 10.0, 500.0, "dB", ())
    found = re.findall(r">(2[-0-9: ]+)</text>", _average(average, "north", ZoneInfo(zone)))
    assert found[: len(labels)] == labels
    assert len(found) <= 7


@pytest.mark.parametrize("n_minutes", [3, 2400])
def test_the_average_is_the_mean_power(computed, n_minutes):
    """A pixel is the mean power of its minutes and bands; columns without data are NaN."""
    job, _, statuses = computed
    (output,) = (one for one in statuses[0].record.outputs if one.product == "millidecade")
    path = Path(job.output) / output.path
    with h5netcdf.File(path) as file:
        bounds, level, effort = (file[name][:] for name in ("frequency_bnds", "psd", "effort"))
    minutes = np.flatnonzero(effort)
    begin_ns = statuses[0].unit.start_utc_ns
    day = PooledDay(partial(nullcontext, path), output, statuses[0].unit.begin_utc_ns, FS)
    average = pool_days([day], begin_ns, begin_ns + n_minutes * 60 * S_NS)
    n_filled = 2 if n_minutes == 3 else 1
    assert average.level.shape == (HEIGHT, min(n_minutes, 1200))
    assert average.unit == "dB re 1 FS^2/Hz"
    assert np.isfinite(average.level[:, :n_filled]).all()
    assert np.isnan(average.level[:, n_filled:]).all()
    edges = 10.0 * 50.0 ** (np.arange(HEIGHT + 1) / HEIGHT)
    for row in (0, 149, HEIGHT - 1):
        low, high = edges[HEIGHT - 1 - row], edges[HEIGHT - row]
        shared = [max(0.0, min(high, hi) - max(low, lo)) for lo, hi in bounds]
        power = np.average(10.0 ** (level[minutes].astype(float) / 10.0), axis=1, weights=shared)
        if n_filled == 1:
            power = np.average(power, weights=effort[minutes])
        np.testing.assert_allclose(average.level[row, :n_filled], 10.0 * np.log10(power), atol=1e-6)


class FakeDay:
    """A daily file: minutes with effort have the level of their number in all bands."""

    def __init__(self, minutes, n_bands):
        self._effort = np.zeros(1440, np.float32)
        self._effort[minutes] = 55.0
        self._level = np.tile(np.arange(1440, dtype=np.float32) / 100.0, (n_bands, 1)).T

    def read(self, name):
        return self._effort if name == EFFORTS else self._level

    def unit(self):
        return "dB"


@pytest.mark.parametrize(("n_columns", "period_s"), [(400, 0.0), (1200, 600.0), (2161, 600.0)])
def test_columns_stand_for_periods_of_a_schedule(n_columns, period_s):
    """Of 55 s each 600 s for three days only the lost recording's columns are without data."""
    pool = _Pool(0, 4320, n_columns, 500.0)
    lost = {0: [], 1: [50, 70], 2: []}
    for day, missing in lost.items():
        about = PooledDay(partial(nullcontext, Path()), None, day * 86400 * S_NS, 1000.0)
        minutes = np.setdiff1d(np.arange(0, 1440, 10), missing)
        pool.add(FakeDay(minutes, len(about.bands)), about)
    level, found_s = pool.columns()
    assert found_s == period_s
    centres = (np.arange(n_columns) + 0.5) / n_columns * 4320
    number = (centres // 10).astype(int)
    is_lost = np.isin(number, [149, 151])
    if not period_s:  # a column has one or two minutes with data
        kept = np.setdiff1d(np.arange(0, 4320, 10), [1490, 1510])
        is_lost = ~np.isin(np.arange(n_columns), kept * n_columns // 4320)
    np.testing.assert_array_equal(np.isnan(level[-1]), is_lost)
    if period_s:
        expected = (10 * number) % 1440 / 100.0
        np.testing.assert_allclose(level[0, ~is_lost], expected[~is_lost], atol=1e-5)


def test_a_damaged_daily_file_is_left_out(tmp_path):
    """It is named, and the picture has no data."""
    path = tmp_path / "north_20260501.nc"
    path.write_bytes(b"no NetCDF")
    paths = [path, tmp_path / "missing.nc"]
    outputs = [msgspec.structs.replace(output_of(path), path=f"north/{one.name}") for one in paths]
    days = [
        PooledDay(partial(nullcontext, one), output, 0, FS)
        for one, output in zip(paths, outputs, strict=True)
    ]
    average = pool_days(days, 0, 60 * S_NS)
    assert average.unreadable == ("north_20260501.nc", "missing.nc")
    assert np.isnan(average.level).all()


def output_of(path):
    """Return what a record says of a file."""
    size, sha256 = file_digest(path)
    return OutputFile(product="millidecade", path=f"north/{path.name}", size=size, sha256=sha256)


def test_a_daily_file_of_a_terabyte_is_not_read(tmp_path):
    """Not even for its digest."""
    path = tmp_path / "north_20260501.nc"
    path.touch()
    os.truncate(path, 1 << 40)
    output = OutputFile(product="millidecade", path=f"north/{path.name}", size=1 << 40, sha256="00")
    average = pool_days([PooledDay(partial(nullcontext, path), output, 0, FS)], 0, 60 * S_NS)
    assert average.unreadable == (path.name,)


def daily_files(computed):
    """Return the daily file of the first unit, and what its record says of it."""
    job, _, statuses = computed
    (output,) = (one for one in statuses[0].record.outputs if one.product == "millidecade")
    return Path(job.output) / output.path, output, statuses[0].unit


def test_a_file_that_is_not_that_of_its_record_is_left_out(computed, tmp_path):
    """Its size may be the same: what counts is its content."""
    path, output, unit = daily_files(computed)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    changed = tmp_path / path.name
    changed.write_bytes(content)
    for one, unreadable in ((path, ()), (changed, (path.name,))):
        days = [PooledDay(partial(nullcontext, one), output, unit.begin_utc_ns, FS)]
        average = pool_days(days, unit.start_utc_ns, unit.start_utc_ns + 60 * S_NS)
        assert average.unreadable == unreadable
        assert np.isfinite(average.level).any() == (not unreadable)


@pytest.mark.parametrize(
    "change",
    [
        {"psd": ((1440, 500_000), "f4")},
        {"psd": ((1440 * 1000, 438), "f4")},
        {"psd": ((1440, 438), "f8")},
        {"effort": ((10**9,), "f4")},
        {"effort": ((1440, 1), "f4")},
        {"effort": None},
    ],
)
def test_arrays_that_no_daily_file_has_are_not_read(computed, tmp_path, change):
    """Shapes and types are compared before anything is read: what is large is not stored here."""
    path, _, unit = daily_files(computed)
    changed = tmp_path / path.name
    changed.write_bytes(path.read_bytes())
    ((name, form),) = change.items()
    with h5py.File(changed, "r+") as file:
        del file[name]
        if form is not None:
            shape, dtype = form
            file.create_dataset(name, shape, dtype, chunks=(min(shape[0], 1440), *shape[1:]))
    day = PooledDay(partial(nullcontext, changed), output_of(changed), unit.begin_utc_ns, FS)
    average = pool_days([day], unit.start_utc_ns, unit.start_utc_ns + 60 * S_NS)
    assert average.unreadable == (path.name,)
    assert np.isnan(average.level).all()


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "must begin with time_utc"),
        (b"\xff", "can't decode byte"),
        (b"other\n", "must begin with time_utc"),
        (b"HEAD\nx,1,0,-1,\n", "must have time_utc"),
        (b"HEAD\nx,1,0," + b"9" * 4000 + b",\n", "must have time_utc"),
        (b"HEAD\nx,1,0,9999999999999999999,\n", "must be at most 9007199254740992"),
        (b"HEAD\nx,1,0,1," + b";".join(b"%d" % n for n in range(300)), "at most 256 flags"),
        (b"HEAD\nx,1,0,1," + b"a" * 201, "of 200 characters"),
        (b"HEAD\n" + b"x" * (1 << 20), "must have at most 1048576 bytes"),
    ],
)
def test_flags_of_others_are_bounded(content, rule):
    """Numbers and texts of a report are those that a file of flags can have."""
    head = b"time_utc,effort_s,gaps,clipped_samples,flags"
    with pytest.raises(ValueError, match=rule):
        parse_flags(content.replace(b"HEAD", head))
    good = head + b"\na,60,0,3,silent;stuck\nb,60,0,4,silent\n"
    assert parse_flags(good) == ({"silent": 2, "stuck": 1}, 7)


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        """Keep the tag and what it loads."""
        self.found.append((tag, [value for name, value in attrs if name in ("src", "href")]))


def test_gaps_of_a_schedule_are_those_of_the_findings(tmp_path):
    """A pause at midnight lies between units; without the result of one of them it is not known."""
    for begin_s in (480.0, 540.0, 600.0, 660.0, 2 * 86400.0):  # the third one begins at midnight
        write(tmp_path / "card", sound(5 * FS), begin_s)
    job = job_of(tmp_path, tmp_path / "card", products=("flags",))
    plan = plan_job(job)
    for unit in plan.units:
        assert compute_unit(job, unit).state == "done"
    statuses = [status_of(job, unit) for unit in plan.units]
    report, pictures = make_report(job, plan, statuses)
    (one,) = report.deployments
    assert (one.gaps, one.missing_s) == (2, 110.0)
    night_s = 2 * 86400 - 665
    assert (one.unit_gaps, one.unit_gaps_s) == (2, 55.0 + night_s)
    page = html_page(report, pictures)
    assert f"<td>2 within units, 110.0 s; 2 between units, {55 + night_s}.0 s</td>" in page
    found = [note for note in one.notes if note.startswith("gap: ")]
    assert "gap: 3 gaps of 55 s, of a schedule of 60 s" in found
    assert len(found) == 2
    waiting = [statuses[0], replace(statuses[1], record=None, state="waiting"), statuses[2]]
    (one,) = make_report(job, plan, waiting)[0].deployments
    assert (one.unit_gaps, one.unit_gaps_s) == (0, 0.0)


def test_the_page_has_the_times_of_its_job(computed):
    """The zone is written at the top and at each axis; what is of UTC says so."""
    job, plan, statuses = computed
    berlin = msgspec.structs.replace(job.picture, time_zone="Europe/Berlin")
    local = msgspec.structs.replace(job, picture=berlin)
    pages = [html_page(*make_report(one, plan, statuses)) for one in (job, local)]
    assert "Times: UTC." in pages[0]
    assert "Times: Europe/Berlin." in pages[1]
    zones = ["UTC", "Europe/Berlin (UTC+02:00)"]
    begins = ["2026-05-01 23:55:00", "2026-05-02 01:55:00"]
    for page, zone, begin in zip(pages, zones, begins, strict=True):
        assert f'<tr><th scope="row">time, {zone}</th><td>{begin} to ' in page
        assert f"grey: no data. Times: {zone}.</p>" in page
        assert "days of UTC with results" in page
        assert f">{begin[:-3]}</text>" in page
    titles = [_look(settings_of(one, plan.units[0])).title for one in (job, local)]
    assert titles == ["north 20260501", "north 20260501 (day of UTC)"]
    levels = msgspec.structs.replace(job.levels, time_zone="Asia/Kathmandu")
    assert msgspec.structs.replace(job, levels=levels).time_zone == "Asia/Kathmandu"
    assert msgspec.structs.replace(local, levels=levels).time_zone == "Europe/Berlin"


def test_the_page_loads_nothing_and_runs_nothing(computed):
    """Names and reasons from outside are text; the only thing loaded is a picture inside."""
    report, pictures = make_report(*computed)
    path = Path(write_report(computed[0], report, html_page(report, pictures)))
    page = path.read_text()
    tags = _Tags()
    tags.feed(page)
    assert "script" not in {tag for tag, _ in tags.found}
    loaded = [value for _, values in tags.found for value in values]
    assert len(loaded) == 1
    assert loaded[0].startswith("data:image/png;base64,")
    assert "&lt;script&gt;" in page
    assert json.loads((path.parent / "report.json").read_text())["v"] == 1
