"""``-o -`` and ``-o FORMAT:-``: output to standard output."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spectrod.lib.errors import ConfigError, SpectrodError, StorageError
from spectrod.lib.output_formats import OutputFormat, format_named, suffixes
from spectrod.lib.suggestions import did_you_mean

if TYPE_CHECKING:  # imported on use: most outputs have a name
    from tempfile import TemporaryDirectory

_NAME = "standard output"
_DEFAULT = ".png"
_OF_SEVERAL_FILES = ("every", "time_per_pixel", "profile")
"""Flags that create several files."""


def format_for(output: str) -> OutputFormat | None:
    """Return the format of an output to standard output; None for any other output.

    Raises
    ------
    ConfigError
        If the format is unknown, or is not a single file.
    """
    if output == "-":
        return format_named(_DEFAULT)
    name, colon, rest = output.partition(":")
    if not colon or rest != "-":
        return None
    suffix = f".{name.lower()}"
    found = format_named(suffix)
    if found is None:
        known = [one.lstrip(".") for one in suffixes(lambda one: one.is_one_file)]
        hint = did_you_mean(name.lower(), known)
        raise ConfigError(f"{output}: the format must be one of {' '.join(known)}{hint}")
    if not found.is_one_file:
        raise ConfigError(f"{output}: {suffix} is more than one file, and needs a name")
    return found


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
    requested = {number: format_for(output) for number, output in enumerate(args.output)}
    found = [(number, one) for number, one in requested.items() if one is not None]
    if not found:
        yield
        return
    number, how = found[0]
    _check(args, [args.output[one] for one, _ in found], how)
    with _folder() as folder:
        path = Path(folder) / f"standard-output{how.suffix}"
        args.output[number] = str(path)
        try:
            yield
        except StorageError:  # from the temporary file
            raise
        except SpectrodError as error:
            raise error.reworded(lambda text: text.replace(str(path), _NAME)) from error
        _copy(path)


def _folder() -> "TemporaryDirectory[str]":
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    try:
        return TemporaryDirectory(prefix="spectrod-")
    except OSError as error:
        raise StorageError(f"folder for temporary files: {error.strerror}") from error


def _check(args: argparse.Namespace, outputs: list[str], how: OutputFormat) -> None:
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
    if not how.is_text and sys.stdout.isatty():
        raise StorageError(
            f"{_NAME}: is a terminal, which shows no {how.suffix}: redirect it, or name a file"
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
