"""Metadata of SigMF recordings: bounded reading, and checks against the data file.

SigMF, the Signal Metadata Format, describes a file of plain samples in a JSON file beside it,
``NAME.sigmf-meta``. The object ``global`` describes the whole recording, the array ``captures``
describes segments of consecutive samples.

References
----------
.. [1] The Signal Metadata Format Specification, version 1.2.6, sigmf.org.
"""

import codecs
import datetime as dt
import logging
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from spectrod.dsp.spectrum_rules import CENTER_FREQUENCY_MAX_HZ, CHANNELS_MAX, FS_MAX_HZ, FS_MIN_HZ
from spectrod.formats.sound.sigmf_writer import CAPTURES_MAX, DATA_SUFFIX, META_SUFFIX
from spectrod.lib.errors import InputError
from spectrod.lib.regular_files import read_regular
from spectrod.lib.text import printable, reason_of
from spectrod.source.base import SPAN_MAX_S, YEAR_S
from spectrod.source.files.codings import U8_IQ_MIDDLE, Coding

_log = logging.getLogger(__name__)

META_BYTES_MAX: Final = 1 << 24
"""Maximum size of a metadata file, annotations included [bytes]."""

_INDEX_MAX = (1 << 62) - 1
_YEAR_FIRST, _YEAR_LAST = 1900, 2199
_TIME_DIFFERENCE_S = 0.1
"""Least time difference of captures that means missing or repeated samples [s]."""
_WHOLE_SECONDS_DIFFERENCE_S = 2.0
"""The same for times without a fraction of a second [s]."""

_NUMBERS: Final = {
    "f64": ("f8", 0.0, 1.0),
    "f32": ("f4", 0.0, 1.0),
    "i32": ("i4", 0.0, 2.0**31),
    "u32": ("u4", 2.0**31, 2.0**31),
    "i16": ("i2", 0.0, 2.0**15),
    "u16": ("u2", 2.0**15, 2.0**15),
    "i8": ("i1", 0.0, 2.0**7),
    "u8": ("u1", 2.0**7, 2.0**7),
}
"""NumPy type, code of 0, and full scale."""
_DATATYPE = re.compile(rf"([cr])({'|'.join(_NUMBERS)})(_le|_be)?")
_DATATYPE_RULE = (
    "must be c (I/Q) or r (real), then f64 f32 i32 u32 i16 u16 with _le or _be, or i8 u8"
)
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?([Zz]|[+-]\d\d:\d\d)?"
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_Index = Annotated[int, Meta(ge=0, le=_INDEX_MAX)]


def _core(name: str, default: Any = msgspec.NODEFAULT) -> Any:
    return msgspec.field(name=f"core:{name}", default=default)


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    optional: bool = True


class _Global(msgspec.Struct, frozen=True):
    datatype: str = _core("datatype")
    sample_rate: float | None = _core("sample_rate", None)
    num_channels: Annotated[int, Meta(ge=1, le=CHANNELS_MAX)] = _core("num_channels", 1)
    offset: _Index = _core("offset", 0)
    dataset: str = _core("dataset", "")
    trailing_bytes: _Index = _core("trailing_bytes", 0)
    extensions: tuple[_Extension, ...] = _core("extensions", ())


class _Capture(msgspec.Struct, frozen=True):
    sample_start: _Index = _core("sample_start")
    global_index: _Index | None = _core("global_index", None)
    datetime: str = _core("datetime", "")
    frequency: float | None = _core("frequency", None)
    header_bytes: _Index = _core("header_bytes", 0)


class _MetadataFields(msgspec.Struct, frozen=True):
    """The fields in use; the decoder skips annotations and other fields."""

    of_all: _Global = msgspec.field(name="global")
    captures: tuple[_Capture, ...] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """Start of a capture, in the data file and in the stream."""

    sample: int
    """Index in the data file."""
    index: int
    """Index in the stream."""
    has_index: bool
    """True if the metadata states the index."""
    datetime: str = ""
    frequency: float | None = None
    header_bytes: int = 0


_decoder = msgspec.json.Decoder(_MetadataFields)


@dataclass(frozen=True, slots=True)
class SampleRun:
    """Samples that follow each other without a gap.

    Attributes
    ----------
    begin : int
        Index of the first sample in the recording; missing samples count.
    n_samples : int
        Samples per channel.
    place : int
        Offset of the first sample in the data file [bytes].
    """

    begin: int
    n_samples: int
    place: int

    @property
    def end(self) -> int:
        """Index after the last sample."""
        return self.begin + self.n_samples


@dataclass(frozen=True, slots=True)
class SigmfRecording:
    """Description of a SigMF recording, checked against its data file.

    Attributes
    ----------
    data_path : str
        Path of the file of samples.
    datatype : str
        SigMF's name of the type, for messages.
    coding : Coding
        Conversion of numbers to samples.
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels; I and Q are one each.
    is_iq : bool
        True if each pair of channels is I and Q.
    center_frequency_hz : float
        Centre frequency of I/Q samples [Hz]; 0 if not stated.
    start_utc_ns : int or None
        UTC of the first sample, if the metadata states it [ns].
    segments : tuple of SampleRun
        At least one segment; samples are missing between segments.
    """

    data_path: str
    datatype: str
    coding: Coding
    fs: float
    channels: int
    is_iq: bool
    center_frequency_hz: float
    start_utc_ns: int | None
    segments: tuple[SampleRun, ...]

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of all channels."""
        return self.coding.n_bytes * self.channels

    @property
    def n_samples(self) -> int:
        """Samples per channel, including missing ones."""
        return self.segments[-1].end


def is_sigmf(path: str) -> bool:
    """Return True if the suffix of a path is one of the two of a SigMF recording."""
    return Path(path).suffix.lower() in (META_SUFFIX, DATA_SUFFIX)


def read_sigmf(path: str, samplerate: float = 0.0) -> SigmfRecording:
    """Read and check the metadata of a recording.

    Parameters
    ----------
    path : str
        ``NAME.sigmf-meta``, or ``NAME.sigmf-data`` beside it.
    samplerate : float
        Sample rate of a recording that states none; 0 if unknown [Hz].

    Raises
    ------
    InputError
        If a file is missing, too large, damaged or invalid; if the centre frequency changes within
        the recording.
    """
    meta = Path(path)
    if meta.suffix.lower() == DATA_SUFFIX:
        meta = meta.with_suffix(META_SUFFIX)
    document = _decode(meta)
    about = document.of_all
    _refuse_needed_extensions(meta, about.extensions)
    is_iq, coding = _coding(meta, about.datatype)
    fs = _sample_rate(meta, about.sample_rate, samplerate)
    channels = about.num_channels * (2 if is_iq else 1)
    if channels > CHANNELS_MAX:
        raise InputError(
            f"{meta}: core:num_channels={about.num_channels}: must be at most "
            f"{CHANNELS_MAX // 2} of I and Q"
        )
    starts = _starts(meta, document)
    data_path = _data_path(meta, about.dataset)
    frame_bytes = coding.n_bytes * channels
    counts = _counts(meta, data_path, starts, frame_bytes, about.trailing_bytes)
    begins = _begins(meta, starts, counts, fs)
    headers, n_before, segments = 0, 0, []
    for start, begin, n in zip(starts, begins, counts, strict=True):
        headers += start.header_bytes
        segments.append(SampleRun(begin, n, headers + n_before * frame_bytes))
        n_before += n
    span_s = segments[-1].end / fs
    if span_s > SPAN_MAX_S:
        raise InputError(
            f"{meta}: lasts {span_s / YEAR_S:.3g} years: must be at most {SPAN_MAX_S / YEAR_S:g}"
        )
    return SigmfRecording(
        str(data_path),
        about.datatype,
        coding,
        fs,
        channels,
        is_iq,
        _center_frequency(meta, starts) if is_iq else 0.0,
        _start_utc_ns(starts, begins, fs),
        tuple(segments),
    )


def _decode(meta: Path) -> _MetadataFields:
    try:
        content = read_regular(meta, META_BYTES_MAX)
    except OSError as error:
        raise InputError(f"{meta}: {error.strerror}") from error
    try:
        return _decoder.decode(content.removeprefix(codecs.BOM_UTF8))
    # RecursionError: skipped fields may be nested to any depth.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(printable(f"{meta}: not SigMF metadata: {reason_of(error)}")) from error


def _refuse_needed_extensions(meta: Path, extensions: Sequence[_Extension]) -> None:
    for one in extensions:
        if not one.optional:
            raise InputError(printable(f"{meta}: needs the SigMF extension {one.name!r}"))


def _coding(meta: Path, datatype: str) -> tuple[bool, Coding]:
    match = _DATATYPE.fullmatch(datatype)
    if match is None or (match[3] is None and not match[2].endswith("8")):
        raise InputError(printable(f"{meta}: core:datatype={datatype!r}: {_DATATYPE_RULE}"))
    is_iq = match[1] == "c"
    number, offset, full_scale = _NUMBERS[match[2]]
    if is_iq and match[2] == "u8":
        offset = U8_IQ_MIDDLE
    return is_iq, Coding((">" if match[3] == "_be" else "<") + number, offset, full_scale)


def _sample_rate(meta: Path, stated: float | None, given: float) -> float:
    if stated is None and not given:
        raise InputError(f"{meta}: does not state its sample rate; give --samplerate")
    fs = given if stated is None else stated
    if not FS_MIN_HZ <= fs <= FS_MAX_HZ:
        rule = f"must be {FS_MIN_HZ:g} to {FS_MAX_HZ:g} Hz"
        raise InputError(f"{meta}: core:sample_rate={fs:g}: {rule}")
    return fs


def _starts(meta: Path, document: _MetadataFields) -> list[_Start]:
    """Return the starts of the captures in ascending order, the first at sample 0."""
    captures = document.captures
    if len(captures) > CAPTURES_MAX:
        raise InputError(f"{meta}: has {len(captures)} captures: must be at most {CAPTURES_MAX}")
    # In some versions of the specification, indices are absolute and count from core:offset.
    offset = document.of_all.offset
    if not captures or captures[0].sample_start < offset:
        offset = 0
    starts: list[_Start] = []
    for one in captures:
        sample, stated = one.sample_start - offset, one.global_index
        if starts and sample <= starts[-1].sample:
            raise InputError(
                f"{meta}: core:sample_start={one.sample_start}: must be above that of the capture "
                f"before, {starts[-1].sample + offset}"
            )
        index, has_index = (one.sample_start, False) if stated is None else (stated, True)
        starts.append(
            _Start(sample, index, has_index, one.datetime, one.frequency, one.header_bytes)
        )
    if not starts or starts[0].sample > 0:  # samples before the first capture
        first = max(0, starts[0].index - starts[0].sample) if starts else 0
        starts.insert(0, _Start(0, first, has_index=False))
    return starts


def _data_path(meta: Path, dataset: str) -> Path:
    """Return the path of the data file, which must be in the folder of its metadata."""
    if not dataset:
        data_path = meta.with_suffix(DATA_SUFFIX)
    elif dataset in (".", "..") or re.search(r"[/\\\0]", dataset):
        raise InputError(
            printable(
                f"{meta}: core:dataset={dataset!r}: must be the name of a file beside it, without "
                "a folder"
            )
        )
    else:
        data_path = meta.with_name(dataset)
    try:
        is_file = stat.S_ISREG(os.stat(data_path).st_mode)  # noqa: PTH116 - a name may be too long
    except OSError as error:
        raise InputError(f"{printable(str(data_path))}: {error.strerror}") from error
    if not is_file:
        raise InputError(f"{printable(str(data_path))}: not a regular file")
    return data_path


def _counts(
    meta: Path, data_path: Path, starts: list[_Start], frame_bytes: int, trailing: int
) -> list[int]:
    """Count the samples of each capture; drop an empty capture at the very end.

    Raises InputError if the file is too short for the captures.
    """
    n_other = sum(one.header_bytes for one in starts) + trailing
    n_bytes = data_path.stat().st_size - n_other
    if n_bytes <= 0:
        raise InputError(f"{printable(str(data_path))}: holds no samples")
    n_all, rest = divmod(n_bytes, frame_bytes)
    if rest:
        raise InputError(
            f"{printable(str(data_path))}: {n_bytes} bytes are not a whole number of "
            f"{frame_bytes}-byte samples"
        )
    samples = [one.sample for one in starts]
    if samples[-1] == n_all and len(starts) > 1:
        starts.pop()  # the writer was killed before it wrote the samples
        samples.pop()
    if samples[-1] >= n_all:
        raise InputError(
            f"{meta}: a capture begins at sample {samples[-1]}: must be below the {n_all} samples "
            f"of {printable(data_path.name)}"
        )
    return [end - begin for begin, end in zip(samples, [*samples[1:], n_all], strict=True)]


def _begins(meta: Path, starts: Sequence[_Start], counts: Sequence[int], fs: float) -> list[int]:
    """Return the index of each capture's first sample; missing samples count."""
    begins = [0]
    for before, one, n in zip(starts, starts[1:], counts, strict=False):
        missing = one.index - before.index - n
        if missing == 0 and not one.has_index:
            missing = _missing_by_time(before, one, n, fs)
        if missing < 0:
            raise InputError(
                f"{meta}: the capture at sample {one.sample} begins {-missing} samples before the "
                "one before it ends"
            )
        begins.append(begins[-1] + n + missing)
    return begins


