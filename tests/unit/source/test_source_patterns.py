"""Patterns of paths: they stand for what ``glob`` says, and their search ends."""

import glob
import os
from pathlib import Path

import pytest

from spectrod.lib.errors import InputError
from spectrod.source.files import patterns
from spectrod.source.files.patterns import has_pattern, matching_paths

FILES = [
    "x.wav",
    "a/y.wav",
    "a/b/z.WAV",
    "a/b/c/t.flac",
    "a/.h/n.wav",
    ".h.wav",
    "a[1]/u.wav",
    "d/",
]


@pytest.fixture
def card(tmp_path, monkeypatch):
    """Make the files in the working folder."""
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(pattern):
    """Return the paths of a pattern, and its unread folders."""
    unread = []
    return sorted(matching_paths(pattern, lambda *about: unread.append(about))), unread


@pytest.mark.parametrize(
    "pattern",
    [
        "*", "*.wav", "?.wav", "[xy].wav", "*/*.wav", "a/*", "**/*.wav", "a/**/*.WAV", "**/b/*",
        "**/b/**/*.flac", "a/b/*", "a[[]1]/*", ".*", "a/.*/*", "*/../x.*", "./*.wav", "no/*",
        "x.wav/*", "**/**/*.wav", "*/b/../*.wav", "//*//*.wav", "a*/y.wav", "**/none",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_pattern_stands_for_what_glob_says(card, pattern, is_absolute):
    """Without links the paths are those of ``glob``, hidden ones included where it has them."""
    pattern = f"{card}/{pattern}" if is_absolute else pattern.lstrip("/")
    expected = {os.path.normpath(path) for path in glob.glob(pattern, recursive=True)}  # noqa: PTH207
    paths, unread = found(pattern)
    assert {os.path.normpath(path) for path in paths} == expected
    assert len(set(paths)) == len(paths)
    assert unread == []


@pytest.mark.parametrize("pattern", ["**", "a/**"])
def test_any_folders_at_the_end_are_all_files(card, pattern):
    """A last ``**`` stands for files alone: folders would be searched again for each above them."""
    expected = {path for path in glob.glob(pattern, recursive=True) if Path(path).is_file()}  # noqa: PTH207
    assert set(found(pattern)[0]) == expected


def test_a_pattern_with_a_slash_at_its_end_stands_for_folders(card):
    """Folders alone are found, and no file."""
    assert found("*/")[0] == ["a", "a[1]", "d"]
    assert found("a/**/")[0] == ["a", "a/b", "a/b/c"]


def test_links_that_lead_back_end(card, caplog):
    """Two links to their own folder, which make 2^40 paths, are not followed by ``**``."""
    (card / "a/l").symlink_to(".")
    (card / "a/m").symlink_to(".")
    (card / "loop").symlink_to("loop")
    (card / "l.wav").symlink_to("x.wav")
    assert found("**/*.wav")[0] == ["a/y.wav", "a[1]/u.wav", "l.wav", "x.wav"]
    assert "a/l: a link to a folder: it is not followed" in caplog.text
    assert found("a/l/*.wav")[0] == ["a/l/y.wav"]


def test_links_of_a_written_pattern_are_bounded(card, monkeypatch):
    """A pattern that follows links with ``*`` ends at the bound of folders."""
    monkeypatch.setattr(patterns, "FOLDERS_MAX", 100)
    for name in "klm":
        (card / "a" / name).symlink_to(".")
    text = "stands for more than 100 folders"
    with pytest.raises(InputError, match=text):
        found("a/" + "*/" * 12 + "*.wav")


def test_folders_too_deep_or_unreadable_are_named(card, monkeypatch):
    """What is not searched is told with its reason, as for a folder that is an input."""
    monkeypatch.setattr(patterns, "DEPTH_MAX", 1)
    paths, unread = found("**/*.wav")
    assert paths == ["a/y.wav", "a[1]/u.wav", "x.wav"]
    assert unread == [("a/b", "a/b: lies more than 1 folders deep")]

    def denied(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(patterns.os, "scandir", denied)
    assert found("a/*") == ([], [("a", "a: Permission denied")])
    assert found("*") == ([], [(".", ".: Permission denied")])


def test_a_path_without_wildcards_is_no_pattern():
    """Brackets, asterisks and question marks make a pattern."""
    assert [has_pattern(text) for text in ("a/b.wav", "a*", "a?", "[a]")] == [
        False,
        True,
        True,
        True,
    ]
