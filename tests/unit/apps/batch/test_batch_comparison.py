"""Several deployments in a report: the same colours and axes, and how much louder one is."""

import json
import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from spectrod.apps.batch.comparison import (
    DIFFERENCES_MAX,
    SHARED_MIN_S,
    Axes,
    SignalAverage,
    common_axes,
    compare,
    diverging,
    on_one_scale,
)
from spectrod.apps.batch.job import Deployment
from spectrod.apps.batch.ltsa import HEIGHT, SHADES, LongTermAverage
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.report import make_report, write_report
from spectrod.apps.batch.report_page import html_page
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

DAY_NS = 86400 * 10**9


def axes(begin_day, end_day, f_max_hz=500.0):
    return Axes(round(begin_day * DAY_NS), round(end_day * DAY_NS), f_max_hz)


@pytest.mark.parametrize(
    ("own", "together"),
    [
        ({}, ()),
        ({"a": axes(0, 9)}, ("a",)),
        ({"a": axes(0, 8), "b": axes(4, 12)}, ("a", "b")),
        ({"a": axes(0, 8), "b": axes(5, 13)}, ("a",)),
        ({"a": axes(2, 6, 800.0), "b": axes(0, 8), "c": axes(0, 1)}, ("a", "b")),
        ({"a": axes(0, 1), "b": axes(7, 8)}, ("a",)),
    ],
)
def test_deployments_of_about_the_same_time_have_one_axis(own, together):
    """Those that have half of the longest time are drawn over all of it; others by themselves."""
    found = common_axes(own)
    assert found.keys() == own.keys()
    for name, one in own.items():
        if name in together:
            alike = [own[other] for other in together]
            assert found[name] == Axes(
                min(other.begin_utc_ns for other in alike),
                max(other.end_utc_ns for other in alike),
                max(other.f_max_hz for other in alike),
            )
        else:
            assert found[name] == one


def average(level, deployment, signal="", unit="dB", begin=0, period_s=0.0):
    """Return an average of some columns with the same level in all rows, or of an array."""
    level = np.array(level, np.float64)
    if level.ndim == 1:
        level = np.tile(level, (HEIGHT, 1))
    found = LongTermAverage(level, begin, begin + DAY_NS, 10.0, 500.0, unit, (), period_s)
    return SignalAverage(deployment, signal, found)


def test_levels_of_a_unit_have_one_scale():
    """Each unit has a range that covers all of its averages; NaN counts nowhere."""
    found = on_one_scale(
        [
            average([-80.0, np.nan], "a"),
            average([-20.0, -60.0], "b"),
            average([90.0, 95.0], "c", unit="dB SPL"),
            average([np.nan, np.nan], "d", unit="none"),
        ]
    )
    assert [one.average.limits for one in found] == [
        (-80.0, -20.0), (-80.0, -20.0), (90.0, 100.0), (0.0, 10.0),
    ]  # fmt: skip


def test_a_difference_is_that_of_mean_powers_where_both_have_data():
    """Of columns that one of them lacks there is none, in the picture and in the octaves."""
    ours = average([-60.0, -70.0, np.nan, -50.0], "b", period_s=600.0)
    theirs = average([-63.0, -66.0, -40.0, np.nan], "a")
    ((found,), left_out) = compare([theirs, ours])
    assert left_out == []
    np.testing.assert_allclose(found.picture.level[0], [3.0, -4.0, np.nan, np.nan])
    assert found.picture.limits == (-4.0, 4.0)
    assert (found.picture.unit, found.picture.period_s) == ("dB", 600.0)
    numbers = found.numbers
    assert (numbers.deployment, numbers.reference, numbers.unit) == ("b", "a", "dB")
    assert [band.f_hz for band in numbers.bands] == [15.625, 31.25, 62.5, 125.0, 250.0, 500.0]
    levels = [
        10 * np.log10(np.mean(10 ** (np.array(one) / 10))) for one in ([-60, -70], [-63, -66])
    ]
    for band in numbers.bands:
        assert (band.level_db, band.reference_db) == tuple(np.round(levels, 2))
        assert band.difference_db == round(levels[0] - levels[1], 2)


