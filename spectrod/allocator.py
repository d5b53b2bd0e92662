"""The allocator of the C library: freed memory that a process keeps."""

import ctypes

KEPT_BYTES = 64 << 20
"""Freed memory at the end of the heap that a process keeps."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of ``mallopt``, see mallopt(3)."""
_MAPPED_BYTES = 32 << 20
"""Size from which on an array has its own pages, which the system takes back: the largest one that
``mallopt`` takes on 64 bits."""


def keep_freed_memory() -> None:
    """Keep freed memory for the next arrays; call it at the start of a process.

    By default the GNU C library gives the end of the heap back to the system when it has 128 KiB
    free, so an array of some 100 KB that is made and freed again and again gets new pages each
    time. To clear these takes the system several times as long as NumPy computes with them. Does
    nothing with other C libraries, which have no ``mallopt``.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
