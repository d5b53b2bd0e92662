"""Sound files as programs write them and as they break.

Each file is one of libsndfile's; then a defect is put into its header or its end.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

FS = 8000
N = 1001
HOSTILE_LIST = b"INFOZZZZ" + struct.pack("<i", -8) + bytes(24)
"""A list of texts in which libsndfile 1.2 loops endlessly."""


@dataclass(frozen=True)
class Form:
    """A format: how libsndfile makes it, and where its header has the size of the samples."""

    format: str
    suffix: str
    marker: bytes
    size: str
    subtypes: tuple[str, ...]
    before: int = 0
    """Bytes between the size and the samples, which are part of the size."""
    open_size: int = -1
    chunk: str = "<4sI"
    first_chunk: int = 12
    magic: bytes = field(default=b"")

    def make(self, folder: Path, subtype: str, channels: int, n: int = N) -> bytes:
        """Make a whole file; its name is that of a time."""
        path = folder / f"20260501_043000{self.suffix}"
        samples = np.random.default_rng(5).uniform(-0.9, 0.9, (n, channels))
        soundfile.write(path, samples, FS, subtype, format=self.format)
        data = path.read_bytes()
        return self.magic + data[len(self.magic) :]

    def begin(self, data: bytes) -> int:
        """Return where the samples begin."""
        if self.format == "AU":
            return 24
        return self._size_at(data) + struct.calcsize(self.size) + self.before

    def stated(self, data: bytes) -> int:
        """Return the size of the samples that the header states."""
        (size,) = struct.unpack_from(self.size, data, self._size_at(data))
        return size - self._bias

    def with_size(self, data: bytes, size: int) -> bytes:
        """Put another size of the samples into the header."""
        size = size + self._bias if size >= 0 else size
        n_bytes = struct.calcsize(self.size)
        at = self._size_at(data)
        order = "little" if self.size[0] == "<" else "big"
        number = (size % (1 << 8 * n_bytes)).to_bytes(n_bytes, order)
        return data[:at] + number + data[at + n_bytes :]

    def chunk_of(self, content: bytes, name: bytes = b"LIST") -> bytes:
        """Return a foreign chunk."""
        size = len(content)
        if self.format == "W64":
            name = b"list" + bytes(12)
            size += 24
        packed = struct.pack(self.chunk, name, size) + content
        return packed + bytes(-len(content) % {"W64": 8, "CAF": 1}.get(self.format, 2))

    @property
    def _bias(self) -> int:
        return self.before + (24 if self.format == "W64" else 0)

    def _size_at(self, data: bytes) -> int:
        if self.format == "RF64":
            return 12 + 8 + 8
        if self.format == "AU":
            return 8
        return data.index(self.marker) + len(self.marker)


PLAIN = ("PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
FORMS = {
    "WAV": Form("WAV", ".wav", b"data", "<I", ("PCM_U8", *PLAIN, "MS_ADPCM", "IMA_ADPCM")),
    "WAVEX": Form("WAVEX", ".wav", b"data", "<I", ("PCM_U8", *PLAIN)),
    "RF64": Form("RF64", ".rf64", b"data", "<Q", ("PCM_U8", *PLAIN)),
    "BW64": Form("RF64", ".wav", b"data", "<Q", ("PCM_U8", *PLAIN), magic=b"BW64"),
    "W64": Form(
        *("W64", ".w64", b"data\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a", "<Q"),
        ("PCM_U8", *PLAIN, "MS_ADPCM"),
        open_size=-2,
        chunk="<16sQ",
        first_chunk=40,
    ),
    "AIFF": Form(
        *("AIFF", ".aiff", b"SSND", ">I", ("PCM_S8", *PLAIN, "IMA_ADPCM")),
        before=8,
        chunk=">4sI",
    ),
    "AU": Form("AU", ".au", b".snd", ">I", ("PCM_S8", *PLAIN, "G721_32")),
    "CAF": Form(
        *("CAF", ".caf", b"data", ">Q", ("PCM_S8", *PLAIN, "ALAC_16")),
        before=4,
        chunk=">4sQ",
        first_chunk=8,
    ),
}
CODECS = ("MS_ADPCM", "IMA_ADPCM", "G721_32", "ALAC_16")


def reference(path):
    """Return what libsndfile reads."""
    return soundfile.read(path, dtype="float32", always_2d=True)[0].T


# ---- the defects: each makes bytes of those of a whole file


class Defect(NamedTuple):
    """A defect, and whether the samples are all there and nothing needs to be said."""

    change: Callable[[Form, bytes], bytes]
    is_harmless: bool


def _before_samples(form, data, chunk):
    at = form.first_chunk
    if form.format == "RF64":
        at += 8 + struct.unpack_from("<I", data, 16)[0]  # ds64 comes first
    return data[:at] + chunk + data[at:]


def end_of(form, data):
    """Return where the samples end, padding included."""
    end = form.begin(data) + form.stated(data)
    if form.format == "RF64":
        end = data.index(b"data") + 8 + form.stated(data)
    return end


DEFECTS = {
    "none": Defect(lambda _form, data: data, is_harmless=True),
    "size of 0": Defect(lambda form, data: form.with_size(data, 0), is_harmless=False),
    "open size": Defect(lambda form, data: form.with_size(data, form.open_size), is_harmless=True),
    "size too large": Defect(
        lambda form, data: form.with_size(data, form.stated(data) + 960_000), is_harmless=False
    ),
    "3 GB announced": Defect(
        lambda form, data: form.with_size(data, 3_000_000_000), is_harmless=False
    ),
    "zeros behind": Defect(lambda _form, data: data + bytes(4096), is_harmless=True),
    "tag behind": Defect(lambda _form, data: data + b"TAG" + bytes(125), is_harmless=True),
    "chunk behind": Defect(
        lambda form, data: data + form.chunk_of(b"\x11" * 500), is_harmless=True
    ),
    "chunk behind, cut off": Defect(
        lambda form, data: data + form.chunk_of(b"\x11" * 500)[:-100], is_harmless=True
    ),
    "chunk before": Defect(
        lambda form, data: _before_samples(form, data, form.chunk_of(b"\x11" * 501)),
        is_harmless=True,
    ),
    "hostile list": Defect(
        lambda form, data: _before_samples(form, data, form.chunk_of(HOSTILE_LIST)),
        is_harmless=True,
    ),
    "id3 in front": Defect(
        lambda _form, data: b"ID3\x04\0\0\0\0\x02\x01" + bytes(257) + data, is_harmless=True
    ),
    "bytes behind": Defect(
        lambda _form, data: data + np.random.default_rng(1).bytes(4000), is_harmless=False
    ),
    "samples behind a chunk": Defect(
        lambda form, data: data + form.chunk_of(bytes(4000), b"data"), is_harmless=False
    ),
}
WITHOUT_CHUNKS = ("chunk behind", "chunk behind, cut off", "chunk before", "hostile list",
                   "samples behind a chunk")  # fmt: skip
