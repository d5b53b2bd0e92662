"""The engine of live sources: NumPy at once, the device when its kernels are compiled."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.analysis import live_engine
from spectrod.analysis.compile_queue import CompileQueue
from spectrod.analysis.live_engine import LiveEngine
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.cli.process_end import is_compiling
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError, NotCompiledError

SPEC = SpectrumSpec(8000.0, 1, win_length=128, hop=64)
OTHER = SpectrumSpec(8000.0, 1, win_length=256, hop=64)
HEAVY = SpectrumSpec(48_000.0, 64, win_length=8192, hop=128)
WAIT_S = 30.0


class Device(NumpyEngine):
    """A device whose kernels are compiled when its compiler has run."""

    name = "opencl:P/D"

    def __init__(self):
        self.compiled, self.is_closed = [], False

    def close(self):
        self.is_closed = True


class Compiler:
    """A compiler whose end is an event that the test sets."""

    def __init__(self, device, trouble=""):
        self._device, self._trouble = device, trouble
        self.jobs = []
        self.started, self.may_end, self.stopped = (threading.Event() for _ in range(3))

    def run(self, job):
        self.jobs.append(job)
        self.started.set()
        assert self.may_end.wait(WAIT_S)
        if isinstance(self._trouble, DeviceError):
            raise self._trouble
        if not self._trouble:
            self._device.compiled += job.specs
        return self._trouble

    def stop(self):
        self.stopped.set()
        self.may_end.set()


@pytest.fixture
def machine(monkeypatch):
    """Return a function that makes a live engine on a machine with a device, and its parts."""
    made = []

    def make(trouble="", *, is_checked=True, stores=True, keeps=True, beside=None):
        device = beside.device if beside else Device()
        compiler = beside.compiler if beside else Compiler(device, trouble)

        def open_device(*, compiles=True):
            if not (compiles or is_checked or (device.compiled and stores)):
                raise NotCompiledError("a kernel is not in /cache")
            return device

        def is_compiled(_, specs, __):
            return (
                stores
                and keeps
                and all(
                    {"win_length": spec.win_length}.items() <= fields.items()
                    for spec in specs
                    for fields in device.compiled[-1:] or [{}]
                )
            )

        warmed = []
        monkeypatch.setattr(live_engine.BinaryCache, "is_writable", lambda _: stores)
        monkeypatch.setattr(live_engine, "is_compiled", is_compiled)
        monkeypatch.setattr(live_engine, "warm_up", lambda *arguments: warmed.append(arguments))
        engine = LiveEngine("mic", compiler, open_device, beside and beside.engine._queue)
        made.append(engine)
        return SimpleNamespace(engine=engine, device=device, compiler=compiler, warmed=warmed)

    yield make
    for engine in made:
        engine.close()


def finish(machine):
    """Let the compiler end, and wait until all is loaded."""
    machine.compiler.may_end.set()
    for compilation in machine.engine._compilations:
        assert compilation.wait(WAIT_S)


def push(stream, n=640):
    first = stream.next_index or 0
    samples = np.sin(np.arange(first, first + n, dtype=np.float32))[np.newaxis]
    batches = stream.push(Block(samples, first, 0, 0)) + stream.flush()
    return [(one.engine, index) for one in batches for index in np.atleast_1d(one.sample_index)]


def test_numpy_computes_until_the_kernels_are_compiled(machine, caplog):
    """Frames come at once from NumPy and later from the device; none is missing or doubled."""
    caplog.set_level("INFO")
    here = machine()
    stream = here.engine.open_stream(SPEC, max_latency_s=np.inf)
    before = push(stream)
    assert here.compiler.started.wait(WAIT_S)
    before += push(stream)
    assert {name for name, _ in before} == {"numpy"}
    finish(here)
    rows = before + push(stream)
    assert {name for name, _ in rows[len(before) :]} == {"opencl:P/D"}
    assert [index for _, index in rows] == [64 * n for n in range(len(rows))]
    assert stream.engine is here.device
    assert "mic: moved to opencl:P/D after " in caplog.text


def test_compiled_kernels_are_used_at_once(machine):
    """A stream whose kernels are in the cache starts on the device, and nothing is compiled."""
    here = machine()
    here.device.compiled.append({"win_length": 128})
    stream = here.engine.open_stream(SPEC)
    assert stream.engine is here.device
    assert here.compiler.jobs == []
    assert here.engine.name == "opencl:P/D"


def test_a_machine_without_a_device_computes_with_numpy(caplog):
    """Without an OpenCL device NumPy computes, and nothing is compiled."""
    compiler = Compiler(None)
    engine = LiveEngine("mic", compiler, lambda **_: NumpyEngine())
    stream = engine.open_stream(SPEC)
    assert stream.engine.name == engine.name == "numpy"
    engine.close()
    assert compiler.jobs == []


def test_a_driver_that_was_never_checked_is_opened_after_the_compiler(machine):
    """Where even the check of the driver's compiler is not in the cache, the move comes later."""
    here = machine(is_checked=False)
    assert here.engine.name == "numpy"
    stream = here.engine.open_stream(SPEC)
    push(stream)
    finish(here)
    push(stream)
    assert stream.engine is here.device
    assert here.warmed == []


