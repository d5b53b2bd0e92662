"""``batch init``: what a folder has, and a job of it that runs."""

import datetime as dt
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.plan import read_plan
from spectrod.apps.batch.time_lines import TimedFile, time_lines
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_pixel_map

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, sound, write

CALIBRATION = 'reference = "1 uPa"\nfull_scale_db = 172\nfull_scale = "rms"\n'


def init(folder, *options):
    return main(["batch", "init", str(folder), "-o", str(folder.parent / "JOB.toml"), *options])


def drafted(folder, *options):
    """Draft the job of a folder, and return it."""
    assert init(folder, *options) == 0
    return read_job(folder.parent / "JOB.toml")


def inputs(job, folder):
    """Return the inputs of each deployment, from the folder on."""
    return {
        one.name: [str(Path(text).relative_to(folder)) for text in one.inputs]
        for one in job.deployments
    }


def audiomoth(folder, begin_s, n_s=60):
    """Write a file as an AudioMoth does: its comment states the time with its zone."""
    when = dt.datetime(2026, 5, 1, 22, tzinfo=dt.UTC) + dt.timedelta(seconds=begin_s)
    folder.mkdir(parents=True, exist_ok=True)
    with soundfile.SoundFile(folder / f"{when:%Y%m%d_%H%M%S}.WAV", "w", FS, 1, "PCM_16") as file:
        file.comment = f"Recorded at {when:%H:%M:%S %d/%m/%Y} (UTC) by AudioMoth 24F319055FDF2F8B"
        file.write(sound(n_s * FS, begin_s)[:, 0])


# ---- recorders


def spans(*files):
    """Return files (path, begin, end) in minutes."""
    return [
        TimedFile(Path("/disk") / path, begin * 60 * 10**9, end * 60 * 10**9)
        for path, begin, end in files
    ]


def grouped(*files):
    found = time_lines(Path("/disk"), spans(*files))
    return {
        name: [str(one.path.relative_to("/disk")) for one in some] for name, some in found.items()
    }


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ([("a.wav", 0, 1), ("b.wav", 5, 6)], [""]),
        ([("20260501/a.wav", 0, 9), ("20260502/b.wav", 10, 11)], [""]),
        ([("card1/a.wav", 0, 9), ("card2/b.wav", 10, 11)], [""]),
        ([("site1/a.wav", 0, 9), ("site2/b.wav", 5, 11)], ["site1", "site2"]),
        ([("north/a.wav", 0, 9), ("south/b.wav", 10, 11)], ["north", "south"]),
        ([("north/a.wav", 0, 9), ("c.wav", 10, 11)], ["", "north"]),
        ([("x/north/1/a.wav", 0, 9), ("x/south/1/b.wav", 10, 11)], ["x-north-1", "x-south-1"]),
        ([("05/n/a.wav", 0, 9), ("05/s/b.wav", 0, 9), ("06/n/c.wav", 20, 29)], ["n", "05-s"]),
        ([("n/new/a.wav", 0, 9), ("n/old/b.wav", 10, 11)], ["n-new", "n-old"]),
        ([("n/new/a.wav", 0, 9), ("n/old/b.wav", 10, 11), ("s/c.wav", 0, 1)], ["n", "s"]),
        (
            [(f"{name}_20260501_22{k}000.wav", 10 * k, 10 * k + 2)
             for k in (0, 1) for name in "AB"],
            ["A", "B"],
        ),
        (
            [(f"{name}_20260501_22{k}000.wav", 10 * k + 5 * (name == "B"), 10 * k + 6)
             for k in (0, 1) for name in "AB"],
            ["A", "B"],
        ),
        ([("dawn_20260501_0400.wav", 0, 9), ("dusk_20260501_2000.wav", 20, 29)], [""]),
    ],
)  # fmt: skip
def test_recorders_are_told_apart_by_folders_names_and_times(files, names):
    """Different names are different recorders; like names are, if their times interleave."""
    assert sorted(grouped(*files)) == sorted(names)


