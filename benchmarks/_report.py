"""What every benchmark shares: timing, a description of the machine, one JSON report.

To be imported before ``spectrod``: it makes the checkout that it lies in importable.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

Report = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""

sys.path.insert(0, str(ROOT))


def median_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Median wall time of a call [s], after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def new_report(name: str) -> Report:
    """Start a report: which benchmark, which commit, which machine."""
    return {
        "benchmark": name,
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "results": [],
    }


def describe_device(device: Any) -> Report:
    """Name, driver and size of an OpenCL device (a ``spectrod.opencl.devices.DeviceInfo``)."""
    return {
        "label": device.label,
        "kind": device.kind,
        "driver": device.driver,
        "compute_units": device.compute_units,
        "max_work_group_size": device.max_work_group_size,
        "local_mem_bytes": device.local_mem_bytes,
    }


def write_report(report: Report, path: str | Path) -> None:
    """Write a report as JSON; safe to call again and again as it grows."""
    Path(path).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _commit() -> str:
    """Commit of the checkout with ``+`` for local changes; elsewhere ``$SPECTROD_COMMIT`` or ""."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("SPECTROD_COMMIT", "")
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
