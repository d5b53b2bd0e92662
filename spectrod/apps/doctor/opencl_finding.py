"""OpenCL: drivers, devices, caches. Drivers run in a process of their own: some of them abort."""

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from spectrod.analysis.engine import HOST_KINDS
from spectrod.apps.doctor.finding import Finding, fail, ok, warn
from spectrod.config.config import EngineConfig
from spectrod.lib.json_text import decode_json
from spectrod.opencl.driver_cache import POCL, driver_cache_folder, driver_cache_trouble

_CHILD: Final = "spectrod.apps.doctor.engine_child"
_CHILD_LIMIT_S: Final = 60.0
_PART: Final = "OpenCL"
_NUMPY: Final = "NumPy computes the spectra, which takes several times the processor time"


def probe_engine(
    config: EngineConfig, command: list[str] | None = None, *, limit_s: float = _CHILD_LIMIT_S
) -> Iterable[Finding]:
    """Find out whether the configured OpenCL device computes, in another process.

    Parameters
    ----------
    config : EngineConfig
    command : list of str, optional
        Command of that process, for tests.
    limit_s : float
        Time after which that process is killed [s].
    """
    if config.engine in HOST_KINDS:
        yield ok(_PART, f"not used: engine = {config.engine!r}")
        return
    is_required = config.engine == "opencl" or bool(config.device)
    if trouble := driver_cache_trouble(driver_cache_folder()):
        yield warn(
            "OpenCL cache",
            trouble,
            "PoCL would abort, so it is not used, and NumPy computes",
            f"ls -ld {driver_cache_folder()}; df -h {driver_cache_folder()}; mount | grep noexec",
        )
    lines, error = _run_child(command or [sys.executable, "-m", _CHILD, config.device], limit_s)
    yield from _findings(lines, error, is_required=is_required)


def _findings(lines: dict[str, Any], error: str, *, is_required: bool) -> Iterator[Finding]:
    devices = lines.get("devices", ())
    for device in devices:
        yield ok("OpenCL device", f"{device['name']}, driver {device['driver']}")
    copies = [one["driver"] for one in devices if one["name"].startswith(POCL)]
    if len(copies) > 1:
        yield warn(
            "OpenCL drivers",
            f"{len(copies)} copies of PoCL are loaded, of which one computes: {', '.join(copies)}",
            "each takes 25 MB or more in each process",
            "ls /etc/OpenCL/vendors; and OCL_ICD_VENDORS=FILE in the service's environment",
        )
    if "engine" in lines and not error:
        yield ok(_PART, f"{lines['engine']} computes, within {lines['error']:.1e} of float64")
        return
    text = error or "no device"
    if not lines.get("devices"):
        command = "sudo apt-get install pocl-opencl-icd"
    else:
        command = "spectrod devices; spectrod selftest; or engine = 'numpy' in [engine]"
    if is_required:
        yield fail(_PART, text, "the configuration names OpenCL or a device", command)
    else:
        yield warn(_PART, text, _NUMPY, command)


def _run_child(command: list[str], limit_s: float) -> tuple[dict[str, Any], str]:
    """Return what the process has printed before its end, and why it failed; empty if not."""
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as expired:
        found = _read(expired.stdout or b"")
        return found, f"the driver did not answer within {limit_s:g} s"
    found = _read(done.stdout)
    if done.returncode < 0:
        return found, f"the driver crashed ({signal.Signals(-done.returncode).name})"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines() or ["no message"]
        return found, lines[-1]
    return found, str(found.get("reason", ""))


def _read(output: bytes) -> dict[str, Any]:
    """Merge the lines of JSON that the process has printed; a driver may print others."""
    found: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            value = decode_json(line, object)
        except ValueError:
            continue
        if isinstance(value, dict):
            found |= value
    return found
