"""Tries what a service may do: runs in the place of one, and prints a JSON object of answers.

``python probe.py OWNED SYSTEM``: folders in which it is to write and execute, and of which it is to
tell whether they are read-only, with commas. The answer to a try is ``done``, or an error's name.
"""

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_ADDR_NO_RANDOMIZE = 0x0040000
_PTRACE_TRACEME = 0
_PRIO_PROCESS = 0
_HIDDEN = ("/home", "/root", "/run/user")


def main(owned, system):
    """Print what the service may do with these folders, and what else it may do."""
    answers = {
        "user": str(os.getuid()),
        "status": _status(),
        "processes": sorted({_owner(one) for one in Path("/proc").iterdir() if one.name.isdigit()}),
        "written": {one: _try(_write, one) for one in owned},
        "executed": {one: _try(_execute, one) for one in owned},
        "read_only": [one for one in system if os.statvfs(one).f_flag & os.ST_RDONLY],
        "hidden": {one: _try(os.listdir, one) for one in _HIDDEN},
        "sockets": {name: _try(_open_socket, name) for name in _families()},
        # Last: a user namespace makes it another user.
        "calls": {name: _try(call, owned[-1]) for name, call in _CALLS.items()},
    }
    sys.stdout.write(json.dumps(answers))


def _try(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def _status():
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _owner(process):
    try:
        return str(process.stat().st_uid)
    except FileNotFoundError:
        return str(os.getuid())


def _write(folder):
    path = Path(folder, "probe")
    path.write_text("x")
    path.unlink()


def _execute(folder):
    path = Path(folder, "probe")
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    try:
        subprocess.run([path], check=True)
    finally:
        path.unlink()


def _families():
    """Return the names of address families; AF_ROUTE is another one of netlink's."""
    names = {name for name in dir(socket) if name.startswith("AF_")}
    return sorted(names - {"AF_UNSPEC", "AF_ROUTE"})


def _open_socket(name):
    kind = socket.SOCK_DGRAM if name == "AF_NETLINK" else socket.SOCK_STREAM
    socket.socket(getattr(socket, name), kind).close()


def _set_user_bit(folder):
    path = Path(folder, "probe")
    path.touch()
    try:
        path.chmod(0o4755)
    finally:
        path.unlink()


def _checked(result):
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_CALLS = {
    "chmod u+s": _set_user_bit,
    "personality": lambda _: _checked(_LIBC.personality(_ADDR_NO_RANDOMIZE)),
    "setpriority": lambda _: _checked(_LIBC.setpriority(_PRIO_PROCESS, 0, 19)),
    "ptrace": lambda _: _checked(_LIBC.ptrace(_PTRACE_TRACEME, 0, None, None)),
    "unshare": lambda _: _checked(_LIBC.unshare(_CLONE_NEWUSER)),
}

main(*(argument.split(",") for argument in sys.argv[1:]))