def _missing_by_time(before: _Start, one: _Start, n: int, fs: float) -> int:
    """Count the missing samples by the times of two captures; below 0 if they overlap."""
    since, until = parse_utc_ns(before.datetime), parse_utc_ns(one.datetime)
    if since is None or until is None:
        return 0
    late_s = (until - since) * 1e-9 - n / fs
    is_exact = all("." in text or "," in text for text in (before.datetime, one.datetime))
    limit_s = _TIME_DIFFERENCE_S if is_exact else _WHOLE_SECONDS_DIFFERENCE_S
    return round(late_s * fs) if abs(late_s) >= limit_s else 0


def _start_utc_ns(starts: Sequence[_Start], begins: Sequence[int], fs: float) -> int | None:
    """Return the UTC of the first sample, by the first capture with a time [ns]."""
    for one, begin in zip(starts, begins, strict=True):
        if not one.datetime:
            continue
        t_ns = parse_utc_ns(one.datetime)
        if t_ns is not None:
            return t_ns - round(begin * 1e9 / fs)
        shown = printable(one.datetime, 64)
        _log.warning("core:datetime=%s: no time from 1900 to 2199, ignored", shown)
    return None


def _center_frequency(meta: Path, starts: Sequence[_Start]) -> float:
    found: float | None = None
    for one in starts:
        if one.frequency is None:
            continue
        if not abs(one.frequency) <= CENTER_FREQUENCY_MAX_HZ:
            raise InputError(
                f"{meta}: core:frequency={one.frequency:g}: must be within "
                f"+-{CENTER_FREQUENCY_MAX_HZ:g} Hz"
            )
        if found is not None and one.frequency != found:
            raise InputError(
                f"{meta}: core:frequency changes from {found:.15g} to {one.frequency:.15g} Hz at "
                f"sample {one.sample}: must be the same in all captures"
            )
        found = one.frequency
    return found or 0.0


def parse_utc_ns(text: str) -> int | None:
    """Parse an RFC 3339 time; a time without a zone is UTC.

    Returns
    -------
    t_utc_ns : int or None
        None if the text is not a time from 1900 to 2199 [ns since 1970].
    """
    match = _DATETIME.fullmatch(text.strip())
    if match is None:
        return None
    zone = (match[4] or "Z").upper().replace("Z", "+00:00")
    try:
        time = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}").astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
    if not _YEAR_FIRST <= time.year <= _YEAR_LAST:
        return None
    seconds = (time - _EPOCH) // dt.timedelta(seconds=1)
    return seconds * 10**9 + int(f"{match[3] or '':0<9}"[:9])
