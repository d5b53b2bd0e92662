"""``spectrod run --web``: a server of the page beside the daemon, in a process of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spectrod.apps.web.command import DEFAULT_ADDRESS, check_installed
from spectrod.apps.web.invitation import is_local, page_link
from spectrod.apps.web.listen import open_listener, parse_address
from spectrod.config.settings import Config
from spectrod.lib.errors import BusyError, ConfigError, UnavailableError
from spectrod.recording.state_folder import state_folder
from spectrod.wire.endpoint import Endpoint, parse_endpoint

_END_S = 2.0
_HOSTS = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognized
_ANY_PORT = DEFAULT_ADDRESS.rpartition(":")[0] + ":0"


@contextmanager
def page_beside(address: str, settings: Config) -> Iterator[None]:
    """Serve the page of a daemon that is about to start, until the end of the context.

    The page ends with this process in any case: it ends when its standard input does.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of this machine; empty for the default one, or another port if that is in use.
    settings : Config
        The daemon's.

    Raises
    ------
    ConfigError
        If other machines could reach the address, or the page could not reach the daemon.
    BusyError, UnavailableError
        If the address cannot be had, or a package is missing.
    """
    check_installed()
    endpoint = _without_keys(settings)
    listener, listen = _listener(address)
    command = [sys.executable, "-m", "spectrod", "web", endpoint, "--listen", listen]
    for folder in _recordings(settings):
        command += ["--recordings", str(folder)]
    with listener:
        command += ["--inherited-fd", str(listener.fileno()), "--log-level", "error"]
        try:
            process = subprocess.Popen(  # noqa: S603 - this program
                command, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),)
            )
        except OSError as error:
            raise UnavailableError(f"web: cannot be started: {error.strerror}") from error
    try:
        yield
    finally:
        _end(process)


def _recordings(settings: Config) -> list[Path]:
    """Return the folders in which the daemon records."""
    own = state_folder(settings.control.state_folder) / "recordings"
    configured = [Path(one.folder) for one in settings.recordings if one.folder]
    return list(dict.fromkeys([own, *configured]))


def _listener(address: str) -> tuple[socket.socket, str]:
    """Listen, and print the address of the page."""
    endpoint = parse_address(address or DEFAULT_ADDRESS)
    if not is_local(endpoint):
        raise ConfigError(
            f"web={address!r}: must be of this machine, such as {DEFAULT_ADDRESS}; spectrod web "
            "serves others"
        )
    note = ""
    try:
        listener = open_listener(endpoint)
    except BusyError:
        if address:
            raise
        note = f" ({DEFAULT_ADDRESS} is in use)"
        endpoint = parse_address(_ANY_PORT)
        listener = open_listener(endpoint)
    port = int(listener.getsockname()[1])
    print(f"the page is at {page_link(endpoint, port, tls=False)}{note}", flush=True)
    return listener, endpoint.text.removeprefix("tcp://")


def _without_keys(settings: Config) -> str:
    """Return the first endpoint that the page can connect to: of a fixed port, without keys."""
    for text in settings.publish.endpoints:
        endpoint = parse_endpoint(text)
        if endpoint.transport == "ipc":
            return text
        if endpoint.port and not _asks_for_keys(endpoint, settings):
            host = _HOSTS.get(endpoint.host, endpoint.host)
            name = f"[{host}]" if ":" in host else host
            return f"tcp://{name}:{endpoint.port}"
    raise ConfigError(
        "web: all endpoints of [publish] ask for keys or have no fixed port; add an ipc:// one, or "
        "start spectrod web with --key"
    )


def _asks_for_keys(endpoint: Endpoint, settings: Config) -> bool:
    # As the daemon's Access.is_curve, which needs the keys themselves.
    security = settings.security
    return bool(security.server_key) and (security.require == "always" or not endpoint.is_local)


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
