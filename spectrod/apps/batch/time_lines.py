"""Which files of a folder belong to one recorder: their folders, their names and their times."""

import glob
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, pairwise, takewhile
from pathlib import Path

OVERLAP_MIN = 0.01
"""Least share of the sound of files that overlaps if they are of two recorders."""
STRAYS_MAX = 0.05
"""Largest share of files that may lie among those of another folder because of a wrong clock."""
_DIGITS = re.compile(r"\d+")
_BEFORE_DATE = re.compile(r"(.*?[-_. ]?)(?:19|20)?\d{6}[-_T. ]?\d{4}")


@dataclass(frozen=True, slots=True)
class TimedFile:
    """A sound file and its time.

    Attributes
    ----------
    path : Path
        Below the folder that is looked at.
    begin_ns, end_ns : int or None
        UTC of its first sample, and after its last one [ns]; None if it states none.
    """

    path: Path
    begin_ns: int | None = None
    end_ns: int | None = None


def time_lines(folder: Path, files: Sequence[TimedFile]) -> dict[str, list[TimedFile]]:
    """Group files by the recorders that they are of.

    The first folders whose names differ in more than digits are of different recorders, so those of
    dates or cards are one. Below them, and where names differ in digits, folders are of different
    recorders if their times interleave, and so are different starts of the names of files in a
    folder if their sound overlaps.

    Parameters
    ----------
    folder : Path
    files : sequence of TimedFile
        Files in it, at any depth.

    Returns
    -------
    groups : dict of list of TimedFile
        By what their folders and names have in common, such as ``north``; empty for nothing.
    """
    first = len(_common_parts(folder, files))
    series = _parted(files, lambda file: _DIGITS.sub("#", _part(folder, file, first)))
    depth = max(len(file.path.relative_to(folder).parts) for file in files)
    groups: dict[str, list[TimedFile]] = {}
    for members in series.values():
        for group in _of_folders(folder, members, range(first, depth)):
            for start, some in _of_names(group):
                parts = [*_shared_parts(folder, some), start.strip("-_. ")]
                groups[_name("-".join(filter(None, parts)), groups)] = some
    return groups


def likely_inputs(folder: Path, files: Sequence[TimedFile]) -> Iterator[tuple[list[str], bool]]:
    """Yield inputs of a job that may stand for files of a folder, and no others: short ones first.

    Yields
    ------
    inputs : list of str
        Folders, patterns, or the files themselves.
    recursive : bool
        Whether subfolders count.
    """
    parents = [file.path.parent.relative_to(folder).parts for file in files]
    yield [str(folder.joinpath(*_common_parts(folder, files)))], True
    parts = (set(names) for names in zip(*parents, strict=False))
    pattern = Path(
        glob.escape(str(folder)), *(glob.escape(*one) if len(one) == 1 else "*" for one in parts)
    )
    yield [str(pattern)], True
    yield [f"{pattern}/{glob.escape(_start_of_name(files[0]))}*"], False
    yield sorted({str(file.path.parent) for file in files}), False
    yield sorted(str(file.path) for file in files), False


def _common_parts(folder: Path, files: Sequence[TimedFile]) -> tuple[str, ...]:
    """Return the names of the folders, from the first on, that files have in common."""
    parents = [file.path.parent.relative_to(folder).parts for file in files]
    pairs = zip(min(parents), max(parents), strict=False)
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _shared_parts(folder: Path, files: Sequence[TimedFile]) -> list[str]:
    """Return the names of folders that files have in common at the same depth."""
    parents = [file.path.parent.relative_to(folder).parts for file in files]
    return [names[0] for names in zip(*parents, strict=False) if len(set(names)) == 1]


def _part(folder: Path, file: TimedFile, position: int) -> str:
    """Return the name of the folder of a file at a depth; empty if it does not lie as deep."""
    parts = file.path.parent.relative_to(folder).parts
    return parts[position] if position < len(parts) else ""


def _name(text: str, taken: Mapping[str, object]) -> str:
    names = chain([text], (f"{text}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


def _of_folders(
    folder: Path, files: list[TimedFile], positions: range
) -> Iterator[list[TimedFile]]:
    """Yield the files of each recorder; positions are depths of folders that may part them."""
    for position in positions:
        parts = _parted(files, partial(_part, folder, position=position))
        if _interleave(parts):
            for some in parts.values():
                yield from _of_folders(folder, some, positions[1:])
            return
    yield files


def _of_names(files: list[TimedFile]) -> Iterator[tuple[str, list[TimedFile]]]:
    """Yield the files of each start of names, if they overlap, else all; and that start."""
    parts = _parted(files, _start_of_name)
    if len(parts) > 1 and _overlap(parts) >= OVERLAP_MIN:
        yield from parts.items()
    else:
        yield "", files


def _start_of_name(file: TimedFile) -> str:
    found = _BEFORE_DATE.match(file.path.name)
    return found[1] if found else ""


def _parted(
    files: Sequence[TimedFile], key: Callable[[TimedFile], str]
) -> dict[str, list[TimedFile]]:
    parts: dict[str, list[TimedFile]] = defaultdict(list)
    for file in files:
        parts[key(file)].append(file)
    return dict(sorted(parts.items()))


def _interleave(parts: Mapping[str, Sequence[TimedFile]]) -> bool:
    """Return whether parts were recorded at the same time, or by turns over and over.

    Some files whose clock was wrong do not make parts that follow each other interleave.
    """
    if len(parts) < 2:
        return False
    order = [name for _, _, name in _spans(parts)]
    n_turns = sum(before != after for before, after in pairwise(order))
    n_strays = max(1.0, STRAYS_MAX * len(order))
    return n_turns > len(parts) - 1 + 2 * n_strays or _overlap(parts) >= OVERLAP_MIN


def _spans(parts: Mapping[str, Sequence[TimedFile]]) -> list[tuple[int, int, str]]:
    """Return begin, end [ns] and part of each file that has a time, in the order of time."""
    return sorted(
        (one.begin_ns, one.end_ns or one.begin_ns, name)
        for name, files in parts.items()
        for one in files
        if one.begin_ns is not None
    )


def _overlap(parts: Mapping[str, Sequence[TimedFile]]) -> float:
    """Return the share of the sound of files that begins before one of another part ends."""
    ends: dict[str, int] = {}
    total_ns, overlap_ns = 0, 0
    for begin, end, name in _spans(parts):
        others_ns = max((one for other, one in ends.items() if other != name), default=begin)
        total_ns += end - begin
        overlap_ns += max(0, min(others_ns, end) - begin)
        ends[name] = max(end, ends.get(name, end))
        ends = {other: one for other, one in ends.items() if one > begin}
    return overlap_ns / total_ns if total_ns else 0.0
