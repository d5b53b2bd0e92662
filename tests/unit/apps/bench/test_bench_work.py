import numpy as np
import pytest

from spectrod.apps.bench.work import Work, require_right
from spectrod.fft import reference
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import InternalError


def work(n=64, kind="c2c", batch=5, precision="single"):
    spec = TransformSpec(n, kind, kind == "c2r", precision)
    rng = np.random.default_rng(n)
    lines = rng.standard_normal((batch, 2 * spec.n_in)).view(complex)
    lines = lines.real if kind == "r2c" else lines
    return Work(spec, np.ascontiguousarray(lines).astype(reference.in_dtype(spec)))


@pytest.mark.parametrize(
    ("kind", "flops", "n_bytes"),
    [
        ("c2c", 5 * 64 * 6 * 5, 5 * 64 * 16),
        ("r2c", 5 * 64 * 6 * 5 / 2, 5 * (64 * 4 + 33 * 8)),
        ("c2r", 5 * 64 * 6 * 5 / 2, 5 * (64 * 4 + 33 * 8)),
    ],
)
def test_work_is_counted_as_usual(kind, flops, n_bytes):
    """Work counts as 5 n log2(n) operations, half for real transforms, one read and one write."""
    assert work(kind=kind).flops == flops
    assert work(kind=kind).n_bytes == n_bytes


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
@pytest.mark.parametrize("n", [15, 64])
def test_the_error_is_that_of_the_worst_end(kind, n):
    """The error covers the first and the last line; NaN or a wrong shape gives NaN."""
    this = work(n, kind, batch=3000)
    right = reference.transform(this.spec, this.lines)
    assert this.error(right) == 0.0
    for place in (0, -1):
        wrong = right.copy()
        wrong[place] *= 2
        assert this.error(wrong) > 0.01
        wrong[place, 3] = np.nan
        assert np.isnan(this.error(wrong))
    assert np.isnan(this.error(right[:, 1:]))


@pytest.mark.parametrize("n", [15, 64])
def test_strict_half_spectra_are_those_of_real_values(n):
    """Strict half spectra have a real bin 0 and, for even lengths, a real last bin."""
    loose = work(n, "c2r")
    strict = loose.strict()
    assert not strict.lines[:, 0].imag.any()
    assert strict.lines[:, -1].imag.any() == (n % 2 == 1)
    assert strict.error(reference.transform(loose.spec, loose.lines)) < 1e-15
    assert work(n).strict().lines is not None


def test_wrong_results_are_not_timed():
    """A wrong or NaN result is not timed; the error names the deviation and the limit."""
    spec = TransformSpec(64)
    require_right("spectrod", spec, 1e-7, 1e-7)
    with pytest.raises(
        InternalError,
        match=r"spectrod, n=64 c2c single: relative L2 error 2\.0e-07: must be at most 1\.0e-07",
    ):
        require_right("spectrod", spec, 2e-7, 1e-7)
    with pytest.raises(InternalError, match="error nan"):
        require_right("spectrod", spec, np.nan, 1e-7)