def test_a_cache_that_stores_nothing_does_not_prevent_the_move(machine):
    """With a read-only or missing cache, kernels are compiled again in a thread of this process."""
    here = machine(is_checked=False, stores=False)
    stream = here.engine.open_stream(SPEC)
    finish(here)
    push(stream)
    assert stream.engine is here.device
    assert here.warmed == [(here.device, (SPEC,), stream.layout)]


def test_kernels_that_vanish_from_the_cache_are_compiled_again(machine, caplog):
    """The process that compiles gets three attempts; this process does not compile."""
    here = machine(keeps=False)
    stream = here.engine.open_stream(SPEC)
    finish(here)
    assert {name for name, _ in push(stream)} == {"numpy"}
    assert len(here.compiler.jobs) == 3
    assert here.warmed == []
    assert caplog.messages == ["cannot compile kernels: they cannot be loaded from the cache"]


def test_a_thread_that_the_driver_holds_is_left_behind(machine, monkeypatch):
    """Closing does not wait for a driver that compiles, and leaves it its device."""
    here, held, may_end = machine(stores=False), threading.Event(), threading.Event()

    def warm_up(*_):
        held.set()
        assert may_end.wait(WAIT_S)

    monkeypatch.setattr(live_engine, "warm_up", warm_up)
    here.engine.open_stream(SPEC)
    here.compiler.may_end.set()
    assert held.wait(WAIT_S)
    here.engine.close()
    assert is_compiling()
    assert not here.device.is_closed
    may_end.set()
    finish(here)


@pytest.mark.parametrize("trouble", ["it takes more than 120 s", "exit code -11"])
def test_a_compiler_that_fails_leaves_the_stream_with_numpy(machine, caplog, trouble):
    """A compiler that crashes or hangs is one warning; NumPy continues without a break."""
    here = machine(trouble)
    stream = here.engine.open_stream(SPEC)
    rows = push(stream)
    finish(here)
    rows += push(stream)
    assert {name for name, _ in rows} == {"numpy"}
    assert caplog.messages == [f"cannot compile kernels: {trouble}"]


def test_a_device_that_fails_meanwhile_is_a_warning(machine, monkeypatch, caplog):
    """A device that is lost while its kernels are loaded leaves the stream with NumPy."""
    here = machine(stores=False)

    def lost(*_):
        raise DeviceError("P/D is lost")

    monkeypatch.setattr(live_engine, "warm_up", lost)
    stream = here.engine.open_stream(SPEC)
    finish(here)
    assert {name for name, _ in push(stream)} == {"numpy"}
    assert caplog.messages == ["cannot compile kernels: P/D is lost"]


def test_a_stream_that_ends_first_stops_the_compiler(machine, caplog):
    """Closing the engine while kernels are compiled ends the compiler, without a warning."""
    here = machine("stopped")
    stream = here.engine.open_stream(SPEC)
    assert here.compiler.started.wait(WAIT_S)
    push(stream)
    stream.finish()
    here.engine.close()
    assert here.compiler.stopped.is_set()
    assert here.device.is_closed
    assert caplog.messages == []


