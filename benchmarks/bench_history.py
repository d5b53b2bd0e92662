"""Time to answer requests for the past: from a pyramid of 30 days, from segments, from memory.

    python benchmarks/bench_history.py [--days 30] [--json FILE]

The long pyramid has cells from a minute on, as after the finer ones have expired; a second one of
six hours has cells of a second. Both have 410 values of one channel. Answers are checked: every
column that has rows must have a level, and the loudest cell must be found at every zoom. Beside the
time that passes, which others on the machine lengthen, stands the time of the processor.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.apps.web.history.answer import HistoryAnswer, answer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.pyramid.cell import Cell
from spectrod.formats.segment.segment_writer import SegmentWriter

S = 10**9
DAY_S = 86400
BEGIN_NS = 20_575 * DAY_S * S
SPEC = SpectrumSpec(fs=48000.0, win_length=4096, hop=1024)
ROW_S = 1024 / 48000
LOUD = 10_001
"""Number of the loudest cell, after the beginning."""
REPEATS = 5

TOPIC = TopicInfo(
    1,
    "spec/pond/a/density/",
    "spec",
    "tcp://127.0.0.1:5556",
    "pond",
    "a",
    "density",
    "FS^2/Hz",
    48000.0,
)


def make_pyramid(folder: Path, cell_s: int, seconds: int) -> None:
    """Write finest cells, and let the writer make the coarser ones."""
    about = Description(SPEC, "pond", ("a",), "benchmark")
    writer = PyramidWriter(folder, about, PyramidOptions(cell_s, 512, 1e9))
    rng = np.random.default_rng(1)
    shape = (3, 1, writer.about.n_values)
    kept = [np.sort(rng.gamma(2.0, 1e-8, shape), axis=0) for _ in range(64)]
    loud = kept[0] * 1e4
    first = BEGIN_NS // (cell_s * S)
    for n in range(seconds // cell_s):
        power = loud if n == LOUD else kept[n % len(kept)]
        # As the writer does with rows, without making millions of them.
        writer._index, writer._cells = first + n, [Cell(cell_s * S, power)]  # noqa: SLF001
        writer._leave(first + n + 1)  # noqa: SLF001
    writer.finish()


def make_segment(path: Path, minutes: int) -> np.ndarray:
    """Write rows of the default analysis."""
    rng = np.random.default_rng(2)
    writer = SegmentWriter(path, Description(SPEC, "pond", ("a",), "benchmark"))
    values = rng.gamma(2.0, 1e-8, (47, 1, SPEC.n_values)).astype(np.float32)
    for first in range(0, round(minutes * 60 / ROW_S), 47):
        index = (first + np.arange(47, dtype=np.int64)) * SPEC.hop
        t_ns = BEGIN_NS + index * S // 48000
        writer.write(SpectrumBatch(values, index, t_ns, t_ns, SPEC, "none"))
    writer.finish()
    return values


def timed(
    folder: Path, begin_s: float, span_s: float, width: int
) -> tuple[dict[str, Any], HistoryAnswer]:
    """Answer the same request several times, with an index that is there."""
    t0_ms = BEGIN_NS / 1e6 + 1e3 * begin_s
    asked = HistoryRequest(1, t0_ms, t0_ms + 1e3 * span_s, 0.0, 24000.0, width, 1024, ("max",))
    index, took_ms, cpu_ms = RecordingIndex([folder]), [], []
    index.refresh()
    for _ in range(REPEATS):
        begin, cpu = time.perf_counter(), time.process_time()
        got = answer(asked, {1: TOPIC}, index, Ring(), Budget(), now_ns=time.time_ns())
        got.encode()
        cpu_ms.append(1e3 * (time.process_time() - cpu))
        took_ms.append(1e3 * (time.perf_counter() - begin))
    result = {
        "span_s": span_s,
        "columns": got.header["w"],
        "cell_s": got.header["cell_ms"] / 1e3,
        "median_ms": float(np.median(took_ms)),
        "max_ms": max(took_ms),
        "cpu_ms": float(np.median(cpu_ms)),
        "left_out": got.header["left_out"],
    }
    return result, got


def bench_zooms(folder: Path, cell_s: int, seconds: int) -> list[dict[str, Any]]:
    """Answer every zoom from all to 256 cells, as a picture and as a tile of the page."""
    results = []
    span_s = float(seconds)
    while span_s >= 256 * cell_s:
        for width in (256, 1920):
            middle_s = (LOUD + 0.5) * cell_s
            begin_s = max(0.0, min(middle_s - span_s / 2, seconds - span_s))
            result, got = timed(folder, begin_s, span_s, width)
            level = -327.67 + 0.01 * got.layers[0].astype(np.float64)
            assert (got.effort_s[:-1] > 0.0).all(), "the last one may begin at the end"
            assert level.max() > -45.0, "the loud cell is lost"
            results.append({"source": f"cells of {cell_s} s"} | result)
        span_s /= 4.0
    return results


def bench_segments(folder: Path, minutes: int) -> list[dict[str, Any]]:
    """Answer from rows alone."""
    results = []
    for span_s in (10.0, 60.0, 256.0, 1280.0):
        result, got = timed(folder, minutes * 30.0, min(span_s, minutes * 30.0), 256)
        assert got.header["sources"] == ["segment"]
        results.append({"source": "rows"} | result)
    return results


def main() -> None:
    """Make the recordings, and time the answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--minutes", type=int, default=30, help="of rows without a pyramid")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for cell_s, seconds in ((60, args.days * DAY_S), (1, DAY_S // 4)):
            folder = Path(temporary) / str(cell_s)
            (folder / "all" / "pond").mkdir(parents=True)
            make_pyramid(folder / "all" / "pond" / "pyramid", cell_s, seconds)
            results += bench_zooms(folder, cell_s, seconds)
        folder = Path(temporary) / "rows"
        (folder / "all" / "pond").mkdir(parents=True)
        make_segment(folder / "all" / "pond" / "x.spd", args.minutes)
        results += bench_segments(folder, args.minutes)
    for one in results:
        print(
            f"{one['source']:13} {one['span_s']:9.0f} s  {one['columns']:5} columns of "
            f"{one['cell_s']:7g} s  median {one['median_ms']:6.1f} ms  max {one['max_ms']:6.1f} ms"
            f"  processor {one['cpu_ms']:6.1f} ms  {'; '.join(one['left_out'])}"
        )
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
