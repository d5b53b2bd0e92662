"""``spectrod web``: serves a page with the live spectra of daemons, or with what is stored."""

import argparse
import os
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from spectrod.cli import options
from spectrod.cli.numbers import count
from spectrod.daemon.service import caught_signals, configure_logging
from spectrod.lib.allocator import map_large_arrays, share_arenas
from spectrod.lib.descriptors import raise_limit
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.text import printable
from spectrod.recording.state_folder import state_folder

DEFAULT_ADDRESS = "127.0.0.1:8765"
_DEFAULT_ENDPOINT = "tcp://127.0.0.1:5556"
_PACKAGES = ("starlette", "uvicorn", "websockets", "segno")
_CLIENTS_MAX = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "shown",
        nargs="*",
        default=[_DEFAULT_ENDPOINT],
        metavar="ENDPOINT|PATH",
        help=f"publish endpoints of daemons ({_DEFAULT_ENDPOINT}); or, without any daemon, folders "
        "with recordings, pyramids or results of spectrod batch, its JOB.toml, and .spd files",
    )
    parser.add_argument(
        "--listen",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help="address of the page (%(default)s); * is every address of this machine, which asks "
        "browsers for the token",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name of this server, such as its proxy's; may be repeated",
    )
    _add_secrets(parser)
    parser.add_argument(
        "--root-path", default="", metavar="PATH", help="path that a proxy leaves in front of all"
    )
    parser.add_argument(
        "--control", action="store_true", help="let pages change the daemons' settings"
    )
    parser.add_argument(
        "--sound",
        action="store_true",
        help="let pages with the token play and save the sound that the daemon recorded",
    )
    parser.add_argument(
        "--max-clients", type=count, default=32, metavar="N", help="pages at once (%(default)s)"
    )
    parser.add_argument(
        "--recordings",
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="show the past from recordings of the daemon in this folder; may be repeated "
        "(recordings in the daemon's state folder)",
    )
    parser.add_argument(
        "--events",
        action="append",
        default=[],
        metavar="[SOURCE=]FILE",
        help="mark the events of a file in what is stored: .csv or .json of spectrod detect, a "
        "selection table of Raven or labels of Audacity (.txt), annotations of SigMF; may be "
        "repeated (those of results of spectrod batch)",
    )
    parser.add_argument("--log-level", default="info", metavar="LEVEL", help="(%(default)s)")
    # Of `spectrod run --web`: the listening socket, and an end when standard input ends.
    parser.add_argument("--inherited-fd", type=int, default=-1, help=argparse.SUPPRESS)
    options.add_keys(parser)


def _add_secrets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate, PEM, with its chain")
    parser.add_argument("--tls-key", metavar="FILE", help="its secret key, PEM, not encrypted")
    token = parser.add_mutually_exclusive_group()
    token.add_argument(
        "--token-file",
        metavar="FILE",
        help="keep the token here, so that links last; made if missing (a new one each start)",
    )
    token.add_argument(
        "--no-token",
        action="store_true",
        help="ask no browser for it, where a proxy on this machine asks who comes",
    )


def run(args: argparse.Namespace) -> int:
    """Serve the page until a signal."""
    check_installed()
    raise_limit()
    share_arenas()
    map_large_arrays()
    configure_logging(args.log_level)
    from spectrod.apps.web.command_server import WebSettings, serve_page  # noqa: PLC0415 - extra packages

    endpoints = tuple(one for one in args.shown if _is_endpoint(one))
    archives = tuple(one for one in args.shown if not _is_endpoint(one))
    _check_archives(args, endpoints, archives)
    settings = WebSettings(
        endpoints=endpoints,
        archives=archives,
        events=tuple(args.events),
        listen=args.listen,
        allow_hosts=tuple(args.allow_host),
        certificate=_certificate(args.tls_cert, args.tls_key),
        token_file=None if args.token_file is None else Path(args.token_file),
        has_no_token=args.no_token,
        root_path=_root_path(args.root_path),
        can_control=args.control,
        has_sound=args.sound,
        clients=_clients(args.max_clients),
        recordings=tuple(args.recordings) or (state_folder("") / "recordings",),
        server_key=args.server_key,
        key_file=args.key,
        inherited=_inherited(args.inherited_fd),
    )
    with caught_signals() as signals:
        return serve_page(settings, signals)


def _is_endpoint(text: str) -> bool:
    return "://" in text


def _check_archives(
    args: argparse.Namespace, endpoints: Sequence[str], archives: Sequence[str]
) -> None:
    """Raise ConfigError for what does not go together with archives."""
    if not archives:
        if args.events:
            raise ConfigError(
                f"--events {printable(args.events[0])}: is for what is stored: name it"
            )
        return
    if endpoints:
        both = f"{endpoints[0]} and {printable(archives[0])}"
        raise ConfigError(f"{both}: a server shows daemons or archives; start one for each")
    asked = {
        "--control": args.control,
        "--sound": args.sound,
        "--recordings": args.recordings,
        "--server-key": args.server_key,
        "--key": args.key,
    }
    for option in (name for name, value in asked.items() if value):
        raise ConfigError(f"{option}: is for daemons, not for {printable(archives[0])}")


def check_installed() -> None:
    """Raise UnavailableError if a package of the extra is missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UnavailableError(f"{missing[0]} is not installed: pip install 'spectrod[web]'")


def _certificate(certificate: str | None, key: str | None) -> tuple[Path, Path] | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        given = f"tls-cert={certificate}" if key is None else f"tls-key={key}"
        raise ConfigError(f"{given}: --tls-cert and --tls-key belong together")
    return Path(certificate), Path(key)


def _clients(number: int) -> int:
    if number > _CLIENTS_MAX:
        raise ConfigError(f"max-clients={number}: must be at most {_CLIENTS_MAX}")
    return number


def _root_path(text: str) -> str:
    path = text.rstrip("/")
    if path and (not path.startswith("/") or "//" in path or any(c in path for c in "?#%\\")):
        raise ConfigError(f"root-path={text!r}: must be a path such as /spectra")
    return path


def _inherited(descriptor: int) -> socket.socket | None:
    if descriptor < 0:
        return None
    try:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only form
        return socket.socket(fileno=descriptor)
    except OSError as error:
        raise ConfigError(f"inherited-fd={descriptor}: {error.strerror}") from error
