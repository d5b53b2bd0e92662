"""Sound files: plain samples are read here, coded ones by libsndfile."""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast, get_args

import numpy as np
import soundfile

from spectrod.config.config import Pace
from spectrod.config.settings import IqFormat
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError, SpectrodError, UnavailableError
from spectrod.lib.text import printable
from spectrod.source.base import Discontinuity, PulledSource
from spectrod.source.files.coded import CodedStream, coded_mpeg, find_coded, read_head
from spectrod.source.files.container import (
    FileBytes,
    SampleExtent,
    SoundHeader,
    extent_of,
    read_header,
)
from spectrod.source.files.container.comment import comment_of
from spectrod.source.files.container.plain import PlainSamples
from spectrod.source.files.flac_length import TAIL_BYTES_MAX
from spectrod.source.files.foreign import refusal
from spectrod.source.files.mpeg import FRAME_BYTES_MAX
from spectrod.source.files.rare import HEAD_BYTES, check_it_opens, is_rare
from spectrod.source.files.recorded_at import find_start
from spectrod.source.files.spliced import Spliced
from spectrod.source.files.triggered import Stretches
from spectrod.source.left_out import LeftOut
from spectrod.source.naming import topic_name
from spectrod.source.opening import length_of
from spectrod.source.store.urls import is_url

if TYPE_CHECKING:
    from spectrod.source.store.remote_file import CallbackStream

_log = logging.getLogger(__name__)

_RAW_SUFFIXES = (".raw", *(f".{name}" for name in get_args(IqFormat)))

_LENGTH_UNKNOWN = 2**63 - 1
"""libsndfile's length of a FLAC file whose header does not state one."""

_NO_LENGTH = (
    "its header leaves its length open, and no whole frame is in its last "
    f"{TAIL_BYTES_MAX >> 20} MiB"
)

# libsndfile finds the end of these streams by itself and does not report unread data.
_CODED_STREAMS = ("MP3", "OGG")
_CODED_STARTS = (b"fLaC", b"OggS", b"ID3", b"\xff")
_SAMPLE_BYTES = {
    "PCM_S8": 1, "PCM_U8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4,
    "FLOAT": 4, "DOUBLE": 8, "ULAW": 1, "ALAW": 1,
}  # fmt: skip
"""Bytes of a sample, for codings with a fixed size."""
_EXACT_SUBTYPES = frozenset(_SAMPLE_BYTES)
"""Codings in which each sample stands for itself: also those that FLAC holds."""
_SKIP_SAMPLES = 1 << 15
_CODED_BYTES_MAX = (1 << 32) - (1 << 17)
"""Maximum of samples in a codec of a WAV or AIFF file [bytes]: 4 GiB less what a header takes."""
_TAGS_BYTES_MAX = 1 << 26
"""Maximum of tags after the last frame, cover pictures included, that is read [bytes]."""

_TAG_AT_END = re.compile(rb"(APETAGEX.*)?(TAG.{125})?\Z", re.DOTALL)


class _InOrder(soundfile.SoundFile):  # type: ignore[misc]
    """A file whose reads follow each other without a seek.

    After each read the base class seeks to the position where the file already is, if it can seek.
    Decoders of lossy codings lose their state by that: the first frames of each block were wrong.
    """

    def seekable(self) -> bool:
        """Return False: for the base class, not for ``seek``."""
        return False