def test_bands_of_an_octave_count_by_their_width():
    """Half an octave of twice the power is more than half of the octave's power."""
    row_hz = np.geomspace(500.0, 10.0, 2 * HEIGHT + 1)[1::2]
    level = np.where(row_hz > 250.0, 10.0, 0.0)[:, np.newaxis]
    (found,), _ = compare([average(np.zeros((HEIGHT, 1)), "a"), average(level, "b")])
    (band,) = (one for one in found.numbers.bands if one.f_hz == 250.0)
    in_octave = np.rint(np.log2(row_hz / 1000.0)) == -2
    share = row_hz[in_octave & (row_hz > 250.0)].sum() / row_hz[in_octave].sum()
    assert share > 0.55
    assert band.difference_db == pytest.approx(10 * np.log10(1 + 9 * share), abs=0.01)


def test_what_cannot_be_compared_says_why():
    """Other units, signals or times; and no data at the same time is no octave."""
    shared_ns = (SHARED_MIN_S - 1) * 10**9
    others = [
        average([-60.0], "b", unit="dB SPL"),
        average([-60.0], "c", signal="1"),
        average([-60.0], "d", begin=DAY_NS - shared_ns),
        average([-60.0], "d", signal="1", unit="dB SPL"),
    ]
    found, left_out = compare([average([-60.0], "a"), average([-50.0], "a", "2"), *others])
    assert found == []
    assert left_out == [
        "b: its levels are in dB SPL, those before it in others",
        "c 1: no deployment before it has a channel of this name",
        "d: it has less than 600 s in common with those before it",
        "d 1: its levels are in dB SPL, those before it in others",
    ]
    (found,), _ = compare([average([-60.0], "a"), average([np.nan], "f")])
    assert (found.numbers.bands, found.picture.limits) == ((), (-3.0, 3.0))
    silent = average([-np.inf], "g")
    (found,), _ = compare([silent, silent._replace(deployment="h")])
    assert found.numbers.bands == ()
    found, left_out = compare([average([float(k)], f"site{k}") for k in range(11)])
    assert [one.numbers.deployment for one in found] == [f"site{k}" for k in range(1, 9)]
    assert left_out == [f"site{k}: a report has at most 8 differences" for k in (9, 10)]
    assert DIFFERENCES_MAX == 8


def test_a_deployment_is_compared_with_the_first_one_of_its_time():
    """Two of spring and two of autumn have two differences, each of one season."""
    seasons = [("a", 0), ("b", 0), ("c", 9 * DAY_NS), ("d", 9 * DAY_NS)]
    found, left_out = compare([average([1.0], name, begin=begin) for name, begin in seasons])
    assert [(one.numbers.deployment, one.numbers.reference) for one in found] == [
        ("b", "a"), ("d", "c"),
    ]  # fmt: skip
    assert left_out == ["c: it has less than 600 s in common with those before it"]


