"""The machine: its clock, its limits, its disks, its ports."""

import ctypes
import errno
import os
import resource
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from spectrod.apps.doctor.finding import Finding, fail, ok, warn
from spectrod.config.config import SYSTEM_FILE, Config
from spectrod.lib.errors import BusyError, SettingsError, SpectrodError, StorageError
from spectrod.lib.optional_packages import PACKAGES, missing_packages
from spectrod.lib.output_formats import value_format
from spectrod.recording.state_folder import state_folder
from spectrod.wire.endpoint import Endpoint, parse_endpoint, parse_listen, parse_raw32

_STA_UNSYNC: Final = 0x0040
_FDS_LEAST: Final = 4096
_SERVICE_STATE: Final = Path("/var/lib/spectrod")
_MB: Final = 1e6
_MISTAKES_MAX: Final = 20


class _Timex(ctypes.Structure):
    """The beginning of struct timex, and room for the rest; see adjtimex(2)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


def clock_status() -> int | None:
    """Return the status bits of the kernel's clock; None where they cannot be read.

    References
    ----------
    .. [1] adjtimex(2).
    """
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    timex = _Timex()  # modes = 0 changes nothing
    return None if adjtimex(ctypes.byref(timex)) < 0 else int(timex.status)


def probe_clock(status: int | None = None) -> Iterator[Finding]:
    """Find out whether the system clock is synchronised.

    Parameters
    ----------
    status : int, optional
        Status bits, for tests; by default those of the kernel.
    """
    status = clock_status() if status is None else status
    if status is None:
        return
    if status & _STA_UNSYNC:
        yield warn(
            "clock",
            "not synchronised",
            "times of messages, files and schedules may be wrong by seconds",
            "sudo timedatectl set-ntp true; timedatectl",
        )
    else:
        yield ok("clock", "synchronised")


def probe_limits() -> Iterator[Finding]:
    """Find out whether this process may open enough descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FDS_LEAST:
        yield warn(
            "descriptors",
            f"at most {hard} for this user",
            "half of them bound the connections; the service has its own limit",
            f"echo '* hard nofile {_FDS_LEAST}' | sudo tee /etc/security/limits.d/spectrod.conf",
        )


def probe_packages(config: Config) -> Iterator[Finding]:
    """Find out whether the packages that the recordings of a configuration need are installed.

    Parameters
    ----------
    config : Config
    """
    installed = [name for name in PACKAGES if not missing_packages([name])]
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok(
        "env", f"Python {version} in {sys.prefix}, extras: {', '.join(sorted(installed)) or 'none'}"
    )
    for recording in config.recordings:
        extra = value_format(f".{recording.values}").extra
        if text := missing_packages([extra]):
            lack, _, command = text.partition(": needs: ")
            why = f"recording {recording.name} has values = {recording.values!r}, of extra {extra}"
            yield fail("env", lack, why, command)


def probe_disks(config: Config, file: Path | None) -> Iterator[Finding]:
    """Find out whether the folders of recordings have space and can be written.

    Parameters
    ----------
    config : Config
    file : Path or None
        Its file: that of the system tells that the service records, not this user.
    """
    base = _state_folder(config, file)
    for recording in config.recordings:
        folder = Path(recording.folder) if recording.folder else base / "recordings"
        part = f"recording {recording.name}"
        place = folder
        try:
            while not place.exists() and place != place.parent:
                place = place.parent
            found = os.statvfs(place)
        except OSError as error:
            text = f"{place}: {error.strerror}"
            yield fail(part, text, "nothing can be recorded there", f"ls -ld {place}", StorageError)
            continue
        free_mb = found.f_bavail * found.f_frsize / _MB
        if free_mb < recording.min_free_mb:
            text = f"{folder}: {free_mb:.0f} MB are free, less than min_free_mb"
            why = f"recording stops below {recording.min_free_mb:g} MB"
            yield fail(part, text, why, f"df -h {place}; du -sh {folder}", StorageError)
        elif not os.access(place, os.W_OK | os.X_OK):
            text = f"{folder}: this user cannot write to {place}"
            yield warn(part, text, "only its owner can record there", f"ls -ld {place}")
        else:
            yield ok(part, f"{folder}: {free_mb / 1e3:.1f} GB are free")


def _state_folder(config: Config, file: Path | None) -> Path:
    is_of_service = file == SYSTEM_FILE and not config.control.state_folder
    return _SERVICE_STATE if is_of_service else state_folder(config.control.state_folder)


def probe_ports(config: Config, ours: Iterable[str]) -> Iterator[Finding]:
    """Find out whether the addresses of the configuration are free, or in use by spectrod.

    Parameters
    ----------
    config : Config
    ours : iterable of str
        Endpoints of running daemons.
    """
    known = set(ours)
    for endpoint in _endpoints(config):
        if not endpoint.port:
            continue
        part = f"port {endpoint.port}"
        if endpoint.text in known:
            yield ok(part, "in use by spectrod")
            continue
        code = _bind(endpoint)
        if code == errno.EADDRINUSE:
            yield fail(
                part,
                f"{endpoint.text}: in use by another program",
                "a daemon of this configuration does not start (exit code 75)",
                f"sudo ss -ltnp 'sport = :{endpoint.port}'",
                BusyError,
            )
        elif code:
            text = f"{endpoint.text}: {os.strerror(code)}"
            yield fail(part, text, "a daemon of this configuration does not start", "ip address")
        else:
            yield ok(part, "free")


def _endpoints(config: Config) -> Iterator[Endpoint]:
    publish = config.publish
    texts = [*publish.endpoints, *config.control.endpoints]
    several = [parse_endpoint(text) for text in texts if text != "auto"]
    several += [parse_raw32(text)[0] for text in publish.raw32]
    if config.http.listen:
        several.append(parse_listen(config.http.listen, insecure=True))
    yield from (endpoint for endpoint in several if endpoint.transport == "tcp")


def _bind(endpoint: Endpoint) -> int:
    """Bind to an address for a moment; return the errno, or 0."""
    host = None if endpoint.host == "*" else endpoint.host
    try:
        found = socket.getaddrinfo(
            host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError:
        return errno.EADDRNOTAVAIL  # or the name of an interface, which the daemon looks up itself
    family, kind, protocol, _, address = found[0]
    try:
        with socket.socket(family, kind, protocol) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def probe_config(
    file: Path | None, error: SpectrodError | None, warnings: Iterable[str] = ()
) -> Iterator[Finding]:
    """Report whether the configuration is right.

    Parameters
    ----------
    file : Path or None
    error : SpectrodError or None
        Why it was refused.
    warnings : iterable of str
        What the file names that is not there or not writable; found while it is iterated.
    """
    command = f"spectrod config check {file}"
    if error is not None:
        why = "a daemon with this file does not start, and a reload is refused"
        lines = error.lines if isinstance(error, SettingsError) else (str(error),)
        for line in lines[:_MISTAKES_MAX]:
            yield fail("configuration", line, why, command, type(error))
        return
    for warning in warnings:
        yield warn("configuration", warning, "the file is accepted as it is", command)
    yield ok("configuration", f"{file}: right" if file else "no file: the built-in defaults")
