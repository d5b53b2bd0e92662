"""Headers of sound files that keep samples as they are: WAV, RF64, BW64, W64, AIFF, AU, CAF.

libsndfile is never given such a file: its own walk through the chunks trusts sizes, and may not
end. It decodes codecs in them behind a header that is made here.
"""

from spectrod.source.files.container.aiff import is_aiff, read_aiff
from spectrod.source.files.container.au import is_au, read_au
from spectrod.source.files.container.caf import is_caf, read_caf
from spectrod.source.files.container.container_chunks import Bytes, FileBytes
from spectrod.source.files.container.container_header import SoundHeader
from spectrod.source.files.container.extent import SampleExtent, Stated, extent_of
from spectrod.source.files.container.wave import is_wave, read_wave

__all__ = [
    "HEAD_BYTES",
    "Bytes",
    "FileBytes",
    "SampleExtent",
    "SoundHeader",
    "Stated",
    "extent_of",
    "read_header",
]

HEAD_BYTES = 40
"""First bytes of a format that tell which one it is."""
_FORMATS = ((is_wave, read_wave), (is_aiff, read_aiff), (is_au, read_au), (is_caf, read_caf))
_ID3_BYTES = 10


def read_header(path: str, source: Bytes) -> SoundHeader | None:
    """Read the header of a file.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    source : Bytes
        Its bytes.

    Returns
    -------
    header : SoundHeader or None
        None for a file of another format.

    Raises
    ------
    InputError
        If the header does not say what the samples are, or where.
    OSError
        If the file cannot be read.
    """
    at = _after_id3(source)
    head = source.at(at, HEAD_BYTES)
    read = next((read for is_one, read in _FORMATS if is_one(head)), None)
    return read(path, source, at) if read is not None else None


def _after_id3(source: Bytes) -> int:
    """Return where a file begins behind the tag of ID3v2 that some programs put in front of any."""
    head = source.at(0, _ID3_BYTES)
    if head[:3] != b"ID3" or len(head) < _ID3_BYTES or any(byte & 0x80 for byte in head[6:]):
        return 0
    return _ID3_BYTES + sum(byte << 7 * (3 - k) for k, byte in enumerate(head[6:]))