@pytest.mark.parametrize("strays", [[], [0], [-90], [35, 36], [1000]])
def test_a_wrong_clock_does_not_part_days(strays):
    """Folders of days are one recorder, though some files of one of them lie in another or away."""
    days = [
        (f"2026050{day}/{k}.wav", 100 * day + 10 * k, 100 * day + 10 * k + 1)
        for day in range(5)
        for k in range(10)
    ]
    wrong = [(f"20260501/stray{begin}.wav", begin + 2, begin + 3) for begin in strays]
    assert list(grouped(*days, *wrong)) == [""]


@pytest.mark.parametrize("offset", [0, 5])
def test_recorders_that_take_turns_are_parted(offset):
    """Sites with like names, whether their schedules begin together or not."""
    files = [
        (f"site{site}/{k}.wav", 10 * k + offset * site, 10 * k + offset * site + 1)
        for site in (0, 1)
        for k in range(10)
    ]
    assert list(grouped(*files)) == ["site0", "site1"]


def test_files_without_times_stay_with_their_folder():
    """They have no time that could part them, and none is lost."""
    timed = spans(("site1/a.wav", 0, 9), ("site2/b.wav", 5, 11))
    found = time_lines(Path("/disk"), [*timed, TimedFile(Path("/disk/site2/c.wav"))])
    assert [len(some) for some in found.values()] == [1, 2]


PATHS = st.lists(st.sampled_from(["a", "b1", "b2", "2026", "x y", "[1]"]), max_size=3)
SPANS = st.tuples(PATHS, st.integers(0, 99), st.integers(0, 9), st.booleans())


@given(st.lists(SPANS, min_size=1, max_size=12))
def test_each_file_is_in_one_group(found):
    """Whatever folders and times there are."""
    files = [
        TimedFile(Path("/disk", *folders, f"{k}.wav"), *((begin, begin + n) if timed else ()))
        for k, (folders, begin, n, timed) in enumerate(found)
    ]
    groups = time_lines(Path("/disk"), files)
    assert sorted(one.path for some in groups.values() for one in some) == sorted(
        file.path for file in files
    )


# ---- the command


def test_two_commands_make_a_season(tmp_path, monkeypatch, capsys):
    """From a folder to daily files, levels, pictures and a report; the engine alone is changed."""

    class InProcess:
        def __init__(self, *_, **__):
            pass

        def run(self, job, units):
            return (compute_unit(job, unit) for unit in units)

    monkeypatch.setattr("spectrod.apps.batch.command_run.LocalExecutor", InProcess)
    monkeypatch.chdir(tmp_path)
    for begin_s in (0, 3600, 7200):
        audiomoth(tmp_path / "disk" / "north", begin_s)
        audiomoth(tmp_path / "disk" / "south", begin_s + 1)
    assert main(["batch", "init", "disk"]) == 0
    assert capsys.readouterr().out == (
        "north: 3 files, 180 s of sound, 2026-05-01T22:00:00Z to 2026-05-02T00:01:00Z; WAV, "
        "1000 Hz x 1; times: AudioMoth's comment\n"
        "  gap: 2 gaps of 3540 s, of a schedule of 3600 s\n"
        "south: 3 files, 180 s of sound, 2026-05-01T22:00:01Z to 2026-05-02T00:01:01Z; WAV, "
        "1000 Hz x 1; times: AudioMoth's comment\n"
        "  gap: 2 gaps of 3540 s, of a schedule of 3600 s\n"
        "JOB.toml: units of a day: 4, about 1 s of processor time\n"
        "next: spectrod batch run JOB.toml\n"
    )
    job = tmp_path / "JOB.toml"
    text = job.read_text().replace('unit = "day"', 'engine = "numpy"\nunit = "day"')
    job.write_text(f'{text}\n[picture]\ntime_zone = "Asia/Kathmandu"\n')
    assert main(["batch", "run", "JOB.toml"]) == 0
    found = {str(path.relative_to(tmp_path / "results")) for path in tmp_path.rglob("*.*")
             if "results" in path.parts and "state" not in path.parts}  # fmt: skip
    suffixes = (".nc", "_levels.csv", "_ltsa.png", "_flags.csv")
    units = [
        f"{name}/{name}_{day}" for name in ("north", "south") for day in ("20260501", "20260502")
    ]
    assert found >= {f"{unit}{suffix}" for unit in units for suffix in suffixes}
    assert found >= {"report.html", "report.json", "summary.json"}
    assert (tmp_path / "results/history").is_dir()
    drawn = read_pixel_map(tmp_path / "results/north/north_20260501_ltsa.png")
    assert drawn.options["time_zone"] == "Asia/Kathmandu"


