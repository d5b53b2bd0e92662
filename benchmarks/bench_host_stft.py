"""Spectra without a device, beside other libraries: ``python benchmarks/bench_host_stft.py [OUT]``.

``spectrod.spectrogram`` of 44 s of noise at 96 kHz by the engines ``"numpy"`` and ``"float64"``,
beside ``scipy.fft``, pyFFTW, mkl_fft in NumPy pipelines, ``ShortTimeFFT``, librosa and torch, all
that are installed, in turns. Correctness is checked first. Caches are warm. At the end ten minutes
at 48 kHz, 1024 points at 256: the first call of the process for them, and the median of later ones.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from _report import new_report, write_report

import spectrod
from spectrod.apps.bench import stft_peers
from spectrod.apps.bench.peers import PreparedRun, run_on_host
from spectrod.apps.bench.spectra import FS, Spectra, make_spec, require_right
from spectrod.apps.bench.waiting_threads import ask_threads_to_sleep
from spectrod.fft.timing import median_seconds
from spectrod.lib.errors import UnavailableError

LENGTHS = (256, 1024, 2048, 4096, 8192)
ENGINES = ("numpy", "float64")
N_SAMPLES, TEN_MINUTES = 1 << 22, 28_800_000
ROUNDS, SECONDS = 15, 8.0


def own_run(spectra: Spectra, engine: str) -> PreparedRun:
    """Prepare ``spectrod.spectrogram`` by an engine, and check its result."""
    spec = spectra.spec
    whole = partial(
        spectrod.spectrogram,
        spectra.samples,
        FS,
        window=spec.window,
        win_length=spec.win_length,
        hop=spec.hop,
        engine=engine,
    )
    run = run_on_host(whole, lambda: whole().values.transpose(2, 0, 1))
    require_right(engine, spectra, spectra.error(run.result()))
    return run


def runs(spectra: Spectra) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield the name and a timer of each library that works here."""
    for engine in ENGINES:
        yield f"engine={engine}", own_run(spectra, engine).seconds
    names, _ = stft_peers.choose_peers(None, "cpu")
    for name in names:
        try:
            prepared = list(stft_peers.prepare(name, spectra))
        except UnavailableError as error:
            print(f"  {name}: {error}")
            continue
        for way, run, _ in prepared:
            yield f"{name} {way}".strip(), run.seconds


def measure(n: int, hop: int, sample_format: str, n_samples: int) -> dict[str, Any]:
    """Time all libraries in turns; the ratio is the best NumPy pipeline's time over ours."""
    spectra = Spectra.of_noise(make_spec(n, hop, 1, "power"), "power", sample_format, n_samples)
    named = dict(runs(spectra))
    times = median_seconds(list(named.values()), ROUNDS, SECONDS)
    seconds = dict(zip(named, times, strict=True))
    framing = ("scipy.fft", "pyFFTW", "mkl_fft")
    best = min((s, name) for name, s in seconds.items() if name.startswith(framing))
    ratios = {name: best[0] / seconds[f"engine={name}"] for name in ENGINES}
    print(
        f"n={n:5d} hop={hop:5d} {sample_format:8s}"
        + "".join(f"  {name} {seconds[f'engine={name}'] * 1e3:6.1f} ms" for name in ENGINES)
        + f"  best pipeline {best[0] * 1e3:6.1f} ms ({best[1]})"
        + "".join(f"  {name} {ratio:.2f}" for name, ratio in ratios.items()),
        flush=True,
    )
    place = {"n": n, "hop": hop, "sample_format": sample_format}
    return place | {"seconds": seconds, "best": best[1], "ratios": ratios}


def ten_minutes(engine: str) -> dict[str, Any]:
    """Time calls for ten minutes of sound, the first one with new memory."""
    spectra = Spectra.of_noise(make_spec(1024, 256, 1, "power"), "power", "float32", TEN_MINUTES)
    call = partial(
        spectrod.spectrogram, spectra.samples, 48000, win_length=1024, hop=256, engine=engine
    )
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    later = statistics.median(seconds[1:])
    print(f"ten minutes, {engine}: first call {seconds[0]:.3f} s, later {later:.3f} s", flush=True)
    return {"engine": engine, "samples": TEN_MINUTES, "first_s": seconds[0], "later_s": later}


def main() -> None:
    """Measure, print, and write the report if a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    arguments = parser.parse_args()
    print(ask_threads_to_sleep())
    report = new_report("host_stft")
    for n in LENGTHS:
        for sample_format in ("float32", "int16"):
            report["results"].append(measure(n, n // 4, sample_format, arguments.samples))
            if arguments.out:
                write_report(report, arguments.out)
    report["ten_minutes"] = [ten_minutes(engine) for engine in ENGINES]
    if arguments.out:
        write_report(report, arguments.out)
    for engine in ENGINES:
        ratios = [row["ratios"][engine] for row in report["results"]]
        middle = statistics.median(ratios)
        print(f"{engine}: {min(ratios):.2f} to {max(ratios):.2f}, median {middle:.2f}")


if __name__ == "__main__":
    main()