class SoundFile:
    """An open sound file, read from start to end.

    Parameters
    ----------
    path : str
        WAV, RF64, AIFF, AU, CAF, FLAC, Ogg, MP3 and other formats of libsndfile.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Channels.
    n_samples : int
        Samples per channel by header and file size, at least 1; libsndfile's estimate for an MP3
        file whose header does not state the length.
    n_announced : int
        Samples per channel that the header states; more than ``n_samples`` in a truncated file.
    damage : str
        Description of the damage found so far; "" if none. Samples up to the damage are readable.
    format : str
        Name of the format, for messages.
    is_float : bool
        True if the file stores floats, which may be infinite or NaN.
    comment : str
        Comment in the header.
    note : str
        How a wrong header was understood, although nothing is missing; "" if it is right.

    Raises
    ------
    InputError
        If the file is missing, empty, of unknown length, or not a sound file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._take(opened := _open(path))
        coded = opened.coded
        self.fs = float(self._file.samplerate)
        self.channels = int(self._file.channels)
        self.n_samples = (coded.ends[-1] if coded else 0) or int(self._file.frames)
        self.format = f"{self._file.format}, {self._file.subtype}"
        self.is_float = self._file.subtype in ("FLOAT", "DOUBLE")
        self.comment = str(self._file.comment)
        self._n_read = 0
        self._is_decoded = self._file.format in (*_CODED_STREAMS, "FLAC")
        self._is_coded = self._file.format in _CODED_STREAMS
        self._is_estimate = self._file.format == "MP3" and coded is None
        self._is_counted = coded is not None and coded.ends[-1] > 0
        self.damage = opened.extent.damage or (coded.damage if coded else "")
        self.note = opened.extent.note
        if self.n_samples in (0, _LENGTH_UNKNOWN):
            self.close()
            problem = _NO_LENGTH if self.n_samples else self.damage or "holds no samples"
            raise InputError(f"{path}: {problem}")
        step_bytes = self.channels * _SAMPLE_BYTES.get(self._file.subtype, 0)
        n_missing_bytes = opened.extent.announced - opened.extent.size
        self.n_announced = self.n_samples + (n_missing_bytes // step_bytes if step_bytes else 0)

    def _take(self, opened: "_Opened") -> None:
        self._file, self._stream = opened.file, opened.stream
        self._bytes, self._coded = opened.bytes, opened.coded
        self._link = 0

    def read(self, out: Float32Array) -> int:
        """Read samples into (n, channels) float32 [FS]; return their number, fewer at the end.

        If the file is damaged, ends early or continues after its end, ``damage`` describes that.
        """
        n_wanted = len(out)
        if not self._is_estimate:
            out = out[: self.n_samples - self._n_read]
        n = self._decode(out)
        while n < len(out) and self._open_next_link():
            n += self._decode(out[n:])
        if n < n_wanted:
            self._check_end()
        return n

    def _decode(self, out: Float32Array) -> int:
        if self._is_decoded:
            out[:, 0] = np.nan
        try:
            n = len(self._file.read(out=out))
        except soundfile.LibsndfileError as error:
            self._note_damage(f"damaged: {error.error_string}")
            # Samples decoded before the error are in place; libsndfile does not return their
            # number.
            n = _n_filled(out) if self._is_decoded else 0
        _raise_error(self._path, self._bytes)
        self._n_read += n
        return n

    def _open_next_link(self) -> bool:
        """Open the stream that follows a whole one; return False without one."""
        coded, following = self._coded, self._link + 1
        if coded is None or following == len(coded.links):
            return False
        if self._n_read != coded.ends[self._link]:
            return False
        self._file.close()
        self._link, self._stream = following, coded.links[following]
        self._file = _decoder_of(self._stream)
        return True

    def _check_end(self) -> None:
        if self._n_read < self.n_samples and not self._is_estimate:
            self._note_damage(
                f"truncated: {self.n_samples} samples announced, {self._n_read} found"
            )
        if not self._is_decoded or self._stream is None or self._is_counted:
            return
        n_bytes = _unread_bytes(self._stream)
        if n_bytes > FRAME_BYTES_MAX:
            self._note_damage(
                f"{self._n_read} samples announced, but {n_bytes} bytes follow them, "
                "as where files were joined; decode it to a WAV file first"
            )

    def _note_damage(self, text: str) -> None:
        self.damage = self.damage or text

    def seek(self, sample_index: int) -> None:
        """Go to the sample with this index.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        try:
            self._file.seek(sample_index)
            _raise_error(self._path, self._bytes)
        except soundfile.LibsndfileError as error:
            _raise_error(self._path, self._bytes)
            raise InputError(f"{self._path}: damaged: {error.error_string}") from error
        self._n_read = sample_index

    def skip(self, n_samples: int) -> None:
        """Skip the first samples of the file; decode them where seeking is not exact.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        if self.seeks_exactly:
            self.seek(n_samples)
            return
        unused = np.empty((_SKIP_SAMPLES, self.channels), np.float32)
        while (n_left := n_samples - self._n_read) > 0 and self.read(unused[:n_left]):
            pass

    def rewind(self) -> None:
        """Return to the first sample.

        Raises
        ------
        InputError
            If the file is damaged, or its format has changed.
        """
        if self.seeks_exactly and not self.damage:
            self.seek(0)
            return
        # A decoder that has failed may fail again on seeking.
        self.close()
        self._take(_open(self._path))
        if (self._file.samplerate, self._file.channels) != (self.fs, self.channels):
            raise InputError(f"{self._path}: has changed while it was read")
        self._n_read = 0

    @property
    def seeks_exactly(self) -> bool:
        """True if ``seek`` yields the same samples as reading up to the position.

        Other codings predict samples from those before, across any distance.
        """
        is_sought = self._coded is None or self._coded.is_sought
        return is_sought and not self._is_coded and self._file.subtype in _EXACT_SUBTYPES

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._bytes:
            self._bytes.close()

    def __del__(self) -> None:
        # A source that is refused before it starts is dropped; nothing else closes its file.
        if hasattr(self, "_file"):
            self.close()


class SoundFileSource(PulledSource):
    """A sound file, played once or in a seamless loop.

    Its header or its name gives the start time; see ``recorded_at``.

    Parameters
    ----------
    path : str
        See ``SoundFile``.
    pace : {"realtime", "full"}
        Pace of reading.
    loop : bool
        Repeat the file endlessly; times are then those of playing.
    strict : bool
        Treat a truncated or damaged file as an error; otherwise read it up to the damage.
    time_format : str
        Format of the start time in its name; empty: see ``recorded_at``.
    time_zone : str
        Time zone of start times that name none; empty: UTC. See ``recorded_at``.

    Raises
    ------
    InputError
        Like ``SoundFile``; also for a truncated file if ``strict``.
    """

    def __init__(
        self,
        path: str,
        pace: Pace,
        *,
        loop: bool = False,
        strict: bool = False,
        time_format: str = "",
        time_zone: str = "",
    ) -> None:
        super().__init__(pace)
        self._path = path
        self._file = SoundFile(path)
        self._loop = loop
        self.is_direct = pace == "full" and not loop
        self.left_out = LeftOut(strict=strict)
        self._note_damage()
        self._speakers_path = path
        if self._file.note:
            _log.warning("%s: %s", printable(path), self._file.note)
        self.name = topic_name(Path(path).stem)
        self.fs, self.channels = self._file.fs, self._file.channels
        self.description = f"{printable(path)} ({self._file.format})"
        if not loop:
            self.n_samples = self._file.n_samples
            comment = self._file.comment
            self.take_start(find_start(path, self.fs, comment, time_format, time_zone))

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``."""
        if self._file.seeks_exactly and not self._loop:
            self._first = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array | Discontinuity]:
        """Yield the file's samples, up to its end or to the damage."""
        interleaved = np.empty((n_max, self._file.channels), np.float32)
        try:
            if self._first:
                self._file.seek(self._first)
            while n := self._read_into(interleaved):
                yield interleaved[:n].T
                if self.is_direct:
                    interleaved = np.empty_like(interleaved)
                self._note_damage()
            self._note_damage()
        finally:
            self._file.close()

    def _read_into(self, interleaved: Float32Array) -> int:
        n = self._file.read(interleaved)
        while self._loop and n < len(interleaved):
            self._note_damage()
            self._file.rewind()
            n_more = self._file.read(interleaved[n:])
            if not n_more:
                raise InputError(f"{self._path}: {self._file.damage or 'cannot be read again'}")
            n += n_more
        return n

    def _note_damage(self) -> None:
        if self._file.damage:
            problem = f"{self._path}: {self._file.damage}"
            self.left_out.add(Path(self._path), problem, "read up to there")


