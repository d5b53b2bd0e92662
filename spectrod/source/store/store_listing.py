"""Lists the files of a folder in a store: those of sound, or all of a bucket."""

import re
from collections.abc import Container, Iterator
from pathlib import PurePosixPath
from typing import Any

from spectrod.lib.errors import InputError
from spectrod.lib.text import printable
from spectrod.source.source_listing import DEPTH_MAX, FILES_MAX, FOLDERS_MAX, SUFFIXES
from spectrod.source.store.file_part import no_bucket
from spectrod.source.store.stores import Ask, answer, store_of
from spectrod.source.store.urls import (
    HTTP_SCHEMES,
    URL_CHARS_MAX,
    check_url,
    file_name,
    has_pattern,
    scheme_of,
    split_object,
)

KEYS_MAX = 2_000_000
"""Most keys of a bucket that are looked at for one input."""
EMPTY_PAGES_MAX = 100
"""Most pages without a key, one after the other, of the list of a bucket."""
_PAGE_KEYS_LEAST = 100
"""Keys that a page counts as if it has fewer: so the pages are bounded, too."""


def list_urls(url: str, *, recursive: bool = True) -> list[str]:
    """List the sound files that an address stands for.

    Parameters
    ----------
    url : str
        A file, by its suffix; else a folder. Of an object store also a pattern, as of ``glob``.
    recursive : bool
        Search subfolders.

    Returns
    -------
    urls : list of str
        Addresses of sound files by suffix, sorted; none was opened. Hidden ones are left out.

    Raises
    ------
    ConfigError
        If the address breaks a rule, see ``check_url``.
    InputError
        If it is missing, may not be read, or has too much in it.
    UnavailableError
        If its store does not answer, or its libraries are not installed.
    """
    check_url(url)
    if _is_sound(url) and not has_pattern(url):
        return [url]
    find = _of_pages if scheme_of(url) in HTTP_SCHEMES else _of_bucket
    found = []
    try:
        for one in find(url, recursive=recursive):
            found.append(one)
            if len(found) > FILES_MAX:
                raise InputError(f"{printable(url)}: has more than {FILES_MAX} sound files")
    except OSError as error:
        raise InputError(f"{printable(url)}: {error.strerror}") from error
    return sorted(found)


def list_sizes(
    url: str, names: Container[str] | None = None, *, ask: Ask = answer
) -> dict[str, int]:
    """Return the size of each file below a folder of a bucket, by its name there [bytes].

    Parameters
    ----------
    url : str
        Address of the folder, without ``/`` at its end.
    names : container of str, optional
        Only those of these names.
    ask : callable
        Makes the requests.

    Raises
    ------
    InputError
        If there is no such bucket, it may not be read, or has too many files.
    UnavailableError
        If its store does not answer, or its libraries are not installed.
    """
    bucket, key = split_object(url)
    prefix = f"{key}/" if key else ""
    try:
        return {
            name: size
            for key, size in _sizes(url, bucket, prefix, recursive=True, ask=ask)
            if key.startswith(prefix)
            for name in [key.removeprefix(prefix)]
            if names is None or name in names
        }
    except FileNotFoundError as error:  # only a bucket can be missing
        raise InputError(f"{printable(url)}: {no_bucket().strerror}") from error
    except OSError as error:
        raise InputError(f"{printable(url)}: {error.strerror}") from error


def size_of(url: str, *, ask: Ask = answer) -> int | None:
    """Return the size of a file of a bucket [bytes], by a list of names; None if it is not there.

    Raises
    ------
    OSError
        If there is no such bucket, or it may not be listed.
    UnavailableError
        If its store does not answer, or its libraries are not installed.
    """
    bucket, key = split_object(url)
    store: Any = store_of(url)
    try:
        # The first of the names that begin with a name is that name.
        page = ask(url, lambda: store.page(bucket, key, "", recursive=True))
    except FileNotFoundError as error:
        raise no_bucket() from error
    sizes: dict[str, int] = page.sizes
    return sizes.get(key)


def _is_sound(url: str) -> bool:
    return PurePosixPath(file_name(url)).suffix.lower() in SUFFIXES


# ---- buckets


def _of_bucket(url: str, *, recursive: bool) -> Iterator[str]:
    bucket, key = split_object(url)
    matches, into_folders = None, recursive
    prefix = f"{key.rstrip('/')}/" if key.strip("/") else ""
    if has_pattern(url):
        from fsspec.utils import glob_translate  # noqa: PLC0415 - of an optional extra

        matches = re.compile(glob_translate(key))
        prefix, recursive = re.split(r"[*?\[]", key, maxsplit=1)[0], True
    for found, _ in _sizes(url, bucket, prefix, recursive=recursive):
        is_hidden = any(part.startswith(".") for part in found.removeprefix(prefix).split("/"))
        if is_hidden or not _is_sound(found):
            continue
        if matches is None or any(map(matches.match, _meant(found, with_all=into_folders))):
            yield f"{scheme_of(url)}://{bucket}/{found}"


def _meant(key: str, *, with_all: bool) -> list[str]:
    """Return what a pattern may match so that it stands for a file: the file, or its folders."""
    folders = [str(folder) for folder in PurePosixPath(key).parents if folder.name]
    return [key, *(folders if with_all else folders[:1])]


def _sizes(
    url: str, bucket: str, prefix: str, *, recursive: bool, ask: Ask = answer
) -> Iterator[tuple[str, int]]:
    store: Any = store_of(url)
    token, n_keys, n_empty = "", 0, 0
    while True:
        page = ask(
            url,
            lambda: store.page(bucket, prefix, token, recursive=recursive),  # noqa: B023
        )
        n_keys += max(_PAGE_KEYS_LEAST, len(page.sizes))
        n_empty = 0 if page.sizes else n_empty + 1
        if n_keys > KEYS_MAX:
            raise InputError(f"{printable(url)}: has more than {KEYS_MAX} files of any kind")
        yield from page.sizes.items()
        if not page.token:
            return
        if page.token == token or n_empty > EMPTY_PAGES_MAX:
            raise InputError(f"{printable(url)}: its store sends a list without end")
        token = page.token


# ---- pages of links


def _of_pages(url: str, *, recursive: bool) -> Iterator[str]:
    if not url.endswith("/"):
        raise InputError(f"{printable(url)}: must be a sound file, or a folder with / at its end")
    store: Any = store_of(url)
    waiting, seen, n_folders = [url], {url}, 0
    while waiting:
        folder = waiting.pop()
        for link in answer(folder, lambda: store.links(folder)):  # noqa: B023
            name = link.removeprefix(folder)
            is_below = link.startswith(folder) and re.fullmatch(r"[^.?#*/][^?#*/]*/?", name)
            if not is_below or link in seen or len(link) > URL_CHARS_MAX:
                continue
            seen.add(link)
            n_folders += name.endswith("/")
            _check_counts(url, len(seen) - n_folders, n_folders)
            if name.endswith("/"):
                if not recursive:
                    continue
                if link.removeprefix(url).count("/") > DEPTH_MAX:
                    raise InputError(f"{printable(link)}: lies more than {DEPTH_MAX} folders deep")
                waiting.append(link)
            elif _is_sound(link):
                check_url(link)
                yield link


def _check_counts(url: str, n_files: int, n_folders: int) -> None:
    if n_files > FILES_MAX:
        raise InputError(f"{printable(url)}: has more than {FILES_MAX} sound files")
    if n_folders > FOLDERS_MAX:
        raise InputError(f"{printable(url)}: has more than {FOLDERS_MAX} folders")