@pytest.mark.parametrize(
    ("fs", "indices", "band_hz"),
    [
        (FS, ("ACI_10s",), (120, 380)),
        (8000, ("ACI", "NDSI_1000-2000Hz_2000-4000Hz", "ADI_0-4000Hz_1000Hz_-50dB"), (1000, 3000)),
        (22050, ("ACI", "NDSI", "ADI"), (2000, 6000)),
    ],
)
def test_what_is_a_comment_is_right_too(tmp_path, fs, indices, band_hz):
    """Each line of the draft that is switched off can be switched on, and fits the rate."""
    write(tmp_path / "disk", sound(60 * fs), fs=fs)
    (tmp_path / "NAME.toml").write_text(CALIBRATION)
    job = drafted(tmp_path / "disk")
    path = tmp_path / "JOB.toml"
    text = re.sub(r"\n# (\[[a-z]+\]|[a-z_]+ = )", r"\n\1", path.read_text())
    text = text.replace('"flags"]', '"flags", "features", "detect", "spectra"]')
    path.write_text(text.replace('["pyramid"]', '["pyramid", "zarr"]'))
    found = read_job(path)
    assert len(found.products) == len(job.products) + 3
    assert found.features.quantities == indices
    assert (found.detect.f_min_hz, found.detect.f_max_hz) == band_hz
    assert main(["batch", "plan", str(path)]) == 0
    (one,) = found.deployments
    assert (one.time_zone, one.calibration) == ("Europe/Berlin", str(tmp_path / "NAME.toml"))