class TriggeredSource(SoundFileSource):
    """A recording of AudioMoth with a trigger: what it left out are missing samples.

    Parameters
    ----------
    path, pace, loop, strict, time_format, time_zone
        See ``SoundFileSource``.
    stretches : Stretches
        What it kept.
    """

    def __init__(  # noqa: PLR0913 - the settings of a source
        self,
        path: str,
        pace: Pace,
        stretches: Stretches,
        *,
        loop: bool = False,
        strict: bool = False,
        time_format: str = "",
        time_zone: str = "",
    ) -> None:
        super().__init__(
            path, pace, loop=loop, strict=strict, time_format=time_format, time_zone=time_zone
        )
        self._stretches = stretches
        if not loop:
            self.n_samples = stretches.n_samples

    def blocks(self, n_max: int) -> Iterator[Float32Array | Discontinuity]:
        """Yield the samples of each stretch, with a ``Discontinuity`` before it."""
        n_samples = self._stretches.n_samples
        try:
            end = self._first
            while True:
                for first, at, length in self._stretches.pieces(end, n_samples):
                    if first > end:
                        yield Discontinuity(first - end)
                    yield from self._stretch(at, length, n_max)
                    end = first + length
                if not self._loop:
                    return
                if end < n_samples:
                    yield Discontinuity(n_samples - end)
                end = 0
        finally:
            self._file.close()

    def _stretch(self, at: int, length: int, n_max: int) -> Iterator[Float32Array]:
        self._file.seek(at)
        while length:
            memory = np.empty((min(n_max, length), self._file.channels), np.float32)
            n = self._file.read(memory)
            if not n:
                raise InputError(f"{self._path}: {self._file.damage or 'truncated while read'}")
            yield memory[:n].T
            length -= n


