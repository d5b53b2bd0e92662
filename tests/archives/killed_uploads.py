"""The command ``spectrod upload``, in a process that kills itself at a request."""

import os
import signal

from spectrod.cli import main
from spectrod.source.store import stores, uploads


def upload(environment, arguments, n_request, is_answered):
    """Run the command; die before the request of a number, or when it has been answered."""
    os.environ.update(environment)
    request, n_asked = stores.request, 0

    def counted(*args):
        nonlocal n_asked
        n_asked += 1
        if n_asked == n_request:
            if is_answered:
                request(*args).exception()
            os.kill(os.getpid(), signal.SIGKILL)
        return request(*args)

    stores.request = uploads.request = counted
    main(["upload", *arguments])