def test_inputs_stand_for_the_files_of_their_deployment_alone(tmp_path):
    """Folders where they can, patterns where months hold sites, starts of names in one folder."""
    disk = tmp_path / "disk"
    for month, begin_s in (("05", 0), ("06", 9000)):
        for k, site in enumerate(("north", "south [old]")):
            write(disk / "by-month" / month / site, sound(60 * FS, k), begin_s)
    for k in range(4):
        prefix = f"S4A0{k % 2}_"
        write(disk / "one folder", sound(60 * FS, 9 + k), 600 * (k // 2), prefix=prefix)
    job = drafted(disk)
    assert inputs(job, disk) == {
        "by-month-north": ["by-month/*/north"],
        "by-month-south-old": ["by-month/*/south [[]old]"],
        "one-folder-S4A00": ["one folder/S4A00_*"],
        "one-folder-S4A01": ["one folder/S4A01_*"],
    }
    assert main(["batch", "plan", str(tmp_path / "JOB.toml")]) == 0
    plan = read_plan(tmp_path / "results/plan.jsonl", job)
    assert sum(unit.sound_s for unit in plan.units) == 60 * 8
    assert len({piece.path for unit in plan.units for piece in unit.pieces}) == 8


def test_what_is_odd_is_said_and_is_a_comment(tmp_path, capsys):
    """Mixed rates, torn files, names without a time and times without a zone are choices."""
    disk = tmp_path / "disk"
    for k in range(3):
        write(disk, sound(60 * FS, k), 600 * k)
    write(disk, sound(61 * 2 * FS), 1800, fs=2 * FS)
    (disk / "20260502_100000.wav").write_bytes(b"")
    soundfile.write(disk / "x.flac", np.zeros(FS), FS)
    assert init(disk) == 0
    said = capsys.readouterr().out
    text = (tmp_path / "JOB.toml").read_text()
    odd = [
        "rates or channels differ: 3 of 1000 Hz x 1, 1 of 2000 Hz x 1 files; of a day",
        f"unreadable: {disk}/20260502_100000.wav: ",
        f"undated: {disk}/x.flac: its header or name states no start time",
        "gap: 2 gaps of 540 s, of a schedule of 600 s",
    ]
    for line in odd:
        assert f"\n  {line}" in said
        assert f"\n# {line}" in text
    assert re.search(
        r'\n# time_zone = "Europe/Berlin" +# 4 times state no zone and are taken as UTC\n', text
    )
    assert read_job(tmp_path / "JOB.toml").deployments[0].inputs == (str(disk),)


def test_zones_and_the_format_are_of_all_deployments(tmp_path):
    """They are used for the look at the folder, and written; times of results have their own."""
    disk = tmp_path / "disk"
    for site in ("north", "south"):
        (disk / site).mkdir(parents=True)
        for hour in (2, 4):
            soundfile.write(
                disk / site / f"{site}-01.05.2026-{hour:02}h00.wav", sound(FS, hour), FS
            )
    zones = ("--files-zone", "Europe/Berlin", "--time-zone", "Europe/Lisbon")
    job = drafted(disk, *zones, "--time-format", "%d.%m.%Y-%Hh%M")
    assert {one.time_zone for one in job.deployments} == {"Europe/Berlin"}
    assert (job.levels.time_zone, job.picture.time_zone) == ("Europe/Lisbon", "Europe/Lisbon")
    assert {one.time_format for one in job.deployments} == {"%d.%m.%Y-%Hh%M"}
    assert main(["batch", "plan", str(tmp_path / "JOB.toml")]) == 0
    begins = [unit.start_utc_ns for unit in read_plan(tmp_path / "results/plan.jsonl", job).units]
    midnight = dt.datetime(2026, 5, 1, tzinfo=dt.UTC).timestamp() * 10**9
    assert begins == [midnight, midnight]


def test_calibrations_beside_the_files_are_found(tmp_path):
    """One in the folder of a deployment, or with its name, is its own; several are comments."""
    disk = tmp_path / "disk"
    for k, site in enumerate(("east", "north", "south")):
        write(disk / site, sound(60 * FS, k))
    (disk / "north/any.toml").write_text(CALIBRATION)
    (disk / "South.toml").write_text(CALIBRATION)
    (disk / "old.toml").write_text(CALIBRATION)
    (disk / "note.toml").write_text("[job]\n")
    (disk / "pair.toml").write_text(f"[channels.0]\n{CALIBRATION}[channels.1]\n{CALIBRATION}")
    job = drafted(disk)
    paths = [one.calibration for one in job.deployments]
    assert paths == ["", f"{disk}/north/any.toml", f"{disk}/South.toml"]
    text = (tmp_path / "JOB.toml").read_text()
    assert re.findall(r"\n# (calib.+)", text) == [
        f'calibration = "disk/{name}.toml"' for name in ("South", "old")
    ]


@pytest.mark.parametrize(
    ("name", "deployment"),
    [
        ("Nord Ost (2)", "Nord-Ost-2"),
        ("Ä", "recordings"),
        ("state", "state-1"),
        ('"q"\\', "q"),
        ("~a\n[b]", "a-b"),
    ],
)
def test_names_of_folders_become_names_of_deployments(tmp_path, name, deployment):
    """Any folder can be drafted, and its path is read back."""
    write(tmp_path / name, sound(60 * FS))
    (found,) = drafted(tmp_path / name).deployments
    assert (found.name, found.inputs) == (deployment, (str(tmp_path / name),))


def test_names_that_are_not_utf_8_are_left_out(tmp_path, capsys):
    """Their files, folders and calibrations are in no job, which is UTF-8."""
    disk = tmp_path / "disk"
    write(disk / "north", sound(60 * FS))
    write(disk / "s", sound(60 * FS, 2))
    (disk / "s").rename(disk / os.fsdecode(b"s\xfcd"))
    (disk / "north" / os.fsdecode(b"\xfc.toml")).write_text(CALIBRATION)
    job = drafted(disk)
    assert inputs(job, disk) == {"north": ["north"]}
    assert job.deployments[0].calibration == ""
    assert "s-d: 1 file; none can be put on a time line" in capsys.readouterr().out
    assert '\n# inputs = ["disk/s\\\\xfcd"]\n' in (tmp_path / "JOB.toml").read_text()
    assert init(disk / os.fsdecode(b"s\xfcd")) == 2


def test_results_have_a_folder_of_their_own(tmp_path):
    """That of another job is not taken, and the file says another name."""
    write(tmp_path / "disk", sound(60 * FS))
    (tmp_path / "results").mkdir()
    assert drafted(tmp_path / "disk").output == str(tmp_path / "results-2")
    other = tmp_path / "jobs" / "may.toml"
    assert main(["batch", "init", str(tmp_path / "disk"), "-o", str(other)]) == 0
    assert read_job(other).output == str(tmp_path / "jobs" / "may-results")


def test_no_file_is_replaced(tmp_path, capsys):
    """The job that is there stays as it is."""
    write(tmp_path / "disk", sound(60 * FS))
    (tmp_path / "JOB.toml").write_text("mine")
    assert init(tmp_path / "disk") == 2
    assert capsys.readouterr().err == (
        f"spectrod: {tmp_path}/JOB.toml: is there: init replaces no file; -o names another one\n"
    )
    assert (tmp_path / "JOB.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ((), "disk: has no sound files, and its subfolders have none"),
        (
            ("--time-zone", "Berlin"),
            "time_zone='Berlin': there is no such time zone on this machine",
        ),
        (("--files-zone", "Rome"), "files_zone='Rome': there is no such time zone on this machine"),
        (("--time-format", "%d"), "time_format='%d': "),
    ],
)
def test_what_is_no_season_is_one_error(tmp_path, capsys, options, rule):
    """Nothing is written, not even the folder of the job."""
    (tmp_path / "disk/sub").mkdir(parents=True)
    job = tmp_path / "new" / "JOB.toml"
    assert main(["batch", "init", str(tmp_path / "disk"), "-o", str(job), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert rule in line
    assert not job.parent.exists()


def test_names_without_times_are_one_error(tmp_path, capsys):
    """The first file is the example, and the option that helps is named."""
    (tmp_path / "disk").mkdir()
    for name in ("one.wav", "two.wav"):
        soundfile.write(tmp_path / "disk" / name, np.zeros(FS), FS)
    assert init(tmp_path / "disk") == 2
    disk = tmp_path / "disk"
    assert capsys.readouterr().err == (
        f"spectrod: {disk}: none of its 2 sound files can be put on a time line, as {disk}/one.wav:"
        " its header or name states no start time; --time-format says how names state times\n"
    )
    assert main(["batch", "init", "s3://bucket/disk", "-o", str(tmp_path / "JOB.toml")]) == 2
    assert capsys.readouterr().err == (
        "spectrod: s3://bucket/disk: must be a folder of this machine: write the job by hand\n"
    )
    assert init(tmp_path / "missing") == 2
    assert capsys.readouterr().err == f"spectrod: {tmp_path}/missing: No such file or directory\n"
    assert not (tmp_path / "JOB.toml").exists()
