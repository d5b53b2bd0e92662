"""The allocator of the C library: freed memory that a process keeps, and for how many threads."""

import ctypes

KEPT_BYTES = 64 << 20
"""Freed memory at the end of the heap that a process keeps."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of ``mallopt``, see mallopt(3)."""
_MAPPED_BYTES = 32 << 20
"""Size from which on an array has its own pages, which the system takes back: the largest one that
``mallopt`` takes on 64 bits."""
_ARENAS = 2
_LARGE_BYTES = 256 << 10
_LEFT_BYTES = 1 << 20
"""Freed memory at the end of the heap that a process keeps which gives back large arrays: smaller
ones are made and freed again and again."""


def keep_freed_memory() -> None:
    """Keep freed memory for the next arrays; call it at the start of a process.

    By default the GNU C library gives the end of the heap back to the system when it has 128 KiB
    free, so an array of some 100 KB that is made and freed again and again gets new pages each
    time. To clear these takes the system several times as long as NumPy computes with them. Does
    nothing with other C libraries, which have no ``mallopt``.
    """
    _set({_MMAP_THRESHOLD: _MAPPED_BYTES, _TRIM_THRESHOLD: KEPT_BYTES})


def map_large_arrays() -> None:
    """Give freed arrays of 256 KiB and more back to the system at once; call it at the start.

    By default the GNU C library takes such arrays from the heap as soon as one of them was freed:
    where many are made for a moment, between rows that stay for minutes, the heap keeps the sum of
    its busiest moments. New pages for each array cost a process little that computes more with it.
    """
    _set({_MMAP_THRESHOLD: _LARGE_BYTES, _TRIM_THRESHOLD: _LEFT_BYTES})


def share_arenas() -> None:
    """Let all threads share two heaps; call it before the process starts threads.

    By default the GNU C library gives each thread a heap, up to eight for each processor. A driver
    loads kernels in whichever thread asks, and what it frees there serves no other: a daemon whose
    analysis was changed some dozen times held 450 MB that way, and 360 MB with two heaps.
    """
    _set({_ARENA_MAX: _ARENAS})


def give_back_memory() -> None:
    """Give freed memory back to the system; call it after much was dropped.

    Freed pieces between others stay with the process otherwise, however many they are: a server
    that runs for months would keep what it needed in its busiest hour. It takes some milliseconds.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set(parameters: dict[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in parameters.items():
            mallopt(parameter, value)
