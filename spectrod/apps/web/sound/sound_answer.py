"""Answers with a file, or a range of it (RFC 9110, section 14), read as it is sent."""

import asyncio
import os
import re
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE_BYTES: Final = 1 << 16
"""What is read and passed to a connection at a time [bytes]."""
_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


@dataclass(frozen=True, slots=True)
class SentRange:
    """First byte of a part of a file, and the one after its last."""

    begin: int
    end: int


def parse_range(header: str | None, n_bytes: int) -> SentRange | None:
    """Read a ``Range`` header.

    Parameters
    ----------
    header : str or None
    n_bytes : int
        Size of the file.

    Returns
    -------
    found : SentRange or None
        The whole file without a header, and for forms that the RFC lets a server ignore: other
        units, several ranges, ranges that end before they begin. None if the range has no byte of
        the file.
    """
    whole = SentRange(0, n_bytes)
    match = None if header is None else _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == (None, None):
        return whole
    first, last = (None if text is None else int(text) for text in match.groups())
    if first is None:
        assert last is not None
        return SentRange(max(0, n_bytes - last), n_bytes) if last and n_bytes else None
    if last is not None and last < first:
        return whole
    end = n_bytes if last is None else min(n_bytes, last + 1)
    return SentRange(first, end) if first < n_bytes else None


class SoundAnswer(Response):
    """A file, or the range of it that a request asks for. Closes the descriptor.

    Parameters
    ----------
    descriptor : int
        Descriptor of the file, which another process may shorten meanwhile.
    name : str
        Name under which a browser keeps it.
    media_type : str
    asked : (str or None, str or None)
        The headers ``Range`` and ``If-Range``.
    """

    def __init__(
        self, descriptor: int, name: str, media_type: str, asked: tuple[str | None, str | None]
    ) -> None:
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        tag = f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
        header, if_range = asked
        found = parse_range(header if if_range in (None, tag) else None, status.st_size)
        whole = SentRange(0, status.st_size)
        headers = {
            "Accept-Ranges": "bytes",
            "ETag": tag,
            "Cache-Control": "no-store",
            "Content-Disposition": f'inline; filename="{_quoted(name)}"',
        }
        code = 200 if found == whole else 206
        if found is None:
            code, headers["Content-Range"] = 416, f"bytes */{status.st_size}"
        elif code == 206:
            headers["Content-Range"] = f"bytes {found.begin}-{found.end - 1}/{status.st_size}"
        self._range = found or SentRange(0, 0)
        headers["Content-Length"] = str(self._range.end - self._range.begin)
        super().__init__(None, code, headers, media_type)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            at, end = self._range.begin, self._range.end
            while at < end:
                body = await asyncio.to_thread(self._read, at, min(PIECE_BYTES, end - at))
                if not body:  # shortened meanwhile: the connection ends before it should
                    return
                at += len(body)
                await send({"type": "http.response.body", "body": body, "more_body": at < end})
            if self._range.begin == end:
                await send({"type": "http.response.body", "body": b""})
        finally:
            os.close(self._descriptor)

    def _read(self, at: int, count: int) -> bytes:
        try:
            return os.pread(self._descriptor, count, at)
        except OSError:
            return b""


def _quoted(name: str) -> str:
    """Return a name as it may stand in a header: ASCII, without quotes."""
    return "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._+-") else "_" for sign in name
    )
