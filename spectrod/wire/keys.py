"""CURVE keys in files: name, right, public and secret key of each peer.

A key is a pair of TOML files: ``NAME.pub`` is public (name, right, public key, comment),
``NAME.key`` is secret. libzmq computes the keys; the file formats are spectrod's.
"""

import os
import stat
import struct
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import zmq
from msgspec import Meta as Rule
from zmq.utils import z85

from spectrod.lib.errors import ConfigError, StorageError
from spectrod.lib.names import check_name
from spectrod.lib.regular_files import open_regular
from spectrod.wire.requests import Right

PUBLIC_SUFFIX = ".pub"
SECRET_SUFFIX = ".key"  # noqa: S105 - the end of a file's name

_KEY_BYTES = 32
_FILE_MAX_BYTES = 16 * 1024
_FOLDER_MODE = 0o700
_PUBLIC_MODE = 0o644
_SECRET_MODE = 0o600
_FOR_OTHERS = 0o077
_FOR_ROOTS_GROUP = 0o037  # forbidden for root's files: anything but read access of the group
_WRITABLE_BY_OTHERS = 0o022

_Z85 = Annotated[str, Rule(min_length=40, max_length=40)]


class _PublicFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    public_key: _Z85
    right: Right = "read"
    comment: str = ""


class _SecretFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    public_key: _Z85
    secret_key: _Z85


_F = TypeVar("_F", _PublicFile, _SecretFile)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Public key of a peer, with its name and right."""

    name: str
    right: Right
    key: bytes
    """Z85, 40 bytes."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and its secret key."""

    name: str
    key: bytes
    """Public key, Z85, 40 bytes."""
    secret: bytes

    def __repr__(self) -> str:
        # The secret key must not get into a log or a traceback.
        return f"KeyPair(name={self.name!r}, key={self.key!r})"


def make_keys(folder: Path, name: str, right: Right, comment: str = "") -> tuple[Path, Path]:
    """Make a key pair and write it to two new files.

    Parameters
    ----------
    folder : Path
        Made with mode 0700 if it is missing.
    name : str
        Name of the key's owner in the daemon; 1 to 64 of ``A-Z a-z 0-9 . _ -``.
    right : {"read", "control"}
        Right of the key.
    comment : str
        Free text in the public file.

    Returns
    -------
    public, secret : Path
        ``NAME.pub``, mode 0644, and ``NAME.key``, mode 0600.

    Raises
    ------
    ConfigError
        If the name is no valid file name, or the comment is no valid text.
    StorageError
        If one of the files exists, or cannot be written; then neither is left.
    """
    check_name("name of a key", name)
    if any("\ud800" <= c <= "\udfff" for c in comment):
        raise ConfigError(f"comment={comment!r}: must be valid UTF-8")
    public_path, secret_path = (
        folder / f"{name}{PUBLIC_SUFFIX}",
        folder / f"{name}{SECRET_SUFFIX}",
    )
    public, secret = (half.decode() for half in zmq.curve_keypair())
    public_text = (
        "# spectrod: a public key. Give it to the daemon's client_keys; it is no secret.\n"
        f"name = {_quoted(name)}\nright = {_quoted(right)}\npublic_key = {_quoted(public)}\n"
        f"comment = {_quoted(comment)}\n"
    )
    secret_text = (
        "# spectrod: a SECRET key. Give it to nobody; nobody but its owner may read this file.\n"
        f"name = {_quoted(name)}\npublic_key = {_quoted(public)}\nsecret_key = {_quoted(secret)}\n"
    )
    try:
        folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}") from error
    _write_new(secret_path, secret_text, _SECRET_MODE)
    try:
        _write_new(public_path, public_text, _PUBLIC_MODE)
    except StorageError:
        secret_path.unlink()
        raise
    return public_path, secret_path


def read_public(path: Path) -> PublicKey:
    """Read a public key's file.

    Raises
    ------
    ConfigError
        If it cannot be read, or is not a public key's file.
    """
    return _public(path, _read(path))


def read_trusted(path: Path) -> PublicKey:
    """Read a public key's file that grants a right to the owner of the secret key.

    Raises
    ------
    ConfigError
        As ``read_public``, and if a user other than root and this one can write the file.
    """
    return _public(path, _read(path, check=_check_owner))


def _public(path: Path, data: dict[str, Any]) -> PublicKey:
    file = _convert(path, data, _PublicFile)
    _check_key(path, "public_key", file.public_key)
    return PublicKey(file.name, file.right, file.public_key.encode(), file.comment)