class _Opened(NamedTuple):
    """A decoder and what it reads.

    Attributes
    ----------
    file : _InOrder or PlainSamples
        The decoder.
    stream : BinaryIO or None
        What it reads; its position shows the progress. None if it opened the file by its name.
    bytes : BinaryIO or None
        The open file behind the stream: of a store, it keeps the errors of the store.
    coded : CodedStream or None
        What is known of the stream.
    extent : SampleExtent
        Bytes of samples, by a header that is read here.
    """

    file: _InOrder | PlainSamples
    stream: BinaryIO | None = None
    bytes: BinaryIO | None = None
    coded: CodedStream | None = None
    extent: SampleExtent = SampleExtent(0, 0)


def _open(path: str) -> _Opened:
    try:
        if not is_url(path):
            _refuse_unreadable(Path(path))
        # libsndfile has one text for all system errors, so the system's own error is raised first.
        bytes_ = _open_bytes(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    opened = None
    try:
        opened = _open_decoder(path, bytes_)
        _raise_error(path, bytes_, InputError)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except soundfile.LibsndfileError as error:
        _raise_error(path, bytes_, InputError)
        raise InputError(refusal(path, read_head(bytes_), error.error_string)) from error
    finally:
        if opened is None or opened.bytes is None:
            bytes_.close()
    return opened


def _open_bytes(path: str) -> BinaryIO:
    if not is_url(path):
        return Path(path).open("rb")
    from spectrod.source.store.remote_file import CallbackStream, RemoteFile  # noqa: PLC0415

    return cast("BinaryIO", CallbackStream(RemoteFile(path)))


def _open_decoder(path: str, bytes_: BinaryIO) -> _Opened:
    contained = _open_container(path, bytes_)
    if contained is not None:
        return contained
    coded = find_coded(path, bytes_)
    if coded is not None:
        coded = _joined(coded)
        stream = coded.links[0]
        return _Opened(_decoder_of(stream), stream, bytes_, coded)
    bytes_.seek(0)
    head = bytes_.read(HEAD_BYTES)
    # By a path, libsndfile takes anything for samples if the suffix is au, gsm, vox or another.
    if not head.startswith(_CODED_STARTS):
        if is_url(path) or not is_rare(head):
            raise InputError(refusal(path, read_head(bytes_), "Format not recognised."))
        check_it_opens(path)
    return _Opened(_decoder_of(bytes_), bytes_, bytes_)


def _open_container(path: str, bytes_: BinaryIO) -> _Opened | None:
    """Open a file whose header is read here; None for any other."""
    source = FileBytes(bytes_)
    header = read_header(path, source)
    if header is None:
        return None
    extent = extent_of(source, header.stated)
    if header.coding is None:
        return _open_codec(bytes_, header, extent)
    n_samples = extent.size // header.stated.step_bytes
    file = PlainSamples(path, bytes_, header, n_samples, comment_of(source))
    return _Opened(file, bytes=bytes_, extent=extent)


def _open_codec(bytes_: BinaryIO, header: SoundHeader, extent: SampleExtent) -> _Opened:
    begin = header.stated.begin
    end = begin + extent.size
    if header.is_mpeg and (coded := coded_mpeg(bytes_, begin, end)):
        return _Opened(_decoder_of(coded.links[0]), coded.links[0], bytes_, coded, extent)
    extent = _within_a_view(header, extent)
    end = begin + extent.size
    stream = cast("BinaryIO", Spliced(bytes_, begin, end, header.head(extent.size)))
    file = _decoder_of(stream)
    is_padded = file.frames - header.block_samples < header.n_samples <= file.frames
    coded = CodedStream((stream,), (header.n_samples,), "") if is_padded else None
    return _Opened(file, stream, bytes_, coded, extent)


def _within_a_view(header: SoundHeader, extent: SampleExtent) -> SampleExtent:
    """Cut coded samples to what the header that is made for libsndfile can state."""
    if extent.size <= _CODED_BYTES_MAX or not header.stated.is_32_bit:
        return extent
    damage = f"{extent.size} bytes of coded samples: more than {_CODED_BYTES_MAX} cannot be decoded"
    return extent._replace(size=_CODED_BYTES_MAX, damage=extent.damage or damage)


def _decoder_of(stream: BinaryIO) -> _InOrder:
    stream.seek(0)
    return _InOrder(stream)


def _joined(coded: CodedStream) -> CodedStream:
    """Count the samples of streams that follow each other, up to one that cannot be joined."""
    if len(coded.links) == 1:
        return coded
    ends: list[int] = []
    first = found = None
    for link in coded.links:
        try:
            with _decoder_of(link) as file:
                found = file.samplerate, file.channels
                n_samples = int(file.frames)
        except soundfile.LibsndfileError:
            if first is None:
                raise
            found = None
        first = first or found
        if found != first:
            form = "{} Hz x {}".format(*found) if found else "another coding"
            damage = f"after sample {ends[-1]} it has a stream of {form}"
            return replace(coded, links=coded.links[: len(ends)], ends=tuple(ends), damage=damage)
        ends.append(n_samples + (ends[-1] if ends else 0))
    return replace(coded, ends=tuple(ends))


def _raise_error(
    path: str, bytes_: BinaryIO | None, kind: type[SpectrodError] = UnavailableError
) -> None:
    """Raise what libsndfile met when it read from a store: other than damage, it may pass."""
    if is_url(path):
        try:
            cast("CallbackStream", bytes_).raise_error()
        except OSError as error:
            raise kind(f"{path}: {error.strerror}") from error


def _refuse_unreadable(path: Path) -> None:
    # Check before opening: opening a pipe waits for its writer and takes the samples.
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path}: not a regular file; raw samples from a pipe are read with pcm:, and sound "
            "files with -"
        )
    # soundfile requires a format for .raw, which the name cannot give; the others are I/Q formats.
    if path.suffix.lower() in _RAW_SUFFIXES:
        raise InputError(f"{path}: has no header; raw samples are read with pcm:{path}")
    with path.open("rb") as file:
        if not file.read(1):
            raise InputError(f"{path}: empty file")


def _n_filled(out: Float32Array) -> int:
    """Count the samples before the first NaN."""
    unfilled = np.flatnonzero(np.isnan(out[:, 0]))
    return int(unfilled[0]) if len(unfilled) else len(out)


def _unread_bytes(stream: BinaryIO) -> int:
    """Count the unread bytes of a coded stream, excluding tags at its end."""
    position = stream.tell()
    n_bytes = length_of(stream) - position
    if n_bytes > _TAGS_BYTES_MAX:
        return n_bytes
    rest = stream.read()
    stream.seek(position)
    return len(_TAG_AT_END.sub(b"", rest))
