"""Costs of pyramids and sound files: processor time, disk space, and time to answer.

    python benchmarks/bench_long_term.py [--hours 1] [--json FILE]

Each is checked: a pyramid's columns against the rows, the samples of a file bit for bit.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidReader, PyramidWriter
from spectrod.formats.sound import SoundWriter

FS, CHANNELS = 48000, 2
BEGIN_NS = 20_575 * 86400 * 10**9
SPEC = SpectrumSpec(fs=FS, win_length=4096, hop=1024)
ROWS_A_BATCH = 47
SPANS_S = (3600, 600, 60, 10)
SOUND_S = 300
FORMS = ((".wav", "f32"), (".wav", "s16"), (".wav", "s24"), (".flac", "s16"), (".flac", "s24"))


def batch_of(values: np.ndarray, row: int) -> SpectrumBatch:
    """Make rows of a 48 kHz channel from a row number on."""
    index = (row + np.arange(len(values), dtype=np.int64)) * SPEC.hop
    t_ns = BEGIN_NS + index * 10**9 // FS
    return SpectrumBatch(values, index, t_ns, t_ns, SPEC, "none")


def bench_pyramid(folder: Path, finest_s: float, hours: float) -> dict[str, Any]:
    """Write one and read it."""
    rng = np.random.default_rng(1)
    values = rng.gamma(2.0, 1e-8, (ROWS_A_BATCH, 1, SPEC.n_values)).astype(np.float32)
    writer = PyramidWriter(folder, Description(SPEC, "x", ("a",), "x"), PyramidOptions(finest_s))
    begin_s = time.process_time()
    for row in range(0, round(hours * 3600 * FS / SPEC.hop), ROWS_A_BATCH):
        writer.write(batch_of(values, row))
    size_bytes = writer.size_bytes
    writer.finish()
    cpu_s = time.process_time() - begin_s
    reader = PyramidReader(folder)
    whole = reader.columns(BEGIN_NS, BEGIN_NS + 10 * 10**9, 1, values_max=1)
    assert abs(whole.greatest.max() - 10.0 * np.log10(values.max())) < 0.01
    answers_ms = {}
    for span_s in SPANS_S:
        begin_s = time.perf_counter()
        reader.columns(BEGIN_NS, BEGIN_NS + span_s * 10**9, 1000)
        answers_ms[span_s] = 1e3 * (time.perf_counter() - begin_s)
    reader.close()
    cell_bytes = 16 + 6 * writer.about.n_values
    return {
        "finest_s": finest_s,
        "cpu_s_an_hour": cpu_s / hours,
        "mb_an_hour": size_bytes / hours / 1e6,
        "mb_a_day": sum(86400e9 / ns * cell_bytes for ns in writer.about.cells_ns) / 1e6,
        "columns_ms": answers_ms,
    }


def bench_sound(path: Path, subtype: str) -> dict[str, Any]:
    """Write a file of noise."""
    rng = np.random.default_rng(2)
    samples = (rng.integers(-9000, 9000, (CHANNELS, FS)) / 32768.0).astype(np.float32)
    writer = SoundWriter(path, FS, CHANNELS, subtype)
    begin_s = time.perf_counter()
    for second in range(SOUND_S):
        writer.write(Block(samples, second * FS, 0, BEGIN_NS))
    writer.finish()
    took_s = time.perf_counter() - begin_s
    last = soundfile.read(path, start=(SOUND_S - 1) * FS, dtype="float32")[0]
    assert np.array_equal(last.T, samples)
    size_mb = path.stat().st_size / 1e6
    return {"form": path.suffix[1:], "subtype": subtype, "speed": SOUND_S / took_s, "mb": size_mb}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pyramids = [
            bench_pyramid(Path(folder) / f"{finest_s}", finest_s, args.hours)
            for finest_s in (1.0, 0.05)
        ]
        sounds = [bench_sound(Path(folder) / f"{sub}{suffix}", sub) for suffix, sub in FORMS]
    for one in pyramids:
        answers = ", ".join(f"{span} s: {ms:.0f} ms" for span, ms in one["columns_ms"].items())
        print(
            f"pyramid from {one['finest_s']:g} s: {one['cpu_s_an_hour']:.1f} s an hour, "
            f"{one['mb_an_hour']:.1f} MB an hour, 1000 columns of {answers}"
        )
    for one in sounds:
        print(f"{one['form']} {one['subtype']}: {one['speed']:.0f} x, {one['mb']:.0f} MB")
    if args.json:
        args.json.write_text(json.dumps({"pyramids": pyramids, "sounds": sounds}, indent=1))


if __name__ == "__main__":
    main()
