"""``python -m spectrod`` is the ``spectrod`` command."""

import sys

from spectrod.cli import command

if __name__ == "__main__":
    sys.exit(command())
