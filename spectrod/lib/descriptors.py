"""The limit of open descriptors of this process."""

import resource
from contextlib import suppress

DESCRIPTORS_MAX = 65536
"""Upper bound of the limit: some systems allow 10^9, for which the kernel would keep tables."""


def raise_limit() -> int:
    """Raise the soft limit of open descriptors to the hard limit, at most 65536.

    The soft limit of most systems, 1024, is for programs that use ``select``; this one uses
    ``poll``. Where a sandbox forbids it, the limit stays as it is.

    Returns
    -------
    limit : int
        The soft limit afterwards.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(OSError, ValueError):  # Python raises ValueError for EPERM
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return current_limit()


def current_limit() -> int:
    """Return the soft limit of open descriptors; 65536 if there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft
