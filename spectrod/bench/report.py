"""What a report of measurements says of the machine that they were made on."""

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import spectrod
from spectrod.opencl.devices import DeviceInfo

Report = dict[str, Any]


def new_report(benchmark: str) -> Report:
    """Start a report: which benchmark, when, with what, on what."""
    return {
        "benchmark": benchmark,
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "spectrod": spectrod.__version__,
        "machine": {
            "processor": _processor(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "devices": [],
    }


def describe_device(device: DeviceInfo) -> Report:
    """Say which OpenCL device, with which driver and limits."""
    return {
        "label": device.label,
        "kind": device.kind,
        "driver": device.driver,
        "compute_units": device.compute_units,
        "max_work_group_size": device.max_work_group_size,
        "local_mem_bytes": device.local_mem_bytes,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
