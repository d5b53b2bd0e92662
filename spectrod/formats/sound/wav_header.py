"""The header of a WAV file: one page that is valid for any length of the file."""

import datetime as dt
import struct
from dataclasses import dataclass

from spectrod.formats.sound.notes import Gaps, Notes, utc
from spectrod.formats.sound.pcm_samples import SAMPLE_BYTES
from spectrod.formats.sound.sound_options import Subtype
from spectrod.lib.errors import InputError

HEADER_BYTES = 4096
"""The samples begin on a page of their own. The header is changed by one write of one page, which
a killed process does not leave incomplete."""

RF64_FROM = (1 << 32) - (1 << 16)
"""Size from which on files are RF64. It is less than 2^32, because many programs write sizes near
that for an unknown length, and others interpret them so."""

_FILE_BYTES_MAX = 1 << 62
"""Above the size of any file, and small enough that sums of sizes fit in 64 bits."""

_TAG_PCM, _TAG_FLOAT, _TAG_EXTENSIBLE = 1, 3, 0xFFFE
_SIZES_ELSEWHERE = 0xFFFFFFFF
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_BEXT_BYTES = 602
_SPEAKERS = {1: 0x4, 2: 0x3}
"""Front centre; front left and right. More channels are microphones, not speakers."""


@dataclass(frozen=True, slots=True)
class WavForm:
    """Form of the samples in a WAV file.

    Attributes
    ----------
    fs, channels : int
        Sample rate [Hz] and number of channels.
    subtype : {"s16", "s24", "s32", "f32"}
        Format of each sample.
    """

    fs: int
    channels: int
    subtype: Subtype

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of all channels."""
        return SAMPLE_BYTES[self.subtype] * self.channels

    def chunk(self) -> bytes:
        """Return the ``fmt`` chunk; WAVE_FORMAT_EXTENSIBLE above 2 channels or 16 bits."""
        bits = 8 * SAMPLE_BYTES[self.subtype]
        tag = _TAG_FLOAT if self.subtype == "f32" else _TAG_PCM
        is_extensible = self.channels > 2 or (tag == _TAG_PCM and bits > 16)
        fields = struct.pack(
            "<HHIIHH",
            _TAG_EXTENSIBLE if is_extensible else tag,
            self.channels,
            self.fs,
            self.fs * self.frame_bytes,
            self.frame_bytes,
            bits,
        )
        if is_extensible:
            speakers = _SPEAKERS.get(self.channels, 0)
            fields += struct.pack("<HHIH", 22, bits, speakers, tag) + _GUID_TAIL
        elif tag != _TAG_PCM:
            fields += struct.pack("<H", 0)
        return _chunk(b"fmt ", fields)


def gaps_of(form: WavForm, notes: Notes) -> Gaps:
    """Return an empty list of gaps whose limit fits into the header."""
    fixed = len(_before_guano(form, notes, 0, 0)) + 16
    return Gaps(max(0, HEADER_BYTES - fixed - _guano_bytes(notes)))


def _guano_bytes(notes: Notes) -> int:
    # With the longest possible numbers, and the key of the list.
    longest = Gaps(0, count=1, samples=1)
    return len(notes.guano(longest, 1 << 62).encode()) + 64


def header(form: WavForm, notes: Notes, gaps: Gaps, n_samples: int) -> bytes:
    """Return the first ``HEADER_BYTES`` bytes of a file with this number of samples per channel.

    A ``JUNK`` chunk reserves the place of ``ds64``, which has the sizes from ``RF64_FROM`` on.

    References
    ----------
    .. [1] EBU Tech 3306, RF64: ``ds64`` in the place of ``JUNK``, 32-bit sizes all ones.
    .. [2] EBU Tech 3285, BWF: ``bext``.
    .. [3] Microsoft, Multiple Channel Audio Data and WAVE Files: WAVE_FORMAT_EXTENSIBLE.
    """
    data_bytes = n_samples * form.frame_bytes
    before = _before_guano(form, notes, n_samples, data_bytes)
    room = HEADER_BYTES - len(before) - 16
    guano = notes.guano(gaps, n_samples).encode()[:room]
    size = _SIZES_ELSEWHERE if _is_rf64(data_bytes) else data_bytes
    # Empty lines reserve space for later gaps.
    return before + _chunk(b"guan", guano.ljust(room, b"\n")) + struct.pack("<4sI", b"data", size)


def _is_rf64(data_bytes: int) -> bool:
    return HEADER_BYTES + data_bytes >= RF64_FROM


def _before_guano(form: WavForm, notes: Notes, n_samples: int, data_bytes: int) -> bytes:
    chunks = form.chunk()
    if form.subtype == "f32":
        chunks += _chunk(b"fact", struct.pack("<I", min(n_samples, _SIZES_ELSEWHERE)))
    return _riff_and_sizes(n_samples, data_bytes) + chunks + _bext(form, notes)


def _riff_and_sizes(n_samples: int, data_bytes: int) -> bytes:
    """Return the first 48 bytes."""
    riff_bytes = HEADER_BYTES + data_bytes + data_bytes % 2 - 8
    if _is_rf64(data_bytes):
        sizes = _chunk(b"ds64", struct.pack("<QQQI", riff_bytes, data_bytes, n_samples, 0))
        return struct.pack("<4sI4s", b"RF64", _SIZES_ELSEWHERE, b"WAVE") + sizes
    return struct.pack("<4sI4s", b"RIFF", riff_bytes, b"WAVE") + _chunk(b"JUNK", bytes(28))


def _bext(form: WavForm, notes: Notes) -> bytes:
    """Return the ``bext`` chunk: date and time, and the first sample's offset in the day, in UTC.

    They are zero bytes and 0 if the begin of the file is unknown.
    """
    date_and_time, midnight_ns = bytes(18), 0
    if notes.begin_utc_ns is not None:
        date_and_time = _date_and_time(utc(notes.begin_utc_ns))
        midnight_ns = notes.begin_utc_ns % (86400 * 10**9)
    mode = {1: "mono", 2: "stereo"}.get(form.channels, f"{form.channels} channels")
    bits = 8 * SAMPLE_BYTES[form.subtype]
    history = f"A=PCM,F={form.fs},W={bits},M={mode},T={_ascii(notes.software, 32).decode()}\r\n"
    return _chunk(
        b"bext",
        _ascii(notes.source, 256)
        + _ascii(notes.software, 32)
        + bytes(32)
        + date_and_time
        + struct.pack("<QH", (midnight_ns * form.fs + 10**9 // 2) // 10**9, 1)
        + bytes(_BEXT_BYTES - 348)
        + history.encode("ascii").replace(b"\0", b""),
    )


def _date_and_time(time: dt.datetime) -> bytes:
    return f"{time:%Y-%m-%d%H:%M:%S}".encode("ascii")


def _ascii(text: str, length: int) -> bytes:
    return text.encode("ascii", "replace")[:length].ljust(length, b"\0")


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", name, len(content)) + content + bytes(len(content) % 2)


def with_length(page: bytes, n_samples: int) -> bytes:
    """Change the number of samples in a header made by ``header``.

    Raises
    ------
    InputError
        If it is not such a header, or the number does not fit.
    """
    form, chunks_end = read_form(page)
    data_bytes = n_samples * form.frame_bytes
    new = bytearray(page)
    new[:48] = _riff_and_sizes(n_samples, data_bytes)
    if new[chunks_end : chunks_end + 4] == b"fact":
        struct.pack_into("<I", new, chunks_end + 8, min(n_samples, _SIZES_ELSEWHERE))
    size = _SIZES_ELSEWHERE if _is_rf64(data_bytes) else data_bytes
    struct.pack_into("<I", new, HEADER_BYTES - 4, size)
    return _with_guano_length(bytes(new), n_samples / form.fs)


def read_form(page: bytes) -> tuple[WavForm, int]:
    """Read the form of the samples from a header, and the end of its ``fmt`` chunk.

    The chunk must be identical to that of ``WavForm.chunk`` for its numbers: a damaged one would
    change the meaning of all samples.

    Raises
    ------
    InputError
        If ``header`` did not make it.
    """
    is_layout_of_spectrod = (
        page[8:12] == b"WAVE" and page[48:52] == b"fmt " and page[-8:-4] == b"data"
    )
    if len(page) != HEADER_BYTES or page[:4] not in (b"RIFF", b"RF64") or not is_layout_of_spectrod:
        raise InputError("not a header of spectrod")
    channels, fs, byte_rate, frame_bytes, bits = struct.unpack_from("<HIIHH", page, 58)
    # A byte rate has 32 bits, so the product of a valid chunk does too.
    if channels and fs and byte_rate == fs * frame_bytes:
        for subtype, n_bytes in SAMPLE_BYTES.items():
            form = WavForm(fs, channels, subtype)
            if (8 * n_bytes, form.frame_bytes) != (bits, frame_bytes):
                continue
            chunk = form.chunk()
            end = 48 + len(chunk)
            if page[48:end] == chunk:
                _check_chunks(page, end, subtype)
                return form, end
    raise InputError(f"its fmt chunk is damaged: channels={channels}, fs={fs}, bits={bits}")


def _check_chunks(page: bytes, begin: int, subtype: Subtype) -> None:
    """Raise InputError if the sizes of the chunks after ``fmt`` do not lead to the samples."""
    for name in (b"fact", b"bext", b"guan") if subtype == "f32" else (b"bext", b"guan"):
        size = struct.unpack_from("<I", page, begin + 4)[0] if begin < HEADER_BYTES - 16 else 0
        if page[begin : begin + 4] != name:
            raise InputError(f"its {name.decode()} chunk is damaged or not where it must be")
        begin += 8 + size + size % 2
    if begin != HEADER_BYTES - 8:
        raise InputError(f"its samples start at {begin + 8}: must be {HEADER_BYTES}")


def named_samples(page: bytes, form: WavForm) -> int:
    """Return the number of samples that a header states.

    Raises
    ------
    InputError
        If its sizes contradict each other: one of them is damaged, and it is unknown which.
    """
    if page.startswith(b"RF64"):
        data_bytes = int(struct.unpack_from("<Q", page, 28)[0])
    else:
        data_bytes = int(struct.unpack_from("<I", page, HEADER_BYTES - 4)[0])
    n_samples = data_bytes // form.frame_bytes
    is_possible = data_bytes < _FILE_BYTES_MAX and data_bytes == n_samples * form.frame_bytes
    if not (is_possible and page[:48] == _riff_and_sizes(n_samples, data_bytes)):
        raise InputError(f"its sizes contradict each other: {data_bytes} bytes of samples")
    return n_samples


def _with_guano_length(page: bytes, length_s: float) -> bytes:
    """Change the line with the length; padding by empty lines keeps the size."""
    before, key, rest = page[:-8].partition(b"\nLength: ")
    _, newline, rest = rest.partition(b"\n")
    if not (key and newline):
        raise InputError("its guan chunk is damaged: no line starts with Length")
    text = before + key + f"{length_s:.6f}\n".encode() + rest.rstrip(b"\n") + b"\n"
    if len(text) > HEADER_BYTES - 8:
        raise InputError("its guan chunk is damaged: has no room for the length")
    return text.ljust(HEADER_BYTES - 8, b"\n") + page[-8:]
