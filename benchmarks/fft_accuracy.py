"""Error of every transform, length by length, against float64 and long double.

    python benchmarks/fft_accuracy.py [--device NAME] [--host] [--lengths 1:2049]
                                      [--precision single]

Prints each length beyond its limit, and for each kind the worst share of the limit.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

import _report  # noqa: F401 - makes the checkout importable
import numpy as np

from spectrod.fft import reference
from spectrod.fft.host import HostTransform
from spectrod.fft.stage import TransformSpec
from spectrod.fft.transform import LineTransform
from spectrod.opencl.context import Context
from spectrod.opencl.devices import choose
from spectrod.opencl.program_cache import BinaryCache

KINDS = (("c2c", False), ("c2c", True), ("r2c", False), ("c2r", True))
LINES = 3
Make = Callable[[TransformSpec], LineTransform | HostTransform]


def main() -> int:
    """Measure, print, and return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE")
    parser.add_argument(
        "--host", action="store_true", help="NumPy's transforms, which compute small calls"
    )
    parser.add_argument("--lengths", default="1:2049", help="FIRST:END[:STEP], or N,N,...")
    parser.add_argument("--precision", choices=("single", "double"), help="by default both")
    options = parser.parse_args()
    # Thousands of programs that nobody needs again: they are not kept.
    context = Context(choose(options.device), cache=BinaryCache(max_bytes=0))
    device = f"{context.device.label}, driver {context.device.driver}"
    print(f"NumPy {np.__version__}" if options.host else device)
    transform = HostTransform if options.host else LineTransform
    precisions = (options.precision,) if options.precision else ("single", "double")
    worst = [
        sweep(
            partial(transform, context),
            [TransformSpec(n, *kind, precision) for n in lengths(options.lengths)],
        )
        for precision in precisions
        for kind in KINDS
    ]
    return int(max(worst) > 1)


def lengths(text: str) -> list[int]:
    """Lengths that an option means."""
    if ":" in text:
        return list(range(*map(int, text.split(":"))))
    return [int(n) for n in text.split(",")]


def sweep(make: Make, specs: list[TransformSpec]) -> float:
    """Measure one kind at every length; return its worst error over the limit."""
    shares = {spec.n: error(make(spec)) / reference.error_limit(spec) for spec in specs}
    for n, share in shares.items():
        if not share <= 1:
            print(f"  n={n}: {share:.2f} of the limit")
    n = max(shares, key=shares.__getitem__)
    kind = f"{specs[0].kind} {'inverse' if specs[0].inverse else 'forward'} {specs[0].precision}"
    print(f"{kind}: {len(specs)} lengths, worst {shares[n]:.2f} of the limit at n={n}")
    sys.stdout.flush()
    return shares[n]


def error(transform: LineTransform | HostTransform) -> float:
    """Relative L2 error of a few lines of uniform random values [1]."""
    spec = transform.spec
    rng = np.random.default_rng(spec.n)
    x = rng.uniform(-1, 1, (LINES, spec.n_in, 1))
    if spec.kind != "r2c":
        x = x + 1j * rng.uniform(-1, 1, x.shape)
    x = x.astype(reference.in_dtype(spec))
    out = np.empty((LINES, spec.n_out, 1), reference.out_dtype(spec))
    transform.run(out, x, 1.0)
    expected = reference.transform(spec, x[:, :, 0])
    return reference.relative_l2(out[:, :, 0], expected)


if __name__ == "__main__":
    sys.exit(main())