def read_secret(path: Path) -> KeyPair:
    """Read a secret key's file.

    Raises
    ------
    ConfigError
        If others may read it, if it cannot be read, or is not a secret key's file.
    """
    file = _convert(path, _read(path, check=_check_private), _SecretFile)
    for field in ("public_key", "secret_key"):
        _check_key(path, field, getattr(file, field))
    secret = file.secret_key.encode()
    if zmq.curve_public(secret) != file.public_key.encode():
        raise ConfigError(f"{path}: public_key and secret_key must belong together")
    return KeyPair(file.name, file.public_key.encode(), secret)


def read_folder(folder: Path) -> list[PublicKey]:
    """Read all public keys of a folder, ``*.pub``, sorted by file name.

    Raises
    ------
    ConfigError
        If the folder or one of the files cannot be read, if a user other than root and this one can
        write one of them, if a file is no public key, or if two have the same name or the same key.
    """
    try:
        _check_owner(folder, folder.stat())
        paths = sorted(path for path in folder.iterdir() if path.suffix == PUBLIC_SUFFIX)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}") from error
    keys: list[PublicKey] = []
    seen: dict[object, Path] = {}
    for path in paths:
        key = read_trusted(path)
        for mark, what in ((key.name, f"name={key.name!r}"), (key.key, "public_key")):
            if mark in seen:
                raise ConfigError(f"{path}: {what}: same as in {seen[mark]}; must be unique")
            seen[mark] = path
        keys.append(key)
    return keys


def read_key(text_or_path: str) -> bytes:
    """Read a public key from its 40 characters or its file.

    Raises
    ------
    ConfigError
        If it is neither.
    """
    if _is_key(text_or_path):
        return text_or_path.encode()
    return read_public(Path(text_or_path)).key


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")  # TOML's rule, see config


def _write_new(path: Path, text: str, mode: int) -> None:
    """Create a file with its final mode from the first byte on."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise StorageError(f"{path}: exists already; keys are never overwritten") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            os.fchmod(fd, mode)  # the umask may have removed bits of the public file's mode
            file.write(text)
            file.flush()
            os.fsync(fd)
    except OSError as error:
        path.unlink()
        raise StorageError(f"{path}: {error.strerror}") from error


def _read(
    path: Path, *, check: Callable[[Path, os.stat_result], None] | None = None
) -> dict[str, Any]:
    """Read a key's file of bounded size, if ``check`` accepts the status of the open file."""
    try:
        with open_regular(path) as file:
            if check is not None:
                check(path, os.fstat(file.fileno()))
            data = file.read(_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > _FILE_MAX_BYTES:
        raise ConfigError(f"{path}: must be a key's file, at most {_FILE_MAX_BYTES} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except ValueError as error:  # bad TOML, no UTF-8, integers of over 4300 digits
        raise ConfigError(f"{path}: not a key's file: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: not a key's file: tables or arrays too deep") from None


def _check_owner(path: Path, status: os.stat_result) -> None:
    """Refuse a path that a user other than root and this one can write: it grants rights."""
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigError(
            f"{path}: must belong to root or to the user who runs this; uid {status.st_uid} owns it"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & _WRITABLE_BY_OTHERS:
        raise ConfigError(
            f"{path}: mode {mode:04o}: nobody but its owner may write here, because it decides who "
            "may connect; chmod go-w, and check what is there"
        )


def _check_private(path: Path, status: os.stat_result) -> None:
    """Refuse a secret key that another user can read or change.

    A group may read a file of root's if this user is not root: that is how systemd passes a
    credential, and how a service's user reads a file in /etc.
    """
    user = os.geteuid()
    if status.st_uid not in (user, 0):
        raise ConfigError(f"{path}: must belong to this user or root; uid {status.st_uid} owns it")
    forbidden = _FOR_OTHERS if status.st_uid == user else _FOR_ROOTS_GROUP
    mode = stat.S_IMODE(status.st_mode)
    if mode & forbidden:
        raise ConfigError(
            f"{path}: mode {mode:04o}: nobody but its owner may read a secret key; chmod 600, or "
            "make a new one if somebody could have read it"
        )


def _convert(path: Path, data: dict[str, Any], kind: type[_F]) -> _F:
    try:
        file = msgspec.convert(data, kind)
        check_name("name", file.name)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return file


def _check_key(path: Path, field: str, text: str) -> None:
    if not _is_key(text):
        # The text may be a secret key.
        raise ConfigError(f"{path}: {field}: must be 40 characters of Z85, 32 bytes")


def _is_key(text: str) -> bool:
    try:
        return len(text) == 40 and len(z85.decode(text.encode("ascii"))) == _KEY_BYTES
    except (ValueError, KeyError, struct.error):
        return False
