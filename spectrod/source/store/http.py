"""HTTP servers as stores: parts by ranges, folders by their pages of links."""

import asyncio
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import fsspec
from yarl import URL

from spectrod.dsp.units import NS_PER_S
from spectrod.source.store.file_part import (
    FilePart,
    UnreachableError,
    denied,
    etag_of,
    missing,
    promised,
    refused,
)
from spectrod.source.store.html_links import PAGE_BYTES_MAX, page_links
from spectrod.source.store.urls import UNPRINTABLE

CONNECT_S = 10.0
"""Longest time to connect [s]."""
REDIRECTS_MAX = 5

_NAME = re.compile(r"[\w~%!$&'()*+,@-][\w.~%!$&'()*+,@-]*/?", re.ASCII)
"""A name in the folder of a page: none of its characters has another meaning in an address."""
_REDIRECTS = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429)
_NO_RANGES = "its server sends no parts of files (ranges): copy it to a disk first"


class HttpStore:
    """Files of HTTP servers, by fsspec's session; proxies by the usual variables.

    Redirections are followed on the same host, and from http to https, alone.
    """

    def __init__(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        # Content is taken as it is: a small answer could unpack to any size.
        kwargs = {"timeout": timeout, "auto_decompress": False, "trust_env": True}
        self._fs = fsspec.filesystem("http", skip_instance_cache=True, client_kwargs=kwargs)

    async def read(self, url: str, first: int, end: int) -> FilePart:
        """Read the bytes [first, end) of a file; see ``Store``."""
        headers = {"Range": f"bytes={first}-{end - 1}"}
        async with await self._answer(url, headers) as answer:
            if answer.status == 200:
                raise refused(_NO_RANGES)
            n_bytes, size = promised(answer.headers.get("Content-Range", ""), first, end)
            if answer.content_length not in (None, n_bytes):
                raise refused("its server states two lengths of one answer")
            content = await _exactly(answer, n_bytes)
            etag = etag_of(answer.headers.get("ETag"))
            return FilePart(content, size, _modified_ns(answer), etag)

    async def links(self, url: str) -> list[str]:
        """Return the addresses that the page of a folder links to, as they are."""
        async with await self._answer(url, {}) as answer:
            if "html" not in answer.content_type:
                raise refused("its server shows no page of the files in it")
            page = bytearray()
            try:
                async for chunk in answer.content.iter_chunked(1 << 16):
                    page += chunk
                    if len(page) > PAGE_BYTES_MAX:
                        raise refused(f"its page has more than {PAGE_BYTES_MAX} bytes")
            except aiohttp.ClientError as error:
                raise _unreachable(error) from error
        return [target for link in page_links(page) if (target := joined(url, link))]

    async def _answer(self, url: str, headers: dict[str, str]) -> Any:
        """Return the answer to a request, with its body unread."""
        session = await self._fs.set_session()
        headers = {"Accept-Encoding": "identity", **headers}
        for _ in range(REDIRECTS_MAX + 1):
            try:
                answer = await session.get(
                    URL(url, encoded=True), headers=headers, allow_redirects=False
                )
            except aiohttp.ClientError as error:
                raise _unreachable(error) from error
            if answer.status not in _REDIRECTS:
                break
            answer.close()
            url = _redirected(url, answer.headers.get("Location", ""))
        else:
            raise refused(f"its server redirects more than {REDIRECTS_MAX} times")
        try:
            _check_status(answer.status)
        except BaseException:
            answer.close()
            raise
        return answer


def joined(url: str, link: str) -> str:
    """Return where a link leads; empty if it is no address."""
    # Most links are names in the folder, for which urljoin takes ten times as long.
    if _NAME.fullmatch(link):
        return url[: url.rindex("/") + 1] + link
    try:
        return urljoin(url, link)
    except ValueError:
        return ""


async def _exactly(answer: Any, n_bytes: int) -> bytes:
    try:
        return bytes(await answer.content.readexactly(n_bytes))
    except asyncio.IncompleteReadError as error:
        text = f"its server sent {len(error.partial)} of {n_bytes} bytes"
        raise UnreachableError(text) from error
    except aiohttp.ClientError as error:
        raise _unreachable(error) from error


def _unreachable(error: Exception) -> UnreachableError:
    return UnreachableError(f"its server does not answer ({type(error).__name__})")


def _check_status(status: int) -> None:
    if status in (200, 206):
        return
    if status in (401, 403):
        raise denied()
    if status in (404, 410):
        raise missing()
    if status == 416:
        raise refused("is empty, or shorter than its server said")
    if status in _LATER or status >= 500:
        raise UnreachableError(f"its server answers with status {status}")
    raise refused(f"its server answers with status {status}")


def _redirected(url: str, location: str) -> str:
    """Return where a redirection leads, if that is the same host."""
    try:
        target = urljoin(url, location)
        before, after = urlsplit(url), urlsplit(target)
        ports = before.port, after.port
    except ValueError as error:
        raise refused("its server redirects to no address") from error
    # urljoin drops some of them from the beginning of a location.
    if UNPRINTABLE.search(location + target):
        raise refused("its server redirects to no address")
    is_same = (before.scheme, before.hostname, ports[0]) == (after.scheme, after.hostname, ports[1])
    schemes = before.scheme, after.scheme
    is_upgrade = schemes == ("http", "https") and before.hostname == after.hostname
    if "@" in after.netloc or not (is_same or (is_upgrade and ports[1] in (None, 443))):
        host = re.sub(r"[^A-Za-z0-9.:\[\]-]", "?", after.hostname or "")[:80]
        raise refused(f"its server redirects to {after.scheme[:8]}://{host}: must stay on its host")
    return target


def _modified_ns(answer: Any) -> int:
    stated = answer.headers.get("Last-Modified", "")
    try:
        when = parsedate_to_datetime(stated)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()) * NS_PER_S
    except (ValueError, OverflowError):
        return 0
