"""The engine that ``spectrod record`` chooses for a stored source."""

import os
import signal
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from spectrod.analysis import warm_up
from spectrod.analysis.engine_pool import KeptEngines
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.cli import record_engine
from spectrod.config.config import EngineConfig
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError, NotCompiledError

SPEC = SpectrumSpec(48_000.0, 1, win_length=2048, hop=1024)
DEVICE = SimpleNamespace(name="opencl:P/D", close=lambda: None)
AUTO = EngineConfig("auto", "")
SHORT, MIDDLE, LONG = (round(s / numpy_duration_s(SPEC, 1)) for s in (0.2, 2.0, 100.0))


@pytest.fixture
def opened(monkeypatch):
    """Replace the device and the process that compiles; return what was requested of them."""
    requests = []

    def open_engine(kind="auto", device="", *, compiles=True):
        requests.append((kind, device, compiles))
        return DEVICE

    monkeypatch.setattr(record_engine, "open_engine", open_engine)
    monkeypatch.setattr(warm_up, "leave_compiling", requests.append)
    return requests


def choose(n_samples, requested=AUTO, old_engine=""):
    layout = SampleLayout("int16")
    return record_engine.StoredEngine([SPEC], layout, n_samples, old_engine).open(requested)


@pytest.mark.parametrize(
    ("n_samples", "kind", "device", "expected"),
    [
        (SHORT, "auto", "", []),
        (SHORT, "opencl", "", [("opencl", "", True)]),
        (SHORT, "auto", "0:0", [("auto", "0:0", True)]),
        (LONG, "auto", "", [("auto", "", True)]),
        (None, "auto", "", [("auto", "", True)]),
    ],
)
def test_a_device_is_opened_only_for_sources_that_are_worth_it(
    opened, n_samples, kind, device, expected
):
    """NumPy computes what takes no longer than to open a device, unless a device is requested."""
    engine = choose(n_samples, EngineConfig(kind, device))
    assert opened == expected
    assert engine.name == (DEVICE.name if expected else "numpy")


@pytest.mark.parametrize("is_compiled", [True, False])
def test_nobody_waits_for_a_compiler_longer_than_for_numpy(opened, monkeypatch, is_compiled):
    """Kernels that are not in the cache are left to another process if NumPy is fast enough."""
    monkeypatch.setattr(warm_up, "is_compiled", lambda *_: is_compiled)
    engine = choose(MIDDLE)
    assert opened[0] == ("auto", "", False)
    if is_compiled:
        assert engine is DEVICE
        assert len(opened) == 1
    else:
        assert isinstance(engine, NumpyEngine)
        (job,) = opened[1:]
        assert job.is_alone
        assert (job.sample_format, job.interleaved) == ("int16", False)
        assert [SpectrumSpec(**fields) for fields in job.specs] == [SPEC]


class Kept(KeptEngines):
    """Engines of several sources, whose device is not opened."""

    def __init__(self, n_sources):
        super().__init__(n_sources)
        self.requests = []

    def open(self, kind, device, *, compiles=True):
        self.requests.append((kind, device, compiles))
        return DEVICE


def choose_kept(kept, n_samples, spec=SPEC):
    layout = SampleLayout("int16")
    return record_engine.StoredEngine([spec], layout, n_samples, "", kept).open(AUTO)


@pytest.mark.parametrize("n_samples", [MIDDLE, LONG])
def test_engines_of_several_sources_are_opened_by_their_owner(opened, monkeypatch, n_samples):
    """With many sources, the engine that stays open between them is used."""
    monkeypatch.setattr(warm_up, "is_compiled", lambda *_: True)
    kept = Kept(1)
    assert choose_kept(kept, n_samples) is DEVICE
    assert kept.requests == [("auto", "", n_samples == LONG)]
    assert opened == []


@pytest.mark.parametrize(
    ("numpy_s", "n_sources", "is_worth_it"),
    [(0.04, 49, False), (0.04, 51, True), (0.25, 7, False), (0.25, 9, True), (0.009, 10**6, False)],
)
def test_short_sources_count_together(opened, monkeypatch, numpy_s, n_sources, is_worth_it):
    """A device is opened for short sources if NumPy takes longer for all that are like them."""
    monkeypatch.setattr(warm_up, "is_compiled", lambda *_: True)
    n_samples = round(numpy_s / numpy_duration_s(SPEC, 1))
    engine = choose_kept(Kept(n_sources), n_samples)
    assert engine.name == (DEVICE.name if is_worth_it else "numpy")
    assert opened == []


def test_sources_with_the_same_kernels_have_the_same_engine(opened, monkeypatch):
    """Kernels that are compiled meanwhile are left to the next command; others are looked for."""
    kept, answers = Kept(100), [False, True]
    monkeypatch.setattr(warm_up, "is_compiled", lambda *_: answers.pop(0))
    engines = [choose_kept(kept, SHORT) for _ in range(3)]
    # The kernels of another hop are the same, those of another window are not.
    engines.append(choose_kept(kept, SHORT, replace(SPEC, hop=500)))
    others = [choose_kept(kept, SHORT, replace(SPEC, win_length=1024)) for _ in range(2)]
    assert [engine.name for engine in engines] == ["numpy"] * 4
    assert others == [DEVICE, DEVICE]
    assert answers == []
    assert len(opened) == 1  # one process was left to compile


