"""What the header of a sound file states, whatever its format."""

from collections.abc import Callable
from dataclasses import dataclass

from spectrod.dsp.spectrum_rules import CHANNELS_MAX, FS_MAX_HZ, FS_MIN_HZ
from spectrod.lib.errors import InputError
from spectrod.source.files.codings import Coding
from spectrod.source.files.container.container_chunks import Bytes, ContainerChunk
from spectrod.source.files.container.extent import Stated

CONTENT_MAX = 1 << 16
"""Bytes that are read of a chunk that describes the samples."""

MPEG = "MPEG"
"""Subtype of MPEG audio of any layer."""

_LITTLE: dict[str, Coding] = {
    "PCM_U8": Coding("u1", 2.0**7, 2.0**7),
    "PCM_S8": Coding("i1", 0.0, 2.0**7),
    "PCM_16": Coding("<i2", 0.0, 2.0**15),
    "PCM_24": Coding("s24", 0.0, 2.0**31),
    "PCM_32": Coding("<i4", 0.0, 2.0**31),
    "FLOAT": Coding("<f4"),
    "DOUBLE": Coding("<f8"),
    "ULAW": Coding("ulaw", 0.0, 2.0**15),
    "ALAW": Coding("alaw", 0.0, 2.0**15),
}
"""Codings of a number for each sample, by libsndfile's names."""
_BIG: dict[str, Coding] = _LITTLE | {
    "PCM_16": Coding(">i2", 0.0, 2.0**15),
    "PCM_24": Coding("s24be", 0.0, 2.0**31),
    "PCM_32": Coding(">i4", 0.0, 2.0**31),
    "FLOAT": Coding(">f4"),
    "DOUBLE": Coding(">f8"),
}
_BY_BYTES = {1: "PCM_S8", 2: "PCM_16", 3: "PCM_24", 4: "PCM_32"}


@dataclass(frozen=True, slots=True)
class SoundHeader:
    """What a header states.

    Attributes
    ----------
    form : str
        Name of the format of the file, such as ``WAV``.
    subtype : str
        Name of the format of the samples, as libsndfile has it; empty if it is a codec's.
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    coding : Coding or None
        Coding of one number for each sample; None if it is a codec's.
    stated : Stated
        Position and size of the samples.
    head : callable
        Makes the least header with which libsndfile decodes so many bytes of samples of a codec.
    n_samples : int
        Samples per channel of a codec that its header states; 0 if it does not.
    block_samples : int
        Samples per channel of a codec's block, the last one of which is padded; 0 if unknown.
    """

    form: str
    subtype: str
    fs: float
    channels: int
    coding: Coding | None
    stated: Stated
    head: Callable[[int], bytes]
    n_samples: int = 0
    block_samples: int = 0

    @property
    def is_mpeg(self) -> bool:
        """Whether the samples are a stream of MPEG audio."""
        return self.subtype == MPEG


def coding_of(subtype: str, *, is_big: bool = False) -> Coding:
    """Return how the numbers of a subtype are stored."""
    return (_BIG if is_big else _LITTLE)[subtype]


def integers(n_bytes: int) -> str:
    """Return the subtype of signed integers of so many bytes; "" if there is none."""
    return _BY_BYTES.get(n_bytes, "")


def checked(path: str, fs: float, channels: int) -> None:
    """Check what any header states.

    Raises
    ------
    InputError
        If the sample rate or the number of channels is outside their bounds.
    """
    if not FS_MIN_HZ <= fs <= FS_MAX_HZ:
        rule = f"must be {FS_MIN_HZ:g} to {FS_MAX_HZ:g} Hz"
        raise InputError(f"{path}: has a sample rate of {fs:g} Hz: {rule}")
    if not channels:
        raise InputError(f"{path}: has no channels")
    if channels > CHANNELS_MAX:
        raise InputError(f"{path}: has {channels} channels: must be at most {CHANNELS_MAX}")


def full(source: Bytes, chunk: ContainerChunk, n_max: int = CONTENT_MAX) -> bytes:
    """Return the content of a chunk, as far as it is there, at most ``n_max`` bytes of it."""
    return source.at(chunk.begin, min(chunk.size, n_max))
