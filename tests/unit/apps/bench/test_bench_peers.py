from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.apps.bench import peers
from spectrod.apps.bench.work import Work
from spectrod.fft import reference
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import UnavailableError

CPU = SimpleNamespace(kind="cpu")
GPU = SimpleNamespace(kind="gpu")
HOST_PEERS = [name for name, peer in peers.PEERS.items() if peer.device_kinds == ("cpu",)]
INSTALLED = [name for name in HOST_PEERS if find_spec(peers.PEERS[name].module)]


def work(kind, precision, n, *, inverse=False):
    spec = TransformSpec(n, kind, inverse or kind == "c2r", precision)
    values = np.random.default_rng(n).random(10 * spec.n_in, np.float64)
    lines = values.view(complex) if kind != "r2c" else values
    return Work(spec, lines.reshape(-1, spec.n_in).astype(reference.in_dtype(spec))).strict()


@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("n", [15, 64])
@pytest.mark.parametrize(
    ("kind", "inverse"), [("c2c", False), ("c2c", True), ("r2c", False), ("c2r", False)]
)
def test_a_peer_computes_the_same_as_spectrod(name, precision, n, kind, inverse):
    """Every installed library gives the same unscaled transform in the same precision."""
    this = work(kind, precision, n, inverse=inverse)
    run, error = peers.prepare(name, this, CPU)
    assert error <= 2 * reference.error_limit(this.spec)
    assert run.result().dtype == reference.out_dtype(this.spec)
    assert run.seconds() > 0.0


def test_installed_libraries_are_chosen():
    """Without names, the installed libraries for the device are chosen, always with SciPy."""
    assert "scipy.fft" in peers.choose_peers(None, CPU)
    assert not set(HOST_PEERS) & set(peers.choose_peers(None, GPU))
    assert peers.choose_peers([], CPU) == []
    assert peers.choose_peers(["scipy.fft"], GPU) == ["scipy.fft"]


def test_a_peer_that_is_not_installed(monkeypatch):
    """A missing library is an error if it was named, and is left out otherwise."""
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    assert peers.choose_peers(None, CPU) == []
    with pytest.raises(UnavailableError, match=r"peer 'cuFFT': cupy is not installed"):
        peers.choose_peers(["cuFFT"], CPU)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ImportError("no such library\nat all"), "no such library"),
        (RuntimeError(), "RuntimeError"),
        (MemoryError("too much"), "too much"),
    ],
)
def test_a_peer_that_fails(monkeypatch, failure, text):
    """An error of a library is kept as one line and does not stop the other libraries."""

    class Broken:
        def prepare(self, *_):
            raise failure

    monkeypatch.setitem(peers.PEERS, "broken", Broken())
    with pytest.raises(UnavailableError, match=f"^{text}$"):
        peers.prepare("broken", work("c2c", "single", 64), CPU)
