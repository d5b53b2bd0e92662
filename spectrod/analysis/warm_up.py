"""First launches of an analysis, before samples arrive.

As a program it runs in a process apart, ``python -m spectrod.analysis.warm_up DEVICE SPECS
FORMAT``: while PoCL compiles, a process launches nothing else.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.types import SPEC_FIELDS, Block, SampleFormat, SpectrumSpec

_MANY_FRAMES = 32
_SAMPLES_MAX = 1 << 23
_LIMIT_S = 20.0  # after that, late spectra are better than a change that never takes effect

_log = logging.getLogger(__name__)


def warm_up(engine: Engine, *specs: SpectrumSpec, sample_format: SampleFormat = "float32") -> None:
    """Compute frames of silence, and store the programs that the driver compiles for them.

    Drivers compile at the first launch of each shape (PoCL: for seconds, on a busy machine longer
    than a ring lasts), and when binaries are read; here both delay no samples.

    Parameters
    ----------
    engine : Engine
        Engine to warm up.
    *specs : SpectrumSpec
        Specs to compute: single frames, as in live operation, and many at a time, as after a delay.
    sample_format : {"int16", "int24", "int32", "float32"}
        Of the samples, whose channels lie one after another.
    """
    for spec in specs:
        _compute_silence(engine, spec, sample_format)
    engine.keep_programs()


def warm_up_in_process(
    engine: Engine, specs: Sequence[SpectrumSpec], sample_format: SampleFormat = "float32"
) -> None:
    """Warm up in another process, while this engine computes.

    The engine then loads the programs from the cache folder. If that fails, which is logged, it
    compiles by itself.
    """
    _, _, device = engine.name.partition("opencl:")
    if not (device and specs):  # NumPy compiles nothing
        return
    text = json.dumps([{name: getattr(spec, name) for name in SPEC_FIELDS} for spec in specs])
    command = [sys.executable, "-P", "-m", __name__, device, text, sample_format]
    if trouble := _failure(command):
        _log.warning("could not compile kernels in advance; spectra may be late: %s", trouble)


def _failure(command: Sequence[str]) -> str:
    """Run a program; return its error as one line, or an empty text."""
    try:
        done = subprocess.run(  # noqa: S603 - this program, and texts of its own
            command,
            check=False,
            timeout=_LIMIT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {_LIMIT_S:g} s"
    except OSError as error:
        return f"{error}"
    if done.returncode == 0:
        return ""
    output = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
    return output.splitlines()[-1]


def _compute_silence(engine: Engine, spec: SpectrumSpec, sample_format: SampleFormat) -> None:
    stream = FrameStream(spec, engine, sample_format=sample_format, max_latency_s=float("inf"))
    layout = stream.layout
    n_many = min(_MANY_FRAMES, _SAMPLES_MAX // (spec.hop * spec.channels))
    index = 0
    for n_samples in (spec.win_length, n_many * spec.hop):
        if n_samples:
            silence = layout.arranged(np.zeros(layout.step_bytes * n_samples, np.uint8), n_samples)
            stream.push(Block(silence, index, 0, 0))
            stream.flush()
            index += n_samples


def _main(device: str, specs: str, sample_format: SampleFormat) -> None:
    engine = open_engine("opencl", device)
    every = (SpectrumSpec(**fields) for fields in json.loads(specs))
    warm_up(engine, *every, sample_format=sample_format)
    engine.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])  # type: ignore[arg-type] # as warm_up_in_process has written them