def test_a_driver_that_was_never_checked_is_not_waited_for(opened, monkeypatch):
    """Where even the check of the compiler is not in the cache, NumPy computes."""

    def refuse(*_, **__):
        raise NotCompiledError("a kernel is not in /cache")

    monkeypatch.setattr(record_engine, "open_engine", refuse)
    assert isinstance(choose(MIDDLE), NumpyEngine)
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("n_samples", "old_engine", "expected"),
    [
        (MIDDLE, "numpy", "numpy"),
        (MIDDLE, "opencl:P/D", DEVICE.name),
        (MIDDLE, "opencl:P/D, numpy", DEVICE.name),
        (SHORT, "opencl:P/D", "numpy"),
        (LONG, "numpy", DEVICE.name),
    ],
)
def test_a_repeated_recording_is_computed_by_the_same_engine(
    opened, n_samples, old_engine, expected
):
    """With --like the engine of the old picture computes, whatever is in the cache."""
    assert choose(n_samples, old_engine=old_engine).name == expected
    assert all(compiles for _, _, compiles in opened)


def test_what_is_left_to_another_process_keeps_nothing_of_this_one(monkeypatch, tmp_path):
    """A process left compiling has no terminal, is outside this process group, and is bounded."""
    script = tmp_path / "python"
    script.write_text(
        f"#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat > {tmp_path}/pgid\n"
        f"for i in 0 1 2; do readlink /proc/$$/fd/$i; done > {tmp_path}/fds\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(warm_up.sys, "executable", str(script))
    started = []
    spawn = os.posix_spawn
    monkeypatch.setattr(warm_up.os, "posix_spawn", lambda *a, **k: started.append(spawn(*a, **k)))
    job = warm_up.CompilerJob.of([SPEC], SampleLayout(), is_alone=True)
    warm_up.leave_compiling(job)
    (pid,) = started
    os.waitpid(pid, 0)
    assert int((tmp_path / "pgid").read_text()) == pid
    first, _, third = (tmp_path / "fds").read_text().split()  # the second is the script's own
    assert first == third == os.devnull
    assert job.limit_s == 120


def test_a_process_left_behind_holds_no_pipe_of_this_one(tmp_path):
    """It closes what it would inherit: ``record`` of many files waited 5 s for its processes."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - its only form
    os.set_blocking(reading, False)
    # It lives until the FIFO is opened for writing.
    program = f"open({str(fifo)!r}).close()"
    try:
        warm_up.leave_compiling(SimpleNamespace(command=[sys.executable, "-S", "-c", program]))
        os.close(writing)
        assert os.read(reading, 1) == b""
    finally:
        fifo.open("w").close()
        os.close(reading)


def test_a_process_that_cannot_be_started_is_no_error(monkeypatch, caplog):
    """Without a way to compile for later, the recording continues; the reason is in the log."""
    monkeypatch.setattr(warm_up.sys, "executable", "/nonexistent")
    with caplog.at_level("DEBUG"):
        warm_up.leave_compiling(warm_up.CompilerJob.of([SPEC], SampleLayout()))
    assert "could not compile kernels for later: " in caplog.text


@pytest.fixture
def compiled(monkeypatch):
    """Return a list of what is compiled, by no device."""
    specs = []
    monkeypatch.setattr(warm_up, "open_engine", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(warm_up, "warm_up", lambda _engine, given, _layout: specs.append(given))
    monkeypatch.setattr(warm_up.NOTICE, "after_s", warm_up.NOTICE.after_s)  # which is set
    return specs


def test_only_one_process_at_a_time_compiles_for_later(monkeypatch, tmp_path, compiled):
    """While one process holds the cache's lock, others that are left alone compile nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(warm_up.os, "nice", lambda _: 0)
    monkeypatch.setattr(warm_up.signal, "alarm", compiled.append)
    job = warm_up.CompilerJob.of([SPEC], SampleLayout(), is_alone=True)
    with warm_up._alone() as is_alone:
        assert is_alone
        warm_up._main(job.command[-1])
    assert compiled == [120]
    warm_up._main(job.command[-1])
    assert compiled == [120, 120, [SPEC]]
    assert list((tmp_path / "spectrod" / "programs").iterdir()) == []


def test_a_confined_process_compiles_at_its_own_priority(monkeypatch, compiled):
    """A service that may not change priorities, by a filter of system calls, compiles anyway."""

    def refuse(_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(warm_up.os, "nice", refuse)
    monkeypatch.setattr(warm_up.signal, "alarm", lambda _: 0)
    job = warm_up.CompilerJob.of([SPEC], SampleLayout())
    warm_up._main(job.command[-1])
    assert compiled == [[SPEC]]


def test_a_compiler_that_hangs_is_killed(monkeypatch):
    """A compiler in another process is killed at its limit, and by ``stop``; neither hangs."""
    job = warm_up.CompilerJob.of([SPEC], SampleLayout())
    hanging = SimpleNamespace(command=["sleep", "60"], limit_s=0.05)
    assert warm_up.CompilerProcess().run(hanging) == "it takes more than 0.05 s"
    stopped = warm_up.CompilerProcess()
    stopped.stop()
    assert stopped.run(job) == "stopped"


def test_a_compiler_that_crashes_is_reported():
    """A driver that ends its process is an error, any other signal is reported."""
    crashing = SimpleNamespace(command=["sh", "-c", "kill -SEGV $$"], limit_s=60.0)
    with pytest.raises(DeviceError, match=r"the OpenCL driver crashed \(SIGSEGV\): no message"):
        warm_up.CompilerProcess().run(crashing)
    killed = SimpleNamespace(command=["sh", "-c", "kill -KILL $$"], limit_s=60.0)
    assert warm_up.CompilerProcess().run(killed) == f"exit code {-signal.SIGKILL}"
