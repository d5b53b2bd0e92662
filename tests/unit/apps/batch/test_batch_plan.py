"""Plans: every sample in one unit or in a finding, the same bytes each time."""

import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from spectrod.apps.batch.plan import read_plan, write_plan
from spectrod.apps.batch.planner import plan_job
from spectrod.cli import main
from spectrod.lib.errors import ConfigError, InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import BEGIN, FS, job_of, sound, write


def pieces(unit):
    return [(piece.first, piece.end, piece.index) for piece in unit.pieces]


def kinds(plan):
    return [one.kind for one in plan.findings]


def test_a_file_is_cut_at_midnight(tmp_path):
    """A file over midnight belongs to both days, to the sample, and follows the file before it."""
    write(tmp_path / "card", sound(300 * FS))
    write(tmp_path / "card", sound(600 * FS + 7), 300)
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    first, second = plan.units
    assert (first.key, second.key) == ("north/20260501", "north/20260502")
    assert pieces(first) == [(0, 300 * FS, 0), (0, 300 * FS, 300 * FS)]
    assert pieces(second) == [(300 * FS, 600 * FS + 7, 0)]
    assert second.start_utc_ns == second.begin_utc_ns
    assert kinds(plan) == []
    assert not plan.is_incomplete


def test_costs_are_those_of_the_products(tmp_path):
    """Sound levels take longer than minutes, and both together as long as each by itself."""
    write(tmp_path / "card", sound(300 * FS))
    write(tmp_path / "card", sound(3 * FS), 300)
    chosen = (("millidecade",), ("levels",), ("millidecade", "levels"))
    jobs = [job_of(tmp_path, tmp_path / "card", products=products) for products in chosen]
    costs_s = [plan_job(job).units[0].cost_s for job in jobs]
    seconds = 303 * FS / 1e9
    assert costs_s == pytest.approx(
        [0.301 + 5 * seconds, 0.301 + 40 * seconds, 0.301 + 45 * seconds], abs=1e-3
    )


def test_overlapping_sound_counts_once(tmp_path):
    """The file that begins first counts; the other from its end on, also after midnight."""
    write(tmp_path / "card", sound(700 * FS))
    write(tmp_path / "card", sound(600 * FS), 650)
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert pieces(plan.units[1]) == [(600 * FS, 700 * FS, 0), (50 * FS, 600 * FS, 100 * FS)]
    assert sum(unit.n_samples for unit in plan.units) == 1250 * FS
    assert kinds(plan) == ["overlap"]
    assert "its first 50.0 s are left out" in plan.findings[0].text
    assert plan.is_incomplete


def test_two_recorders_with_one_name_are_refused(tmp_path):
    """A unit whose files overlap by more than a tenth is set aside, with the folders."""
    for name, seed in (("a", 1), ("b", 2)):
        write(tmp_path / "card" / name, sound(300 * FS, seed), seed)
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert re.fullmatch(
        r"50% of the sound overlaps \(at most 10%\): two recorders with one name, or wrong times; "
        rf"its files are in {tmp_path}/card/a, {tmp_path}/card/b",
        plan.units[0].refused,
    )


def test_gaps_of_a_schedule_are_one_finding(tmp_path):
    """Equal pauses are a schedule; a longer one is reported by itself, with time and length."""
    for k in (0, 1, 2, 3, 6, 7):
        write(tmp_path / "card", sound(20 * FS, k), 30 * k)
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert [(one.kind, one.duration_s) for one in plan.findings] == [("gap", 70.0), ("gap", 40.0)]
    assert (
        plan.findings[0].text
        == "2026-05-01T23:51:50Z: 70 s without sound after 20260501_235130.wav"
    )
    assert plan.findings[1].text == "4 gaps of 10 s, of a schedule of 30 s"
    assert not plan.is_incomplete


def test_a_gap_between_two_files_is_no_schedule(tmp_path):
    """Years without sound are reported as such, with their time."""
    write(tmp_path / "card", sound(20 * FS), -86400 * 800)
    write(tmp_path / "card", sound(20 * FS, 1))
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert kinds(plan) == ["clock", "gap"]
    assert (
        plan.findings[1].text
        == "2024-02-21T23:50:20Z: 6.912e+07 s without sound after 20240221_235000.wav"
    )


