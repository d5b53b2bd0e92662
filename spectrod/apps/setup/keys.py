"""``spectrod keys``: keys of the clients that may connect to a daemon over a network."""

import argparse
import platform
import re
import time
from pathlib import Path

from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.wire.keys import (
    PUBLIC_SUFFIX,
    SECRET_SUFFIX,
    make_keys,
    read_folder,
    read_public,
    read_secret,
    read_trusted,
)

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    new = commands.add_parser("new", help="make a key pair: NAME.pub, and NAME.key for its owner")
    new.add_argument("folder", metavar="DIR", type=Path, help="created with mode 700 if missing")
    new.add_argument("--name", help="name of its holder in the daemon (this machine's name)")
    new.add_argument(
        "--right",
        choices=("read", "control"),
        default="read",
        help="right of the client: read, or control to change the daemon as well (read)",
    )
    new.add_argument("--comment", help="comment in the public file (where and when it was made)")
    show = commands.add_parser("list", help="list the public keys in a folder")
    show.add_argument("folder", metavar="DIR", type=Path)
    check = commands.add_parser("check", help="check keys and the permissions of their files")
    check.add_argument(
        "paths", metavar="PATH", type=Path, nargs="+", help="NAME.pub, NAME.key, or folder of them"
    )


def run(args: argparse.Namespace) -> int:
    """Make, list or check keys."""
    if args.what == "new":
        _make(args)
    elif args.what == "list":
        for key in read_folder(args.folder):
            print(f"{key.name}\t{key.right}\t{key.key.decode()}\t{printable(key.comment)}")
    else:
        for path in args.paths:
            _check(path)
            print(f"{printable(path)}: right")
    return 0


def _make(args: argparse.Namespace) -> None:
    name = args.name or _NOT_IN_NAMES.sub("-", platform.node())[:64] or "key"
    comment = args.comment
    if comment is None:
        comment = f"made on {platform.node()}, {time.strftime('%Y-%m-%d')}"
    public, secret = make_keys(args.folder, name, args.right, comment)
    print(f"{secret}: the secret key, for its owner alone")
    print(f"{public}: the public key, for the other side ({read_public(public).key.decode()})")


def _check(path: Path) -> None:
    if path.is_dir():
        read_folder(path)
        for secret in sorted(path.glob(f"*{SECRET_SUFFIX}")):
            read_secret(secret)
    elif path.suffix == SECRET_SUFFIX:
        read_secret(path)
    elif path.suffix == PUBLIC_SUFFIX:
        read_trusted(path)
    else:
        raise ConfigError(f"{path}: must end in {PUBLIC_SUFFIX} or {SECRET_SUFFIX}, or be a folder")
