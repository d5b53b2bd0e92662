"""Configuration files: which are read, within which bounds."""

import codecs
import errno
import os
import pwd
import re
from pathlib import Path

from spectrod.config.toml_text import TomlText, parse_toml
from spectrod.lib.errors import ConfigError
from spectrod.lib.regular_files import read_regular

SYSTEM_FILE = Path("/etc/spectrod/spectrod.toml")
FILE_BYTES_MAX = 1 << 18
"""Largest file [bytes]."""
DROP_INS_MAX = 64
"""Most files of one drop-in folder."""
TOTAL_BYTES_MAX = 1 << 20
"""Largest size of a file and its drop-ins together [bytes]."""

_SUFFIX = ".toml"
_KEY_PARTS_MAX = 100
# tomllib's time grows with the square of the parts.
_PART = rb"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(
    rb"""(?<![A-Za-z0-9_.\-"'])(?:%s[ \t]*\.[ \t]*){%d}""" % (_PART, _KEY_PARTS_MAX)
)


def find_file(path: str | None, variable: str) -> Path | None:
    """Find the configuration file.

    Parameters
    ----------
    path : str or None
        The one that was named.
    variable : str
        Environment variable that may name it.

    Returns
    -------
    file : Path or None
        The one that was named, the environment's, or else root's or the user's own, if that file or
        its drop-in folder exists.
    """
    if path is not None:
        return Path(path)
    if named := os.environ.get(variable):
        return Path(named)
    file = default_file()
    exists = file is not None and (file.exists() or drop_in_folder(file).is_dir())
    return file if exists else None


def default_file() -> Path | None:
    """Return the path of the file of this user: the system's for root; None without a home."""
    return SYSTEM_FILE if os.geteuid() == 0 else _user_file()


def _user_file() -> Path | None:
    """Return the path of the user's own file, by the XDG base directory specification."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # must be ignored
        try:
            base = Path.home() / ".config"
        except RuntimeError:  # a user without a home
            return None
    return base / SYSTEM_FILE.parent.name / SYSTEM_FILE.name


def drop_in_folder(file: Path) -> Path:
    """Return the folder of a file's drop-ins: ``conf.d``, or ``NAME.conf.d`` of a NAME.toml."""
    own = "conf.d" if file.name == SYSTEM_FILE.name else f"{file.stem}.conf.d"
    return file.parent / own


def drop_ins(file: Path) -> list[Path]:
    """List the drop-ins of a file, sorted by name; hidden files and other suffixes do not count.

    Raises
    ------
    ConfigError
        If the folder cannot be listed, or has too many.
    """
    folder = drop_in_folder(file)
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    found.append(folder / entry.name)
                if len(found) > DROP_INS_MAX:
                    raise ConfigError(f"{folder}: must have at most {DROP_INS_MAX} files")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"{folder}: {_reason(error)}") from error
    return sorted(found)


def read(path: Path, bytes_left: int = TOTAL_BYTES_MAX) -> bytes:
    """Read a configuration file; the null device is an empty one.

    Parameters
    ----------
    path : Path
        The file.
    bytes_left : int
        Its largest size, where that is less than ``FILE_BYTES_MAX``: what others leave.

    Raises
    ------
    ConfigError
        If it cannot be read, is no file, or is too large.
    """
    try:
        content = (
            b"" if os.path.realpath(path) == os.devnull else read_regular(path, FILE_BYTES_MAX)
        )
    except OSError as error:
        raise ConfigError(f"{path}: {_reason(error)}") from error
    if len(content) > bytes_left:
        raise ConfigError(
            f"{path}: it and the files before it must have at most {TOTAL_BYTES_MAX} bytes"
        )
    return content


def _reason(error: OSError) -> str:
    if error.errno == errno.EACCES:
        return f"{error.strerror}; must be readable by the user {_user()}"
    return str(error.strerror)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def parse(path: Path, content: bytes) -> TomlText:
    """Parse a configuration file.

    Raises
    ------
    ConfigError
        If it is not UTF-8, not valid TOML, nested too deep, or has keys of too many parts; names
        the first place.
    """
    if _LONG_KEY.search(content):
        raise ConfigError(f"{path}: a key must have at most {_KEY_PARTS_MAX} parts")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{path}:1:1: is UTF-16; must be UTF-8")
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        lines = content[: error.start].decode().split("\n")
        place = f"{path}:{len(lines)}:{len(lines[-1]) + 1}"
        raise ConfigError(f"{place}: byte 0x{content[error.start]:02x}: must be UTF-8") from error
    return parse_toml(text, str(path))
