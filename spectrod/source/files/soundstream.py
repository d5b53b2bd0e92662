"""A sound file that comes through standard input: its header says what the samples are."""

import logging
import os
import select
import stat
from collections.abc import Generator
from pathlib import Path

from spectrod.config.config import Pace, SourceConfig
from spectrod.lib.errors import InputError
from spectrod.lib.job_pool import Wait
from spectrod.source.files.container import (
    FileBytes,
    SampleExtent,
    SoundHeader,
    extent_of,
    read_header,
)
from spectrod.source.files.container.container_chunks import KNOWN
from spectrod.source.files.container.recognised import may_become, recognised
from spectrod.source.files.pcm import PcmSource
from spectrod.source.left_out import LeftOut

_log = logging.getLogger(__name__)

NAME = "standard input"
_FIRST_BYTES = 64
"""Bytes by which a container is told from raw samples, if there are so many."""
_LIVE_WAIT_S = 1.0
"""Time for which a daemon waits for the first bytes at its start [s]."""
_REPORT_S, _HEADER_S = 5.0, 10.0
_PIECE_BYTES = 1 << 16
_KEPT_BYTES = 1 << 20
"""Bytes in front of the newest that a header may go back to."""


class StreamBytes:
    """The bytes of a stream, which only goes forward: see ``container.Bytes``.

    Parameters
    ----------
    fd : int
        Descriptor.
    patience_s : float
        Time for which ``at`` waits for further bytes [s].
    """

    n_bytes = None

    def __init__(self, fd: int, patience_s: float) -> None:
        self._fd, self._first, self._kept = fd, 0, bytearray()
        self._patience_s = patience_s
        self._is_ended = False

    def take(self, timeout_s: float | None) -> bool:
        """Take what is there or comes; False at the end, and after the timeout."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if self._is_ended or not poll.poll(None if timeout_s is None else timeout_s * 1e3):
            return False
        try:
            data = os.read(self._fd, _PIECE_BYTES)
        except OSError as error:
            raise InputError(f"{NAME}: {error.strerror}") from error
        self._kept += data
        self._is_ended = not data
        return not self._is_ended

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come, and no end."""
        return not self._kept and not self._is_ended

    def at(self, offset: int, n: int) -> bytes:
        """Return n bytes from an offset on, fewer at the end.

        Raises
        ------
        InputError
            If they are further back than is kept, or do not come in time.
        """
        while self._first + len(self._kept) < offset + n:
            if not self.take(self._patience_s):
                if not self._is_ended:
                    raise InputError(
                        f"{NAME}: its header ends, and nothing came for {self._patience_s:g} s"
                    )
                break
            self._forget(offset)
        if offset < self._first:
            raise InputError(f"{NAME}: its samples come before its header says what they are")
        begin = offset - self._first
        return bytes(self._kept[begin : begin + n])

    def from_on(self, offset: int) -> bytes:
        """Return all bytes from an offset on that have been taken; at least go there."""
        self.at(offset, 0)
        return bytes(self._kept[offset - self._first :])

    def _forget(self, offset: int) -> None:
        n_old = min(offset - self._first, len(self._kept)) - _KEPT_BYTES
        if n_old > 0:
            del self._kept[:n_old]
            self._first += n_old


