"""How many descriptors this process may have open."""

import resource
from contextlib import suppress

DESCRIPTORS_MAX = 65536
"""More are not asked for: some systems allow 10^9, for which the kernel would keep tables."""


def raise_limit() -> int:
    """Raise the soft limit of open descriptors as far as the hard one and 65536 allow.

    The soft limit of most systems, 1024, is for programs that use ``select``; this one uses
    ``poll``. Where a sandbox forbids it, the limit stays as it is.

    Returns
    -------
    limit : int
        The soft limit as it is now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # Python has the latter for EPERM
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return current_limit()


def current_limit() -> int:
    """Return the soft limit of open descriptors; of none, 65536."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft
