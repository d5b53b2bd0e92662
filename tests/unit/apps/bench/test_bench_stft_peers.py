from importlib.util import find_spec

import numpy as np
import pytest

from spectrod.apps.bench import framing, stft_peers
from spectrod.apps.bench.spectra import PEER_LIMIT, Spectra, make_spec
from spectrod.lib.errors import UnavailableError

ON_HOST = [name for name, peer in stft_peers.PEERS.items() if peer.device_kinds == ("cpu",)]
INSTALLED = [name for name in ON_HOST if find_spec(stft_peers.PEERS[name].module)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Make batches so small that a short signal has several, the last one incomplete."""
    monkeypatch.setattr(framing, "BATCH_KIB", (4, 8))


def spectra(product="power", sample_format="float32", channels=2, n=256, hop=128):
    spec = make_spec(n, hop, channels, product)
    return Spectra.of_noise(spec, product, sample_format, 101 * n)


@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("sample_format", ["float32", "int16", "int32"])
@pytest.mark.parametrize("product", ["power", "db", "octave"])
def test_a_peer_computes_the_same_as_spectrod(name, product, sample_format):
    """Every installed library gives the same spectra in each of its variants."""
    this = spectra(product, sample_format)
    for _, run, error in stft_peers.prepare(name, this):
        assert error <= max(PEER_LIMIT, this.limit)
        assert run.seconds() > 0.0
        assert run.result().shape == this.shape


@pytest.mark.parametrize(("n", "hop"), [(255, 100), (256, 300), (64, 1)])
def test_numpy_frames_of_any_hop(n, hop):
    """The NumPy peer takes odd lengths and frames that overlap much or not at all."""
    this = spectra(n=n, hop=hop)
    ways = [way for way, _, _ in stft_peers.prepare("scipy.fft", this)]
    assert ways == ["whole", "batches", "threads"]


def test_a_peer_that_computes_something_else(monkeypatch):
    """A peer with wrong results is not timed, and the error gives the deviation."""
    monkeypatch.setattr(framing.Finish, "__call__", lambda _self, power, **_: 2 * power)
    with pytest.raises(UnavailableError, match=r"^is wrong: relative L2 error 1\.0e\+00$"):
        list(stft_peers.prepare("ShortTimeFFT", spectra()))


def test_a_hop_that_shorttimefft_does_not_share():
    """ShortTimeFFT centres slices on multiples of the hop, so some hops cannot be compared."""
    with pytest.raises(UnavailableError, match=r"^hop=100 does not divide n / 2"):
        list(stft_peers.prepare("ShortTimeFFT", spectra(hop=100)))


def test_a_missing_peer_is_named(monkeypatch):
    """A missing peer is listed with the way to install it, and is an error if it was named."""
    monkeypatch.setattr(stft_peers, "find_spec", lambda _: None)
    chosen, missing = stft_peers.choose_peers(None, "cpu")
    assert chosen == []
    assert "pyFFTW: not installed; pip install pyfftw" in missing
    assert len(missing) == len([p for p in stft_peers.PEERS.values() if "cpu" in p.device_kinds])
    with pytest.raises(UnavailableError, match="peer librosa: not installed; pip install librosa"):
        stft_peers.choose_peers(["librosa"], "cpu")


def test_peers_go_with_the_device():
    """Peers for processors are not among the defaults of a GPU, but can be named."""
    assert "scipy.fft" in stft_peers.choose_peers(None, "cpu")[0]
    assert not set(ON_HOST) & set(stft_peers.choose_peers(None, "gpu")[0])
    assert stft_peers.choose_peers(["scipy.fft"], "gpu") == (["scipy.fft"], [])
    assert stft_peers.choose_peers([], "cpu") == ([], [])


@pytest.mark.parametrize("is_resident", [False, True])
def test_peers_have_their_data_on_the_same_device(is_resident, monkeypatch):
    """On a GPU, torch's data are in GPU memory, as spectrod's are."""
    monkeypatch.setattr(stft_peers, "find_spec", lambda _: True)
    names, _ = stft_peers.choose_peers(None, "gpu", is_resident=is_resident)
    assert names == ["torch-cuda" if is_resident else "torch-cuda-host"]
    names, _ = stft_peers.choose_peers(None, "cpu", is_resident=is_resident)
    assert names == ON_HOST


def test_bands_are_written_as_a_matrix():
    """Column sums of the band matrix are the bands' responses to power 1 in every bin."""
    this = spectra("mel:8")
    rows = this.kernel_spec[1].bands
    sums = np.add.reduceat(rows.weights, np.cumsum(rows.count) - rows.count)
    np.testing.assert_allclose(framing.band_matrix(this).sum(axis=0), sums, rtol=1e-6)
