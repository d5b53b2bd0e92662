"""Formats whose headers only libsndfile reads: it opens them in a process of its own first.

Its walks through chunks trust their sizes, and some do not end: as with 8SVX files, whose ``ANNO``
claims 4 GiB less 8 bytes. C code that does not end takes no signal, so it must be another process.
"""

import os
import re
import subprocess
import sys

from spectrod.lib.errors import InputError

HEAD_BYTES = 32
"""First bytes of a file by which it is recognised."""
OPEN_MAX_S = 10.0
"""Time that libsndfile may take to open a file [s]."""

_FORMS = re.compile(
    rb"FORM.{4}(8SVX|16SV)|NIST_1A\n|Creative Voice File|\x64\xa3.\x00|\x00.\xa3\x64| paf|fap "
    rb"|PVF1\n|2BIT|\x01\x04|ALaw|\xf0\x7e|Extended Instrument: |MATLAB "
    rb"|\x00\x00(\x00\x00|\x03\xe8)(\x00\x00\x00\x01){2}|\x00{4}(\x01\x00\x00\x00){2}",
    re.DOTALL,
)
"""8SVX, NIST SPHERE, VOC, IRCAM, PAF, PVF, AVR, MPC 2000, Psion, SDS, FastTracker, MATLAB."""
_OPEN = """
import sys, soundfile
with open(sys.argv[1], "rb") as file:
    try:
        soundfile.SoundFile(file).close()
    except soundfile.LibsndfileError:
        pass
"""


def is_rare(head: bytes) -> bool:
    """Return whether a file with these first bytes may be of such a format."""
    return _FORMS.match(head) is not None


def check_it_opens(path: str) -> None:
    """Check that libsndfile opens, or refuses, a local file within ``OPEN_MAX_S``.

    Raises
    ------
    InputError
        If it does not.
    """
    command: list[str | bytes] = [sys.executable, "-c", _OPEN, os.fsencode(path)]
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and a path
            command, check=False, stdin=nothing, stdout=nothing, stderr=nothing, timeout=OPEN_MAX_S
        )
    except subprocess.TimeoutExpired as error:
        text = f"libsndfile does not open it within {OPEN_MAX_S:g} s"
        raise InputError(f"{path}: damaged: {text}") from error
    if done.returncode:
        raise InputError(f"{path}: damaged: libsndfile fails on its header")
