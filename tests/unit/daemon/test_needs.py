"""Limits of descriptors and threads: what a configuration needs, and what it says beforehand."""

import configparser
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spectrod.cli.daemon_rules import warnings
from spectrod.config.config import Config, RecordingConfig, SourceTable
from spectrod.daemon import resource_needs
from spectrod.daemon.daemon import build_daemon
from spectrod.lib import tasks
from spectrod.lib.errors import UnavailableError
from spectrod.lib.job_pool import JobPool, Wait
from spectrod.lib.worker import Worker

UNITS = Path(__file__).parents[3] / "systemd"


def several(n, uri="signal:sine,1000,-20", **settings):
    return tuple(SourceTable(uri=uri, name=f"s{k}", **settings) for k in range(n))


def recordings(n, **settings):
    return tuple(RecordingConfig(name=f"r{k}", **settings) for k in range(n))


def test_each_part_adds_what_it_needs():
    """Sources, cards, files at full speed and recordings of sources each need their share."""
    none = resource_needs.needs_of(Config(sources=several(1)))

    def more(**settings):
        found = resource_needs.needs_of(Config(**settings))
        return found.descriptors - none.descriptors, found.threads - none.threads

    assert more(sources=several(11)) == (40, 0)
    assert more(sources=several(11, "pcm:/run/x")) == (40, 0)
    assert more(sources=several(11, "soundcard:serial=1")) == (128, 88)
    assert more(sources=several(11, "/srv/x.wav", pace="full")) == (40, 22)
    assert more(sources=several(1), recordings=recordings(3)) == (12, 3)
    assert more(sources=several(11), recordings=recordings(1)) == (84, 11)
    of_two = recordings(1, sources=("s0", "s1"), samples="flac", pyramid=True)
    assert more(sources=several(11), recordings=of_two) == (70, 2)


def test_too_low_a_limit_is_named_with_what_is_needed(monkeypatch):
    """The error has sources, recordings, the need, the limit, and where it is set."""
    monkeypatch.setattr(resource_needs.descriptors, "current_limit", lambda: 1024)
    monkeypatch.setattr(
        resource_needs.tasks, "current_limit", lambda: tasks.Limit(100, "TasksMax=")
    )
    config = Config(sources=several(300), recordings=recordings(1))
    what = "300 sources and 1 recording"
    where = "(LimitNOFILE= of the unit, or ulimit -n)"
    lines = [
        f"{what} need 4896 descriptors, half of them for connections: the limit is 1024 " + where,
        f"{what} need 324 threads: the limit is 100 (TasksMax=)",
    ]
    assert list(resource_needs.shortages(config)) == lines
    assert [(path, text) for path, text in warnings(config) if "need" in text] == [
        (("sources",), line) for line in lines
    ]
    with pytest.raises(UnavailableError, match=r"need 4896 .*; 300 .* need 324 threads"):
        build_daemon(config)


def test_a_change_that_needs_more_than_the_limit_changes_nothing(monkeypatch, tmp_path):
    """Sources that are added over the limit are refused as a whole."""
    monkeypatch.setattr(resource_needs.descriptors, "current_limit", lambda: 300)
    endpoints = {"endpoints": (f"ipc://{tmp_path}/x",)}
    config = Config(sources=several(2), publish=Config().publish.__class__(**endpoints))
    daemon = build_daemon(config)
    try:
        with pytest.raises(UnavailableError, match="50 sources and 0 recordings need 496 desc"):
            daemon.reconfigure(Config(sources=several(50), publish=config.publish))
        assert len(daemon.runners) == 2
    finally:
        daemon.stop()


@pytest.mark.slow
def test_a_start_with_few_descriptors_is_one_error(tmp_path):
    """``spectrod run`` under ``ulimit -n 64`` ends with 69 and the number that it needs."""
    run = [sys.executable, "-m", "spectrod", "run", "--source", "signal:sine,1000,-20"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *run, "--publish", f"ipc://{tmp_path}/x"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 69
    assert done.stderr.splitlines()[-1] == (
        "spectrod: 1 source and 0 recordings need 104 descriptors, half of them for connections: "
        "the limit is 64 (LimitNOFILE= of the unit, or ulimit -n)"
    )


def test_the_unit_allows_hundreds_of_sources_with_recordings():
    """300 sources, each with sound, spectra and a pyramid, fit the limits of the unit."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(UNITS / "spectrod.service")
    full = recordings(1, samples="flac", pyramid=True)
    needed = resource_needs.needs_of(Config(sources=several(300), recordings=full))
    assert 2 * needed.descriptors <= int(unit["Service"]["LimitNOFILE"])
    assert needed.threads <= int(unit["Service"]["TasksMax"])


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Make control groups: ``a/b`` is that of this process."""
    (tmp_path / "fs" / "a" / "b").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/a/b\n")
    monkeypatch.setattr(
        tasks.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    return {"cgroups": tmp_path / "fs", "own": tmp_path / "own"}


@pytest.mark.parametrize(
    ("limits", "lowest"),
    [({}, None), ({"a/b": "max"}, None), ({"a": "77", "a/b": "256"}, 77), ({"a/b": "256"}, 256)],
)
def test_the_lowest_limit_of_the_control_groups_counts(cgroups, limits, lowest):
    """Each control group above a process may limit its threads."""
    for folder, text in limits.items():
        (cgroups["cgroups"] / folder / "pids.max").write_text(f"{text}\n")
    found = tasks.current_limit(**cgroups)
    assert (found and found.n) == lowest


def test_the_limit_of_a_user_counts_except_for_root(cgroups, monkeypatch):
    """``ulimit -u`` limits all but root."""
    monkeypatch.setattr(tasks.resource, "getrlimit", lambda _: (50, 50))
    monkeypatch.setattr(tasks.os, "geteuid", lambda: 1000)
    assert tasks.current_limit(**cgroups).n == 50
    monkeypatch.setattr(tasks.os, "geteuid", lambda: 0)
    assert tasks.current_limit(**cgroups) is None


def test_a_thread_that_cannot_start_is_one_clear_error(monkeypatch):
    """Where the system allows no more threads, the error says how many there are, and the limit."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(tasks, "current_limit", lambda: tasks.Limit(256, "TasksMax= of the unit"))
    rule = (
        r"^analysis: cannot start a thread beside \d+ of this process: the limit is 256 \(TasksMax="
    )
    with pytest.raises(UnavailableError, match=rule):
        Worker("analysis", lambda: None).start()


def test_a_pool_goes_on_with_the_threads_that_it_got(monkeypatch):
    """If no further thread can start, jobs wait for those that run."""
    pool = JobPool(threads_max=8)
    held, may_end = threading.Event(), threading.Event()

    def block():
        held.set()
        assert may_end.wait(20.0)
        yield Wait(0.0)

    first = pool.job("first", block())
    first.start()
    assert held.wait(20.0)
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("spectrod-jobs"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    second = pool.job("second", iter([Wait(0.0)]))
    second.start()
    while pool.threads_max > 1:  # the scheduler has tried to help
        assert not second.wait(0.01)
    may_end.set()
    assert second.wait(20.0)
    pool.close()
