"""``-o -`` and ``-o FORMAT:-``: output to standard output."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spectrod.errors import ConfigError, SpectrodError, StorageError
from spectrod.formats.outputs import KINDS
from spectrod.suggestions import did_you_mean

if TYPE_CHECKING:  # imported on use: most outputs have a name
    from tempfile import TemporaryDirectory

_NAME = "standard output"
_DEFAULT = ".png"
_TEXTS = (".csv", ".svg")
"""Text formats, which a terminal can show."""

_SEVERAL = (".npy", ".zarr", ".sigmf-meta", ".sigmf-data")
"""Formats with more than one file."""

_OF_SEVERAL_FILES = ("every", "time_per_pixel", "profile")
"""Flags that create several files."""


def suffix_of(output: str) -> str | None:
    """Return the suffix of an output's format; None unless it is standard output.

    Raises
    ------
    ConfigError
        If the format is unknown, or is not a single file.
    """
    if output == "-":
        return _DEFAULT
    name, colon, rest = output.partition(":")
    if not colon or rest != "-":
        return None
    suffix = f".{name.lower()}"
    known = [one for one in KINDS if one not in _SEVERAL]
    if suffix in _SEVERAL:
        raise ConfigError(f"{output}: {suffix} is more than one file, and needs a name")
    if suffix not in known:
        formats = " ".join(one.lstrip(".") for one in known)
        hint = did_you_mean(name.lower(), (one.lstrip(".") for one in known))
        raise ConfigError(f"{output}: the format must be one of {formats}{hint}")
    return suffix


@contextmanager
def standard_output(args: argparse.Namespace) -> Iterator[None]:
    """Write to a temporary file, and copy it to standard output when it is complete.

    No other output is mixed into it, every format works, and the reader gets everything or nothing.

    Parameters
    ----------
    args : argparse.Namespace
        Has ``output``, a list of str, in which the name of the file replaces that of standard
        output, and the flags of a command that writes outputs.

    Raises
    ------
    ConfigError
        If two outputs are standard output, the format is unsuitable, or a flag creates several
        files.
    StorageError
        If standard output is closed, is a terminal unsuitable for the format, or cannot be written.
    """
    requested = {number: suffix_of(output) for number, output in enumerate(args.output)}
    found = [(number, suffix) for number, suffix in requested.items() if suffix is not None]
    if not found:
        yield
        return
    number, suffix = found[0]
    _check(args, [args.output[one] for one, _ in found], suffix)
    with _folder() as folder:
        path = Path(folder) / f"standard-output{suffix}"
        args.output[number] = str(path)
        try:
            yield
        except StorageError:  # from the temporary file
            raise
        except SpectrodError as error:
            raise type(error)(str(error).replace(str(path), _NAME)) from error
        _copy(path)


def _folder() -> "TemporaryDirectory[str]":
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    try:
        return TemporaryDirectory(prefix="spectrod-")
    except OSError as error:
        raise StorageError(f"folder for temporary files: {error.strerror}") from error


def _check(args: argparse.Namespace, outputs: list[str], suffix: str) -> None:
    if len(outputs) > 1:
        raise ConfigError(f"{outputs[1]}: one output alone can go to {_NAME}, besides {outputs[0]}")
    flags = [name for name in _OF_SEVERAL_FILES if getattr(args, name, None)]
    if getattr(args, "channels_as", None) == "files":
        flags.append("channels_as")
    if flags:
        flag = f"--{flags[0].replace('_', '-')} {getattr(args, flags[0])}"
        raise ConfigError(f"{flag}: makes several files, and {outputs[0]} is {_NAME}")
    if sys.stdout is None:
        raise StorageError(f"{_NAME}: is closed")
    if suffix not in _TEXTS and sys.stdout.isatty():
        raise StorageError(
            f"{_NAME}: is a terminal, which shows no {suffix}: redirect it, or name a file"
        )


def _copy(path: Path) -> None:
    from shutil import copyfileobj  # noqa: PLC0415 - as above

    into: BinaryIO = sys.stdout.buffer
    try:
        with path.open("rb") as file:
            copyfileobj(file, into)
        into.flush()
    except FileNotFoundError:  # the settings of an old picture create several files, see --like
        raise ConfigError(f"{_NAME}: takes one file, and several were asked for") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"{_NAME}: {error.strerror}") from error