def test_schedule_has_the_starts_of_files_also_over_midnight(tmp_path):
    """A file that is cut at midnight counts once in the period of a schedule."""
    for k in range(4):
        write(tmp_path / "card", sound(20 * FS, k), 535 + 30 * k)
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert [len(unit.pieces) for unit in plan.units] == [3, 2]
    assert [one.text for one in plan.findings] == ["3 gaps of 10 s, of a schedule of 30 s"]


def test_unusable_files_are_named(tmp_path):
    """Torn, foreign, undated and differing files are findings; the others make the unit."""
    card = tmp_path / "card"
    write(card, sound(60 * FS))
    write(card, sound(60 * FS), 60)
    torn = write(card, sound(60 * FS), 120)
    torn.write_bytes(torn.read_bytes()[: 44 + 2 * 30 * FS])
    write(card, sound(60 * FS), 200, fs=2 * FS)
    write(card, sound(60 * FS, channels=2), 300)
    (card / "20260501_235900.wav").write_bytes(b"RIFF")
    (card / "voice.wav").write_bytes((card / "20260501_235000.wav").read_bytes())
    plan = plan_job(job_of(tmp_path, card))
    assert sorted(kinds(plan)) == ["format", "format", "truncated", "undated", "unreadable"]
    assert plan.units[0].n_samples == 150 * FS
    assert "2000 Hz x 1, but 3 of 5 files of the unit have 1000 Hz x 1: left out" in str(plan)
    assert plan.is_incomplete


def test_a_clock_that_was_set_back_is_reported(tmp_path):
    """Names in order and times that are not, copies, and years without sound are findings."""
    card = tmp_path / "card"
    write(card, sound(60 * FS, 1), 600, prefix="001_")
    write(card, sound(60 * FS, 2), 0, prefix="002_")
    copy = write(card, sound(60 * FS, 2), 0, prefix="003_")
    write(card, sound(60 * FS, 3), -500 * 86400, prefix="000_")
    plan = plan_job(job_of(tmp_path, card))
    clocks = [one.text for one in plan.findings if one.kind == "clock"]
    assert len(clocks) == 2
    assert "002_20260501_235000.wav: begins 600.0 s before 001_20260502_000000.wav" in clocks[0]
    assert "1.37 years before 002_20260501_235000.wav: is the clock of one" in clocks[1]
    copies = [one.path for one in plan.findings if one.kind == "duplicate"]
    assert copies == [str(copy)]


def test_an_overlap_is_no_clock_finding_too(tmp_path):
    """A file by name before the one that its sound overlaps is one finding; a time apart is two."""
    card = tmp_path / "card"
    write(card, sound(1000 * FS, 1), -600, prefix="002_")
    write(card, sound(1000 * FS, 2), 350, prefix="001_")
    plan = plan_job(job_of(tmp_path, card))
    assert kinds(plan) == ["overlap"]
    assert "001_20260501_235550.wav: begins 50.0 s before 002_" in plan.findings[0].text
    write(card, sound(60 * FS, 3), -1000, prefix="003_")
    plan = plan_job(job_of(tmp_path, card))
    assert sorted(kinds(plan)) == ["clock", "gap", "overlap"]


def test_times_are_corrected(tmp_path):
    """A time zone counts where a file states none; the clock's offset counts always."""
    write(tmp_path / "card", sound(60 * FS))
    card = tmp_path / "card"
    begin_ns = int(BEGIN.timestamp()) * 10**9
    settings = {"time_zone": "Europe/Berlin", "clock_offset_s": -2.5}
    unit = plan_job(job_of(tmp_path, card, **settings)).units[0]
    assert unit.start_utc_ns == begin_ns - 7_202_500_000_000
    write(card, sound(60 * FS), suffix="Z.wav")
    (card / "20260501_235000.wav").unlink()
    unit = plan_job(job_of(tmp_path, card, **settings)).units[0]
    assert unit.start_utc_ns == begin_ns - 2_500_000_000