def test_kernels_that_are_compiled_after_the_end_change_nothing(machine):
    """A device that is ready after the stream has finished is not used any more."""
    here = machine()
    stream = here.engine.open_stream(SPEC)
    push(stream)
    rest = stream.finish()
    finish(here)
    assert {batch.engine for batch in rest} <= {"numpy"}
    assert stream.engine.name == "numpy"


def test_of_several_changes_only_the_last_one_is_compiled(machine):
    """Changes that come while kernels are compiled wait, and the newest replaces the others."""
    here = machine()
    first = here.engine.open_stream(SPEC)
    assert here.compiler.started.wait(WAIT_S)
    skipped = here.engine.open_stream(HOPS[0])
    last = here.engine.open_stream(OTHER)
    finish(here)
    assert [job.specs[0]["win_length"] for job in here.compiler.jobs] == [128, 256]
    for stream, name in ((first, "opencl:P/D"), (skipped, "numpy"), (last, "opencl:P/D")):
        push(stream)
        assert stream.engine.name == name


HOPS = [SpectrumSpec(8000.0, 1, win_length=64, hop=16)]


def test_sources_compile_one_after_the_other_and_equal_kernels_once(machine):
    """Of sources that share a queue one compiles at a time, and the others load its kernels."""
    first = machine()
    others = [machine(beside=first) for _ in range(5)]
    streams = [one.engine.open_stream(SPEC) for one in (first, *others)]
    streams.append(first.engine.open_stream(OTHER))
    assert first.compiler.started.wait(WAIT_S)
    assert len(first.compiler.jobs) == 1
    for one in (first, *others):
        finish(one)
    assert [job.specs[0]["win_length"] for job in first.compiler.jobs] == [128, 256]
    for stream in streams[1:]:
        push(stream)
        assert stream.engine is first.device


def test_what_could_not_be_compiled_is_tried_once_for_all(machine, caplog):
    """Sources that wait for kernels that another one could not compile stay with NumPy."""
    first = machine("it takes more than 120 s")
    others = [machine(beside=first) for _ in range(3)]
    streams = [one.engine.open_stream(SPEC) for one in (first, *others)]
    for one in (first, *others):
        finish(one)
    assert len(first.compiler.jobs) == 1
    assert caplog.messages == ["cannot compile kernels: it takes more than 120 s"]
    for stream in streams:
        push(stream)
        assert stream.engine.name == "numpy"


def test_a_source_that_ends_leaves_the_queue(machine):
    """Closing a source skips its compilation that waits; that of another one goes on."""
    first = machine()
    second = machine(beside=first)
    stream = first.engine.open_stream(SPEC)
    second.engine.open_stream(OTHER)
    second.engine._compiler = Compiler(second.device)  # each source stops its own
    second.engine.close()
    finish(second)
    finish(first)
    assert [job.specs[0]["win_length"] for job in first.compiler.jobs] == [128]
    push(stream)
    assert stream.engine is first.device


def test_a_defect_of_a_compilation_does_not_stop_the_queue(caplog):
    """An unexpected error is logged, and the next compilation has its turn."""
    queue = CompileQueue()
    wrong = queue.add(lambda compilation: compilation.missing)
    right = queue.add(lambda _: None)
    assert wrong.wait(WAIT_S)
    assert right.wait(WAIT_S)
    assert caplog.messages == ["compile failed"]


def test_what_is_too_much_for_numpy_waits_for_the_device(machine):
    """A stream that NumPy could not follow is not started before its kernels are compiled."""
    assert numpy_duration_s(HEAVY, HEAVY.fs) > 1.0
    here = machine()
    here.compiler.may_end.set()
    stream = here.engine.open_stream(HEAVY)
    assert stream.engine is here.device
    assert [job.limit_s for job in here.compiler.jobs] == [50.0]


def test_a_driver_that_crashed_does_not_compile_in_the_daemon(machine, caplog):
    """Even a stream that is much for NumPy stays with it, with one warning, after a crash."""
    here = machine(DeviceError("the OpenCL driver crashed (SIGABRT): no space"), is_checked=False)
    here.compiler.may_end.set()
    stream = here.engine.open_stream(HEAVY)
    assert stream.engine.name == here.engine.name == "numpy"
    assert here.warmed == []
    assert caplog.messages == [
        "cannot compile kernels: the OpenCL driver crashed (SIGABRT): no space"
    ]
