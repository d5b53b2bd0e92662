"""Description of the machine in a report of measurements."""

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import spectrod
from spectrod.opencl.devices import DeviceInfo

Report = dict[str, Any]

_ROOT = Path(__file__).resolve().parents[3]


def new_report(benchmark: str) -> Report:
    """Return a new report: benchmark, time, versions, machine."""
    return {
        "benchmark": benchmark,
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "spectrod": spectrod.__version__,
        "commit": commit(),
        "machine": {
            "processor": _processor(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "devices": [],
    }


def describe_device(device: DeviceInfo) -> Report:
    """Return the name, the driver and the limits of an OpenCL device."""
    return {
        "label": device.label,
        "kind": device.kind,
        "driver": device.driver,
        "compute_units": device.compute_units,
        "max_work_group_size": device.max_work_group_size,
        "local_mem_bytes": device.local_mem_bytes,
    }


def commit() -> str:
    """Return the commit of the checkout, with ``+`` for local changes, if there is one.

    Without Git, return ``SPECTROD_COMMIT`` from the environment, or "".
    """
    git = shutil.which("git")
    if git is None or not (_ROOT / ".git").exists():
        return os.environ.get("SPECTROD_COMMIT", "")
    command = [git, "-C", str(_ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