def test_begin_and_end_bound_the_sound(tmp_path):
    """Samples outside are in no unit."""
    write(tmp_path / "card", sound(100 * FS))
    begin_ns = int(BEGIN.timestamp()) * 10**9
    bounds = {"begin_utc_ns": begin_ns + 10**10, "end_utc_ns": begin_ns + 3 * 10**10}
    plan = plan_job(job_of(tmp_path, tmp_path / "card", **bounds))
    assert pieces(plan.units[0]) == [(10 * FS, 30 * FS, 0)]


def test_a_deployment_without_units_is_named(tmp_path, capsys):
    """A wrong year of begin is seen at once, not by what is missing in the end."""
    write(tmp_path / "card", sound(100 * FS))
    (tmp_path / "job.toml").write_text(
        '[job]\nname = "a"\noutput = "results"\n[deployments.north]\ninputs = ["card"]\n'
        "begin = 2027-05-01T00:00:00Z\n"
    )
    assert main(["batch", "plan", str(tmp_path / "job.toml")]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("north: no units: none of its files has sound that counts")
    assert "0 units of a day, 0 pieces" in last


def test_a_plan_is_read_back(tmp_path):
    """Equal bytes each time, equal plans; a changed job and cut-off lines are refused."""
    write(tmp_path / "card", sound(900 * FS))
    job = job_of(tmp_path, tmp_path / "card")
    path, plan = tmp_path / "plan.jsonl", plan_job(job)
    write_plan(path, plan)
    content = path.read_bytes()
    assert read_plan(path, job) == plan
    write_plan(path, plan_job(job))
    assert path.read_bytes() == content
    with pytest.raises(ConfigError, match="the unit of the job have changed since; run spectrod"):
        read_plan(path, msgspec.structs.replace(job, unit="hour"))
    for n in np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))[:-1]:
        path.write_bytes(content[: n + 1])
        with pytest.raises(StorageError, match=r"is cut off|pieces are missing"):
            read_plan(path, job)
    path.write_bytes(content[:-9])
    with pytest.raises(StorageError, match="is no line of a plan"):
        read_plan(path, job)
    path.write_bytes(b"[" * (1 << 17))
    with pytest.raises(StorageError, match="a line must have at most 65536 bytes"):
        read_plan(path, job)
    with pytest.raises(ConfigError, match="there is no plan; run spectrod batch plan"):
        read_plan(tmp_path / "none", job)


def test_inputs_without_sound_are_refused(tmp_path):
    """A missing folder, an empty one, and a pattern without files are one clear error."""
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty", "empty/*.wav"):
        with pytest.raises(InputError, match=r"deployments.north: .*: (No such|has no sound)"):
            plan_job(job_of(tmp_path, tmp_path / name))


def test_links_that_lead_to_themselves_are_passed_over(tmp_path):
    """A link that leads to itself is no sound, and as a sound file it is a finding."""
    write(tmp_path / "card", sound(20 * FS))
    (tmp_path / "card" / "loop").symlink_to("loop")
    (tmp_path / "card" / "20260501_120000.wav").symlink_to("20260501_120000.wav")
    plan = plan_job(job_of(tmp_path, tmp_path / "card"))
    assert (len(plan.units), kinds(plan)) == (1, ["unreadable"])
    assert "Too many levels of symbolic links" in plan.findings[0].text


def test_files_of_two_deployments_are_one_finding(tmp_path):
    """Files that two deployments have are in both results, and counted in one line."""
    for k in range(3):
        write(tmp_path / "card", sound(60 * FS, k), 60 * k)
    job = job_of(tmp_path, tmp_path / "card")
    other = msgspec.structs.replace(job.deployments[0], name="south")
    plan = plan_job(msgspec.structs.replace(job, deployments=(*job.deployments, other)))
    assert [unit.key for unit in plan.units] == ["north/20260501", "south/20260501"]
    assert [(one.kind, one.duration_s) for one in plan.findings] == [("duplicate", 180.0)]
    text = "of its files, 3 are also in deployments.north: one recorder in two deployments?"
    assert plan.findings[0].text.endswith(text)
