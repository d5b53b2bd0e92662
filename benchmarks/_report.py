"""Shared by all benchmarks: timing, a description of the machine, one JSON report.

To be imported before ``spectrod``: it makes the checkout that it lies in importable.
"""

import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Report = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""

sys.path.insert(0, str(ROOT))

from spectrod.apps.bench import report  # noqa: E402 - from the checkout that the line above names

describe_device = report.describe_device


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
    started = report.new_report(name) | {"results": []}
    del started["devices"]  # these scripts measure one
    return started


def run_tests(paths: list[str], seconds: float) -> Report:
    """Run tests with pytest, if it is there; keep the counts of its last line and what failed."""
    if importlib.util.find_spec("pytest") is None:
        return {"paths": paths, "failed": "pytest is not installed"}
    # The project's configuration may ask for plugins that are not here.
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-W", "default"]
    command += ["--import-mode=importlib", "-p", "no:cacheprovider", *paths]
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": search}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"paths": paths, "failed": f"no end after {seconds:.0f} s"}
    lines = (done.stdout + done.stderr).splitlines()
    counts = re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed)", "".join(lines[-1:]))
    return {
        "paths": paths,
        "exit_code": done.returncode,
        "counts": {name: int(count) for count, name in counts},
        "summary": lines[-1:],
        "failures": [text for text in lines if text.startswith(("FAILED", "ERROR"))][:40],
    }


def write_report(content: Report, path: str | Path) -> None:
    """Write a report as JSON; safe to call again and again as it grows."""
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
