"""The products of a unit that are tables: those of the commands, in each format."""

import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.report import make_report
from spectrod.apps.batch.report_page import html_page
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.lib.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, sound, write

JOB = """
[job]
name = "test"
output = "results"
products = ["features", "levels"]
engine = "numpy"
[levels]
format = "{0}"
[analysis]
win_length = 256
hop = 128
[detect]
f_min_hz = 100
f_max_hz = 200
floor_s = 5
{2}
[features]
quantities = ["centroid", "ACI"]
win_length = 256
format = "{0}"
{1}
[deployments.north]
inputs = ["card"]
"""


def job_of(tmp_path, text="", table_format="csv", detect=""):
    path = tmp_path / "JOB.toml"
    path.write_text(JOB.format(table_format, text, detect))
    return read_job(path)


def rows(path):
    """Return the header and the rows of a CSV file."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_features_are_those_of_the_command(tmp_path):
    """Of two files with a gap, row by row, odd lengths and parts of minutes included."""
    card = tmp_path / "card"
    write(card, sound(100 * FS + 7), 600)
    write(card, sound(61 * FS), 760)
    job = job_of(tmp_path)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert record.state == "done", record.reason
    found = rows(tmp_path / "results/north/north_20260502_features.csv")
    assert found[0] == "time,duration_s,flags,centroid,ACI_5s"
    options = ["--interval", "60", "--quantity", "centroid,ACI", "--win-length", "256"]
    out = tmp_path / "command.csv"
    assert main(["features", str(card), *options, "-o", str(out)]) == 0
    assert found == rows(out)
    assert [line[:16] for line in found[1:]] == [f"2026-05-02T00:0{k}" for k in range(4)]


@pytest.mark.parametrize("table_format", ["csv", "nc", "parquet"])
def test_results_in_each_format_stand(tmp_path, table_format):
    """A record that names them is believed, and another table makes them due again."""
    write(tmp_path / "card", sound(70 * FS), 600)
    job = job_of(tmp_path, table_format=table_format)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert [(one.product, one.path) for one in record.outputs] == [
        (product, f"north/north_20260502_{product}.{table_format}")
        for product in ("levels", "features")
    ]
    assert status_of(job, unit).state == "done"
    other = msgspec.structs.replace(job.features, window="hamming")
    assert status_of(msgspec.structs.replace(job, features=other), unit).state == "waiting"
    without = msgspec.structs.replace(job, products=("levels",))
    digests = [
        unit.digest(msgspec.structs.replace(without, features=one)) for one in (job.features, other)
    ]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("interval_s = 0", "features: interval_s=0"),
        ('align = "local"\ntime_zone = "Mars"', "features: .*Mars"),
        ("hop = -1", "features.hop=-1: must be"),
        ("sources = []", "features.sources: unknown key"),
    ],
)
def test_mistakes_of_features_have_their_place(tmp_path, text, rule):
    """They are found before any file is read."""
    with pytest.raises(ConfigError, match=rule) as caught:
        job_of(tmp_path, text)
    assert "JOB.toml:" in str(caught.value)


def test_a_rate_that_has_no_such_index_fails_its_unit(tmp_path):
    """The reason names the index and the rule; nothing is left behind."""
    write(tmp_path / "card", sound(70 * FS), 600)
    job = job_of(tmp_path)
    features = msgspec.structs.replace(job.features, quantities=("NDSI",))
    job = msgspec.structs.replace(job, features=features)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert (record.state, record.exit_code) == ("failed", 2)
    assert "NDSI" in record.reason
    assert not list((tmp_path / "results/north").iterdir())
    assert record.attempts == job.attempts
    assert status_of(job, unit).is_set_aside


@pytest.mark.parametrize("what", ["plan", "run"])
@pytest.mark.parametrize(
    ("products", "tables", "rules"),
    [
        (
            ["features", "levels"],
            'quantities = ["NDSI"]',
            ["features: NDSI_1000-2000Hz_2000-8000Hz: band of 1000 to 2000 Hz: must be "],
        ),
        (
            ["features"],
            'quantities = ["ADI"]',
            ["features: ADI_0-10000Hz_1000Hz_-50dB: top_hz=10000, .* fs/2=500 Hz"],
        ),
        (
            ["levels", "detect", "picture"],
            (
                '[levels]\nbands = "octave"\nf_min_hz = 4000\nf_max_hz = 8000\n'
                "[detect]\nf_max_hz = 501\n[picture]\nf_max_hz = 600"
            ),
            ["levels: .*4000", "detect: f_max_hz=501: ", "picture: f_max=600: must be .* 500 Hz"],
        ),
    ],
)
def test_tables_that_do_not_fit_the_rate_are_found_first(
    tmp_path, capsys, what, products, tables, rules
):
    """One line for each product and deployment names the rate; nothing has been computed."""
    write(tmp_path / "card", sound(70 * FS), 600)
    write(tmp_path / "card", sound(70 * 20 * FS), 86400 + 600, fs=20 * FS)
    write(tmp_path / "card", sound(70 * FS), 2 * 86400 + 600)
    path = tmp_path / "JOB.toml"
    text = f'[job]\nname = "test"\noutput = "results"\nengine = "numpy"\nproducts = {products}\n'
    tables = tables if tables.startswith("[") else f"[features]\n{tables}"
    path.write_text(f'{text}{tables}\n[deployments.north]\ninputs = ["card"]\n')
    assert main(["batch", what, str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(rules)
    for line, rule in zip(lines, rules, strict=True):
        assert re.search(f"deployments.north, 1000 Hz: {rule}", line)
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["plan.jsonl"]


def test_a_day_of_another_rate_does_not_keep_the_rest_from_being_computed(tmp_path, capsys):
    """Settings that fit most days of a deployment are computed; the odd day has one attempt."""
    for k in (0, 2):
        write(tmp_path / "card", sound(30 * 20 * FS, k), 86400 * k + 600, fs=20 * FS)
    write(tmp_path / "card", sound(70 * FS), 86400 + 600)
    path = tmp_path / "JOB.toml"
    path.write_text(JOB.format("csv", "", "").replace('"ACI"', '"ADI"'))
    assert main(["batch", "run", str(path), "--jobs", "1"]) == 2
    said = capsys.readouterr()
    assert "units: 2 done, 1 failed of 3" in said.out
    assert said.err.count("north/20260503: ADI_0-10000Hz_1000Hz_-50dB: ") == 1


# ---- events


def calls(n, begins, n_call=FS // 2, f_hz=150.0):
    """Return noise with tones, whose begins are samples."""
    x = sound(n, 5).astype(np.float64) / 30
    for begin in begins:
        x[begin : begin + n_call, 0] += 8000 * np.sin(2 * np.pi * f_hz / FS * np.arange(n_call))
    return x.astype(np.int16)


def test_events_are_those_of_the_command(tmp_path):
    """Each has its file and its place in it, before and after a gap, in the first second too."""
    card = tmp_path / "card"
    write(card, calls(30 * FS, [256, 20 * FS]), 600)
    write(card, calls(31 * FS + 3, [7 * FS]), 660)
    job = job_of(tmp_path)
    job = msgspec.structs.replace(job, products=("detect",))
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert (record.state, record.reason, record.problems) == ("done", "", ())
    assert status_of(job, unit).state == "done"
    found = rows(tmp_path / "results/north/north_20260502_events.csv")
    places = [line.split(",") for line in found[1:]]
    assert [(one[0][:19], one[2]) for one in places] == [
        ("2026-05-02T00:00:00", "20260502_000000.wav"),
        ("2026-05-02T00:00:19", "20260502_000000.wav"),
        ("2026-05-02T00:01:06", "20260502_000100.wav"),
    ]
    for one, begin_s in zip(places, (0.256, 20.0, 7.0), strict=True):
        assert abs(float(one[3]) - begin_s) <= 256 / FS  # a frame
    out = tmp_path / "events.csv"
    options = ["--band", "100..200", "--floor", "5", "--win-length", "256", "--hop", "128"]
    assert main(["detect", str(card), *options, "-o", str(out)]) == 0
    assert [line.replace(f"{card}/", "") for line in rows(out)] == found


def test_the_report_counts_events(tmp_path):
    """By days, in the page too; a file that is none is named."""
    for day in (0, 1):
        begins = [2 * FS * k for k in range(1, 4 + 2 * day)]
        write(tmp_path / "card", calls(12 * FS, begins), 600 + 86400 * day)
    job = msgspec.structs.replace(job_of(tmp_path), products=("detect",))
    plan = plan_job(job)
    for unit in plan.units:
        compute_unit(job, unit)
    statuses = [status_of(job, unit) for unit in plan.units]
    report, pictures = make_report(job, plan, statuses)
    (one,) = report.deployments
    assert [(day.day, day.events) for day in one.days] == [("2026-05-02", 3), ("2026-05-03", 5)]
    page = html_page(report, pictures)
    assert "<td>8, most of them on 2026-05-03 UTC: 5</td>" in page
    assert "2026-05-02: 0.0 %, 3 events</title>" in page
    assert make_report(job_of(tmp_path), plan, statuses)[0].deployments[0].events is None
    path = tmp_path / "results/north/north_20260502_events.csv"
    for content in (b"", b"other\n", path.read_bytes()[:-1]):
        path.write_bytes(content)
        (damaged,) = make_report(job, plan, statuses)[0].deployments
        assert (damaged.events, damaged.unreadable) == (5, ("north/north_20260502_events.csv",))


def test_events_have_times_of_the_zone_of_their_table(tmp_path):
    """Local times with their offset, of the same instants; the report counts them, too."""
    write(tmp_path / "card", calls(12 * FS, [2 * FS * k for k in range(1, 4)]), 600)
    jobs = [job_of(tmp_path, detect=text) for text in ("", 'time_zone = "Europe/Berlin"')]
    found = []
    for job in (msgspec.structs.replace(one, products=("detect",)) for one in jobs):
        plan = plan_job(job)
        compute_unit(job, plan.units[0])
        lines = rows(tmp_path / "results/north/north_20260502_events.csv")
        found.append([line.split(",") for line in lines])
        statuses = [status_of(job, plan.units[0])]
        (one,) = make_report(job, plan, statuses)[0].deployments
        assert [day.events for day in one.days] == [3]
    (names, *utc), (local_names, *local) = found
    assert (names[:2], local_names[:2]) == (["begin_utc", "end_utc"], ["begin", "end"])
    for one, other in zip(utc, local, strict=True):
        for k in (0, 1):
            assert other[k].endswith("+02:00")
            ahead = np.datetime64(other[k][:-6]) - np.datetime64(one[k][:-1])
            assert ahead == np.timedelta64(2, "h")
        assert one[2:] == other[2:]


def test_a_unit_without_events_has_a_table_of_none(tmp_path):
    """What is too short for a noise floor is named as not examined."""
    write(tmp_path / "card", sound(2 * FS), 600)
    job = msgspec.structs.replace(job_of(tmp_path), products=("detect",))
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert len(rows(tmp_path / "results/north/north_20260502_events.csv")) == 1
    (problem,) = record.problems
    assert problem.startswith("detect: not examined: 1.")
    assert problem.endswith(" s are too short for a noise floor")


def test_events_that_a_hold_off_left_out_are_counted(tmp_path):
    """A line of the unit names them; by default there are none."""
    write(tmp_path / "card", calls(12 * FS, [2 * FS * k for k in range(1, 5)]), 600)
    problems = []
    for text in ("hold_off_s = 3", ""):
        job = msgspec.structs.replace(job_of(tmp_path, detect=text), products=("detect",))
        (unit,) = plan_job(job).units
        problems.append(compute_unit(job, unit).problems)
    # A call 2 s after an event begins and ends within its hold-off, one 4 s after it does not.
    assert [*problems[0]] == [
        "detect: left out: 2 within the hold-off (hold_off_s) of another event"
    ]
    assert not problems[1]


def test_the_trigger_decides_the_results_of_detect_alone(tmp_path):
    """So does the analysis; jobs without the product stand."""
    write(tmp_path / "card", sound(2 * FS), 600)
    jobs = [job_of(tmp_path, detect=text) for text in ("", "release_db = 5.0")]
    (unit,) = plan_job(jobs[0]).units
    assert len({unit.digest(job) for job in jobs}) == 1
    detecting = [msgspec.structs.replace(job, products=("detect",)) for job in jobs]
    assert len({unit.digest(job) for job in detecting}) == 2


def test_a_trigger_without_a_threshold_has_that_of_the_command(tmp_path):
    """10 dB over the floor in a band, 15 dB in bins; and no hold-off."""
    assert job_of(tmp_path).detect.hold_off_s == 0.0
    assert job_of(tmp_path).detect.over_floor_db == 10.0
    assert job_of(tmp_path, detect='kind = "bin"').detect.over_floor_db == 15.0
    assert job_of(tmp_path, detect="over_floor_db = 6.0").detect.over_floor_db == 6.0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("threshold = -20.0", "unit=''.*: must name the unit of threshold"),
        ('kind = "tone"', "prominence_db"),
        ('mask = "x"', "detect.mask: unknown key"),
        ("time_zone = 'Mars/X'", "time_zone='Mars/X'"),
        ("hold_off_s = -1", "hold_off_s=-1"),
    ],
)
def test_mistakes_of_the_trigger_have_their_place(tmp_path, text, rule):
    """They are found before any file is read."""
    with pytest.raises(ConfigError, match=rule) as caught:
        job_of(tmp_path, detect=text)
    assert "JOB.toml:" in str(caught.value)
