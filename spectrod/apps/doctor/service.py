"""The system service, and running daemons: state, version, failures."""

import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import spectrod
from spectrod.apps.doctor.finding import Finding, fail, ok, warn
from spectrod.client import Control
from spectrod.lib.errors import ConfigError, InternalError, SpectrodError, StorageError
from spectrod.wire.endpoint_discovery import find_endpoints

UNIT: Final = "spectrod.service"
_PROPERTIES: Final = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "NRestarts",
    "NeedDaemonReload",
    "ExecMainStatus",
    "IPAddressDeny",
)
_COMMAND_LIMIT_S: Final = 5.0
_REPLY_LIMIT_S: Final = 5.0
_DAEMONS_MAX: Final = 8
_JOURNAL: Final = "journalctl -u spectrod -p warning -n 50"
_BAD_SOURCES: Final = ("waiting", "failed")
_BAD_RECORDINGS: Final = ("full", "failed")


def unit_properties(command: Sequence[str] = ("systemctl",)) -> Mapping[str, str] | None:
    """Ask systemd for the unit's properties; None where no systemd answers."""
    if shutil.which(command[0]) is None:
        return None
    asked = [*command, "show", UNIT, f"--property={','.join(_PROPERTIES)}"]
    try:
        done = subprocess.run(  # noqa: S603 - systemd's own program
            asked, capture_output=True, text=True, timeout=_COMMAND_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in lines}


def probe_unit(properties: Mapping[str, str] | None) -> Iterator[Finding]:
    """Report the state of the service.

    Parameters
    ----------
    properties : mapping or None
        From ``unit_properties``.
    """
    if properties is None:
        yield ok("service", "no systemd manages this machine")
        return
    if properties.get("LoadState") != "loaded":
        yield ok("service", "not installed")
        return
    state = f"{properties.get('ActiveState')} ({properties.get('SubState')})"
    if properties.get("ActiveState") == "failed":
        code = properties.get("ExecMainStatus", "?")
        text = f"{state}: {properties.get('Result')}, exit code {code}"
        why = "it is not running, and is not started again by itself"
        yield fail("service", text, why, _JOURNAL)
    elif properties.get("SubState") == "auto-restart":
        text = f"{state}: {properties.get('NRestarts')} restarts"
        yield fail("service", text, "it ends soon after each start", _JOURNAL)
    else:
        yield ok("service", state)
    if properties.get("NeedDaemonReload") == "yes":
        why = "systemd still has the unit as it was before it was changed"
        yield warn("service", "unit changed on disk", why, "sudo systemctl daemon-reload")
    yield from probe_firewall(properties)


def probe_firewall(
    properties: Mapping[str, str],
    cgroups: Path = Path("/sys/fs/cgroup/cgroup.controllers"),
    container: Path = Path("/run/systemd/container"),
    boot: Path = Path("/boot"),
) -> Iterator[Finding]:
    """Find out whether the kernel enforces the unit's IPAddressDeny=.

    systemd needs the unified cgroup hierarchy and a kernel with CONFIG_CGROUP_BPF; without them it
    logs one line and starts the unit unprotected (systemd.resource-control(5)).
    """
    if not properties.get("IPAddressDeny"):
        return
    if not cgroups.exists():
        yield ok(
            "IP firewall",
            "the unified cgroup hierarchy is not mounted: IPAddressDeny= of the unit has no "
            "effect, only the addresses of the configuration keep others from connecting",
        )
        return
    kernel = boot / f"config-{platform.release()}"
    if container.exists():
        reason = "most containers may not load BPF programs"
    elif "CONFIG_CGROUP_BPF=y" not in _text(kernel, default="CONFIG_CGROUP_BPF=y"):
        reason = f"{kernel} lacks CONFIG_CGROUP_BPF"
    else:
        return
    yield warn(
        "IP firewall",
        f"IPAddressDeny= of the unit is probably not enforced: {reason}",
        "only the addresses of the configuration keep others from connecting",
        "spectrod ctl get publish.endpoints; sudo ss -ltnp",
    )


def _text(path: Path, default: str) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return default


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """A daemon of this machine: its status, or why there is none."""

    endpoint: str
    status: Mapping[str, Any] | None
    trouble: str = ""
    is_denied: bool = False

    @property
    def published(self) -> Sequence[str]:
        """Endpoints that it has bound, as far as is known."""
        return () if self.status is None else self.status["daemon"]["publish"]


def running_daemons() -> list[RunningDaemon]:
    """Ask the daemons of this machine for their status, the first eight of them."""
    answering, denied = find_endpoints()
    found = [RunningDaemon(endpoint, None, "denied", is_denied=True) for endpoint in denied]
    for endpoint in answering[:_DAEMONS_MAX]:
        try:
            with Control(endpoint, timeout_s=_REPLY_LIMIT_S) as control:
                found.append(RunningDaemon(endpoint, control.call("status")))
        except SpectrodError as error:
            found.append(RunningDaemon(endpoint, None, str(error)))
    return found


def probe_daemons(daemons: Iterable[RunningDaemon]) -> Iterator[Finding]:
    """Report what running daemons say about themselves."""
    for one in daemons:
        if one.is_denied:
            text = f"{one.endpoint}: not for this user"
            yield warn("daemon", text, "its state is not known", "sudo spectrod doctor")
        elif one.status is None:
            why = "a daemon that does not reply may hang; the watchdog restarts a service"
            yield fail("daemon", one.trouble, why, _JOURNAL)
        else:
            yield from _of_status(one.endpoint, one.status)


def _of_status(endpoint: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    """Report a status; a daemon of another version may lack fields."""
    daemon = status["daemon"]
    yield ok("daemon", f"{endpoint}: version {daemon['version']}, process {daemon['pid']}")
    if daemon["version"] != spectrod.__version__:
        yield warn(
            "daemon",
            f"version {daemon['version']}, and this program is {spectrod.__version__}",
            "the daemon was not restarted after an upgrade",
            "sudo systemctl restart spectrod",
        )
    reload = daemon.get("reload", {})
    if not reload.get("is_ok", True):
        why = "the old configuration is in force, and the next start fails"
        yield fail("reload", reload["error"], why, "spectrod config check FILE", ConfigError)
    for source in status["sources"]:
        if source["state"] in _BAD_SOURCES:
            text = f"{source['name']}: {source['state']}: {source['capture']['waiting_for']}"
            yield fail("source", text.rstrip(": "), "it delivers nothing", "spectrod ctl events")
        elif source["engine_failures"]:
            text = f"{source['name']}: computes with {source['engine']} after a failure"
            yield warn("source", text, "its device has failed", "sudo systemctl restart spectrod")
    for one in status.get("recorders", ()):
        if one["state"] in _BAD_RECORDINGS:
            text = f"{one['name']} of {one['source']}: {one['state']}: {one['error']}"
            command = f"df -h {one.get('folder', '')}; spectrod ctl record list"
            yield fail("recording", text.rstrip(": "), "nothing is written", command, StorageError)
    if daemon.get("unsendable"):
        text = f"{daemon['unsendable']} messages could not be encoded"
        yield fail("messages", text, "a defect of spectrod", _JOURNAL, InternalError)
