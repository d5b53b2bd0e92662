"""First launches of an analysis, before samples arrive.

As a program, ``python -m spectrod.analysis.warm_up JOB``, it runs in a process of its own:
while PoCL compiles, a process launches nothing else.
"""

import ctypes
import fcntl
import json
import logging
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

import numpy as np

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block, SampleFormat
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SPEC_FIELDS, SpectrumSpec
from spectrod.lib.errors import DeviceError, NotCompiledError, SpectrodError
from spectrod.lib.text import printable
from spectrod.opencl.notice import NOTICE
from spectrod.opencl.program_cache import default_folder

_MANY_FRAMES = 32
_SAMPLES_MAX = 1 << 23
LIMIT_S = 120.0
"""Time after which a process that compiles is killed [s]."""
WAIT_LIMIT_S = 50.0
"""Limit where somebody waits for the end: less than a control client waits for a reply [s]."""
_NICENESS = 10
"""Of a process that compiles: the analysis comes first."""
_PR_SET_PDEATHSIG = 1
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals by which a driver ends its process."""

_log = logging.getLogger(__name__)


def warm_up(engine: Engine, specs: Sequence[SpectrumSpec], layout: SampleLayout) -> None:
    """Compute frames of silence, and store the programs that the driver compiles for them.

    Drivers compile at the first launch of each shape (PoCL: for seconds, on a busy machine longer
    than a ring lasts), and when binaries are read; here both delay no samples.

    Parameters
    ----------
    engine : Engine
        Engine to warm up.
    specs : sequence of SpectrumSpec
        Specs to compute: single frames, as in live operation, and many at a time, as after a delay.
    layout : SampleLayout
        Layout of the samples.
    """
    for spec in specs:
        _compute_silence(engine, spec, layout)
    engine.keep_programs()


def is_compiled(engine: Engine, specs: Sequence[SpectrumSpec], layout: SampleLayout) -> bool:
    """Warm up without compiling; return whether all kernels were in the cache and could be used."""
    try:
        with engine.only_compiled():
            for spec in specs:
                _compute_silence(engine, spec, layout)
    except NotCompiledError:
        return False
    except DeviceError as error:  # reported by the process that compiles, if it remains
        _log.debug("%s", error)
        return False
    return True


def warm_up_in_process(engine: Engine, specs: Sequence[SpectrumSpec], layout: SampleLayout) -> None:
    """Warm up in another process, while this engine computes.

    The engine then loads the programs from the cache folder. If that fails, which is logged, it
    compiles by itself.

    Raises
    ------
    DeviceError
        If the driver crashed in the other process, as it would in this one.
    """
    _, _, device = engine.name.partition("opencl:")
    if not (device and specs):  # NumPy compiles nothing
        return
    job = CompilerJob.of(specs, layout, device, limit_s=WAIT_LIMIT_S)
    _log.info("%s: compiling kernels that are not in the cache", engine.name)
    if trouble := CompilerProcess().run(job):
        _log.warning("could not compile kernels in advance; spectra may be late: %s", trouble)


@dataclass(frozen=True, slots=True)
class CompilerJob:
    """What another process compiles.

    Attributes
    ----------
    specs : list of dict
        Fields of the specs.
    device : str
        Device, as ``open_engine`` has it; "" for the best one that works.
    sample_format : {"int16", "int24", "int32", "float32"}
        Format of the samples.
    interleaved : bool
        Order of the samples in memory.
    is_alone : bool
        Whether it gives up if another process with ``is_alone`` compiles into the same cache.
    limit_s : float
        Time after which the process ends itself [s].
    """

    specs: list[dict[str, Any]]
    device: str
    sample_format: SampleFormat
    interleaved: bool
    is_alone: bool
    limit_s: float

    @classmethod
    def of(
        cls,
        specs: Sequence[SpectrumSpec],
        layout: SampleLayout,
        device: str = "",
        *,
        is_alone: bool = False,
        limit_s: float = LIMIT_S,
    ) -> "CompilerJob":
        """Make a job for samples of a layout."""
        fields = [_compiled_fields(spec) for spec in specs]
        sample_format, interleaved = layout.sample_format, layout.interleaved
        return cls(fields, device, sample_format, interleaved, is_alone, limit_s)

    @property
    def command(self) -> list[str]:
        """Command line of the process."""
        return [sys.executable, "-P", "-m", __name__, json.dumps(asdict(self))]


def _compiled_fields(spec: SpectrumSpec) -> dict[str, Any]:
    """Return the fields of a spec that needs the same kernels.

    A calibration cannot be sent to another process; a response has the kernels of a weighting.
    """
    found = {name: getattr(spec, name) for name in SPEC_FIELDS}
    is_weighted = spec.scale.common_response is not None or (
        spec.bands and any(spec.scale.responses)
    )
    if is_weighted and not spec.iq and spec.weighting == "Z":
        found["weighting"] = "C"
    return found


class CompilerProcess:
    """Compiles kernels in another process, which stores them in the cache; one at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, job: CompilerJob) -> str:
        """Compile, and wait for the end; return what went wrong in one line, or an empty text.

        Raises
        ------
        DeviceError
            If the driver crashed: do not compile in this process.
        """
        try:
            return self._run(job)
        except OSError as error:
            return str(error)

    def _run(self, job: CompilerJob) -> str:
        with self._lock:
            if self._is_stopped:
                return "stopped"
            process = self._process = subprocess.Popen(  # noqa: S603 - this program, and its texts
                job.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C ends it by ``stop``
            )
        try:
            _, said = process.communicate(timeout=job.limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"it takes more than {job.limit_s:g} s"
        if process.returncode == 0:
            return ""
        lines = said.decode(errors="replace").strip().splitlines()
        last_line = printable(lines[-1]) if lines else ""
        if -process.returncode in _CRASHES:
            crash = signal.Signals(-process.returncode).name
            raise DeviceError(f"the OpenCL driver crashed ({crash}): {last_line or 'no message'}")
        return last_line or f"exit code {process.returncode}"

    def stop(self) -> None:
        """Kill the process, if there is one; later runs do nothing. Any thread."""
        with self._lock:
            self._is_stopped = True
            if self._process:
                self._process.kill()


def leave_compiling(job: CompilerJob) -> None:
    """Start a process that outlives this one, and compiles for the next one; do not wait for it."""
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    # A process of multiprocessing has inherited the pipe by whose end its parent sees that it ends.
    closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable() if number > 2]
    actions = [*nowhere, *closed]
    try:
        # In a group of its own, Ctrl-C does not reach it.
        os.posix_spawn(sys.executable, job.command, os.environ, file_actions=actions, setpgroup=0)
    except OSError as error:
        _log.debug("could not compile kernels for later: %s", error)


