"""Columns of the tables of ``spectrod bench``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from spectrod.cli.tables import Column, error, fixed, heading, line

_Row = TypeVar("_Row", bound=Mapping[str, Any])


def print_each(columns: Sequence[Column], rows: Iterable[_Row]) -> Iterator[_Row]:
    """Print a heading, then each row before it is yielded."""
    print(heading(columns), flush=True)
    for row in rows:
        print(line(columns, row), flush=True)
        yield row


def microseconds(seconds: float) -> str:
    """Format a time with a precision of at most 10 ns."""
    return f"{seconds * 1e6:.{2 if seconds < 1e-3 else 0}f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"


def _fine_milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _fine_percent(value: float) -> str:
    return f"{value:.1%}"


def _mebibytes(n_bytes: float) -> str:
    return f"{n_bytes / 2**20:.1f}"


TRANSFORMS = (
    Column("n", "n", 9),
    Column("kind", "kind", 4),
    Column("precision", "precision", 9),
    Column("batch", "batch", 8),
    Column("what", "what", 16),
    Column("seconds", "us", 10, microseconds),
    Column("gflop_per_s", "GFLOP/s", 8, fixed(1)),
    Column("gb_per_s", "GB/s", 7, fixed(1)),
    Column("copy_share", "of copy", 7, _percent),
    Column("relative_l2", "error", 8, error),
    Column("speed", "speed", 6, fixed(2)),
    Column("cores_after", "after", 6, fixed(1)),
)
"""Columns for ``transforms``; speed is relative to the transform's first row."""

LAUNCHES = (
    Column("n", "n", 9),
    Column("kind", "kind", 4),
    Column("precision", "precision", 9),
    Column("batch", "batch", 8),
    Column("kernel", "kernel", 24),
    Column("seconds", "us", 10, microseconds),
    Column("share", "share", 6, _percent),
    Column("gb_per_s", "GB/s", 7, fixed(1)),
)
"""Columns for ``launches.profile``; GB/s count one read and one write of the data."""

GROUPS = (
    Column("group_items", "group", 6),
    Column("butterflies", "butterflies us", 15, microseconds),
    Column("tiled", "transpose us", 13, microseconds),
    Column("naive", "naive us", 13, microseconds),
)
"""Columns for ``spectrod.apps.bench.launches.work_groups``."""

SEEDS = (
    Column("measure", "measure", 36),
    Column("size", "size", 12),
    Column("what", "what", 26),
    Column("seconds", "us", 12, microseconds),
    Column("speed", "speed", 8, fixed(2)),
)
"""Columns for ``seeds``; speed is relative to the first row of measure and size."""

_PLACE = (
    Column("n", "n", 7),
    Column("hop", "hop", 7),
    Column("channels", "channels", 8),
    Column("format", "format", 7),
    Column("product", "product", 12),
)

SPECTRA = (
    *_PLACE,
    Column("what", "what", 20),
    Column("way", "way", 13),
    Column("seconds", "ms", 8, _milliseconds),
    Column("gs_per_s", "GS/s", 7, fixed(3)),
    Column("x_real_time", "x real", 7, fixed(0)),
    Column("copy_share", "of copy", 7, _percent),
    Column("of_kernel", "of kernel", 9, _percent),
    Column("relative_l2", "error", 8, error),
    Column("over_numpy", "x NumPy", 7, fixed(1)),
    Column("over_shorttimefft", "x STFFT", 7, fixed(1)),
    Column("over_torch", "x torch", 7, fixed(1)),
    Column("cores_after", "after", 6, fixed(1)),
)
"""Columns for ``spectrod.apps.bench.stft``."""

LATENCY = (
    Column("what", "what", 10),
    Column("n", "n", 7),
    Column("hop", "hop", 7),
    Column("channels", "channels", 8),
    Column("frames", "frames", 8),
    Column("lost", "lost", 6),
    Column("p50", "p50 ms", 8, _fine_milliseconds),
    Column("p90", "p90 ms", 8, _fine_milliseconds),
    Column("p99", "p99 ms", 8, _fine_milliseconds),
    Column("max", "max ms", 8, _fine_milliseconds),
    Column("cpu_share", "CPU", 6, _fine_percent),
    Column("source_share", "source", 6, _fine_percent),
    Column("rss_bytes", "RSS MiB", 8, _mebibytes),
    Column("rss_peak_bytes", "peak", 8, _mebibytes),
)
"""Columns for ``spectrod.apps.bench.live.run_pipeline`` and ``measure_engine``."""

CHANNELS = (
    Column("channels", "channels", 8),
    Column("keeps_up", "keeps up", 8, lambda value: "yes" if value else "no"),
    Column("frames", "frames", 9),
    Column("lost", "lost", 9),
    Column("p50", "p50 ms", 9, _fine_milliseconds),
    Column("p99", "p99 ms", 9, _fine_milliseconds),
    Column("growth", "growth", 7, _fine_percent),
    Column("cpu_share", "CPU", 6, _fine_percent),
    Column("source_share", "source", 6, _fine_percent),
)
"""Columns for ``spectrod.apps.bench.channels``."""

MEMORY = (
    Column("frames", "frames", 10),
    Column("elapsed_s", "s", 7, fixed(1)),
    Column("rss_bytes", "RSS MiB", 9, lambda value: f"{value / 2**20:.2f}"),
)
"""Columns for ``spectrod.apps.bench.memory``."""

SOAK = (
    Column("elapsed_s", "s", 7, fixed(1)),
    Column("samples", "samples", 10),
    Column("unaccounted", "lost", 5),
    Column("silent", "silent", 6),
    Column("overflows", "flags", 5),
    Column("suspected", "susp.", 5),
    Column("gaps", "gaps", 4),
    Column("rate_ppm", "clock ppm", 9, fixed(3)),
    Column("rate_uncertainty_ppm", "+-", 6, fixed(3)),
    Column("true_rate_ppm", "true ppm", 9, fixed(3)),
    Column("true_rate_uncertainty_ppm", "+-", 6, fixed(3)),
    Column("callback_p50_s", "p50 us", 6, lambda seconds: f"{seconds * 1e6:.1f}"),
    Column("callback_p999_s", "p99.9", 6, lambda seconds: f"{seconds * 1e6:.1f}"),
    Column("callback_share", "of 5 ms", 7, _fine_percent),
    Column("cpu_share", "CPU", 6, _fine_percent),
    Column("rss_bytes", "RSS MiB", 8, lambda value: f"{value / 2**20:.2f}"),
    Column("descriptors", "fds", 4),
    Column("capture_cpu_share", "capture", 7, _fine_percent),
    Column("capture_rss_bytes", "RSS MiB", 8, lambda value: f"{value / 2**20:.2f}"),
    Column("capture_descriptors", "fds", 4),
)
"""Columns for ``spectrod.apps.bench.soak``."""
