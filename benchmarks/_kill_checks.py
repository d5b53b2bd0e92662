"""Required content of recordings of a test signal, and results of killed ones."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import _report  # noqa: F401 - makes the checkout importable
import numpy as np
import soundfile
from PIL import Image

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.formats.description import RowReader
from spectrod.lib.errors import SpectrodError
from spectrod.recording.inputs import open_recording
from spectrod.source.signal import SignalSource

FS = 16000
SIGNAL = "white,-20"
PART = ".part"
_PICTURES = (".png", ".jpg", ".webp", ".pgm", ".svg")
_LSB = 2.0**-15
_NS = 1_000_000_000


class Truth:
    """The signal and its spectra, computed again.

    Parameters
    ----------
    seconds : float
        The longest that anything records [s].
    """

    def __init__(self, seconds: float) -> None:
        source = SignalSource(SIGNAL, float(FS), 1, "full")
        self.samples: Float32Array = next(source.blocks(round(seconds * FS)))
        self._rows: dict[SpectrumSpec, Float32Array] = {}

    def rows(self, spec: SpectrumSpec) -> Float32Array:
        """Compute all rows of a spec; (rows, signals, values)."""
        if spec not in self._rows:
            stream = FrameStream(spec, NumpyEngine())
            batches = stream.push(Block(self.samples, 0, 0, 0)) + stream.flush()
            self._rows[spec] = np.concatenate([batch.values for batch in batches])
        return self._rows[spec]

    def known(self) -> list[Float32Array]:
        """Give the rows of all specs that were met."""
        return list(self._rows.values())


@dataclass
class Tally:
    """Results of one format.

    Attributes
    ----------
    outcomes : Counter of str
        How many rounds ended in what.
    compared, false : int
        Rows, samples or pictures (which are decoded), and those that were not the signal's.
    vanished : int
        Rows that a reader saw before the kill and not after it.
    loss_s : float
        The longest time before a kill of which nothing was there [s].
    problems : list of str
        Whatever else must not be.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    false: int = 0
    vanished: int = 0
    loss_s: float = 0.0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Kill:
    """A kill.

    Attributes
    ----------
    t_s : float
        UTC [s].
    seen : int
        Rows of the segment that a reader had seen just before.
    was_running : bool
        False if the program had ended by itself before.
    duration_s : float
        How long it would have recorded [s].
    """

    t_s: float
    seen: int
    was_running: bool
    duration_s: float


def found(path: Path) -> Path:
    """Name the file, or what it is called while it is written."""
    return path if path.exists() else path.with_name(path.name + PART)


def count_rows(path: Path) -> int:
    """Count the rows that a reader sees at this moment."""
    try:
        return sum(batch.n_frames for batch in open_recording(path).batches())
    except SpectrodError:
        return 0  # nothing there yet


def check_rows(tally: Tally, truth: Truth, reader: RowReader) -> tuple[int, float, float]:
    """Compare rows, which must follow on one another.

    Returns
    -------
    n_rows : int
        How many there are.
    begin_s, end_s : float
        UTC of the first sample and behind the last one [s]; 0 without rows.
    """
    spec = reader.description.spec
    expected = truth.rows(spec)
    n_rows, begin_s, end_s = 0, 0.0, 0.0
    for batch in reader.batches():
        past = n_rows + batch.n_frames
        is_true = batch.sample_index == np.arange(n_rows, past) * spec.hop
        is_true &= (batch.values == expected[n_rows:past]).all(axis=(1, 2))
        tally.false += int(np.count_nonzero(~is_true))
        if batch.gap_samples or batch.discontinuity:
            tally.problems.append(f"row {n_rows}: a gap that was none")
        begin_s = begin_s or batch.t_utc_ns[0] / _NS
        end_s = (batch.t_utc_ns[-1] + spec.win_length * _NS / spec.fs) / _NS
        n_rows = past
    tally.compared += n_rows
    return n_rows, begin_s, end_s


def check_samples(tally: Tally, truth: Truth, path: Path, first: int = 0) -> int:
    """Compare samples from the signal's first on, to 16 bits; return how many there are."""
    with soundfile.SoundFile(path) as file:
        read = file.read(dtype="float32", always_2d=True).T
    expected = truth.samples[:, first : first + read.shape[1]]
    tally.false += int(np.count_nonzero(np.abs(read - expected) > _LSB))
    tally.compared += read.shape[1]
    return int(read.shape[1])


def check_whole(tally: Tally, truth: Truth, path: Path, duration_s: float) -> None:
    """Demand of a file that appears only when it is finished that it is absent or whole."""
    if not path.exists():
        tally.outcomes["absent"] += 1
        return
    tally.outcomes["finished"] += 1
    try:
        if path.suffix == ".svg":
            ET.parse(path)  # noqa: S314 - we wrote it
            tally.compared += 1
        elif path.suffix in _PICTURES:
            with Image.open(path) as picture:
                picture.load()
            tally.compared += 1
        elif path.suffix == ".npy":
            _check_array(tally, truth, path)
        else:
            reader = open_recording(path)
            n_rows, _, _ = check_rows(tally, truth, reader)
            n_all = reader.description.spec.n_frames(round(duration_s * FS))
            if n_rows != n_all:
                tally.problems.append(f"{path.name}: {n_rows} rows of {n_all}")
    except (SpectrodError, OSError, ValueError, SyntaxError) as error:
        tally.problems.append(f"{path.name}: {error!r}")


def _check_array(tally: Tally, truth: Truth, path: Path) -> None:
    """Compare an array that says nothing of itself: any spec that was met has its shape."""
    values = np.load(path)
    tally.compared += len(values)
    for rows in truth.known():
        if rows.shape[1:] == values.shape[1:] and np.array_equal(rows[: len(values)], values):
            return
    tally.false += len(values)