class SoundStreamSource(PcmSource):
    """The samples of a sound file that comes through a pipe, up to the size in its header.

    A header that leaves the size open, or states 0, means up to the end of the stream: a writer
    cannot go back in a pipe. What is missing, or follows and is no chunk, is in ``left_out``.

    Parameters
    ----------
    fd : int
        Descriptor.
    header : SoundHeader
        Its header, of samples that are numbers.
    head : bytes
        Bytes from the first sample on that have been read.
    extent : SampleExtent or None
        Of a file, whose length is known.
    strict : bool
        Treat what is missing as an error.
    """

    def __init__(
        self,
        fd: int,
        header: SoundHeader,
        head: bytes,
        extent: SampleExtent | None,
        *,
        strict: bool,
    ) -> None:
        assert header.coding is not None
        super().__init__(header.fs, header.channels, header.coding, fd, head)
        self.fd, self._header, self._extent = fd, header, extent
        self.description = f"{NAME} ({header.form}, {header.subtype})"
        self.left_out = LeftOut(strict=strict)
        stated = header.stated
        self._size = None if stated.is_open or not stated.size else stated.size
        if extent is not None:
            self._size = extent.size
            self._note(extent.damage)
            if extent.note:
                _log.warning("%s: %s", NAME, extent.note)
        self._n_read, self._is_file = 0, extent is not None

    def continued(self, *, strict: bool) -> "SoundStreamSource":
        """Return a source that goes on where this one was stopped."""
        rest = self._decoder.rest + self._head
        source = SoundStreamSource(self.fd, self._header, rest, self._extent, strict=strict)
        source._n_read = self._n_read - len(self._decoder.rest)
        return source

    def _read(self, n_bytes: int) -> Generator[Wait, None, bytes]:
        if self._size is not None:
            n_bytes = min(n_bytes, self._size - self._n_read)
        if not n_bytes:
            return b""
        data = yield from super()._read(n_bytes)
        self._n_read += len(data)
        return data

    def _end(self) -> Generator[Wait, None, None]:
        """Check what follows; bytes of an unfinished sample are none, as in a file."""
        if self._size is None:
            return
        if self._n_read < self._size:
            self._note(f"truncated: {self._size} bytes announced, {self._n_read} found")
        if self._n_read < self._size or self._is_file:
            return
        rest = b""
        while len(rest) < _PIECE_BYTES:
            data = yield from super()._read(_PIECE_BYTES - len(rest))
            if not data:
                break
            rest += data
        if (
            len(rest) >= 8
            and any(rest)
            and not rest.lstrip(b"\0").startswith((*KNOWN, b"TAG", b"APETAGEX"))
        ):
            self._note(f"{self._size} bytes of samples announced, but more bytes follow them")

    def _note(self, damage: str) -> None:
        if damage:
            self.left_out.add(Path(NAME), f"{NAME}: {damage}", "read up to there")


def open_stream(
    settings: SourceConfig,
    fd: int,
    pace: Pace,
    *,
    header_s: float = _HEADER_S,
    report_s: float = _REPORT_S,
) -> SoundStreamSource | bytes:
    """Open what comes through standard input, if it is a sound file.

    Parameters
    ----------
    settings : SourceConfig
        Settings of the source.
    fd : int
        Descriptor.
    pace : {"realtime", "full"}
        A daemon waits for 1 s until something comes, a command without a limit.
    header_s : float
        Time within which a header must follow its first bytes [s].
    report_s : float
        Time after which a command says that it waits for the first bytes [s].

    Returns
    -------
    source : SoundStreamSource or bytes
        The bytes that have been read, if they are raw samples, or nothing came.

    Raises
    ------
    InputError
        If it is a sound file that cannot be read from a pipe.
    """
    if stat.S_ISREG(os.fstat(fd).st_mode) and not os.lseek(fd, 0, os.SEEK_CUR):
        return _open_file(settings, fd)
    if before := _opened.get(_identity(fd)):
        return _kept(before.continued(strict=settings.strict))
    stream = StreamBytes(fd, header_s)
    stream.take(_LIVE_WAIT_S if pace == "realtime" else report_s)
    if stream.is_empty and pace == "full":
        _log.warning("waiting: nothing is written to %s", NAME)
        stream.take(None)
    while len(head := stream.from_on(0)) < _FIRST_BYTES and head and may_become(head):
        if not stream.take(_LIVE_WAIT_S):
            break
    if not recognised(head):
        return head
    header = _header(stream, head)
    rest = stream.from_on(header.stated.begin)
    return _kept(SoundStreamSource(fd, header, rest, None, strict=settings.strict))


def _open_file(settings: SourceConfig, fd: int) -> SoundStreamSource | bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        source = FileBytes(file)
        head = source.at(0, _PIECE_BYTES)
        if not recognised(head):
            os.lseek(fd, 0, os.SEEK_SET)
            return b""
        header = _header(source, head)
        extent = extent_of(source, header.stated)
    os.lseek(fd, header.stated.begin, os.SEEK_SET)
    return _kept(SoundStreamSource(fd, header, b"", extent, strict=settings.strict))


_opened: dict[tuple[int, int], SoundStreamSource] = {}
"""The last source, by the identity of its stream: a daemon whose settings change opens it again."""


def _kept(source: SoundStreamSource) -> SoundStreamSource:
    _opened.clear()
    _opened[_identity(source.fd)] = source
    return source


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _header(source: FileBytes | StreamBytes, head: bytes) -> SoundHeader:
    header = read_header(NAME, source)
    if header is None or header.coding is None:
        form = recognised(head) if header is None else f"{header.form} with a codec"
        raise InputError(
            f"{NAME}: is {form}, which is decoded from files only: give its path, or decode it, "
            "as by ffmpeg -v error -i FILE -f wav -"
        )
    return header
