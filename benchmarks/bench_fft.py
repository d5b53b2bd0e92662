"""Speed and error of batches of transforms beside the peers: ``spectrod bench fft``.

Arguments are that command's: ``python benchmarks/bench_fft.py --size 1024 --json FILE``.
"""

import sys

import _report  # noqa: F401 - makes the checkout importable

from spectrod.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "fft", *sys.argv[1:]]))