@pytest.mark.parametrize("fs", [FS, 2 * FS])
def test_deployments_of_a_short_common_time_are_compared_in_it(tmp_path, fs):
    """Of 50 and 40 minutes 12 are common: the difference is of these, and of the lower rate."""
    common = sound(12 * 60 * FS)
    write(tmp_path / "north", sound(38 * 60 * FS, 2), 0)
    write(tmp_path / "north", common, 38 * 60)
    samples = np.repeat(2 * common, fs // FS, axis=0)
    write(tmp_path / "south", samples, 38 * 60, fs=fs)
    write(tmp_path / "south", 3 * sound(28 * 60 * fs, 3), 50 * 60, fs=fs)
    job = job_of(tmp_path, tmp_path / "north", products=("millidecade",))
    south = Deployment(name="south", inputs=(str(tmp_path / "south"),))
    job = msgspec.structs.replace(job, deployments=(*job.deployments, south))
    plan = plan_job(job)
    for unit in plan.units:
        assert compute_unit(job, unit).state == "done"
    report, pictures = make_report(job, plan, [status_of(job, unit) for unit in plan.units])
    spans = {(one.average.begin_utc_ns, one.average.end_utc_ns) for one in pictures.averages}
    assert len(spans) == 2
    (found,) = report.differences
    (picture,) = (one.picture for one in pictures.comparisons)
    assert picture.level.shape == (HEIGHT, 12)
    assert picture.end_utc_ns - picture.begin_utc_ns == 12 * 60 * 10**9
    assert picture.f_max_hz == FS / 2
    differences = [band.difference_db for band in found.bands if band.f_hz <= FS / 16]
    # Each sample twice is a sample and hold of the lower rate: sinc(f / FS), 0.06 dB at FS / 16.
    np.testing.assert_allclose(differences, 20 * np.log10(2), atol=0.01 if fs == FS else 0.15)
    page = html_page(report, pictures)
    assert page.count("<h3>south less north</h3>") == 1
    assert "Without a difference" not in page


def test_the_page_says_why_there_is_no_difference(tmp_path):
    """Of deployments of different days, and of those without data at the same time."""
    write(tmp_path / "north", sound(60 * FS), 600)
    write(tmp_path / "north", sound(60 * FS), 3000)
    write(tmp_path / "south", sound(60 * FS), 86400)
    write(tmp_path / "west", sound(60 * FS), 1200)
    write(tmp_path / "west", sound(60 * FS), 2400)
    job = job_of(tmp_path, tmp_path / "north", products=("millidecade",))
    more = [Deployment(name=name, inputs=(str(tmp_path / name),)) for name in ("south", "west")]
    job = msgspec.structs.replace(job, deployments=(*job.deployments, *more))
    plan = plan_job(job)
    for unit in plan.units:
        compute_unit(job, unit)
    report, pictures = make_report(job, plan, [status_of(job, unit) for unit in plan.units])
    assert report.differences_left_out == (
        "south: it has less than 600 s in common with those before it",
    )
    page = html_page(report, pictures)
    assert "<li>south: it has less than 600 s in common with those before it</li>" in page
    assert "<h3>west less north</h3>\n<p>They have no data at the same time.</p>" in page


def test_colours_of_differences_are_white_at_zero():
    """Blue stands for less and red for more, as on the page."""
    colours = diverging(SHADES)
    assert colours.shape == (SHADES, 3)
    assert [tuple(colours[k]) for k in (0, SHADES // 2, -1)] == [
        (33, 102, 172), (247, 247, 247), (178, 24, 43),
    ]  # fmt: skip


def test_the_report_has_two_deployments_on_one_scale_and_their_difference(tmp_path):
    """One with twice the amplitude is 6 dB louder in all octaves; the page and JSON say so."""
    x = sound(120 * FS)
    write(tmp_path / "north", x, 600)
    write(tmp_path / "south", 2 * x, 600)
    write(tmp_path / "south", sound(60 * FS, 2), 780)
    job = job_of(tmp_path, tmp_path / "north", products=("millidecade",))
    south = Deployment(name="south", inputs=(str(tmp_path / "south"),))
    job = msgspec.structs.replace(job, deployments=(*job.deployments, south))
    plan = plan_job(job)
    for unit in plan.units:
        assert compute_unit(job, unit).state == "done"
    report, pictures = make_report(job, plan, [status_of(job, unit) for unit in plan.units])
    spans = {(one.average.begin_utc_ns, one.average.end_utc_ns) for one in pictures.averages}
    assert len(spans) == 1
    assert len({one.average.limits for one in pictures.averages}) == 1
    (found,) = report.differences
    assert (found.deployment, found.reference, found.signal) == ("south", "north", "")
    differences = [band.difference_db for band in found.bands]
    np.testing.assert_allclose(differences, 20 * np.log10(2), atol=0.01)
    assert len(differences) == 6
    path = Path(write_report(job, report, html_page(report, pictures)))
    page = path.read_text()
    assert page.count("<h3>south less north</h3>") == 1
    assert len(set(re.findall(r"black (\S+) to yellow (\S+) dB", page))) == 1
    stored = json.loads((tmp_path / "results/report.json").read_text())["differences"]
    assert stored == json.loads(msgspec.json.encode(report.differences))
