"""``python -m spectrod`` is the ``spectrod`` command."""

import sys

from spectrod.cli import main

if __name__ == "__main__":
    sys.exit(main())
