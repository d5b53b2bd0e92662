"""Faults of the disks that recordings are written to."""

import errno
import os
import resource
from random import Random
from typing import Final

from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import Expected
from spectrod.apps.bench.fault_soak.site import SoakSite

_ERRORS = (errno.EIO, errno.EROFS, errno.EACCES, errno.ENOSPC, errno.ESTALE)
_NOTICED_S = 2.5  # a folder is compared with its path once a second
_PIECE_BYTES = 1 << 20

_WRITERS = 6
"""Files that are open at a time: spectra, sound and a pyramid of three recordings."""
_FAILED = Expected(r"^record\.failed .*; it is tried again$", 1, _WRITERS)
_RESUMED = Expected(r"^record\.resumed ", 1, _WRITERS)
_RECOVERED = Expected(r"^record\.recovered ", 0, _WRITERS)
_NO_INDEX = Expected(r"is slower to search: no index", 0, _WRITERS)
_CANNOT_DELETE = Expected(r"^record\.failed .*cannot delete", 0, 3)


def _error(site: SoakSite, rng: Random) -> str:
    number, seconds = rng.choice(_ERRORS), rng.uniform(1.0, 8.0)
    site.set_disk_error(str(number))
    site.hold(seconds)
    site.set_disk_error("")
    return f"{errno.errorcode[number]} for {seconds:.1f} s"


def _hang(site: SoakSite, rng: Random) -> str:
    seconds = rng.uniform(1.0, 6.0)
    site.set_disk_error("hang")
    site.hold(seconds)
    site.set_disk_error("")
    return f"for {seconds:.1f} s"


def _full(site: SoakSite, rng: Random) -> str:
    seconds = rng.uniform(2.0, 8.0)
    path = site.small / "others"
    with path.open("wb", buffering=0) as others:
        n_bytes = _fill(others.fileno())
    site.hold(seconds)
    path.unlink()
    return f"{n_bytes >> 20} MiB of others for {seconds:.1f} s"


def _fill(fd: int) -> int:
    """Write until the disk has no room, to the last byte; return how many were written."""
    n_bytes, piece = 0, bytes(_PIECE_BYTES)
    while piece:
        try:
            n_bytes += os.write(fd, piece)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            piece = piece[: len(piece) // 2]
    return n_bytes


def _low(site: SoakSite, rng: Random) -> str:
    """Leave less than ``min_free_mb`` of the recording ``rows``, but room for the others."""
    seconds = rng.uniform(2.0, 6.0)
    path = site.small / "others"
    found = os.statvfs(site.small)
    free = found.f_bavail * found.f_frsize
    with path.open("wb") as others:
        os.posix_fallocate(others.fileno(), 0, max(1, free - 2_500_000))
    site.hold(seconds)
    path.unlink()
    return f"for {seconds:.1f} s"


def _file_limit(site: SoakSite, rng: Random) -> str:
    """Let files not become longer, as a quota or a file system with small files does."""
    seconds = rng.uniform(1.0, 4.0)
    before = resource.prlimit(site.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(site.pid, resource.RLIMIT_FSIZE, (4096, before[1]))
    site.hold(seconds)
    resource.prlimit(site.pid, resource.RLIMIT_FSIZE, before)
    return f"for {seconds:.1f} s"


def _moved(site: SoakSite, rng: Random) -> str:
    name = rng.choice(("wav", "flac"))
    place = site.disks / ("large" if name == "wav" else "small") / name
    place.rename(place.with_name(f"{name}-moved-{rng.randrange(10**9)}"))
    site.hold(_NOTICED_S)
    return name


def _no_small_disk(site: SoakSite) -> str:
    return "" if site.has_small_disk else "no file system can be mounted"


FAULTS: Final = (
    Fault(
        "disk.error",
        _error,
        (_FAILED, _RESUMED, _RECOVERED, _NO_INDEX, _CANNOT_DELETE),
        recovers_s=45.0,
    ),
    Fault("disk.hang", _hang),
    Fault(
        "disk.full",
        _full,
        (
            _FAILED,
            _RESUMED,
            _RECOVERED,
            _NO_INDEX,
            Expected(r"^record\.full .*recording rows: ", 1),
            Expected(r"^record\.room .*recording rows: ", 1),
        ),
        why_not=_no_small_disk,
        recovers_s=45.0,
    ),
    Fault(
        "disk.low",
        _low,
        (
            Expected(r"^record\.full .*recording rows: .*min_free_mb=4 ", 1),
            Expected(r"^record\.room .*recording rows: ", 1),
        ),
        why_not=_no_small_disk,
    ),
    Fault(
        "disk.file_limit",
        _file_limit,
        (
            # A new file may begin below the limit, and fail at it again.
            Expected(_FAILED.pattern, 1, 2 * _WRITERS),
            Expected(_RESUMED.pattern, 1, 2 * _WRITERS),
            _RECOVERED,
            _NO_INDEX,
            _CANNOT_DELETE,
        ),
        recovers_s=45.0,
    ),
    Fault(
        "disk.moved",
        _moved,
        (Expected(r"^record\.moved "),),
    ),
)
"""Faults of disks."""
