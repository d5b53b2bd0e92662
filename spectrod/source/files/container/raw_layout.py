"""Finds samples that the analysis can read as they are in the file."""

from dataclasses import dataclass

from spectrod.dsp.blocks import SampleFormat
from spectrod.source.files.container import FileBytes, extent_of, read_header
from spectrod.source.opening import open_binary

_NATIVE: dict[str, SampleFormat] = {
    "<i2": "int16",
    "s24": "int24",
    "<i4": "int32",
    "<f4": "float32",
}
"""Formats that kernels read, by the type of a coding."""


@dataclass(frozen=True, slots=True)
class PcmLayout:
    """Position and format of the samples in a file.

    Attributes
    ----------
    form, subtype : str
        Format of the file and of its samples, for messages.
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    sample_format : SampleFormat
        Format of a sample.
    begin : int
        Offset of the first sample in the file [bytes].
    n_samples : int
        Samples per channel, >= 1; all of them are in the file.
    note : str
        How a wrong header was understood; "" if it is right.
    """

    form: str
    subtype: str
    fs: float
    channels: int
    sample_format: SampleFormat
    begin: int
    n_samples: int
    note: str = ""


def find_layout(path: str) -> PcmLayout | None:
    """Find the samples of a WAV, RF64, BW64, W64, AIFF-C, AU or CAF file.

    Parameters
    ----------
    path : str
        Any file.

    Returns
    -------
    layout : PcmLayout or None
        None for anything that is not plain: another format, a codec, big-endian numbers, a file
        that is damaged or has no whole number of samples.

    Raises
    ------
    InputError
        If the header does not say what the samples are.
    OSError
        If the file cannot be read.
    """
    with open_binary(path) as file:
        source = FileBytes(file)
        header = read_header(path, source)
        if header is None or header.coding is None or header.coding.dtype not in _NATIVE:
            return None
        extent = extent_of(source, header.stated)
    n_samples, rest = divmod(extent.size, header.stated.step_bytes)
    if extent.damage or rest or not n_samples:
        return None
    return PcmLayout(
        header.form,
        header.subtype,
        header.fs,
        header.channels,
        _NATIVE[header.coding.dtype],
        header.stated.begin,
        n_samples,
        extent.note,
    )
