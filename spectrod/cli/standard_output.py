"""``-o -`` and ``-o FORMAT:-``: an output that goes to standard output."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spectrod.errors import ConfigError, SpectrodError, StorageError
from spectrod.formats.outputs import KINDS
from spectrod.suggestions import did_you_mean

if TYPE_CHECKING:  # imported where it is needed: most outputs have a name
    from tempfile import TemporaryDirectory

_NAME = "standard output"
_DEFAULT = ".png"
_TEXTS = (".csv", ".svg")
"""Formats that a terminal shows."""

_SEVERAL = (".npy", ".zarr", ".sigmf-meta", ".sigmf-data")
"""Formats that are more than a file."""

_OF_SEVERAL_FILES = ("every", "time_per_pixel", "profile")
"""Flags that make several files."""


def suffix_of(output: str) -> str | None:
    """Return the suffix that stands for an output's format; None unless it is standard output.

    Raises
    ------
    ConfigError
        If the format is unknown, or no single file.
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
    """Let a file be written in place of standard output, and copy it there when it is whole.

    So nothing else is mixed into it, every format works, and what reads it gets all or nothing.

    Parameters
    ----------
    args : argparse.Namespace
        With ``output``, a list of str, in which the file's name replaces what stands for standard
        output, and the flags of a command that writes outputs.

    Raises
    ------
    ConfigError
        If two outputs are standard output, the format is none that can be, or a flag makes several
        files.
    StorageError
        If standard output is closed, a terminal that the format is not for, or cannot be written.
    """
    wanted = {number: suffix_of(output) for number, output in enumerate(args.output)}
    found = [(number, suffix) for number, suffix in wanted.items() if suffix is not None]
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
        except StorageError:  # of the file that is written in its place
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
    except FileNotFoundError:  # by what an old picture says, see --like
        raise ConfigError(f"{_NAME}: takes one file, and several were asked for") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"{_NAME}: {error.strerror}") from error
