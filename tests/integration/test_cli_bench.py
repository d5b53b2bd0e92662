"""``spectrod bench`` as a user runs it, on every working device."""

import json
from contextlib import ExitStack
from math import log2

import pytest

from spectrod.apps.bench import command_fft as command
from spectrod.apps.bench import command_live, launches, live, seeds, stft
from spectrod.apps.bench.spectra import Spectra, make_spec
from spectrod.cli import machine, main
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context

SMALL = ["--batch-points", "2^13", "--size", "60", "64", "--peer", "scipy.fft"]

# Operations and bytes of one transform of n values in single precision, by hand.
WORK = {
    "c2c": lambda n: (5 * n * log2(n), 16 * n),
    "r2c": lambda n: (2.5 * n * log2(n), 4 * n + 8 * (n // 2 + 1)),
    "c2r": lambda n: (2.5 * n * log2(n), 4 * n + 8 * (n // 2 + 1)),
}


@pytest.fixture(autouse=True)
def device(opencl_device, monkeypatch):
    """Make the device under test the only one that the command finds."""
    monkeypatch.setattr(machine, "list_devices", lambda: [opencl_device])
    return opencl_device


def rows_of(tmp_path, *arguments):
    """Return the rows of a successful run's report."""
    assert main(["bench", *arguments, "--json", str(tmp_path / "r.json")]) == 0
    (device,) = json.loads((tmp_path / "r.json").read_text())["devices"]
    return device["rows"]


def report(tmp_path, *arguments):
    """Return the rows of a run of the FFT engine."""
    return rows_of(tmp_path, "fft", *SMALL, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_spectrod_and_a_peer_are_measured(kind, tmp_path, capsys):
    """Each length has a row for spectrod and one for the peer, printed and in the report."""
    rows = report(tmp_path, "--kind", kind)
    assert [(row["n"], row["what"]) for row in rows] == [
        (60, "spectrod"),
        (60, "scipy.fft"),
        (64, "spectrod"),
        (64, "scipy.fft"),
    ]
    for row in rows:
        assert 0.0 < row["relative_l2"] < 2e-7
        assert row["cores_after"] > 0.99
        flops, n_bytes = WORK[kind](row["n"])
        assert row["batch"] == (1 << 13) // row["n"]
        scale = row["batch"] / row["seconds"] / 1e9
        assert row["gflop_per_s"] == pytest.approx(flops * scale)
        assert row["gb_per_s"] == pytest.approx(n_bytes * scale)
    for own, peer in (rows[:2], rows[2:]):
        assert peer["speed"] == pytest.approx(own["seconds"] / peer["seconds"])
        # One copy is measured in turns with both.
        assert peer["copy_share"] / own["copy_share"] == pytest.approx(peer["speed"])
    assert len([line for line in capsys.readouterr().out.splitlines() if kind in line]) == 4


@pytest.mark.extended
@pytest.mark.slow
def test_variants_have_four_ways_to_get_twiddles(tmp_path):
    """Powers of two have the baseline with all sources of twiddles, each row with its error."""
    rows = report(tmp_path, "--kind", "c2c", "--variants")
    names = [row["what"] for row in rows if row["n"] == 64]
    for mode in ("table", "sincos", "sin_cos", "native"):
        assert f"radix2 {mode}" in names
    assert {"local", "inplace", "bluestein"} <= set(names)
    assert not [row for row in rows if "failed" in row]


@pytest.mark.slow
def test_the_profile_names_kernels(tmp_path):
    """The shares of kernels in the profile add up to the whole transform."""
    rows = report(tmp_path, "--kind", "c2c", "--size", "17", "--profile")
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert len({row["kernel"] for row in rows}) > 1


@pytest.mark.slow
def test_the_table_of_work_groups(device):
    """The table has a row per work-group size; the transposes take groups up to 256."""
    rows = list(launches.work_groups(device, 32, (1, 64, 512)))
    assert [row["group_items"] for row in rows] == [1, 64, 512]
    assert all(row["butterflies"] > 0 for row in rows)
    assert ["tiled" in row and "naive" in row for row in rows] == [True, True, False]


@pytest.mark.extended
@pytest.mark.slow
def test_the_measurements_of_the_seeds(device):
    """Every historical measurement has rows, the first of which is its baseline."""
    context = Context(device, profiling=True)
    rows = list(seeds.measure(context, seeds.Sizes(1 << 10, (32, 64), (1, 4), 1, 0.0)))
    context.close()
    groups = {}
    for row in rows:
        groups.setdefault((row["measure"], row["size"]), []).append(row)
    assert len({measure for measure, _ in groups}) == 7
    for members in groups.values():
        assert members[0]["speed"] == 1.0
        assert len(members) > 1


@pytest.mark.slow
def test_an_interruption_leaves_a_report(tmp_path, monkeypatch):
    """After an interruption the report has the rows measured before."""
    compare = command.transforms.compare

    def interrupted(arena, spec, names):
        if spec.n == 64:
            raise KeyboardInterrupt
        return compare(arena, spec, names)

    monkeypatch.setattr(command.transforms, "compare", interrupted)
    file = tmp_path / "r.json"
    arguments = ["bench", "fft", *SMALL, "--kind", "c2c", "--json", str(file)]
    assert main(arguments) == 130
    assert [row["n"] for row in json.loads(file.read_text())["devices"][0]["rows"]] == [60, 60]


SPECTRA = ["stft", "--size", "256", "--samples", "2^15", "--seconds", "0.1"]
LIVE = ["live", "--size", "512", "--hop", "480"]


@pytest.mark.slow
@pytest.mark.parametrize("product", ["power", "db", "third-octave"])
def test_spectra_of_spectrod_and_of_a_peer(product, tmp_path, capsys):
    """All our variants and each of the peer's are measured, right, and compared."""
    arguments = ["--hop-ratio", "2", "4", "--channels", "2", "--peer", "scipy.fft", "ShortTimeFFT"]
    rows = rows_of(tmp_path, *SPECTRA, *arguments, "--product", product)
    own = ["spectrod.Stft", "spectrod.spectrogram", "spectrod kernel"]
    names = [*own, *3 * ["scipy.fft"], "ShortTimeFFT"]
    assert [(row["hop"], row["what"]) for row in rows] == [
        (hop, name) for hop in (128, 64) for name in names
    ]
    for row in rows:
        assert 0.0 < row["relative_l2"] < (3e-4 if product == "db" else 1e-6)
        assert row["gs_per_s"] == pytest.approx((1 << 15) / row["seconds"] / 1e9)
        assert row["x_real_time"] == pytest.approx((1 << 14) / 48_000 / row["seconds"])
    stream, whole, kernel, *framed, last = rows[:7]
    fastest = min(row["seconds"] for row in framed)
    for row in (stream, whole, kernel):
        assert row["of_kernel"] == pytest.approx(kernel["seconds"] / row["seconds"])
        assert row["over_numpy"] == pytest.approx(fastest / row["seconds"])
        assert row["over_shorttimefft"] == pytest.approx(last["seconds"] / row["seconds"])
    assert [row["way"] for row in framed] == ["whole", "batches", "threads"]
    assert capsys.readouterr().out.count("scipy.fft") == 6


@pytest.mark.slow
@pytest.mark.parametrize("sample_format", ["int16", "int32"])
def test_spectra_of_integers(sample_format, tmp_path):
    """Spectra of integer samples are measured as well."""
    rows = rows_of(tmp_path, *SPECTRA, "--format", sample_format, "--hop", "100", "--peer")
    assert [row["format"] for row in rows] == 3 * [sample_format]
    assert max(row["relative_l2"] for row in rows) < 3e-7


@pytest.mark.slow
def test_spectra_on_the_device(tmp_path):
    """The launch alone is given as a share of a copy's speed, without copies."""
    (row,) = rows_of(tmp_path, *SPECTRA, "--resident", "--peer")
    assert row["what"] == "spectrod kernel"
    assert row["copy_share"] > 0.0
    assert row["relative_l2"] < 3e-7


@pytest.mark.slow
def test_transfers_are_measured(device):
    """Transfers to and from any device are measured, and a GPU's speed is a share of them."""
    spec = make_spec(64, 32, 1, "power")
    with ExitStack() as stack:
        timers = stft._transfers(Spectra.of_noise(spec, "power", "int16", 1 << 12), device, stack)
        assert len(timers) == 2
        assert all(timer() > 0.0 for timer in timers)


@pytest.mark.slow
def test_peers_that_are_missing_or_broken(tmp_path, monkeypatch, capsys):
    """A missing peer is named with the way to install it; a failing one has a row with a reason.

    The other peers are measured.
    """
    peers, find_spec = stft.stft_peers.PEERS, stft.stft_peers.find_spec
    chosen = {name: peers[name] for name in ("ShortTimeFFT", "librosa")}
    monkeypatch.setattr(stft.stft_peers, "PEERS", chosen)
    monkeypatch.setattr(
        stft.stft_peers, "find_spec", lambda name: None if name == "librosa" else find_spec(name)
    )
    rows = rows_of(tmp_path, *SPECTRA, "--hop", "100")
    assert "left out: librosa: not installed; pip install librosa" in capsys.readouterr().out
    failed = rows[-1]
    assert failed["what"] == "ShortTimeFFT"
    assert "hop=100 does not divide" in failed["failed"]
    assert [row["what"] for row in rows[:-1]] == [
        "spectrod.Stft",
        "spectrod.spectrogram",
        "spectrod kernel",
    ]


@pytest.mark.slow
def test_latency_of_the_running_pipeline(tmp_path, capsys):
    """Every frame of a short run arrives, and each counted one is in the histogram."""
    engine, pipeline = rows_of(tmp_path, *LIVE, "--seconds", "0.6")
    assert (engine["what"], pipeline["what"]) == ("engine", "pipeline")
    assert pipeline["lost"] == pipeline["overruns"] == 0
    for row in (engine, pipeline):
        assert 0.0 < row["p50"] <= row["p90"] <= row["p99"] <= row["max"] < 0.6
        assert sum(row["histogram"]["counts"]) == row["frames"] > 0
    assert 0.0 < pipeline["source_share"] < pipeline["cpu_share"]
    assert pipeline["rss_bytes"] > 0
    assert "ms" in capsys.readouterr().out


@pytest.mark.slow
def test_channels_are_searched(tmp_path, monkeypatch, capsys):
    """Each run of the search has a row, and the largest number that keeps up is printed."""
    monkeypatch.setattr(command_live.channels, "CHANNELS_MAX", 2)
    monkeypatch.setattr(command_live.channels, "keeps_up", lambda run, _: run.row["channels"] < 2)
    rows = rows_of(tmp_path, *LIVE, "--max-channels", "--seconds", "0.5")
    assert [(row["channels"], row["keeps_up"]) for row in rows] == [(2, False), (1, True)]
    assert "\n1 channels keep up\n" in capsys.readouterr().out


@pytest.mark.slow
def test_memory_over_many_frames(tmp_path, capsys):
    """All frames arrive, and resident memory is recorded up to the last one."""
    rows = rows_of(tmp_path, *LIVE, "--frames", "20000")
    assert rows[-1]["frames"] == 20_000
    assert len(rows) > 5
    assert "flat: " in capsys.readouterr().out


BAD_ARGUMENTS = [
    (["fft", "--size", "0"], 2, "argument --size: '0': must be at least 1"),
    (["fft", "--size", "2^27"], 2, "n=134217728: must be 1 to 67108864"),
    (["fft", "--batch-points", "1e6"], 2, "'1e6': must be a whole number"),
    (
        ["fft", "--batch-points", "2^62", "--peer"],
        69,
        "cannot hold a buffer of 35184372088832.0 MiB",
    ),
    (["fft", "--peer", "fftw3"], 2, "peer 'fftw3': must be one of scipy.fft, pyFFTW"),
    (["fft", "--device", "Voodoo"], 69, "device='Voodoo': no OpenCL device fits"),
    (["fft", "--variants", "--profile"], 2, "not allowed with argument"),
    (["fft", "--peer", "--json", "/proc/x.json"], 74, "/proc/x.json: "),
    (["fft", "--peer", "--json", "/proc"], 74, "/proc: is a folder"),
    (["stft", "--product", "loudness"], 2, "bands='loudness': must be octave"),
    (["stft", "--size", "2^21"], 2, "2097152"),
    (["stft", "--hop", "1", "--hop-ratio", "2"], 2, "not allowed with argument"),
    (["stft", "--samples", "100", "--peer"], 2, "samples=100: must be at least 256, a frame of 1"),
    (["stft", "--peer", "fftw3"], 2, "peer 'fftw3': must be one of scipy.fft, pyFFTW"),
    (["stft", "--format", "int8"], 2, "invalid choice: 'int8'"),
    (["live", "--seconds", "0.2", "--max-channels"], 2, "seconds=0.2: must be at least 0.5"),
    (["live", "--channels", "5000"], 2, "channels=5000: must be 1 to 4096"),
    (["live", "--frames", "5", "--max-channels"], 2, "not allowed with argument"),
    (["live", "--device", "Voodoo"], 69, "device='Voodoo': no OpenCL device fits"),
]


@pytest.mark.parametrize(("arguments", "exit_code", "text"), BAD_ARGUMENTS)
def test_bad_arguments(arguments, exit_code, text, monkeypatch, capsys):
    """A bad argument is one line with the value and the rule, before any measurement."""
    monkeypatch.delattr(command.transforms, "measure")
    for name in ("compare", "resident"):
        monkeypatch.setattr(stft, name, lambda *_: pytest.fail("measures"))
    monkeypatch.delattr(live, "Pipeline")
    assert main(["bench", *arguments]) == exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_a_report_stays_where_nothing_is_measured(tmp_path):
    """A mistake on the command line keeps the last report."""
    file = tmp_path / "r.json"
    file.write_text("precious")
    assert main(["bench", "fft", "--peer", "fftw3", "--json", str(file)]) == 2
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


def test_a_device_that_does_not_work(device, monkeypatch, capsys):
    """If no device works, the error is the first one's reason."""

    def refuse(*_, **__):
        raise DeviceError("P/D: its compiler refuses every program")

    monkeypatch.setattr(machine, "Context", refuse)
    assert main(["bench", "fft", *SMALL]) == DeviceError.exit_code
    assert capsys.readouterr().err == "spectrod: P/D: its compiler refuses every program\n"
