"""``spectrod record`` of many files: names, failures, interrupts."""

import errno
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.cli import main, record_many
from spectrod.formats import whole_files

FS = 8000
SHELL = ("/bin/sh", "-c")
SMALL = ("--raw", "--width", "60", "--height", "40", "--engine", "numpy", "--log-level", "error")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with two recordings and one that is no sound file, and work in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "night" / "pond").mkdir(parents=True)
    for seed, name in enumerate(("night/a.wav", "night/b.flac", "night/pond/c.wav")):
        noise = np.random.default_rng(seed).standard_normal(FS // 2) * 0.1
        soundfile.write(tmp_path / name, noise, FS, subtype="PCM_16")
    level = logging.getLogger().level
    yield tmp_path
    logging.getLogger().setLevel(level)  # which --log-level has set


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_each_source_has_outputs_of_its_own(folder):
    """Several sources and formats give the outputs that a command for each would give."""
    sources = ["night/a.wav", "night/b.flac"]
    options = ["-o", "out/{stem}.png", "-o", "out/{stem}.csv", *SMALL]
    assert main(["record", *sources, *options, "--jobs", "2"]) == 0
    assert names(folder / "out") == ["a.csv", "a.png", "b.csv", "b.png"]
    assert main(["record", "night/a.wav", "-o", "one.png", "-o", "one.csv", *SMALL]) == 0
    assert (folder / "out" / "a.png").read_bytes() == (folder / "one.png").read_bytes()
    assert (folder / "out" / "a.csv").stat().st_size == (folder / "one.csv").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("sources", [["."], ["night", "signal:sine.wav", "pcm:x.wav"]])
def test_files_named_like_other_sources_are_files(folder, sources):
    """A file whose name begins as the URI of another source is read as a file, from any folder."""
    for name in ("signal:sine.wav", "pcm:x.wav", "soundcard:mic.wav"):
        (folder / name).write_bytes((folder / "night" / "a.wav").read_bytes())
    command = ["record", *sources, "--each", "-o", "out", "--name", "{stem}.csv"]
    assert main([*command, "--engine", "numpy", "--log-level", "error", "--jobs", "1"]) == 0
    found = names(folder / "out")
    assert found == (
        ["pcm:x.csv", "signal:sine.csv", "soundcard:mic.csv"]
        if sources == ["."]
        else ["a.csv", "b.csv", "pcm:x.csv", "signal:sine.csv"]
    )


@pytest.mark.parametrize("name", ["signal:sine.wav", "pcm:x.wav"])
def test_an_error_of_another_source_names_the_file_of_that_name(folder, capfd, name):
    """A name that a test signal or raw samples take first says how the file is read."""
    (folder / name).write_bytes((folder / "night" / "a.wav").read_bytes())
    assert main(["record", name, "-o", "a.png", *SMALL]) in (2, 69)
    assert f"; the file of this name is ./{name}" in capfd.readouterr().err
    assert main(["record", f"./{name}", "-o", "a.png", *SMALL]) == 0


@pytest.mark.slow
def test_files_that_fail_are_listed_and_do_not_stop_the_others(folder, capfd):
    """Each file of a folder is recorded; failed ones come at the end, and the worst exit code."""
    (folder / "out" / "a.png").mkdir()
    (folder / "night" / "broken.wav").write_bytes(b"no sound")
    (folder / "out" / "c.png").write_bytes(b"earlier")
    options = ["-o", "out", "--name", "{stem}.png", *SMALL]
    sources = ["night", "gone.wav", "--each", "--recursive"]
    assert main(["record", *sources, *options, "--jobs", "1"]) == 74
    assert names(folder / "out") == ["a.png", "b.png", "c.png"]
    assert (folder / "out" / "c.png").read_bytes().startswith(b"\x89PNG")
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "spectrod: night/a.wav: out/a.png: is a folder"
    assert lines[1].startswith("spectrod: night/broken.wav: not a sound file")
    assert lines[2] == "spectrod: gone.wav: No such file or directory"
    assert lines[3:] == ["spectrod: 2 of 5 files recorded, 3 failed"]


@pytest.mark.parametrize("sources", [["night/a.wav", "night/b.flac"], ["night", "--each"]])
def test_folders_that_are_named_are_made(folder, sources):
    """One that is in another that is not there, too."""
    options = ["-o", "new/sites/", "--name", "{stem}.png", *SMALL]
    assert main(["record", *sources, *options, "--jobs", "1"]) == 0
    assert "a.png" in names(folder / "new" / "sites")


def test_a_refused_recording_makes_no_folder(folder, capfd):
    """A setting of its picture is refused before the folder is made."""
    before = names(folder)
    assert main(["record", "night/a.wav", "-o", "new/x.png", "--width", "9"]) == 2
    assert "width=9: must be" in capfd.readouterr().err
    assert names(folder) == before


@pytest.mark.parametrize(
    ("arguments", "exit_code", "text"),
    [
        (["night/a.wav", "-o", "out"], 2, "-o out: needs a name for each source: -o FOLDER/"),
        (["night/a.wav", "-o", "a.png"], 2, "-o a.png: needs a name for each source"),
        (["x/a.wav", "-o", "{stem}.png"], 2, "a.png: is the output of night/a.wav and of x/a.wav"),
        (["b.wav", "-o", "night/{stem}.wav"], 2, "night/a.wav: must be another file than one that"),
        (["b.wav", "-o", "{stem}.bmp"], 2, "{stem}.bmp: suffix must be one of"),
        (
            ["-o", "night/a.wav/{stem}.png", "--each"],
            74,
            "night/a.wav: must be a folder, it is a f",
        ),
        (["b.wav", "-o", "-"], 2, "-: standard output takes one file"),
        (["signal:sine,1000,-20", "-o", "{stem}.png"], 2, "signal:sine,1000,-20: must be a file"),
        (["tcp://127.0.0.1:5556", "-o", "{stem}.png"], 2, "tcp://127.0.0.1:5556: must be a file"),
        (["b.wav", "-o", "{stem}.png", "--jobs", "65"], 2, "--jobs 65: must be 1 to 64"),
        (["b.wav", "-o", "{stem}.png", "--every", "1h"], 2, "--every 1h: makes several files"),
        (
            ["b.wav", "-o", "no/{stem}.png", "--width", "9"],
            2,
            "width=9: must be 200 to 8000 pixels",
        ),
        (["b.wav", "-o", "none/{stem}.png", "--subtype", "s16"], 2, "--subtype s16: is for .wav"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_arguments_are_refused_before_anything_is_recorded(
    arguments, exit_code, text, capfd, tmp_path
):
    """Names that collide or are missing, and sources that are no files, are one line of error."""
    before = names(tmp_path)
    assert main(["record", "night/a.wav", *arguments]) == exit_code
    assert capfd.readouterr().err.startswith(f"spectrod: {text}")
    assert names(tmp_path) == before


def test_jobs_are_for_several_sources(folder, capfd):
    """A number of processes for a single output is refused."""
    assert main(["record", "night/a.wav", "-o", "a.png", "--jobs", "2"]) == 2
    assert "--jobs 2: is for several sources, or --each" in capfd.readouterr().err
    assert names(folder) == ["night", "out"]


@pytest.mark.slow
def test_a_closed_standard_error_leaves_the_exit_code(folder):
    """Without standard error, failures show in the exit code and nowhere else."""
    command = f"{sys.executable} -m spectrod record night/a.wav gone.wav -o 'out/{{stem}}.png' 2>&-"
    done = subprocess.run([*SHELL, command], check=False, stdout=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert names(folder / "out") == ["a.png"]


@pytest.mark.slow
@pytest.mark.parametrize("n_interrupts", [1, 2])
def test_an_interrupt_leaves_whole_files_alone(folder, n_interrupts):
    """Ctrl-C completes the files in progress, a second one removes them; no part is left."""
    seconds = {1: 2, 2: 600}[n_interrupts]  # as long as that is in progress
    soundfile.write("night/long.wav", np.zeros(seconds * FS), FS, subtype="PCM_16")
    command = [sys.executable, "-m", "spectrod", "record", "--jobs", "1", "--pace", "realtime"]
    outputs = ["-o", "out/{stem}.png", "-o", "out/{stem}.spd", *SMALL]
    sources = ["night/a.wav", "night/long.wav", "night/b.flac"]
    with subprocess.Popen(
        [*command, *sources, *outputs], stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        until((folder / "out" / "long.spd.part").exists)
        os.killpg(process.pid, signal.SIGINT)
        line = process.stderr.readline()
        if n_interrupts == 2:
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert line == "spectrod: completing the files in progress; Ctrl-C again removes them\n"
    whole = ["a.png", "a.spd", "long.png", "long.spd"]
    assert names(folder / "out") == whole[: 4 if n_interrupts == 1 else 2]
    n_whole = 2 if n_interrupts == 1 else 1
    assert err == f"spectrod: {n_whole} of 3 files recorded, 0 failed\n"


@pytest.mark.slow
def test_a_process_that_is_killed_fails_its_file_alone(folder):
    """A killed process is the failure of its file, and a new one records the next file."""
    soundfile.write("night/long.wav", np.zeros(600 * FS), FS, subtype="PCM_16")
    command = [sys.executable, "-m", "spectrod", "record", "--jobs", "1", "--pace", "realtime"]
    sources = ["night/long.wav", "night/b.flac", "-o", "out/{stem}.spd", *SMALL]
    with subprocess.Popen([*command, *sources], stderr=subprocess.PIPE, text=True) as process:
        until((folder / "out" / "long.spd.part").exists)
        (worker,) = (pid for pid in children(process.pid) if b"spawn_main" in command_of(pid))
        os.kill(worker, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 70
    assert names(folder / "out") == ["b.spd", "long.spd.part"]
    reason = "the process that recorded it ended with exit code -9"
    assert err.splitlines() == [
        f"spectrod: night/long.wav: {reason}",
        "spectrod: 1 of 2 files recorded, 1 failed",
    ]


@pytest.mark.slow
def test_a_disk_that_fails_fails_the_files_that_it_does_not_keep(folder, capfd, monkeypatch):
    """A picture that the disk does not keep is the failure of its file, and leaves nothing."""
    sync = whole_files.sync

    def fail_first(part):
        monkeypatch.setattr(whole_files, "sync", sync)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(whole_files, "sync", fail_first)
    options = ["-o", "out/{stem}.png", *SMALL, "--jobs", "1"]
    assert main(["record", "night/a.wav", "night/b.flac", *options]) == 74
    assert names(folder / "out") == ["b.png"]
    assert capfd.readouterr().err.splitlines() == [
        "spectrod: night/a.wav: out/a.png: Input/output error",
        "spectrod: 1 of 2 files recorded, 1 failed",
    ]


@pytest.mark.slow
def test_processes_wait_for_a_disk_that_is_behind(folder, monkeypatch):
    """No process gets another source while too many files are unpublished; all come in the end."""
    monkeypatch.setattr(record_many, "UNPUBLISHED_MAX", 1)
    events, publish, give = [], whole_files.WrittenFile.publish, record_many._Worker.give

    def note_publish(file):
        publish(file)
        events.append("published")

    def note_give(worker, task):
        events.append("given")
        give(worker, task)

    monkeypatch.setattr(whole_files.WrittenFile, "publish", note_publish)
    monkeypatch.setattr(record_many._Worker, "give", note_give)
    sources = ["night/a.wav", "night/b.flac", "night/pond/c.wav"]
    assert main(["record", *sources, "-o", "out/{stem}.png", *SMALL, "--jobs", "1"]) == 0
    assert names(folder / "out") == ["a.png", "b.png", "c.png"]
    assert events == ["given", "published"] * 3


@pytest.mark.slow
def test_nothing_is_left_where_the_command_is_killed(folder):
    """Processes whose command is killed end, and remove the files that nobody publishes."""
    soundfile.write("night/long.wav", np.zeros(FS), FS, subtype="PCM_16")
    command = [sys.executable, "-m", "spectrod", "record", "--jobs", "1", "--pace", "realtime"]
    outputs = ["-o", "out/{stem}.png", "-o", "out/{stem}.spd", *SMALL]
    with subprocess.Popen([*command, "night/long.wav", "night/b.flac", *outputs]) as process:
        until((folder / "out" / "long.spd.part").exists)
        (worker,) = (pid for pid in children(process.pid) if b"spawn_main" in command_of(pid))
        process.kill()
        process.wait()
        until(lambda: not command_of(worker))
    assert names(folder / "out") == ["long.spd"]


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def command_of(pid):
    """Return the command line of a process; none of one that has ended, even if nobody waits."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def until(condition):
    deadline_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