def _inheritable() -> list[int]:
    """Return this process's descriptors that another program would inherit."""
    found = []
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names alone
            with suppress(OSError):  # the listing's own, which is closed
                if os.get_inheritable(int(name)):
                    found.append(int(name))
    return found


def _compute_silence(engine: Engine, spec: SpectrumSpec, layout: SampleLayout) -> None:
    stream = FrameStream(
        spec,
        engine,
        sample_format=layout.sample_format,
        interleaved=layout.interleaved,
        max_latency_s=float("inf"),
    )
    n_many = min(_MANY_FRAMES, _SAMPLES_MAX // (spec.hop * spec.channels))
    index = 0
    for n_samples in (spec.win_length, n_many * spec.hop):
        if n_samples:
            silence = layout.arranged(np.zeros(layout.step_bytes * n_samples, np.uint8), n_samples)
            stream.push(Block(silence, index, 0, 0))
            stream.flush()
            index += n_samples


@contextmanager
def _alone() -> Iterator[bool]:
    """Lock the cache folder; yield False if another process has locked it or it cannot be."""
    folder = default_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


def _compile(job: CompilerJob) -> None:
    NOTICE.after_s = math.inf  # its parent reports the last line
    engine = open_engine("opencl", job.device)
    specs = [SpectrumSpec(**fields) for fields in job.specs]
    warm_up(engine, specs, SampleLayout(job.sample_format, specs[0].channels, job.interleaved))
    engine.close()


def _main(text: str) -> None:
    job = CompilerJob(**json.loads(text))
    # Ends this process even within the driver, and even if the parent was killed.
    signal.alarm(math.ceil(job.limit_s))
    if not job.is_alone and sys.platform == "linux":  # end with the daemon, even if it is killed
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(PermissionError):  # a confined service may not change priorities
        os.nice(_NICENESS)
    try:
        with _alone() if job.is_alone else nullcontext(enter_result=True) as is_allowed:
            if is_allowed:
                _compile(job)
    except SpectrodError as error:
        sys.exit(str(error).partition("\n")[0])


if __name__ == "__main__":
    _main(*sys.argv[1:])
