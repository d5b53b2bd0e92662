"""Containers and codings of sound that libsndfile does not decode, by their first bytes."""

import re
import shlex

HEAD_BYTES = 1 << 12
"""Bytes of a file by which it is recognised."""

_FORMS: tuple[tuple[str, bytes], ...] = (
    ("MP4, M4A or another form of QuickTime", rb".{4}(ftyp|moov|mdat|wide|free|skip)"),
    ("WMA or ASF", rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
    ("Matroska or WebM", rb"\x1a\x45\xdf\xa3"),
    ("AAC", rb"\xff[\xf0\xf1\xf8\xf9]|\x56[\xe0-\xff]|ADIF"),
    ("AMR", rb"#!AMR"),
    ("AC-3 or E-AC-3", rb"\x0b\x77|\x77\x0b"),
    ("DTS", rb"\x7f\xfe\x80\x01|\xfe\x7f\x01\x80|\xff\x1f\x00\xe8|\x1f\xff\xe8\x00|DTSHDHDR"),
    ("DSD (DSF)", rb"DSD \x1c"),
    ("DSD (DSDIFF)", rb"FRM8.{8}DSD "),
    ("WavPack", rb"wvpk"),
    ("Monkey's Audio (APE)", rb"MAC "),
    ("True Audio (TTA)", rb"TTA[12]"),
    ("TAK", rb"tBaK"),
    ("OptimFROG", rb"OFR "),
    ("Shorten", rb"ajkg"),
    ("Musepack", rb"MPCK|MP\+"),
    ("Ogg with Speex", rb"OggS.{24}Speex "),
    ("Ogg with FLAC", rb"OggS.{24}\x7fFLAC"),
    ("Ogg without a stream of sound", rb"OggS"),
    ("RealAudio or RealMedia", rb"\.ra\xfd|\.RMF"),
    ("Flash video", rb"FLV\x01"),
    (
        "WAV with AAC, WMA, AC-3 or DTS",
        rb"RIFF.{4}WAVE.{0,512}?fmt .{4}(\xff\x00|\x10\x16|[\x60-\x63]\x01|[\x00\x01\x92]\x20)",
    ),
    ("AVI", rb"RIFF.{4}AVI "),
    ("an MPEG transport stream", rb"\x47.{187}\x47.{187}\x47"),
    ("an MPEG program stream", rb"\x00\x00\x01\xba"),
)
_PATTERNS = tuple((name, re.compile(form, re.DOTALL)) for name, form in _FORMS)
_UNKNOWN_CODING = "unsupported encoding"
"""In libsndfile's text for a container that it knows with a coding that it does not."""


def foreign_form(head: bytes) -> str:
    """Return the name of the form of a file that libsndfile does not decode; "" if unknown.

    Parameters
    ----------
    head : bytes
        Its first ``HEAD_BYTES`` bytes, after tags of ID3v2.
    """
    return next((name for name, pattern in _PATTERNS if pattern.match(head)), "")


def refusal(path: str, head: bytes, reason: str) -> str:
    """Return the line about a file that libsndfile refuses.

    Parameters
    ----------
    path : str
        The file.
    head : bytes
        See ``foreign_form``.
    reason : str
        What libsndfile says.
    """
    form = foreign_form(head)
    if not form and _UNKNOWN_CODING not in reason:
        return f"{path}: not a sound file: {reason}"
    what = f"{form}, which" if form else "sound in a coding that"
    return (
        f"{path}: {what} spectrod does not decode; FFmpeg does: ffmpeg -v error -i "
        f"{shlex.quote(path)} -f f32le -ac 2 -ar 48000 - | spectrod record - --samplerate 48000 "
        "--channels 2 --format f32le -o OUT.png"
    )
