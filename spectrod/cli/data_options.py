"""Flags of data files besides their rows, for every command that writes them."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spectrod.formats.description import ELAPSED, TIME_REFERENCE, Description
from spectrod.formats.export.export_options import COMPRESSION_MAX, PROFILES
from spectrod.lib.errors import ConfigError
from spectrod.lib.output_formats import Content, format_named, format_of, suffixes
from spectrod.source.naming import topic_name


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Values of the flags.

    Attributes
    ----------
    export : dict
        Values by the names of ``ExportOptions``.
    attributes : dict of str
        Attributes to store in the files.
    """

    export: dict[str, Any]
    attributes: dict[str, str]

    def described(self, description: Description, *, is_undated: bool = False) -> Description:
        """Return a description with the given attributes, and a mark if times are not UTC."""
        marks = {TIME_REFERENCE: ELAPSED} if is_undated else {}
        attributes = description.attributes | self.attributes | marks
        return replace(description, attributes=attributes)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the flags that ``data_options`` reads."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--profile",
        choices=PROFILES[1:],
        help="of .nc: daily files of hybrid-millidecade levels a minute; OUT may be a folder",
    )
    group.add_argument(
        "--compression",
        type=int,
        metavar="N",
        help=f"lossless compression level, 0 (off) to {COMPRESSION_MAX}",
    )
    group.add_argument(
        "--attribute",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="global attribute of data files, as title, creator_name, license; may be repeated",
    )


def data_options(args: argparse.Namespace, outputs: Sequence[str]) -> DataOptions:
    """Read the flags.

    Raises
    ------
    ConfigError
        If a value is invalid, or for files that are not written.
    """
    given = {"compression": args.compression, "profile": args.profile}
    export: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    attributes = dict(_attribute(text) for text in args.attribute)
    used = {
        "--compression": args.compression,
        "--attribute": args.attribute[0] if args.attribute else None,
    }
    for flag, value in used.items():
        if value is not None:
            require_content(f"{flag} {value}", "rows", outputs)
    return DataOptions(export | {"attributes": attributes}, attributes)


def require_content(flag: str, content: Content, outputs: Sequence[str]) -> None:
    """Refuse a flag that applies to none of the outputs.

    Raises
    ------
    ConfigError
        With the flag, the outputs that take it, and the actual ones.
    """
    if any(format_of(path).content == content for path in outputs):
        return
    known = " ".join(suffixes(lambda one: one.content == content))
    raise ConfigError(f"{flag}: is for {known}, and the output is {', '.join(outputs)}")


def profile_paths(args: argparse.Namespace, outputs: Sequence[str]) -> list[str]:
    """Return the names of a profile's daily files in a folder: ``FOLDER/SOURCE.nc``.

    Raises
    ------
    ConfigError
        If the input may be one of the daily files, which replace files of the same name.
    """
    if not args.profile:
        return list(outputs)
    source = Path(args.source)
    # A source that is not a path, such as signal:pink,-20, is named by its kind.
    stem = args.source.partition(":")[0] if ":" in args.source else source.absolute().stem
    paths = [
        str(Path(path) / f"{topic_name(stem)}.nc") if _is_folder(path) else path for path in outputs
    ]
    for path in map(Path, paths):
        day = re.compile(rf"{re.escape(path.stem)}_(.*_)?\d{{8}}\.nc")
        if source.resolve().parent == path.resolve().parent and day.fullmatch(source.name):
            raise ConfigError(f"{path}: must be of another name: a daily file may replace {source}")
    return paths


def _is_folder(path: str) -> bool:
    return path.endswith("/") or (format_named(Path(path).suffix) is None and Path(path).is_dir())


def _attribute(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--attribute {text}: must be NAME=VALUE, as in title=Reef")
    return name, value
